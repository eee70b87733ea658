package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// keeps declares the part of its speed that a gang of kind lm keeps on more nodes than it needs.
func keeps(part float64, gangs ...int) (out []cluster.Profile) {
	for _, gang := range gangs {
		out = append(out, cluster.Profile{Kind: "lm", With: cluster.Scattered, Model: "v100", Gang: gang, Rate: part, Relative: true, Source: cluster.Declared, Basis: profile.File})
	}
	return out
}

// anywhere asks for GPUs alone, for a job of kind lm.
func anywhere(j *sim.Work) {
	j.Request.Nodes, j.Request.PerNode, j.Comment = 0, 0, "kind=lm"
}

// A job of two GPUs finds one idle on each of two nodes; after half an hour, two on one. It is expected to run for five minutes, as nothing is
// known of its like: on both nodes it would lose the multiple 1/part - 1 of that. It waits for as long as that, and no longer; then it begins
// on both.
func TestWaitsForNodesTogether(t *testing.T) {
	for _, c := range []struct {
		name  string
		part  float64 // 0 = unknown
		most  cluster.Span
		begin cluster.Span
		nodes int
	}{
		{"unknown", 0, 8 * hour, 0, 2},
		{"no slower", 1, 8 * hour, 0, 2},
		{"a little slower", 0.5, 8 * hour, 5 * minute, 2},
		{"much slower", 0.1, 8 * hour, 30 * minute, 1},
		{"much slower, but none may wait so long", 0.1, 10 * minute, 10 * minute, 2},
		{"much slower, but none may wait", 0.1, 0, 0, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, simtest.Product(), []int{4, 4}, "a")
			if w.Settings.ScatterWait = c.most; c.part > 0 {
				w.Rules.Profiles = keeps(c.part, 2)
			}
			for _, runs := range []cluster.Span{31 * minute, forever} {
				w.submit("a", 3, runs, func(j *sim.Work) { j.NoRequeue = true })
			}
			w.Run(minute)
			gang := w.submit("a", 2, hour, anywhere)
			w.Run(minute / 2)
			since := w.Now()
			if c.begin > 0 {
				until := w.why(gang, cluster.ReasonTogether).Until
				if w.state(gang, cluster.Waiting); c.nodes == 2 && (until.Sub(since) > c.begin || until.Sub(since) < c.begin-minute) {
					t.Errorf("it says that it begins at %s, in %s", until, until.Sub(since))
				}
				fill := w.submit("a", 1, 2*minute, nil)
				if w.Run(minute / 2); w.Job(fill).State != cluster.Running {
					t.Errorf("GPUs idle for it: %+v", w.Reason(fill))
				}
				w.Run(c.begin - 2*minute)
				w.state(gang, cluster.Waiting)
				w.Run(3 * minute)
			}
			j := w.Job(gang)
			if w.state(gang, cluster.Running); len(j.Holds) != c.nodes {
				t.Errorf("it runs on %+v, want %d nodes", j.Holds, c.nodes)
			}
			if got := j.Start.Sub(since); got > c.begin+minute || got < c.begin-minute {
				t.Errorf("it began after %s, want %s", got, c.begin)
			}
			if w.Record(gang).Together != 0 {
				t.Errorf("it waits for nodes together since %s although it runs", w.Record(gang).Together)
			}
		})
	}
}

