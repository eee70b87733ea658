package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/store"
)

type vcCells struct {
	VC, Chain, Type                           string
	GPUs                                      int
	Reserved, Pinned, Bound, Lost, Free, Lent int
}

type boundCell struct {
	VC, Chain, Type, Node, On string
	First, GPUs, Used, Bad    int
	Nodes                     []string
	Pinned                    bool
	Holders, Guests           []int64
}

const (
	vcCellsQuery    = "select vc, chain, type, cell_gpus, reserved, pinned, bound, lost, free, lent from fairlease.vc_cells order by 1, 2, cell_gpus"
	boundCellsQuery = "select vc, chain, type, node, node_gpus, gpu, gpus, used_gpus, bad_gpus, nodes, pinned, holders, guests from fairlease.bound_cells"
)

// storySizes are the GPUs of a cell of each of the story's types, by prefix of the name.
var storySizes = map[string]int{"gpu": 1, "pai": 2, "qua": 4, "nod": 8, "rac": 16}

// TestCells runs a story with cells and restarts, and recounts everything.
func TestCells(t *testing.T) {
	t.Parallel()
	story := journaltest.NewStory(1, 6, 30)
	story.Cells, story.Term, story.Notice = true, 3*cluster.Minute, 25*cluster.Second
	l := newLife(t, store.Config{Sample: time.Second}, story)
	all := map[int64]told{}
	var unsafe []bool
	var plan cluster.Plan
	for i := range 42 {
		var snap cluster.Snapshot
		snap, plan = l.round()
		all[plan.Round] = tell(t, snap, plan)
		unsafe = append(unsafe, len(plan.Cells.Unsafe) > 0)
		if i%8 == 7 { // also during a violation
			l.restart()
		}
	}
	for number, want := range all {
		l.isTold(number, want)
	}

	var views []vcCells
	for _, v := range plan.Cells.Views {
		views = append(views, vcCells{v.VC, v.Chain, v.Type, storySizes[v.Type[:3]], v.Reserved, v.Pinned, v.Bound, v.Lost, v.Free, v.Lent})
	}
	same(l, "cells of VCs", views, vcCellsQuery)
	var bound []boundCell
	for _, b := range plan.Cells.Bound {
		p := b.Parts[0]
		c := boundCell{VC: b.VC, Chain: b.Chain, Type: b.Type, Node: p.Node, GPUs: b.Used, Used: b.Used, Nodes: []string{p.Node}, Holders: []int64{int64(b.Holders[0])}}
		for p.GPUs>>c.First&1 == 0 {
			c.First++
		}
		bound = append(bound, c)
	}
	rows := ask[boundCell](l, boundCellsQuery)
	for i := range rows {
		rows[i].On = "" // see TestOddCells
	}
	order := func(a, b boundCell) int { return cmpText(a.Node, b.Node, a.First, b.First) }
	slices.SortFunc(bound, order)
	slices.SortFunc(rows, order)
	if diff := cmp.Diff(bound, rows, cmpopts.EquateEmpty()); diff != "" || len(bound) < 4 {
		t.Errorf("bound cells (-want +got):\n%s", diff)
	}

	// Violations last as long as rounds report them, also through restarts.
	wanted := 0
	for i, now := range unsafe {
		if now && (i == 0 || !unsafe[i-1]) {
			wanted++
		}
	}
	type span struct{ Since, Ended time.Time }
	spans := ask[span](l, "select since, ended_at from fairlease.violations where ended_at is not null")
	if len(spans) != wanted || wanted < 2 {
		t.Errorf("%d violations, want %d", len(spans), wanted)
	}
	for _, s := range spans {
		if d := s.Ended.Sub(s.Since); d != 30*time.Second {
			t.Errorf("a violation lasted %s", d)
		}
	}

	// A history has only changes.
	type counts struct{ Rows, Same, Last int }
	for table, level := range map[string]string{"vc_cell_history": "vc, chain, type", "fragmentation_history": "chain, type"} {
		columns := map[string]string{"vc_cell_history": "bound, lost, free", "fragmentation_history": "broken, cells, 0"}[table]
		c := ask[counts](l, `with h as (select *, lag(row(`+columns+`)) over (partition by `+level+` order by at) is not distinct from row(`+columns+`) as same from fairlease.`+table+`)
			select count(*), count(*) filter (where same), count(distinct (`+level+`)) from h`)[0]
		if c.Rows <= c.Last || c.Same > 5*c.Last || c.Last < 8 { // every level is written again after a restart
			t.Errorf("%s: %+v", table, c)
		}
	}

	// It continues without cells.
	story.Cells = false
	l.round()
	same(l, "cells of VCs when there are none", []vcCells{}, vcCellsQuery)
	same(l, "bound cells when there are none", []boundCell{}, boundCellsQuery)
	type one struct{ N int }
	same(l, "levels in the history that did not end", []one{{0}},
		"select count(*) from (select distinct on (vc, chain, type) reserved from fairlease.vc_cell_history order by vc, chain, type, at desc) h where reserved > 0")
}

