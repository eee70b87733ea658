package engine_test

import (
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// nodeCells describes nodes n01, n02, … of so many GPUs, with so many of them for each VC.
func nodeCells(gpus, nodes int, vcs ...cluster.VC) *cluster.Cells {
	d := &cluster.Cells{Types: []cluster.CellType{
		{Name: "gpu", Model: "v100"}, {Name: "node", Child: "gpu", Split: gpus, Node: true}}, VCs: vcs}
	for i := range nodes {
		name := fmt.Sprintf("n%02d", i+1)
		d.Tops = append(d.Tops, cluster.TopCell{Name: name, Type: "node", Nodes: []string{name}})
	}
	return d
}

func vc(name, typ string, n int) cluster.VC {
	return cluster.VC{Name: name, Cells: []cluster.CellQuota{{Type: typ, Cells: n}}}
}

// newCells makes a world of nodes of 4 GPUs under the default settings with cells.
func newCells(t *testing.T, nodes int, d *cluster.Cells, tenants ...string) *world {
	t.Helper()
	if _, err := cells.New(*d); err != nil {
		t.Fatal(err)
	}
	set := simtest.Product()
	set.Preset, set.Chooser = "hived", "astraea"
	gpus := make([]int, nodes)
	for i := range gpus {
		gpus[i] = 4
	}
	w := newWorld(t, set, gpus, tenants...)
	w.Rules.Cells = d
	check := w.Check
	w.Check = func(r loop.Report) {
		check(r)
		if r.Plan.Cells == nil || r.Plan.Cells.Unsafe != nil {
			t.Fatalf("at %s the cells are not safe: %+v", r.Plan.At.Sub(simtest.Start), r.Plan.Cells)
		}
	}
	return w
}

// class fails unless a job's lease is of a class.
func (w *world) class(id cluster.JobID, want cluster.LeaseClass) {
	w.t.Helper()
	l := w.lease(id)
	if l == nil || l.Class != want {
		w.t.Errorf("at %s the lease of job %s is %+v, want one that is %s: %+v", w.Now().Sub(simtest.Start), id, l, want, w.Verdict(id))
	}
}

// What a VC does not use others have; what it then wants it has at once.
func TestACellIsRecalledAtOnce(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
	w.Run(minute)
	var mine []cluster.JobID
	for range 2 {
		mine = append(mine, w.submit("a", 4, forever, nil))
	}
	w.Run(minute)
	w.class(mine[0], cluster.Guaranteed)
	w.class(mine[1], cluster.Opportunistic)
	his := w.submit("b", 4, forever, nil)
	w.Run(minute)
	w.class(his, cluster.Guaranteed)
	w.state(his, cluster.Running)
	w.state(mine[0], cluster.Running)
	w.state(mine[1], cluster.Waiting)
	if r := w.why(mine[1], cluster.BecauseCells); r.Cell != "node" || w.Record(mine[0]).Key != r.For || r.Right != cluster.Guaranteed {
		t.Errorf("job %s: %+v", mine[1], r)
	}
	if got := w.Job(his).Start.Sub(w.Record(his).First); got > 15*second {
		t.Errorf("b waited %s for its own cell", got)
	}
	w.books()
}
