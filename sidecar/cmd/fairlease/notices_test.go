package main

import (
	"encoding/json"
	"os/user"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// Users choose for themselves, operators and the daemon's user for all; readers choose nothing.
func TestWhoChoosesNotices(t *testing.T) {
	s := tell(t)
	roles := users(t, s)
	db := storetest.Connect(t, strings.TrimPrefix(s.env[0], "FAIRLEASE_DATABASE_URL="))
	if _, err := db.Exec(t.Context(), `insert into notices (kind, job_key, event, user_name, channel, facts, created_at, due_at, sent_at, dead_at, error)
		values ('stop', 1, '1', 'alice', 'mail', '{"job": "4711"}', '2030-01-31 12:00Z', now(), '2030-01-31 12:01Z', null, ''), ('idle', 1, '2', 'alice', 'webhook', '{"job": "4711"}', now(), now(), null, now(), E'550\nno such mailbox'),
		('stop', 2, '1', 'bob', 'mail', '{"job": "5"}', now(), now(), null, null, '')`); err != nil {
		t.Fatal(err)
	}
	for role, may := range map[string][2]bool{"reader": {}, "tenant": {true, false}, "operator": {true, true}, "daemon": {true, true}} {
		for i, name := range []string{"alice", "bob"} {
			r := run(t, time.Time{}, roles[role], "notices", "choose", "--user", name, "--kinds", "stop,slip", "--quiet", "22:00-07:00")
			if (r.code == 0) != may[i] || r.code != 0 && (r.code != failure.No || !strings.Contains(r.err, "the choice was not written down")) {
				t.Errorf("%s chooses for %s: exit code %d\n%s%s", role, name, r.code, r.out, r.err)
			}
		}
	}
	var got struct {
		Choice  store.NoticeChoice
		Notices []store.Notice
	}
	r := run(t, time.Time{}, roles["tenant"], "notices", "--user", "alice", "--json")
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || len(got.Notices) != 2 || len(got.Choice.Kinds) != 2 || got.Choice.Quiet == nil || *got.Choice.Quiet != "22:00-07:00" || got.Notices[1].Facts.ID != "4711" {
		t.Errorf("%v: %s%s", err, r.out, r.err)
	}
	if r := run(t, time.Time{}, roles["tenant"], "notices", "--user", "bob"); r.code != 0 || strings.Contains(r.out, "stop") {
		t.Errorf("a tenant sees notices of others: %s%s", r.out, r.err)
	}
	r = run(t, time.Time{}, s.env, "notices", "--user", "alice")
	for _, want := range []string{"alice gets notices of: nothing; quiet hours: 22:00-07:00", "4711", "given up", "550 no such mailbox"} {
		if r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("%q is missing: %s%s", want, r.out, r.err)
		}
	}
}

// A flag that is not given leaves its choice; the user is the one that runs the command.
func TestChoiceOfNotices(t *testing.T) {
	s := tell(t)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	choice := func() store.NoticeChoice {
		t.Helper()
		c, err := s.store.Notices.Choice(t.Context(), me.Username)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, x := range []struct {
		args, kinds, quiet string
		code               int
	}{
		{"--kinds stop,idle", "stop,idle", "site", 0},
		{"--quiet 12:00-13:00", "stop,idle", "12:00-13:00", 0},
		{"--kinds none", "", "12:00-13:00", 0},
		{"--kinds spam", "", "12:00-13:00", failure.Misuse},
		{"--quiet noon", "", "12:00-13:00", failure.Misuse},
		{"--kinds all --quiet none", "all", "", 0},
		{"--quiet site", "all", "site", 0},
	} {
		r := run(t, time.Time{}, s.env, append([]string{"notices", "choose"}, strings.Fields(x.args)...)...)
		c := choice()
		kinds, quiet := strings.Join(c.Kinds, ","), "site"
		if c.Kinds == nil {
			kinds = "all"
		}
		if c.Quiet != nil {
			quiet = *c.Quiet
		}
		if r.code != x.code || kinds != x.kinds || quiet != x.quiet {
			t.Errorf("%s: exit code %d, kinds %q, quiet %q\n%s%s", x.args, r.code, kinds, quiet, r.out, r.err)
		}
	}
	if r := run(t, time.Time{}, s.env, "notices", "-P"); r.code != 0 || !strings.HasPrefix(r.out, "CAUSED|KIND") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
}
