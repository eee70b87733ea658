package place

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// ASTRAEA §5: "we use a common consolidated job placement strategy along with
// ASTRAEA, which deploys a job on as few nodes as possible".

var models = []string{"k80", "v100"}

const k80, v100 = 0, 1

// room gives a node of partition p with 4 CPUs and 4 GB for each of its GPUs.
func room(name, model string, gpus int) cluster.Node {
	return cluster.Node{Name: name, GPUs: []cluster.GPUs{{Model: model, Count: gpus}}, CPUs: 4 * gpus, MemoryMB: 4096 * int64(gpus), Partitions: []string{"p"}}
}

func taken(node, model string, gpus int) []cluster.Holding {
	return []cluster.Holding{{Node: node, Model: model, Size: cluster.Whole(gpus), CPUs: gpus, MemoryMB: 1024 * int64(gpus)}}
}

// gang is a job of partition p that wants GPUs anyhow, a CPU and a GB with each.
func gang(gpus int) Spec {
	return Spec{Request: cluster.Request{Size: cluster.Whole(gpus), CPUs: gpus, MemoryMB: 1024 * int64(gpus)}, Partitions: []string{"p"}}
}

// onNodes is a gang with so many GPUs on each of so many nodes.
func onNodes(nodes, per int) Spec {
	s := gang(nodes * per)
	s.Request.Nodes, s.Request.PerNode = nodes, per
	return s
}

// New makes a board on which everything is idle and everything counts.
func New(pools []string, nodes []cluster.Node, reservations []cluster.Reservation, now cluster.Instant) *Board {
	return Survey(pools, nodes, reservations, now).Board(View{Busy: true, Reserved: true, Occupied: true})
}

func (b *Board) find(s Spec, pool int) string {
	return show(b.Fit(Ask{Shape: b.site.Shape(s), Pool: pool, Now: noon, End: noon.Add(cluster.Hour), Max: -1}))
}

// oust is find with leave to displace anyone.
func (b *Board) oust(s Spec, pool, most int) string {
	return show(b.Fit(Ask{Shape: b.site.Shape(s), Pool: pool, Now: noon, End: noon.Add(cluster.Hour), Max: most, Displace: Anybodys}))
}

// show writes a placement as "n1:4 n2:4", with whom it displaces and, if that is
// not now, the minute when it can start.
func show(p Placement, ok bool) string {
	if !ok {
		return "none"
	}
	var parts []string
	for _, h := range p.Nodes {
		parts = append(parts, fmt.Sprintf("%s:%d", h.Node, h.Size.Devices))
	}
	if len(p.Displaced) > 0 {
		parts = append(parts, fmt.Sprintf("displacing %v", p.Displaced))
	}
	if p.At != noon {
		parts = append(parts, fmt.Sprintf("in %s", p.At.Sub(noon)))
	}
	return strings.Join(parts, " ")
}

