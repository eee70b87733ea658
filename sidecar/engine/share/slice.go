package share

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Jobs that wait for one GPU, two or three as the settings have it (see cluster.Slices), can have equal parts of its shards, and use it in turn. So
// all go on within minutes, instead of one after the other in whole terms. Only jobs take part that say share=yes, that are known to need little of the
// GPU's memory, since that stays in use, and that ask for one GPU.
//
// Sharing begins when jobs start. A job that has found no idle GPU is put to one of its tenant that is granted a GPU in this round, or onto a GPU on
// which jobs of its tenant have parts and that has one left. A tenant that holds more GPUs than it is due takes a job of one that holds less onto its
// GPU. A job that has to leave its GPU for one of these joins that when it waits.

// slice puts jobs that wait onto the GPUs of others.
func slice(x *contest, in *lease.Input, choice *lease.Choice) {
	s := x.f.In.Settings.Slices
	if s == nil || x.f.In.Snapshot.Cells != nil || x.f.Due.JobsQueue && !s.Pairs {
		return
	}
	p := &slicer{x: x, in: in, choice: choice, turns: turnsOf(x), open: map[*cluster.Node]int{}, holds: make([]cluster.MicroGPU, len(in.Tenants)*len(x.f.In.Pools))}
	if p.hosts = p.room(); len(p.hosts) == 0 {
		return
	}
	if p.plan = planOf(x, func(i, k int) bool { return !p.left(i) && !p.left(k) }); p.plan != nil {
		p.joinAll(true, true)
	}
	for _, own := range []bool{true, false} {
		if !own && (x.f.In.Settings.Divides() || x.f.In.Settings.Across != cluster.AnyUser) {
			break
		}
		p.joinAll(own, false)
		p.await(own)
	}
}

// joinAll puts candidates in the order of turns onto the GPUs of others, those of the tenant that is furthest behind first; planned = only where the
// division gives their types a GPU together.
func (p *slicer) joinAll(own, planned bool) {
	order := make([]int, len(p.in.Tenants))
	for t := range order {
		order[t] = t
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.behind(b), p.behind(a)) })
	for _, t := range order {
		p.in.Tenants[t].Each(p.in.Candidates, func(i, pool, _ int) { p.join(t, i, pool, own, planned) })
	}
}

// behind returns how far a tenant is behind in the pool in which that is most.
func (p *slicer) behind(tenant int) cluster.Span {
	most := cluster.Span(math.MinInt64)
	for _, s := range p.in.Tenants[tenant].Shares {
		most = max(most, s.Behind)
	}
	return most
}

// slicer puts jobs onto the GPUs of others.
type slicer struct {
	x      *contest
	in     *lease.Input
	choice *lease.Choice
	turns  turns
	hosts  []sliceHost
	holds  []cluster.MicroGPU    // by tenant, then pool: GPUs of leases
	leaves []int                 // cases that may take turns, and have to leave their GPU now
	board  *place.Board          // with all leases; nil = not made yet
	open   map[*cluster.Node]int // the job there that starts with a part of a GPU in this round, and has no partner yet
	plan   plan                  // nil = the division has no pairs
}

// sliceHost is a GPU with room for another job.
type sliceHost struct {
	items []int              // cases: the job that is granted it, or those that have parts of it already; then those that it has found
	has   []cluster.MicroGPU // the part of a GPU that each of them counts for now
	pool  int
	node  *cluster.Node
	lone  bool // the first of them had a part of it before
}

