package engine_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/tests/seeds"
)

// modelCells describes the nodes of a market as cells: nodes of each model.
func modelCells(k80, v100 int, vcs ...cluster.VC) *cluster.Cells {
	d := &cluster.Cells{VCs: vcs}
	for _, m := range []struct {
		model, prefix string
		nodes         int
	}{{"k80", "k", k80}, {"v100", "v", v100}} {
		d.Types = append(d.Types, cluster.CellType{Name: m.model, Model: m.model}, cluster.CellType{Name: m.model + ".node", Child: m.model, Split: 4, Node: true})
		for i := range m.nodes {
			name := fmt.Sprintf("%s%02d", m.prefix, i+1)
			d.Tops = append(d.Tops, cluster.TopCell{Name: name, Type: m.model + ".node", Nodes: []string{name}})
		}
	}
	return d
}

// nodesOf is a VC of so many nodes of each model.
func nodesOf(name string, k80, v100 int) cluster.VC {
	v := cluster.VC{Name: name}
	for _, q := range []cluster.CellQuota{{Type: "k80.node", Cells: k80}, {Type: "v100.node", Cells: v100}} {
		if q.Cells > 0 {
			v.Cells = append(v.Cells, q)
		}
	}
	return v
}

// newModelCells makes a market in cells, under a preset.
func newModelCells(t *testing.T, by string, k80, v100 int, vcs ...cluster.VC) *world {
	t.Helper()
	w := newMarket(t, k80, v100, preset.OfJobs(by), engine.Divide, "a", "b")
	w.Settings.Divide, w.Settings.Chooser = by, "astraea"
	w.Rules.Cells = modelCells(k80, v100, vcs...)
	return w
}

// kind submits a job of a kind.
func (w *world) kind(tenant, kind string, gpus int, runs cluster.Span) cluster.JobID {
	return w.submit(tenant, gpus, runs, func(j *sim.Work) { j.Comment = "kind=" + kind })
}

// fast returns the part of the rounds from a time on in which each job held v100, of those in which it held GPUs.
func (w *world) fast(from cluster.Instant, ids ...cluster.JobID) []float64 {
	out := make([]float64, len(ids))
	for i, id := range ids {
		key, rounds := w.Record(id).Key, 0.0
		for k := range w.reports {
			for _, l := range w.reports[k].Plan.State.Leases {
				if l.Job != key || l.State != cluster.Active || w.reports[k].Plan.At < from {
					continue
				}
				if rounds++; l.Pool == "v100" {
					out[i]++
				}
			}
		}
		out[i] /= max(rounds, 1)
	}
	return out
}

// near fails unless values are near what is wanted.
func (w *world) near(got, want []float64, by float64) {
	w.t.Helper()
	for i := range got {
		if got[i] < want[i]-by || got[i] > want[i]+by {
			w.t.Errorf("got %.2f, want %.2f", got, want)
			return
		}
	}
}

// Two jobs of a virtual cluster with a fast and a slow node take turns on the fast one, although no job waits. A job
// of another virtual cluster has its own fast node all the time.
func TestJobsOfAVCTakeTurnsOnItsModels(t *testing.T) {
	for _, by := range []string{"gavel:las", "gavel:las-jobs", "gavel:ftf", "oef:noncoop"} {
		t.Run(by, func(t *testing.T) {
			w := newModelCells(t, by, 2, 2, nodesOf("a", 1, 1), nodesOf("b", 1, 1))
			w.declared(map[string][2]float64{"x": {1, 3}, "y": {1, 3}})
			first := w.kind("a", "x", 4, forever)
			w.Run(minute)
			second := w.kind("a", "y", 4, forever)
			b := w.kind("b", "x", 4, forever)
			w.Run(2 * hour)
			from := w.Now()
			w.Run(48 * hour)
			w.near(w.fast(from, first, second, b), []float64{0.5, 0.5, 1}, 0.1)
			w.books()
		})
	}
}