func wants(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestFewestNodesThenTheTightest(t *testing.T) {
	b := New(models, []cluster.Node{room("n1", "v100", 4), room("n2", "v100", 4), room("n3", "v100", 4)}, nil, noon)
	b.Hold(taken("n1", "v100", 3), 0)
	b.Hold(taken("n2", "v100", 2), 0)
	wants(t, "one GPU where one is left", b.find(gang(1), v100), "n1:1")
	wants(t, "two where two are left", b.find(gang(2), v100), "n2:2")
	wants(t, "three on the empty node", b.find(gang(3), v100), "n3:3")
	wants(t, "five do not fit on one node", b.find(gang(5), v100), "n2:1 n3:4")
	wants(t, "six evenly would be 3+3, which is not there", b.find(gang(6), v100), "n2:2 n3:4")
	wants(t, "seven take three nodes", b.find(gang(7), v100), "n1:1 n2:2 n3:4")
	wants(t, "eight are not idle", b.find(gang(8), v100), "none")
	wants(t, "two nodes with two each", b.find(onNodes(2, 2), v100), "n2:2 n3:2")
	wants(t, "two nodes with three each", b.find(onNodes(2, 3), v100), "none")
	s := gang(3)
	s.Request.Nodes = 2
	wants(t, "--gpus=3 -N2", b.find(s, v100), "n2:1 n3:2")
	s = gang(6)
	s.Request.MaxNodes = 1
	wants(t, "--gpus=6 -N1", b.find(s, v100), "none")
}

// A job goes beside one that cannot be stopped rather than beside one that soon ends: n1 is whole again sooner, for a gang. Tightness comes first.
func TestTogether(t *testing.T) {
	b := New(models, []cluster.Node{room("n1", "v100", 4), room("n2", "v100", 4), room("n3", "v100", 4)}, nil, noon)
	for _, n := range []string{"n1", "n2", "n3"} {
		b.Hold(taken(n, "v100", 1), 0)
	}
	together := func(s Spec) string {
		return show(b.Fit(Ask{Shape: b.site.Shape(s), Pool: v100, Now: noon, End: noon.Add(cluster.Hour), Max: -1, Together: true}))
	}
	for range 2 { // an attempt that failed says nothing of the other kind
		wants(t, "four do not fit on one node", together(gang(4)), "none")
		wants(t, "they do on two", b.find(gang(4), v100), "n1:2 n2:2")
		wants(t, "eight do not fit on two nodes", together(gang(8)), "none")
		wants(t, "they do on three", b.find(gang(8), v100), "n1:3 n2:3 n3:2")
		wants(t, "six need two nodes anyway", together(gang(6)), "n1:3 n2:3")
		wants(t, "who asks for three nodes gets three", together(onNodes(3, 1)), "n1:1 n2:1 n3:1")
	}
}

func TestOfNodesAsTightTheBoundOne(t *testing.T) {
	b := New(models, []cluster.Node{room("n1", "v100", 4), room("n2", "v100", 4), room("n3", "v100", 4)}, nil, noon)
	for _, node := range []string{"n1", "n2"} {
		b.Hold(taken(node, "v100", 2), 0)
	}
	wants(t, "by node", b.find(gang(1), v100), "n1:1")
	Bind(b, b.site.Spots(taken("n2", "v100", 2), 0, nil))
	wants(t, "the bound one", b.find(gang(1), v100), "n2:1")
	wants(t, "both", b.find(onNodes(2, 2), v100), "n1:2 n2:2")
	b.Hold(taken("n1", "v100", 1), 0)
	wants(t, "the tighter one", b.find(gang(1), v100), "n1:1")
	Copy(b, b.site.Board(View{}))
	wants(t, "by node on a board that was filled anew", b.find(gang(1), v100), "n1:1")
}

func TestCPUsAndMemoryMustFitToo(t *testing.T) {
	b := New(models, []cluster.Node{room("n1", "v100", 4), room("n2", "v100", 4)}, nil, noon)
	b.Hold([]cluster.Holding{{Node: "n1", CPUs: 13}}, 0)            // a job without GPUs
	b.Hold([]cluster.Holding{{Node: "n2", MemoryMB: 13 * 1024}}, 0) // and another
	wants(t, "four GPUs and four CPUs", b.find(onNodes(1, 4), v100), "none")
	wants(t, "three fit", b.find(gang(3), v100), "n1:3")
	wants(t, "four on two nodes", b.find(gang(4), v100), "n1:2 n2:2")
	wants(t, "six on two nodes", b.find(gang(6), v100), "n1:3 n2:3")
	wants(t, "seven nowhere", b.find(gang(7), v100), "none")
	s := gang(1)
	s.Request.CPUs, s.Request.MemoryMB = 4, 0
	wants(t, "CPUs are short on n1 only", b.find(s, v100), "n2:1")
	s.Request.CPUs, s.Request.MemoryMB = 1, 4096
	wants(t, "memory is short on n2 only", b.find(s, v100), "n1:1")
}

func TestNodesThatAreNotToBeUsed(t *testing.T) {
	nodes := []cluster.Node{room("n1", "v100", 4), room("n2", "v100", 4), room("n3", "v100", 4), room("n4", "v100", 4)}
	nodes[0].Bad = "drained"
	nodes[1].Busy = "completing"
	nodes[2].Partitions = []string{"q"}
	b := New(models, nodes, nil, noon)
	wants(t, "good, free and of the partition", b.find(gang(4), v100), "n4:4")
	if got := b.Idle(v100); got != 8 {
		t.Errorf("%d GPUs are idle, want the 8 of n3 and n4", got)
	}
	s := gang(4)
	s.Partitions = []string{"q", "p"}
	wants(t, "of either partition", b.find(s, v100), "n3:4")
	s.Exclude = []string{"n3"}
	wants(t, "-x n3", b.find(s, v100), "n4:4")
	s.Require = []string{"n3"}
	wants(t, "-w n3 -x n3", b.find(s, v100), "none")
	s.Exclude, s.Require = nil, []string{"n1", "n4"}
	wants(t, "-w is a list of candidates", b.find(s, v100), "n4:4")
}

// A list that names fewer nodes than a gang needs names some of its nodes; one that suffices names all.
func TestAListOfSomeNodes(t *testing.T) {
	nodes := []cluster.Node{room("n1", "v100", 4), room("n2", "v100", 4), room("n3", "v100", 4), room("n4", "k80", 4)}
	b := New(models, nodes, nil, noon)
	for _, c := range []struct {
		name    string
		spec    Spec
		require []string
		want    string
	}{
		{"-N2 -w n3", onNodes(2, 4), []string{"n3"}, "n1:4 n3:4"},
		{"-N3 -w n[2-3]", onNodes(3, 4), []string{"n[2-3]"}, "n1:4 n2:4 n3:4"},
		{"-N2 -w n[2-3]", onNodes(2, 4), []string{"n[2-3]"}, "n2:4 n3:4"},
		{"--gpus=4 -w n3", gang(4), []string{"n3"}, "n3:4"},
		{"--gpus=7 -w n3", gang(7), []string{"n3"}, "n1:3 n3:4"},
		{"-N2 -w n4, of another model", onNodes(2, 4), []string{"n4"}, "none"},
		{"-N2 -w n9, which is no node", onNodes(2, 4), []string{"n9"}, "none"},
		{"-N4 -w n3", onNodes(4, 4), []string{"n3"}, "none"},
		{"-N2 -w n[3-100000000]", onNodes(2, 4), []string{"n[3-100000000]"}, "none"},
	} {
		c.spec.Require, c.spec.Others = c.require, true
		wants(t, c.name, b.find(c.spec, v100), c.want)
	}
}

// Partitions beyond the 63rd share a bit, which must not let a job into one that
// is not its own.
func TestManyPartitions(t *testing.T) {
	var nodes []cluster.Node
	for i := range 70 {
		n := room(fmt.Sprintf("n%02d", i), "v100", 1)
		n.Partitions = []string{fmt.Sprintf("p%02d", i)}
		nodes = append(nodes, n)
	}
	b := New(models, nodes, nil, noon)
	for i := range 70 {
		s := gang(1)
		s.Partitions = []string{fmt.Sprintf("p%02d", i)}
		wants(t, s.Partitions[0], b.find(s, v100), fmt.Sprintf("n%02d:1", i))
	}
	s := gang(1)
	s.Partitions = []string{"elsewhere"}
	wants(t, "a partition without nodes", b.find(s, v100), "none")
}

func TestFeatures(t *testing.T) {
	nodes := []cluster.Node{room("n1", "v100", 4), room("n2", "v100", 4), room("n3", "v100", 4)}
	nodes[1].Features = []string{"ib"}
	nodes[2].Features = []string{"ib", "nvme"}
	b := New(models, nodes, nil, noon)
	for constraint, want := range map[string]string{"": "n1:4", "ib": "n2:4", "nvme": "n3:4", "ib&nvme": "n3:4",
		"nvme|ib": "n2:4", "tape|nvme": "n3:4", "tape": "none", "tape&ib|nvme": "n3:4"} {
		s := gang(4)
		s.Request.Features = constraint
		wants(t, "-C "+constraint, b.find(s, v100), want)
	}
}

// magnetic makes a reservation one that its jobs need not name.
func magnetic(change func(*cluster.Reservation)) func(*cluster.Reservation) {
	return func(r *cluster.Reservation) {
		if r.Flags, r.Start = []string{"SPEC_NODES", cluster.Magnetic}, noon; change != nil {
			change(r)
		}
	}
}

// keeps is some CPUs of a node.
func keeps(node string, cpus int) []cluster.ReservedPart {
	return []cluster.ReservedPart{{Node: node, CPUs: cpus}}
}

// "Slurm does not start a job whose time limit runs into a coming reservation."
func TestAReservationAhead(t *testing.T) {
	maint := cluster.Reservation{Name: "maint", Nodes: []string{"n1"}, Start: noon.Add(cluster.Hour), End: noon.Add(5 * cluster.Hour)}
	for _, c := range []struct {
		name  string
		r     func(*cluster.Reservation)
		limit cluster.Span
		want  string
	}{
		{"the limit is over before", nil, cluster.Hour, "n1:4"},
		{"the limit runs into it", nil, cluster.Hour + 1, "none"},
		{"no limit", nil, 0, "none"},
		{"it has begun", func(r *cluster.Reservation) { r.Start = noon.Add(-cluster.Hour) }, cluster.Minute, "none"},
		{"it is over", func(r *cluster.Reservation) { r.Start, r.End = noon.Add(-2*cluster.Hour), noon }, 0, "n1:4"},
		{"for the job's account, which must name it", func(r *cluster.Reservation) { r.Accounts = []string{"nlp"} }, 0, "none"},
		{"for the job's user, who must name it", func(r *cluster.Reservation) { r.Users = []string{"alice"} }, 0, "none"},
		{"magnetic, for the job's account", magnetic(func(r *cluster.Reservation) { r.Accounts = []string{"nlp"} }), 5 * cluster.Hour, "n1:4"},
		{"magnetic, and over before the job", magnetic(func(r *cluster.Reservation) { r.Accounts = []string{"nlp"} }), 5*cluster.Hour + 1, "none"},
		{"magnetic, for a job without a limit", magnetic(func(r *cluster.Reservation) { r.Accounts = []string{"nlp"} }), 0, "none"},
		{"magnetic and flexible", magnetic(func(r *cluster.Reservation) { r.Accounts, r.Flags = []string{"nlp"}, append(r.Flags, "FLEX") }), 0, "n1:4"},
		{"magnetic, and to come", magnetic(func(r *cluster.Reservation) { r.Accounts, r.Start = []string{"nlp"}, noon.Add(1) }), cluster.Hour, "none"},
		{"magnetic, for the job's user", magnetic(func(r *cluster.Reservation) { r.Users = []string{"alice"} }), cluster.Hour, "n1:4"},
		{"magnetic, for the account and another user", magnetic(func(r *cluster.Reservation) { r.Accounts, r.Users = []string{"nlp"}, []string{"bob"} }), cluster.Hour, "none"},
		{"magnetic, for all but the job's account", magnetic(func(r *cluster.Reservation) { r.Accounts = []string{"-nlp"} }), cluster.Hour, "none"},
		{"magnetic, for all but another account", magnetic(func(r *cluster.Reservation) { r.Accounts = []string{"-vision"} }), cluster.Hour, "n1:4"},
		{"magnetic, for a group", magnetic(nil), cluster.Hour, "none"},
		{"of some CPUs, but not too many", func(r *cluster.Reservation) { r.Start, r.Parts = noon, keeps("n1", 12) }, 0, "n1:4"},
		{"of too many CPUs", func(r *cluster.Reservation) { r.Start, r.Parts = noon, keeps("n1", 13) }, 0, "none"},
		{"of too many CPUs, and to come", func(r *cluster.Reservation) { r.Parts = keeps("n1", 13) }, cluster.Hour, "n1:4"},
		{"of some CPUs of another node", func(r *cluster.Reservation) { r.Start, r.Parts = noon, keeps("n2", 1) }, 0, "none"},
		{"of GPUs", func(r *cluster.Reservation) {
			r.Start, r.Parts = noon, []cluster.ReservedPart{{Node: "n1", CPUs: 2, GPUs: 1}}
		}, 0, "none"},
		{"of licences", func(r *cluster.Reservation) { r.Start, r.Nodes, r.Licenses = noon, nil, "matlab:2" }, 0, "n1:4"},
		{"for others", func(r *cluster.Reservation) { r.Users = []string{"bob"} }, 0, "none"},
		{"ours, of a hand-over", func(r *cluster.Reservation) { r.Ours = true }, 0, "n1:4"},
	} {
		r := maint
		if c.r != nil {
			c.r(&r)
		}
		b := New(models, []cluster.Node{room("n1", "v100", 4)}, []cluster.Reservation{r}, noon)
		s := gang(4)
		s.Account, s.User, s.Limit, s.Request.CPUs = "nlp", "alice", c.limit, 4
		wants(t, c.name, b.find(s, v100), c.want)
	}
}

// CPUs that a reservation keeps and its jobs hold count once: the node's other CPUs are for other jobs.
func TestAReservationInUse(t *testing.T) {
	half := cluster.Reservation{Name: "half", Nodes: []string{"n1"}, Start: noon, End: noon.Add(cluster.Hour), Parts: keeps("n1", 16)}
	n := room("n1", "v100", 4)
	n.CPUs = 32
	for _, c := range []struct {
		name   string
		within string // the reservation of the job that runs
		holds  int    // CPUs of it
		asks   int    // CPUs
		want   string
	}{
		{"empty", "half", 0, 16, "n1:4"},
		{"empty, too many", "half", 0, 17, "none"},
		{"half full", "half", 8, 16, "n1:4"},
		{"half full, too many", "half", 8, 17, "none"},
		{"full", "half", 16, 16, "n1:4"},
		{"full, one of several names", "other,half", 16, 16, "n1:4"},
		{"full, too many", "half", 16, 17, "none"},
		{"more than full", "half", 20, 12, "n1:4"},
		{"more than full, too many", "half", 20, 13, "none"},
		{"full of the others' jobs", "", 16, 1, "none"},
		{"full of jobs of another reservation", "other", 16, 1, "none"},
	} {
		b := New(models, []cluster.Node{n}, []cluster.Reservation{half}, noon)
		holds := []cluster.Holding{{Node: "n1", CPUs: c.holds}, {Node: "gone", CPUs: 1}}
		b.Hold(holds, 0)
		Occupy(b.site, c.within, holds)
		s := gang(4)
		s.Account, s.Request.CPUs = "nlp", c.asks
		wants(t, c.name, b.find(s, v100), c.want)
		ever := b.site.Board(View{Reserved: true}) // nobody is on it
		for _, cpus := range []int{16, 17} {
			s.Request.CPUs = cpus
			wants(t, c.name+", on an empty board", ever.find(s, v100), map[int]string{16: "n1:4", 17: "none"}[cpus])
		}
	}
}

// GPUs that a reservation keeps and its jobs hold count once: the node's other GPUs are for other jobs.
func TestAReservationOfGPUs(t *testing.T) {
	two := cluster.Reservation{Name: "two", Nodes: []string{"n1"}, Start: noon, End: noon.Add(cluster.Hour), Parts: []cluster.ReservedPart{{Node: "n1", CPUs: 2, GPUs: 2}}}
	for _, c := range []struct {
		name   string
		within string // the reservation of the job that runs
		holds  int    // GPUs of it
		asks   int
		want   string
	}{
		{"empty", "", 0, 2, "n1:2"},
		{"empty, too many", "", 0, 3, "none"},
		{"half full", "two", 1, 2, "n1:2"},
		{"full", "two", 2, 2, "n1:2"},
		{"more than full", "two", 3, 1, "n1:1"},
		{"another job", "", 1, 1, "n1:1"},
		{"another job, too many", "", 1, 2, "none"},
		{"other jobs have all that is not kept", "", 2, 1, "none"},
	} {
		for _, soft := range []bool{false, true} {
			b := New(models, []cluster.Node{room("n1", "v100", 4)}, []cluster.Reservation{two}, noon)
			holds := []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(c.holds), CPUs: 1}}
			Occupy(b.site, c.within, holds)
			if soft {
				b.Soften(1, 0, 1, noon, holds, 0)
			} else {
				b.Hold(holds, 0)
			}
			s := gang(c.asks)
			s.Account, s.Request.CPUs = "nlp", 1
			wants(t, c.name, b.find(s, v100), c.want)
			ask := Ask{Shape: b.site.Shape(s), Pool: v100, Now: noon, Max: -1}
			if got := b.Admits(ask, 1, "n1", c.asks); got != (c.want != "none") {
				t.Errorf("%s: the node admits it: %v", c.name, got)
			}
		}
	}
	b := New(models, []cluster.Node{room("n1", "v100", 4)}, []cluster.Reservation{two}, noon)
	b.Soften(1, 0, 1, noon, []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(2), CPUs: 1}}, 0)
	ask := Ask{Shape: b.site.Shape(gang(2)), Pool: v100, Now: noon, Displace: Anybodys, Max: -1}
	if p, ok := b.Fit(ask); !ok || len(p.Displaced) != 1 || !b.Admits(ask, 1, "n1", 2) || b.Admits(ask, 1, "n1", 3) {
		t.Errorf("a lease beside the reservation is displaced: %+v, %v", p, ok)
	}
}

