package vc

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/field"
)

// advance updates the passes of jobs in virtual clusters that choose by stride (Gandiva_fair §3.1). Within a virtual
// cluster all jobs share the tenant's tickets by GPU (eq. 3), so their strides are equal: a job's pass grows by the
// time for which it held its GPUs. A new job joins at the least pass of its tenant's active jobs, so that it neither
// waits for their past nor makes up for it. The pass of an inactive job is raised to that least pass, because a job
// that returns must not make up for its absence either.
func advance(f *field.Field, choosers []string) {
	least, passes := make([]cluster.Span, len(f.In.Tenants)), make([]cluster.Span, len(f.In.Cases)) // least: of the active jobs that have a pass; 0 = there is none
	for i := range f.In.Cases {
		st, can, r := &f.In.Cases[i], &f.Can[i], &f.In.Records[i]
		if r.Pass == 0 {
			continue
		}
		passes[i] = r.Pass + cluster.Span(int64(r.Alloc-f.In.Snapshot.Cases[i].Record.Alloc)/int64(max(can.GPUs.Devices(), 1)))
		if t := st.Tenant; t >= 0 && (can.Eligible || st.Runs) && (least[t] == 0 || passes[i] < least[t]) {
			least[t] = passes[i]
		}
	}
	for i := range f.In.Cases {
		st, can := &f.In.Cases[i], &f.Can[i]
		switch {
		case st.Tenant < 0 || !st.Live || choosers[st.Tenant] != cluster.CellsByStride:
		case can.Eligible || st.Runs:
			if passes[i] == 0 {
				passes[i] = max(least[st.Tenant], 1)
			}
		case passes[i] > 0:
			passes[i] = max(passes[i], least[st.Tenant])
		}
	}
	f.Hand.Passes = passes
}
