package vc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// commons gives out nodes that are in no cell, by right of share, as where there are no cells.
func (v *vcs) commons() {
	h := v.h
	if !slices.ContainsFunc(h.Snapshot.Nodes, func(n cluster.Node) bool { _, in := v.state.Place(n.Name); return !in && len(n.GPUs) > 0 }) {
		return
	}
	v.in.Candidates = slices.Clone(v.in.Candidates) // the line is made anew below
	for _, t := range h.Snapshot.Cells.Tops {
		h.Closed = append(h.Closed, t.Nodes...)
	}
	rest := slices.DeleteFunc(h.Candidates(v.touch), func(k lease.Candidate) bool {
		return k.Running && v.inside[k.Case] || !k.Running && h.Leases[k.Case] != nil || h.Jobs[k.Case].Claimed
	})
	in := lease.Input{Now: h.Now, Settings: h.Settings}
	in.Candidates, in.Tenants = h.Line(rest)
	h.common = h.Fresh(h.common)
	known := len(h.Claims)
	h.Commons(h.Field, &in, h.common, v.touch)
	for _, cl := range h.Claims[known:] {
		h.Jobs[h.Find(cl.Job)].Claimed = true
	}
	h.Closed = h.Closed[:0]
}

// lend gives out GPUs that nobody uses, as opportunistic leases, and renews such leases:
// weighted max-min between tenants (HiveD §3.3), by what each is entitled to. What is left
// when all have their shares goes to whoever wants it.
func (v *vcs) lend() {
	for p := range v.h.Pools {
		v.lendPool(p)
	}
}

// borrower is a tenant while GPUs of one pool are lent.
type borrower struct {
	held, share int
	weight      int64
	waits       []int // candidates
	last        []int // candidates that have what nobody else takes
	at          int
}

func (v *vcs) lendPool(p int) {
	h := v.h
	bs := make([]borrower, len(v.in.Tenants))
	demands, weights := make([]int, len(bs)), make([]int64, len(bs))
	gpus := v.state.Idle(h.Pools[p])
	var up []int // candidates: leases that are up for renewal, by tenant, first ones first
	for t := range bs {
		b := &bs[t]
		b.weight = int64(h.Row(t, p).Entitlement)
		for _, i := range v.in.Tenants[t].Jobs {
			k := &v.in.Candidates[i]
			switch {
			case h.Leases[k.Case] == nil && !k.Running && slices.Contains(k.Pools, p) && v.mayBorrow(k):
				if !h.Stops.Gone(k.Case) || v.over(k.Case, p) {
					b.waits = append(b.waits, i)
					demands[t] += k.GPUs
				} else if !v.owns(k.Case) {
					b.last = append(b.last, i)
				}
			case k.Running && k.Pools[0] == p && v.lent(k.Case) && h.Ending(k.Case):
				up = append(up, i)
				demands[t] += k.GPUs
				gpus += k.GPUs
			}
		}
		weights[t] = b.weight
	}
	for i := range h.Leases {
		if t := h.Jobs[i].Tenant; t >= 0 && v.lent(i) && h.Pool(h.Leases[i].Pool) == p && !h.Ending(i) {
			bs[t].held += h.Leases[i].GPUs
			demands[t] += h.Leases[i].GPUs
			gpus += h.Leases[i].GPUs
		}
	}
	for t, share := range cells.MaxMin(gpus, demands, weights) {
		bs[t].share = share
	}
	v.renewLent(p, bs, up)
	if gpus = v.state.Idle(h.Pools[p]); gpus > 0 {
		failed := map[string]bool{}
		v.lendTo(p, bs, true, failed)
		v.lendTo(p, bs, false, failed)
		for t := range bs {
			bs[t].waits = bs[t].last
		}
		v.lendTo(p, bs, false, failed)
	}
}

// lent tells whether a job has an opportunistic lease that it may keep.
func (v *vcs) lent(i int) bool {
	l := v.h.Leases[i]
	return l != nil && v.inside[i] && l.Class == cluster.Opportunistic && l.State != cluster.Ending && l.Why != round.Recalled
}