func TestAGangIsOnOneModel(t *testing.T) {
	mixed := room("n3", "v100", 2)
	mixed.GPUs = append([]cluster.GPUs{{Model: "k80", Count: 2}}, mixed.GPUs...)
	b := New(models, []cluster.Node{room("n1", "k80", 2), room("n2", "v100", 2), mixed}, nil, noon)
	wants(t, "four on v100", b.find(gang(4), v100), "n2:2 n3:2")
	wants(t, "four on k80", b.find(gang(4), k80), "n1:2 n3:2")
	wants(t, "five on neither", b.find(gang(5), v100), "none")
	p, _ := b.Fit(Ask{Shape: b.site.Shape(gang(4)), Pool: k80, Now: noon, Max: -1})
	for _, h := range p.Nodes {
		if h.Model != "k80" {
			t.Errorf("%d GPUs of %s on %s", h.Size.Devices, h.Model, h.Node)
		}
	}
}

func TestExclusiveTakesWholeNodes(t *testing.T) {
	mixed := room("n2", "v100", 2)
	mixed.GPUs = append([]cluster.GPUs{{Model: "k80", Count: 2}}, mixed.GPUs...)
	b := New(models, []cluster.Node{room("n1", "v100", 4), mixed, room("n3", "v100", 8)}, nil, noon)
	s := onNodes(1, 1)
	s.Request.Exclusive = true
	b.Hold([]cluster.Holding{{Node: "n1", CPUs: 1, MemoryMB: 1}}, 0)
	b.Hold(taken("n2", "k80", 1), 0)
	wants(t, "all GPUs of the only node where nobody is", b.find(s, v100), "n3:8")
	s = onNodes(2, 1)
	s.Request.Exclusive = true
	wants(t, "two such nodes", b.find(s, v100), "none")
	b.Soften(7, 0, 0, noon, taken("n3", "v100", 1), 0)
	s = onNodes(1, 1)
	s.Request.Exclusive = true
	wants(t, "none is empty", b.find(s, v100), "none")
	wants(t, "one can be emptied", b.oust(s, v100, -1), "n3:8 displacing [7]")
}

