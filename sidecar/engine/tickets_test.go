package engine_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/tickets"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// Jobs of tenants with different weights have turns, get work done, and are charged in proportion to these, within 5 % over ten minutes. None is suspended
// for more than five minutes and the rounds until its turn begins.
func TestSlicesByWeight(t *testing.T) {
	for _, c := range []struct {
		gpus, x, y, jobs int
		weight           int64 // of x; that of y is 1
		comment          string
		want             float64 // part of x
	}{
		{gpus: 1, x: 1, y: 1, jobs: 2, weight: 2, comment: modest, want: 2. / 3},
		{gpus: 1, x: 1, y: 1, jobs: 2, weight: 5, comment: modest, want: 5. / 6},
		{gpus: 2, x: 1, y: 3, jobs: 2, weight: 1, comment: modest, want: 1. / 2},
		{gpus: 3, x: 4, y: 2, jobs: 2, weight: 2, comment: modest, want: 2. / 3},
		{gpus: 1, x: 1, y: 2, jobs: 3, weight: 1, comment: little, want: 1. / 2}, // of y's jobs each has half of its tenant's turns
		{gpus: 1, x: 2, y: 1, jobs: 3, weight: 2, comment: little, want: 2. / 3},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			w := slicedAmong(t, simtest.Nodes("n", "v100", 1, c.gpus), c.jobs, "x", "y")
			w.Rules.Weights = map[string]int64{"x": c.weight, "y": 1}
			of := map[string][]cluster.JobID{"x": shares(w, "x", c.x, c.comment), "y": shares(w, "y", c.y, c.comment)}
			w.Run(20 * cluster.Minute)
			since := map[cluster.JobID]cluster.Instant{}
			w.Check = func(loop.Report) {
				for _, ids := range of {
					for _, id := range ids {
						if w.Job(id).State != cluster.Suspended {
							delete(since, id)
						} else if since[id] == 0 {
							since[id] = w.Now()
						} else if long := w.Now().Sub(since[id]); long > tickets.Longest+3*w.Settings.Interval {
							t.Errorf("job %s has been suspended for %s", id, long)
						}
					}
				}
			}
			done := func(tenant string) (sum cluster.Span) {
				for _, id := range of[tenant] {
					sum += w.Progress(id)
				}
				return sum
			}
			before, used := map[string]cluster.Span{"x": done("x"), "y": done("y")}, map[string]cluster.GPUTime{"x": w.Used("x"), "y": w.Used("y")}
			w.Run(12 * cluster.Minute)
			x, y := float64(done("x")-before["x"]), float64(done("y")-before["y"])
			gotX, gotY := float64(w.Used("x")-used["x"]), float64(w.Used("y")-used["y"])
			t.Logf("x did %.3f of the work, and was charged %.3f of the GPU time; all GPUs did %.3f", x/(x+y), gotX/(gotX+gotY), (x+y)/float64(c.gpus)/float64(12*cluster.Minute))
			for name, got := range map[string]float64{"work": x / (x + y), "GPU time": gotX / (gotX + gotY)} {
				if got < 0.95*c.want || got > 1.05*c.want {
					t.Errorf("x had %.3f of the %s, want %.3f", got, name, c.want)
				}
			}
		})
	}
}

// Rounds are ten seconds apart. Turns that are no multiple of that are as long as they should be in the mean.
func TestTurnsBetweenRounds(t *testing.T) {
	for _, c := range []struct {
		x, y    int64 // weights
		quantum cluster.Span
	}{{334, 333, 30 * cluster.Second}, {51, 50, 30 * cluster.Second}, {51, 50, cluster.Minute}, {11, 10, cluster.Minute}, {7, 4, 45 * cluster.Second}, {11, 9, 45 * cluster.Second}, {1, 1, 35 * cluster.Second}} {
		w := slicedOn(t, simtest.Nodes("n", "v100", 1, 1))
		w.Rules.Weights = map[string]int64{"x": c.x, "y": c.y}
		w.Settings.Slices.Quantum = c.quantum
		x, y := shares(w, "x", 1, modest)[0], shares(w, "y", 1, modest)[0]
		w.Run(20 * cluster.Minute)
		didX, didY := w.Progress(x), w.Progress(y)
		w.Run(2 * cluster.Hour)
		didX, didY = w.Progress(x)-didX, w.Progress(y)-didY
		got, want := float64(didX)/float64(didX+didY), float64(c.x)/float64(c.x+c.y)
		if got < want-0.01 || got > want+0.01 {
			t.Errorf("weights %d and %d with turns of %s: x did %.3f of the work, want %.3f", c.x, c.y, c.quantum, got, want)
		}
	}
}

