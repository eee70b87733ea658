package share

import (
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Two jobs that wait for one GPU can have half of its shards each, and use it in turn. So both go on within minutes, instead of one after the
// other in whole terms. Only jobs take part that say share=yes, that are known to need at most sliceMemory percent of the GPU's memory, since that stays
// in use, and that ask for one GPU.
//
// Sharing begins when jobs start. A job that has found no idle GPU is put to one of its tenant that is granted a GPU in this round, or that has
// half of a GPU and is alone there. A tenant that holds more GPUs than it is due takes a job of one that holds less onto its GPU.

// sliceMemory is the most of a GPU's memory, in percent, that a job that takes turns may need: two of them leave a tenth.
const sliceMemory = 45

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
		if own || !x.f.In.Settings.Divides() && x.f.In.Settings.Across == cluster.AnyUser {
			for t := range in.Tenants {
				in.Tenants[t].Each(in.Candidates, func(i, pool, _ int) { p.join(t, i, pool, own) })
			}
		}
	}
}

// slicer puts jobs onto the GPUs of others.
type slicer struct {
	x      *contest
	in     *lease.Input
	choice *lease.Choice
	hosts  []sliceHost
	holds  []cluster.MicroGPU // by tenant, then pool: GPUs of leases
	board  *place.Board       // with all leases; nil = not made yet
}

// sliceHost is a job with room for another one on its GPU.
type sliceHost struct {
	item, pool int // case, and its pool
	node       *cluster.Node
	full       bool // its GPU has found a job, or there is none for it
}

// room returns the jobs that have room for another one, and counts what tenants hold.
func (p *slicer) room() (hosts []sliceHost) {
	f := p.x.f
	behind, on := map[cluster.JobKey]bool{}, map[cluster.Device]int{}
	for i, l := range f.Hand.Leases {
		if l == nil {
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
		begins := l.State == cluster.Granted && l.Granted == f.In.Now && l.Size == cluster.Whole(1) && f.In.Cases[i].Waits
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
			hosts = append(hosts, sliceHost{item: i, pool: f.In.Pool(l.Pool), node: n})
		}
	}
	return hosts
}

// mayShare reports whether a job may take turns on a GPU of a model.
func (p *slicer) mayShare(i int, model string) bool {
	f := p.x.f
	j, r, st := &f.In.Snapshot.Cases[i].Job, &f.In.Records[i], &f.In.Cases[i]
	if j.Hints == nil || !j.Hints.Share || j.Ask == "" && r.Slice == nil || !j.Batch || j.Het != 0 || st.Control != cluster.FullControl || st.Order != nil || r.Failed > 0 {
		return false
	}
	size := int64(0)
	for _, list := range [][]cluster.GPUMemory{f.In.Snapshot.Sizes, f.In.Settings.Slices.Memory} {
		for _, m := range list {
			if m.Model == model {
				size = m.Bytes
			}
		}
	}
	need := int64(0)
	if kind, ok := cluster.TypeOf(j); ok {
		for _, u := range cluster.MemoryOf(f.In.Snapshot.Memory, kind) {
			if u.Model == model {
				need = u.Bytes
			}
		}
	}
	for _, m := range j.Hints.Memory {
		if m.Model == model {
			need = max(need, m.Bytes)
		}
	}
	return need > 0 && need <= size/100*sliceMemory
}

// join puts a candidate onto the GPU of another job in a pool: of its own tenant, or else of one that holds more than it is due.
func (p *slicer) join(tenant, i, pool int, own bool) {
	f, k := p.x.f, &p.in.Candidates[i]
	if k.Running || k.IdleOnly || k.Binds != lease.Unbound || f.Hand.Leases[k.Case] != nil || p.in.Tenants[tenant].Spent || !p.mayShare(k.Case, f.In.Pools[pool]) ||
		f.Hand.IsClaimed(k.Key) || p.in.Limits != nil && p.in.Limits.Room(k.Case) != lease.Now || !own && !p.lacks(tenant, pool) {
		return
	}
	for h := range p.hosts {
		x := &p.hosts[h]
		t := int(f.Due.Queued[x.item].Queue)
		if x.full || x.pool != pool || (t == tenant) != own || !own && !p.spares(t, pool) ||
			f.In.Settings.Across == cluster.SameUser && f.In.Records[x.item].User != f.In.Records[k.Case].User {
			continue
		}
		if p.pair(x, k) {
			p.choice.Passed[i] = round.Passed{}
			p.holds[t*len(f.In.Pools)+pool] -= cluster.WholeGPU / 2
			p.holds[tenant*len(f.In.Pools)+pool] += cluster.WholeGPU / 2
			if p.in.Limits != nil {
				p.in.Limits.Take(k.Case, true)
			}
			return
		}
	}
}