func cmpText(a, b string, i, j int) int {
	switch {
	case a < b || a == b && i < j:
		return -1
	case a == b && i == j:
		return 0
	}
	return 1
}

// TestOddCells commits impossible states: they must not stop the journal.
func TestOddCells(t *testing.T) {
	t.Parallel()
	story := journaltest.NewStory(2, 2, 5)
	story.Cells = true
	l := newLife(t, store.Config{}, story)
	snap, plan := story.Next()
	snap.Cells.Types = append(snap.Cells.Types, cluster.CellType{Name: "ring", Child: "ring", Split: 1})
	r := plan.Cells
	part := []cluster.CellPart{{Node: "n", GPUs: 1<<63 | 0b1101}, {Node: "m", GPUs: 1}}
	r.Bound = []cluster.BoundCell{
		{VC: "a", Parts: part, Pinned: true, Bad: 3, Guests: []cluster.JobKey{7, 8}}, {VC: "a", Parts: part}, {VC: "b", Parts: part},
		{VC: "nowhere"}, {VC: "c", Parts: []cluster.CellPart{{Node: "n"}}},
	}
	r.Views = append(r.Views, r.Views[0])
	r.Fragmentation = append(r.Fragmentation, r.Fragmentation...)
	r.Unsafe = []string{"twice", "twice"}
	l.commit(snap, plan)
	none := []int64{}
	same(l, "bound cells", []boundCell{
		{VC: "a", Node: "n", On: "0,2-3,63", GPUs: 5, Bad: 3, Nodes: []string{"n", "m"}, Pinned: true, Holders: none, Guests: []int64{7, 8}},
		{VC: "b", Node: "n", On: "0,2-3,63", GPUs: 5, Nodes: []string{"n", "m"}, Holders: none, Guests: none},
		{VC: "c", Node: "n", First: 64, Nodes: []string{"n"}, Holders: none, Guests: none},
	}, boundCellsQuery)
	type one struct{ What string }
	same(l, "violations", []one{{"twice"}}, "select what from fairlease.violations")
}

// TestBoundSince keeps the time since when a cell is bound, whichever leases come and go in it.
func TestBoundSince(t *testing.T) {
	t.Parallel()
	story := journaltest.NewStory(3, 2, 5)
	story.Cells = true
	l := newLife(t, store.Config{}, story)
	cell := func(jobs ...cluster.JobKey) []cluster.BoundCell {
		return []cluster.BoundCell{{VC: "bio", Type: "node-a100", Parts: []cluster.CellPart{{Node: "n", GPUs: 0xff}}, Holders: jobs}}
	}
	var first cluster.Instant
	for i, jobs := range [][]cluster.JobKey{{1}, {1, 2}, {2}, {2}} {
		snap, plan := story.Next()
		plan.Cells.Bound = cell(jobs...)
		l.commit(snap, plan)
		if i == 0 {
			first = plan.At
		}
		l.restart()
	}
	type row struct {
		Holders []int64
		Since   time.Time
	}
	query := "select holders, since at time zone 'UTC' from fairlease.bound_cells"
	same(l, "the cell", []row{{[]int64{2}, first.Time()}}, query)
	for i := range 2 {
		snap, plan := story.Next()
		plan.Cells.Bound = [][]cluster.BoundCell{nil, cell(2)}[i]
		l.commit(snap, plan)
		first = plan.At
	}
	same(l, "the cell bound again", []row{{[]int64{2}, first.Time()}}, query)
}
