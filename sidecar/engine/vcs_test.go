package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// nodeCells describes nodes n01, n02, … with so many GPUs each, and the given VCs.
func nodeCells(gpus, nodes int, vcs ...cluster.VC) *cluster.Cells {
	d := &cluster.Cells{Types: []cluster.CellType{
		{Name: "gpu", Model: "v100"}, {Name: "node", Child: "gpu", Split: gpus, Node: true}}, VCs: vcs}
	for i := range nodes {
		name := fmt.Sprintf("n%02d", i+1)
		d.Tops = append(d.Tops, cluster.TopCell{Name: name, Type: "node", Nodes: []string{name}})
	}
	return d
}

func vc(name, typ string, n int) cluster.VC {
	return cluster.VC{Name: name, Cells: []cluster.CellQuota{{Type: typ, Cells: n}}}
}

// newCells makes a world of nodes of 4 GPUs under the default settings with cells.
func newCells(t *testing.T, nodes int, d *cluster.Cells, tenants ...string) *world {
	t.Helper()
	return newCellsOn(t, simtest.Nodes("n", "v100", nodes, 4), d, tenants...)
}

// newCellsOn makes such a world of the given nodes.
func newCellsOn(t *testing.T, nodes []cluster.Node, d *cluster.Cells, tenants ...string) *world {
	t.Helper()
	if _, err := cells.New(*d); err != nil {
		t.Fatal(err)
	}
	set := simtest.Product()
	set.Preset, set.Chooser = "hived", "astraea"
	w := newWorldOn(t, set, nodes, tenants...)
	w.Rules.Cells, w.Gate = d, set.GateTTL
	check := w.Check
	w.Check = func(r loop.Report) {
		check(r)
		if r.Plan.Cells == nil || r.Plan.Cells.Unsafe != nil {
			t.Fatalf("at %s the cells are not safe: %+v", r.Plan.At.Sub(simtest.Start), r.Plan.Cells)
		}
	}
	return w
}

// class fails unless a job's lease is of a class.
func (w *world) class(id cluster.JobID, want cluster.LeaseClass) {
	w.t.Helper()
	l := w.lease(id)
	if l == nil || l.Class != want {
		w.t.Errorf("at %s the lease of job %s is %+v, want one that is %s: %+v", w.Now().Sub(simtest.Start), id, l, want, w.Reason(id))
	}
}

// An exempt job gets cells of its tenant as before, and is lent none: these could not be recalled.
func TestAnExemptJobIsNotLent(t *testing.T) {
	for _, exempt := range []bool{false, true} {
		w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
		w.Run(minute)
		his := w.submit("b", 4, forever, nil)
		mine := []cluster.JobID{w.submit("a", 4, forever, nil)}
		w.Run(minute)
		mine = append(mine, w.submit("a", 4, forever, nil))
		w.Run(10 * second)
		mine = append(mine, w.submit("a", 4, forever, nil))
		if exempt {
			w.order(cluster.Exempt, "job", mine[1].String(), 9)
		}
		w.Run(10 * second)
		w.Hold(mine[1], true) // so that Slurm does not start it by itself
		w.alter = func(s *cluster.Observation) {
			for i := range s.Jobs {
				s.Jobs[i].Inactive = ""
			}
		}
		w.did = nil
		w.Cancel(his)
		w.Run(minute)
		if granted := len(w.done(cluster.Grant, mine[1])) > 0; granted == exempt {
			t.Errorf("exempt %t, and lent cells %t: %+v", exempt, granted, w.Reason(mine[1]))
		}
		if exempt {
			w.class(mine[2], cluster.Opportunistic)
			w.Cancel(mine[0])
			w.Run(20 * second)
			if len(w.done(cluster.Grant, mine[1])) == 0 {
				t.Errorf("it gets no cell of its tenant either: %+v", w.Reason(mine[1]))
			}
		}
	}
}

// Other tenants use a VC's idle cells, and the VC gets them back at once when it wants them.
func TestACellIsRecalledAtOnce(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
	w.Run(minute)
	var mine []cluster.JobID
	for range 2 {
		mine = append(mine, w.submit("a", 4, forever, nil))
	}
	w.Run(minute)
	w.class(mine[0], cluster.Guaranteed)
	w.class(mine[1], cluster.Opportunistic)
	his := w.submit("b", 4, forever, nil)
	w.Run(minute)
	w.class(his, cluster.Guaranteed)
	w.state(his, cluster.Running)
	w.state(mine[0], cluster.Running)
	w.state(mine[1], cluster.Waiting)
	if r := w.why(mine[1], cluster.ReasonCells); r.Cell != "node" || w.Record(mine[0]).Key != r.For || r.Right != cluster.Guaranteed {
		t.Errorf("job %s: %+v", mine[1], r)
	}
	if got := w.Job(his).Start.Sub(w.Record(his).First); got > 15*second {
		t.Errorf("b waited %s for its own cell", got)
	}
	w.books()
}

