package engine_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/show/explain"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// bySite lets a's VC have a scheduler of its own that always answers with turns, as of a time ago.
func (w *world) bySite(ago cluster.Span, why string, turns func(key func(cluster.JobID) cluster.JobKey) []cluster.VCTurn) {
	w.Rules.Cells.VCs[0].Scheduler = &cluster.VCScheduler{Command: []string{"/usr/local/bin/order"}, Deadline: 2 * cluster.Second}
	w.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
		s.VCOrders = []cluster.VCOrder{{VC: "a", At: s.Now.Add(-ago), Why: why, Turns: turns(func(id cluster.JobID) cluster.JobKey {
			for i := range s.Cases {
				if s.Cases[i].Record.ID == id {
					return s.Cases[i].Record.Key
				}
			}
			return 0
		})}}
		return engine.Decide(s)
	}
}

// siteWorlds are worlds in which a has so many nodes of four GPUs, without and with a policy that divides models.
func siteWorlds(t *testing.T, nodes int) map[string]*world {
	vc := cluster.VC{Name: "a", Cells: []cluster.CellQuota{{Type: "v100.node", Cells: nodes}}}
	return map[string]*world{"hived": newCellsOn(t, simtest.Nodes("v", "v100", nodes, 4), modelCells(0, nodes, vc), "a", "b"), "gavel:las": newModelCells(t, "gavel:las", 0, nodes, vc),
		"oef:noncoop": newModelCells(t, "oef:noncoop", 0, nodes, vc)}
}

// The order of a VC's own scheduler decides which jobs get the cells, term for term; jobs that it does not name go after.
func TestASchedulerOfTheSiteOrders(t *testing.T) {
	for name, w := range siteWorlds(t, 1) {
		first, last := w.kind("a", "x", 4, forever), w.kind("a", "x", 4, forever)
		unnamed := w.kind("a", "x", 4, forever)
		w.bySite(0, "", func(key func(cluster.JobID) cluster.JobKey) []cluster.VCTurn {
			return []cluster.VCTurn{{Job: key(last)}, {Job: key(first)}}
		})
		w.Run(6 * hour)
		if got := w.Alloc(last); got < cluster.Times(4, 6*hour-20*minute) || w.Alloc(unnamed) != 0 {
			t.Errorf("%s: the job that the scheduler puts first ran for %.2f GPU-hours of 24, one that it does not name %.2f", name, got.Hours(), w.Alloc(unnamed).Hours())
		}
		var why string
		for i := range w.Last.Statuses {
			if w.Last.Statuses[i].Job == w.Record(unnamed).Key {
				why = explain.Words{}.Reason(w.Last.Statuses[i].Reason)
			}
		}
		if !strings.Contains(why, "its virtual cluster's own scheduler orders the jobs of its tenant") {
			t.Errorf("%s: a job that waits is told: %s", name, why)
		}
	}
}

// An answer that is too old, or none, leaves the built-in order in force.
func TestTheBuiltInOrderStandsIn(t *testing.T) {
	for name, x := range map[string]struct {
		ago cluster.Span
		why string
	}{"too old": {ago: 30 * minute}, "none": {why: "its deadline of 2s passed"}} {
		for by, w := range siteWorlds(t, 1) {
			first, last := w.kind("a", "x", 4, forever), w.kind("a", "x", 4, forever)
			w.bySite(x.ago, x.why, func(key func(cluster.JobID) cluster.JobKey) []cluster.VCTurn {
				return []cluster.VCTurn{{Job: key(last)}}
			})
			if w.Run(6 * hour); w.Alloc(first) < cluster.Times(4, 2*hour) {
				t.Errorf("%s, %s: the first job ran for %.2f GPU-hours", by, name, w.Alloc(first).Hours())
			}
		}
	}
}

// A placement decides on which nodes a job starts. One that cannot be had is counted, and the job starts elsewhere.
func TestASchedulerOfTheSitePlaces(t *testing.T) {
	for name, w := range siteWorlds(t, 3) {
		one, two, three := w.kind("a", "x", 4, forever), w.kind("a", "x", 4, forever), w.kind("a", "x", 4, forever)
		dropped := map[string]bool{}
		w.bySite(0, "", func(key func(cluster.JobID) cluster.JobKey) []cluster.VCTurn {
			return []cluster.VCTurn{{Job: key(one), Nodes: []string{"v03"}}, {Job: key(two), Model: "v100", Nodes: []string{"v03"}}, {Job: key(three), Model: "k80"}}
		})
		check := w.Check
		w.Check = func(r loop.Report) {
			check(r)
			for _, d := range r.Plan.Cells.Dropped {
				dropped[d.Why] = true
			}
		}
		w.Run(hour)
		on := func(id cluster.JobID) string {
			l := slices.IndexFunc(w.Last.State.Leases, func(l cluster.Lease) bool { return l.Job == w.Record(id).Key })
			if l < 0 {
				return ""
			}
			return w.Last.State.Leases[l].Nodes[0].Node
		}
		if on(one) != "v03" || on(two) == "" || on(three) == "" {
			t.Errorf("%s: the jobs run on %q, %q and %q, and the first was placed on v03", name, on(one), on(two), on(three))
		}
		if !dropped[cluster.DroppedCells] || !dropped[cluster.DroppedModel] || !dropped[cluster.DroppedRuns] {
			t.Errorf("%s: dropped %v", name, dropped)
		}
	}
}

// A scheduler that fails again and again for one reason is asked again after a term at most, although nothing else happens.
func TestASchedulerThatFailsIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := siteWorlds(t, 1)["hived"]
		w.Rules.Cells.VCs[0].Scheduler = &cluster.VCScheduler{Command: []string{"/usr/local/bin/order"}, Deadline: 2 * cluster.Second}
		asked := make(chan cluster.Instant, 999)
		w.Loop.Beside = true
		w.Loop.Schedulers = func(s cluster.Snapshot, _ cluster.Plan) []loop.Scheduler {
			return []loop.Scheduler{{VC: "a", Ask: func() cluster.VCOrder {
				asked <- s.Now
				return cluster.VCOrder{Why: "it failed"}
			}}}
		}
		w.Check = func(loop.Report) { synctest.Wait() } // its answer comes beside the rounds
		began := w.Now()
		w.Run(2 * hour)
		close(asked)
		last := began
		for at := range asked {
			if at.Sub(last) > 16*minute {
				t.Errorf("it is not asked between %v and %v", last.Sub(began), at.Sub(began))
			}
			last = at
		}
		if w.Now().Sub(last) > 16*minute {
			t.Errorf("it is asked for the last time after %v of 2 hours", last.Sub(began))
		}
	})
}