// Nobody reports. Two of three jobs of a type find their fewest nodes, and the third begins on two, four times as slow. Once run times show that, it waits an hour for
// one, and is done two hours earlier.
func TestLearnsScatteringFromRunTimes(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*cluster.Settings)
		learns bool
	}{
		{"run times count", func(*cluster.Settings) {}, true},
		{"they do not", func(s *cluster.Settings) { s.NoCompletions = true }, false},
		{"none may wait", func(s *cluster.Settings) { s.ScatterWait = 0 }, false},
	} {
		w := newWorld(t, simtest.Product(), []int{4, 4, 4}, "a")
		w.Speeds = sim.Speeds{sim.Task{Kind: "lm", GPUs: 2}: {"v100": sim.Rate{Speed: sim.Reference, Apart: sim.Reference / 4}}}
		w.Settings.ScatterWait = 8 * hour
		c.change(&w.Settings)
		for range 2 {
			w.submit("a", 3, forever, func(j *sim.Work) { j.NoRequeue = true })
		}
		w.Run(minute)
		last := []cluster.Span{} // of each third job
		for range 7 {
			var third cluster.JobID
			for range 3 {
				third = w.submit("a", 2, hour, func(j *sim.Work) { anywhere(j); j.Kind, j.NoRequeue = "lm", true })
				w.Run(minute)
			}
			since := w.Now()
			w.Run(5 * hour)
			j := w.Job(third)
			last = append(last, j.End.Sub(since))
		}
		first, learnt := last[0], last[len(last)-1]
		if first < 220*minute || learnt > 140*minute == c.learns {
			t.Errorf("%s: the third jobs took %v", c.name, last)
		}
	}
}

// A gang that waits by its own choice has no claim, and nobody's lease ends in mid-term for it: it could begin at once.
func TestWaitingTogetherEndsNoLease(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4, 4}, "a", "b")
	w.Settings.ScatterWait, w.Rules.Profiles = 8*hour, keeps(0.1, 2)
	w.submit("a", 3, forever, nil)
	w.submit("a", 3, forever, nil)
	w.Run(8 * minute)
	gang := w.submit("b", 2, hour, anywhere)
	w.Run(2 * minute)
	w.why(gang, cluster.ReasonTogether)
	if len(w.Last.State.Claims) > 0 || len(w.done(cluster.Notify)) > 0 {
		t.Errorf("claims %+v, notices %+v", w.Last.State.Claims, w.done(cluster.Notify))
	}
	w.Run(20 * minute) // in its turn it has the GPUs of a lease that ends
	if j := w.Job(gang); len(j.Holds) != 1 {
		t.Errorf("it holds %+v, want one node: %+v", j.Holds, w.Reason(gang))
	}
}

// acrossSwitches gives what is learnt of gangs of kind lm of tenants that keep a part of their speed across switches.
func acrossSwitches(part float64, tenants ...string) (out []cluster.Profile) {
	for _, tenant := range tenants {
		for gang := 2; gang <= 16; gang++ {
			for with, rate := range map[cluster.Kind]float64{"": 1, cluster.AcrossSwitches: part} {
				out = append(out, cluster.Profile{Kind: cluster.KindOf(tenant, "lm"), With: with, Model: "v100", Gang: gang, Rate: rate, Source: cluster.Observed, Samples: 9, At: simtest.Start})
			}
		}
	}
	slices.SortFunc(out, func(a, b cluster.Profile) int { return a.Compare(&b) })
	return out
}

