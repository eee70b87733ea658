package place

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// compacted places a gang by moves that cost a GPU-minute for each GPU, and shows the result. Leases want GPUs anyhow.
func (b *Board) compacted(s Spec, size map[int]int, most cluster.Span) string {
	p, moves, ok := Compact(b, Ask{Shape: b.site.Shape(s), Pool: v100, Now: noon, End: noon.Add(cluster.Hour), Displace: Anybodys, Max: -1}, cluster.Times(1, most),
		func(who int) (Ask, cluster.GPUTime) {
			return Ask{Shape: b.site.Shape(gang(size[who])), Pool: v100, Now: noon, End: noon.Add(cluster.Hour), Max: -1}, cluster.Times(size[who], cluster.Minute)
		})
	parts := []string{show(p, ok)}
	for i := range moves {
		parts = append(parts, fmt.Sprintf("%d to %s", p.Displaced[i], show(moves[i], true)))
	}
	return strings.Join(parts, ", ")
}

func TestLeasesMoveForAGang(t *testing.T) {
	size := map[int]int{1: 1, 2: 2, 3: 3, 4: 2}
	fill := func() *Board {
		b := New(models, []cluster.Node{room("n1", "v100", 4), room("n2", "v100", 4), room("n3", "v100", 4)}, nil, noon)
		b.Soften(1, 0, 0, noon.Add(cluster.Minute), taken("n1", "v100", 1), 0)
		b.Soften(2, 1, 0, noon.Add(cluster.Minute), taken("n2", "v100", 2), 0)
		b.Soften(3, 1, 0, noon.Add(cluster.Minute), taken("n3", "v100", 3), 0)
		return b
	}
	wants(t, "the cheapest move", fill().compacted(onNodes(1, 4), size, cluster.Hour), "n1:4 displacing [1] in 1 min, 1 to n3:1")
	wants(t, "moves that cost too much", fill().compacted(onNodes(1, 4), size, 30*cluster.Second), "none")
	wants(t, "six GPUs are idle, not eight", fill().compacted(onNodes(2, 4), size, cluster.Hour), "none")
	wants(t, "six on two nodes leave no GPU that two need", fill().compacted(onNodes(2, 3), size, cluster.Hour), "none")
	b := New(models, []cluster.Node{room("n1", "v100", 4), room("n2", "v100", 4), room("n3", "v100", 4)}, nil, noon)
	for k, n := range []string{"n1", "n2", "n3"} {
		b.Soften(k+1, 0, 0, noon.Add(cluster.Minute), taken(n, "v100", 1), 0)
	}
	wants(t, "two nodes", b.compacted(onNodes(2, 4), map[int]int{1: 1, 2: 1, 3: 1}, cluster.Hour), "n1:4 n3:4 displacing [1 3] in 1 min, 1 to n2:1, 3 to n2:1")
	b = fill()
	b.Hold(taken("n3", "v100", 1), 0)
	wants(t, "one lease finds no GPU elsewhere if another one took it", b.compacted(onNodes(1, 4), size, cluster.Hour), "n1:4 displacing [1] in 1 min, 1 to n2:1")
	b = fill()
	b.Hold(taken("n1", "v100", 1), 0)
	wants(t, "a lease that may not end stays", b.compacted(onNodes(1, 4), size, cluster.Hour), "n2:4 displacing [2] in 1 min, 2 to n1:2")
	b.Hold(taken("n1", "v100", 1), 0)
	wants(t, "and so does one that fits nowhere", b.compacted(onNodes(1, 4), size, cluster.Hour), "none")
}