// An idle-only job at the head of a VC's queue recalls nobody, and keeps no job behind it off the VC's cells.
func TestAnIdleOnlyJobKeepsNobodyOffItsVC(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
	w.Run(minute)
	borrows := []cluster.JobID{w.submit("a", 4, forever, nil), w.submit("a", 4, forever, nil)}
	w.Run(minute)
	w.class(borrows[1], cluster.Opportunistic)
	idle := w.submit("b", 4, forever, func(j *sim.Work) { j.Comment = "gpus=idle" })
	w.Run(20 * second)
	next := w.submit("b", 4, forever, nil)
	w.Run(minute)
	w.state(idle, cluster.Waiting)
	w.class(next, cluster.Guaranteed)
	w.state(next, cluster.Running)
	w.books()
}

// No job gets the GPUs before the recall's notice is over. Then the job for which they were recalled gets
// them.
func TestARecallHasItsNotice(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
	w.Settings.RecallNotice = 30 * second
	mine := []cluster.JobID{w.submit("a", 4, forever, nil), w.submit("a", 4, forever, nil)}
	w.Run(2 * minute)
	his := w.submit("b", 4, forever, nil)
	w.Run(20 * second)
	w.why(his, cluster.ReasonClaim)
	if l := w.lease(mine[1]); l == nil || l.State != cluster.Noticed || l.Why != "recalled" {
		t.Errorf("the lease of job %s: %+v", mine[1], l)
	}
	told := w.done(cluster.Notify, mine[1])
	if len(told) != 1 || told[0].Reason.For != w.Record(his).Key {
		t.Errorf("job %s was told: %+v", mine[1], told)
	}
	w.Run(40 * second)
	w.state(his, cluster.Running)
	w.class(his, cluster.Guaranteed)
	w.state(mine[1], cluster.Waiting)
	if reclaims := w.done(cluster.Reclaim); len(reclaims) != 1 || reclaims[0].Reason.Code != cluster.ReasonRecalled {
		t.Errorf("reclaims: %+v", reclaims)
	}
}

// The sidecar dies between the notice and the end. Another one continues from the journal and the state of
// Slurm.
func TestARecallSurvivesTheSidecar(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
	w.Settings.RecallNotice = 30 * second
	w.submit("a", 4, forever, nil)
	lent := w.submit("a", 4, forever, nil)
	w.Run(2 * minute)
	his := w.submit("b", 4, forever, nil)
	w.Run(20 * second)
	old := *w.Loop
	w.Loop = &loop.Loop{Cluster: old.Cluster, Journal: old.Journal, Decide: old.Decide, Configure: old.Configure}
	w.Run(minute)
	w.state(his, cluster.Running)
	w.class(his, cluster.Guaranteed)
	w.state(lent, cluster.Waiting)
	if n := len(w.done(cluster.Reclaim)); n != 1 {
		t.Errorf("%d reclaims, want one", n)
	}
}

// The sidecar dies after it recorded a grant and its recall, and carried out neither. Another one starts only
// after the grant timeout. It does both, and counts no failure.
func TestAGrantThatNobodyCarriedOut(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
	w.submit("a", 4, forever, nil)
	lent := w.submit("a", 4, forever, nil)
	w.Run(2 * minute)
	w.down = true
	his := w.submit("b", 4, forever, nil)
	w.Run(w.Settings.Interval)
	if l := w.lease(his); l == nil || l.State != cluster.Granted {
		t.Fatalf("the lease of job %s: %+v", his, l)
	}
	w.Advance(w.Now().Add(w.Settings.GrantTimeout + minute))
	w.down = false
	old := *w.Loop
	w.Loop = &loop.Loop{Cluster: old.Cluster, Journal: old.Journal, Decide: old.Decide, Configure: old.Configure}
	w.Run(30 * second)
	w.state(his, cluster.Running)
	w.class(his, cluster.Guaranteed)
	w.state(lent, cluster.Waiting)
	w.books()
}

