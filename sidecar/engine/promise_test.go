package engine_test

import (
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// Three tenants with gangs of 1 to 4 GPUs and different speedups share two models, with the settings of the e2e test of
// presets. Every tenant gets on each model what the policy promises it there, within a tenth of its whole due or one term
// of its largest gang.
func TestPresetsKeepTheirPromise(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"oef:noncoop", "oef:coop", "gavel:las", "gavel:hierarchical", "gavel:makespan", "gandiva-fair", "drf"} {
		for _, terms := range []int{12, 96} {
			w := newMarket(t, 2, 2, preset.OfJobs(by), engine.Divide, "nlp", "speech", "vision")
			w.Settings = cluster.Settings{
				Preset: by, Divide: by, DivideJobs: preset.OfJobs(by), DivideEvery: 10, Interval: second, Term: 20 * second,
				MinLease: 6 * second, Notice: 3 * second, GrantTimeout: 15 * second,
				GateTTL: 2 * minute, RhoSelect: 16, CreditCap: 2 * minute,
				BurstMaxMilli: 2000, Window: 14 * cluster.Day, Threshold: second, NewFirst: true, NewSharePercent: 50,
				Signal: "USR1", SignalTo: "steps", SiteFactor: 1_000_000,
			}
			w.SetShares("speech", 2)
			for _, gang := range []int{1, 1, 1, 1, 1, 2, 2, 4} {
				for _, x := range []struct {
					tenant string
					fast   int // steps/s on a v100, one on a k80
				}{{"nlp", 4}, {"vision", 1}, {"speech", 2}} {
					w.submit(x.tenant, gang, forever, func(k *sim.Work) {
						k.Comment = fmt.Sprintf("kind=%s,steps/s.k80=10,steps/s.v100=%d", x.tenant, 10*x.fast)
					})
				}
			}
			span := w.Settings.Term
			w.Run(2 * span)
			before := w.Last.State.Ledger.Tenants
			w.Run(cluster.Span(terms) * span)
			whole := map[string]cluster.GPUTime{}
			for i, row := range w.Last.State.Ledger.Tenants {
				whole[row.Tenant] += row.Due - before[i].Due
			}
			for i, row := range w.Last.State.Ledger.Tenants {
				got, due := row.Alloc-before[i].Alloc, row.Due-before[i].Due
				if off := max(got-due, due-got); off > max(whole[row.Tenant]/10, cluster.Times(4, span+2*second)) {
					t.Errorf("%s over %d terms: %s got %.0f GPU-s on %s, and was due %.0f", by, terms, row.Tenant, float64(got)/1000, row.Pool, float64(due)/1000)
				}
			}
			w.books()
		}
	}
}
