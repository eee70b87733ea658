package forecast

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/tickets"
)

// Jobs that take turns go on at the part of their pace that package tickets gives them: two equal ones at half, three at a third. They have equal parts of
// their GPU's shards, and count in accounts by their turns. As in package share, a job that has found no GPU is put to one of its tenant that has just
// started, or to those on a GPU with room after turns; then to one of a tenant that holds more than it is due, if its own holds less.

// sharing is how GPUs are shared.
type sharing struct {
	cells  bool  // tenants have virtual clusters, whose GPUs others borrow while they are idle
	unit   int32 // units of a GPU; 1 where jobs have and want whole ones only
	slices int32 // so many jobs may take turns on a GPU; 0 = none do
	across bool  // with jobs of other tenants, too
	rule   *tickets.Rule
	last   map[device]int32 // by GPU: the last of the jobs that take turns on it
}

// device is a GPU.
type device struct {
	node string
	at   int
}

func sharingOf(snap *cluster.Snapshot) sharing {
	set := &snap.Settings
	out := sharing{cells: snap.Cells != nil, unit: unitOf(snap), across: !set.Divides() && set.Across == cluster.AnyUser, rule: tickets.RuleOf(set, snap.Tenants), last: map[device]int32{}}
	if set.Slices != nil && snap.Cells == nil {
		out.slices = int32(set.Slices.Most())
	}
	return out
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
	if x := snap.Settings.Slices; parts && x != nil && x.Most() > 2 {
		out = 6 // halves, and thirds
	}
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
	if s.sharing.slices == 0 || !cluster.TakesTurns(j, r) || c.Control != cluster.FullControl {
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

// pair notes with which of the jobs before it a job takes turns: the jobs of a GPU are in a ring.
func pair(s *site, j *job, holds []cluster.Holding) {
	for i := range holds {
		for _, at := range holds[i].Index {
			of := device{holds[i].Node, at}
			if mate, ok := s.sharing.last[of]; ok {
				o := &s.jobs[mate]
				if j.mate, o.mate = o.mate, int32(len(s.jobs)); j.mate < 0 {
					j.mate = mate
				}
			}
			s.sharing.last[of] = int32(len(s.jobs))
		}
	}
}

// ring gives the jobs that take turns on the GPU of a job, it first.
func ring(r *run, l *life) []*life {
	out := []*life{l}
	for at := l.mate; at >= 0 && at != l.id; at = r.lives[at].mate {
		out = append(out, r.lives[at])
	}
	return out
}

// paceOf gives how fast a job is on the GPUs that it holds.
func paceOf(r *run, l *life) float64 {
	pace := max(l.on(r.nodes[l.holds[0].node].pool), 0.001)
	if l.mate >= 0 {
		pace *= timeOf(r, ring(r, l))
	}
	return pace
}

// timeOf gives the part of the time that the first of some jobs on a GPU has there.
func timeOf(r *run, all []*life) float64 {
	jobs := make([]tickets.Job, len(all))
	for k, l := range all {
		if jobs[k].User = l.user; l.tenant >= 0 {
			jobs[k].Tenant = r.tenants[l.tenant].name
		}
	}
	if times := r.sharing.rule.Times(jobs); times != nil {
		return times[0].Float()
	}
	return 1 / float64(len(all))
}

// counts gives the units for which a job counts in accounts while it runs: its part of the GPU's time, if it takes turns.
func (l *life) counts() float64 { return float64(l.gpus) + l.turn }

// countTurns sets what a job in turns counts more than its part of the GPU: if turns are not equal, jobs divide the parts that all of them have. Parts of
// units are exact, so that accounts add up.
func countTurns(r *run, l *life) {
	l.turn = 0
	if l.mate < 0 {
		return
	}
	all, sum := ring(r, l), int32(0)
	for _, o := range all {
		sum += o.gpus
	}
	if time := timeOf(r, all); time != 1/float64(len(all)) {
		l.turn = math.Round((time*float64(sum)-float64(l.gpus))*1024) / 1024
	}
}

// recount is countTurns for a job whose tenant's account has it.
func recount(r *run, l *life) {
	before := l.turn
	countTurns(r, l)
	if l.tenant >= 0 {
		r.account(l.tenant, r.nodes[l.holds[0].node].pool).holds += l.turn - before
	}
}

// part ends the turns of a job that has left its GPU.
func part(r *run, l *life) {
	if l.mate >= 0 {
		all := ring(r, l)
		before := all[len(all)-1]
		if before.mate = l.mate; len(all) == 2 {
			before.mate = -1
		}
		for _, o := range all[1:] {
			recount(r, o)
			repace(r, o)
		}
	}
	l.mate, l.half, l.gpus, l.turn = -1, false, l.job.gpus, 0
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
			if !l.half {
				continue
			}
			if n := int32(len(ring(r, l))); l.gpus < r.sharing.unit/n && r.free[l.holds[0].node] >= r.sharing.unit/n-l.gpus {
				resize(r, l, r.sharing.unit/n)
				for _, o := range ring(r, l) {
					recount(r, o)
				}
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
			if len(l.holds) != 1 || l.half && first(r, l) != l || !l.half && (l.gpus != r.sharing.unit || l.start != r.now) {
				continue
			}
			n := &r.nodes[l.holds[0].node]
			if n.shared && int32(len(ring(r, l))) < r.sharing.slices && !slices.ContainsFunc(ring(r, l), func(o *life) bool { return r.shapes[o.shape].turns>>n.pool&1 == 0 }) && whole(r, l) {
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
			n, theirs := &r.nodes[h.holds[0].node], r.account(h.tenant, pool).holds-float64(r.sharing.unit-r.sharing.unit/r.sharing.slices)
			others := slices.ContainsFunc(ring(r, h), func(o *life) bool { return o.tenant != tenant })
			return n.pool == pool && r.usable(h.holds[0].node, r.shapes[guest.shape].groups) && others != own && (own || h.half || theirs >= r.tenants[h.tenant].shares[pool].entitled)
		})
		if at < 0 {
			break
		}
		host := hosts[at]
		all := ring(r, host)
		part := r.sharing.unit / int32(len(all)+1)
		if len(all)+1 == int(r.sharing.slices) {
			hosts = slices.Delete(hosts, at, at+1)
		}
		for _, o := range all {
			resize(r, o, part)
		}
		guest.half, guest.gpus = true, part
		if guest.mate = host.mate; guest.mate < 0 {
			guest.mate = host.id
		}
		host.half, host.mate = true, guest.id
		r.start(guest, []hold{{host.holds[0].node, part}})
		for _, o := range ring(r, host) {
			recount(r, o)
		}
		for _, o := range all {
			repace(r, o)
		}
	}
	return hosts
}

// first gives the one of the jobs on a GPU that stands for all of them.
func first(r *run, l *life) *life {
	return slices.MinFunc(ring(r, l), func(a, b *life) int { return cmp.Compare(a.id, b.id) })
}

// whole reports whether the jobs on a GPU hold all of it.
func whole(r *run, l *life) bool {
	sum := int32(0)
	for _, o := range ring(r, l) {
		sum += o.gpus
	}
	return sum == r.sharing.unit
}

// separate moves jobs from GPUs that they share to idle ones at a boundary, as package share does: if nobody waits for these, and the move costs less
// than all on the GPU lose by it in a term, and less than the one that moves loses until its end.
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
			all := ring(r, l)
			own, soon := loses(r, all, all[:1])
			for _, o := range all[1:] {
				on := ring(r, o)
				_, gains := loses(r, on, slices.DeleteFunc(slices.Clone(on), func(x *life) bool { return x == l }))
				soon += gains
			}
			if c := cost(l); c >= own || c >= soon {
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

// loses gives the time that the first of jobs in turns loses until its end, and in the coming term: more than among fewer.
func loses(r *run, jobs, fewer []*life) (all, soon cluster.Span) {
	time := timeOf(r, jobs)
	rest := cluster.Span(float64(jobs[0].left) * time / jobs[0].speed) // speed is that in turns
	part := func(of cluster.Span) cluster.Span { return cluster.Span(float64(of) * (timeOf(r, fewer) - time)) }
	return part(rest), part(min(rest, r.set.Term))
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
