package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// users gives the story to users of each role, which the program made, and the environment of
// each. The tenant's user is alice of nlp.
func users(t *testing.T, s *story) map[string][]string {
	t.Helper()
	dsn, config := strings.TrimPrefix(s.env[0], "FAIRLEASE_DATABASE_URL="), s.env[1]
	for range 2 {
		if r := run(t, time.Time{}, s.env, "migrate", "--roles"); r.code != 0 || !strings.Contains(r.out, "fairlease_tenant") {
			t.Fatalf("exit code %d\n%s%s", r.code, r.out, r.err)
		}
	}
	db := storetest.Connect(t, dsn)
	out := map[string][]string{}
	for _, role := range []string{"reader", "tenant", "operator", "daemon"} {
		name := storetest.Role(t, db, role, "fairlease_"+role)
		out[role] = []string{"FAIRLEASE_DATABASE_URL=" + storetest.As(dsn, name), config}
		if role == "tenant" {
			if _, err := db.Exec(t.Context(), "insert into database_users values ($1, 'alice')", name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := db.Exec(t.Context(), "insert into members values ('nlp', 'alice'), ('vision', 'bob')"); err != nil {
		t.Fatal(err)
	}
	return out
}

// Users of each role read the same as with the daemon's credentials; a tenant's user reads only
// its own jobs.
func TestWhatRolesRead(t *testing.T) {
	s := tell(t)
	users := users(t, s)
	for _, args := range [][]string{{"status"}, {"top"}, {"tenants"}, {"tenants", "--debts"}, {"leases", "-a"}, {"explain", "3"}, {"explain", "2"}, {"explain", "5", "--json"}, {"override", "list"}, {"replay", "7"}, {"habits"}} {
		want := run(t, s.end, s.env, args...)
		for _, role := range []string{"reader", "operator", "daemon"} {
			got := run(t, s.end, users[role], args...)
			if got.code != want.code || stamps.ReplaceAllString(got.out, "") != stamps.ReplaceAllString(want.out, "") {
				t.Errorf("%s: %v: exit code %d\n%s%s\nwant %d\n%s", role, args, got.code, got.out, got.err, want.code, want.out)
			}
		}
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		not  string
	}{
		{"tenant-status", []string{"status"}, 0, "vision"},
		{"tenant-top", []string{"top"}, 0, "vision"},
		{"tenant-tenants", []string{"tenants"}, 0, "vision"},
		{"tenant-leases", []string{"leases", "-a"}, 0, "vision"},
		{"tenant-explain-running", []string{"explain", "1"}, 0, "vision"},
		{"tenant-explain-waiting", []string{"explain", "2"}, 0, "vision"},
	} {
		r := run(t, s.end, users["tenant"], c.args...)
		if r.code != c.code || strings.Contains(r.out, c.not) {
			t.Errorf("%v: exit code %d\n%s%s", c.args, r.code, r.out, r.err)
		}
		golden(t, c.name, stamps.ReplaceAllString(r.out, "STAMP"))
	}
	for _, c := range []struct{ args, want string }{
		{"explain 3", "job 3 is not in the journal"}, // vision's
		{"tenants --debts", "permission denied for view debts"},
		{"replay 7", "permission denied"},
	} {
		if r := run(t, s.end, users["tenant"], strings.Fields(c.args)...); r.code != failure.No || !strings.Contains(r.err, c.want) || strings.Contains(c.want, "permission") != strings.Contains(r.err, "see ROLES") {
			t.Errorf("%s: exit code %d\n%s%s", c.args, r.code, r.out, r.err)
		}
	}
	var x view.Explanation
	if r := run(t, s.end, users["tenant"], "explain", "2", "--json"); json.Unmarshal([]byte(r.out), &x) != nil || x.Waiting == nil || x.Waiting.Reason == "" || len(x.Standing) != 1 {
		t.Errorf("explain --json: %s%s", r.out, r.err)
	}
}

// Only operators and owners can give orders.
func TestWhoMayOrder(t *testing.T) {
	s := tell(t)
	for role, env := range users(t, s) {
		given := run(t, time.Time{}, env, "boost", "job:1", "--until", "2h", "--reason", "r")
		if role != "operator" {
			if given.code != failure.No || !strings.Contains(given.err, "permission denied for table overrides") {
				t.Errorf("%s gives an order: exit code %d\n%s%s", role, given.code, given.out, given.err)
			}
			continue
		}
		if given.code != 0 {
			t.Errorf("%s gives an order: exit code %d\n%s", role, given.code, given.err)
		}
		if r := run(t, time.Time{}, env, "override", "end", "1"); r.code != 0 {
			t.Errorf("%s ends it: exit code %d\n%s", role, r.code, r.err)
		}
	}
}

// The rights of the daemon's role suffice for rounds, the lead, repairs and pruning.
func TestTheDaemonsRightsSuffice(t *testing.T) {
	dsn := storetest.Database(t)
	if err := migrate.Roles(t.Context(), dsn, migrate.Schema, func(string) {}); err != nil {
		t.Fatal(err)
	}
	db := storetest.Connect(t, dsn)
	s := tellOn(t, storetest.As(dsn, storetest.Role(t, db, "daemon", "fairlease_daemon")))
	if r := s.run(t, "tenants", "-P", "-n"); r.code != 0 || strings.Count(r.out, "\n") != 2 {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if _, _, err := s.store.Prune(t.Context(), store.Keep{Blobs: time.Nanosecond, History: time.Nanosecond}); err != nil {
		t.Error(err)
	}
	if err := s.store.Claim(t.Context(), cluster.Identity{Name: "test", ID: 1}); err != nil {
		t.Error(err)
	}
	if _, err := s.store.Overrides.Add(t.Context(), cluster.Override{Kind: cluster.Boost, Scope: "job", Name: "1", Until: cluster.InstantOf(time.Now().Add(time.Hour)), Reason: "r", By: "me"}); err == nil {
		t.Error("the daemon gives orders")
	}
}