// mayBorrow tells whether a job that waits may have a lease that ends when somebody wants its GPUs, as far as its stop budget goes.
func (v *vcs) mayBorrow(k *lease.Candidate) bool {
	h := v.h
	st := &h.Jobs[k.Case]
	return (st.Touch == cluster.Act || st.Touch == cluster.Watch) && !st.Ordered(cluster.Exempt) && !st.Claimed &&
		!slices.Contains(h.Settings.StrictQOS, h.Snapshot.Cases[k.Case].Job.QOS)
}

// renewLent renews opportunistic leases within their tenants' shares, and beyond these as
// far as nobody below its share waits for the GPUs.
func (v *vcs) renewLent(p int, bs []borrower, up []int) {
	h := v.h
	var over []int
	for _, i := range up {
		k := &v.in.Candidates[i]
		if b := &bs[k.Tenant]; b.held == 0 || b.held+k.GPUs <= b.share {
			b.held += k.GPUs
			v.prolong(k.Case)
		} else {
			over = append(over, i)
		}
	}
	missing := -v.state.Idle(h.Pools[p])
	for t := range bs {
		wants := 0
		for _, i := range bs[t].waits {
			wants += v.in.Candidates[i].GPUs
		}
		missing += min(wants, max(bs[t].share-bs[t].held, 0))
	}
	for _, i := range slices.Backward(over) {
		k := &v.in.Candidates[i]
		if missing > 0 {
			missing -= k.GPUs
			continue
		}
		bs[k.Tenant].held += k.GPUs
		v.prolong(k.Case)
	}
}

func (v *vcs) prolong(i int) {
	v.h.Extend(i)
	v.h.Jobs[i].Began = true
}

// lendTo serves tenants, those first who have least by weight; within their shares, or beyond.
func (v *vcs) lendTo(p int, bs []borrower, within bool, failed map[string]bool) {
	h := v.h
	var line []*borrower
	for t := range bs {
		if b := &bs[t]; len(b.waits) > 0 {
			b.at = 0
			line = append(line, b)
		}
	}
	least := func(a, b *borrower) int { // a.held/a.weight against b.held/b.weight
		if a.weight == 0 || b.weight == 0 {
			return cmp.Compare(b.weight, a.weight)
		}
		return cmp.Compare(cluster.MulDiv(int64(a.held), 1<<30, a.weight), cluster.MulDiv(int64(b.held), 1<<30, b.weight))
	}
	for len(line) > 0 {
		at := 0
		for i := range line {
			if least(line[i], line[at]) < 0 {
				at = i
			}
		}
		b := line[at]
		if b.at == len(b.waits) {
			line = slices.Delete(line, at, at+1)
			continue
		}
		k := &v.in.Candidates[b.waits[b.at]]
		b.at++
		if h.Leases[k.Case] != nil || within && b.held > 0 && b.held+k.GPUs > b.share {
			continue
		}
		if shape := fmt.Sprint(k.Shape, v.soft(k.Case)); !failed[shape] {
			if !v.borrow(k, p) {
				failed[shape] = true
			} else if b.held += k.GPUs; v.state.Idle(h.Pools[p]) == 0 {
				return
			}
		}
	}
}

// borrow gives a job an opportunistic lease in a pool, if it fits anywhere.
func (v *vcs) borrow(k *lease.Candidate, p int) bool {
	for _, q := range v.asks(k, v.in.Tenants[k.Tenant].Name, 0, place.Nobodys) {
		if q.Model != v.h.Pools[p] {
			continue
		}
		if grant, err := v.state.Lend(q); err == nil {
			g := cellGrant{of: k.Case, class: cluster.Opportunistic, parts: grant.Parts}
			v.board.Hold(v.holdings(grant.Parts, k.Shape))
			v.grant(&g)
			return true
		}
	}
	return false
}

// safePlan is what is done when promises to VCs do not add up: everybody keeps what he has, and
// nobody is given anything.
func (v *vcs) safePlan(unsafe ...string) {
	h := v.h
	for i, l := range h.Leases {
		if l != nil && h.Jobs[i].Ours(v.touch) && l.State != cluster.Granted && l.State != cluster.Ending && h.Ending(i) {
			v.prolong(i)
		}
	}
	for i := range h.Jobs {
		if cl := v.claims[i]; cl != nil {
			h.Claims, h.Jobs[i].Claimed = append(h.Claims, *cl), true
		}
	}
	h.unsafe = unsafe
	h.Events = append(h.Events, cluster.Event{Kind: "cells_unsafe",
		Text: "promises to virtual clusters do not add up, nothing is granted: " + strings.Join(unsafe, "; ")})
}