// A VC has one node, on which a grant did not start. After the back-off the node is tried again, whatever
// other VCs have elsewhere.
func TestAVCsOnlyNodeIsTriedAgain(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
	w.submit("a", 4, forever, nil)
	w.Run(2 * minute)
	w.down = true
	his := w.submit("b", 4, forever, nil)
	w.Run(w.Settings.GrantTimeout + minute/2)
	if r := w.Record(his); r.Failed != 1 || len(r.AvoidNodes) != 1 {
		t.Fatalf("job %s: %+v", his, r)
	}
	w.down = false
	w.Run(2 * minute)
	w.state(his, cluster.Running)
	w.class(his, cluster.Guaranteed)
}

// A lease on lent cells becomes guaranteed in place when its VC has room.
func TestALeaseIsPromotedInPlace(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
	first, second := w.submit("a", 4, 5*minute, nil), w.submit("a", 4, forever, nil)
	w.Run(2 * minute)
	w.class(first, cluster.Guaranteed)
	w.class(second, cluster.Opportunistic)
	where := w.Job(second).Holds[0].Node
	w.Run(5 * minute)
	w.class(second, cluster.Guaranteed)
	if got := w.Job(second).Holds[0].Node; got != where || len(w.done(cluster.Reclaim)) > 0 {
		t.Errorf("it was moved from %s to %s", where, got)
	}
}

// A VC that loses a node to bad hardware sees the loss and gets the node back. Other VCs lose nothing.
func TestALossIsTheVCsOwn(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
	b := w.submit("b", 4, forever, nil)
	w.Run(minute)
	on := w.Job(b).Holds[0].Node
	other := map[string]string{"n01": "n02", "n02": "n01"}[on]
	w.SetNode(other, "down")
	a := w.submit("a", 4, forever, nil)
	w.Run(minute)
	w.state(b, cluster.Running)
	if r := w.why(a, cluster.ReasonLost); r.Cell != "node" {
		t.Errorf("job %s: %+v", a, r)
	}
	want := []cluster.CellLoss{{VC: "a", Chain: "node", Type: "node", Cells: 1}}
	if got := w.Last.State.Lost; !slices.Equal(got, want) {
		t.Errorf("lost: %+v, want %+v", got, want)
	}
	w.SetNode(other, "")
	w.Run(minute)
	w.class(a, cluster.Guaranteed)
	w.state(b, cluster.Running)
	if got := w.Last.State.Lost; got != nil {
		t.Errorf("lost: %+v, want nothing", got)
	}
	w.books()
}

// A loss stays with its VC until the hardware is back, even while another VC leaves a healthy node idle. That
// node is lent to the VC with the loss, until its owner wants it.
func TestALossStaysWhileOthersAreIdle(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
	w.Run(minute)
	w.SetNode("n01", "down")
	w.Run(minute)
	want := []cluster.CellLoss{{VC: "a", Chain: "node", Type: "node", Cells: 1}}
	a := w.submit("a", 4, forever, nil)
	w.Run(5 * minute)
	w.state(a, cluster.Running)
	w.class(a, cluster.Opportunistic)
	if got := w.Last.State.Lost; !slices.Equal(got, want) {
		t.Errorf("lost: %+v, want %+v", got, want)
	}
	b := w.submit("b", 4, forever, nil)
	w.Run(minute)
	w.class(b, cluster.Guaranteed)
	w.state(b, cluster.Running)
	w.why(a, cluster.ReasonLost)
	w.SetNode("n01", "")
	w.Run(minute)
	w.class(a, cluster.Guaranteed)
	w.books()
}

// A node that is removed from the description is in no cell. A gang that runs there and on other nodes keeps
// the others in its VC's cells. Its VC thus binds no more than its cells, and no other VC loses one.
func TestAGangOnANodeThatIsDescribedNoLonger(t *testing.T) {
	d := nodeCells(4, 4, vc("a", "node", 2), vc("b", "node", 2))
	w := newCells(t, 4, d, "a", "b")
	w.Run(minute)
	gang := w.submit("a", 8, forever, func(j *sim.Work) { j.Request.Nodes, j.Request.PerNode = 2, 4 })
	w.Run(minute)
	w.class(gang, cluster.Guaranteed)
	holds := w.Job(gang).Holds
	next := *d
	next.Tops = slices.DeleteFunc(slices.Clone(d.Tops), func(t cluster.TopCell) bool { return t.Name == holds[0].Node })
	next.VCs = []cluster.VC{vc("a", "node", 1), vc("b", "node", 2)}
	w.Rules.Cells = &next
	w.Run(minute)
	mine := w.submit("a", 4, forever, nil)
	w.Run(minute)
	var theirs []cluster.JobID
	for range 2 {
		theirs = append(theirs, w.submit("b", 4, forever, nil))
	}
	w.Run(2 * minute)
	w.state(gang, cluster.Running)
	w.class(gang, cluster.Guaranteed)
	w.state(mine, cluster.Waiting) // the gang has a's only cell
	for _, id := range theirs {
		w.class(id, cluster.Guaranteed)
		w.state(id, cluster.Running)
	}
	if got := w.Last.State.Lost; got != nil {
		t.Errorf("lost: %+v, want nothing", got)
	}
	for _, b := range w.Last.Cells.Bound {
		if b.VC == "a" && (len(b.Parts) != 1 || b.Parts[0].Node != holds[1].Node) {
			t.Errorf("a has %+v", b)
		}
	}
	w.books()
}

