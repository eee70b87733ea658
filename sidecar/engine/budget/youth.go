package budget

import "github.com/fairlease/fairlease/sidecar/cluster"

// Youth updates the average number of GPUs that each tenant's young jobs need: each new job counts for its
// stop allowance (stop.allowance). The average is over about a day. Gangs larger than their tenant's share
// fit no lane and do not count.
func Youth(a *Account) {
	if a.Rule().Off() || a.Snapshot.Ledger.At == 0 {
		return
	}
	gone := int64(min(a.Now.Sub(a.Snapshot.Ledger.At), cluster.Day))
	for at := range a.Ledger.Tenants {
		t := &a.Ledger.Tenants[at]
		t.Young -= cluster.MicroGPU(int64(t.Young) * gone / int64(cluster.Day))
	}
	for _, i := range a.notes.open {
		st := &a.Jobs[i]
		if !a.Comes(i) || st.Tenant < 0 || !st.Live || len(st.Pools) == 0 {
			continue
		}
		t := a.Accounts().At(st.Tenant, st.Pools[0])
		if gpus := cluster.MicroGPU(st.GPUs) * cluster.WholeGPU; gpus <= t.Own() {
			t.Young += cluster.MicroGPU(int64(gpus) * int64(a.Settings.StopAllowance) / int64(cluster.Day))
		}
	}
}
