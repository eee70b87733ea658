package engine_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// paired returns a world of one node with two GPUs, on which jobs may run at the same time, and two jobs of each of two tenants. Beside a job of
// the other tenant, those of x have the speed x, and those of y the speed y, in percent.
func paired(t *testing.T, x, y int) (w *simtest.World, ids map[string][]cluster.JobID) {
	w, ids = pairedOn(t, 2, x, y), map[string][]cluster.JobID{}
	for range 2 {
		for _, tenant := range []string{"x", "y"} {
			ids[tenant] = append(ids[tenant], pairs(w, tenant))
		}
	}
	return w, ids
}

// pairedOn is paired with so many GPUs, and without jobs.
func pairedOn(t *testing.T, gpus, x, y int) *simtest.World {
	w := slicedOn(t, simtest.Nodes("n", "v100", 1, gpus))
	w.Settings.Slices.Pairs = true
	w.Settings.Across = cluster.AnyUser
	w.Reports = 10 * cluster.Second
	speeds := map[string]int{"x": x, "y": y}
	w.Beside = sim.Beside{}
	for _, other := range []string{"x", "y"} {
		w.Beside[sim.Task{Kind: other, GPUs: 1}] = sim.Speeds{}
		for own, speed := range speeds {
			w.Beside[sim.Task{Kind: other, GPUs: 1}][sim.Task{Kind: own, GPUs: 1}] = map[string]sim.Rate{"v100": {Speed: sim.Reference * sim.Speed(speed) / 100}}
		}
	}
	return w
}

// pairs submits a job of a tenant's own kind that may share a GPU.
func pairs(w *simtest.World, tenant string) cluster.JobID {
	return w.Virtual.Submit(sim.Work{Name: "train", Kind: tenant, User: tenant + "_user", Account: tenant, Partition: "gpu", Comment: modest + ",kind=" + tenant,
		Request: cluster.Request{Size: cluster.Whole(1), Nodes: 1, PerNode: 1, CPUs: 1, MemoryMB: 1024}, Runs: 1000 * cluster.Hour})
}

// Two jobs run at the same time if neither is slower by that than in turns, and only if they report their progress. An event tells it once.
func TestPairs(t *testing.T) {
	for _, c := range []struct {
		x, y    int
		silent  bool
		divide  string
		least   [2]float64 // of its pace alone that a job of x and of y has
		told    []string
		reasons []cluster.Code
	}{
		{x: 80, y: 60, least: [2]float64{0.58, 0.58}, told: []string{"run at the same time"}, reasons: []cluster.Code{cluster.ReasonBeside}},
		{x: 95, y: 30, least: [2]float64{0.47, 0.47}, told: []string{"take turns"}, reasons: []cluster.Code{cluster.ReasonTurn, cluster.ReasonPaused}},
		{x: 80, y: 60, divide: "gavel:las-jobs", least: [2]float64{0.58, 0.58}, told: []string{"run at the same time"}, reasons: []cluster.Code{cluster.ReasonBeside}},
		{x: 95, y: 30, divide: "gavel:las-jobs", least: [2]float64{0.47, 0.47}, told: []string{"take turns"}, reasons: []cluster.Code{cluster.ReasonTurn, cluster.ReasonPaused}},
		{x: 80, y: 60, silent: true, least: [2]float64{0.47, 0.47}, reasons: []cluster.Code{cluster.ReasonTurn, cluster.ReasonPaused}},
	} {
		t.Run(fmt.Sprint(c.x, c.y, c.silent, c.divide), func(t *testing.T) {
			w, ids := paired(t, c.x, c.y)
			if c.divide != "" {
				divides(w, c.divide)
			}
			if c.silent {
				w.Reports = 0
			}
			told := map[cluster.JobKey][]string{}
			w.Check = func(r loop.Report) {
				for _, e := range r.Plan.Events {
					if e.Kind == cluster.EventPair {
						told[e.Job] = append(told[e.Job], e.Text)
					}
				}
			}
			w.Run(20 * cluster.Minute)
			before := map[cluster.JobID]cluster.Span{}
			for id := range all(ids) {
				before[id] = w.Progress(id)
			}
			const long = 2 * cluster.Hour
			w.Run(long)
			for k, tenant := range []string{"x", "y"} {
				for _, id := range ids[tenant] {
					pace := float64(w.Progress(id)-before[id]) / float64(long)
					t.Logf("a job of %s did %.2f of its pace alone: %+v", tenant, pace, w.Record(id).Slice.Pair)
					if pace < c.least[k] {
						t.Errorf("a job of %s did %.2f of its pace alone, want %.2f", tenant, pace, c.least[k])
					}
					if reason := w.Reason(id).Code; !slices.Contains(c.reasons, reason) {
						t.Errorf("job %s: %s, want one of %v", id, reason, c.reasons)
					}
				}
			}
			for job, texts := range told {
				if len(texts) != len(c.told) || !strings.Contains(texts[0], c.told[0]) {
					t.Errorf("job %d: told %q, want %q", job, texts, c.told)
				}
			}
			if want := 2 * len(c.told); len(told) != want {
				t.Errorf("told of %d GPUs, want %d", len(told), want)
			}
		})
	}
}

