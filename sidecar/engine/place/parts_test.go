package place

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// sharded gives a node with so many shards on each GPU.
func sharded(name string, gpus, shards int) cluster.Node {
	n := room(name, "v100", gpus)
	n.Shards = shards
	return n
}

// shards is a holding of shards of one GPU of a node, a CPU and a GB; number is the GPU if Slurm has told it, or -1.
func shards(n cluster.Node, k, number int) []cluster.Holding {
	h := cluster.Holding{Node: n.Name, Model: "v100", Size: cluster.Size{Devices: 1, Part: cluster.MicroGPU(k) * cluster.WholeGPU / cluster.MicroGPU(n.Shards)}, CPUs: 1, MemoryMB: 1024}
	if number >= 0 {
		h.Index = []int{number}
	}
	return []cluster.Holding{h}
}

// wantsShards is a job of partition p that asks for shards, a CPU and a GB.
func wantsShards(k int) Spec {
	s := gang(1)
	s.Request.Shards, s.Request.Nodes, s.Request.Size.Part = k, 1, cluster.WholeGPU/8
	return s
}

// share finds a place for a part with a sharer, who may displace anybody, or nobody.
func (b *Board) share(k, sharer, displace int) string {
	p, ok := b.Fit(Ask{Shape: b.site.Shape(wantsShards(k)), Pool: v100, Now: noon, End: noon.Add(cluster.Hour), Max: -1, Sharer: sharer, Displace: displace})
	if ok && p.Nodes[0].Size.Devices != 1 {
		return fmt.Sprint("a part of ", p.Nodes)
	}
	return strings.Replace(show(p, ok), ":1", "", 1)
}

func TestWhereAPartGoes(t *testing.T) {
	n := []cluster.Node{room("n1", "v100", 4), sharded("n2", 4, 4), sharded("n3", 2, 4), sharded("n4", 4, 2)}
	b := New(models, n, nil, noon)
	wants(t, "the tightest idle node with shards", b.share(1, 0, Nobodys), "n3")
	wants(t, "three shards are more than a GPU of n4 has", b.share(3, 0, Nobodys), "n3")
	wants(t, "five are more than any GPU has", b.share(5, 0, Nobodys), "none")
	b.Hold(shards(n[1], 2, 0), 0)
	wants(t, "a shared GPU first", b.share(1, 0, Nobodys), "n2")
	wants(t, "no room there: a node that shares already", b.share(3, 0, Nobodys), "n2")
	b.Hold(shards(n[3], 1, 0), 0)
	wants(t, "the tightest shared GPU", b.share(1, 0, Nobodys), "n4")
	wants(t, "two shards do not fit there", b.share(2, 0, Nobodys), "n2")
	wants(t, "four shards are a whole GPU", b.share(4, 0, Nobodys), "n3")
	b.Hold(taken("n3", "v100", 1), 0)
	b.Hold(taken("n2", "v100", 3), 0)
	wants(t, "no GPU of n2 is idle", b.share(3, 0, Nobodys), "n3")
	wants(t, "a job of whole GPUs gets none that is shared", b.find(onNodes(1, 4), v100), "n1:4")
	wants(t, "three are idle on n4", b.find(onNodes(1, 3), v100), "n4:3")
	if got := b.Idle(v100); got != 8 {
		t.Errorf("%d GPUs are idle, want 4 of n1, 1 of n3 and 3 of n4", got)
	}
	if got := fmt.Sprint(Free(b, v100), IdleOn(b, "n4", v100)); got != "[4 1 3] 3" {
		t.Errorf("free and idle: %s", got)
	}
	b.Close("n2")
	wants(t, "a closed node", b.share(2, 0, Nobodys), "n3")
	s := wantsShards(1)
	s.Exclude = []string{"n3"}
	wants(t, "-x n3", b.find(s, v100), "n4:1")
}