// A job moves to faster GPUs of its virtual cluster once they are free, and finds them kept.
func TestAJobMovesToFreeCellsWhereItIsFaster(t *testing.T) {
	w := newModelCells(t, "gavel:las", 1, 1, nodesOf("a", 1, 1))
	w.declared(map[string][2]float64{"x": {1, 3}})
	short := w.kind("a", "x", 4, 40*minute)
	w.Run(minute)
	long := w.kind("a", "x", 4, forever)
	w.Run(5 * minute)
	if l := w.lease(long); l == nil || l.Pool != "k80" || l.Class != cluster.Guaranteed {
		t.Fatalf("the lease of the long job: %+v", l)
	}
	w.Run(2 * hour)
	w.state(short, cluster.Done)
	if l := w.lease(long); l == nil || l.Pool != "v100" || l.Class != cluster.Guaranteed {
		t.Errorf("the lease of the long job: %+v", l)
	}
	if n := len(w.done(cluster.Reclaim, long)); n > 2 {
		t.Errorf("the long job was requeued %d times", n)
	}
	w.books()
}

// Whatever policy divides the models, a virtual cluster's idle GPUs are lent, and it gets them back at once.
func TestACellIsRecalledAtOnceUnderEveryPreset(t *testing.T) {
	for _, by := range preset.Dividing() {
		t.Run(by, func(t *testing.T) {
			w := newModelCells(t, by, 2, 2, nodesOf("a", 1, 1), nodesOf("b", 1, 1))
			w.declared(map[string][2]float64{"x": {1, 3}})
			w.Run(minute)
			var mine []cluster.JobID
			for range 4 {
				mine = append(mine, w.kind("a", "x", 4, forever))
			}
			w.Run(10 * minute)
			for _, id := range mine {
				w.state(id, cluster.Running)
			}
			his := []cluster.JobID{w.kind("b", "x", 4, forever), w.kind("b", "x", 4, forever)}
			w.Run(minute)
			for _, id := range his {
				w.class(id, cluster.Guaranteed)
				w.state(id, cluster.Running)
				if got := w.Job(id).Start.Sub(w.Record(id).First); got > 15*second {
					t.Errorf("b waited %s for its own cell", got)
				}
			}
			w.Run(6 * hour)
			if got := w.on("b", "k80") + w.on("b", "v100"); got != 8 {
				t.Errorf("b has %d GPUs, want the 8 of its virtual cluster", got)
			}
			w.books()
		})
	}
}

// A tenant without a virtual cluster shares the nodes in no cell with the others, as the policy divides them.
func TestThePolicyDividesWhatIsInNoCell(t *testing.T) {
	seeds.Slow(t)
	w := newModelCells(t, "gavel:las", 3, 3, nodesOf("a", 1, 1))
	w.Rules.Cells.Tops = []cluster.TopCell{w.Rules.Cells.Tops[0], w.Rules.Cells.Tops[3]}
	w.declared(map[string][2]float64{"x": {1, 3}})
	for range 6 {
		w.kind("a", "x", 4, forever)
		w.kind("b", "x", 4, forever)
	}
	w.Run(24 * hour)
	before := w.Last.State.Ledger.Tenants
	w.Run(48 * hour)
	for i, row := range w.Last.State.Ledger.Tenants {
		got := float64(row.Alloc-before[i].Alloc) / float64(48*hour)
		if want := map[string]float64{"a": 8, "b": 4}[row.Tenant]; got < want-0.6 || got > want+0.6 {
			t.Errorf("%s had %.2f GPUs of %s, want %.0f: its own 4 if it has any, and half of 8", row.Tenant, got, row.Pool, want)
		}
	}
	w.books()
}