// Of moves that cost the same, those are made that leave a gang other nodes than slow ones.
func TestMovesAvoidSlowNodes(t *testing.T) {
	size := map[int]int{1: 1, 2: 1, 3: 1}
	fill := func(slow string) *Board {
		b := New(models, []cluster.Node{room("n1", "v100", 4), room("n2", "v100", 4), room("n3", "v100", 4)}, nil, noon)
		for k, n := range []string{"n1", "n2", "n3"} {
			b.Soften(k+1, 0, 0, noon.Add(cluster.Minute), taken(n, "v100", 1), 0)
		}
		Slow(b.site, slows(slow), []bool{true, true})
		return b
	}
	wants(t, "the slow node takes the leases", fill("n1").compacted(onNodes(2, 4), size, cluster.Hour), "n2:4 n3:4 displacing [2 3] in 1 min, 2 to n1:1, 3 to n1:1")
	size[2] = 2
	b := New(models, []cluster.Node{room("n1", "v100", 4), room("n2", "v100", 4), room("n3", "v100", 4)}, nil, noon)
	b.Soften(1, 0, 0, noon.Add(cluster.Minute), taken("n1", "v100", 1), 0)
	b.Soften(2, 0, 0, noon.Add(cluster.Minute), taken("n2", "v100", 2), 0)
	b.Soften(3, 0, 0, noon.Add(cluster.Minute), taken("n3", "v100", 1), 0)
	Slow(b.site, slows("n1"), []bool{true, true})
	wants(t, "not at a cost", b.compacted(onNodes(2, 4), size, cluster.Hour), "n1:4 n3:4 displacing [1 3] in 1 min, 1 to n2:1, 3 to n2:1")
}

// After random moves every lease and the gang have the GPUs that they ask for, within the limits. If there are none, the
// board is as before.
func TestMovesKeepEveryLease(t *testing.T) {
	moved := 0
	checks(t, 60, func(rt *rapid.T, k int) {
		s := newSmall(rt, k%2 > 0)
		for range 4 {
			if s.compact() {
				moved++
			}
			s.agree()
		}
	})
	if moved == 0 {
		t.Error("no lease ever moved")
	}
}

// specOf gives what a lease asks for: as many GPUs as it has, with its CPUs and memory, on any node.
func (s *small) specOf(key int) Spec {
	r := cluster.Request{}
	for _, h := range s.d.held[key].holds {
		if n := s.d.node(h.Node); !h.Size.IsWhole() {
			r.Nodes, r.Shards = 1, int((h.Size.Part*cluster.MicroGPU(n.Shards)+cluster.WholeGPU/2)/cluster.WholeGPU)
		}
		r.Size, r.CPUs, r.MemoryMB = cluster.Whole(r.Size.Devices+h.Size.Devices), r.CPUs+h.CPUs, r.MemoryMB+h.MemoryMB
	}
	return Spec{Request: r, Partitions: []string{"p", "q"}, Account: "other"}
}

// compact places a random gang by moves, checks and carries them out, and reports whether leases moved.
func (s *small) compact() bool {
	spec, end := s.spec(), noon.Add(cluster.Hour)
	most, limit := cluster.Times(1, rapid.SampledFrom([]cluster.Span{1, 3, 100}).Draw(s.T, "most")*cluster.Minute), rapid.IntRange(-1, 2).Draw(s.T, "limit")
	cost := func(key int) cluster.GPUTime {
		return cluster.Times(s.specOf(key).Request.Size.Devices, cluster.Minute)
	}
	before := fmt.Sprint(s.b.nodes, s.b.idleAndSoft(), s.b.parts)
	sharer := rapid.IntRange(0, 2).Draw(s.T, "as")
	p, moves, ok := Compact(s.b, Ask{Shape: s.b.site.Shape(spec), Pool: v100, Now: noon, End: end, Displace: Anybodys, Max: limit, Sharer: sharer}, most,
		func(who int) (Ask, cluster.GPUTime) {
			return Ask{Shape: s.b.site.Shape(s.specOf(who)), Pool: v100, Now: noon, End: end, Max: -1, Sharer: s.d.held[who].sharer}, cost(who)
		})
	if !ok {
		if after := fmt.Sprint(s.b.nodes, s.b.idleAndSoft(), s.b.parts); after != before {
			s.Fatalf("nothing moves, and the board changes from\n%s to\n%s", before, after)
		}
		return false
	}
	spent := cluster.GPUTime(0)
	for _, key := range p.Displaced {
		spent += cost(key)
	}
	if !s.inTurn(p.Displaced, moves, end) { // while all leases still have their GPUs
		s.Fatalf("leases %v do not fit on %v, in any order, of\n%+v", p.Displaced, moves, s.d.nodes)
	}
	if spent > most || limit >= 0 && len(p.Displaced) > limit || len(moves) != len(p.Displaced) {
		s.Fatalf("%d leases move to %d places, for %v; %d may, for %v", len(p.Displaced), len(moves), spent, limit, most)
	}
	for _, key := range p.Displaced {
		s.d.take(s.d.held[key].holds, s.d.held[key].sharer, -1)
		delete(s.d.held, key)
	}
	if s.d.as = sharer; !s.d.fits(&spec, p.Nodes, end) {
		s.Fatalf("%+v does not fit on %v of\n%+v", spec, p.Nodes, s.d.nodes)
	}
	s.d.take(p.Nodes, sharer, 1)
	return len(moves) > 0
}

