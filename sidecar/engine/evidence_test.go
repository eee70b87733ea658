package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// Property: whatever jobs show by run times without bounds, and whatever others show, trades are the same, with the same prices.
func TestNoEstimatePricesATrade(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	nodes := append(append(simtest.Nodes("k", "k80", 4, 4), simtest.Nodes("p", "p100", 2, 4)...), simtest.Nodes("v", "v100", 1, 4)...)
	trades, differ := 0, 0
	for range 20 {
		set := simtest.Product()
		set.Preset, set.Divide, set.DivideEvery = preset.GandivaFair, preset.GandivaFair, 1
		w := simtest.New(t, set, nodes, "a", "b", "c")
		for _, tenant := range []string{"a", "b", "c"} {
			for k := range 2 {
				comment := fmt.Sprintf("kind=k%d,steps/s.k80=1,steps/s.v100=%.3f", k, 1+5*rng.Float64())
				if rng.IntN(2) == 0 {
					comment += fmt.Sprintf(",steps/s.p100=%.3f", 1+2*rng.Float64())
				}
				for range 8 {
					w.Virtual.Submit(sim.Work{Name: "x", User: tenant + "-u", Account: tenant, Partition: "gpu", Comment: comment, Request: simtest.Gang(1), Runs: cluster.Day})
				}
			}
		}
		w.Run(3 * set.Interval)
		snap, _, err := w.Loop.Preview(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		snap.Allocation = nil
		answer := func() cluster.Allocation {
			q := engine.Decide(snap).AllocationRequest
			if q == nil {
				t.Fatal("no question")
			}
			for _, b := range q.Bids {
				if b.Priced != nil && !reflect.DeepEqual(b.Priced.Speeds, b.Speeds) {
					differ++
				}
			}
			return engine.Divide(*q)
		}
		want := answer()
		for _, tenant := range []string{"a", "b", "c"} {
			for k := range 2 {
				c := cluster.Completion{Kind: cluster.Kind(fmt.Sprintf("%s/k%d", tenant, k)), Gang: 1, Models: []string{"k80", "p100", "v100"}, At: snap.Now}
				for range c.Models {
					c.Rates = append(c.Rates, cluster.RunRate{Rate: 1e-4 * (1 + 9*rng.Float64()), Spread: 0.3 * rng.Float64(), Jobs: 9})
				}
				snap.Completions = append(snap.Completions, c)
			}
		}
		for k := range 4 { // of a tenant that does not trade
			snap.Completions = append(snap.Completions, cluster.Completion{Kind: cluster.Kind(fmt.Sprintf("d/k%d", k)), Gang: 1, Models: []string{"k80", "p100", "v100"}, At: snap.Now,
				Rates: []cluster.RunRate{{Rate: 1, Jobs: 9, Least: []float64{0, 9, 9}}, {Rate: 0.1, Jobs: 9, Least: []float64{0.1, 0, 1}}, {Rate: 0.1, Jobs: 9, Least: []float64{0.1, 1, 0}}}})
		}
		if got := answer(); !reflect.DeepEqual(got.Trades, want.Trades) {
			t.Fatalf("with estimates other trades:\n%+v\n%+v", got.Trades, want.Trades)
		}
		trades += len(want.Trades)
	}
	if trades == 0 || differ == 0 {
		t.Errorf("%d trades, and estimates changed %d bids: nothing was tested", trades, differ)
	}
}

// Run times are learnt from jobs that end, by what their user typed; a kind that is declared wins; a job that does not complete
// is a bound.
func TestRunTimesAreLearnt(t *testing.T) {
	set := simtest.Product()
	set.Preset, set.Divide, set.DivideJobs, set.DivideEvery = "gavel:las", "gavel:las", true, 1
	w := simtest.New(t, set, simtest.Nodes("v", "v100", 1, 8), "a")
	job := func(line, comment string, runs cluster.Span, outcome string) {
		w.Virtual.Submit(sim.Work{Name: "run1", User: "u", Account: "a", Partition: "gpu", Line: line, Dir: "/d", Comment: comment, Request: simtest.Gang(1), Runs: runs, Outcome: outcome})
	}
	for i := range 3 {
		job(fmt.Sprintf("sbatch --gres=gpu:1 train.sh --seed %d", i), "", cluster.Hour/2, "")
	}
	job("sbatch train.sh --seed 99", "", cluster.Hour/4, "FAILED")
	job("sbatch train.sh --seed 7", "kind=mine", cluster.Hour/2, "")
	job("sbatch other.sh", "", cluster.Minute/2, "")
	w.Run(2 * cluster.Hour)
	got := map[string][2]int{} // completed and others
	for _, c := range w.Last.State.Completions {
		n := got[c.Kind.Name()]
		for _, j := range c.Jobs {
			if j.Done {
				n[0]++
			} else {
				n[1]++
			}
		}
		got[c.Kind.Name()] = n
	}
	if len(got) != 2 || got["mine"] != [2]int{1, 0} {
		t.Fatalf("learnt %v", got)
	}
	for kind, n := range got {
		if kind != "mine" && n != [2]int{3, 1} {
			t.Errorf("learnt %v", got)
		}
	}
	set.NoCompletions = true
	w.Settings = set
	before := len(w.Last.State.Completions)
	job("sbatch third.sh", "", cluster.Hour/2, "")
	w.Run(cluster.Hour)
	if n := len(w.Last.State.Completions); n != before {
		t.Errorf("%d kinds, though run times are learnt from no more", n)
	}
}