// A node with a drained GPU is no longer a node cell. Its remaining GPUs are lent.
func TestADrainedGPU(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 2)), "a")
	w.alter = func(s *cluster.Observation) {
		s.Nodes = slices.Clone(s.Nodes)
		s.Nodes[0].GPUs, s.Nodes[0].Drained = []cluster.GPUs{{Model: "v100", Count: 3}}, []int{1}
	}
	whole, three := w.submit("a", 4, forever, nil), w.submit("a", 3, forever, nil)
	w.Run(minute)
	w.class(whole, cluster.Guaranteed)
	w.class(three, cluster.Opportunistic)
	if got := w.Job(three).Holds[0].Node; got != "n01" {
		t.Errorf("job %s is on %s", three, got)
	}
	if got := w.Last.State.Lost; len(got) != 1 || got[0].Cells != 1 {
		t.Errorf("lost: %+v", got)
	}
}

// A VC is made smaller under load. No job is requeued for that: leases that no longer fit become lent until
// another job wants the GPUs.
func TestAVCIsResizedUnderLoad(t *testing.T) {
	w := newCells(t, 3, nodeCells(4, 3, vc("a", "node", 2), vc("b", "node", 1)), "a", "b")
	mine := []cluster.JobID{w.submit("a", 4, forever, nil), w.submit("a", 4, forever, nil)}
	his := w.submit("b", 4, forever, nil)
	w.Run(2 * minute)
	w.Rules.Cells = nodeCells(4, 3, vc("a", "node", 1), vc("b", "node", 2))
	w.Run(2 * minute)
	if n := len(w.done(cluster.Reclaim)); n > 0 {
		t.Fatalf("%d jobs were requeued for the change", n)
	}
	classes := map[cluster.LeaseClass]int{}
	for _, id := range mine {
		classes[w.lease(id).Class]++
	}
	if classes[cluster.Guaranteed] != 1 || classes[cluster.Opportunistic] != 1 {
		t.Errorf("a's leases: %v", classes)
	}
	w.class(his, cluster.Guaranteed)
	second := w.submit("b", 4, forever, nil)
	w.Run(minute)
	w.class(second, cluster.Guaranteed)
	w.state(second, cluster.Running)
	if n := len(w.done(cluster.Reclaim)); n != 1 {
		t.Errorf("%d jobs were requeued for b's second", n)
	}
}

// An impossible description does no harm: all leases stay, and the problem is reported.
func TestAnImpossibleDescription(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
	a := w.submit("a", 4, forever, nil)
	w.Run(minute)
	w.Check = nil
	w.Rules.Cells = nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 2))
	b := w.submit("b", 4, forever, nil)
	w.Run(20 * minute)
	w.state(a, cluster.Running)
	w.state(b, cluster.Waiting)
	if w.Last.Cells == nil || len(w.Last.Cells.Unsafe) != 1 || !slices.ContainsFunc(w.Last.Events, func(e cluster.Event) bool { return e.Kind == "cells_unsafe" }) {
		t.Errorf("nothing is said: %+v, %+v", w.Last.Cells, w.Last.Events)
	}
}

// Jobs of a strict QOS run on their VC's own cells or not at all.
func TestAStrictJobIsNotLent(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
	w.Settings.StrictQOS = []string{"strict"}
	strict := func(k *sim.Work) { k.QOS = "strict" }
	first, second := w.submit("a", 4, 10*minute, strict), w.submit("a", 4, forever, strict)
	w.Run(5 * minute)
	w.class(first, cluster.Guaranteed)
	w.why(second, cluster.ReasonCells)
	w.Run(10 * minute)
	w.class(second, cluster.Guaranteed)
}