// The GPU of a piece follows from all pieces, in whatever order they came and went: those that Slurm has told, then the largest first.
func TestPiecesLieTheSameInAnyOrder(t *testing.T) {
	n := sharded("n1", 4, 4)
	all := [][]cluster.Holding{shards(n, 1, 2), shards(n, 2, 2), shards(n, 3, 0), shards(n, 1, -1), shards(n, 2, -1), shards(n, 3, -1)}
	// 3 of GPU 0 and the piece of 1, 3 of GPU 2, and two more GPUs
	for turn := range all {
		b := New(models, []cluster.Node{n}, nil, noon)
		b.Hold(shards(n, 1, -1), 0)
		for i := range all {
			b.Hold(all[(i+turn)%len(all)], 0)
		}
		Release(b, shards(n, 1, -1), 0)
		h := b.parts.slots[0]
		if got := fmt.Sprint(h.gpus, h.most, b.slots[0].idle, b.Idle(v100)); got != "4 2 0 0" {
			t.Errorf("turn %d: shared GPUs, most free shards, idle: %s", turn, got)
		}
		for i := range all {
			Release(b, all[i], 0)
		}
		if got := fmt.Sprint(b.parts.slots[0].gpus, b.slots[0].idle); got != "0 4" {
			t.Errorf("turn %d: once all have gone: %s", turn, got)
		}
	}
}

// Slurm gives parts by MPS out on one GPU of a node at a time, and only one user's jobs can use it. Shards are of other nodes.
func TestWhereAPartByMPSGoes(t *testing.T) {
	n := []cluster.Node{sharded("n1", 2, 4), sharded("n2", 2, 4), sharded("n3", 2, 4)}
	n[0].MPS, n[1].MPS = true, true
	const alice, bob, carol = 1, 2, 3
	b := New(models, n, nil, noon)
	mps := func(k, sharer int) string {
		s := wantsShards(k)
		s.Request.MPS = true
		p, ok := b.Fit(Ask{Shape: b.site.Shape(s), Pool: v100, Now: noon, End: noon.Add(cluster.Hour), Max: -1, Sharer: sharer, Displace: Nobodys})
		return strings.Replace(show(p, ok), ":1", "", 1)
	}
	wants(t, "a part by MPS", mps(2, alice), "n1")
	wants(t, "a shard", b.share(2, alice, Nobodys), "n3")
	b.Hold(shards(n[0], 2, 0), alice)
	wants(t, "beside its user's", mps(2, alice), "n1")
	wants(t, "it has no room there, and the other GPU of the node is not for MPS", mps(3, alice), "n2")
	wants(t, "another user, though it has no room on the first GPU", mps(3, bob), "n2")
	b.Hold(shards(n[1], 3, 1), bob)
	wants(t, "a third user", mps(1, carol), "none")
	wants(t, "a whole GPU", b.find(onNodes(1, 1), v100), "n1:1")
	wants(t, "no more room for MPS", mps(3, alice), "none")
}

func TestWhoSharesAGPU(t *testing.T) {
	n := []cluster.Node{sharded("n1", 2, 4), sharded("n2", 2, 4)}
	const alice, bob = 1, 2
	fill := func() *Board {
		b := New(models, n, nil, noon)
		b.Hold(shards(n[0], 2, 0), alice)
		return b
	}
	b := fill()
	wants(t, "the same", b.share(1, alice, Nobodys), "n1")
	wants(t, "anybody", b.share(1, 0, Nobodys), "n1")
	wants(t, "others: Slurm would put it there", b.share(1, bob, Nobodys), "n2")
	wants(t, "others, with a piece that does not fit there", b.share(3, bob, Nobodys), "n1")
	wants(t, "others, with a whole GPU", b.share(4, bob, Nobodys), "n1")
	b.Hold(taken("n2", "v100", 2), 0)
	wants(t, "others, who find nothing else", b.share(1, bob, Nobodys), "none")
	wants(t, "that they found nothing keeps nobody else off", b.share(1, alice, Nobodys), "n1")
	b.Hold(shards(n[0], 2, -1), alice)
	wants(t, "the piece that fills the GPU may come later", b.share(1, bob, Nobodys), "none")
	Release(b, shards(n[0], 2, -1), alice)
	wants(t, "the piece has gone", b.share(1, bob, Nobodys), "none")
	b.Hold(shards(n[0], 2, 0), alice)
	wants(t, "the GPU is full", b.share(1, bob, Nobodys), "n1")

	b = New(models, n[:1], nil, noon)
	b.Hold(shards(n[0], 2, -1), alice)
	wants(t, "a piece without a number of its GPU, too", b.share(2, bob, Nobodys), "none")
	wants(t, "both are on no GPU", b.share(3, bob, Nobodys), "n1")
	b = New(models, n[:1], nil, noon)
	b.Hold(shards(n[0], 2, 0), 0)
	wants(t, "a job that shares with anybody", b.share(1, bob, Nobodys), "n1")
	p, _ := b.Fit(Ask{Shape: b.site.Shape(wantsShards(1)), Pool: v100, Now: noon, Max: -1, Sharer: bob})
	b.Take(p)
	wants(t, "and then not beside its neighbour", b.share(1, alice, Nobodys), "none")
}