// A light job is suspended for five minutes at most, and so has more than its part where that is small. A heavier tenant lends as much as it leaves to it,
// and nothing counts as lent where turns give each tenant what it is due.
func TestSlicesOfALightTenant(t *testing.T) {
	for _, weight := range []int64{2, 5, 9} {
		w := slicedOn(t, simtest.Nodes("n", "v100", 1, 1))
		w.Rules.Weights = map[string]int64{"x": weight, "y": 1}
		shares(w, "x", 1, modest)
		shares(w, "y", 1, modest)
		w.Run(30 * cluster.Minute)
		began, before := w.Now(), w.Standing("x", "v100").Deficit
		x, y := w.Used("x"), w.Used("y")
		w.Run(6 * cluster.Hour)
		span := float64(w.Now().Sub(began))
		x, y = w.Used("x")-x, w.Used("y")-y
		got, due := float64(x)/float64(x+y), float64(weight)/float64(weight+1)
		lent := float64(w.Standing("x", "v100").Deficit-before) / span
		t.Logf("weight %d: x had %.3f of the GPU time, is due %.3f, and lent %.3f", weight, got, due, lent)
		if want := min(due, 5./6); got < want-0.005 || got > want+0.005 {
			t.Errorf("weight %d: x had %.3f of the GPU time, want %.3f", weight, got, want)
		}
		if want := due - got; lent < want-0.005 || lent > want+0.005 {
			t.Errorf("weight %d: %.3f of the GPU time counts as lent, want %.3f", weight, lent, want)
		}
	}
}

// Whatever the weights of two tenants, and in one account or in two, the owner of jobs gains nothing by the same strategies: the partner has its part of the
// GPU by weight, or more where that suspends no job for longer than the bound. An owner that resumes jobs in its turns pays
// for what they have by that. Where jobs wait it may be behind by a term and reclaim.threshold, which is
// less than 4 % of eight hours.
func TestNoGainByTickets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, jobs := rapid.SampledFrom(strategies()).Draw(rt, "strategy"), rapid.IntRange(2, 3).Draw(rt, "jobs on a GPU")
		if jobs == 3 && s.comment == modest {
			s.comment, s.play = little, nil // where three share a GPU, all run once an owner resumes one
		}
		x, y := rapid.Int64Range(1, 5).Draw(rt, "weight of x"), rapid.Int64Range(1, 5).Draw(rt, "weight of y")
		w, accounts := slicedAmong(t, simtest.Nodes("n", "v100", 1, 1), jobs, "x", "y"), []string{"x"}
		if jobs == 3 && s.jobs == 1 && rapid.Bool().Draw(rt, "in two accounts") { // all jobs have room on the GPU
			accounts = []string{"x1", "x2"}
			first := rapid.Int64Range(1, 9).Draw(rt, "part of x1")
			nodes := simtest.Nodes("n", "v100", 1, 1)
			nodes[0].Shards = 2 * w.Settings.Slices.Most()
			w.Virtual = sim.NewVirtual(simtest.Start, nodes, []cluster.Account{{Name: "root"}, {Name: "x", Parent: "root", Shares: x}, {Name: "y", Parent: "root", Shares: y},
				{Name: "x1", Parent: "x", Shares: first}, {Name: "x2", Parent: "x", Shares: 10 - first}})
			w.Loop.Cluster, w.Gate, w.Rules.TenantLevel = w.Virtual, cluster.Hour, 2
		} else {
			w.Rules.Weights = map[string]int64{"x": x, "y": y}
		}
		got, other, charged, stops := s.plays(t, w, 8, accounts, []string{"y"})
		if due := float64(y) / float64(x+y); other < due-0.04 && got > charged+0.02 {
			rt.Errorf("%s with weights %d and %d in %d accounts: goes on as on %.3f GPUs, and is charged for %.3f; its partner as on %.3f, is due %.3f, and was stopped %d times", s.name, x, y, len(accounts), got, charged, other, due, stops)
		}
	})
}