// In drawn worlds no GPU idles that a job of one GPU could have, while gangs wait for nodes together. A decider that keeps results from round to
// round decides like a fresh one, and without known speeds all is as without such waits.
func TestGapsAreFilled(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newChaosOn(rt, t, func(rt *rapid.T) []cluster.Node {
			nodes := simtest.Nodes("a", "v100", rapid.IntRange(2, 4).Draw(rt, "nodes"), 4)
			if rapid.Bool().Draw(rt, "switches") {
				for i := range nodes {
					nodes[i].Switch = rapid.SampledFrom([]string{"s1", "s2"}).Draw(rt, "switch")
				}
			}
			return nodes
		})
		set := &c.world.Settings
		set.ScatterWait, set.Across, set.Slices = 8*hour, cluster.AnyUser, nil
		if set.Divide = rapid.SampledFrom([]string{"", "", "gavel:las", "oef:noncoop"}).Draw(rt, "divide"); set.Divide != "" {
			set.DivideJobs, set.Mechanism = set.Divide == "gavel:las", cluster.Nearest
		}
		known := rapid.IntRange(0, 3).Draw(rt, "known") > 0
		if set.NoCompletions = !known; known {
			c.world.Rules.Profiles = keeps(rapid.SampledFrom([]float64{0.05, 0.3, 0.9}).Draw(rt, "part"), 2, 3, 4, 8)
		}
		c.comment = func() string { return "kind=lm" }
		kept, across := new(engine.Decider), rapid.SampledFrom([]float64{0, 0.05, 0.5}).Draw(rt, "part across switches")
		c.world.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
			if known && across > 0 {
				s.Profiles = acrossSwitches(across, "x", "y", "z")
			}
			plan := kept.Decide(s)
			if !known {
				s.Settings.ScatterWait = 0
			}
			if a, b := encoded(t, plan), encoded(t, engine.Decide(s)); a != b {
				rt.Fatalf("another plan (known speeds: %v):\n%s\n%s", known, a, b)
			}
			return plan
		}
		c.submit()
		c.world.Check = func(r loop.Report) {
			together := false
			for i := range r.Plan.Statuses {
				together = together || r.Plan.Statuses[i].Reason.Code == cluster.ReasonTogether
			}
			if !together || len(r.Plan.State.Claims) > 0 {
				return
			}
			for i := range r.Plan.Statuses {
				why := &r.Plan.Statuses[i].Reason
				switch why.Code {
				case cluster.ReasonBehind, cluster.ReasonShape, cluster.ReasonBurst, cluster.ReasonThreshold:
					if why.Need == cluster.CountOf(1) && why.Free > 0 {
						rt.Fatalf("job %d waits for one GPU, and %s are idle: %+v", r.Plan.Statuses[i].Job, why.Free, *why)
					}
				}
			}
		}
		for range rapid.IntRange(5, 25).Draw(rt, "events") {
			c.stir()
			c.world.Run(cluster.Span(rapid.IntRange(1, 20).Draw(rt, "minutes")) * minute)
		}
	})
}

func encoded(t *testing.T, p cluster.Plan) string {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A policy that divides GPU models between jobs is told how fast gangs are on more nodes than they need, and how many GPUs they can have on their
// fewest. Jobs that ask for their nodes are never on more.
func TestScatteringEntersTheDivision(t *testing.T) {
	for _, c := range []struct {
		change func(*sim.Work)
		want   bool
	}{{anywhere, true}, {func(j *sim.Work) { j.Comment = "kind=lm" }, false}} {
		set := simtest.Product()
		set.Divide, set.DivideJobs, set.ScatterWait = "gavel:las-jobs", true, 8*hour
		w := newWorld(t, set, []int{4, 4}, "a")
		w.Rules.Profiles = keeps(0.25, 3)
		for range 3 {
			w.submit("a", 3, 2*hour, c.change)
		}
		w.Run(2 * minute)
		var q *cluster.AllocationRequest
		for i := range w.reports {
			if asked := w.reports[i].Plan.AllocationRequest; asked != nil && len(asked.Bids) > 0 {
				q = asked
			}
		}
		if q == nil {
			t.Fatal("nothing was asked")
		}
		got := q.Bids[0].Apart != nil && q.Bids[0].Apart[0] == 0.25 && len(q.Together) == 1 && q.Together[0] == 750
		if got != c.want || !got && (q.Bids[0].Apart != nil || q.Together != nil) {
			t.Errorf("%+v of %v GPUs together, want it: %v", q.Bids[0], q.Together, c.want)
		}
	}
}

// A job whose grant has not started yet has its own request in the division, also where the decider has seen no other.
func TestAGrantEntersTheDivision(t *testing.T) {
	set := simtest.Product()
	set.Divide, set.DivideJobs, set.ScatterWait = "gavel:las", true, 8*hour
	w := newWorld(t, set, []int{4, 4}, "a")
	w.Rules.Profiles = keeps(0.25, 3)
	w.Loop.Cluster = &booting{w.Virtual, 2 * minute}
	granted := false
	w.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
		for i := range s.Leases {
			granted = granted || s.Leases[i].State == cluster.Granted
		}
		return engine.Decide(s)
	}
	job := w.submit("a", 3, hour, anywhere)
	w.Run(5 * minute)
	if !granted || w.Job(job).State != cluster.Running {
		t.Errorf("no round has seen a grant: %v; the job: %+v", granted, w.Job(job))
	}
}

