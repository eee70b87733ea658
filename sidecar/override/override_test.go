package override_test

import (
	"errors"
	"os/user"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/override"
)

// A word names a job, a user or a tenant; an ambiguous one must say which.
func TestTarget(t *testing.T) {
	newest := cluster.Snapshot{Tenants: []cluster.Tenant{{Name: "nlp"}, {Name: "ann"}}, Cases: []cluster.Case{{Record: cluster.Record{User: "ann"}}, {Record: cluster.Record{User: "bob"}}}}
	for _, c := range []struct{ word, scope, name string }{
		{"4711", "job", "4711"}, {"123_4", "job", "123_4"}, {"nlp", "tenant", "nlp"}, {"bob", "user", "bob"}, {"ann", "", ""}, {"stranger", "", ""},
		{"user:ann", "user", "ann"}, {"tenant:stranger", "tenant", "stranger"}, {"gang:x", "", ""}, {"user:", "", ""},
	} {
		scope, name, err := override.Target(c.word, func() (cluster.Snapshot, error) { return newest, nil })
		if scope != c.scope || name != c.name || (err == nil) != (c.scope != "") {
			t.Errorf("%s: %s %s, %v", c.word, scope, name, err)
		}
	}
	away := errors.New("away")
	last := func() (cluster.Snapshot, error) { return newest, away }
	if _, _, err := override.Target("nlp", last); !errors.Is(err, away) {
		t.Error(err)
	}
	if _, name, err := override.Target("7", last); err != nil || name != "7" {
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
		if got := override.By(sudo); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
