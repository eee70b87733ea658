package forecast

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Jobs that take turns have half of a GPU each, and go on at half of their pace. As in package share, a job that has found no GPU is put to one of its
// tenant that has just started, or that is alone on its GPU after turns; then to one of a tenant that holds more than it is due, if its own holds less.

// sharing is how GPUs are shared.
type sharing struct {
	cells  bool             // tenants have virtual clusters, whose GPUs others borrow while they are idle
	unit   int32            // units of a GPU; 1 where jobs have and want whole ones only
	slices bool             // jobs may take turns on GPUs
	across bool             // with jobs of other tenants, too
	pairs  map[device]int32 // by GPU: the first of the jobs that take turns on it
}

// device is a GPU.
type device struct {
	node string
	at   int
}

func sharingOf(snap *cluster.Snapshot) sharing {
	set := &snap.Settings
	return sharing{cells: snap.Cells != nil, unit: unitOf(snap), slices: set.Slices != nil && snap.Cells == nil,
		across: !set.Divides() && set.Across == cluster.AnyUser, pairs: map[device]int32{}}
}

// mostUnits is the largest number of units of a GPU: nodes are found by their free units.
const mostUnits = 64

// unitOf gives into how many units a GPU is divided, so that each part that nodes have is some of them.
func unitOf(snap *cluster.Snapshot) int32 {
	parts := false
	for i := range snap.Cases {
		j := &snap.Cases[i].Job
		parts = parts || snap.Settings.Slices != nil && j.Hints != nil && j.Hints.Share
		parts = parts || !j.Request.Size.IsWhole() || !cluster.SizeHeld(j.Holds).IsWhole()
	}
	out := 1
	for i := range snap.Nodes {
		if n := snap.Nodes[i].Shards; parts && n > 0 {
			for step := out; out%n != 0; { // the least common multiple
				out += step
			}
		}
	}
	return int32(min(out, mostUnits))
}

// units gives a size in units, rounded up.
func (x *sharing) units(size cluster.Size) int32 {
	return int32((size.Amount()*cluster.MicroGPU(x.unit) + cluster.WholeGPU - 1) / cluster.WholeGPU)
}

// of gives GPUs in units.
func (x *sharing) of(m cluster.MicroGPU) float64 {
	return float64(m) / float64(cluster.WholeGPU) * float64(x.unit)
}

// turnsOf gives the pools in which a job may take turns, as package share does.
func turnsOf(s *site, c *cluster.Case, r *cluster.Record, snap *cluster.Snapshot) (pools uint64) {
	j := &c.Job
	if !s.sharing.slices || j.Hints == nil || !j.Hints.Share || j.Ask == "" || !j.Batch || j.Het != 0 || c.Control != cluster.FullControl || r.Failed > 0 && r.SlurmSaid != cluster.RequeuedAtStart {
		return 0
	}
	if o, _ := s.orders.Of(r); o != nil {
		return 0
	}
	for p, model := range s.pools {
		if s.set.Slices.Fits(j, model, snap.Sizes, snap.Memory) {
			pools |= 1 << p
		}
	}
	return pools
}

// pair notes with which of the jobs before it a job takes turns.
func pair(s *site, j *job, holds []cluster.Holding) {
	for i := range holds {
		for _, at := range holds[i].Index {
			of := device{holds[i].Node, at}
			if mate, ok := s.sharing.pairs[of]; ok && s.jobs[mate].mate < 0 {
				j.mate, s.jobs[mate].mate = mate, int32(len(s.jobs))
			}
			s.sharing.pairs[of] = int32(len(s.jobs))
		}
	}
}

// paceOf gives how fast a job is on the GPUs that it holds.
func paceOf(r *run, l *life) float64 {
	pace := max(l.on(r.nodes[l.holds[0].node].pool), 0.001)
	if l.mate >= 0 {
		pace /= 2
	}
	return pace
}

// part ends the turns of a job that has left its GPU.
func part(r *run, l *life) {
	if l.mate >= 0 {
		mate := r.lives[l.mate]
		mate.mate = -1
		repace(r, mate)
	}
	l.mate, l.half, l.gpus = -1, false, l.job.gpus
}

// repace has a running job go on as fast as it is now.
func repace(r *run, l *life) {
	ran := r.now.Sub(l.since)
	worked := max(ran-l.lag, 0)
	l.left = max(l.left-cluster.Span(float64(worked)*l.speed), 0)
	l.lag, l.worked, l.since = max(l.lag-ran, 0), l.worked+worked, r.now
	l.speed, l.version = paceOf(r, l), l.version+1
	r.ends.push(ending{r.now.Add(l.lag + cluster.Span(float64(l.left)/l.speed)), l.id, l.version})
}

// resize changes the part of a GPU that a running job holds.
func resize(r *run, l *life, gpus int32) {
	h, by := &l.holds[0], gpus-l.gpus
	r.fill(h.node, -by)
	a := r.account(l.tenant, r.nodes[h.node].pool)
	a.holds += float64(by)
	if l.first {
		a.firsts += by
	}
	h.gpus, l.gpus = gpus, gpus
}

