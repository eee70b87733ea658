package engine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/tests/seeds"
)

// sharing lists the presets that give every job a part of the GPUs, for as long as jobs neither come nor go. Under the others most jobs wait, run
// on GPUs that are due to nobody, or are due another part every term.
var sharing = []string{
	"drf", "gandiva-fair", "gandiva-fair:no-trade", "gavel:ftf-blind", "gavel:las", "gavel:las-blind", "gavel:las-jobs",
	"gavel:makespan", "gavel:makespan-blind", "oef:coop", "oef:noncoop",
}

// Tenants with gangs of 1 to 4 GPUs and different speedups share two models, with the settings of the e2e test of presets. At every time, what a
// tenant got of a model is near what it is due there. The unit is a term of the largest gang. One is for the choice: whole gangs run or wait. One
// is for hand-overs: a job that moves begins late. Two are for gangs that run early since GPUs would idle: half of the largest gang, in gangs; with the
// tenants of the e2e test none is. GPU time that no tenant with an entitlement could use is not due: tenants lack it in proportion.
func TestPresetsKeepTheirPromise(t *testing.T) {
	t.Parallel()
	for _, by := range sharing {
		for seed := range uint64(seeds.Some(1, 4)) {
			t.Run(fmt.Sprint(by, "/", seed), func(t *testing.T) {
				t.Parallel()
				w, most := promising(t, by, seed), 2.0
				if seed > 0 {
					most = 4
				}
				span := w.Settings.Term
				w.Run(2 * span) // the first leases are granted before the policy has answered
				before := w.Last.State.Ledger.Tenants
				for n := range 96 {
					w.Run(span)
					for i, off := range broken(before, w.Last.State.Ledger.Tenants, len(w.Last.State.Ledger.Pools)) {
						if math.Abs(off) > most*float64(cluster.Times(4, span)) {
							t.Fatalf("after %d terms %s is off by %.2f terms of the largest gang on %s", n+1, before[i].Tenant, off/float64(cluster.Times(4, span)), before[i].Pool)
						}
					}
				}
				w.books()
			})
		}
	}
}

// promising is a cluster of two models under a preset. With seed 0 its tenants are those of the e2e test, else drawn ones with twice as much demand as there
// are GPUs in all.
func promising(t *testing.T, by string, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 3))
	w := newMarket(t, 2, 2, preset.OfJobs(by), engine.Divide, "nlp", "speech", "vision")
	w.Settings = cluster.Settings{
		Preset: by, Divide: by, DivideJobs: preset.OfJobs(by), DivideEvery: 10, Interval: second, Term: 20 * second,
		MinLease: 6 * second, Notice: 3 * second, GrantTimeout: 15 * second,
		GateTTL: 2 * minute, RhoSelect: 16, CreditCap: 2 * minute,
		BurstMaxMilli: 2000, Window: 14 * cluster.Day, Threshold: second, NewFirst: true, NewSharePercent: 50,
		Signal: "USR1", SignalTo: "steps", SiteFactor: 1_000_000,
	}
	w.SetShares("speech", 2)
	for _, x := range []struct {
		tenant string
		fast   int // steps/s on a v100, one on a k80
	}{{"nlp", 4}, {"vision", 1}, {"speech", 2}} {
		gangs := []int{1, 1, 1, 1, 1, 2, 2, 4}
		if seed > 0 {
			gangs, x.fast = nil, 1+r.IntN(6)
			for sum := 0; sum < 16; sum += gangs[len(gangs)-1] {
				gangs = append(gangs, []int{1, 1, 2, 4}[r.IntN(4)])
			}
		}
		for _, gang := range gangs {
			w.submit(x.tenant, gang, forever, func(k *sim.Work) {
				k.Comment = fmt.Sprintf("kind=%s,steps/s.k80=10,steps/s.v100=%d", x.tenant, 10*x.fast)
			})
		}
	}
	return w
}

// broken returns, by row, the GPU time that a tenant got of a model beyond what it was due there since before, without what all lack.
func broken(before, now []cluster.TenantPool, pools int) []float64 {
	off, due := make([]float64, len(now)), make([]float64, len(now))
	for p := range pools {
		lost, all := 0.0, 0.0
		for i := p; i < len(now); i += pools {
			if due[i] = float64(now[i].Due - before[i].Due); due[i] > 0 {
				off[i] = float64(now[i].Alloc-before[i].Alloc) - due[i]
				lost, all = lost+off[i], all+due[i]
			}
		}
		for i := p; i < len(now); i += pools {
			if due[i] > 0 {
				off[i] -= lost * due[i] / all
			}
		}
	}
	return off
}
