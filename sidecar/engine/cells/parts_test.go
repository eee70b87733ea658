package cells

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// The allotment by itself, without leases: what is free, by level, what a VC has bound and has lost, and what is free to use in its cells.
func TestAllotment(t *testing.T) {
	const a, b = 0, 1
	on := func(level int16, node int32, gpus uint64) part { return part{level: level, node: node, gpus: gpus} }
	var s *State
	whole := 0 // the level of nodes
	for _, row := range []struct {
		what string
		do   func(x *allotment)
		want string // free cells from the GPU up; of a and b: bound nodes or GPUs, lost ones, GPUs to use
	}{
		{"nothing is bound", func(*allotment) {}, "free [0 0 0 0 1] a 0 0 0 b 0 0 0"},
		{"a binds a node", func(x *allotment) { x.bind(a, 0, whole, 0) }, "free [0 0 0 1 0] a 1 0 8 b 0 0 0"},
		{"and returns it", func(x *allotment) { x.bind(a, 0, whole, 0); x.unbind(a, 0, whole, 0) }, "free [0 0 0 0 1] a 0 0 0 b 0 0 0"},
		{"b binds a GPU", func(x *allotment) { x.bind(b, 0, 0, 15) }, "free [1 1 1 1 0] a 0 0 0 b 1 0 1"},
		{"a uses GPUs of its node", func(x *allotment) { x.bind(a, 0, whole, 1); x.use(a, on(int16(whole), 1, 7)) }, "free [0 0 0 1 0] a 1 0 5 b 0 0 0"},
		{"its last GPU becomes idle", func(x *allotment) {
			x.bind(a, 0, whole, 1)
			x.use(a, on(int16(whole), 1, 3))
			if _, idle := x.leave(a, on(int16(whole), 1, 1)); idle {
				t.Error("a cell is idle that is used")
			}
			if i, idle := x.leave(a, on(int16(whole), 1, 2)); !idle || i != 1 {
				t.Errorf("cell %d, idle: %v", i, idle)
			}
		}, "free [0 0 0 1 0] a 1 0 8 b 0 0 0"},
		{"a GPU dies in no cell: b loses one", func(x *allotment) { x.spoil(place{0, 0}, 1) }, "free [1 1 1 1 0] a 0 0 0 b 0 1 0"},
		{"and is repaired", func(x *allotment) { x.spoil(place{0, 0}, 1); x.spoil(place{0, 0}, 0) }, "free [0 0 0 0 1] a 0 0 0 b 0 0 0"},
		{"it dies, and the losses are settled later", func(x *allotment) { x.try(true); x.spoil(place{0, 0}, 1) }, "free [1 1 1 1 0] a 0 0 0 b 0 0 0"},
		{"it dies in a's node: nothing is lost", func(x *allotment) { x.bind(a, 0, whole, 0); x.spoil(place{0, 0}, 1) }, "free [0 0 0 1 0] a 1 0 7 b 0 0 0"},
		{"b's losses are remembered", func(x *allotment) { x.lose([]Loss{{VC: "b", Type: "gpu", Cells: 3}}) }, "free [0 0 0 0 1] a 0 0 0 b 0 3 0"},
	} {
		var err error
		if s, err = New(twoNodes()); err != nil {
			t.Fatal(err)
		}
		c := s.Cells.chains[0]
		whole = c.tree.nodeAt
		row.do(s.allot)
		free := make([]int, c.tree.top()+1)
		for k := range free {
			free[k] = c.tree.levels[k].free
		}
		got := fmt.Sprint("free ", free)
		for v, k := range []int{whole, 0} {
			x := s.Cells.vcs[v].accounts[0][k]
			use := 0
			for _, key := range x.open {
				use += int(key >> freeBits)
			}
			got += fmt.Sprintf(" %s %d %d %d", s.Cells.vcs[v].name, x.bound, x.lost, use)
		}
		if got != row.want {
			t.Errorf("%s: %s, want %s", row.what, got, row.want)
		}
	}
}

