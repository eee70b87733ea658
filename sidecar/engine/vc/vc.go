// Package vc chooses leases on clusters where tenants have virtual clusters (HiveD; SEMANTICS §5).
package vc

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// Chooser chooses leases where tenants have virtual clusters. It is kept from round to round to reuse its
// memory.
type Chooser struct {
	// Commons grants nodes that are in no cell.
	Commons Contest
	// Picks chooses jobs where a policy divides GPU models; nil = jobs go by debt.
	Picks Picks
	Brief bool // omit the views of the cells
	// The description of the cells, and the cells with all hardware healthy and free.
	described *cluster.Cells
	plain     *cells.State
	refused   error
	// The cells after trades; nil = these are not possible.
	traded *cells.State
	trades []cluster.CellTrade

	board  *place.Board
	common *place.Board // of nodes in no cell
	// The grants of the last round, whose memory is reused.
	lastGrants []cellGrant
	line       []lease.Turn // memory for the turns of one VC
}

// Contest grants leases to candidates by weighted shares.
type Contest func(f *field.Field, in *lease.Input, board *place.Board, touch cluster.Control, out *field.Choice) *place.Board

// turn is one round of a chooser. It decides on the cells first, and plays the hand only if the decision
// is safe:
//
//	build      the cells, with the leases and claims inside them
//	guarantee  each VC's cells to its tenant's jobs, as on a private cluster
//	check      the safety condition (Theorem 1); if it fails, nothing is granted
//	carryOut   leases, claims, recalls
//	lend       idle GPUs, to the tenants furthest below a weighted max-min share
type turn struct {
	f        *field.Field
	c        *Chooser
	out      field.Choice
	choosers []string             // by tenant: how the jobs of its VC are ordered
	levels   [][]cluster.QOSLevel // by tenant; nil = there are no levels
	orders   []*cluster.VCOrder   // by tenant: the answer of its VC's own scheduler; nil = none
	dropped  []cluster.DroppedPlacements
	unsafe   []string // reasons why promises to VCs do not add up
	// The trades of cells in force, and whether this round has decided on them.
	cellTrades []cluster.CellTrade
	decided    bool
}

// Choose implements field.Chooser.
func (c *Chooser) Choose(f *field.Field) field.Choice {
	field.Extend(f)
	h := &turn{f: f, c: c, out: field.Blank(f), cellTrades: f.In.Snapshot.CellTrades}
	h.out.Lent = lending(f)
	if h.choosers = choosers(f); slices.Contains(h.choosers, cluster.CellsByStride) {
		advance(f, h.choosers)
	}
	h.levels, h.orders = levels(f), siteOrders(h)
	for _, touch := range field.ControlLevels {
		if f.In.Any(touch) {
			f.ExtendFixed(touch)
			h.choose(touch)
		}
	}
	if h.out.Cells == nil { // there is no job at all
		h.choose(cluster.FullControl)
	}
	h.out.CellTrades = h.cellTrades
	return h.out
}

// choosers returns by tenant how the jobs of its VC are ordered.
func choosers(f *field.Field) []string {
	out := slices.Repeat([]string{f.In.Settings.Chooser}, len(f.In.Tenants))
	for i := range f.In.Snapshot.Cells.VCs {
		x := &f.In.Snapshot.Cells.VCs[i]
		if t, ok := slices.BinarySearch(f.In.Tenants, x.Name); ok && x.Chooser != "" {
			out[t] = x.Chooser
		}
	}
	return out
}

// levels returns by tenant the levels of its VC's jobs; nil = there are none.
func levels(f *field.Field) [][]cluster.QOSLevel {
	var out [][]cluster.QOSLevel
	for i := range f.In.Snapshot.Cells.VCs {
		x := &f.In.Snapshot.Cells.VCs[i]
		t, ok := slices.BinarySearch(f.In.Tenants, x.Name)
		its := f.In.Settings.Levels
		if x.Levels != nil {
			its = x.Levels
		}
		if !ok || its == nil {
			continue
		}
		if out == nil {
			out = make([][]cluster.QOSLevel, len(f.In.Tenants))
		}
		out[t] = its
	}
	return out
}

// level returns the level of a job in its tenant's VC.
func (h *turn) level(i int) int32 {
	t := h.f.In.Cases[i].Tenant
	if h.levels == nil || t < 0 {
		return 0
	}
	for _, l := range h.levels[t] {
		if l.QOS == h.f.In.Snapshot.Cases[i].Job.QOS {
			return int32(l.Level)
		}
	}
	return 0
}

// choose grants leases to the jobs of one control level.
func (h *turn) choose(touch cluster.Control) {
	v := &ground{turn: h, touch: touch, claims: map[int]*cluster.Claim{}, moving: map[int]*cluster.Claim{}, inside: make([]bool, len(h.f.In.Snapshot.Cases))}
	if _, err := h.c.layout(h.f.In.Snapshot.Cells); err != nil {
		h.unsafe = safePlan(v, err.Error())
		h.out.Cells, h.out.Lost = &cluster.CellReport{Unsafe: h.unsafe}, h.f.In.Snapshot.Lost
		return
	}
	v.state = build(v, h.f.In.Snapshot.Cells)
	v.chains = v.state.Cells.Chains()
	in := lease.Input{Now: h.f.In.Now, Settings: h.f.In.Settings}
	in.Candidates, in.Tenants = h.f.Line(v.candidates())
	in.Trials = h.f.Market.Trials(h.f.Taken(), in.Candidates)
	v.board = v.occupy()
	d := guarantee(v, &in)
	if unsafe := v.state.Cells.Unsafe(); unsafe != nil { // HiveD Theorem 1, invariant (2)
		h.unsafe = safePlan(v, words(unsafe)...)
	} else {
		carryOut(d)
		commons(v, &in)
		lend(v, &in)
	}
	h.f.Dismiss(touch)
	if touch == cluster.FullControl {
		h.out.Fences = fences(v)
	}
	explain(d)
	if h.out.Cells == nil { // the report of the managed jobs takes precedence
		h.out.Cells, h.out.Lost = report(v), v.state.Cells.Losses()
	}
}

func words(all []cells.Violation) []string {
	out := make([]string, len(all))
	for i := range all {
		out[i] = all[i].Error()
	}
	return out
}
