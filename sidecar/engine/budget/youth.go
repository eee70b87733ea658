package budget

import "github.com/fairlease/fairlease/sidecar/cluster"

// Youth updates the average number of GPUs that each tenant's young jobs need: each new job counts for its
// stop allowance (stop.allowance). The average is over about a day. Gangs larger than their tenant's share
// fit no lane and do not count.
func Youth(a *Account) {
	if a.Rule().Off() || a.Books.In.Snapshot.Ledger.At == 0 {
		return
	}
	gone := int64(min(a.Books.In.Now.Sub(a.Books.In.Snapshot.Ledger.At), cluster.Day))
	for at := range a.Books.Ledger.Tenants {
		t := &a.Books.Ledger.Tenants[at]
		t.Young -= cluster.MicroGPU(int64(t.Young) * gone / int64(cluster.Day))
	}
	for _, i := range a.notes.open {
		st := &a.Books.Jobs[i]
		if !a.Books.Comes(i) || st.Is.Tenant < 0 || !st.Is.Live || len(st.Can.Pools) == 0 {
			continue
		}
		t := a.Books.Accounts().At(st.Is.Tenant, st.Can.Pools[0])
		if gpus := cluster.MicroGPU(st.Is.GPUs) * cluster.WholeGPU; gpus <= t.Own() {
			t.Young += cluster.MicroGPU(int64(gpus) * int64(a.Books.In.Settings.StopAllowance) / int64(cluster.Day))
		}
	}
}
