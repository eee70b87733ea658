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
	if f.Books.JobsQueue || f.Stops.Rule().Off() && (f.Books.In.Settings.BindQuiet == 0 || !anyBinds(f)) {
		return nil
	}
	out, limited := make([]lease.Lane, len(f.Books.In.Pools)), f.Books.In.Settings.BindQuiet > 0
	for p := range f.Books.In.Pools {
		a := &f.Books.Ledger.Pools[p]
		out[p] = lease.Lane{GPUs: a.GPUs - a.BadGPUs, Limited: limited, Pays: budget.Pays(f.Stops, p)}
		out[p].Most = cluster.MicroGPU(out[p].GPUs*f.Books.In.Settings.BindMaxPercent) * cluster.WholeGPU / 100
	}
	accounts := f.Books.Accounts()
	for t := range accounts.Rows() {
		left := cluster.MicroGPU(0) // GPUs that it wanted lately and does not want now, in all pools
		for p := range f.Books.In.Pools {
			row := accounts.At(t, p)
			lane := int(min(row.Young, row.Own()/2) / cluster.WholeGPU)
			tenants[t].Shares[p].Lane = lane
			out[p].Keeps += lane
			left += lately(f, row) - row.Demand
		}
		for p := range f.Books.In.Pools {
			row := accounts.At(t, p)
			if away := min(left, lately(f, row)-row.Demand); away > 0 {
				tenants[t].Shares[p].Away = lease.Away{GPUs: away, Until: row.WantedAt.Add(f.Books.In.Settings.BindQuiet)}
				left -= away
			}
		}
	}
	for i := range f.Books.Jobs {
		st := &f.Books.Jobs[i]
		if !st.Is.Live || len(st.Can.Pools) == 0 {
			continue
		}
		l := f.Books.Leases[i]
		p, gpus := st.Can.Pools[0], st.Is.Held
		if l != nil {
			p, gpus = f.Books.In.Pool(l.Pool), l.GPUs
		}
		if p < 0 {
			continue
		}
		if limited && st.Queue >= 0 && (st.Is.Runs || st.Can.Eligible && (st.Is.GPUs < f.Site.MostOnANode(p) || f.Books.In.Now.Sub(f.Books.Records[i].First) <= f.Books.In.Settings.Term)) { // larger ones are gathered for by then
			tenants[st.Queue].Shares[p].Wants += cluster.MicroGPU(st.Is.GPUs) * cluster.WholeGPU
		}
		if l == nil && !st.Is.Runs || l != nil && st.Is.Control != cluster.NoReclaim && st.Stoppable && (!st.Unpaid || !limited || f.Books.Ending(i)) && l.End.Sub(f.Books.In.Now) <= max(budget.BoundFor, 2*f.Books.In.Settings.Term) {
			continue
		}
		out[p].Bound += gpus
		if st.Queue >= 0 {
			sh := &tenants[st.Queue].Shares[p]
			if sh.Bound += gpus; !budget.EndsSoon(f.Stops, i) {
				sh.Long += gpus
			}
		}
	}
	for t := range accounts.Rows() {
		for p := range f.Books.In.Pools {
			sh := &tenants[t].Shares[p]
			sh.Wants = min(sh.Wants, accounts.At(t, p).Own())
		}
	}
	return out
}

// lately returns the part of its present share that a tenant is expected to want again.
func lately(f *field.Field, row *cluster.TenantPool) cluster.MicroGPU {
	return min(row.Lately(f.Books.In.Now, f.Books.In.Settings.BindQuiet), row.Lasting())
}

// anyBinds reports whether a job can never be stopped, whatever the stop budget is.
func anyBinds(f *field.Field) bool {
	for i := range f.Books.Jobs {
		if st := &f.Books.Jobs[i]; st.Is.Live && st.Is.Control == cluster.NoReclaim && len(st.Can.Pools) > 0 {
			return true
		}
	}
	return false
}
