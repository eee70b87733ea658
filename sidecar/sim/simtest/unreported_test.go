package simtest

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/tests/seeds"
)

// Two commands that are far better on one model than the other, for opposite users: with nobody reporting, gavel:las-jobs learns that from run
// times and counters. Without them it cannot: in some worlds placement is right by luck, so that is judged over all.
func TestSpeedupsAreLearntFromJobsThatReportNothing(t *testing.T) {
	seeds.Slow(t)
	at := func(old, fast float64) map[string]sim.Rate {
		return map[string]sim.Rate{"old": {Speed: sim.Speed(old * float64(sim.Reference))}, "fast": {Speed: sim.Speed(fast * float64(sim.Reference))}}
	}
	var blind, learnt float64
	for seed := range uint64(3) {
		x := Fleet{Tenants: 4, Commands: 2, Jobs: 3, Nodes: 1, Seed: seed, Work: cluster.Hour / 2, Speeds: sim.Speeds{{Kind: "same", GPUs: 1}: at(1, 1), {Kind: "far", GPUs: 1}: at(0.2, 1)}}
		rate := func(know Knowledge) float64 {
			got, last, err := x.Rate(know, 4*cluster.Day, 2*cluster.Day)
			if err != nil {
				t.Fatal(err)
			}
			if know.Blind && len(last.State.Completions)+len(last.State.Usages) > 0 {
				t.Error("evidence is kept though it is turned off")
			}
			return got
		}
		declared, without, with := rate(Knowledge{Declared: true}), rate(Knowledge{Blind: true}), rate(Knowledge{})
		t.Logf("seed %d: declared %.2f, learnt %.2f, blind %.2f", seed, declared, with, without)
		if with < 0.9*declared {
			t.Errorf("seed %d: learnt %.2f, want 90 %% of the declared %.2f", seed, with, declared)
		}
		blind, learnt = blind+without, learnt+with
	}
	if blind > 0.95*learnt {
		t.Errorf("without evidence %.2f, with it %.2f: it should gain", blind, learnt)
	}
}

// Two tenants of commands whose jobs take e times as long or as short from run to run, one 6 times as fast on the other model, one 1.25 times. With
// nobody reporting they trade once run times show that, and both have more than without trades.
func TestRunTimesOfTheTypeItselfPriceTrades(t *testing.T) {
	x := Traders(1)
	share, err := x.Traded(Knowledge{Blind: true}, 100, cluster.Day)
	if err != nil {
		t.Fatal(err)
	}
	got, err := x.Traded(Knowledge{}, 500, cluster.Day)
	if err != nil {
		t.Fatal(err)
	}
	if share.Traded >= 0 || got.Traded < 50 || got.Traded > 450 {
		t.Errorf("the first trade comes after %d jobs, and after %d without evidence", got.Traded, share.Traded)
	}
	for tenant, rate := range share.Late {
		t.Logf("%s: %.2f with trades, %.2f without", tenant, got.Late[tenant], rate)
		if got.Late[tenant] < 1.03*rate {
			t.Errorf("%s: %.2f with trades, %.2f without", tenant, got.Late[tenant], rate)
		}
	}
}
