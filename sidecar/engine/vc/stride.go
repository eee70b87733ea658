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
	least := make([]cluster.Span, len(f.Books.In.Tenants)) // of the active jobs that have a pass; 0 = there is none
	for i := range f.Books.Jobs {
		st, r := &f.Books.Jobs[i], &f.Books.Records[i]
		if r.Pass == 0 {
			continue
		}
		r.Pass += cluster.Span(int64(r.Alloc-f.Books.In.Snapshot.Cases[i].Record.Alloc) / int64(max(st.Is.GPUs, 1)))
		if t := st.Is.Tenant; t >= 0 && (st.Can.Eligible || st.Is.Runs) && (least[t] == 0 || r.Pass < least[t]) {
			least[t] = r.Pass
		}
	}
	for i := range f.Books.Jobs {
		st, r := &f.Books.Jobs[i], &f.Books.Records[i]
		switch {
		case st.Is.Tenant < 0 || !st.Is.Live || choosers[st.Is.Tenant] != cluster.CellsByStride:
		case st.Can.Eligible || st.Is.Runs:
			if r.Pass == 0 {
				r.Pass = max(least[st.Is.Tenant], 1)
			}
		case r.Pass > 0:
			r.Pass = max(r.Pass, least[st.Is.Tenant])
		}
	}
}