// spares reports whether a tenant still holds what it is due without half of a GPU, and lacks whether it holds less.
func (p *slicer) spares(t, pool int) bool {
	return p.holds[t*len(p.x.f.In.Pools)+pool]-cluster.WholeGPU/2 >= p.in.Tenants[t].Shares[pool].Entitlement
}

func (p *slicer) lacks(t, pool int) bool {
	return p.holds[t*len(p.x.f.In.Pools)+pool] < p.in.Tenants[t].Shares[pool].Entitlement
}

// pair gives a candidate half of the GPU of a host, and the host the other half.
func (p *slicer) pair(h *sliceHost, k *lease.Candidate) bool {
	f := p.x.f
	if p.board == nil {
		p.board = f.Fresh(nil)
		for i, l := range f.Hand.Leases {
			st := &f.In.Cases[i]
			switch {
			case !st.Live, l != nil && l.State == cluster.Ending:
			case l != nil && l.State == cluster.Granted:
				p.board.Hold(l.Nodes, f.In.Sharer(i))
			case !st.Waits:
				p.board.Hold(f.In.Snapshot.Cases[i].Job.Holds, f.In.Sharer(i))
			}
		}
		for c := range f.Hand.Claims {
			hold(f, p.board, &f.Hand.Claims[c])
		}
	}
	l := f.Hand.Leases[h.item]
	begins, whole := l.Size.IsWhole(), f.In.Sharer(h.item)
	var first place.Placement
	if begins {
		place.Release(p.board, l.Nodes, whole)
		var ok bool
		if first, ok = p.fit(h, h.item, l.End); !ok {
			p.board.Hold(l.Nodes, whole)
			return false
		}
		p.board.Take(first)
	}
	end := f.Stops.EndFor(k.Case, f.In.Now)
	second, ok := p.fit(h, k.Case, end)
	if !ok {
		if begins {
			place.Release(p.board, first.Nodes, first.Sharer)
			p.board.Hold(l.Nodes, whole)
		}
		return false
	}
	p.board.Take(second)
	if begins {
		l.Nodes, l.Size = first.Nodes, cluster.SizeHeld(first.Nodes)
		p.mark(h, h.item)
	}
	f.Grant(k.Case, f.In.Pools[h.pool], second.Nodes, end)
	p.mark(h, k.Case)
	h.full = true
	return true
}

// fit finds half of a GPU for a job on the node of a host.
func (p *slicer) fit(h *sliceHost, i int, end cluster.Instant) (place.Placement, bool) {
	spec := p.x.f.Spec(i)
	spec.Request = cluster.SliceOf(spec.Request, h.node.Shards/2, cluster.WholeGPU/2)
	if len(spec.Require) > 0 && !slices.Contains(spec.Require, h.node.Name) {
		return place.Placement{}, false
	}
	spec.Require = []string{h.node.Name}
	return p.board.Fit(place.Ask{Shape: p.x.f.Site.Shape(spec), Pool: h.pool, Now: p.x.f.In.Now, End: end, Displace: place.Nobodys, Sharer: p.x.f.In.SlicesWith(i), Stops: true, Max: -1})
}

// mark notes that a job starts with half of a GPU.
func (p *slicer) mark(h *sliceHost, i int) {
	f := p.x.f
	j := &f.In.Snapshot.Cases[i].Job
	f.Hand.Marks[i].Slice = &cluster.Slice{Ask: j.Ask, Request: j.Request, Shards: h.node.Shards / 2, At: f.In.Now}
}
