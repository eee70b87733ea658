package steady_test

import (
	"context"
	"testing"

	"github.com/fairlease/fairlease/research/steady"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
)

// Two users with opposite speedups under each preset that divides models: trading raises both against the same
// share of every model for both; nobody envies in the cooperative program; in the other one both do the same.
func TestRates(t *testing.T) {
	fleet, err := experiment.ParseFleet("3x4:k80+1x4:v100")
	if err != nil {
		t.Fatal(err)
	}
	rates := func(by string) map[string]float64 {
		s := experiment.Default()
		s.Scheduler, s.Fleet = by, fleet
		s.Load = steady.Load("two", []steady.User{{Name: "a", Kind: "lstm", Jobs: 16, GPUs: 1}, {Name: "b", Kind: "vae", Jobs: 16, GPUs: 1}})
		s.Speeds = sim.Speeds{{Kind: "lstm"}: {"v100": {Speed: 4 * sim.Reference}}, {Kind: "vae"}: {"v100": {Speed: sim.Reference}, "k80": {Speed: sim.Reference}}}
		s.Speeds[sim.Task{Kind: "lstm"}]["k80"] = sim.Rate{Speed: sim.Reference}
		s.Weights = experiment.EqualWeights(experiment.Survey(s.Load))
		out, err := steady.Rates(context.Background(), s, 2*cluster.Hour, 8*cluster.Hour)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %v", by, out)
		return out
	}
	alone := rates("fairlease:gandiva-fair:no-trade")
	traded := rates("fairlease:gandiva-fair")
	for user, was := range alone {
		if traded[user] < 1.1*was {
			t.Errorf("trading: %s does %.2f, without it %.2f", user, traded[user], was)
		}
	}
	// The throughput of each tenant's entitlement: 2 v100 and 6 k80 of its own are 14 to a, 8 to
	// b.
	if alone["a"] > 14 || alone["a"] < 13 || alone["b"] > 8 || alone["b"] < 7.3 {
		t.Errorf("without trading a does %.2f of 14, b %.2f of 8", alone["a"], alone["b"])
	}
	coop := rates("fairlease:oef:coop")
	if total := coop["a"] + coop["b"]; total < traded["a"]+traded["b"]-1 {
		t.Errorf("the cooperative program does %.2f in all, trading %.2f", total, traded["a"]+traded["b"])
	}
	if equal := rates("fairlease:oef:noncoop"); equal["a"] > 1.1*equal["b"] || equal["b"] > 1.1*equal["a"] {
		t.Errorf("equal throughput: a does %.2f, b %.2f", equal["a"], equal["b"])
	}
}
