package place

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// slows makes nodes of v100 slow.
func slows(nodes ...string) (out []cluster.SlowNode) {
	for _, n := range nodes {
		out = append(out, cluster.SlowNode{Node: n, Model: "v100"})
	}
	return out
}

func TestGangsAvoidSlowNodes(t *testing.T) {
	nodes := []cluster.Node{room("n1", "v100", 4), room("n2", "v100", 4), room("n3", "v100", 4), room("n4", "v100", 4), room("k1", "k80", 4)}
	of := func(free ...int) (*Board, *Site) {
		b := New(models, nodes, nil, noon)
		for i, n := range free {
			b.Hold(taken(fmt.Sprintf("n%d", i+1), "v100", 4-n), 0)
		}
		return b, b.site
	}
	waits, none := []bool{true, true}, []bool{false, false}
	for _, c := range []struct {
		name  string
		free  []int // GPUs of n1 to n4
		slow  []string
		gangs []bool
		job   Spec
		want  string
	}{
		{"no node is slow", []int{4, 4, 4, 4}, nil, waits, onNodes(2, 4), "n1:4 n2:4"},
		{"a gang takes the others", []int{4, 4, 4, 4}, []string{"n1"}, waits, onNodes(2, 4), "n2:4 n3:4"},
		{"whether or not one waits", []int{4, 4, 4, 4}, []string{"n1"}, none, onNodes(2, 4), "n2:4 n3:4"},
		{"even where that is less tight", []int{2, 4, 4, 4}, []string{"n1"}, waits, onNodes(2, 2), "n2:2 n3:2"},
		{"it does not wait for them", []int{4, 4, 0, 0}, []string{"n1"}, waits, onNodes(2, 4), "n1:4 n2:4"},
		{"nor takes more nodes", []int{4, 4, 2, 2}, []string{"n1"}, waits, gang(8), "n1:4 n2:4"},
		{"nor fewer GPUs: an uneven gang", []int{3, 4, 1, 0}, []string{"n1"}, waits, gang(7), "n1:3 n2:4"},
		{"an uneven gang on others", []int{4, 4, 4, 0}, []string{"n1"}, waits, gang(7), "n2:4 n3:3"},
		{"a job of one node leaves gangs the others", []int{4, 4, 4, 4}, []string{"n3"}, waits, gang(4), "n3:4"},
		{"it is on another one if no gang waits", []int{4, 4, 4, 4}, []string{"n1"}, none, gang(4), "n2:4"},
		{"tightness comes first", []int{4, 2, 4, 4}, []string{"n1"}, waits, gang(2), "n2:2"},
		{"the slow one is the last one, and is used", []int{4, 0, 0, 0}, []string{"n1"}, none, gang(4), "n1:4"},
		{"all are slow", []int{4, 4, 4, 4}, []string{"n1", "n2", "n3", "n4"}, waits, onNodes(2, 4), "n1:4 n2:4"},
		{"a slow node that is gone", []int{4, 4, 4, 4}, []string{"n9"}, waits, onNodes(2, 4), "n1:4 n2:4"},
	} {
		b, site := of(c.free...)
		Slow(site, slows(c.slow...), c.gangs)
		wants(t, c.name, b.find(c.job, v100), c.want)
	}
	b, site := of(4, 4, 4, 4)
	Slow(site, slows("n1"), waits)
	listed := onNodes(2, 4)
	listed.Require = []string{"n1", "n4"}
	wants(t, "a list of nodes holds", b.find(listed, v100), "n1:4 n4:4")
	listed.Require = []string{"n1", "n2", "n4"}
	wants(t, "and has a choice, too", b.find(listed, v100), "n2:4 n4:4")
	Slow(site, nil, nil)
	wants(t, "no longer slow", b.find(onNodes(2, 4), v100), "n1:4 n2:4")
	Slow(site, []cluster.SlowNode{{Node: "n1", Model: "k80"}}, waits)
	wants(t, "a model that the node does not have", b.find(onNodes(2, 4), v100), "n1:4 n2:4")
	b, site = of(4, 4, 4, 0)
	b.Soften(7, noOwner, 1, noon.Add(cluster.Hour), taken("n4", "v100", 4), 0)
	Slow(site, slows("n1"), waits)
	wants(t, "nothing is displaced to avoid one", b.oust(onNodes(3, 4), v100, -1), "n1:4 n2:4 n3:4")
}

