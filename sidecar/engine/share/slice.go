package share

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Two jobs that wait for one GPU can have half of its shards each, and use it in turn. So both go on within minutes, instead of one after the
// other in whole terms. Only jobs take part that say share=yes, that are known to need little of the GPU's memory (see cluster.Slices), since that stays
// in use, and that ask for one GPU.
//
// Sharing begins when jobs start. A job that has found no idle GPU is put to one of its tenant that is granted a GPU in this round, or that has
// half of a GPU and is alone there. A tenant that holds more GPUs than it is due takes a job of one that holds less onto its GPU. A job that has
// to leave its GPU for one of these joins that when it waits.

// slice puts jobs that wait onto the GPUs of others.
func slice(x *contest, in *lease.Input, choice *lease.Choice) {
	s := x.f.In.Settings.Slices
	if s == nil || x.f.In.Snapshot.Cells != nil || x.f.Due.JobsQueue {
		return
	}
	p := &slicer{x: x, in: in, choice: choice, holds: make([]cluster.MicroGPU, len(in.Tenants)*len(x.f.In.Pools))}
	if p.hosts = p.room(); len(p.hosts) == 0 {
		return
	}
	for _, own := range []bool{true, false} {
		if !own && (x.f.In.Settings.Divides() || x.f.In.Settings.Across != cluster.AnyUser) {
			break
		}
		for t := range in.Tenants {
			in.Tenants[t].Each(in.Candidates, func(i, pool, _ int) { p.join(t, i, pool, own) })
		}
		p.await(own)
	}
}

// slicer puts jobs onto the GPUs of others.
type slicer struct {
	x      *contest
	in     *lease.Input
	choice *lease.Choice
	hosts  []sliceHost
	holds  []cluster.MicroGPU // by tenant, then pool: GPUs of leases
	leaves []int              // cases that may take turns, and have to leave their GPU now
	board  *place.Board       // with all leases; nil = not made yet
}

// sliceHost is a job with room for another one on its GPU.
type sliceHost struct {
	item, pool int // case, and its pool
	node       *cluster.Node
	lone       bool // it has half of a GPU already, and is alone there
	full       bool // its GPU has found a job
}

