package slurm

import (
	"context"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Partitions may admit groups only (AllowGroups). Slurm tells no user's groups: this host does, if it knows the user by the same
// number as Slurm, and all of the partition's groups. Else nothing is concluded.

// membership is what this host knows of a user's groups.
type membership struct {
	known  bool
	groups []string
}

// lookGroups finds the users of waiting jobs that are in none of the groups of a partition. Without such a partition it asks
// nothing.
func (c *Client) lookGroups(ctx context.Context, now cluster.Instant) {
	s := &c.seen
	if !s.changed && now < s.groupsDue || !slices.ContainsFunc(s.last.Partitions, func(p cluster.Partition) bool { return len(p.Rules.AllowGroups) > 0 }) {
		return
	}
	if now >= s.groupsDue {
		s.members, s.groups, s.groupsDue = map[string]membership{}, map[string]bool{}, now.Add(cluster.SpanOf(c.cfg.AccountsEvery))
	}
	outside := map[string][]string{} // users, by partition
	for _, rec := range s.records {
		if len(rec.jobs) == 0 || rec.jobs[0].State != cluster.Waiting {
			continue
		}
		j := &rec.jobs[0]
		for _, name := range j.Partitions {
			at, ok := slices.BinarySearchFunc(s.last.Partitions, name, func(p cluster.Partition, name string) int { return strings.Compare(p.Name, name) })
			if !ok || j.UID == 0 || slices.Contains(outside[name], j.User) {
				continue
			}
			if allowed := s.last.Partitions[at].Rules.AllowGroups; len(allowed) > 0 && c.isOutside(ctx, j.User, j.UID, allowed) {
				outside[name] = append(outside[name], j.User)
			}
		}
	}
	list := slices.Clone(s.last.Partitions)
	for i := range list {
		users := outside[list[i].Name]
		slices.Sort(users)
		list[i].Rules.Outside = users
	}
	replace(&s.last.Partitions, list, &s.changed)
}

// isOutside tells whether a user is known to be in none of some groups.
func (c *Client) isOutside(ctx context.Context, user string, uid uint32, allowed []string) bool {
	s := &c.seen
	m, asked := s.members[user]
	if !asked {
		m.groups, m.known = c.cfg.groupsOf(ctx, user, uid)
		s.members[user] = m
	}
	if !m.known {
		return false
	}
	for _, g := range allowed {
		exists, asked := s.groups[g]
		if !asked {
			exists = c.cfg.groupExists(ctx, g)
			s.groups[g] = exists
		}
		if !exists || slices.Contains(m.groups, g) {
			return false
		}
	}
	return true
}

// groupTimeout is how long one question about users and groups may take.
const groupTimeout = 5 * time.Second

// hostGroups asks this host for the names of a user's groups. id(1) asks the services of nsswitch.conf, and fails if a group
// has no name.
func hostGroups(ctx context.Context, user string, uid uint32) ([]string, bool) {
	ctx, cancel := context.WithTimeout(ctx, groupTimeout)
	defer cancel()
	number, err := exec.CommandContext(ctx, "id", "-u", "--", user).Output()
	if err != nil || strings.TrimSpace(string(number)) != strconv.FormatUint(uint64(uid), 10) {
		return nil, false
	}
	names, err := exec.CommandContext(ctx, "id", "-Gnz", "--", user).Output()
	if err != nil {
		return nil, false
	}
	return strings.Split(strings.TrimRight(string(names), "\x00"), "\x00"), true
}

// hostHasGroup asks this host whether it knows a group.
func hostHasGroup(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, groupTimeout)
	defer cancel()
	return exec.CommandContext(ctx, "getent", "group", "--", name).Run() == nil
}
