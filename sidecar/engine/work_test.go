package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// Two tenants trade: a gets nearly all V100s, b most K80s. By GPU time a gets less than it is due, and b more. By work both
// get at least their due, as tenants and their jobs. No account of GPU time depends on that.
func TestATradeDoesNotLowerRho(t *testing.T) {
	w := newMarket(t, 3, 1, false, engine.Divide, "a", "b")
	w.Settings.Divide = "gandiva-fair"
	w.declared(map[string][2]float64{"lstm": {1, 6}, "vae": {1, 1.2}})
	for _, job := range []struct{ tenant, kind string }{{"a", "lstm"}, {"b", "vae"}} {
		for range 16 {
			w.submit(job.tenant, 1, forever, func(k *sim.Work) { k.Comment = "kind=" + job.kind })
		}
	}
	w.Run(48 * term)
	if d := w.Last.State.Allocation; d == nil || len(d.Trades) == 0 {
		t.Fatalf("nobody traded: %+v", d)
	}
	got, due := map[string]cluster.GPUTime{}, map[string]cluster.GPUTime{}
	for _, r := range w.Last.State.Ledger.Tenants {
		got[r.Tenant], due[r.Tenant] = got[r.Tenant]+r.Alloc, due[r.Tenant]+r.Due
	}
	if by := cluster.RhoOf(got["a"], cluster.Times(8, 48*term)); by > 900_000 {
		t.Errorf("a gave K80s for fewer V100s, and received %s of its share in GPU time", by)
	}
	for _, row := range w.Last.Tenants {
		if row.Rho < 980_000 || row.Rho != row.RhoAll || row.Rho != w.Last.Tenants[w.row(row.Tenant)].Rho {
			t.Errorf("%s in %s: rho %s, %s since the beginning", row.Tenant, row.Pool, row.Rho, row.RhoAll)
		}
	}
	work := map[string]cluster.GPUTime{}
	for i := range w.Last.State.Records {
		r := &w.Last.State.Records[i]
		received, _ := r.Work()
		work[r.Tenant] += received
	}
	for i := range w.Last.State.Ledger.Tenants {
		r := &w.Last.State.Ledger.Tenants[i]
		work[r.Tenant] -= r.Alloc + r.Extra.Alloc
	}
	for tenant, rest := range work {
		if max(rest, -rest) > cluster.Times(1, minute) {
			t.Errorf("the jobs of %s did %.3f reference GPU-hours more than their tenant", tenant, rest.Hours())
		}
	}
	w.books()
}

// row gives the first row of a tenant in the standing.
func (w *world) row(tenant string) int {
	for i := range w.Last.Tenants {
		if w.Last.Tenants[i].Tenant == tenant {
			return i
		}
	}
	return -1
}
