package place

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

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
	if Resurvey(old, models, now, false, nil, noon, false, 1) != old {
		t.Error("equal nodes make another site")
	}
	now[1].Switch = "s1"
	if Resurvey(old, models, now, false, nil, noon, false, 1) == old {
		t.Error("a node under another switch leaves the site as it was")
	}
}

// A gang that wants few switches gets as few as so many nodes need, or nothing. It gets nothing else where switches are unknown, or there is one.
func TestAGangThatWantsFewSwitches(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		racks []int
		busy  []string // a GPU is held there
		soft  []string // all GPUs are of a lease that may be displaced
		gang  Spec
		want  string
	}{
		"one switch is enough":         {[]int{2, 2}, nil, nil, onNodes(2, 4), "n1:4 n2:4"},
		"it is too busy":               {[]int{2, 2}, []string{"n1", "n3"}, nil, onNodes(2, 4), "none"},
		"three nodes under two":        {[]int{2, 2}, nil, nil, onNodes(3, 4), "n1:4 n2:4 n3:4"},
		"three nodes under three":      {[]int{2, 1, 1}, []string{"n1"}, nil, onNodes(3, 4), "none"},
		"leases under one switch end":  {[]int{2, 2}, []string{"n1"}, []string{"n3", "n4"}, onNodes(2, 4), "n3:4 n4:4 displacing [3 4] in 1 h"},
		"leases under two switches do": {[]int{2, 2}, []string{"n1", "n4"}, []string{"n2", "n3"}, onNodes(2, 4), "none"},
		"an uneven gang":               {[]int{2, 2}, []string{"n1"}, nil, gang(7), "n1:3 n2:4"},
		"with a list of nodes":         {[]int{2, 2}, nil, nil, Spec{Request: onNodes(2, 4).Request, Partitions: []string{"p"}, Require: []string{"n2", "n3"}}, "none"},
		"one switch":                   {[]int{4}, []string{"n1"}, nil, onNodes(2, 4), "n2:4 n3:4"},
		"none is known":                {[]int{0}, []string{"n1"}, nil, onNodes(2, 4), "n2:4 n3:4"},
	} {
		nodes := racks(of.racks...)
		if len(nodes) == 0 {
			nodes = racks(4)
			for i := range nodes {
				nodes[i].Switch = ""
			}
		}
		b := New(models, nodes, nil, noon)
		for _, node := range of.busy {
			b.Hold(taken(node, "v100", 1), 0)
		}
		for _, node := range of.soft {
			n := int(node[1] - '0')
			b.Soften(n, noOwner, n, noon.Add(cluster.Hour), taken(node, "v100", 4), 0)
		}
		got, ok := b.Fit(Ask{Shape: b.site.Shape(of.gang), Pool: v100, Now: noon, End: noon.Add(cluster.Hour), Max: -1, Displace: Anybodys, Together: true, Near: true})
		if show(got, ok) != of.want {
			t.Errorf("%s: %s, want %s", name, show(got, ok), of.want)
		}
	}
}

// A placement under few switches is one that exists: a gang gets one if and only if idle nodes under one switch have its GPUs, where one has so many.
func TestFewSwitchesAsADumbSearchFindsThem(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 3), 1, 4).Draw(rt, "racks")
		nodes := racks(sizes...)
		b := New(models, nodes, nil, noon)
		idle, most := map[string]int{}, 0 // nodes with four idle GPUs, by switch
		for i := range nodes {
			if held := rapid.IntRange(0, 1).Draw(rt, "held"); held > 0 {
				b.Hold(taken(nodes[i].Name, "v100", held), 0)
			} else {
				idle[nodes[i].Switch]++
			}
			most = max(most, idle[nodes[i].Switch])
		}
		n := rapid.IntRange(2, max(2, slices.Max(sizes))).Draw(rt, "nodes")
		got, ok := b.Fit(Ask{Shape: b.site.Shape(onNodes(n, 4)), Pool: v100, Now: noon, End: noon.Add(cluster.Hour), Max: -1, Together: true, Near: true})
		if slices.Max(sizes) >= n && ok != (most >= n) {
			rt.Fatalf("racks %v, idle %v, %d nodes: %s", sizes, idle, n, show(got, ok))
		}
		if ok && b.site.Across(v100, got.Nodes) {
			rt.Fatalf("%s is across switches", show(got, ok))
		}
	})
}

func TestAcrossSwitches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		racks []int
		on    []string
		want  bool
	}{
		{[]int{2, 2}, []string{"n1", "n2"}, false}, {[]int{2, 2}, []string{"n2", "n3"}, true}, {[]int{2, 2}, []string{"n1"}, false}, {[]int{4}, []string{"n1", "n2"}, false},
		{[]int{2, 2, 2}, []string{"n1", "n2", "n3"}, false}, {[]int{2, 2, 2}, []string{"n1", "n3", "n5"}, true}, {[]int{1, 1}, []string{"n1", "n2"}, false},
		{[]int{2, 2}, []string{"n2", "n9"}, false},
	} {
		site := Survey(models, racks(c.racks...), nil, noon)
		var holds []cluster.Holding
		for _, node := range c.on {
			holds = append(holds, taken(node, "v100", 4)...)
		}
		if got := site.Across(v100, holds); got != c.want {
			t.Errorf("racks %v, on %v: %v, want %v", c.racks, c.on, got, c.want)
		}
	}
	nodes := racks(2, 2)
	nodes[3].Switch = ""
	site := Survey(models, nodes, nil, noon)
	if site.Switched(v100) || site.Across(v100, append(taken("n2", "v100", 4), taken("n3", "v100", 4)...)) {
		t.Error("a node without a switch that is known")
	}
}
