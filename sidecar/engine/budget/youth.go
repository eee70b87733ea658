package budget

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Youth returns the average number of GPUs that each tenant's young jobs need, by row of the ledger's accounts, given these: each new job
// counts for its stop allowance (stop.allowance). The average is over about a day. Gangs larger than their tenant's share
// fit no lane and do not count.
func Youth(a *Account, rows []cluster.TenantPool) []cluster.MicroGPU {
	young := slices.Grow(a.young[:0], len(rows))[:len(rows)]
	a.young = young
	for at := range rows {
		young[at] = rows[at].Young
	}
	if a.Rule().Off() || a.in.Snapshot.Ledger.At == 0 {
		return young
	}
	gone := int64(min(a.in.Now.Sub(a.in.Snapshot.Ledger.At), cluster.Day))
	for at := range young {
		young[at] -= cluster.MicroGPU(int64(young[at]) * gone / int64(cluster.Day))
	}
	for _, i := range a.notes.open {
		st, can := &a.in.Cases[i], &a.can[i]
		if !a.in.Comes(i) || st.Tenant < 0 || !st.Live || len(can.Pools) == 0 {
			continue
		}
		at := int(st.Tenant)*len(a.in.Pools) + can.Pools[0]
		if gpus := a.in.Worths().In(can.Pools[0], can.GPUs); gpus <= rows[at].Own() {
			young[at] += cluster.MicroGPU(int64(gpus) * int64(a.in.Settings.StopAllowance) / int64(cluster.Day))
		}
	}
	return young
}