// Lent GPUs weigh on the cells that contain them while their leases stay, and no longer.
func TestAllotmentHosts(t *testing.T) {
	s, err := New(twoNodes())
	if err != nil {
		t.Fatal(err)
	}
	levels, node := s.Cells.chains[0].tree.levels, s.Cells.chains[0].tree.nodeAt
	for _, row := range []struct {
		lent, stays uint64
		want        int32 // GPUs of the node, and of the whole chain, under leases that stay
	}{{0b111, 0b111, 3}, {0b111, 0b1, 1}, {0b111, 0, 0}, {0, 0, 0}} {
		s.allot.host(0, 1, row.lent, row.stays)
		if d := s.Cells.chains[0].nodes[1]; d.lent != row.lent || d.stays != row.stays || levels[node].stays[1] != row.want || levels[len(levels)-1].stays[0] != row.want {
			t.Errorf("%b lent, %b stay: %+v, and %d", row.lent, row.stays, d, levels[node].stays[1])
		}
	}
}

// The roster: which leases stand where by which right, which of them are a VC's, and which cells are bound for them.
func TestRoster(t *testing.T) {
	on := func(node int32, gpus uint64) part { return part{node: node, gpus: gpus} } // in cells of one GPU
	stand := func(x *roster, job int, p ...part) int32 {
		l := x.open(job, "b", 0, cluster.Guaranteed)
		x.join(l, 1)
		for _, p := range p {
			x.allot.bind(1, 0, 0, x.cells.chains[0].tree.cellOf(0, int(p.node), p.gpus))
			x.use(l, p)
		}
		return l
	}
	for _, row := range []struct {
		what string
		do   func(x *roster)
		want string // jobs with right and GPUs; those of b's; GPUs that b has bound
	}{
		{"nobody", func(*roster) {}, "[] b [] 0"},
		{"a lease in two cells", func(x *roster) { stand(x, 5, on(0, 1), on(1, 2)) }, "[5 guaranteed 2] b [5] 2"},
		{"it quits: its cells are returned", func(x *roster) { x.quit(stand(x, 5, on(0, 1), on(1, 2))) }, "[5 guaranteed 0] b [] 0"},
		{"and its place is another's", func(x *roster) { l := stand(x, 5, on(0, 1)); x.quit(l); x.close(l); stand(x, 7, on(1, 1)) }, "[7 guaranteed 1] b [7] 1"},
		{"the first of three quits", func(x *roster) {
			l := stand(x, 1, on(0, 1))
			stand(x, 2, on(0, 2))
			m := stand(x, 3, on(0, 4))
			x.quit(l)
			x.quit(m)
		}, "[1 guaranteed 0 2 guaranteed 1 3 guaranteed 0] b [2] 1"},
		{"its cell is kept for a while", func(x *roster) {
			l := stand(x, 5, on(0, 1), on(0, 2))
			x.keeping(1, func() bool {
				x.empty(l)
				if n := x.cells.vcs[1].accounts[0][0].bound; n != 2 {
					t.Errorf("%d cells are kept, want 2", n)
				}
				x.use(l, on(0, 2))
				return true
			})
		}, "[5 guaranteed 1] b [5] 1"},
		{"demoted in place", func(x *roster) { x.demote(stand(x, 5, on(0, 1))) }, "[5 opportunistic 1] b [] 0"},
		{"a guest departs", func(x *roster) { l := x.open(9, "g", 0, cluster.Opportunistic); x.visit(l, on(0, 6)); x.depart(l) }, "[9 opportunistic 0] b [] 0"},
		{"one is recalled", func(x *roster) { x.Stay(9, "g", []Part{{Node: "n1", GPUs: 6}}); x.Leave(9) }, "[9 opportunistic 2 leaves] b [] 0"},
	} {
		s, err := New(twoNodes())
		if err != nil {
			t.Fatal(err)
		}
		row.do(s.Leases)
		got := []string{}
		for _, l := range s.Leases.Export().Leases {
			gpus := 0
			for _, p := range l.Parts {
				gpus += bits.OnesCount64(p.GPUs)
			}
			text := fmt.Sprintf("%d %s %d", l.Job, l.Right, gpus)
			if l.Leaving {
				text += " leaves"
			}
			got = append(got, text)
		}
		var its []int
		for _, l := range s.Leases.ofVC[1] {
			its = append(its, s.Leases.leases[l].job)
		}
		slices.Sort(its)
		if text := fmt.Sprint(got, " b ", its, " ", s.Cells.vcs[1].accounts[0][0].bound); text != row.want {
			t.Errorf("%s: %s, want %s", row.what, text, row.want)
		}
	}
}
