package slurm

import (
	"context"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
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

// Questions about groups cost a look no more than their time. A host that hangs is asked once, and again after a pause; what it has told
// holds meanwhile. No look asks for all users again.
func TestGroupsOfAHostThatHangs(t *testing.T) {
	const users = 60
	f := newRecorded(t, 45)
	now, asked, hangs, left := time.Unix(1_000_100, 0), 0, true, 0
	c := f.client(func(c *Config) {
		c.Now, c.groupTime = func() time.Time { return now }, 50*time.Millisecond
		c.groupsOf = func(ctx context.Context, user string, uid uint32) ([]string, bool) {
			asked++
			if left--; hangs || left == 0 {
				<-ctx.Done()
				return nil, false
			}
			return []string{"nlp"}, true
		}
		c.groupExists = func(context.Context, string) bool { return true }
	})
	var all []string
	for i := range users {
		all = append(all, strings.Replace(waitingJob(i+1, `"user_id":`+strconv.Itoa(2000+i)), `"alice"`, `"u`+strconv.Itoa(i)+`"`, 1))
	}
	f.on("GET /slurm/v0.0.45/jobs/", jobs(1, all...))
	f.on("GET /slurm/v0.0.45/partitions/", text(`{"partitions":[{"name":"main","nodes":{"configured":"v1"},"groups":{"allowed":"staff"},"partition":{"state":["UP"]}}],"last_update":{"set":true,"infinite":false,"number":900},"errors":[]}`))
	look := func(what string, after time.Duration, wantAsked, wantOutside int) {
		t.Helper()
		now, asked = now.Add(after), 0
		if got := len(f.see(c).Partitions[0].Rules.Outside); asked != wantAsked || got != wantOutside {
			t.Errorf("%s: asked for %d users, %d are outside; want %d, %d", what, asked, got, wantAsked, wantOutside)
		}
	}
	look("it hangs", 0, 1, 0)
	look("pause", 10*time.Second, 0, 0)
	look("it hangs still", time.Minute, 1, 0)
	hangs, left = false, 21
	look("slow", time.Minute, 21, 20)
	look("slow, again", 10*time.Second, users-20, users)
	look("all is known", 10*time.Second, 0, users)
	most, sum := 0, 0
	for range 30 {
		now, asked = now.Add(10*time.Second), 0
		f.see(c)
		most, sum = max(most, asked), sum+asked
	}
	if most > users/3 || sum < users {
		t.Errorf("asked for %d users in one look and %d in all, want at most %d and at least %d", most, sum, users/3, users)
	}
	hangs = true
	look("it hangs when users are due", 6*time.Minute, 1, users)
}

// This host's own users and groups are found.
func TestGroupsOfThisHost(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Skipf("this host does not know the user of this test: %v", err)
	}
	uid, err := strconv.ParseUint(me.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	g, err := user.LookupGroupId(me.Gid)
	if err != nil {
		t.Skipf("this host does not know the group of this test's user: %v", err)
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

// Groups that this host does not know are named once each; those that it does not tell of are not.
func TestUnknownGroups(t *testing.T) {
	partitions := []cluster.Partition{{Name: "a", Rules: cluster.Rules{AllowGroups: []string{"no-such-group", "daemon"}}}, {Name: "b"}, {Name: "c", Rules: cluster.Rules{AllowGroups: []string{"no-such-group", "no-group"}}}}
	if got := UnknownGroups(t.Context(), partitions); !slices.Equal(got, []string{"no-group", "no-such-group"}) {
		t.Errorf("%q are unknown", got)
	}
	if got := UnknownGroups(t.Context(), partitions[1:2]); got != nil {
		t.Errorf("without groups %q are unknown", got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if got := UnknownGroups(ended, partitions); got != nil {
		t.Errorf("without an answer %q are unknown", got)
	}
}

// A partition is deserted where this host knows its groups, and none of the users in them.
func TestDesertedPartitions(t *testing.T) {
	names := []string{"daemon", "bin", "nobody"} // users of every Debian, each in its own group
	partition := func(name string, groups ...string) cluster.Partition {
		return cluster.Partition{Name: name, Rules: cluster.Rules{AllowGroups: groups}}
	}
	all := []cluster.Partition{partition("open"), partition("sys", "sys"), partition("two", "sys", "daemon"), partition("unknown", "sys", "no-such-group")}
	if got := DesertedPartitions(t.Context(), all, names); !slices.Equal(got, []string{"sys"}) {
		t.Errorf("deserted are %q", got)
	}
	for _, users := range [][]string{nil, {"root"}, {"no-such-user"}, {"--nobody"}} {
		if got := DesertedPartitions(t.Context(), all, users); got != nil {
			t.Errorf("with users %q, %q are deserted", users, got)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if got := DesertedPartitions(ended, all, names); got != nil {
		t.Errorf("without an answer %q are deserted", got)
	}
}