// A job whose stop budget is gone waits for cells of its VC under every preset, though its party is entitled to none
// and others' cells are idle.
func TestAJobWhoseBudgetIsGoneBorrowsNothingUnderEveryPreset(t *testing.T) {
	for _, by := range preset.Dividing() {
		w := newModelCells(t, by, 0, 2, nodesOf("a", 0, 1), nodesOf("b", 0, 1))
		w.Settings.StopAllowance, w.Settings.StopOverheadMilli = minute, 20
		w.submit("a", 4, 9*hour, neverSaves)
		w.Run(minute)
		id := w.submit("a", 4, 2*hour, neverSaves)
		for range 3 {
			w.Run(hour)
			w.submit("b", 4, 10*minute, neverSaves)
		}
		w.Run(hour)
		if r := w.Record(id); r.Stops != 1 || r.Beyond != 1 {
			t.Errorf("%s: %d stops, %d beyond its budget", by, r.Stops, r.Beyond)
		}
		w.why(id, cluster.ReasonBudget)
	}
}

// tradable makes all cells of a virtual cluster tradable.
func tradable(v cluster.VC) cluster.VC {
	for i := range v.Cells {
		v.Cells[i].Tradable = v.Cells[i].Cells
	}
	return v
}

// reserved returns the cells of each virtual cluster as they stand, by name and type.
func (w *world) reserved() map[string]int {
	out := map[string]int{}
	for _, v := range w.Last.Cells.Views {
		out[v.VC+" "+v.Type] = v.Reserved
	}
	return out
}

// A tenant whose jobs gain much from fast GPUs gets a fast node of another tenant for slow ones when terms end. When
// the other tenant's jobs gain as much, each gets its own nodes back.
func TestCellsAreTradedForATermAndReturned(t *testing.T) {
	for _, by := range []string{"gandiva-fair", "gavel:las", "oef:coop"} {
		t.Run(by, func(t *testing.T) {
			w := newModelCells(t, by, 4, 2, tradable(nodesOf("a", 0, 2)), tradable(nodesOf("b", 4, 0)))
			w.declared(map[string][2]float64{"lstm": {1, 6}, "vae": {1, 1.2}})
			w.Run(minute)
			before := w.reserved()
			var vae []cluster.JobID
			for range 24 {
				vae = append(vae, w.kind("a", "vae", 1, forever))
				w.kind("b", "lstm", 1, forever)
			}
			w.Run(5 * minute)
			w.Run(4 * term)
			if got := w.Last.State.CellTrades; len(got) != 1 || got[0].FastTo.Tenant != "b" || got[0].Cells.FastCells != 1 || got[0].Cells.SlowCells != 4 || got[0].Price != 4 {
				t.Fatalf("trades in force: %+v; agreed: %+v", got, w.Last.State.Allocation.Trades)
			}
			if got, want := w.reserved(), map[string]int{"a v100.node": 1, "a k80.node": 4, "b v100.node": 1}; !maps.Equal(got, want) {
				t.Errorf("the virtual clusters are %v, want %v", got, want)
			}
			w.Run(2 * hour)
			if a, b := w.on("a", "k80"), w.on("b", "v100"); a != 16 || b != 4 {
				t.Errorf("a has %d of k80, b %d of v100, want 16 and 4", a, b)
			}
			for _, id := range vae {
				w.Cancel(id)
			}
			for range 24 {
				w.kind("a", "lstm", 1, forever)
			}
			w.Run(3 * term)
			if got := w.Last.State.CellTrades; len(got) != 0 {
				t.Errorf("trades in force: %+v", got)
			}
			if got := w.reserved(); !maps.Equal(got, before) {
				t.Errorf("the virtual clusters are %v, and were %v before", got, before)
			}
			w.Run(2 * term)
			if a, b := w.on("a", "v100"), w.on("b", "k80"); a != 8 || b != 16 {
				t.Errorf("a has %d of v100, b %d of k80, want 8 and 16", a, b)
			}
			for _, r := range w.reports {
				for _, e := range r.Plan.Events {
					if e.Kind == "cells_demoted" {
						t.Errorf("at %s: %s", r.Plan.At, e.Text)
					}
				}
			}
			w.books()
		})
	}
}