// Types that are known to hinder each other are not put together again; others are tried.
func TestPairsAreRemembered(t *testing.T) {
	w, ids := paired(t, 95, 30)
	for id := range all(ids) {
		w.Cancel(id)
	}
	shares(w, "y", 1, "") // has the other GPU
	for _, c := range []struct {
		kinds [2]string
		want  bool // they are put on one GPU
	}{{[2]string{"x", "y"}, true}, {[2]string{"x", "y"}, false}, {[2]string{"x", "z"}, true}} {
		var jobs []cluster.JobID
		for _, kind := range c.kinds {
			jobs = append(jobs, w.Virtual.Submit(sim.Work{Name: "train", Kind: kind, User: "x_user", Account: "x", Partition: "gpu", Comment: modest + ",kind=" + kind,
				Request: cluster.Request{Size: cluster.Whole(1), Nodes: 1, PerNode: 1, CPUs: 1, MemoryMB: 1024}, Runs: 1000 * cluster.Hour}))
		}
		w.Run(cluster.Hour)
		for _, id := range jobs {
			if got := w.Record(id).Slice != nil; got != c.want {
				t.Errorf("%v: job %s shares its GPU: %v, want %v", c.kinds, id, got, c.want)
			}
			w.Cancel(id)
		}
		w.Run(cluster.Minute)
	}
}

// A heavy tenant's job is not put again beside one that leaves it less than its part of the turns: they would only take turns. With equal weights it is.
func TestPairsByWeight(t *testing.T) {
	for _, c := range []struct {
		weight int64 // of x
		want   bool  // they are put on one GPU again
	}{{1, true}, {2, false}} {
		w := pairedOn(t, 1, 62, 90)
		w.Rules.Weights = map[string]int64{"x": c.weight, "y": 1}
		for round, want := range []bool{true, c.want} {
			jobs := []cluster.JobID{pairs(w, "x"), pairs(w, "y")}
			w.Run(cluster.Hour)
			for _, id := range jobs {
				if got := w.Record(id).Slice != nil; got != want {
					t.Errorf("weight %d, round %d: job %s shares its GPU: %v, want %v", c.weight, round, id, got, want)
				}
				w.Cancel(id)
			}
			w.Run(cluster.Minute)
		}
	}
}

func all(ids map[string][]cluster.JobID) iter.Seq[cluster.JobID] {
	return slices.Values(slices.Concat(ids["x"], ids["y"]))
}

// However fast jobs are beside each other, none is slower than in turns by more than the trials cost, whatever the other one reports.
func TestPropertiesOfPairs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, ids := paired(t, rapid.IntRange(1, 100).Draw(rt, "x"), rapid.IntRange(1, 100).Draw(rt, "y"))
		w.Reports = cluster.Span(rapid.IntRange(10, 40).Draw(rt, "reports")) * cluster.Second
		honest := all(ids)
		if rapid.Bool().Draw(rt, "x lies") {
			honest = slices.Values(ids["y"])
			w.Loop.Cluster = &liar{w.Virtual, ids["x"], func() float64 { return rapid.Float64Range(0, 1e6).Draw(rt, "steps") }}
		}
		w.Run(10 * cluster.Minute)
		before := map[cluster.JobID]cluster.Span{}
		for id := range honest {
			before[id] = w.Progress(id)
		}
		const long = 70 * cluster.Minute
		w.Run(long)
		for id := range honest {
			if pace := float64(w.Progress(id)-before[id]) / float64(long); pace < 0.43 {
				rt.Errorf("job %s did %.2f of its pace alone: %+v", id, pace, w.Record(id).Slice.Pair)
			}
		}
	})
}

// liar is a cluster on which some jobs report steps that they have not done.
type liar struct {
	loop.Cluster
	jobs  []cluster.JobID
	steps func() float64
}

func (l *liar) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	seen, err := l.Cluster.Observe(ctx, since)
	for k := range seen.Progress {
		if slices.Contains(l.jobs, seen.Progress[k].Job) {
			seen.Progress[k].Steps = l.steps()
		}
	}
	return seen, err
}

// divides lets a preset divide GPU models.
func divides(w *simtest.World, by string) {
	set := &w.Settings
	set.Preset, set.Divide, set.DivideJobs, set.Mechanism, set.DivideEvery = by, by, preset.OfJobs(by), cluster.Nearest, 30
}