// Jobs that cannot be stopped are lent no cells, however idle these are: they wait for cells of their own VC, whose tenants have theirs at
// once.
func TestCellsOfOthersAreNotBound(t *testing.T) {
	for name, way := range map[string]func(*sim.Work){
		"no requeue": func(k *sim.Work) { k.NoRequeue = true },
		"contiguous": func(k *sim.Work) { k.Request.Unplaceable = cluster.Contiguous },
		"session":    func(k *sim.Work) { k.Interactive = true },
		"other":      func(k *sim.Work) { k.Request.Features = "[a*1]" },
	} {
		w := newCells(t, 3, nodeCells(4, 3, vc("a", "node", 1), vc("b", "node", 2)), "a", "b")
		w.Gate = 240 * hour
		ask := func(k *sim.Work) { k.Begin, k.Request.Nodes = w.Now().Add(minute), 1; way(k) }
		mine := []cluster.JobID{w.submit("a", 4, forever, ask), w.submit("a", 4, forever, ask), w.submit("a", 1, forever, ask)}
		w.Run(40 * hour) // any bind.quiet
		w.state(mine[0], cluster.Running)
		for _, id := range mine[1:] {
			w.state(id, cluster.Waiting)
		}
		his := []cluster.JobID{w.submit("b", 4, forever, nil), w.submit("b", 4, forever, nil)}
		w.Run(minute)
		for _, id := range his {
			w.class(id, cluster.Guaranteed)
			w.state(id, cluster.Running)
		}
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// In a VC, an urgent job goes before others at once. The others keep running on idle GPUs.
func TestAnUrgentJobInItsVC(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1)), "a", "b")
	w.Settings.UrgentQOS = []string{"urgent"}
	first := w.submit("a", 4, forever, nil)
	w.Run(minute)
	urgent := w.submit("a", 4, forever, func(k *sim.Work) { k.QOS = "urgent" })
	w.Run(minute)
	w.class(urgent, cluster.Guaranteed)
	w.class(first, cluster.Opportunistic)
	if len(w.done(cluster.Reclaim)) > 0 {
		t.Error("the first was requeued though a node was idle")
	}
}

// Lent GPUs are shared by entitlements: weighted max-min (HiveD §3.3).
func TestLentGPUsAreShared(t *testing.T) {
	w := newCells(t, 8, nodeCells(4, 8, vc("a", "node", 1), vc("b", "node", 3), vc("c", "node", 4)), "a", "b", "c")
	for range 12 {
		w.submit("a", 4, forever, nil)
	}
	w.Run(2 * minute) // a has all
	for range 12 {
		w.submit("b", 4, forever, nil)
	}
	w.Run(40 * minute)
	lent := map[string]int{}
	for _, l := range w.Last.State.Leases {
		if l.Class == cluster.Opportunistic {
			lent[recordOf(&w.Last, l.Job).Tenant] += l.Size.Devices
		}
	}
	if lent["a"] != 4 || lent["b"] != 12 {
		t.Errorf("c's 16 GPUs are lent %v, want 4 to a and 12 to b", lent)
	}
}

// Each chooser orders a VC's jobs as on a private cluster.
func TestChoosersInAVC(t *testing.T) {
	for _, c := range []struct {
		chooser string
		turns   bool // waiting jobs get the GPUs of running ones when the term is over
	}{{"fifo", false}, {"astraea", true}, {"gandiva-fair", true}, {"tiresias-l", true}} {
		w := newCells(t, 1, nodeCells(4, 1, vc("a", "node", 1)), "a")
		w.Settings.Chooser, w.Settings.NewFirst = c.chooser, false
		first, second := w.submit("a", 4, 8*hour, nil), w.submit("a", 4, 8*hour, nil)
		w.Run(6 * hour)
		got := float64(w.Alloc(second)) / float64(w.Alloc(first))
		if c.turns != (got > 0.5) {
			t.Errorf("%s: the second had %.2f of what the first had", c.chooser, got)
		}
	}
}

