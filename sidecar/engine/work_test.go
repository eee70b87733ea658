package engine_test

import (
	"slices"
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
	for r := range w.Last.State.All() {
		work[r.Tenant] += cluster.Received(r)
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

// A tenant that is owed K80s sells most of them: as much of the debt is owed in V100s then. When the trade is over, all accounts are
// as they were.
func TestDebtsGoWithTradesAndComeBack(t *testing.T) {
	s := bourse("gandiva-fair", 6, 1.2, 6)
	decide := func(d *cluster.Allocation) cluster.Plan {
		s.Allocation = d
		p := engine.Decide(s)
		s.Ledger, s.Parties, s.Round = p.State.Ledger, p.State.Parties, s.Round+1
		return p
	}
	d := engine.Divide(*decide(nil).AllocationRequest)
	if len(d.Trades) != 1 || d.Trades[0].FastTo.Tenant != "t01" {
		t.Fatalf("trades %+v", d.Trades)
	}
	debt := cluster.Times(100, hour)
	for i, owed := range map[int]cluster.GPUTime{0: -debt, 2: debt} { // of k80s, by t00 to t01
		s.Ledger.Tenants[i].Owed, s.Ledger.Tenants[i].Lots = owed, []cluster.Lot{{Start: s.Now - 1, Time: owed}}
		s.Ledger.Tenants[i].Deficit = owed / 1000
	}
	before := s.Ledger.Tenants
	p, trade := decide(&d), d.Trades[0]
	if len(p.State.Ledger.Conversions) != 1 {
		t.Fatalf("conversions %+v", p.State.Ledger.Conversions)
	}
	part := cluster.GPUTime(int64(debt) * int64(trade.SlowGPUs) / (2 * int64(cluster.WholeGPU)))
	fast := cluster.GPUTime(float64(part) * float64(trade.FastGPUs) / float64(trade.SlowGPUs))
	for i, want := range []cluster.GPUTime{part - debt, -fast, debt - part, fast} {
		if r := p.State.Ledger.Tenants[i]; max(r.Owed-want, want-r.Owed) > 10 {
			t.Errorf("%s is owed %.2f GPU-hours of %s, want %.2f", r.Tenant, r.Owed.Hours(), r.Pool, want.Hours())
		}
	}
	over := d
	over.Trades, over.Undone = nil, []cluster.Undone{{ID: trade.ID, FastGPUs: trade.FastGPUs, SlowGPUs: trade.SlowGPUs, Why: "left", All: true}}
	p = decide(&over)
	for i, was := range before {
		if r := p.State.Ledger.Tenants[i]; r.Owed != was.Owed || r.Deficit != was.Deficit || !slices.Equal(r.Lots, was.Lots) {
			t.Errorf("%s in %s: %d owed, a deficit of %d, lots %v; before the trade %d, %d and %v", r.Tenant, r.Pool, r.Owed, r.Deficit, r.Lots, was.Owed, was.Deficit, was.Lots)
		}
	}
	if len(p.State.Ledger.Conversions) > 0 {
		t.Errorf("the trade is over: %+v", p.State.Ledger.Conversions)
	}
	decide(&d)
	s.Settings.Divide, s.Settings.DivideJobs = "", false // another preset
	p = decide(&d)
	for i, was := range before {
		if r := p.State.Ledger.Tenants[i]; r.Owed != was.Owed || r.Deficit != was.Deficit {
			t.Errorf("another preset: %s in %s is owed %d, want %d", r.Tenant, r.Pool, r.Owed, was.Owed)
		}
	}
}