// Parts of GPUs get slow nodes of nodes that are as tight while a gang waits, and the others else.
func TestPartsAndSlowNodes(t *testing.T) {
	n := []cluster.Node{sharded("n1", 2, 4), sharded("n2", 2, 4), sharded("n3", 4, 4)}
	waits, none := []bool{true, true}, []bool{false, false}
	b := New(models, n, nil, noon)
	try := func(about string, slow string, gangs []bool, want string) {
		t.Helper()
		Slow(b.site, slows(slow), gangs)
		b.tried.round++
		wants(t, about, b.share(1, 0, Nobodys), want)
	}
	try("a node without parts", "n1", none, "n2")
	try("the slow one, for a gang", "n2", waits, "n2")
	try("tightness comes first", "n3", waits, "n1")
	b.Hold(shards(n[0], 1, 0), 0)
	b.Hold(shards(n[1], 1, 0), 0)
	try("a shared GPU", "n1", none, "n2")
	try("the slow one of two", "n2", waits, "n2")
	b.Hold(shards(n[0], 3, 0), 0)
	b.Hold(shards(n[1], 3, 0), 0)
	try("one more GPU of a node with parts", "n1", none, "n2")
	try("the slow one of these", "n2", waits, "n2")
	try("the only ones with parts", "n3", waits, "n1")
}

// Slow nodes change which nodes a job gets, and nothing else: it fits where it fitted, on as many nodes, as soon, and displaces as few leases.
func TestSlowNodesCostNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(rt, "nodes")
		var nodes []cluster.Node
		var slow []string
		for i := range n {
			name := fmt.Sprintf("n%d", i)
			nodes = append(nodes, room(name, "v100", rapid.SampledFrom([]int{2, 4, 4, 4}).Draw(rt, "GPUs")))
			if rapid.Bool().Draw(rt, "slow") {
				slow = append(slow, name)
			}
		}
		b := New(models, nodes, nil, noon)
		for i := range n {
			total := nodes[i].GPUs[0].Count
			held := rapid.IntRange(0, total).Draw(rt, "held")
			if held > 0 {
				b.Hold(taken(nodes[i].Name, "v100", held), 0)
			}
			if soft := rapid.IntRange(0, total-held).Draw(rt, "soft"); soft > 0 {
				b.Soften(i, noOwner, i, noon.Add(cluster.Hour), taken(nodes[i].Name, "v100", soft), 0)
			}
		}
		job := gang(rapid.IntRange(1, 10).Draw(rt, "wants"))
		if rapid.Bool().Draw(rt, "even") {
			job = onNodes(rapid.IntRange(1, 4).Draw(rt, "on"), rapid.IntRange(1, 4).Draw(rt, "each"))
		}
		ask := Ask{Shape: b.site.Shape(job), Pool: v100, Now: noon, End: noon.Add(cluster.Hour), Max: -1, Displace: rapid.SampledFrom([]int{Nobodys, Anybodys}).Draw(rt, "displace")}
		plain, fits := b.Fit(ask)
		Slow(b.site, slows(slow...), []bool{false, rapid.Bool().Draw(rt, "gangs")})
		b.tried.round++ // else a failure is remembered
		got, ok := b.Fit(ask)
		if ok != fits || len(got.Nodes) != len(plain.Nodes) || got.At != plain.At || len(got.Displaced) != len(plain.Displaced) {
			rt.Fatalf("with slow %v %s, without %s", slow, show(got, ok), show(plain, fits))
		}
	})
}
