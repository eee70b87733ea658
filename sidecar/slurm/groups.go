package slurm

import (
	"context"
	"hash/fnv"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Partitions may admit groups only (AllowGroups). Slurm tells no user's groups: this host does, if it knows the user by the same
// number as Slurm, and all of the partition's groups. Else nothing is concluded.

// membership is what this host knows of a user's groups, or of a group: whether it exists.
type membership struct {
	known  bool
	groups []string
	due    cluster.Instant // when it is asked for again
}

// groupTime is how long the questions about users and groups may take in one look. A service that hangs is asked again after
// groupPause.
const (
	groupTime  = 2 * time.Second
	groupPause = cluster.Minute
)

// census is the questions of one look about users and groups. A name without an answer in time stays unknown, or as it was.
type census struct {
	*link
	ctx           context.Context
	now           cluster.Instant
	answered, cut bool
}

// lookGroups finds the users of waiting jobs that are in none of the groups of a partition. Without such a partition it asks
// nothing.
func (c queue) lookGroups(ctx context.Context, now cluster.Instant) {
	s := &c.seen
	if !s.changed && now < s.groupsDue || !slices.ContainsFunc(s.last.Partitions, func(p cluster.Partition) bool { return len(p.Rules.AllowGroups) > 0 }) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.groupTime)
	defer cancel()
	x := census{link: c.link, ctx: ctx, now: now, cut: now < s.groupsPause}
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
			if allowed := s.last.Partitions[at].Rules.AllowGroups; len(allowed) > 0 && x.isOutside(j.User, j.UID, allowed) {
				outside[name] = append(outside[name], j.User)
			}
		}
	}
	x.end()
	list := slices.Clone(s.last.Partitions)
	for i := range list {
		users := outside[list[i].Name]
		slices.Sort(users)
		list[i].Rules.Outside = users
	}
	replace(&s.last.Partitions, list, &s.changed)
}

// end sets when the next questions are due, and forgets users and groups that no job needs any more.
func (x *census) end() {
	s := &x.seen
	switch {
	case x.cut && x.now < s.groupsPause:
		s.groupsDue = s.groupsPause
		return
	case x.cut:
		x.notes.add("this host did not tell the groups of all users within %v: those of others are unknown, or as they were", cluster.SpanOf(x.cfg.groupTime))
		if s.groupsDue = x.now; !x.answered {
			s.groupsPause = x.now.Add(groupPause)
			s.groupsDue = s.groupsPause
		}
		return
	}
	s.groupsDue = x.now.Add(cluster.SpanOf(x.cfg.AccountsEvery))
	for _, all := range []map[string]membership{s.members, s.groups} {
		maps.DeleteFunc(all, func(_ string, m membership) bool { return m.due <= x.now })
		for _, m := range all {
			s.groupsDue = min(s.groupsDue, m.due)
		}
	}
}

// isOutside tells whether a user is known to be in none of some groups.
func (x *census) isOutside(user string, uid uint32, allowed []string) bool {
	m := x.ask(&x.seen.members, user, func() (m membership) {
		m.groups, m.known = x.cfg.groupsOf(x.ctx, user, uid)
		return m
	})
	if !m.known {
		return false
	}
	for _, g := range allowed {
		exists := x.ask(&x.seen.groups, g, func() membership { return membership{known: x.cfg.groupExists(x.ctx, g)} }).known
		if !exists || slices.Contains(m.groups, g) {
			return false
		}
	}
	return true
}

// ask gives what is known of a name, and puts a question where that is due. No answer in time ends the questions of this look.
// Names are due at different times, so that no look asks for all.
func (x *census) ask(all *map[string]membership, name string, question func() membership) membership {
	was, asked := (*all)[name]
	if x.cut || asked && x.now < was.due {
		return was
	}
	m := question()
	if x.ctx.Err() != nil {
		x.cut = true
		return was
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	every := cluster.SpanOf(x.cfg.AccountsEvery)
	m.due = x.now.Add(every/2 + every/2*cluster.Span(h.Sum32()%1000)/1000)
	if *all == nil {
		*all = map[string]membership{}
	}
	(*all)[name], x.answered = m, true
	return m
}

// hostGroups asks this host for the names of a user's groups. id(1) asks the services of nsswitch.conf, and fails if a group
// has no name.
func hostGroups(ctx context.Context, user string, uid uint32) ([]string, bool) {
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
	return exec.CommandContext(ctx, "getent", "group", "--", name).Run() == nil
}

// UnknownGroups gives the groups of partitions' AllowGroups that this host does not know, sorted; nil where it does not tell within
// two seconds. While one of a partition's groups is unknown, users outside of them are not known to be kept from it.
func UnknownGroups(ctx context.Context, partitions []cluster.Partition) []string {
	ctx, cancel := context.WithTimeout(ctx, groupTime)
	defer cancel()
	var all []string
	for i := range partitions {
		all = append(all, partitions[i].Rules.AllowGroups...)
	}
	slices.Sort(all)
	unknown := slices.DeleteFunc(slices.Compact(all), func(name string) bool { return hostHasGroup(ctx, name) })
	if ctx.Err() != nil || len(unknown) == 0 {
		return nil
	}
	return unknown
}

// DesertedPartitions gives the partitions whose AllowGroups have none of the users, sorted as they come. All of their groups and some of the
// users must be known to this host; nil where it does not tell within two seconds.
func DesertedPartitions(ctx context.Context, partitions []cluster.Partition, users []string) []string {
	users = slices.DeleteFunc(slices.Clone(users), func(u string) bool { return u == "root" || strings.HasPrefix(u, "-") })
	const most = 2000 // names that are asked for
	if len(users) == 0 || len(users) > most || !slices.ContainsFunc(partitions, func(p cluster.Partition) bool { return len(p.Rules.AllowGroups) > 0 }) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, groupTime)
	defer cancel()
	text, _ := exec.CommandContext(ctx, "getent", append([]string{"passwd", "--"}, users...)...).Output() // it fails where one is unknown
	primary := map[string]bool{}                                                                          // groups by number
	for line := range strings.Lines(string(text)) {
		if fields := strings.Split(line, ":"); len(fields) > 3 {
			primary[fields[3]] = true
		}
	}
	if len(primary) == 0 {
		return nil
	}
	var out []string
	for i := range partitions {
		p := &partitions[i]
		if len(p.Rules.AllowGroups) > 0 && !slices.ContainsFunc(p.Rules.AllowGroups, func(g string) bool { return mayHave(ctx, g, users, primary) }) {
			out = append(out, p.Name)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return out
}

// mayHave tells whether one of some users is in a group, by its list or as its primary group, or this host does not know the group.
func mayHave(ctx context.Context, group string, users []string, primary map[string]bool) bool {
	line, err := exec.CommandContext(ctx, "getent", "group", "--", group).Output()
	fields := strings.Split(strings.TrimSpace(string(line)), ":")
	if err != nil || len(fields) < 4 {
		return true
	}
	return primary[fields[2]] || slices.ContainsFunc(strings.Split(fields[3], ","), func(u string) bool { return slices.Contains(users, u) })
}
