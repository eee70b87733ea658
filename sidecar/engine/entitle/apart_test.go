package entitle

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Gangs of one size can be on their fewest nodes on so many of a pool's healthy GPUs.
func TestFitting(t *testing.T) {
	for _, c := range []struct {
		nodes []int
		gang  int
		want  int
	}{
		{[]int{4, 4}, 2, 1000}, {[]int{4, 4}, 3, 750}, {[]int{4, 4}, 4, 1000}, {[]int{4, 4}, 8, 1000}, {[]int{4, 4, 4}, 8, 666}, {[]int{4, 4}, 6, 750},
		{[]int{4, 2}, 4, 666}, {[]int{8, 4, 4}, 5, 312}, {[]int{4}, 8, 0},
	} {
		s := cluster.Snapshot{Nodes: []cluster.Node{{Name: "bad", Bad: "down", GPUs: []cluster.GPUs{{Model: "v100", Count: 8}}}, {Name: "k", GPUs: []cluster.GPUs{{Model: "k80", Count: 8}}}}}
		for _, n := range c.nodes {
			s.Nodes = append(s.Nodes, cluster.Node{GPUs: []cluster.GPUs{{Model: "v100", Count: n}}})
		}
		in := &round.Facts{Snapshot: &s, Pools: []string{"k80", "v100"}}
		if got := fitting(in, 1, c.gang); got != c.want {
			t.Errorf("gangs of %d on nodes of %v: %d, want %d", c.gang, c.nodes, got, c.want)
		}
	}
	in := &round.Facts{Pools: []string{"v100"}, Snapshot: &cluster.Snapshot{Nodes: []cluster.Node{{GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}}}}}
	if got := together(in, []cluster.Bid{{Gang: 3}, {Gang: 3, Apart: []float64{0}}}); got != nil {
		t.Errorf("no gang is known to be slower on more nodes, and %v of the GPUs are for such", got)
	}
	if got := together(in, []cluster.Bid{{Gang: 2, Apart: []float64{0.5}}, {Gang: 3, Apart: []float64{0.5}}, {Gang: 4}}); len(got) != 1 || got[0] != 750 {
		t.Errorf("%v, want that of the gang of 3", got)
	}
}
