package share

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
)

// lanes counts, in each pool, the GPUs that each tenant binds and those that its lane keeps for young jobs;
// nil = no lanes.
func lanes(f *field.Field, tenants []lease.Tenant) []lease.Lane {
	if f.Stops.Rule().Off() || f.JobsQueue {
		return nil
	}
	out := make([]lease.Lane, len(f.Pools))
	for p := range f.Pools {
		a := &f.Ledger.Pools[p]
		out[p].GPUs = a.GPUs - a.BadGPUs
	}
	accounts := f.Accounts()
	for t := range accounts.Rows() {
		for p := range f.Pools {
			row := accounts.At(t, p)
			lane := int(min(row.Young, row.Own()/2) / cluster.WholeGPU)
			tenants[t].Shares[p].Lane = lane
			out[p].Keeps += lane
		}
	}
	for i := range f.Jobs {
		st := &f.Jobs[i]
		if !st.Live || len(st.Pools) == 0 {
			continue
		}
		l := f.Leases[i]
		if l == nil && !st.Runs || l != nil && st.Stoppable && l.End.Sub(f.Now) <= max(budget.BoundFor, 2*f.Settings.Term) {
			continue
		}
		p := st.Pools[0]
		gpus := st.Held
		if l != nil {
			p, gpus = f.Pool(l.Pool), l.GPUs
		}
		if p < 0 {
			continue
		}
		out[p].Bound += gpus
		if st.Queue >= 0 {
			tenants[st.Queue].Shares[p].Bound += gpus
		}
	}
	return out
}