// Each VC may have a chooser of its own.
func TestAChooserPerVC(t *testing.T) {
	turns, fifo := vc("a", "node", 1), vc("b", "node", 1)
	turns.Chooser, fifo.Chooser = "gandiva-fair", "fifo"
	w := newCells(t, 3, nodeCells(4, 3, turns, fifo, vc("c", "node", 1)), "a", "b", "c")
	w.Settings.Chooser, w.Settings.NewFirst = "tiresias-l", false
	jobs := map[string][2]cluster.JobID{}
	for _, tenant := range []string{"a", "b", "c"} {
		jobs[tenant] = [2]cluster.JobID{w.submit(tenant, 4, forever, nil), w.submit(tenant, 4, forever, nil)}
	}
	w.Run(6 * hour)
	for tenant, want := range map[string]bool{"a": true, "b": false, "c": true} {
		first, second := w.Alloc(jobs[tenant][0]), w.Alloc(jobs[tenant][1])
		if got := second > first/2; got != want {
			t.Errorf("the second job of %s had %.1f GPU-h, the first %.1f", tenant, second.Hours(), first.Hours())
		}
	}
	w.books()
}

// By attained service a job that borrows GPUs and has had little gets its VC's cell before one that has had much.
func TestTheLeastAttainedInAVC(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
	w.Settings.JobOrder, w.Settings.StopAllowance, w.Settings.StopOverheadMilli = cluster.ByAttained, 0, 0
	old := w.submit("a", 4, forever, nil)
	w.Run(8 * hour)
	w.Requeue(old)
	w.Hold(old, true)
	first := w.submit("a", 4, forever, nil)
	w.Run(5 * minute)
	young := w.submit("a", 4, forever, nil)
	w.Run(2 * minute)
	w.class(first, cluster.Guaranteed)
	w.class(young, cluster.Opportunistic)
	w.Hold(old, false)
	w.Run(10 * second)
	w.Cancel(first)
	w.Run(20 * second)
	w.class(young, cluster.Guaranteed)
	w.books()
}

// By stride a job that has run for long shares with an equal one that joins, from its first term on: the newcomer does
// not make up for the past. A job that was held for long does not either when it returns.
func TestStrideInAVC(t *testing.T) {
	w := newCellsOn(t, simtest.Nodes("n", "v100", 1, 8), nodeCells(8, 1, vc("a", "node", 1)), "a")
	w.Settings.Chooser, w.Settings.NewFirst = "gandiva-fair", false
	old := w.submit("a", 8, forever, nil)
	held := w.submit("a", 8, forever, nil)
	w.Hold(held, true)
	w.Run(24 * hour)
	was := w.Alloc(old)
	newcomer := w.submit("a", 8, forever, nil)
	w.Run(24 * hour)
	if a, b := w.Alloc(old)-was, w.Alloc(newcomer); a < 8*11*cluster.GPUTime(hour) || b < 8*11*cluster.GPUTime(hour) {
		t.Errorf("in 24 hours the old job got %.1f GPU-h and the newcomer %.1f, want about 96 each", a.Hours(), b.Hours())
	}
	was, wasNew := w.Alloc(old), w.Alloc(newcomer)
	w.Hold(held, false)
	w.Run(24 * hour)
	for _, got := range []cluster.GPUTime{w.Alloc(old) - was, w.Alloc(newcomer) - wasNew, w.Alloc(held)} {
		if got < 8*7*cluster.GPUTime(hour) {
			t.Errorf("one of three equal jobs got %.1f GPU-h in 24 hours, want about 64", got.Hours())
		}
	}
	w.books()
}

// In observe mode, everything is reported and nothing is done.
func TestCellsAreObserved(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
	w.Rules.Mode, w.Gate = loop.Observe, 0
	mine := []cluster.JobID{w.submit("a", 4, forever, nil), w.submit("a", 4, forever, nil)}
	w.Run(2 * minute)
	his := w.submit("b", 4, forever, nil)
	w.Run(5 * minute)
	w.state(mine[0], cluster.Running)
	w.state(mine[1], cluster.Running)
	w.state(his, cluster.Waiting)
	for _, d := range w.did {
		if !d.Suppressed {
			t.Errorf("done: %+v", d.Action)
		}
	}
	if w.Last.Cells == nil {
		t.Error("nothing is said of the cells")
	}
}

// A gang that asks only for GPUs waits for its affinity, but not for ever: for cells.affinity_wait, or as long as that pays where it is known how
// fast its type is without. Nothing is known of jobs like it, so it is expected to run for 150 s.
func TestSoftAffinityIsRelaxed(t *testing.T) {
	for _, c := range []struct {
		part float64 // of its speed; 0 = unknown
		wait cluster.Span
	}{{0, 5 * minute}, {0.2, 10 * minute}, {0.5, 2*minute + 30*second}, {1, 0}} {
		w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 2)), "a")
		w.Settings.AffinityWait, w.Settings.ScatterWait = 5*minute, hour
		if c.part > 0 {
			w.Rules.Profiles = keeps(c.part, 4)
		}
		for _, node := range []string{"n01", "n02"} {
			w.submit("a", 2, forever, func(k *sim.Work) { k.NodeList = []string{node} })
		}
		w.Run(minute)
		soft := w.submit("a", 4, forever, anywhere)
		if c.wait > 0 {
			w.Run(c.wait - minute)
			w.why(soft, cluster.ReasonCells)
			w.Run(minute)
		}
		w.Run(minute)
		w.class(soft, cluster.Guaranteed)
		if n := len(w.Job(soft).Holds); n != 2 {
			t.Errorf("%v: it is on %d nodes", c.part, n)
		}
	}
}

