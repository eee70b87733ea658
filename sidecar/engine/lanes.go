package engine

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
)

// lanes counts, in each pool, the GPUs that each tenant binds and those that its lane keeps for young jobs.
func (h *hall) lanes(in *lease.Input) {
	if h.rule().Off() || policy.TenantBlind(h.set.Divide) {
		return
	}
	n := len(h.pools)
	in.Lanes = make([]lease.Lane, n)
	for p := range h.pools {
		a := &h.ledger.Pools[p]
		in.Lanes[p].GPUs = a.GPUs - a.BadGPUs
	}
	for at := range h.ledger.Tenants {
		row := &h.ledger.Tenants[at]
		lane := int(min(row.Young, row.Own()/2) / cluster.WholeGPU)
		in.Tenants[at/n].Shares[at%n].Lane = lane
		in.Lanes[at%n].Keeps += lane
	}
	for i := range h.standing {
		st := &h.standing[i]
		if !st.there || len(st.pools) == 0 {
			continue
		}
		l := h.leases[i]
		if l == nil && !st.runs || l != nil && st.stops && l.End.Sub(h.now) <= max(boundFor, 2*h.set.Term) {
			continue
		}
		p := st.pools[0]
		gpus := st.held
		if l != nil {
			p, gpus = h.pool(l.Pool), l.GPUs
		}
		if p < 0 {
			continue
		}
		in.Lanes[p].Bound += gpus
		if st.queue >= 0 {
			in.Tenants[st.queue].Shares[p].Bound += gpus
		}
	}
}

// youth brings up to now how many GPUs tenants' young jobs want on average: what arrives, each job for as long as its stop
// budget lets it be stopped (stop.allowance), over about a day. Gangs beyond their tenant's due fit no lane.
func (h *hall) youth() {
	if h.rule().Off() || h.s.Ledger.At == 0 {
		return
	}
	gone := int64(min(h.now.Sub(h.s.Ledger.At), cluster.Day))
	for at := range h.ledger.Tenants {
		t := &h.ledger.Tenants[at]
		t.Young -= cluster.MicroGPU(int64(t.Young) * gone / int64(cluster.Day))
	}
	for i := range h.standing {
		st := &h.standing[i]
		if !h.comes(i) || st.tenant < 0 || !st.there || len(st.pools) == 0 {
			continue
		}
		t := &h.ledger.Tenants[st.tenant*len(h.pools)+st.pools[0]]
		if gpus := cluster.MicroGPU(st.gpus) * cluster.WholeGPU; gpus <= t.Own() {
			t.Young += cluster.MicroGPU(int64(gpus) * int64(h.set.StopAllowance) / int64(cluster.Day))
		}
	}
}