func TestPartsAreDisplaced(t *testing.T) {
	n := []cluster.Node{sharded("n1", 2, 4)}
	const alice, bob = 1, 2
	later := noon.Add(cluster.Minute)
	type job struct{ k, number, sharer, rank int } // rank < 0: fixed
	for _, c := range []struct {
		name      string
		jobs      []job
		k, sharer int
		want      string
	}{
		{"the last in the queue", []job{{4, 0, 0, 1}, {2, 1, 0, 2}, {2, 1, 0, 3}}, 1, 0, "n1 displacing [3] in 1 min"},
		{"one is enough", []job{{4, 0, 0, -1}, {2, 1, 0, 3}, {1, 1, 0, 4}, {1, 1, 0, -1}}, 2, 0, "n1 displacing [2] in 1 min"},
		{"a whole GPU: both of one GPU", []job{{2, 0, 0, 5}, {2, 0, 0, -1}, {2, 1, 0, 2}, {2, 1, 0, 3}}, 4, 0, "n1 displacing [3 4] in 1 min"},
		{"a GPU with a piece that stays is no whole GPU", []job{{2, 0, 0, 5}, {2, 0, 0, -1}, {2, 1, 0, 2}, {2, 1, 0, -1}}, 4, 0, "none"},
		{"nobody with whom it may not share stays", []job{{2, 0, alice, -1}, {2, 0, alice, 5}, {2, 1, bob, 2}, {2, 1, bob, -1}}, 1, bob, "n1 displacing [3] in 1 min"},
		{"all of them go", []job{{4, 0, 0, -1}, {2, 1, alice, 4}, {2, 1, alice, 5}}, 1, bob, "n1 displacing [2 3] in 1 min"},
		{"none of them goes if that is not needed", []job{{2, 0, bob, 3}, {2, 0, 0, -1}, {2, 1, alice, 4}, {2, 1, alice, 5}}, 2, bob, "n1 displacing [3 4] in 1 min"},
		{"nor if their GPU would not do", []job{{1, 0, alice, 9}, {1, 0, alice, 8}, {2, 0, 0, -1}, {3, 1, 0, 7}, {1, 1, 0, -1}}, 3, bob, "n1 displacing [4] in 1 min"},
		{"Slurm would put it beside them", []job{{1, 0, alice, 4}, {2, 0, 0, -1}}, 1, bob, "n1 displacing [1] in 1 min"},
	} {
		b := New(models, n, nil, noon)
		for i, j := range c.jobs {
			if j.rank < 0 {
				b.Hold(shards(n[0], j.k, j.number), j.sharer)
			} else {
				b.Soften(i+1, 0, j.rank, later, shards(n[0], j.k, j.number), j.sharer)
			}
		}
		wants(t, c.name, b.share(c.k, c.sharer, Anybodys), c.want)
	}
	b := New(models, n, nil, noon)
	for i, number := range []int{0, 0, 1, 1} {
		b.Soften(i+1, 0, i*5%4, later, shards(n[0], 2, number), 0)
	}
	wants(t, "a gang of one displaces both of GPU 1, not the last of GPU 0 as well", b.oust(onNodes(1, 1), v100, -1), "n1:1 displacing [3 4] in 1 min")
	if got := Free(b, v100); !slices.Equal(got, []int{2}) {
		t.Errorf("free or soft: %v, want both GPUs", got)
	}
	b.Renew(3)
	wants(t, "one of GPU 1 has been renewed", b.oust(onNodes(1, 1), v100, -1), "n1:1 displacing [1 2] in 1 min")
	wants(t, "two GPUs are not to be had", b.oust(onNodes(1, 2), v100, -1), "none")
	b.Displace(4)
	wants(t, "its shards are free later", b.share(2, 0, Nobodys), "n1 in 1 min")
	b.Displace(1)
	wants(t, "those of GPU 0, too", b.share(2, 0, Nobodys), "n1 in 1 min")
	wants(t, "the rest of it goes to one who waits for a whole one", b.oust(onNodes(1, 1), v100, -1), "n1:1 displacing [2] in 1 min")
}