// Slurm puts a job of a VC across two pairs of GPUs. In the books it still has its pair by number. The next
// job of the VC waits for a pair and does not take this one. Jobs that borrow GPUs there run on.
func TestSlurmChoosesTheGPUs(t *testing.T) {
	d := &cluster.Cells{Types: []cluster.CellType{{Name: "gpu", Model: "v100"}, {Name: "pair", Child: "gpu", Split: 2},
		{Name: "node", Child: "pair", Split: 2, Node: true}},
		Tops: []cluster.TopCell{{Name: "n01", Type: "node", Nodes: []string{"n01"}}},
		VCs:  []cluster.VC{vc("a", "pair", 1), vc("b", "gpu", 1)}}
	w := newCells(t, 1, d, "a", "b")
	w.Settings.Chooser = "fifo"
	w.Loop.Cluster = &gres{Cluster: w, given: map[cluster.JobID]map[string][]int{}}
	first, second := w.submit("b", 1, forever, nil), w.submit("b", 1, 5*minute, nil)
	w.Run(minute)
	third := w.submit("b", 1, forever, nil)
	w.Run(5 * minute) // 0 is b's own, 2 is lent to it
	pair := w.submit("a", 2, forever, nil)
	w.Run(minute) // 2 and 3 are given to it
	if got := w.lease(pair).Nodes[0].Index; !slices.Equal(got, []int{1, 2}) {
		t.Fatalf("%s has GPUs %v, want 1 and 2", pair, got)
	}
	w.class(pair, cluster.Guaranteed)
	next := w.submit("a", 2, forever, nil)
	w.Run(10 * minute)
	w.why(next, cluster.ReasonCells)
	w.class(first, cluster.Guaranteed)
	w.class(pair, cluster.Guaranteed)
	w.class(third, cluster.Opportunistic) // again
	w.state(second, cluster.Done)
	if broken := slices.ContainsFunc(w.reports, func(r loop.Report) bool {
		return slices.ContainsFunc(r.Plan.Events, func(e cluster.Event) bool { return e.Kind == "cells_broken" })
	}); !broken || len(w.done(cluster.Reclaim)) != 1 {
		t.Errorf("said so: %v; requeued: %+v", broken, w.done(cluster.Reclaim))
	}
}

// Slurm splits a request that does not divide evenly between nodes. The lease has no more GPUs than
// requested.
func TestAnUnevenGang(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 2)), "a")
	id := w.submit("a", 5, forever, func(k *sim.Work) {
		k.Request = cluster.Request{Size: cluster.Whole(5), Nodes: 2, CPUs: 5, MemoryMB: 5120}
	})
	w.Run(10 * second)
	if l := w.lease(id); l == nil || l.Size.Devices != 5 || len(l.Nodes) != 2 {
		t.Errorf("the lease of job %s: %+v, %+v", id, l, w.Reason(id))
	}
}

// A small job on lent GPUs does not bind a node of its VC for which a large job would wait.
func TestASmallJobBindsNoNode(t *testing.T) {
	for _, chooser := range []string{"fifo", "astraea"} {
		w := newCells(t, 3, nodeCells(4, 3, vc("small", "node", 2), vc("large", "node", 1)), "small", "large")
		w.Settings.Chooser = chooser
		w.submit("small", 4, 30*minute, nil)
		for range 3 {
			w.submit("small", 1, 30*minute, nil)
		}
		w.submit("small", 1, forever, nil)
		w.Run(minute)
		lent := w.submit("small", 1, forever, nil)
		w.Run(40 * minute)
		w.class(lent, cluster.Opportunistic)
		w.submit("large", 4, forever, nil)
		w.Run(minute)
		whole := w.submit("small", 4, forever, nil)
		w.Run(minute)
		w.state(whole, cluster.Running)
		w.class(whole, cluster.Guaranteed)
	}
}

