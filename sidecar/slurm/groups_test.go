package slurm

import (
	"context"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Users of waiting jobs are outside of a partition only if the host knows them and all of its groups.
func TestGroupsOfPartitions(t *testing.T) {
	job := func(id int, user string, uid int) string {
		return strings.Replace(waitingJob(id, `"user_id":`+strconv.Itoa(uid)), `"alice"`, `"`+user+`"`, 1)
	}
	partition := func(allowed string) answer {
		return text(`{"partitions":[{"name":"main","nodes":{"configured":"v1"},"groups":{"allowed":"` + allowed + `"},"partition":{"state":["UP"]}}],"last_update":{"set":true,"infinite":false,"number":900},"errors":[]}`)
	}
	f := newRecorded(t, 45)
	now, asked := time.Unix(1_000_100, 0), 0
	groups := map[string][]string{"alice": {"nlp"}, "bob": {"staff", "vision"}}
	c := f.client(func(c *Config) {
		c.Now = func() time.Time { return now }
		c.groupsOf = func(_ context.Context, user string, uid uint32) ([]string, bool) {
			asked++
			return groups[user], groups[user] != nil && uid < 3000
		}
		c.groupExists = func(_ context.Context, name string) bool { return name != "ldap" }
	})
	f.on("GET /slurm/v0.0.45/jobs/", jobs(1, job(1, "alice", 2001), job(2, "alice", 2001), job(3, "bob", 2002), job(4, "carol", 2003), job(5, "root", 0)))
	outside := func() string { return strings.Join(f.see(c).Partitions[0].Rules.Outside, ",") }
	if got := outside(); got != "" || asked > 0 {
		t.Errorf("all groups are allowed: %q are outside, %d users asked for", got, asked)
	}
	for _, w := range []struct{ allowed, want string }{{"staff", "alice"}, {"staff,nlp", ""}, {"other", "alice,bob"}, {"staff,ldap", ""}} {
		f.on("GET /slurm/v0.0.45/partitions/", partition(w.allowed))
		if got := outside(); got != w.want {
			t.Errorf("AllowGroups=%s: %q are outside, want %q", w.allowed, got, w.want)
		}
	}
	if asked != 3 {
		t.Errorf("asked for the groups of users %d times, want once each", asked)
	}
	f.on("GET /slurm/v0.0.45/partitions/", partition("staff"))
	outside()
	groups["alice"] = []string{"nlp", "staff"}
	if got := outside(); got != "alice" {
		t.Errorf("groups are asked for at every look: %q", got)
	}
	now = now.Add(6 * time.Minute)
	if got := outside(); got != "" {
		t.Errorf("a user that has joined a group is outside: %q", got)
	}
	f.on("GET /slurm/v0.0.45/jobs/", jobs(2, job(1, "alice", 4001)))
	now, groups["alice"] = now.Add(6*time.Minute), []string{"nlp"}
	if got := outside(); got != "" {
		t.Errorf("a user with another number is outside: %q", got)
	}
}

// This host's own users and groups are found.
func TestGroupsOfThisHost(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	uid, err := strconv.ParseUint(me.Uid, 10, 32)
	if err != nil {
		t.Skip(err)
	}
	g, err := user.LookupGroupId(me.Gid)
	if err != nil {
		t.Skip(err)
	}
	names, known := hostGroups(t.Context(), me.Username, uint32(uid))
	if !known || !slices.Contains(names, g.Name) || !hostHasGroup(t.Context(), g.Name) {
		t.Errorf("%s (%d) is in %q, %v; want %s", me.Username, uid, names, known, g.Name)
	}
	if names, known := hostGroups(t.Context(), me.Username, uint32(uid)+1); known {
		t.Errorf("a user with another number is in %q", names)
	}
	if names, known := hostGroups(t.Context(), "--nobody-at-all", 5); known || hostHasGroup(t.Context(), "--no-group-at-all") {
		t.Errorf("an unknown user is in %q", names)
	}
}
