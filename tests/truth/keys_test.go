package truth

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// Keys that a schedule may set, each with another value than the default, whose effect the world below can show.
var otherValues = []string{
	"lease: {term: 30m}", "lease: {min: 10m}", "lease: {notice: 3m}",
	"stop: {allowance: 2m}", "stop: {overhead: 9}",
	"reclaim: {threshold: 0s}", "recall: {first_lease: false}", "credit: {cap: 10m}", "burst: {max: 1}",
	"users: equal", "jobs: {order: rho}", "jobs: {new_first: false}", "jobs: {urgent_qos: [high]}", "jobs: {weights: {high: 5}}", "tenants: {weights: {a: 1, b: 3}}",
	"models: {chooser: debt}", "models: {chooser: stride}", "models: {chooser: oef}",
	"bind: {quiet: 0s, max: 50}", "jobs: {order: rho, patience: 1h}", "cells: {chooser: fifo}",
}

// Each of these keys changes some decision of a drawn world beside a preset of each kind, or the check of the configuration refuses the
// pair.
func TestEveryKeyDecidesSomething(t *testing.T) {
	for _, preset := range []string{"astraea", "drf", "gavel:las"}[:seeds.Some(2, 3)] {
		usual := decisions(t, preset, "")
		for _, other := range otherValues {
			t.Run(preset+" "+other, func(t *testing.T) {
				t.Parallel()
				c, err := config.Parse("f.yaml", []byte("preset: "+preset+"\n"+other+"\n"), nil)
				if err != nil {
					t.Fatal(err)
				}
				if refused := c.NoEffect(); len(refused) > 0 {
					return
				}
				if decisions(t, preset, other) == usual {
					t.Errorf("nothing is decided otherwise")
				}
			})
		}
	}
}

// decisions sums up what is decided in a world for some hours.
func decisions(t *testing.T, preset, other string) string {
	t.Helper()
	c, err := config.Parse("f.yaml", []byte("preset: "+preset+"\n"+other+"\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	set := c.Settings()
	set.Interval = cluster.Minute
	w := simtest.New(t, set, append(simtest.Nodes("k", "k80", 1, 8), simtest.Nodes("v", "v100", 2, 8)...), "a", "b")
	w.Gate, w.Loop.Divide, w.Rules.Weights = set.GateTTL, engine.Divide, c.Rules().Weights
	n := 0
	submit := func(jobs int, hours cluster.Span) {
		for range jobs {
			n++
			gang := []int{1, 2, 4, 8}[n%4]
			work := sim.Work{Name: "train", User: []string{"x", "y", "z"}[n%3], Account: []string{"a", "b"}[n%2], Partition: "gpu", Request: simtest.Gang(gang), Runs: hours * cluster.Hour,
				Comment: fmt.Sprintf("kind=k%d,steps/s.v100=%d,steps/s.k80=10", n%5, 10+10*(n%3))}
			if n%7 == 0 {
				work.QOS = "high"
			}
			work.NoRequeue = n%11 == 0
			w.Virtual.Submit(work)
		}
	}
	sum := sha256.New()
	w.Check = func(r loop.Report) {
		if err := json.NewEncoder(sum).Encode([]any{r.Plan.Actions, r.Plan.State.Leases, r.Plan.State.Claims}); err != nil {
			t.Fatal(err)
		}
	}
	for hour := range cluster.Span(10) {
		submit(6, 1+hour%4*3)
		w.Run(cluster.Hour)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}