// In a VC, too, new jobs go first up to their share of the tenant's entitlement.
func TestNewJobsShareAVC(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 2)), "a")
	w.Settings.JobOrder, w.Settings.Threshold = cluster.ByRho, minute
	w.submit("a", 4, forever, nil)
	w.submit("a", 4, forever, nil)
	w.Run(13*minute + 30*second) // jobs that have run are hardly ahead
	w.submit("a", 4, forever, nil)
	w.submit("a", 4, forever, nil)
	w.Run(3 * minute) // past the first boundary
	if n := len(w.done(cluster.Reclaim)); n != 1 {
		t.Errorf("%d of two leases went to new jobs, want one", n)
	}
}

// A VC's cell is on nodes where its job may run, not on the first free node. Jobs that borrow GPUs there
// leave. This applies to features and to all other constraints on nodes.
func TestACellIsWhereTheJobMayRun(t *testing.T) {
	for name, only := range map[string]func(*sim.Work){
		"features":  func(j *sim.Work) { j.Request.Features = "fast" },
		"nodelist":  func(j *sim.Work) { j.NodeList = []string{"n03"} },
		"exclude":   func(j *sim.Work) { j.Name = "choosy" },
		"partition": func(j *sim.Work) { j.Partition = "fast" },
		"CPUs":      func(j *sim.Work) { j.Request.CPUs = 128 },
		"memory":    func(j *sim.Work) { j.Request.MemoryMB = 1 << 20 },
	} {
		t.Run(name, func(t *testing.T) {
			nodes := simtest.Nodes("n", "v100", 4, 4)
			n := &nodes[2]
			n.Features, n.CPUs, n.MemoryMB, n.Partitions = []string{"fast"}, 128, 1<<20, []string{"gpu", "fast"}
			w := newCellsOn(t, nodes, nodeCells(4, 4, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
			w.Rules.Partitions = []string{"gpu", "fast"}
			w.alter = func(s *cluster.Observation) {
				for i := range s.Jobs {
					if s.Jobs[i].Name == "choosy" {
						s.Jobs[i].Exclude = []string{"n01", "n02", "n04"}
					}
				}
			}
			for range 4 {
				w.submit("b", 4, forever, nil)
			}
			w.Run(20 * minute)
			mine := w.submit("a", 4, forever, only)
			w.Run(5 * minute)
			w.class(mine, cluster.Guaranteed)
			w.state(mine, cluster.Running)
			if holds := w.Job(mine).Holds; len(holds) != 1 || holds[0].Node != "n03" {
				t.Errorf("job %s is on %+v: %+v", mine, holds, w.Reason(mine))
			}
			w.books()
		})
	}
}

// A job in two cells of its VC on one node stays there if Slurm does not report its GPUs. A whole node bound
// for it would push other jobs out of their cells.
func TestAJobStaysInTwoCellsOfANode(t *testing.T) {
	s := boundary(4, 4)
	s.Settings.Preset, s.Settings.Chooser = "hived", "astraea"
	s.Cells = &cluster.Cells{
		Types: []cluster.CellType{{Name: "gpu", Model: "v100"}, {Name: "pair", Child: "gpu", Split: 2}, {Name: "node", Child: "pair", Split: 2, Node: true}},
		Tops:  nodeCells(4, 2).Tops,
		VCs: []cluster.VC{
			{Name: "a", Cells: []cluster.CellQuota{{Type: "gpu", Cells: 1}, {Type: "pair", Cells: 1}, {Type: "node", Cells: 1}}},
			vc("b", "gpu", 1)},
	}
	s.Cases = []cluster.Case{runsOn(1, "a", 3, "n01"), runsOn(2, "b", 1, "n01")}
	for i, parts := range [][]cells.Part{
		{{Node: "n01", GPUs: 0b0011, Type: "pair"}, {Node: "n01", GPUs: 0b0100, Type: "gpu"}},
		{{Node: "n01", GPUs: 0b1000, Type: "gpu"}},
	} {
		l := leaseOf(&s, i)
		l.Class, l.End, l.Parts = cluster.Guaranteed, s.Now.Add(5*minute), parts
		s.Leases = append(s.Leases, l)
	}
	p := engine.Decide(s)
	for i := range s.Leases {
		if l := p.State.Leases[i]; l.Class != cluster.Guaranteed || !slices.Equal(l.Parts, s.Leases[i].Parts) {
			t.Errorf("job %d is %s in %+v, want it in %+v", l.Job, l.Class, l.Parts, s.Leases[i].Parts)
		}
	}
}