// inTurn gives leases their new places, and reports whether they fit there in some order: which GPU a part is on depends on it.
func (s *small) inTurn(leases []int, places []Placement, end cluster.Instant) bool {
	for i, key := range leases {
		spec, nodes := s.specOf(key), places[i].Nodes
		if s.d.as = s.d.held[key].sharer; !s.d.fits(&spec, nodes, end) {
			continue
		}
		s.d.take(nodes, s.d.as, 1)
		if s.inTurn(without(leases, i), without(places, i), end) {
			return true
		}
		s.d.take(nodes, s.d.held[key].sharer, -1)
	}
	return len(leases) == 0
}

// without gives the elements of a list but one.
func without[E any](list []E, i int) []E { return slices.Delete(slices.Clone(list), i, i+1) }

// fits reports whether a job may have these GPUs.
func (d *dumb) fits(spec *Spec, nodes []cluster.Holding, end cluster.Instant) bool {
	got := make([]int, len(d.nodes))
	for _, h := range nodes {
		got[slices.IndexFunc(d.nodes, func(n dumbNode) bool { return n.Name == h.Node })] = h.Size.Devices
	}
	return slices.ContainsFunc(d.spreads(spec, "v100", end), func(spread []int) bool { return slices.Equal(spread, got) })
}

// idleAndSoft gives the idle and the soft GPUs of every slot.
func (b *Board) idleAndSoft() (out [][2]int) {
	for i := range b.slots {
		out = append(out, [2]int{b.slots[i].idle, b.slots[i].soft})
	}
	return out
}

// With leases of one GPU, a gang finds a node exactly if there are as many idle GPUs, on some node fewer of them are
// missing than most leases, and enough leases there may move.
func TestMovesAreFound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const size = 4
		var nodes []cluster.Node
		for i := range rapid.IntRange(1, 6).Draw(rt, "nodes") {
			nodes = append(nodes, room(fmt.Sprintf("n%d", i+1), "v100", size))
		}
		b := New(models, nodes, nil, noon)
		who, idle := 0, 0
		var stay, soft []int
		for _, n := range nodes {
			fixed := rapid.IntRange(0, 2).Draw(rt, "fixed")
			ends := rapid.IntRange(0, size-fixed).Draw(rt, "ending")
			b.Hold(taken(n.Name, "v100", fixed), 0)
			for range ends {
				who++
				b.Soften(who, 0, 0, noon.Add(cluster.Minute), taken(n.Name, "v100", 1), 0)
			}
			idle += size - fixed - ends
			stay, soft = append(stay, fixed), append(soft, ends)
		}
		want, most := rapid.IntRange(1, size).Draw(rt, "gang"), rapid.IntRange(0, size).Draw(rt, "most")
		found := false
		for i := range nodes {
			missing := max(want-(size-stay[i]-soft[i]), 0)
			found = found || missing <= min(most, soft[i]) && idle >= want
		}
		ask := Ask{Shape: b.site.Shape(onNodes(1, want)), Pool: v100, Now: noon, End: noon.Add(cluster.Hour), Displace: Anybodys, Max: -1}
		p, _, ok := Compact(b, ask, cluster.Times(most, cluster.Minute), func(int) (Ask, cluster.GPUTime) {
			return Ask{Shape: b.site.Shape(gang(1)), Pool: v100, Now: noon, End: noon.Add(cluster.Hour), Max: -1}, cluster.Times(1, cluster.Minute)
		})
		if ok != found {
			rt.Fatalf("%d GPUs with at most %d moves, of nodes with %v fixed and %v ending: %v %v, want %v", want, most, stay, soft, ok, p, found)
		}
	})
}
