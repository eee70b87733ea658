package budget

import "github.com/fairlease/fairlease/sidecar/cluster"

// Youth brings up to now how many GPUs tenants' young jobs want on average: what arrives, each job for as long as its stop
// budget lets it be stopped (stop.allowance), over about a day. Gangs beyond their tenant's due fit no lane.
func Youth(a *Account) {
	if a.Rule().Off() || a.Snapshot.Ledger.At == 0 {
		return
	}
	gone := int64(min(a.Now.Sub(a.Snapshot.Ledger.At), cluster.Day))
	for at := range a.Ledger.Tenants {
		t := &a.Ledger.Tenants[at]
		t.Young -= cluster.MicroGPU(int64(t.Young) * gone / int64(cluster.Day))
	}
	for i := range a.Jobs {
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
