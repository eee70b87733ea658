package vc

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// teller explains for every job why it has no GPUs.
type teller struct {
	d        *decision
	forecast forecast
}

// explain gives each waiting job the reason why it has neither cells of its VC nor borrowed GPUs.
func explain(d *decision) {
	v := &teller{d: d, forecast: forecast{g: d.g}}
	holders, broken, highest := v.holders(), v.broken(), v.highest()
	places := make([]int, len(v.d.g.turn.f.In.Pools))
	for t := range v.d.in.Tenants {
		clear(places)
		for _, i := range v.d.in.Tenants[t].Jobs {
			c, level := v.d.in.Candidates[i].Case, v.d.in.Candidates[i].Priority.Level
			can, mark := &v.d.g.turn.f.Can[c], &v.d.g.turn.f.Hand.Marks[c]
			if !can.Eligible || v.d.g.turn.f.Hand.Leases[c] != nil || mark.Claimed {
				continue
			}
			rank := 0 // among the jobs of its tenant that wait for the same pool
			for at, p := range can.Pools {
				if places[p]++; at == 0 {
					rank = places[p]
				}
			}
			no, own := v.d.refused[c]
			if !own && v.d.g.turn.out.Refused[c].Passed != nil && v.d.g.turn.unsafe == nil {
				continue // it has its turn on nodes in no cell
			}
			why := &cluster.Reason{Code: cluster.ReasonCells, Rank: rank, Cell: no.Level, Chain: no.Chain, Free: cluster.CountOf(no.There), Cut: no.Cut}
			if len(can.Pools) > 0 {
				why.Pool = v.d.g.turn.f.In.Pools[can.Pools[0]]
			}
			switch {
			case v.d.g.turn.orders[t] != nil:
				why.Inside = &cluster.Inside{Site: true}
			case highest != nil && highest[t] > level:
				why.Inside = &cluster.Inside{Level: level, Above: highest[t]}
			}
			if l := holders[cellsOf{no.VC, no.Chain, no.Level}]; l != nil {
				why.For, why.Right, why.Until = l.Job, l.Class, l.End
			}
			if nodes := broken[cellsOf{vc: no.VC, chain: no.Chain}]; own && nodes != "" {
				why.Code, why.Note = cluster.ReasonLost, nodes
			}
			if v.d.g.turn.f.Stops.Gone(c) && v.forecast.owns(c) && !slices.ContainsFunc(can.Pools, func(p int) bool { return v.forecast.over(c, p) }) {
				why.Code, why.Spent = cluster.ReasonBudget, v.d.g.turn.f.Stops.Of(c).Spent
				for _, p := range can.Pools {
					why.Fits = max(why.Fits, v.forecast.fits(c, p))
				}
			}
			if v.d.g.turn.unsafe != nil {
				why.Code, why.Note = cluster.ReasonUnsafe, strings.Join(v.d.g.turn.unsafe, "; ")
			}
			v.d.g.turn.out.Refused[c].Cell = why
		}
	}
}

// highest returns, by tenant, the highest level of the jobs that wait for cells of its VC or hold some; nil = there are no
// levels.
func (v *teller) highest() []int32 {
	if v.d.g.turn.levels == nil {
		return nil
	}
	out := slices.Repeat([]int32{math.MinInt32}, len(v.d.g.turn.f.In.Tenants))
	for i := range v.d.g.turn.f.In.Cases {
		if st, can := &v.d.g.turn.f.In.Cases[i], &v.d.g.turn.f.Can[i]; st.Tenant >= 0 && (can.Eligible || v.d.g.inside[i] && v.d.g.right(i) == cluster.Guaranteed) {
			out[st.Tenant] = max(out[st.Tenant], v.d.g.turn.level(i))
		}
	}
	return out
}

// cellsOf identifies a VC's cells of one type.
type cellsOf struct{ vc, chain, typ string }

// holders returns, for a VC's cells of each type or larger, the guaranteed lease that ends first.
func (v *teller) holders() map[cellsOf]*cluster.Lease {
	out, within := map[cellsOf]*cluster.Lease{}, map[[2]string][]string{} // types by chain and type
	for i, l := range v.d.g.turn.f.Hand.Leases {
		if l == nil || !v.d.g.inside[i] || l.Class != cluster.Guaranteed || l.State == cluster.Granted {
			continue
		}
		for _, p := range l.Parts {
			at, _ := v.d.g.state.Cells.Place(p.Node)
			types, known := within[[2]string{at.Chain, p.Type}]
			if !known {
				types = v.d.g.state.Cells.Within(at.Chain, p.Type)
				within[[2]string{at.Chain, p.Type}] = types
			}
			for _, typ := range types {
				key := cellsOf{v.d.g.turn.f.In.Records[i].Tenant, at.Chain, typ}
				if f := out[key]; f == nil || l.End < f.End {
					out[key] = l
				}
			}
		}
	}
	return out
}

// broken names the bad nodes of every chain in which a VC has lost cells.
func (v *teller) broken() map[cellsOf]string {
	out := map[cellsOf]string{}
	losses := v.d.g.state.Cells.Losses()
	if losses == nil {
		return out
	}
	nodes := map[string][]string{} // by chain
	for _, b := range v.d.g.state.Leases.Export().Bad {
		at, _ := v.d.g.state.Cells.Place(b.Node)
		nodes[at.Chain] = append(nodes[at.Chain], b.Node)
	}
	for _, f := range losses {
		bad := nodes[f.Chain]
		words := strings.Join(bad[:min(len(bad), 3)], ", ")
		if len(bad) > 3 {
			words += fmt.Sprintf(" and %d more", len(bad)-3)
		}
		out[cellsOf{vc: f.VC, chain: f.Chain}] = words
	}
	return out
}

// report returns the state of the cells, and adds events for losses that changed.
func report(v *ground) *cluster.CellReport {
	if lost := v.state.Cells.Losses(); !slices.Equal(lost, v.turn.f.In.Snapshot.Lost) {
		v.turn.f.Hand.Events = append(v.turn.f.Hand.Events, lossEvents(v.turn.f.In.Snapshot.Lost, lost)...)
	}
	out := &cluster.CellReport{Fragmentation: v.state.Cells.Fragmentation(), Dropped: v.turn.dropped, Unsafe: v.turn.unsafe}
	if !v.turn.c.Brief {
		out.Views, out.Bound = v.state.Cells.Views(), v.state.Leases.Bound(func(job int) cluster.JobKey { return v.turn.f.In.Records[v.caseOf(job)].Key })
	}
	return out
}

// lossEvents returns an event for each loss of a VC to hardware, and for each return.
func lossEvents(was, is []cluster.CellLoss) []cluster.Event {
	var out []cluster.Event
	tell := func(kind, words string, f cluster.CellLoss) {
		out = append(out, cluster.Event{Kind: kind, Text: fmt.Sprintf("%s %s %d cells of type %s (chain %s)", f.VC, words, f.Cells, f.Type, f.Chain)})
	}
	cells := func(all []cluster.CellLoss, f cluster.CellLoss) int {
		for _, o := range all {
			if o.VC == f.VC && o.Chain == f.Chain && o.Type == f.Type {
				return o.Cells
			}
		}
		return 0
	}
	for _, f := range is {
		if f.Cells -= cells(was, f); f.Cells > 0 {
			tell(cluster.EventCellsLost, "has lost to bad hardware", f)
		}
	}
	for _, f := range was {
		if f.Cells -= cells(is, f); f.Cells > 0 {
			tell(cluster.EventCellsBack, "has back", f)
		}
	}
	return out
}