// A job of two GPUs began on two nodes. When one of them has room for both, it moves there at the end of its lease, if it gains more in a term
// than a stop costs it.
func TestMovesToNodesTogether(t *testing.T) {
	for _, c := range []struct {
		part   float64
		divide string
		want   int // nodes
	}{{0.3, "", 1}, {0.3, "gavel:las", 1}, {0.95, "", 2}, {0, "", 2}} {
		set := simtest.Product()
		if set.ScatterWait = hour; c.divide != "" {
			set.Divide, set.DivideJobs = c.divide, true
		}
		w := newWorld(t, set, []int{4, 4}, "a")
		for _, runs := range []cluster.Span{31 * minute, forever} {
			w.submit("a", 3, runs, func(j *sim.Work) { j.NoRequeue = true })
		}
		w.Run(minute)
		gang := w.submit("a", 2, 20*hour, func(j *sim.Work) { anywhere(j); j.Comment += ",saves=notice" })
		w.Run(minute)
		if len(w.Job(gang).Holds) != 2 {
			t.Fatalf("it begins on %+v", w.Job(gang).Holds)
		}
		if c.part > 0 {
			w.Rules.Profiles = keeps(c.part, 2)
		}
		w.Run(27 * minute)
		if len(w.Job(gang).Holds) != 2 {
			t.Errorf("%v %q: it moved to %+v, where no node has room", c.part, c.divide, w.Job(gang).Holds)
		}
		w.Run(20 * minute)
		if j := w.Job(gang); len(j.Holds) != c.want {
			t.Errorf("%v %q: it is on %+v, want %d nodes", c.part, c.divide, j.Holds, c.want)
		}
		w.movesOnce(gang, fmt.Sprintf("%v %q", c.part, c.divide))
	}
}

// movesOnce fails if a job has moved more than once, or moves in the next two hours.
func (w *world) movesOnce(id cluster.JobID, name string) {
	w.t.Helper()
	moves := len(w.done(cluster.Reclaim, id))
	w.Run(2 * hour)
	if again := len(w.done(cluster.Reclaim, id)); again != moves || moves > 1 {
		w.t.Errorf("%s: it moved %d times, then %d times", name, moves, again-moves)
	}
}

// Jobs move for a gang that waits for nodes together, at the end of their terms, if that costs no more than the rest of its wait: it could begin
// on four nodes at once.
func TestJobsMoveForNodesTogether(t *testing.T) {
	for _, c := range []struct {
		part    float64
		percent int
		nodes   int
	}{{0.1, 25, 1}, {0.1, 0, 4}, {0.95, 25, 4}} {
		w, whole := scattered(t, nil, func(s *cluster.Settings) { s.CompactPercent, s.ScatterWait = c.percent, 8*hour })
		w.Cancel(whole)
		w.Rules.Profiles = keeps(c.part, 4)
		gang := w.submit("b", 4, forever, anywhere)
		w.Run(minute)
		if waits := w.Job(gang).State == cluster.Waiting; waits != (c.part < 0.9) {
			t.Errorf("%v: it waits: %v", c.part, waits)
		}
		w.Run(24 * minute) // its wait is 22 min 30 s
		if j := w.Job(gang); len(j.Holds) != c.nodes {
			t.Errorf("%v, %d %%: it is on %+v, want %d nodes: %+v", c.part, c.percent, j.Holds, c.nodes, w.Reason(gang))
		}
		if moved := len(w.done(cluster.Reclaim)); (moved > 0) != (c.nodes == 1) {
			t.Errorf("%v, %d %%: %d jobs moved", c.part, c.percent, moved)
		}
	}
}