// An exclusive job that does not say how many nodes it takes gets as many as its GPUs need, each large enough.
func TestExclusiveTakesEnoughNodes(t *testing.T) {
	b := New(models, []cluster.Node{room("n1", "v100", 2), room("n2", "v100", 4), room("n3", "v100", 4)}, nil, noon)
	s := gang(8)
	s.Request.Exclusive, s.Request.Nodes, s.Request.CPUs = true, 1, 8
	wants(t, "more GPUs than a node has", b.find(s, v100), "n2:4 n3:4")
	s = gang(3)
	s.Request.Exclusive = true
	wants(t, "more GPUs than the smallest node has", b.find(s, v100), "n2:4")
}

func TestAClaimKeepsLongerLeasesOff(t *testing.T) {
	board := func() *Board {
		b := New(models, []cluster.Node{room("n1", "v100", 4)}, nil, noon)
		b.site.limits = true
		return b
	}
	short, long := gang(1), gang(1)
	short.Limit, long.Limit = 10*cluster.Minute, 2*cluster.Hour
	for _, order := range [][]Spec{{short, long}, {long, short}} {
		b := board()
		for _, s := range order {
			b.site.Shape(s)
		}
		b.Claim([]cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(4)}}, noon.Add(30*cluster.Minute))
		wants(t, "surely over before", b.find(short, v100), "n1:1")
		wants(t, "perhaps not over before", b.find(long, v100), "none")
		wants(t, "without a limit", b.find(gang(1), v100), "none")
		b.Claim([]cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(4)}}, noon.Add(cluster.Hour))
		wants(t, "the lease ends when the claim begins", b.find(long, v100), "n1:1")
	}
}

