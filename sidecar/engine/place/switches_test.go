package place

import (
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// racks gives nodes of four GPUs under switches: so many under each.
func racks(sizes ...int) (nodes []cluster.Node) {
	for k, size := range sizes {
		for range size {
			n := room(fmt.Sprintf("n%d", len(nodes)+1), "v100", 4)
			n.Switch = fmt.Sprintf("s%d", k+1)
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func TestAGangIsUnderOneSwitch(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		racks []int
		busy  []string
		gang  Spec
		want  string
	}{
		"the tightest switch":      {[]int{3, 2}, nil, onNodes(2, 4), "n4:4 n5:4"},
		"busy nodes do not count":  {[]int{3, 2}, []string{"n4"}, onNodes(2, 4), "n1:4 n2:4"},
		"the two largest switches": {[]int{1, 2, 3}, nil, onNodes(5, 4), "n2:4 n3:4 n4:4 n5:4 n6:4"},
		"all of them":              {[]int{2, 1, 2}, nil, onNodes(5, 4), "n1:4 n2:4 n3:4 n4:4 n5:4"},
		"unevenly":                 {[]int{1, 2}, nil, gang(7), "n2:4 n3:3"},
		"one node is under any":    {[]int{2, 2}, nil, gang(4), "n1:4"},
	} {
		b := New(models, racks(of.racks...), nil, noon)
		for _, node := range of.busy {
			b.Hold(taken(node, "v100", 1), 0)
		}
		if got := b.find(of.gang, v100); got != of.want {
			t.Errorf("%s: %s, want %s", name, got, of.want)
		}
	}
}

// A node that moves to another switch is another site.
func TestSwitchesAreSurveyedAgain(t *testing.T) {
	t.Parallel()
	nodes := racks(1, 2)
	old := Survey(models, nodes, nil, noon)
	old.surveyed = nodes
	now := racks(1, 2)
	if Resurvey(old, models, now, false, nil, noon, false) != old {
		t.Error("equal nodes make another site")
	}
	now[1].Switch = "s1"
	if Resurvey(old, models, now, false, nil, noon, false) == old {
		t.Error("a node under another switch leaves the site as it was")
	}
}