// room returns the GPUs that have room for another job, and counts what tenants hold.
func (p *slicer) room() []sliceHost {
	f := p.x.f
	behind, on := map[cluster.JobKey]bool{}, map[cluster.Device]int{}
	for i, l := range f.Hand.Leases {
		if l == nil {
			continue
		}
		if p.left(i) {
			if f.Due.Queued[i].Queue >= 0 && f.In.MaySlice(i, l.Pool) {
				p.leaves = append(p.leaves, i)
			}
			continue
		}
		if q, pool := f.Due.Queued[i].Queue, f.In.Pool(l.Pool); q >= 0 && pool >= 0 && l.Behind == 0 {
			p.holds[int(q)*len(f.In.Pools)+pool] += l.Size.Amount()
		}
		behind[l.Behind] = true
		for k := range l.Nodes {
			if !l.Nodes[k].Size.IsWhole() {
				for d := range l.Nodes[k].Devices() {
					on[d]++
				}
			}
		}
	}
	var hosts []sliceHost
	shared := map[cluster.Device]int{} // index into hosts
	for i, l := range f.Hand.Leases {
		if l == nil || len(l.Nodes) != 1 || l.Behind != 0 || behind[l.Job] || l.Parts != nil || f.Due.Queued[i].Queue < 0 || f.In.Pool(l.Pool) < 0 {
			continue
		}
		begins := l.State == cluster.Granted && l.Granted == f.In.Now && cluster.SizeHeld(l.Nodes) == cluster.Whole(1) && f.In.Cases[i].Waits
		lone := l.State == cluster.Active && f.In.Records[i].Slice != nil && !f.Ending(i) && len(l.Nodes[0].Index) == 1
		at, ok := slices.BinarySearchFunc(f.In.Snapshot.Nodes, l.Nodes[0].Node, func(n cluster.Node, name string) int { return strings.Compare(n.Name, name) })
		if !begins && !lone || !ok || f.In.Settings.Slices.Shards(&f.In.Snapshot.Nodes[at]) == 0 || !f.In.MaySlice(i, l.Pool) {
			continue
		}
		if lone {
			d := cluster.Device{Node: l.Nodes[0].Node, Model: l.Nodes[0].Model, Index: l.Nodes[0].Index[0]}
			if h, ok := shared[d]; ok {
				hosts[h].items, hosts[h].has = append(hosts[h].items, i), append(hosts[h].has, l.Size.Amount())
				continue
			}
			shared[d] = len(hosts)
		}
		hosts = append(hosts, sliceHost{items: []int{i}, has: []cluster.MicroGPU{l.Size.Amount()}, pool: f.In.Pool(l.Pool), node: &f.In.Snapshot.Nodes[at], lone: lone})
	}
	// Slurm takes the first GPU with room: on a node with such a GPU on which jobs have parts already, a further one goes there.
	busy, lone := map[int]bool{}, map[*cluster.Node]bool{}
	for d, h := range shared {
		busy[h] = on[d] != len(hosts[h].items) || on[d] >= f.In.Settings.Slices.Most()
		lone[hosts[h].node] = lone[hosts[h].node] || !busy[h]
	}
	out := hosts[:0]
	for h := range hosts {
		if !busy[h] && (!lone[hosts[h].node] || hosts[h].lone) {
			out = append(out, hosts[h])
		}
	}
	return out
}

// left reports whether a job with a lease has to leave its GPUs now.
func (p *slicer) left(i int) bool {
	l := p.x.f.Hand.Leases[i]
	return l.State == cluster.Ending || l.End <= p.x.f.In.Now && p.x.f.Ending(i)
}

// join puts a candidate onto the GPU of another job in a pool: of its own tenant, or else of one that holds more than it is due.
func (p *slicer) join(tenant, i, pool int, own, planned bool) {
	f, k := p.x.f, &p.in.Candidates[i]
	if k.Running || k.IdleOnly || f.Hand.Leases[k.Case] != nil || p.in.Tenants[tenant].Spent || !f.In.MaySlice(k.Case, f.In.Pools[pool]) ||
		f.Hand.IsClaimed(k.Key) || p.in.Limits != nil && p.in.Limits.Room(k.Case) != lease.Now || !own && !p.lacks(tenant, pool) {
		return
	}
	for _, h := range p.best(k.Case) {
		x := &p.hosts[h]
		if planned && !p.plan.gives(f, k.Case, x.items[0], x.pool) || !planned && p.decided(x, k.Case) {
			continue
		}
		if own && k.Binds != lease.Unbound && !slices.ContainsFunc(x.items, func(i int) bool { return !f.Hand.Marks[i].Stoppable }) { // its tenant would bind more GPUs than before
			continue
		}
		if p.together(x, k.Case, tenant, pool, own) && p.pair(x, k) {
			p.choice.Passed[i] = round.Passed{}
			p.plan.take(f, k.Case, x.items[0], x.pool)
			p.gave(x, k.Case, tenant)
			if p.in.Limits != nil {
				p.in.Limits.Take(k.Case, true)
			}
			return
		}
	}
}

// untried is how much two jobs are taken to do at the same time, as a multiple of one alone, before anything is known, so that they are tried.
const untried = 1.25

// best returns the hosts in the order in which a job should join them: first those beside which both do most.
func (p *slicer) best(i int) []int {
	order, does := make([]int, len(p.hosts)), make([]float64, len(p.hosts))
	for h := range p.hosts {
		order[h], does[h] = h, p.does(&p.hosts[h], i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(does[b], does[a]) })
	return order
}

