package simtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// CarryOutInCells makes the engine carry out a division for n rounds as CarryOut does, but inside the virtual cluster of one tenant, which has all
// nodes: the division's tenants are its job types, or its jobs.
func (d *Division) CarryOutInCells(t testing.TB, by, mechanism string, n int) (c Course) {
	set := Product()
	set.Preset, set.Divide, set.DivideJobs, set.Mechanism, set.Interval = by, by, preset.OfJobs(by), mechanism, cluster.Minute
	set.StopAllowance, set.StopOverheadMilli, set.Chooser = 0, 0, cluster.CellsByShare
	var nodes []cluster.Node
	cells, vc := &cluster.Cells{}, cluster.VC{Name: "a"}
	for p, gpus := range d.GPUs {
		mine := Nodes(fmt.Sprintf("n%d_", p), model(p), gpus/8, 8)
		whole := model(p) + ".node"
		cells.Types = append(cells.Types, cluster.CellType{Name: model(p), Model: model(p)}, cluster.CellType{Name: whole, Child: model(p), Split: 8, Node: true})
		for i := range mine {
			cells.Tops = append(cells.Tops, cluster.TopCell{Name: mine[i].Name, Type: whole, Nodes: []string{mine[i].Name}})
		}
		vc.Cells = append(vc.Cells, cluster.CellQuota{Type: whole, Cells: len(mine)})
		nodes = append(nodes, mine...)
	}
	cells.VCs = []cluster.VC{vc}
	w := New(t, set, nodes, vc.Name)
	w.Gate, w.Completing, w.Rules.Cells = set.GateTTL, 0, cells
	var owner []int // by job
	for l, gangs := range d.Jobs {
		for range gangs {
			w.Virtual.Submit(sim.Work{Name: "train", User: "a_user", Account: "a", Partition: "gpu", Comment: fmt.Sprintf("kind=t%03d", l), Request: Gang(gangs[0]), Runs: 1000 * cluster.Hour})
			owner = append(owner, l)
		}
	}
	of := func(party string) int {
		_, name, _ := strings.Cut(party, "/")
		if key, err := strconv.Atoi(name); err == nil {
			return owner[key-1]
		}
		l, _ := strconv.Atoi(name[len(name)-3:])
		return l
	}
	w.Loop.Divide = func(q cluster.AllocationRequest) cluster.Allocation {
		a := cluster.Allocation{Policy: q.Policy, Digest: q.Digest}
		for _, p := range q.Pools {
			a.Pools = append(a.Pools, p.Model)
		}
		for i := range q.Bids {
			l, part := of(q.Bids[i].Party), cluster.Part{Party: q.Bids[i].Party}
			for _, x := range d.Due[l] {
				part.GPUs = append(part.GPUs, cluster.MicroGPU(x*float64(q.Bids[i].Demand)/total(ints(d.Jobs[l]))*float64(cluster.WholeGPU)))
			}
			a.Parts = append(a.Parts, part)
		}
		return a
	}
	pools := make([]string, len(d.GPUs))
	for p := range pools {
		pools[p] = model(p)
	}
	for range n + 1 {
		w.Run(w.Settings.Term)
		had := d.Nothing()
		for _, l := range w.Last.State.Leases {
			if p := slices.Index(pools, l.Pool); p >= 0 && l.State != cluster.Granted {
				had[owner[l.Job-1]][p] += float64(l.Size.Devices)
			}
		}
		c = append(c, had)
	}
	return c[1:] // in the first there was no division yet
}