// A part that may end counts as a GPU that may end only with all others on its GPU, and copies of a board do not change it.
func TestPartsOnACopy(t *testing.T) {
	n := sharded("n1", 2, 2)
	base := New(models, []cluster.Node{n, room("n2", "v100", 1)}, nil, noon)
	spots := [][]Spot{base.site.Spots(shards(n, 1, 0), 0, nil), base.site.Spots(shards(n, 1, 0), 7, nil)}
	Fill(base, spots[0], 1)
	Fill(base, spots[1], 1)
	before := fmt.Sprint(base.parts, base.slots)
	b := &Board{}
	for range 2 {
		b = base.site.Clear(b, View{})
		Copy(b, base)
		Loosen(b, 1, 0, 1, noon, spots[0])
		wants(t, "one of two", b.oust(onNodes(1, 2), v100, -1), "none")
		Copy(b, base)
		Loosen(b, 1, 0, 1, noon, spots[0])
		Loosen(b, 2, 0, 2, noon, spots[1])
		wants(t, "both", b.oust(onNodes(1, 2), v100, -1), "n1:2 displacing [1 2]")
		b.Displace(1)
		b.Displace(2)
		wants(t, "the node is empty", b.find(onNodes(1, 2), v100), "n1:2")
	}
	if after := fmt.Sprint(base.parts, base.slots); after != before {
		t.Errorf("the board that was copied changed from\n%s to\n%s", before, after)
	}
	Fill(base, spots[0], -1)
	Fill(base, spots[1], -1)
	wants(t, "taken back", base.find(onNodes(1, 2), v100), "n1:2")
}

// A job that holds more shards of a node than a GPU has is on a GPU as a whole, as is one on a node that has no shards any more.
func TestHoldingsThatAreNoParts(t *testing.T) {
	half := cluster.Size{Devices: 1, Part: cluster.WholeGPU / 2}
	b := New(models, []cluster.Node{room("n1", "v100", 2)}, nil, noon)
	b.Hold([]cluster.Holding{{Node: "n1", Model: "v100", Size: half}}, 0)
	b.Hold([]cluster.Holding{{Node: "n1", Model: "v100", Size: half}}, 0)
	wants(t, "both GPUs are taken", b.find(gang(1), v100), "none")
	if who, short := b.Short("n1", "v100"); short {
		t.Errorf("short of GPUs: %d", who)
	}
	s := sharded("n1", 1, 4)
	b = New(models, []cluster.Node{s}, nil, noon)
	b.Soften(1, 0, 1, noon, shards(s, 2, 0), 0)
	b.Soften(2, 0, 2, noon, shards(s, 2, 0), 0)
	if who, short := b.Short("n1", "v100"); short {
		t.Errorf("two halves are one GPU: %d", who)
	}
	b.Hold(taken("n1", "v100", 1), 0)
	for _, want := range []int{1, 2} {
		who, short := b.Short("n1", "v100")
		if !short || who != want {
			t.Errorf("short: %v, first goes %d, want %d", short, who, want)
		}
		b.Displace(who)
	}
	if _, short := b.Short("n1", "v100"); short {
		t.Error("still short")
	}
}