// does returns how much a job and a host do at the same time, by what is known of their types. Where all take turns, it is the same for all.
func (p *slicer) does(h *sliceHost, i int) float64 {
	f := p.x.f
	if !f.In.Settings.Slices.Pairs {
		return untried
	}
	own, other, known := f.Market.Beside(i, h.items[0], f.In.Pools[h.pool])
	if !known {
		return untried
	}
	return cluster.Together(own, other, p.turns.time(i, h.items[0]))
}

// await lets jobs that are granted a GPU start with a part of it, for jobs that have to leave theirs now: these can join when they wait.
func (p *slicer) await(own bool) {
	f := p.x.f
	slices.SortStableFunc(p.leaves, func(a, b int) int {
		return cmp.Compare(p.behind(int(p.x.f.Due.Queued[b].Queue)), p.behind(int(p.x.f.Due.Queued[a].Queue)))
	})
	for _, i := range p.leaves {
		t, pool := int(f.Due.Queued[i].Queue), f.In.Pool(f.Hand.Leases[i].Pool)
		if !own && !p.lacks(t, pool) {
			continue
		}
		for h := range p.hosts {
			if x := &p.hosts[h]; !x.lone && p.together(x, i, t, pool, own) && p.planned(x, i) && (len(x.items) > 1 || p.joinsOpen(x) && p.divide(x)) {
				p.plan.take(f, i, x.items[0], pool)
				p.open[x.node] = x.items[0]
				p.gave(x, i, t)
				break
			}
		}
	}
}

// decided reports whether the division decides on a job and a host: it knows how fast they are beside each other.
func (p *slicer) decided(h *sliceHost, i int) bool {
	if p.plan == nil {
		return false
	}
	_, _, known := p.x.f.Market.Beside(i, h.items[0], p.x.f.In.Pools[h.pool])
	return known
}

// planned reports whether the division gives a job and a host a GPU together, or does not decide on them.
func (p *slicer) planned(h *sliceHost, i int) bool {
	return !p.decided(h, i) || p.plan.gives(p.x.f, i, h.items[0], h.pool)
}

// joinsOpen reports whether a host may start with a part of a GPU: on a node where another one does so in this round, Slurm puts it beside that.
func (p *slicer) joinsOpen(h *sliceHost) bool {
	i, ok := p.open[h.node]
	return !ok || p.does(h, i) >= cluster.LeastTogether && p.planned(h, i)
}

// together reports whether a job of a tenant may be put onto a GPU: beside jobs of its own tenant, or else of one that holds more than it is due.
func (p *slicer) together(h *sliceHost, i, tenant, pool int, own bool) bool {
	f := p.x.f
	others := slices.ContainsFunc(h.items, func(o int) bool { return int(f.Due.Queued[o].Queue) != tenant })
	strangers := slices.ContainsFunc(h.items, func(o int) bool { return f.In.Records[o].User != f.In.Records[i].User })
	return len(h.items) < f.In.Settings.Slices.Most() && h.pool == pool && (f.Due.JobsQueue || others != own) && (own || p.may(h, i, tenant)) &&
		(f.In.Settings.Across != cluster.SameUser || !strangers) && p.does(h, i) >= cluster.LeastTogether
}

// may reports whether the tenants on a GPU take a job of another one: those whose part becomes smaller by that still have their due. With a third
// job each of the tenants has its due with its parts, since all go on more slowly.
func (p *slicer) may(h *sliceHost, i, tenant int) bool {
	parts := p.turns.parts(h.pool, append(slices.Clip(h.items), i))
	third, slack := len(h.items) > 1, rounding
	if !third && parts[0] == parts[1] {
		slack = 0
	}
	served := func(t int) bool {
		holds := p.holds[t*len(p.x.f.In.Pools)+h.pool]
		for k, o := range h.items {
			if p.queue(o) == t {
				holds += parts[k] - h.has[k]
			}
		}
		if t == tenant {
			holds += parts[len(h.items)]
		}
		return holds+slack >= p.in.Tenants[t].Shares[h.pool].Entitlement
	}
	for k, o := range h.items {
		if t := p.queue(o); t != tenant && (third || parts[k] < h.has[k]) && !served(t) {
			return false
		}
	}
	return !third || served(tenant)
}

// queue gives the tenant of a case.
func (p *slicer) queue(i int) int { return int(p.x.f.Due.Queued[i].Queue) }

