package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/spending"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

var rewrite = flag.Bool("rewrite", false, "rewrite golden files")

// TestMain lets this test program be the daemon's own program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "beside" || os.Args[1] == "tune") {
		main()
	}
	os.Exit(m.Run())
}

// testdata is the folder of golden files, independent of the working directory.
var testdata, _ = filepath.Abs("testdata")

// result is the output of a run of the program.
type result struct {
	code     int
	out, err string
}

// run runs the whole program at the given moment; the zero time is now.
func run(t *testing.T, at time.Time, env []string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	p := &program{out: &out, err: &errs, env: append([]string{"TZ=UTC"}, env...), clock: time.Now}
	if !at.IsZero() {
		p.clock = func() time.Time { return at }
	}
	code := p.run(t.Context(), args, strings.NewReader(""))
	return result{code, out.String(), errs.String()}
}

// golden compares text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join(testdata, name+".txt")
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (make it with go test -rewrite)", err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s changed (run with -rewrite if that is meant):\n%s", path, d)
	}
}

// story is a journal in PostgreSQL with a few minutes of a small cluster, and the moment at which
// it ends.
type story struct {
	env   []string
	store *store.Store
	world *simtest.World
	end   time.Time
}

func tell(t *testing.T) *story {
	t.Helper()
	return tellOn(t, storetest.Database(t))
}

// tellOn commits the story to the journal at dsn.
func tellOn(t *testing.T, dsn string) *story {
	t.Helper()
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	lead, err := s.Acquire(ctx, "login1.example.org:4711")
	if err != nil {
		t.Fatal(err)
	}
	settings := simtest.Product()
	settings.JobOrder = cluster.ByRho // jobs of a tenant take turns, so that there is something to read
	settings.Term, settings.MinLease, settings.Notice = 5*cluster.Minute, cluster.Minute, 30*cluster.Second
	w := simtest.New(t, settings, simtest.Nodes("v", "v100", 2, 4), "nlp", "vision")
	w.Loop.Journal = lead.Journal()
	w.Submit("nlp", 2, 4, 3*cluster.Hour)
	w.Run(90 * cluster.Second)
	w.Submit("vision", 2, 2, 3*cluster.Hour)
	w.Submit("vision", 1, 8, cluster.Hour) // fits nowhere on one node
	w.SubmitArray(sim.Work{Name: "sweep", User: "alice", Account: "nlp", QOS: "normal", Partition: "gpu",
		Request: simtest.Gang(1), Runs: 2 * cluster.Minute, Limit: 10 * cluster.Minute}, 3)
	w.Virtual.Submit(sim.Work{Name: "later", User: "alice", Account: "nlp", Partition: "gpu", Request: simtest.Gang(1),
		Begin: w.Now().Add(cluster.Day), Runs: cluster.Minute})
	w.Run(8 * cluster.Minute)
	if err := lead.Spend(ctx, budgets(w.Now())); err != nil {
		t.Fatal(err)
	}
	return &story{env: []string{"FAIRLEASE_DATABASE_URL=" + dsn, "FAIRLEASE_CONFIG=" + empty(t)}, store: s, world: w, end: w.Now().Time().Add(3 * time.Second)}
}

// budgets are those of both tenants in the story: one is hardly used, the other used up.
func budgets(now cluster.Instant) (book spending.Book) {
	for tenant, hours := range map[string]float64{"nlp": 5000, "vision": 0.25} {
		a := spending.Account{Budget: spending.Budget{Tenant: tenant, Hours: hours, Prices: map[string]float64{"v100": 2}, Per: spending.Month, Zone: time.UTC, AtEnd: spending.IdleOnly}}
		a.Start, a.End = a.Period(now)
		a.Count([]spending.Standing{{Model: "v100", Received: cluster.Times(1, 20*cluster.Minute)}}, now, now)
		book = append(book, a)
	}
	return book
}