// Jobs a and b do most beside each other, but c and d hinder each other: all do best as a beside c and b beside d. The division puts those together, in which order they come
// all the same.
func TestDivisionPairs(t *testing.T) {
	for _, by := range []string{"gavel:las-jobs", "gavel:las", "gavel:ftf"} {
		for _, order := range []string{"abcd", "acbd", "cadb", "dbca"} {
			t.Run(by+order, func(t *testing.T) {
				w := sliced(t, 1)
				divides(w, by)
				w.Settings.Slices.Pairs, w.Settings.Across, w.Reports, w.Beside = true, cluster.AnyUser, 10*cluster.Second, sim.Beside{}
				for own, part := range map[string]float64{"ab": 0.95, "ac": 0.9, "bd": 0.9, "ad": 0.3, "bc": 0.3, "cd": 0.3} {
					together(w, own[:1], own[1:], part)
				}
				ids := map[string]cluster.JobID{}
				for _, kind := range order {
					w.Rules.Profiles = append(w.Rules.Profiles, known(string(kind), "", 1))
					ids[string(kind)] = trains(w, string(kind))
					w.Run(20 * cluster.Second)
				}
				w.Run(2 * cluster.Hour)
				for _, pair := range []string{"ac", "bd"} {
					a, b := w.Record(ids[pair[:1]]), w.Record(ids[pair[1:]])
					if a.Slice == nil || a.Slice.Pair == nil || a.Slice.Pair.With != b.Key || !a.Slice.Pair.Beside {
						t.Errorf("%s: %+v; the division: %+v", pair, a.Slice, w.Last.State.Allocation.Pairs)
					}
				}
			})
		}
	}
}

// The rounds carry out what the division gives to pairs: over hours two types have as many GPUs together as it says, within one or little more.
func TestRoundsApproachPairs(t *testing.T) {
	for _, by := range []string{"gavel:las-jobs", "gavel:las"} {
		for seed := range seeds.Of(t, 6) {
			draw := rand.New(rand.NewPCG(seed, 0))
			w := sliced(t, 2)
			divides(w, by)
			w.Settings.Slices.Pairs, w.Settings.Across, w.Reports, w.Beside = true, cluster.AnyUser, 10*cluster.Second, sim.Beside{}
			kinds := []string{"a", "b", "c"}
			for i, own := range kinds {
				w.Rules.Profiles = append(w.Rules.Profiles, known(own, "", 1))
				for _, other := range kinds[i:] {
					together(w, own, other, []float64{0.3, 0.65, 0.8, 0.95}[draw.IntN(4)])
				}
			}
			var ids []cluster.JobID
			var of []string
			for range 9 + draw.IntN(6) {
				of = append(of, kinds[draw.IntN(3)])
				ids = append(ids, trains(w, of[len(of)-1]))
				w.Run(cluster.Minute)
			}
			kind := map[cluster.JobKey]string{}
			for i, id := range ids {
				kind[w.Record(id).Key] = of[i]
			}
			w.Run(cluster.Hour)
			given, had, rounds := map[string]float64{}, map[string]float64{}, 0.0
			w.Check = func(r loop.Report) {
				rounds++
				for _, p := range r.Plan.State.Allocation.Pairs {
					given[p.A[2:]+p.B[2:]] += float64(p.GPUs[0]) / float64(cluster.WholeGPU)
				}
				on := map[cluster.Device]string{}
				for i := range r.Plan.State.Leases {
					l := &r.Plan.State.Leases[i]
					if l.State == cluster.Granted || l.Size.IsWhole() {
						continue
					}
					for d := range l.Nodes[0].Devices() {
						if other, ok := on[d]; ok {
							had[min(other, kind[l.Job])+max(other, kind[l.Job])]++
						}
						on[d] = kind[l.Job]
					}
				}
			}
			w.Run(4 * cluster.Hour)
			for types := range given {
				if off := (had[types] - given[types]) / rounds; off < -1.25 || off > 1.25 {
					t.Errorf("%s: %s have %.2f GPUs together, and the division gives them %.2f", by, types, had[types]/rounds, given[types]/rounds)
				}
			}
		}
	}
}

// trains submits a job of a kind that may share a GPU.
func trains(w *simtest.World, kind string) cluster.JobID {
	return w.Virtual.Submit(sim.Work{Name: "train", Kind: kind, User: "x_user", Account: "x", Partition: "gpu", Comment: modest + ",kind=" + kind,
		Request: cluster.Request{Size: cluster.Whole(1), Nodes: 1, PerNode: 1, CPUs: 1, MemoryMB: 1024}, Runs: 1000 * cluster.Hour})
}

// together sets, and declares, the part of their steps a second that jobs of two kinds do beside each other.
func together(w *simtest.World, a, b string, part float64) {
	for _, x := range [][2]string{{a, b}, {b, a}} {
		of := sim.Task{Kind: x[1], GPUs: 1}
		if w.Beside[of] == nil {
			w.Beside[of] = sim.Speeds{}
		}
		w.Beside[of][sim.Task{Kind: x[0], GPUs: 1}] = map[string]sim.Rate{"v100": {Speed: sim.Speed(float64(sim.Reference) * part)}}
		w.Rules.Profiles = append(w.Rules.Profiles, known(x[0], x[1], part))
	}
}

// known is a declared rate of a kind, beside another one.
func known(kind, with string, rate float64) cluster.Profile {
	return cluster.Profile{Kind: cluster.Kind(kind), With: cluster.Kind(with), Model: "v100", Gang: 1, Rate: rate, Source: cluster.Declared, Basis: profile.File}
}
