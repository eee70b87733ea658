package vc

import (
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
)

// Tenants may trade cells of their virtual clusters (Gandiva_fair §3.4): a trade that both agreed on in the allocation
// changes their numbers of cells, r_tk. It takes effect, and is undone, only at a moment at which every guaranteed
// lease in the middle of its term keeps its cells, and with the hardware as it is (HiveD Theorem 1): when the terms of
// the leases there end. Until then the old numbers hold.

// trade decides which trades of cells are in force, and returns the healthy and free cells after them. The record is
// that of the leases and the hardware. Trades that are not agreed any more are undone first, the newest first.
func (v *ground) trade(record cells.Record) *cells.State {
	if v.turn.c.layoutAfter(v.turn.f.In.Snapshot.Cells, v.turn.cellTrades) == nil { // the description has changed
		v.turn.cellTrades = nil
	}
	if v.touch == cluster.FullControl && !v.turn.decided {
		v.turn.decided = true
		v.settleTrades(record)
	}
	return v.turn.c.layoutAfter(v.turn.f.In.Snapshot.Cells, v.turn.cellTrades)
}

func (v *ground) settleTrades(record cells.Record) {
	agreed := v.agreed()
	if slices.EqualFunc(agreed, v.turn.cellTrades, same) {
		return
	}
	now := v.trial(record, v.turn.cellTrades)
	for i := len(v.turn.cellTrades) - 1; i >= 0; i-- {
		if t := v.turn.cellTrades[i]; !contains(agreed, t) {
			now = v.change(record, now, slices.Delete(slices.Clone(v.turn.cellTrades), i, i+1), cluster.EventCellsReturned, &t)
		}
	}
	for i := range agreed {
		if !contains(v.turn.cellTrades, agreed[i]) {
			now = v.change(record, now, append(slices.Clip(v.turn.cellTrades), agreed[i]), cluster.EventCellsTraded, &agreed[i])
		}
	}
}

// agreed returns the trades of cells in the allocation.
func (v *ground) agreed() []cluster.CellTrade {
	if d := v.turn.f.In.Snapshot.Allocation; d != nil && d.Policy == v.turn.f.In.Settings.Divide {
		return d.CellTrades
	}
	return nil
}

func contains(trades []cluster.CellTrade, t cluster.CellTrade) bool {
	return slices.ContainsFunc(trades, func(o cluster.CellTrade) bool { return same(o, t) })
}

// trial is the cells as they would be after trades; nil = they are not possible.
type trial struct {
	state   *cells.State
	demoted []int
}

// trial rebuilds the cells after trades.
func (v *ground) trial(record cells.Record, trades []cluster.CellTrade) *trial {
	plain := v.turn.c.layoutAfter(v.turn.f.In.Snapshot.Cells, trades)
	if plain == nil {
		return nil
	}
	state, changes := plain.Rebuild(record)
	return &trial{state, changes.Demoted}
}

// change puts other trades in force if no lease in the middle of its term and no claim suffers, no VC loses another
// cell to bad hardware, and every promise can be kept. It returns the cells as they are then.
func (v *ground) change(record cells.Record, now *trial, trades []cluster.CellTrade, kind string, t *cluster.CellTrade) *trial {
	next := v.trial(record, trades)
	if next == nil || next.state.Cells.Unsafe() != nil || !slices.Equal(next.state.Cells.Losses(), now.state.Cells.Losses()) {
		return now
	}
	for _, i := range next.demoted {
		if !slices.Contains(now.demoted, i) && (i >= len(v.turn.f.In.Cases) || !v.mayGo(i)) {
			return now
		}
	}
	v.turn.cellTrades = trades
	c := t.Cells
	gets := map[string]string{cluster.EventCellsTraded: "gets", cluster.EventCellsReturned: "gives back"}[kind]
	v.turn.f.Hand.Events = append(v.turn.f.Hand.Events, cluster.Event{Kind: kind, Text: fmt.Sprintf("trade %d: the virtual cluster %s %s %d cells of type %s (%s) of %s for %d of type %s (%s), at %.2f GPUs each",
		t.ID, t.FastTo.Tenant, gets, c.FastCells, c.FastType, t.Fast, t.SlowTo.Tenant, c.SlowCells, c.SlowType, t.Slow, t.Price)})
	return next
}