// rounding is how much less than its due a tenant may hold since parts of a GPU are rounded down.
const rounding = cluster.WholeGPU / 1000

// gave counts a part of a GPU for a job of a tenant. The jobs that have it already keep the rest.
func (p *slicer) gave(h *sliceHost, i, tenant int) {
	h.items, h.has = append(h.items, i), append(h.has, 0)
	parts := p.turns.parts(h.pool, h.items)
	for k, o := range h.items {
		t := p.queue(o)
		if k == len(h.items)-1 {
			t = tenant
		}
		p.holds[t*len(p.x.f.In.Pools)+h.pool] += parts[k] - h.has[k]
	}
	h.has = parts
}

// lacks reports whether a tenant holds less than it is due.
func (p *slicer) lacks(t, pool int) bool {
	return p.holds[t*len(p.x.f.In.Pools)+pool] < p.in.Tenants[t].Shares[pool].Entitlement
}

// pair gives a candidate a part of a GPU, and another one to the job to which all of it was granted.
func (p *slicer) pair(h *sliceHost, k *lease.Candidate) bool {
	f, host := p.x.f, h.items[0]
	l := f.Hand.Leases[host]
	was, whole := *l, !h.lone && len(h.items) == 1
	if whole && (!p.joinsOpen(h) || !p.divide(h)) {
		return false
	}
	end := f.Stops.EndFor(k.Case, f.In.Now)
	other, ok := p.fit(h, k.Case, end)
	if !ok {
		if whole {
			place.Release(p.board, l.Nodes, f.In.SlicesWith(host))
			*l, f.Hand.Marks[host].Slice = was, nil
			p.board.Hold(l.Nodes, f.In.Sharer(host))
		}
		return false
	}
	p.board.Take(other)
	f.Grant(k.Case, f.In.Pools[h.pool], other.Nodes, end)
	p.mark(h, k.Case)
	return true
}

// divide leaves a job its part of the GPU that was granted to it.
func (p *slicer) divide(h *sliceHost) bool {
	f, host := p.x.f, h.items[0]
	l, board := f.Hand.Leases[host], p.full()
	place.Release(board, l.Nodes, f.In.Sharer(host))
	part, ok := p.fit(h, host, l.End)
	if !ok {
		board.Hold(l.Nodes, f.In.Sharer(host))
		return false
	}
	board.Take(part)
	l.Nodes, l.Size = part.Nodes, f.In.Settings.Counted(part.Nodes)
	p.mark(h, host)
	return true
}

// full returns the board with all leases, and all that is claimed. It is made once.
func (p *slicer) full() *place.Board {
	if p.board != nil {
		return p.board
	}
	f := p.x.f
	board := f.Fresh(nil)
	p.board = board
	for i, l := range f.Hand.Leases {
		st := &f.In.Cases[i]
		switch {
		case !st.Live, l != nil && p.left(i):
		case l != nil && l.State == cluster.Granted:
			board.Hold(l.Nodes, f.In.Sharer(i))
		case !st.Waits:
			board.Hold(f.In.Snapshot.Cases[i].Job.Holds, f.In.Sharer(i))
		}
	}
	for c := range f.Hand.Claims {
		hold(f, board, &f.Hand.Claims[c])
	}
	return board
}

// fit finds a part of a GPU for a job on the node of a host.
func (p *slicer) fit(h *sliceHost, i int, end cluster.Instant) (place.Placement, bool) {
	f := p.x.f
	spec := f.Spec(i)
	spec.Request = cluster.SliceOf(spec.Request, f.In.Settings.Slices.Shards(h.node), f.In.Settings.Slices.Part())
	if len(spec.Require) > 0 && !slices.Contains(spec.Require, h.node.Name) {
		return place.Placement{}, false
	}
	spec.Require, spec.Others = []string{h.node.Name}, false
	return p.full().Fit(place.Ask{Shape: f.Site.Shape(spec), Pool: h.pool, Now: f.In.Now, End: end, Displace: place.Nobodys, Sharer: f.In.SlicesWith(i), Stops: true, Max: -1})
}

// mark notes that a job starts with a part of a GPU.
func (p *slicer) mark(h *sliceHost, i int) {
	f := p.x.f
	j := &f.In.Snapshot.Cases[i].Job
	f.Hand.Marks[i].Slice = &cluster.Slice{Ask: j.Ask, Request: j.Request, Shards: f.In.Settings.Slices.Shards(h.node), At: f.In.Now}
}