// alone has jobs whose partners have left keep their GPUs from others.
func alone(r *run) {
	for t := range r.clocks {
		for _, id := range r.clocks[t].running {
			l := r.lives[id]
			if l.half && l.mate < 0 && l.gpus < r.sharing.unit && r.free[l.holds[0].node] >= r.sharing.unit-l.gpus {
				resize(r, l, r.sharing.unit)
			}
		}
	}
}

// together puts waiting jobs onto the GPUs of others.
func together(r *run) {
	var hosts []*life
	for t := range r.clocks {
		for _, id := range r.clocks[t].running {
			l := r.lives[id]
			if len(l.holds) != 1 || l.mate >= 0 || l.gpus != r.sharing.unit || !l.half && l.start != r.now {
				continue
			}
			if n := &r.nodes[l.holds[0].node]; n.halve && r.shapes[l.shape].turns>>n.pool&1 != 0 {
				hosts = append(hosts, l)
			}
		}
	}
	for _, own := range []bool{true, false} {
		if !own && !r.sharing.across {
			break
		}
		for t := range r.tenants {
			for p := range r.pools {
				hosts = beside(r, hosts, int32(t), int32(p), own)
			}
		}
	}
}

// beside puts waiting jobs of a tenant to hosts in a pool, its own or those of others. It returns the hosts that are left.
func beside(r *run, hosts []*life, tenant, pool int32, own bool) []*life {
	a, due := r.account(tenant, pool), r.tenants[tenant].shares[pool].entitled
	for own || a.holds < due {
		guest := guestOf(r, tenant, pool)
		if guest == nil {
			break
		}
		at := slices.IndexFunc(hosts, func(h *life) bool {
			n, theirs := &r.nodes[h.holds[0].node], r.account(h.tenant, pool).holds-float64(r.sharing.unit)/2
			return n.pool == pool && r.usable(h.holds[0].node, r.shapes[guest.shape].groups) && (h.tenant == tenant) == own && (own || h.half || theirs >= r.tenants[h.tenant].shares[pool].entitled)
		})
		if at < 0 {
			break
		}
		host := hosts[at]
		hosts = slices.Delete(hosts, at, at+1)
		resize(r, host, r.sharing.unit/2)
		guest.half, guest.mate, guest.gpus = true, host.id, r.sharing.unit/2
		r.start(guest, []hold{{host.holds[0].node, guest.gpus}})
		host.half, host.mate = true, guest.id
		repace(r, host)
	}
	return hosts
}

// separate moves jobs from GPUs that they share to idle ones at a boundary, as package share does: if nobody waits for these, and the move costs less
// than both lose beside each other in a term, and less than the one that moves loses until its end.
func separate(r *run) {
	if r.set.CompactPercent == 0 || r.set.Divides() {
		return
	}
	for p := range r.pools {
		if r.idle[p] < r.sharing.unit || awaited(r, int32(p)) {
			continue
		}
		var list []*life
		for t := range r.clocks {
			for _, id := range r.clocks[t].running {
				if l := r.lives[id]; l.mate >= 0 && int(r.nodes[l.holds[0].node].pool) == p && r.now.Sub(l.start) >= r.set.MinLease && r.mayStop(l, r.now) {
					list = append(list, l)
				}
			}
		}
		cost := func(l *life) cluster.Span { a := l.attempt(); return a.Cost(r.now, r.set.Notice) }
		slices.SortStableFunc(list, func(a, b *life) int { return cmp.Compare(cost(a), cost(b)) })
		for _, l := range list {
			if l.mate < 0 { // the other one moved
				continue
			}
			own, soon := loses(r, l)
			_, others := loses(r, r.lives[l.mate])
			if c := cost(l); c >= own || c >= soon+others {
				continue
			}
			if holds := r.find(int32(p), l, nobody); holds != nil {
				r.halt(l)
				r.start(l, holds)
			}
		}
	}
}

// awaited reports whether a job waits that could use GPUs of a pool.
func awaited(r *run, pool int32) bool {
	for t := range r.clocks {
		for _, line := range r.clocks[t].lines {
			if line.jobs > 0 && r.serves(&r.shapes[line.shape], pool) && r.fits(line.quota) {
				return true
			}
		}
	}
	return false
}

// loses gives the time that a job loses by turns until its end, and in the coming term.
func loses(r *run, l *life) (all, soon cluster.Span) {
	rest := cluster.Span(float64(l.left) / (2 * l.speed)) // speed is that in turns
	return rest / 2, min(rest, r.set.Term) / 2
}

// guestOf gives the first waiting job of a tenant that may take turns in a pool; nil = none.
func guestOf(r *run, tenant, pool int32) (best *life) {
	var turn turnKey
	for _, line := range r.clocks[tenant].lines {
		if line.jobs == 0 || r.shapes[line.shape].turns>>pool&1 == 0 || !r.fits(line.quota) {
			continue
		}
		if !line.settled {
			r.refresh(line)
		}
		l := r.lives[line.turns[0].id]
		if t := r.turnOf(l); best == nil || compareTurns(t, turn) < 0 {
			best, turn = l, t
		}
	}
	return best
}
