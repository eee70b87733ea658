package vc

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
)

// A site may order the jobs of a VC by a program of its own (HiveD §4: a VC's scheduler sees its own cells, and each of its requests is checked
// against them). Its answer is a wish, as every order is.

// siteOrders returns, by tenant, the answer of its VC's own scheduler; nil = the built-in order decides.
func siteOrders(h *turn) []*cluster.VCOrder {
	out := make([]*cluster.VCOrder, len(h.f.In.Tenants))
	for i := range h.f.In.Snapshot.Cells.VCs {
		x := &h.f.In.Snapshot.Cells.VCs[i]
		t, ok := slices.BinarySearch(h.f.In.Tenants, x.Name)
		if !ok || x.Scheduler == nil {
			continue
		}
		next := h.f.In.Now.Add(h.f.In.Settings.Term) // it is asked again after each round
		if out[t], _ = h.f.In.Snapshot.OrderOf(x); out[t] != nil {
			next = out[t].At.Add(cluster.OrderTerms * h.f.In.Settings.Term)
		}
		h.out.Later(h.f.In.Now, next)
	}
	return out
}

// bySite puts the turns of the jobs that a VC's own scheduler names first, in its order. The others follow in the order of line.
func (v *decision) bySite(o *cluster.VCOrder, line []lease.Turn) []lease.Turn {
	place := make(map[cluster.JobKey]int, len(o.Turns)) // of named jobs: below 0
	for at := range o.Turns {
		place[o.Turns[at].Job] = at - len(o.Turns)
	}
	models := map[int]int{} // by candidate: the pool of the model that the scheduler wants
	for _, x := range line {
		k := &v.in.Candidates[x.Candidate]
		at, named := place[k.Key]
		if _, done := models[x.Candidate]; !named || done {
			continue
		}
		models[x.Candidate] = anyPool
		w := o.Turns[len(o.Turns)+at]
		if w.Model == "" && len(w.Nodes) > 0 {
			at, _ := v.g.state.Cells.Place(w.Nodes[0])
			w.Model = at.Model
		}
		if w.Model == "" {
			continue
		}
		p := v.g.turn.f.In.Pool(w.Model)
		switch l := v.g.turn.f.Hand.Leases[k.Case]; {
		case p < 0:
			v.g.turn.drop(o.VC, cluster.DroppedModel)
		case l == nil:
			v.places[k.Case], models[x.Candidate] = w, p
		case len(w.Nodes) > 0 && !holdsOn(l, w.Nodes), l.Pool != w.Model && !v.g.turn.f.In.Settings.Divides():
			v.g.turn.drop(o.VC, cluster.DroppedRuns)
		default:
			if models[x.Candidate] = p; v.g.turn.f.In.Settings.Divides() && !slices.Contains(line, lease.Turn{Candidate: x.Candidate, Pool: p}) {
				v.g.turn.drop(o.VC, cluster.DroppedModel)
			}
		}
	}
	key := func(x lease.Turn) int { return place[v.in.Candidates[x.Candidate].Key] }
	line = slices.Clone(line)
	slices.SortStableFunc(line, func(a, b lease.Turn) int {
		ka := key(a)
		if by := cmp.Compare(ka, key(b)); by != 0 || ka == 0 {
			return by
		}
		return btoi(b.Pool == models[b.Candidate]) - btoi(a.Pool == models[a.Candidate])
	})
	return line
}

// holdsOn reports whether a lease has GPUs on all of some nodes and on no others.
func holdsOn(l *cluster.Lease, nodes []string) bool {
	return len(l.Nodes) == len(nodes) && !slices.ContainsFunc(l.Nodes, func(h cluster.Holding) bool { return !slices.Contains(nodes, h.Node) })
}

// place requests the cells on which a VC's own scheduler places a waiting job, once, and reports whether they could be had. If not, the job takes
// its turn on any cells.
func (v *decision) place(k *lease.Candidate, vc string, priority, pool int) bool {
	w, ok := v.places[k.Case]
	if !ok {
		return false
	}
	delete(v.places, k.Case)
	p := v.g.turn.f.In.Pool(w.Model)
	if pool != anyPool && pool != p {
		v.g.turn.drop(vc, cluster.DroppedModel)
		return false
	}
	on := w.Nodes
	if len(on) == 0 {
		on = nil
	}
	if _, ok = v.request(k, vc, priority, p, on); !ok {
		v.g.turn.drop(vc, cluster.DroppedCells)
		return false
	}
	delete(v.refused, k.Case)
	return true
}

// drop counts a placement that is not carried out.
func (h *turn) drop(vc, why string) {
	for i := range h.dropped {
		if d := &h.dropped[i]; d.VC == vc && d.Why == why {
			d.Jobs++
			return
		}
	}
	h.dropped = append(h.dropped, cluster.DroppedPlacements{VC: vc, Why: why, Jobs: 1})
}