// explain says of every job that waits why it has neither cells of its VC nor anything lent.
func (v *vcs) explain() {
	h := v.h
	holders, broken := v.holders(), v.broken()
	for t := range v.in.Tenants {
		for at, i := range v.in.Tenants[t].Jobs {
			c := v.in.Candidates[i].Case
			st := &h.Jobs[c]
			if !st.Eligible || h.Leases[c] != nil || st.Claimed {
				continue
			}
			no, own := v.refused[c]
			if !own && st.Passed != nil && h.unsafe == nil {
				continue // it has its turn on nodes in no cell
			}
			why := &cluster.Reason{Code: cluster.BecauseCells, Rank: at + 1, Cell: no.Level, Chain: no.Chain, Free: no.There, Cut: no.Cut}
			if len(st.Pools) > 0 {
				why.Pool = h.Pools[st.Pools[0]]
			}
			if l := holders[cellsOf{no.VC, no.Chain, no.Level}]; l != nil {
				why.For, why.Right, why.Until = l.Job, l.Class, l.End
			}
			if nodes := broken[cellsOf{vc: no.VC, chain: no.Chain}]; own && nodes != "" {
				why.Code, why.Note = cluster.BecauseLost, nodes
			}
			if h.Stops.Gone(c) && v.owns(c) && !slices.ContainsFunc(st.Pools, func(p int) bool { return v.over(c, p) }) {
				why.Code, why.Spent = cluster.BecauseBudget, h.Records[c].Spent
				for _, p := range st.Pools {
					why.Fits = max(why.Fits, v.fits(c, p))
				}
			}
			if h.unsafe != nil {
				why.Code, why.Note = cluster.BecauseUnsafe, strings.Join(h.unsafe, "; ")
			}
			st.Cell = why
		}
	}
}

// cellsOf is a VC's cells of a type.
type cellsOf struct{ vc, chain, typ string }

// holders gives, of the guaranteed leases in a VC's cells of a type or larger, the one that ends first.
func (v *vcs) holders() map[cellsOf]*cluster.Lease {
	h := v.h
	out := map[cellsOf]*cluster.Lease{}
	for i, l := range h.Leases {
		if l == nil || !v.inside[i] || l.Class != cluster.Guaranteed || l.State == cluster.Granted {
			continue
		}
		for _, p := range l.Parts {
			at, _ := v.state.Place(p.Node)
			for _, typ := range v.state.Within(at.Chain, p.Type) {
				key := cellsOf{h.Records[i].Tenant, at.Chain, typ}
				if f := out[key]; f == nil || l.End < f.End {
					out[key] = l
				}
			}
		}
	}
	return out
}

// broken names the bad nodes of every chain of which a VC has lost cells.
func (v *vcs) broken() map[cellsOf]string {
	out := map[cellsOf]string{}
	losses := v.state.Losses()
	if losses == nil {
		return out
	}
	nodes := map[string][]string{} // by chain
	for _, b := range v.state.Export().Bad {
		at, _ := v.state.Place(b.Node)
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

// report says how the cells stand.
func (v *vcs) report() {
	h := v.h
	if h.out.Cells != nil { // those that we act on have said it
		return
	}
	h.out.Lost = v.state.Losses()
	if !slices.Equal(h.out.Lost, h.Snapshot.Lost) {
		h.Events = append(h.Events, lossEvents(h.Snapshot.Lost, h.out.Lost)...)
	}
	h.out.Cells = &cluster.CellReport{Fragmentation: v.state.Fragmentation(), Unsafe: h.unsafe}
	if !h.Brief {
		h.out.Cells.Views, h.out.Cells.Bound = v.state.Views(), v.state.Bound()
	}
}

// lossEvents tells what VCs lost to hardware, and what came back.
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
			tell("cells_lost", "has lost to bad hardware", f)
		}
	}
	for _, f := range was {
		if f.Cells -= cells(is, f); f.Cells > 0 {
			tell("cells_back", "has back", f)
		}
	}
	return out
}