func TestIdleGPUsBeforeAnybodyIsDisplaced(t *testing.T) {
	b := New(models, []cluster.Node{room("n1", "v100", 4), room("n2", "v100", 4), room("n3", "v100", 4)}, nil, noon)
	b.Soften(1, 0, 0, noon, taken("n1", "v100", 4), 0)
	b.Hold(taken("n2", "v100", 2), 0)
	b.Hold(taken("n3", "v100", 2), 0)
	wants(t, "four idle on two nodes", b.oust(gang(4), v100, -1), "n2:2 n3:2")
	wants(t, "four on one node", b.oust(onNodes(1, 4), v100, -1), "n1:4 displacing [1]")
}

func TestTheLeastDeservingAreDisplaced(t *testing.T) {
	board := func() *Board { // n1: ranks 1, 8, 9, 2; n2: ranks 3, 4, 5, 6
		b := New(models, []cluster.Node{room("n1", "v100", 4), room("n2", "v100", 4)}, nil, noon)
		for i, rank := range []int{1, 8, 9, 2} {
			b.Soften(10+i, 0, rank, noon, taken("n1", "v100", 1), 0)
		}
		for i, rank := range []int{3, 4, 5, 6} {
			b.Soften(20+i, 0, rank, noon, taken("n2", "v100", 1), 0)
		}
		return b
	}
	wants(t, "one: rank 9", board().oust(gang(1), v100, -1), "n1:1 displacing [12]")
	wants(t, "two: ranks 8 and 9", board().oust(onNodes(1, 2), v100, -1), "n1:2 displacing [11 12]")
	wants(t, "three: n1 would cost rank 2, n2 only 4", board().oust(onNodes(1, 3), v100, -1), "n2:3 displacing [21 22 23]")
	wants(t, "four: n2 costs rank 3", board().oust(onNodes(1, 4), v100, -1), "n2:4 displacing [20 21 22 23]")
	wants(t, "at most two may go", board().oust(onNodes(1, 3), v100, 2), "none")
	b := board()
	if !b.Renew(12) || b.Renew(12) {
		t.Error("a lease can be renewed once")
	}
	wants(t, "rank 9 was renewed", b.oust(gang(1), v100, -1), "n1:1 displacing [11]")
}

