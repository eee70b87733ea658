package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/backtest"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// watched is a journal of six hours in observe mode: nlp fills the cluster, vision comes later
// and waits, one user works interactively, a node fails for a while.
func watched(t *testing.T) *story {
	t.Helper()
	dsn, lead := leading(t)
	w := simtest.New(t, simtest.Product(), simtest.Nodes("v", "v100", 3, 4), "nlp", "vision")
	w.Rules.Mode = loop.Observe
	w.Loop.Journal = lead.Journal()
	w.Submit("nlp", 6, 4, 2*cluster.Hour)
	w.Run(10 * cluster.Minute)
	for range 4 { // they never save
		w.Virtual.Submit(sim.Work{Name: "train", User: "vision_user", Account: "vision", Partition: "gpu", Request: simtest.Gang(2),
			Runs: 40 * cluster.Minute, Saves: sim.Never})
	}
	gone := w.Submit("vision", 1, 4, cluster.Hour)[0]
	w.Virtual.Submit(sim.Work{Name: "shell", User: "ann", Account: "vision", Partition: "gpu", Request: simtest.Gang(1), Runs: cluster.Hour, Interactive: true})
	w.Run(2*cluster.Hour + 10*cluster.Minute)
	w.Cancel(gone)
	w.Run(2 * cluster.Hour)
	w.SetNode("v03", "down")
	w.Submit("vision", 5, 4, 3*cluster.Hour)
	w.Run(40 * cluster.Minute)
	w.SetNode("v03", "")
	w.Run(cluster.Hour)
	return &story{env: []string{"FAIRLEASE_DATABASE_URL=" + dsn, "FAIRLEASE_CONFIG=" + empty(t)}, world: w, end: w.Now().Time()}
}

func TestShadow(t *testing.T) {
	s := watched(t)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"shadow", nil},
		{"shadow-window", []string{"--since", "5h", "--until", "2027-01-15T12:00", "--term", "30m", "--interval", "1m", "--cost-start", "5m"}},
		{"shadow-csv", []string{"--csv"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.run(t, append([]string{"shadow"}, c.args...)...)
			if r.code != failure.OK {
				t.Fatalf("exit code %d\n%s", r.code, r.err)
			}
			golden(t, c.name, r.out+r.err)
		})
	}
	page := filepath.Join(t.TempDir(), "shadow.html")
	r := s.run(t, "shadow", "--json", "--html", page)
	var scores []score.Scores
	if err := json.Unmarshal([]byte(r.out), &scores); err != nil || len(scores) != 2 || scores[0].Scheduler != backtest.Was || scores[1].Scheduler != backtest.Would {
		t.Errorf("%v\n%s%s", err, r.out, r.err)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "what would have been") || !strings.Contains(string(text), "</html>") {
		t.Errorf("the page: %v, %d bytes", err, len(text))
	}
}

// Where fairlease has acted, the past is not Slurm's own schedule, and is not called so.
func TestShadowOfActing(t *testing.T) {
	s := tell(t)
	r := s.run(t, "shadow")
	if r.code != failure.OK || !strings.Contains(r.out, "fairlease acted in ") || !strings.Contains(r.out, backtest.Acted) || strings.Contains(r.out, backtest.Was) {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestShadowComplaints(t *testing.T) {
	s := tell(t)
	fresh := []string{"FAIRLEASE_DATABASE_URL=" + storetest.Database(t), "FAIRLEASE_CONFIG=" + empty(t)}
	pruned := func() {
		_, err := storetest.Connect(t, strings.TrimPrefix(s.env[0], "FAIRLEASE_DATABASE_URL=")).Exec(t.Context(),
			"delete from fairlease.round_blobs where round < (select max(round) from fairlease.round_blobs)")
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		env    []string
		before func()
		args   []string
		code   int
		err    string // pattern
	}{
		{"no database", []string{"FAIRLEASE_CONFIG=" + empty(t)}, nil, nil, failure.Misuse, `^fairlease: no database is configured`},
		{"no round", fresh, nil, nil, failure.No, `^fairlease: the journal has no round yet, .*\nnext: run the daemon in mode observe`},
		{"since", s.env, nil, []string{"--since", "x"}, failure.Misuse, `^fairlease: --since: "x" is no time: write 2h`},
		{"until", s.env, nil, []string{"--until", "-2h"}, failure.Misuse, `^fairlease: --until: "-2h" is no time`},
		{"empty", s.env, nil, []string{"--since", "1s"}, failure.No, `^fairlease: the window has fewer than two rounds\n  the journal covers 2027-01-15 08:00:00 to 2027-.*\nnext: choose --since`},
		{"term", s.env, nil, []string{"--term", "1s"}, failure.Misuse, `a term is no shorter`},
		{"no term", s.env, nil, []string{"--term", "x"}, failure.Misuse, `^fairlease: --term: `},
		{"interval", s.env, nil, []string{"--interval", "soon"}, failure.Misuse, `^fairlease: --interval: "soon" is no length of time`},
		{"long interval", s.env, nil, []string{"--interval", "1h"}, failure.Misuse, `a term is no shorter`},
		{"csv and json", s.env, nil, []string{"--csv", "--json"}, failure.Misuse, `exclude each other`},
		{"argument", s.env, nil, []string{"x"}, failure.Misuse, `takes no argument`},
		{"pruned", s.env, pruned, []string{"--since", "9m"}, failure.No, `^fairlease: the journal does not go back that far\n  snapshots of rounds before 2027-.* are pruned\nnext: leave --since out`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.before != nil {
				c.before()
			}
			r := run(t, s.end, c.env, append([]string{"shadow"}, c.args...)...)
			if r.code != c.code || !regexp.MustCompile(c.err).MatchString(r.err) {
				t.Errorf("exit code %d, want %d\n%s\nwant %s", r.code, c.code, r.err, c.err)
			}
		})
	}
}

// A journal of a cluster on which nothing happened.
func TestShadowOfNothing(t *testing.T) {
	dsn, lead := leading(t)
	w := simtest.New(t, simtest.Product(), simtest.Nodes("v", "v100", 1, 4), "nlp")
	w.Loop.Journal = lead.Journal()
	w.Run(cluster.Minute)
	w.SetNode("v01", "down")
	w.Run(cluster.Minute)
	r := run(t, time.Time{}, []string{"FAIRLEASE_DATABASE_URL=" + dsn, "FAIRLEASE_CONFIG=" + empty(t)}, "shadow")
	if r.code != failure.No || !strings.HasPrefix(r.err, "fairlease: no job with GPUs ran or waited in that window\n") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

// leading gives the address of a database with fairlease's schema, and the lead to commit rounds.
func leading(t *testing.T) (string, *store.Leadership) {
	t.Helper()
	dsn := storetest.Database(t)
	s, err := store.Open(t.Context(), store.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	lead, err := s.Acquire(t.Context(), "login1.example.org:4711")
	if err != nil {
		t.Fatal(err)
	}
	return dsn, lead
}
