package store_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// TestTheCellsOfARealEngine runs the engine with virtual clusters for some hours, with the
// journal in PostgreSQL, daemons that die and nodes that fail, and replays every round.
func TestTheCellsOfARealEngine(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	dsn := storetest.Database(t)
	s, db := openStore(t, store.Config{DSN: dsn}), storetest.Connect(t, dsn)
	set := simtest.Product()
	set.Preset, set.Chooser = "hived", "astraea"
	w := simtest.New(t, set, simtest.Nodes("v", "v100", 8, 4), "bio", "chem", "guest")
	d := &cluster.Cells{Types: []cluster.CellType{{Name: "rack", Child: "node", Split: 2}, {Name: "node", Child: "gpu", Split: 4, Node: true}, {Name: "gpu", Model: "v100"}}}
	for i := range 4 {
		d.Tops = append(d.Tops, cluster.TopCell{Name: fmt.Sprintf("r%d", i+1), Type: "rack", Nodes: []string{fmt.Sprintf("v%02d", 2*i+1), fmt.Sprintf("v%02d", 2*i+2)}})
	}
	d.VCs = []cluster.VC{
		{Name: "bio", Cells: []cluster.CellQuota{{Type: "rack", Cells: 1}, {Type: "node", Cells: 1}}, Pins: []cluster.CellPin{{Type: "node", Node: "v08"}}},
		{Name: "chem", Cells: []cluster.CellQuota{{Type: "node", Cells: 3}, {Type: "gpu", Cells: 2}}},
	}
	w.Rules.Cells = d
	for hour := range 4 {
		lapse(t, db)
		w.Loop = &loop.Loop{Cluster: w.Loop.Cluster, Journal: takeLead(t, s).Journal(), Decide: w.Loop.Decide, Configure: w.Loop.Configure}
		w.Submit("guest", 6, 4, 40*cluster.Minute)
		w.Run(4 * cluster.Minute)
		w.Submit("bio", 3, 4, 25*cluster.Minute+cluster.Span(hour)*1234)
		w.Submit("chem", 5, 2, 35*cluster.Minute)
		w.Run(11 * cluster.Minute)
		w.SetNode("v05", "down")
		w.SetNode("v03", "down")
		w.Run(17 * cluster.Minute)
		w.SetNode("v03", "")
		w.Run(28*cluster.Minute + 7*cluster.Second)
		w.SetNode("v05", "")
	}
	snap, plan, err := s.Rounds.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := &life{t: t, store: s, db: db}
	rounds, err := s.Rounds.List(t.Context(), 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rounds {
		snapshot, was, err := s.Rounds.Round(t.Context(), r.Number)
		if err != nil {
			t.Fatal(err)
		}
		var then cluster.Snapshot
		if err := json.Unmarshal(snapshot, &then); err != nil {
			t.Fatal(err)
		}
		if again, err := json.Marshal(engine.Decide(then)); err != nil || string(again) != string(was) {
			t.Errorf("round %d is decided otherwise (%v)", r.Number, err)
		}
	}
	if snap.Cells == nil || len(rounds) < 50 {
		t.Fatalf("only %d rounds", len(rounds))
	}
	var views []vcCells
	for _, v := range plan.Cells.Views {
		views = append(views, vcCells{v.VC, v.Chain, v.Type, map[string]int{"rack": 8, "node": 4, "gpu": 1}[v.Type], v.Reserved, v.Pinned, v.Bound, v.Lost, v.Free, v.Lent})
	}
	same(l, "cells of VCs", views, vcCellsQuery)
	type count struct{ N int }
	same(l, "bound cells", []count{{len(plan.Cells.Bound)}}, "select count(*) from fairlease.bound_cells")
	type some struct{ Yes bool }
	same(l, "that a VC lost cells to the nodes that failed", []some{{true}}, "select exists (select from fairlease.vc_cells_over_time where lost > 0)")
	same(l, "violations", []count{{0}}, "select count(*) from fairlease.safety_violations")
	same(l, "jobs in cells without a lease", []count{{0}}, "select count(*) from fairlease.cell_holders where job_key is not null and ends_at is null")
	type recalled struct {
		Some, All bool
	}
	same(l, "recalls for cells, and that each was noted with the job for which", []recalled{{true, true}},
		`select count(*) > 4, count(*) = (select count(*) from fairlease.leases where why = 'recalled') from fairlease.recalls
			where class = 'opportunistic' and for_class = 'guaranteed' and latency between interval '0' and interval '30 seconds'`)
	same(l, "pools that do not balance", []count{{0}}, "select count(*) from fairlease.pool_balance where unaccounted_gpu_ms <> 0")
}
