package engine

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
)

// lanes counts, in each pool, the GPUs that each tenant binds and those that its lane keeps for young jobs.
func (h *hall) lanes(in *lease.Input) {
	if h.stops.Rule().Off() || policy.TenantBlind(h.Settings.Divide) {
		return
	}
	n := len(h.Pools)
	in.Lanes = make([]lease.Lane, n)
	for p := range h.Pools {
		a := &h.Ledger.Pools[p]
		in.Lanes[p].GPUs = a.GPUs - a.BadGPUs
	}
	for at := range h.Ledger.Tenants {
		row := &h.Ledger.Tenants[at]
		lane := int(min(row.Young, row.Own()/2) / cluster.WholeGPU)
		in.Tenants[at/n].Shares[at%n].Lane = lane
		in.Lanes[at%n].Keeps += lane
	}
	for i := range h.Jobs {
		st := &h.Jobs[i]
		if !st.Live || len(st.Pools) == 0 {
			continue
		}
		l := h.Leases[i]
		if l == nil && !st.Runs || l != nil && st.Stoppable && l.End.Sub(h.Now) <= max(budget.BoundFor, 2*h.Settings.Term) {
			continue
		}
		p := st.Pools[0]
		gpus := st.Held
		if l != nil {
			p, gpus = h.Pool(l.Pool), l.GPUs
		}
		if p < 0 {
			continue
		}
		in.Lanes[p].Bound += gpus
		if st.Queue >= 0 {
			in.Tenants[st.Queue].Shares[p].Bound += gpus
		}
	}
}

// youth brings up to now how many GPUs tenants' young jobs want on average: what arrives, each job for as long as its stop
// budget lets it be stopped (stop.allowance), over about a day. Gangs beyond their tenant's due fit no lane.
func (h *hall) youth() {
	if h.stops.Rule().Off() || h.Snapshot.Ledger.At == 0 {
		return
	}
	gone := int64(min(h.Now.Sub(h.Snapshot.Ledger.At), cluster.Day))
	for at := range h.Ledger.Tenants {
		t := &h.Ledger.Tenants[at]
		t.Young -= cluster.MicroGPU(int64(t.Young) * gone / int64(cluster.Day))
	}
	for i := range h.Jobs {
		st := &h.Jobs[i]
		if !h.Comes(i) || st.Tenant < 0 || !st.Live || len(st.Pools) == 0 {
			continue
		}
		t := &h.Ledger.Tenants[st.Tenant*len(h.Pools)+st.Pools[0]]
		if gpus := cluster.MicroGPU(st.GPUs) * cluster.WholeGPU; gpus <= t.Own() {
			t.Young += cluster.MicroGPU(int64(gpus) * int64(h.Settings.StopAllowance) / int64(cluster.Day))
		}
	}
}