// stamps matches output that depends on the database's clock or on the process.
var stamps = regexp.MustCompile(`since \S+ \S+ \([^)]*\)|seen \d+ s ago|\(schema.*\)|"(acquired|renewed|takeover|as_of)": "[^"]*"|"silent": \d+`)

func (s *story) run(t *testing.T, args ...string) result {
	t.Helper()
	return run(t, s.end, s.env, args...)
}

// The output of commands about a cluster.
func TestWhatPeopleRead(t *testing.T) {
	s := tell(t)
	for _, c := range []struct {
		name string
		args []string
		code int
	}{
		{"status", []string{"status"}, 0},
		{"status-parsable", []string{"status", "-P"}, 0},
		{"tenants", []string{"tenants"}, 0},
		{"tenants-parsable", []string{"tenants", "-P"}, 0},
		{"tenants-bare", []string{"tenants", "-n"}, 0},
		{"tenants-json", []string{"tenants", "--json"}, 0},
		{"objectives", []string{"objectives"}, 0},
		{"budgets", []string{"budgets"}, 0},
		{"budgets-json", []string{"budgets", "--json"}, 0},
		{"leases", []string{"leases"}, 0},
		{"leases-all", []string{"leases", "--all"}, 0},
		{"explain-running", []string{"explain", "3"}, 0},
		{"explain-waiting", []string{"explain", "2"}, 0},
		{"explain-too-big", []string{"explain", "5"}, 0},
		{"explain-task", []string{"explain", "6_1"}, 0},
		{"explain-later", []string{"explain", "7"}, 0},
		{"explain-json", []string{"explain", "5", "--json"}, 0},
		{"replay", []string{"replay", "7"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.run(t, c.args...)
			if r.code != c.code || r.err != "" {
				t.Errorf("exit code %d, want %d\n%s", r.code, c.code, r.err)
			}
			golden(t, c.name, stamps.ReplaceAllString(r.out, "STAMP"))
		})
	}
}

// The decisions of a round: shortly before and at the end of a term, and in observe mode.
func TestDecisions(t *testing.T) {
	for _, mode := range []loop.Mode{loop.Act, loop.Observe} {
		w := simtest.New(t, simtest.Product(), simtest.Nodes("v", "v100", 2, 4), "nlp", "vision")
		w.Rules.Mode = mode
		w.Submit("nlp", 2, 4, 3*cluster.Hour)
		w.Run(cluster.Minute)
		w.Submit("vision", 3, 2, cluster.Hour)
		w.Run(14*cluster.Minute - 10*cluster.Second)
		for _, when := range []string{"notice", "end"} {
			snap, plan, err := w.Loop.Preview(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			(&view.Decisions{Snapshot: &snap, Plan: &plan}).Write(&view.Page{Out: &out})
			golden(t, fmt.Sprintf("decisions-%s-%s", mode, when), out.String())
			w.Advance(w.Now().Add(10 * cluster.Second))
		}
	}
}

// Programs can parse each list: JSON is valid, and rows have as many columns as the header.
func TestParsable(t *testing.T) {
	s := tell(t)
	for _, args := range [][]string{{"tenants"}, {"budgets"}, {"leases"}, {"leases", "-a"}, {"override", "list"}, {"status"}, {"config", "show"}} {
		r := s.run(t, append(args, "-P")...)
		lines := strings.Split(strings.TrimSpace(r.out), "\n")
		for _, l := range lines {
			if strings.Count(l, "|") != strings.Count(lines[0], "|") {
				t.Errorf("%v: %q does not have the columns of %q", args, l, lines[0])
			}
		}
		if strings.Contains(r.out, "\x1b") {
			t.Errorf("%v: colours for a program", args)
		}
		bare := s.run(t, append(args, "-P", "-n")...)
		if strings.HasPrefix(bare.out, lines[0]) {
			t.Errorf("%v -n has a header", args)
		}
		if r := s.run(t, append(args, "-P", "--json")...); r.code != failure.Misuse {
			t.Errorf("%v: two forms at once: exit code %d", args, r.code)
		}
	}
}
