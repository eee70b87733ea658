package cells

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Trade returns a description after trades of cells: the VCs' numbers of cells change, r_tk, and nothing else. Each
// trade moves cells between two VCs at the same level, so the sums of all VCs at each level are the same, and what
// could be had before can be had (HiveD Theorem 1). It returns false if a VC has not the cells that it gives. It does
// not change d.
func Trade(d Description, trades []cluster.CellTrade) (Description, bool) {
	d.VCs = slices.Clone(d.VCs)
	for i := range d.VCs {
		d.VCs[i].Cells = slices.Clone(d.VCs[i].Cells)
	}
	for i := range trades {
		t, c := &trades[i], &trades[i].Cells
		if !hand(d.VCs, t.SlowTo.Tenant, t.FastTo.Tenant, Quota{Chain: c.FastChain, Type: c.FastType, Cells: c.FastCells}) ||
			!hand(d.VCs, t.FastTo.Tenant, t.SlowTo.Tenant, Quota{Chain: c.SlowChain, Type: c.SlowType, Cells: c.SlowCells}) {
			return Description{}, false
		}
	}
	for i := range d.VCs {
		d.VCs[i].Cells = slices.DeleteFunc(d.VCs[i].Cells, func(q Quota) bool { return q.Cells == 0 })
	}
	return d, true
}

// hand moves cells from one VC to another, and reports whether it had them.
func hand(vcs []VC, from, to string, cells Quota) bool {
	i := slices.IndexFunc(vcs, func(v VC) bool { return v.Name == from })
	j := slices.IndexFunc(vcs, func(v VC) bool { return v.Name == to })
	if i < 0 || j < 0 {
		return false
	}
	left := cells.Cells
	for k := range vcs[i].Cells {
		if q := &vcs[i].Cells[k]; q.Chain == cells.Chain && q.Type == cells.Type {
			n := min(left, q.Cells)
			q.Cells -= n
			left -= n
		}
	}
	vcs[j].Cells = append(vcs[j].Cells, cells)
	return left == 0
}
