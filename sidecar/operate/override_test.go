package operate_test

import (
	"errors"
	"os/user"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/operate"
)

// A word names a job, a user or a tenant; an ambiguous one must say which.
func TestTarget(t *testing.T) {
	newest := cluster.Snapshot{Tenants: []cluster.Tenant{{Name: "nlp"}, {Name: "ann"}}, Cases: []cluster.Case{{Record: cluster.Record{User: "ann"}}, {Record: cluster.Record{User: "bob"}}}}
	for _, c := range []struct{ word, scope, name string }{
		{"4711", "job", "4711"}, {"123_4", "job", "123_4"}, {"nlp", "tenant", "nlp"}, {"bob", "user", "bob"}, {"ann", "", ""}, {"stranger", "", ""},
		{"user:ann", "user", "ann"}, {"tenant:stranger", "tenant", "stranger"}, {"gang:x", "", ""}, {"user:", "", ""},
	} {
		scope, name, err := operate.OverrideTarget(c.word, func() (cluster.Snapshot, error) { return newest, nil })
		if scope != c.scope || name != c.name || (err == nil) != (c.scope != "") {
			t.Errorf("%s: %s %s, %v", c.word, scope, name, err)
		}
	}
	away := errors.New("away")
	last := func() (cluster.Snapshot, error) { return newest, away }
	if _, _, err := operate.OverrideTarget("nlp", last); !errors.Is(err, away) {
		t.Error(err)
	}
	if _, name, err := operate.OverrideTarget("7", last); err != nil || name != "7" {
		t.Errorf("a job needs no round: %v", err)
	}
}

// An order names the user of the process and, beside it, the variable that anyone can set.
func TestBy(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for sudo, want := range map[string]string{"": me.Username, "mallory": me.Username + ` (SUDO_USER "mallory")`, "a\nb": me.Username + ` (SUDO_USER "a\nb")`} {
		if got := operate.Author(sudo); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The effect of an override is said for the job as it is: waiting or running, alone or an array's tasks.
func TestEffect(t *testing.T) {
	for _, c := range []struct {
		kind             cluster.OverrideKind
		scope            string
		waiting, running int
		want             []string
	}{
		{cluster.Exempt, "job", 1, 0, []string{"job 14 waits: an exemption does not start it sooner; `fairlease boost 14` does, and both may be in force together"}},
		{cluster.Exempt, "job", 0, 1, []string{"job 14 runs: it is not requeued while the override is in force"}},
		{cluster.Boost, "job", 3, 1, []string{"3 tasks of array 14 wait: it goes before the other jobs of its tenant; the tenant's turn does not come sooner",
			"1 task of array 14 runs: its lease is renewed before those of its tenant's other jobs"}},
		{cluster.Freeze, "job", 0, 2, []string{"2 tasks of array 14 run: it is requeued when its lease ends, after its notice"}},
		{cluster.Freeze, "tenant", 0, 0, []string{"waiting jobs get no lease; jobs that run are requeued when their leases end"}},
	} {
		if got := operate.OverrideEffect(c.kind, c.scope, "14", c.waiting, c.running); !slices.Equal(got, c.want) {
			t.Errorf("%s %s: %q", c.kind, c.scope, got)
		}
	}
	for _, kind := range []cluster.OverrideKind{cluster.Exempt, cluster.Boost, cluster.Freeze} {
		for _, scope := range []string{"user", "tenant"} {
			if got := operate.OverrideEffect(kind, scope, "x", 0, 0); len(got) != 1 || got[0] == "" {
				t.Errorf("%s %s: %q", kind, scope, got)
			}
		}
	}
}

// An override is found by its number, or by the job, user or tenant that it is for.
func TestFind(t *testing.T) {
	inForce := []operate.Override{{1, "exempt", "job", "14"}, {2, "boost", "job", "9"}, {3, "freeze", "user", "ann"}, {4, "boost", "tenant", "ann"}, {5, "freeze", "job", "2"}, {6, "boost", "job", "7_3"}, {7, "exempt", "job", "9"}}
	for word, want := range map[string]int64{"14": 1, "job:14": 1, "id:1": 1, "1": 1, "3": 3, "user:ann": 3, "tenant:ann": 4, "id:2": 2, "job:2": 5, "7_3": 6, "job:7_3": 6, "7": 7} {
		if got, err := operate.FindOverride(word, inForce); err != nil || got.ID != want {
			t.Errorf("%s: %v, %v", word, got, err)
		}
	}
	for word, says := range map[string]string{
		"ann": "may be any of override 3 (freeze user ann), override 4 (boost tenant ann)", "2": "may be any of override 2 (boost job 9), override 5 (freeze job 2)",
		"9": "may be any of override 2 (boost job 9), override 7 (exempt job 9)", "99": "no override in force has the number 99", "14_0": "override 1 (exempt job 14) is for the whole array", "gang:x": "names no override", "job:": "names no override", "id:14": "no override in force",
	} {
		if got, err := operate.FindOverride(word, inForce); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, %v, want %q", word, got, err, says)
		}
	}
}