// room returns the jobs that have room for another one, and counts what tenants hold.
func (p *slicer) room() (hosts []sliceHost) {
	f := p.x.f
	behind, on := map[cluster.JobKey]bool{}, map[cluster.Device]int{}
	for i, l := range f.Hand.Leases {
		if l == nil {
			continue
		}
		if p.left(i) {
			if f.Due.Queued[i].Queue >= 0 && p.mayShare(i, l.Pool) {
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
	for i, l := range f.Hand.Leases {
		if l == nil || len(l.Nodes) != 1 || l.Behind != 0 || behind[l.Job] || l.Parts != nil || f.Due.Queued[i].Queue < 0 || f.In.Pool(l.Pool) < 0 {
			continue
		}
		begins := l.State == cluster.Granted && l.Granted == f.In.Now && cluster.SizeHeld(l.Nodes) == cluster.Whole(1) && f.In.Cases[i].Waits
		alone := l.State == cluster.Active && f.In.Records[i].Slice != nil && !f.Ending(i) && len(l.Nodes[0].Index) == 1
		if alone {
			for d := range l.Nodes[0].Devices() {
				alone = on[d] == 1
			}
		}
		at, ok := slices.BinarySearchFunc(f.In.Snapshot.Nodes, l.Nodes[0].Node, func(n cluster.Node, name string) int { return strings.Compare(n.Name, name) })
		if !begins && !alone || !ok {
			continue
		}
		if n := &f.In.Snapshot.Nodes[at]; n.Shards >= 2 && n.Shards%2 == 0 && p.mayShare(i, l.Pool) {
			hosts = append(hosts, sliceHost{item: i, pool: f.In.Pool(l.Pool), node: n, lone: alone})
		}
	}
	// Slurm takes the first GPU with room: on a node with a job that is alone on its GPU, a further one goes there.
	lone := map[*cluster.Node]bool{}
	for h := range hosts {
		lone[hosts[h].node] = lone[hosts[h].node] || hosts[h].lone
	}
	return slices.DeleteFunc(hosts, func(h sliceHost) bool { return lone[h.node] && !h.lone })
}

// left reports whether a job with a lease has to leave its GPUs now.
func (p *slicer) left(i int) bool {
	l := p.x.f.Hand.Leases[i]
	return l.State == cluster.Ending || l.End <= p.x.f.In.Now && p.x.f.Ending(i)
}

// mayShare reports whether a job may take turns on a GPU of a model. A job that was requeued at its start may: nobody ends turns by requeues of a job,
// since whole terms cost its partner stops.
func (p *slicer) mayShare(i int, model string) bool {
	f := p.x.f
	j, r, st := &f.In.Snapshot.Cases[i].Job, &f.In.Records[i], &f.In.Cases[i]
	if j.Hints == nil || !j.Hints.Share || j.Ask == "" || !j.Batch || j.Het != 0 || st.Control != cluster.FullControl || st.Order != nil || r.Failed > 0 && r.SlurmSaid != cluster.RequeuedAtStart {
		return false
	}
	return f.In.Settings.Slices.Fits(j, model, f.In.Snapshot.Sizes, f.In.Snapshot.Memory)
}

// join puts a candidate onto the GPU of another job in a pool: of its own tenant, or else of one that holds more than it is due.
func (p *slicer) join(tenant, i, pool int, own bool) {
	f, k := p.x.f, &p.in.Candidates[i]
	if k.Running || k.IdleOnly || f.Hand.Leases[k.Case] != nil || p.in.Tenants[tenant].Spent || !p.mayShare(k.Case, f.In.Pools[pool]) ||
		f.Hand.IsClaimed(k.Key) || p.in.Limits != nil && p.in.Limits.Room(k.Case) != lease.Now || !own && !p.lacks(tenant, pool) {
		return
	}
	for _, h := range p.best(k.Case) {
		x := &p.hosts[h]
		if own && k.Binds != lease.Unbound && f.Hand.Marks[x.item].Stoppable { // its tenant would bind more GPUs than before
			continue
		}
		if p.together(x, k.Case, tenant, pool, own) && p.pair(x, k) {
			p.choice.Passed[i] = round.Passed{}
			p.gave(x, tenant)
			if p.in.Limits != nil {
				p.in.Limits.Take(k.Case, true)
			}
			return
		}
	}
}

// How much two jobs do at the same time on a GPU, as a multiple of one alone: at least, to be put together there by what is known of their types, and
// before anything is known, so that they are tried.
const (
	leastTogether = 1.2
	untried       = 1.25
)

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
	switch own, other, known := f.Market.Beside(i, h.item, f.In.Pools[h.pool]); {
	case !known:
		return untried
	case min(own, other) < 0.5:
		return 1 // they would take turns
	default:
		return own + other
	}
}

// await lets jobs that are granted a GPU start with half of it, for jobs that have to leave theirs now: these can join when they wait.
func (p *slicer) await(own bool) {
	f := p.x.f
	for _, i := range p.leaves {
		t, pool := int(f.Due.Queued[i].Queue), f.In.Pool(f.Hand.Leases[i].Pool)
		if !own && !p.lacks(t, pool) {
			continue
		}
		for h := range p.hosts {
			if x := &p.hosts[h]; !x.lone && p.together(x, i, t, pool, own) && p.halve(x) {
				p.gave(x, t)
				break
			}
		}
	}
}

// together reports whether a job of a tenant may be put onto the GPU of a host: of its own tenant, or else of one that holds more than it is due.
func (p *slicer) together(h *sliceHost, i, tenant, pool int, own bool) bool {
	f := p.x.f
	t := int(f.Due.Queued[h.item].Queue)
	return !h.full && h.pool == pool && (t == tenant) == own && (own || h.lone || p.spares(t, pool)) &&
		(f.In.Settings.Across != cluster.SameUser || f.In.Records[h.item].User == f.In.Records[i].User) && p.does(h, i) >= leastTogether
}

// gave counts half of a host's GPU for a tenant. The host has the other half.
func (p *slicer) gave(h *sliceHost, tenant int) {
	pools := len(p.x.f.In.Pools)
	if !h.lone {
		p.holds[int(p.x.f.Due.Queued[h.item].Queue)*pools+h.pool] -= p.x.f.In.Worths().Of(h.pool) / 2
	}
	p.holds[tenant*pools+h.pool] += p.x.f.In.Worths().Of(h.pool) / 2
	h.full = true
}

// spares reports whether a tenant still holds what it is due without half of a GPU, and lacks whether it holds less.
func (p *slicer) spares(t, pool int) bool {
	return p.holds[t*len(p.x.f.In.Pools)+pool]-p.x.f.In.Worths().Of(pool)/2 >= p.in.Tenants[t].Shares[pool].Entitlement
}

func (p *slicer) lacks(t, pool int) bool {
	return p.holds[t*len(p.x.f.In.Pools)+pool] < p.in.Tenants[t].Shares[pool].Entitlement
}

// pair gives a candidate half of the GPU of a host, and the host the other half.
func (p *slicer) pair(h *sliceHost, k *lease.Candidate) bool {
	f := p.x.f
	l := f.Hand.Leases[h.item]
	was := *l
	if !h.lone && !p.halve(h) {
		return false
	}
	end := f.Stops.EndFor(k.Case, f.In.Now)
	other, ok := p.fit(h, k.Case, end)
	if !ok {
		if !h.lone {
			place.Release(p.board, l.Nodes, f.In.SlicesWith(h.item))
			*l, f.Hand.Marks[h.item].Slice = was, nil
			p.board.Hold(l.Nodes, f.In.Sharer(h.item))
		}
		return false
	}
	p.board.Take(other)
	f.Grant(k.Case, f.In.Pools[h.pool], other.Nodes, end)
	p.mark(h, k.Case)
	return true
}

// halve leaves a host half of its GPU.
func (p *slicer) halve(h *sliceHost) bool {
	f := p.x.f
	l, board := f.Hand.Leases[h.item], p.full()
	place.Release(board, l.Nodes, f.In.Sharer(h.item))
	half, ok := p.fit(h, h.item, l.End)
	if !ok {
		board.Hold(l.Nodes, f.In.Sharer(h.item))
		return false
	}
	board.Take(half)
	l.Nodes, l.Size = half.Nodes, f.In.Settings.Counted(half.Nodes)
	p.mark(h, h.item)
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

// fit finds half of a GPU for a job on the node of a host.
func (p *slicer) fit(h *sliceHost, i int, end cluster.Instant) (place.Placement, bool) {
	spec := p.x.f.Spec(i)
	spec.Request = cluster.SliceOf(spec.Request, h.node.Shards/2, cluster.WholeGPU/2)
	if len(spec.Require) > 0 && !slices.Contains(spec.Require, h.node.Name) {
		return place.Placement{}, false
	}
	spec.Require, spec.Others = []string{h.node.Name}, false
	return p.full().Fit(place.Ask{Shape: p.x.f.Site.Shape(spec), Pool: h.pool, Now: p.x.f.In.Now, End: end, Displace: place.Nobodys, Sharer: p.x.f.In.SlicesWith(i), Stops: true, Max: -1})
}

// mark notes that a job starts with half of a GPU.
func (p *slicer) mark(h *sliceHost, i int) {
	f := p.x.f
	j := &f.In.Snapshot.Cases[i].Job
	f.Hand.Marks[i].Slice = &cluster.Slice{Ask: j.Ask, Request: j.Request, Shards: h.node.Shards / 2, At: f.In.Now}
}
