package share

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
)

// lanes counts, in each pool, the GPUs that each tenant binds, those that its lane keeps for young jobs, those that it wants now and
// those that it wanted lately and is expected to want again; nil = no lanes.
func lanes(f *field.Field, tenants []lease.Tenant) []lease.Lane {
	if f.Due.JobsQueue || f.Stops.Rule().Off() && (f.In.Settings.BindQuiet == 0 || !anyBinds(f)) {
		return nil
	}
	out, limited := make([]lease.Lane, len(f.In.Pools)), f.In.Settings.BindQuiet > 0
	for p := range f.In.Pools {
		a := &f.Due.Ledger.Pools[p]
		out[p] = lease.Lane{GPUs: cluster.MicroGPU(a.GPUs - a.BadGPUs), Limited: limited, Pays: budget.Pays(f.Stops, p)}
		out[p].Most = out[p].GPUs * cluster.MicroGPU(f.In.Settings.BindMaxPercent) / 100
	}
	accounts := f.Due.Accounts()
	for t := range accounts.Rows() {
		left := cluster.MicroGPU(0) // GPUs that it wanted lately and does not want now, in all pools
		for p := range f.In.Pools {
			row := accounts.At(t, p)
			lane := min(f.Hand.Young[int(t)*len(f.In.Pools)+p], row.Own()/2) / f.In.Worths().Of(p) * f.In.Worths().Of(p)
			tenants[t].Shares[p].Lane = lane
			out[p].Keeps += lane
			left += lately(f, row) - row.Demand
		}
		for p := range f.In.Pools {
			row := accounts.At(t, p)
			if away := min(left, lately(f, row)-row.Demand); away > 0 {
				tenants[t].Shares[p].Away = lease.Away{GPUs: away, Until: row.WantedAt.Add(f.In.Settings.BindQuiet)}
				left -= away
			}
		}
	}
	for i := range f.In.Cases {
		st, can, who, owes, mark := &f.In.Cases[i], &f.Can[i], &f.Due.Queued[i], &f.Stops.Owes[i], &f.Hand.Marks[i]
		if !st.Live || len(can.Pools) == 0 {
			continue
		}
		l := f.Hand.Leases[i]
		p, gpus := can.Pools[0], f.In.HeldIn(can.Pools[0], i)
		if l != nil {
			p, gpus = f.In.Pool(l.Pool), l.Size.Amount()
		}
		if p < 0 {
			continue
		}
		if limited && who.Queue >= 0 && (st.Runs || can.Eligible && (can.GPUs < cluster.Micro(f.Site.MostOnANode(p)) || f.In.Now.Sub(f.Can[i].First) <= f.In.Settings.Term)) { // larger ones are gathered for by then
			tenants[who.Queue].Shares[p].Wants += f.In.Worths().In(p, can.GPUs)
		}
		if l == nil && !st.Runs || l != nil && st.Control != cluster.NoReclaim && mark.Stoppable && (!owes.Unpaid || !limited || f.Ending(i)) && l.End.Sub(f.In.Now) <= max(budget.BoundFor, 2*f.In.Settings.Term) {
			continue
		}
		out[p].Bound += gpus
		if who.Queue >= 0 {
			sh := &tenants[who.Queue].Shares[p]
			if sh.Bound += gpus; !budget.EndsSoon(f.Stops, i) {
				sh.Long += gpus
			}
		}
	}
	for t := range accounts.Rows() {
		for p := range f.In.Pools {
			sh := &tenants[t].Shares[p]
			sh.Wants = min(sh.Wants, accounts.At(t, p).Own())
		}
	}
	return out
}

// lately returns the part of its present share that a tenant is expected to want again.
func lately(f *field.Field, row *cluster.TenantPool) cluster.MicroGPU {
	return min(row.Lately(f.In.Now, f.In.Settings.BindQuiet), row.Lasting())
}

// anyBinds reports whether a job can never be stopped, whatever the stop budget is.
func anyBinds(f *field.Field) bool {
	for i := range f.In.Cases {
		if st, can := &f.In.Cases[i], &f.Can[i]; st.Live && st.Control == cluster.NoReclaim && len(can.Pools) > 0 {
			return true
		}
	}
	return false
}
