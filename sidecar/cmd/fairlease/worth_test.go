package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/sim/worth"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// Of two equal tenants, nlp fills the four GPUs with three jobs of two hours; then vision submits one of an hour. Leases let vision begin
// within a term. Plain Slurm lets it wait for the first job to end: it is due two GPUs for nearly two hours, and gets none.
func TestWorth(t *testing.T) {
	dsn, lead := leading(t)
	w := simtest.New(t, simtest.Product(), simtest.Nodes("v", "v100", 1, 4), "nlp", "vision")
	w.Loop.Journal = lead.Journal()
	w.Submit("nlp", 3, 4, 2*cluster.Hour)
	w.Run(10 * cluster.Second)
	w.Virtual.Submit(sim.Work{Name: "train", User: "vision_user", Account: "vision", Partition: "gpu", Request: simtest.Gang(4), Runs: cluster.Hour, Saves: sim.AtEnd})
	w.Run(9 * cluster.Hour)
	end := w.Now().Time()
	until := simtest.Start.Add(8 * cluster.Hour).Time().Format(time.RFC3339)
	env := []string{"FAIRLEASE_DATABASE_URL=" + dsn, "FAIRLEASE_CONFIG=" + empty(t)}
	do := func(args ...string) result { return run(t, end, env, append([]string{"worth"}, args...)...) }

	r := do("--since", "2027-01-15", "--until", until, "--replays", "4")
	if r.code != failure.OK {
		t.Fatalf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	golden(t, "worth", r.out+r.err)

	var got worth.Worth
	all := func() {
		t.Helper()
		r = do("--since", "2027-01-15", "--until", until, "--replays", "4", "--json")
		if err := json.Unmarshal([]byte(r.out), &got); err != nil || r.code != failure.OK {
			t.Fatalf("%v: exit code %d\n%s%s", err, r.code, r.out, r.err)
		}
		if m := got.Measures[0]; m.Name != "below_share" || m.With >= m.Slurm.Mean || m.Gained.Low <= 0 || m.Slurm.Mean < 3.5 || m.Slurm.Mean > 6 {
			t.Errorf("%+v", m)
		}
		if len(got.Tenants) != 2 || got.Tenants[1].Gained.Mean < 3 || got.Jobs != 4 || got.Drawn != 0 || got.Money != nil {
			t.Errorf("%+v", got)
		}
	}
	all()
	before := got
	// All of this holds where the rounds are pruned but for the newest.
	if _, err := storetest.Connect(t, dsn).Exec(t.Context(), "delete from fairlease.round_blobs where keyframe < (select max(keyframe) from fairlease.round_blobs)"); err != nil {
		t.Fatal(err)
	}
	all()
	if before.Measures[0] != got.Measures[0] {
		t.Errorf("%+v with rounds, %+v without", before.Measures[0], got.Measures[0])
	}

	for _, x := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--replays", "1"}, failure.Misuse, "a range needs two"},
		{[]string{"--since", "soon"}, failure.Misuse, "--since: "},
		{nil, failure.No, "fewer than two rounds"}, // last month
		{[]string{"--since", "2027-01-15", "--until", simtest.Start.Add(cluster.Second).Time().Format(time.RFC3339)}, failure.No, "fewer than two rounds"},
	} {
		if r := do(x.args...); r.code != x.code || !strings.Contains(r.err, x.want) {
			t.Errorf("%v: exit code %d, %s", x.args, r.code, r.err)
		}
	}
	if r := watched(t).run(t, "worth", "--since", "2027-01-15"); r.code != failure.No || !strings.Contains(r.err, "did not act") {
		t.Errorf("in mode observe: exit code %d, %s", r.code, r.err)
	}
}

// Under presets that divide GPU models, and with virtual clusters, tenants are due something else than GPU hours by weight.
func TestWorthBeyondReplays(t *testing.T) {
	for want, snap := range map[string]cluster.Snapshot{
		"":                 {Settings: cluster.Settings{Preset: "astraea"}},
		"virtual clusters": {Cells: &cluster.Cells{}},
		"gavel:las":        {Settings: cluster.Settings{Preset: "gavel:las", Divide: "gavel:las"}},
	} {
		if got := beyondReplays(&snap); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Money is by the prices of a tenant's budget, else by those of models.
func TestWorthInMoney(t *testing.T) {
	s, with := acted(t)
	env := with("mode: act\nmodels: {prices: {v100: 2}}\nbudgets: {nlp: {gpu_hours: 10, model_prices: {v100: 3}}}\n")
	r := run(t, s.end, env, "worth", "--since", "20h", "--replays", "3", "--json")
	var got worth.Worth
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || len(got.Tenants) != 2 || got.Money == nil {
		t.Fatalf("%v: %s%s", err, r.out, r.err)
	}
	nlp, vision := got.Tenants[0], got.Tenants[1]
	if *nlp.Price != 3 || *vision.Price != 2 {
		t.Errorf("a GPU hour costs nlp %v, vision %v", *nlp.Price, *vision.Price)
	}
	if want := 3*nlp.Gained.Mean + 2*vision.Gained.Mean; got.Money.Mean < want-0.01 || got.Money.Mean > want+0.01 {
		t.Errorf("%v, want %v", got.Money.Mean, want)
	}
	if got.Leases.Renewed+got.Leases.Reclaimed == 0 {
		t.Errorf("%+v", got)
	}
}

// The default is last month, in UTC; with --since alone, the time since then.
func TestPeriodOfWorth(t *testing.T) {
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	month := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	day := func(year int, month time.Month, day int) time.Time {
		return time.Date(year, month, day, 9, 30, 0, 0, time.UTC)
	}
	for _, x := range []struct{ since, until, from, to time.Time }{
		{from: month, to: month.AddDate(0, 1, 0)},
		{since: month, from: month, to: now},
		{until: month, from: month.AddDate(0, -1, 0), to: month},
		// the 31st, where the month before is shorter
		{until: day(2027, 3, 31), from: day(2027, 2, 28), to: day(2027, 3, 31)}, {until: day(2028, 3, 31), from: day(2028, 2, 29), to: day(2028, 3, 31)},
		{until: day(2027, 3, 29), from: day(2027, 2, 28), to: day(2027, 3, 29)}, {until: day(2027, 3, 28), from: day(2027, 2, 28), to: day(2027, 3, 28)},
		{until: day(2027, 7, 31), from: day(2027, 6, 30), to: day(2027, 7, 31)}, {until: day(2027, 1, 31), from: day(2026, 12, 31), to: day(2027, 1, 31)},
		{since: month, until: now.AddDate(0, 0, -1), from: month, to: now.AddDate(0, 0, -1)},
	} {
		if from, to := period(x.since, x.until, now); !from.Equal(x.from) || !to.Equal(x.to) {
			t.Errorf("%v to %v: %v to %v", x.since, x.until, from, to)
		}
	}
}
