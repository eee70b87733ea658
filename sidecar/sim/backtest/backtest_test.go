package backtest

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// observed is a virtual cluster that starts jobs by itself, first come, first served, while a
// daemon in observe mode keeps a journal.
func observed(t *testing.T, nodes []cluster.Node, tenants ...string) (*simtest.World, *store.Store) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{DSN: storetest.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	lead, err := s.Acquire(t.Context(), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	w := simtest.New(t, simtest.Product(), nodes, tenants...)
	w.Rules.Mode = loop.Observe
	w.Loop.Journal = lead.Journal()
	return w, s
}

// look makes a round now, as the daemon does at every multiple of the interval.
func look(t *testing.T, w *simtest.World) {
	t.Helper()
	if _, err := w.Loop.Turn(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// scores gives the scores of both worlds for the whole journal.
func scores(t *testing.T, s *store.Store) (sh Window, was, wouldBe score.Scores) {
	t.Helper()
	past, err := s.Rounds.Past(t.Context(), cluster.Instant(0).Time(), simtest.Start.Add(cluster.Day).Time())
	if err != nil {
		t.Fatal(err)
	}
	sh = Of(&past, "test")
	if was, err = sh.Score(); err != nil {
		t.Fatal(err)
	}
	return sh, was, would(t, &sh)
}

// would runs the backtest.
func would(t *testing.T, sh *Window) score.Scores {
	t.Helper()
	r, err := experiment.All(t.Context(), sh.Setups(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Join(r[0].Scores, r[1].Scores)
}

func tenant(t *testing.T, s score.Scores, name string) score.Tenant {
	t.Helper()
	for _, x := range s.Tenants {
		if x.Tenant == name {
			return x
		}
	}
	t.Fatalf("%s has no tenant %s", s.Scheduler, name)
	return score.Tenant{}
}

func near(t *testing.T, what string, got, want, slack float64) {
	t.Helper()
	if math.Abs(got-want) > slack {
		t.Errorf("%s: %.4f, want %.4f", what, got, want)
	}
}

// Four GPUs, two tenants of equal weight. early submits three jobs that want all GPUs for two
// hours each; a moment later, late submits one for an hour. First come, first served lets late
// wait for six hours. In that time and its own hour it is due two GPUs: it has received 4
// GPU-hours of 14. Under fairlease the two alternate by terms: late needs a bit more than four
// terms for its hour and the costs, so it ends within ten terms; by then it is due at most 5
// GPU-hours, and has received at least 4.
func TestFirstComeFirstServedStarvesATenant(t *testing.T) {
	seeds.Slow(t)
	w, s := observed(t, simtest.Nodes("v", "v100", 1, 4), "early", "late")
	w.Submit("early", 3, 4, 2*cluster.Hour)
	w.Run(10 * cluster.Second)
	w.Submit("late", 1, 4, cluster.Hour)
	w.Run(8 * cluster.Hour)
	look(t, w)
	sh, was, be := scores(t, s)
	if sh.Jobs != (Jobs{Compared: 4, There: 3}) || was.Scheduler != Was {
		t.Errorf("%+v, %s", sh.Jobs, was.Scheduler)
	}
	const gpuH = 0.02 // a few rounds of ten seconds
	near(t, "late received", tenant(t, was, "late").Alloc, 4, gpuH)
	near(t, "late was due", tenant(t, was, "late").Due, 14, 2*gpuH)
	near(t, "rho of late as it was", tenant(t, was, "late").Rho, 4./14, 0.002)
	near(t, "wait of late as it was, s", tenant(t, was, "late").Wait.Mean, 6*3600, 60)
	near(t, "completion as it was, s", was.Completion.Mean, (2+4+6+7)/4.*3600, 60)
	near(t, "utilisation as it was", was.Utilisation, 7./8, 0.002)
	if was.Fragmented >= 0 || was.Overhead.OfRun != 0 || was.Preemptions != 0 {
		t.Errorf("fragmented %f, overhead %f, %d preemptions", was.Fragmented, was.Overhead.OfRun, was.Preemptions)
	}
	for _, x := range []score.Scores{was, be} {
		if x.Jobs.Finished != 4 {
			t.Errorf("%s: %+v", x.Scheduler, x.Jobs)
		}
	}
	if rho := tenant(t, be, "late").Rho; rho < 4./5 {
		t.Errorf("rho of late would have been %.3f, want 0.8 at least", rho)
	}
	if end := tenant(t, be, "late").Completion.Max; end < 3600 || end > 2.5*3600 {
		t.Errorf("late would have been done after %.0f s", end)
	}
	if rho := tenant(t, be, "early").Rho; rho < 1 {
		t.Errorf("rho of early would have been %.3f, want 1 at least", rho)
	}
}

// A window whose begin and end cut running jobs: both worlds have the part inside it.
func TestJobsAcrossTheEdges(t *testing.T) {
	w, s := observed(t, simtest.Nodes("v", "v100", 2, 4), "nlp", "vision")
	w.Submit("nlp", 1, 4, 3*cluster.Hour)     // until 3 h
	w.Submit("vision", 1, 4, 10*cluster.Hour) // over the end
	w.Submit("nlp", 1, 2, cluster.Hour)       // from 3 h to 4 h
	gone := w.Submit("vision", 1, 4, cluster.Hour)[0]
	w.Run(cluster.Hour)
	w.Cancel(gone)
	w.Run(cluster.Hour)
	look(t, w)
	w.Run(4 * cluster.Hour)
	w.Submit("vision", 1, 8, cluster.Hour) // can never run
	w.Submit("vision", 2, 4, cluster.Hour) // one runs, one waits, when the window ends
	w.Run(30 * cluster.Minute)
	look(t, w)
	from := simtest.Start.Add(2 * cluster.Hour)
	past, err := s.Rounds.Past(t.Context(), from.Time(), simtest.Start.Add(cluster.Day).Time())
	if err != nil {
		t.Fatal(err)
	}
	sh := Of(&past, "test")
	want := Jobs{Compared: 5, There: 3, Running: 2, Waiting: 1, NeverRan: 1}
	if sh.Jobs != want {
		t.Errorf("%+v, want %+v", sh.Jobs, want)
	}
	h := func(hours float64) cluster.Instant {
		return simtest.Start.Add(cluster.Span(hours * float64(cluster.Hour)))
	}
	type row struct {
		tenant             string
		submit, start, end cluster.Instant
		held               cluster.Span
	}
	var got []row
	round := func(at cluster.Instant) cluster.Instant { return (at + 30_000) / 60_000 * 60_000 } // to a minute
	for _, j := range sh.Was.Jobs {
		got = append(got, row{j.Tenant, round(j.Submit), round(j.Start), round(j.End), (j.Held + 30_000) / 60_000 * 60_000})
	}
	for i, want := range []row{
		{"nlp", h(2), h(2), h(3), cluster.Hour},
		{"vision", h(2), h(2), 0, 4*cluster.Hour + 30*cluster.Minute},
		{"nlp", h(2), h(3), h(4), cluster.Hour},
		{"vision", h(6), h(6), 0, 30 * cluster.Minute},
		{"vision", h(6), 0, 0, 0},
	} {
		if i >= len(got) || got[i] != want {
			t.Errorf("job %d: %+v, want %+v", i, got, want)
		}
	}
	for j := range sh.Setup.Load.Jobs {
		if long := j.Runs >= sh.Setup.Until; long != (j.Tenant == "vision") {
			t.Errorf("%+v in a window of %s", j, sh.Setup.Until)
		}
	}
	was, err := sh.Score()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "received by nlp", tenant(t, was, "nlp").Alloc, 4+2, 0.05)
	near(t, "received by vision", tenant(t, was, "vision").Alloc, 4*4.5+4*.5, 0.05)
	// Vision's jobs have no end in either world.
	be := would(t, &sh)
	if was.Jobs.Finished != 2 || was.Jobs.Unfinished != 3 || be.Jobs.Finished != 2 || be.Jobs.Unfinished != 3 {
		t.Errorf("%+v, %+v", was.Jobs, be.Jobs)
	}
	if be.To.Sub(be.From) != was.To.Sub(was.From) || len(be.Use.Used) != len(was.Use.Used) || periods(be) != periods(was) {
		t.Errorf("%s to %s, %d steps, %+v; %s to %s, %d steps, %+v", be.From, be.To, len(be.Use.Used), be.Periods[0], was.From, was.To, len(was.Use.Used), was.Periods[0])
	}
}

// Two jobs of 4 GPUs and three hours, of two tenants, on 4 GPUs, in a window of four hours. In
// the record the first ran for three hours, and the second for one before the window's end. In
// the backtest both have two hours by then, and the first ends only after the window. It has a
// completion time nevertheless.
func TestJobsAreFollowedBeyondTheWindow(t *testing.T) {
	w, s := observed(t, simtest.Nodes("v", "v100", 1, 4), "nlp", "vision")
	w.Submit("nlp", 1, 4, 3*cluster.Hour)
	w.Submit("vision", 1, 4, 3*cluster.Hour)
	w.Run(4 * cluster.Hour)
	look(t, w)
	_, was, be := scores(t, s)
	if was.Jobs.Finished != 1 || be.Jobs.Finished != 1 || be.Jobs.Unfinished != 1 {
		t.Errorf("%+v, %+v", was.Jobs, be.Jobs)
	}
	near(t, "completion as it was, s", was.Completion.Mean, 3*3600, 10)
	if end := be.Completion.Mean / 3600; end < 5.5 || end > 6.5 {
		t.Errorf("the first job would have been done after %.2f h, want about 6", end)
	}
	near(t, "received by nlp as it would have been", tenant(t, be, "nlp").Alloc, 8, 1.1)
}

// Odd journals: jobs that cannot be compared, nodes of several models, tenants with rows in one
// pool but not in another.
func TestOddPasts(t *testing.T) {
	const from, to = simtest.Start, simtest.Start + cluster.Instant(cluster.Hour)
	when := func(minutes int) *time.Time {
		at := from.Add(cluster.Span(minutes) * cluster.Minute).Time()
		return &at
	}
	ledger := func(alloc cluster.GPUTime) cluster.State {
		return cluster.State{NextKey: 100, Ledger: cluster.Ledger{Tenants: []cluster.TenantPool{
			{Tenant: "a", Pool: "k80", Alloc: 50, Due: 60}, {Tenant: "a", Pool: "v100", Alloc: alloc, Due: alloc, Demand: 4e6, Entitlement: 3e6}}}}
	}
	edge := func(at cluster.Instant, alloc cluster.GPUTime, nodes ...cluster.Node) store.Edge {
		return store.Edge{Plan: cluster.Plan{At: at, State: ledger(alloc), Tenants: []cluster.TenantStatus{{Tenant: "a", Pool: "k80", Holds: cluster.CountOf(1)}, {Tenant: "a", Pool: "v100", Holds: cluster.CountOf(2)}}},
			Snapshot: cluster.Snapshot{Nodes: nodes, Settings: simtest.Product(), Tenants: []cluster.Tenant{{Name: "a", Weight: 3}}}}
	}
	both := cluster.Node{Name: "n1", GPUs: []cluster.GPUs{{Model: "K80", Count: 2}, {Model: "v100", Count: 4}}}
	node := cluster.Node{Name: "n2", GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}}
	down, dead := node, cluster.Node{Name: "n3", Bad: "down", GPUs: node.GPUs}
	down.Bad = "down"
	p := &store.Past{
		Begin: edge(from, 100, both, node, dead), End: edge(to, 900, both, down, dead),
		Jobs: []store.PastJob{
			{Key: 1, SlurmID: "1", Tenant: "a", GPUs: cluster.CountOf(2), Eligible: when(10), Done: when(20)},                           // cancelled
			{Key: 2, SlurmID: "2", Tenant: "a", GPUs: cluster.CountOf(2), Submitted: when(10)},                                          // held
			{Key: 3, SlurmID: "3", Tenant: "a", Submitted: when(10), Done: when(20), Alloc: 3_600_000},                                  // unseen
			{Key: 4, SlurmID: "4", GPUs: cluster.CountOf(1), Submitted: when(10), Started: when(10), Done: when(70), Alloc: 3_600_000},  // of no tenant
			{Key: 5, SlurmID: "5", Tenant: "a", GPUs: cluster.CountOf(2), Done: when(20), Alloc: 1_200_000, Control: cluster.Unmanaged}, // without a lease
			{Key: 6, SlurmID: "6", Tenant: "a", GPUs: cluster.CountOf(2), Started: when(30), Eligible: when(10), Done: when(50), Alloc: 1_800_000, Lost: 600_000, Restarts: 4, Others: new(3), Preempted: new(1)},
			{Key: 100, SlurmID: "7", Tenant: "a", GPUs: cluster.CountOf(2), Eligible: when(59)}, // it came later
		},
		Tenants: func(yield func(store.PastTenant, error) bool) {
			yield(store.PastTenant{Tenant: "a", Pool: "v100", At: *when(5), Rate: 1e6, Holds: cluster.CountOf(4), Alloc: 300, Due: 200}, nil)
		},
		GPUs: []store.GPUsThen{{At: *when(0), GPUs: 10}, {At: *when(40), GPUs: 6}},
	}
	s := Of(p, "odd")
	if want := (Jobs{Compared: 2, Alone: 1, NeverRan: 2, Unseen: 1, NoTenant: 1, OutTime: 7_200_000}); s.Jobs != want {
		t.Errorf("%+v, want %+v", s.Jobs, want)
	}
	at := func(minutes int) cluster.Instant { return from.Add(cluster.Span(minutes) * cluster.Minute) }
	want := []score.Job{
		{ID: "5", Tenant: "a", GPUs: 2, Submit: at(10), Start: at(10), End: at(20), Runs: 10 * cluster.Minute, Held: 10 * cluster.Minute, Alloc: 1_200_000},
		{ID: "6", Tenant: "a", GPUs: 2, Submit: at(10), Start: at(30), End: at(50), Runs: 15 * cluster.Minute, Held: 20 * cluster.Minute,
			Overhead: 5 * cluster.Minute, Lost: 5 * cluster.Minute, Alloc: 1_800_000, Preemptions: 2},
	}
	if d := cmp.Diff(want, s.Was.Jobs); d != "" {
		t.Error(d)
	}
	if got := s.Setup.Fleet.String(); got != "1x2:k80+2x4:v100" || s.Least != 6 || s.Most != 10 || s.Setup.Weights["a"] != 3 {
		t.Errorf("%s, %d to %d GPUs, weights %v", got, s.Least, s.Most, s.Setup.Weights)
	}
	sample := func(at cluster.Instant, gpus, holds int, rate cluster.MicroGPU, alloc, due cluster.GPUTime) score.Sample {
		return score.Sample{At: at, Capacity: gpus, Used: holds, Tenants: []score.TenantSample{{Tenant: "a", Holds: cluster.Micro(holds), Due: rate, Alloc: alloc, DueTotal: due}}}
	}
	var got []score.Sample
	for x, err := range samples(p) {
		if err != nil {
			t.Fatal(err)
		}
		x.Tenants = slices.Clone(x.Tenants)
		got = append(got, x)
	}
	if d := cmp.Diff([]score.Sample{sample(from, 10, 3, 3e6, 150, 160), sample(at(5), 10, 5, 1e6, 350, 260),
		sample(at(40), 6, 5, 1e6, 350, 260), sample(to, 6, 3, 3e6, 950, 960)}, got); d != "" {
		t.Error(d)
	}
	lost := errors.New("the connection is lost")
	p.Tenants = func(yield func(store.PastTenant, error) bool) { yield(store.PastTenant{}, lost) }
	if _, err := s.Score(); !errors.Is(err, lost) {
		t.Errorf("%v, want that the connection is lost", err)
	}
}

// periods counts the hours of all tenants in a score.
func periods(s score.Scores) int {
	return int(s.Periods[0].Rho.Count) + s.Periods[0].NoDue
}