// Nobody is displaced whose GPUs are not needed after all.
func TestNobodyIsDisplacedInVain(t *testing.T) {
	b := New(models, []cluster.Node{room("n1", "v100", 8), room("n2", "v100", 8)}, nil, noon)
	b.Soften(1, 0, 9, noon, taken("n1", "v100", 1), 0) // stands last, but is too small to help
	b.Soften(2, 0, 8, noon, taken("n1", "v100", 6), 0)
	b.Hold(taken("n1", "v100", 1), 0)
	b.Hold(taken("n2", "v100", 8), 0)
	wants(t, "six", b.oust(onNodes(1, 6), v100, -1), "n1:6 displacing [2]")
	wants(t, "seven", b.oust(onNodes(1, 7), v100, -1), "n1:7 displacing [1 2]")
	wants(t, "one", b.oust(onNodes(1, 1), v100, -1), "n1:1 displacing [1]")

	// A lease on two nodes that goes makes room on both.
	b = New(models, []cluster.Node{room("n1", "v100", 4), room("n2", "v100", 4)}, nil, noon)
	b.Soften(1, 0, 1, noon, append(taken("n1", "v100", 2), taken("n2", "v100", 2)...), 0)
	b.Soften(2, 0, 5, noon, taken("n2", "v100", 2), 0)
	b.Hold(taken("n1", "v100", 2), 0)
	wants(t, "two on each", b.oust(onNodes(2, 2), v100, -1), "n1:2 n2:2 displacing [1]")
}

