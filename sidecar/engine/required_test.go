package engine_test

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// A job that names fewer nodes than it needs (-N3 -w n03) has these and others, as in Slurm: with shares, in its own cells, in lent
// ones, and where other jobs must leave the node that it names.
func TestAJobNamesFewerNodesThanItNeeds(t *testing.T) {
	gang := func(nodes int, list ...string) func(*sim.Work) {
		return func(j *sim.Work) {
			j.Request = cluster.Request{Size: cluster.Whole(4 * nodes), Nodes: nodes, PerNode: 4, CPUs: nodes, MemoryMB: int64(nodes) * 1024}
			j.NodeList = list
		}
	}
	cells := func(a, b int) *cluster.Cells { return nodeCells(4, 5, vc("a", "node", a), vc("b", "node", b)) }
	for name, c := range map[string]struct {
		world  func(t *testing.T) *world
		others int // jobs of b that fill a node each, before
	}{
		"shares":                   {func(t *testing.T) *world { return newWorld(t, simtest.Product(), []int{4, 4, 4, 4, 4}, "a", "b") }, 0},
		"shares, others run":       {func(t *testing.T) *world { return newWorld(t, simtest.Product(), []int{4, 4, 4, 4, 4}, "a", "b") }, 5},
		"own cells":                {func(t *testing.T) *world { return newCells(t, 5, cells(3, 2), "a", "b") }, 0},
		"own cells, others borrow": {func(t *testing.T) *world { return newCells(t, 5, cells(3, 2), "a", "b") }, 5},
		"lent cells":               {func(t *testing.T) *world { return newCells(t, 5, cells(1, 4), "a", "b") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := c.world(t)
			var others []cluster.JobID
			for range c.others {
				others = append(others, w.submit("b", 4, forever, nil))
			}
			w.Run(20 * minute)
			free := []string{"n01", "n02", "n03", "n04", "n05"} // not by right of another's cells
			for _, id := range others {
				if l := w.lease(id); l != nil && l.Class == cluster.Guaranteed {
					free = slices.DeleteFunc(free, func(n string) bool { return n == l.Nodes[0].Node })
				}
			}
			for _, list := range [][]string{free[len(free)-1:], free[len(free)-2:]} {
				id := w.submit("a", 4, 20*minute, gang(3, list...))
				w.Run(2*term + 5*minute)
				if w.Record(id).Done == 0 && w.Job(id).State != cluster.Running {
					t.Fatalf("-N3 -w %v: job %s is %s: %+v", list, id, w.Job(id).State, w.Reason(id))
				}
				holds := w.Job(id).Holds
				for _, n := range list {
					if len(holds) > 0 && (len(holds) != 3 || !slices.ContainsFunc(holds, func(h cluster.Holding) bool { return h.Node == n })) {
						t.Errorf("-N3 -w %v: job %s is on %+v", list, id, holds)
					}
				}
				w.Run(term)
			}
			w.books()
		})
	}
}