// A tenant that is spared does not lose a gang for one that is no larger; what is nobody's goes.
func TestWhoIsSpared(t *testing.T) {
	for spares, want := range map[int]string{0: "n2:2 displacing [2]", 1: "n1:2 displacing [1]", 2: "n2:2 displacing [2]", 3: "n2:2 displacing [2]"} {
		b := New(models, []cluster.Node{room("n1", "v100", 2), room("n2", "v100", 2)}, nil, noon)
		b.Soften(1, noOwner, 1, noon, taken("n1", "v100", 2), 0)
		b.Soften(2, 0, 5, noon, taken("n2", "v100", 2), 0) // it stands last
		p, ok := b.Fit(Ask{Shape: b.site.Shape(onNodes(1, 2)), Pool: v100, Now: noon, End: noon.Add(cluster.Hour), Max: -1, Displace: Anybodys, Spares: spares})
		wants(t, fmt.Sprint("spares ", spares), show(p, ok), want)
	}
}

// GPUs of displaced leases are free only when these end: until then other jobs may not have them,
// and the beneficiary must wait.
func TestWhatIsFreeOnlyLater(t *testing.T) {
	b := New(models, []cluster.Node{room("n1", "v100", 4)}, nil, noon)
	b.Soften(1, 0, 1, noon.Add(cluster.Minute), taken("n1", "v100", 3), 0)
	p, ok := b.Fit(Ask{Shape: b.site.Shape(onNodes(1, 2)), Pool: v100, Now: noon, End: noon.Add(cluster.Hour), Max: -1, Displace: Anybodys})
	wants(t, "the first", show(p, ok), "n1:2 displacing [1] in 1 min")
	b.Take(p)
	wants(t, "one is idle now", b.find(gang(1), v100), "n1:1")
	wants(t, "two are not", b.find(gang(2), v100), "n1:2 in 1 min")
	p, _ = b.Fit(Ask{Shape: b.site.Shape(gang(1)), Pool: v100, Now: noon, End: noon.Add(cluster.Hour), Max: -1})
	b.Take(p)
	wants(t, "the last is not free yet", b.find(gang(1), v100), "n1:1 in 1 min")
	wants(t, "and is the last", b.find(gang(2), v100), "none")
}

// The order in which nodes are reported decides nothing but ties, which go by name:
// snapshots are sorted, and the answer is the same every time.
func TestTheSameAnswerEveryTime(t *testing.T) {
	var nodes []cluster.Node
	for i := range 20 {
		nodes = append(nodes, room(fmt.Sprintf("n%02d", i), "v100", 4))
	}
	answers := map[string]bool{}
	for range 20 {
		b := New(models, nodes, nil, noon)
		for i := range 60 {
			b.Soften(i+1, 0, i*7%60, noon, taken(nodes[i/3].Name, "v100", 1), 0)
		}
		var all []string
		for _, g := range []int{1, 2, 3, 4, 6, 8} {
			all = append(all, b.oust(gang(g), v100, -1))
		}
		answers[strings.Join(all, "; ")] = true
	}
	if len(answers) != 1 {
		t.Errorf("%d different answers to the same questions: %v", len(answers), answers)
	}
	if !slices.IsSortedFunc(nodes, func(a, b cluster.Node) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the board changed the list of nodes")
	}
}
