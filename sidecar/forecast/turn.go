package forecast

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// turnRoom is memory that turns use again.
type turnRoom struct {
	mover  int32 // tenant of the job that is placed
	queues []queue
	heap   []*queue
	soft   []int32
	holds  []hold
	found  []found
	gives  []bool
	seen   []int32 // by node
	inUse  []int64
	turns  []turnKey
	places []place
}

// queue is a tenant in a pool, as in package lease.
type queue struct {
	tenant, pool int32
	entitled     float64
	behind       float64 // ms at its entitlement
	holds        float64 // GPUs
	running      []int32 // candidates, in their order
	at           int
	aged         float64 // GPUs of jobs that went first since they are owed much
	dead         shapeSet
	blocked      shapeSet // shapes to be tried again when no candidate is left
	later        bool     // it has reached its burst limit
}

// shapeSet is a set of shapes.
type shapeSet []uint64

func (s shapeSet) has(i int32) bool { return int(i>>6) < len(s) && s[i>>6]>>(i&63)&1 != 0 }

func (s *shapeSet) add(i int32) {
	for len(*s) <= int(i>>6) {
		*s = append(*s, 0)
	}
	(*s)[i>>6] |= 1 << (i & 63)
}

func (s shapeSet) clear() { clear(s) }

func (q *queue) holding() bool { return q.at < len(q.running) }

// turn gives GPUs to waiting jobs. At a boundary the leases that end are candidates, too.
func (r *run) turn(boundary bool) {
	r.charge()
	for t := range r.clocks {
		r.clocks[t].tick(r, int32(t))
	}
	if boundary {
		r.settle()
	}
	r.demand()
	r.open(boundary)
	if boundary {
		r.serveClaims()
	}
	r.walk(true)
	r.walk(false)
	for _, id := range r.scratch.soft {
		if l := r.lives[id]; l.candidate { // nobody took its GPUs
			room := r.fits(l.quota)
			if r.keep(l); !room {
				r.halt(l)
			}
		}
	}
	r.scratch.soft = r.scratch.soft[:0]
	if r.sharing.slices > 0 {
		alone(r)
		together(r)
		if boundary {
			separate(r)
		}
	}
	r.demand()
}

// settle writes off what all tenants lack together, and bounds how far ahead one may be, as package ltgf does.
func (r *run) settle() {
	for p := range r.pools {
		common, found := 0.0, false
		for t := range r.tenants {
			a, e := r.account(int32(t), int32(p)), r.tenants[t].shares[p].entitled
			if e > 0 && a.holds+a.waiting >= e {
				if behind := a.deficit / e; !found || behind < common {
					common, found = behind, true
				}
			}
		}
		for t := range r.tenants {
			a, e := r.account(int32(t), int32(p)), r.tenants[t].shares[p].entitled
			largest := int32(0)
			for _, id := range r.clocks[t].running {
				largest = max(largest, r.lives[id].gpus)
			}
			a.deficit = max(a.deficit-common*e, -float64(largest)*float64(r.set.Term)-e*float64(r.set.Threshold))
			a.firsts = 0
			for _, id := range r.clocks[t].running {
				r.lives[id].first = false
			}
		}
	}
}

// open fills the queues.
func (r *run) open(boundary bool) {
	x := &r.scratch
	if x.queues == nil {
		x.queues = make([]queue, len(r.tenants)*len(r.pools))
	}
	for t := range r.tenants {
		for p := range r.pools {
			q := &x.queues[t*len(r.pools)+p]
			a, s := r.account(int32(t), int32(p)), &r.tenants[t].shares[p]
			*q = queue{tenant: int32(t), pool: int32(p), entitled: s.entitled, holds: a.holds, running: q.running[:0], dead: q.dead[:0], blocked: q.blocked[:0]}
			q.behind = a.deficit - a.holds*float64(r.bound.Sub(r.now)) // unit-ms for now
			if r.sharing.cells {
				q.behind -= a.deficit // a tenant has its cells, whatever it had before
			}
		}
	}
	if r.sharing.cells {
		r.lend()
	}
	if boundary || r.sharing.cells {
		r.offer(boundary)
	}
	for i := range x.queues {
		q := &x.queues[i]
		if q.entitled > 0 {
			q.behind /= q.entitled
		} else {
			q.behind = math.Inf(-1)
		}
		if boundary || r.sharing.cells {
			r.sortRunning(q)
		}
	}
	if boundary || r.sharing.cells {
		r.lay()
	}
}

// lend marks the leases that hold GPUs beyond their tenants' cells, those that began last.
func (r *run) lend() {
	for t := range r.tenants {
		running := slices.Clone(r.clocks[t].running)
		slices.SortFunc(running, func(a, b int32) int {
			return cmp.Or(cmp.Compare(r.lives[a].start, r.lives[b].start), cmp.Compare(a, b))
		})
		for p := range r.pools {
			left := r.tenants[t].shares[p].own
			for _, id := range running {
				if l := r.lives[id]; int(r.nodes[l.holds[0].node].pool) == p {
					if l.lent = float64(l.gpus) > left+0.5; !l.lent {
						left -= float64(l.gpus)
					}
				}
			}
		}
	}
}

// offer makes the leases that end candidates, and lent ones at any time. All that stay are charged to the next boundary.
func (r *run) offer(boundary bool) {
	left := float64(r.bound.Sub(r.now))
	for t := range r.tenants {
		for _, id := range r.clocks[t].running {
			l := r.lives[id]
			q := &r.scratch.queues[t*len(r.pools)+int(r.nodes[l.holds[0].node].pool)]
			free := l.lent && !l.fixed && !l.alone && l.tenant >= 0
			if free || boundary && r.now.Sub(l.start) >= r.set.MinLease && (r.set.StopTotalMilli == 0 || r.stops[q.pool] > 0) && r.mayStop(l, r.now) {
				l.candidate = true
				use(r.inUse, r.quotas[l.quota], -1)
				q.running = append(q.running, id)
				q.holds -= l.counts()
				q.behind += l.counts() * left
			}
		}
	}
}

// turnKey is the place of a job in the order of its tenant.
type turnKey struct {
	class int
	key   float64
	first cluster.Instant
	id    int32
}

func (r *run) turnOf(l *life) turnKey {
	out := turnKey{2, r.rank(l), l.job.first, l.id}
	if r.aged(l) {
		out.class, out.key = 1, r.rho(l)
	}
	if l.urgent {
		out.class = 0
	}
	return out
}

// rho gives what a job received of what it was due.
func (r *run) rho(l *life) float64 {
	got := l.got
	if l.phase == runs {
		got += l.counts() * float64(r.now.Sub(l.start)-r.set.Threshold)
	}
	if got <= 0 {
		return 0
	}
	return got / max(got+r.owes(l), 1)
}

// aged tells whether a job is owed so much that it goes first.
func (r *run) aged(l *life) bool {
	return r.set.Patience > 0 && l.order != nil && r.isAged(r.owes(l), l.gpus)
}

func (r *run) isAged(owes float64, gpus int32) bool {
	return owes >= float64(gpus)*float64(r.set.Patience)
}

func compareTurns(a, b turnKey) int {
	return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.key, b.key), cmp.Compare(a.first, b.first), cmp.Compare(a.id, b.id))
}

// sortRunning puts the candidates of a queue in their order.
func (r *run) sortRunning(q *queue) {
	turns := r.scratch.turns[:0]
	for _, id := range q.running {
		turns = append(turns, r.turnOf(r.lives[id]))
	}
	r.scratch.turns = turns
	slices.SortFunc(turns, compareTurns)
	for i := range turns {
		q.running[i] = turns[i].id
	}
}

// place is a candidate's in the order of all.
type place struct {
	behind float64
	tenant int32
	id     int32
	at     int32 // before
}

// lay marks the GPUs of candidates, and orders these: the last are displaced first.
func (r *run) lay() {
	x := &r.scratch
	all := x.places[:0]
	for i := range x.queues {
		q := &x.queues[i]
		behind := q.behind
		for _, id := range q.running {
			all = append(all, place{behind, q.tenant, id, int32(len(all))})
			if q.entitled > 0 {
				behind -= r.lives[id].counts() * float64(r.set.Term) / q.entitled
			}
		}
	}
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.behind, a.behind), cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.at, b.at))
	})
	x.places = all
	for at := range all {
		x.soft = append(x.soft, all[at].id)
	}
	for at, p := range slices.Backward(all) {
		l := r.lives[p.id]
		for _, h := range l.holds {
			r.soften(h.node, h.gpus)
			r.undecided[h.node] = append(r.undecided[h.node], undecided{int32(at), h.gpus, l.tenant, l.id, l.lent})
		}
	}
}

// keep renews a candidate's lease.
func (r *run) keep(l *life) {
	r.decide(l)
	use(r.inUse, r.quotas[l.quota], 1)
}

// key is the place of a queue among all; the largest goes first.
func (r *run) key(q *queue) float64 {
	if q.holding() {
		return q.behind + float64(r.set.Threshold)
	}
	return q.behind
}

func (r *run) before(a, b *queue) bool {
	if x, y := r.tenants[a.tenant].boost, r.tenants[b.tenant].boost; x != y {
		return x
	}
	if x, y := r.key(a), r.key(b); x != y {
		return x > y
	}
	if a.holding() != b.holding() {
		return a.holding()
	}
	return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.pool, b.pool)) < 0
}

// leads tells whether a queue's waiting jobs come before all others in the pool.
func (r *run) leads(q *queue) bool {
	for _, o := range r.scratch.heap {
		if o != q && o.pool == q.pool && r.key(o) >= q.behind {
			return false
		}
	}
	return true
}

// walk serves the queues until no job fits. With burst it stops at the burst limit of each.
func (r *run) walk(burst bool) {
	x := &r.scratch
	x.heap = x.heap[:0]
	for i := range x.queues {
		q := &x.queues[i]
		if burst || q.later {
			if !burst {
				q.dead.clear()
			}
			q.later = false
			if q.holding() || r.any(q) {
				x.heap = append(x.heap, q)
			}
		}
	}
	for i := len(x.heap)/2 - 1; i >= 0; i-- {
		r.sink(i)
	}
	for len(x.heap) > 0 {
		q := x.heap[0]
		if !r.serve(q, burst) {
			last := len(x.heap) - 1
			x.heap[0] = x.heap[last]
			x.heap = x.heap[:last]
		}
		r.sink(0)
	}
}

func (r *run) sink(i int) {
	h := r.scratch.heap
	for {
		next := 2*i + 1
		if next >= len(h) {
			return
		}
		if next+1 < len(h) && r.before(h[next+1], h[next]) {
			next++
		}
		if !r.before(h[next], h[i]) {
			return
		}
		h[i], h[next] = h[next], h[i]
		i = next
	}
}

// any tells whether a job waits in a queue.
func (r *run) any(q *queue) bool {
	return r.account(q.tenant, q.pool).waiting > 0 || len(r.pools) > 1 || len(r.quotas) > 1
}

// first gives the first waiting job of a queue whose shape may still fit.
func (r *run) first(q *queue) (*life, turnKey) {
	var best *life
	var turn turnKey
	for _, line := range r.clocks[q.tenant].lines {
		x := &r.shapes[line.shape]
		if line.jobs == 0 || q.dead.has(line.shape) || q.blocked.has(line.shape) || !r.serves(x, q.pool) || !r.fits(line.quota) || line.gone && r.beyond(q, x.gpus) && q.entitled > 0 {
			continue
		}
		if !line.settled {
			r.refresh(line)
		}
		e := &line.turns[0]
		t := turnKey{2, e.key, e.first, e.id}
		if e.urgent {
			t.class = 0
		}
		if best == nil || compareTurns(t, turn) < 0 {
			best, turn = r.lives[e.id], t
		}
		if len(line.owed) == 0 {
			continue
		}
		e = &line.owed[0]
		if owes := r.clocks[q.tenant].of(e.gpus) - e.key; r.isAged(owes, e.gpus) && q.admits(e.gpus, r.set.NewSharePercent) {
			if t := (turnKey{1, r.rho(r.lives[e.id]), e.first, e.id}); best == nil || compareTurns(t, turn) < 0 {
				best, turn = r.lives[e.id], t
			}
		}
	}
	return best, turn
}

// mayAge tells whether a job that is owed much may go first, with those that did.
func (r *run) mayAge(q *queue, l *life) bool {
	return r.aged(l) && q.admits(l.gpus, r.set.NewSharePercent)
}

// admits tells whether one more job may go first since it is owed much.
func (q *queue) admits(gpus int32, percent int) bool {
	return q.aged == 0 || q.aged+float64(gpus) <= q.entitled*float64(percent)/100
}

// serve decides on the first job of a queue; false = there is none.
func (r *run) serve(q *queue, burst bool) bool {
	for q.holding() && !r.lives[q.running[q.at]].candidate { // displaced
		q.at++
	}
	if !q.holding() {
		q.blocked.clear()
	}
	l, turn := r.first(q)
	if q.holding() {
		k := r.lives[q.running[q.at]]
		t := r.turnOf(k)
		if t.class == 1 && !r.mayAge(q, k) {
			t.class, t.key = 2, r.rank(k)
		}
		if !r.fits(k.quota) { // another job took the room that Slurm's limits left
			q.at++
			return true
		}
		if l == nil || cmp.Or(cmp.Compare(t.class, turn.class), cmp.Compare(t.key, turn.key)) <= 0 {
			if burst && r.overBurst(q, k) {
				q.later = true
				return false
			}
			q.at++
			if t.class == 1 {
				q.aged += float64(k.gpus)
			}
			r.renew(q, k)
			return true
		}
	}
	if l == nil {
		return false
	}
	if burst && r.overBurst(q, l) {
		q.later = true
		return false
	}
	displace := int32(anybody)
	switch {
	case !burst || q.entitled == 0 || r.sharing.cells && r.beyond(q, l.gpus):
		displace = nobody
	case r.sharing.cells:
	case q.holding() && !r.leads(q):
		displace = q.tenant
	}
	if r.place(q, l, displace) {
		if turn.class == 1 {
			q.aged += float64(l.gpus)
		}
		return true
	}
	if q.holding() {
		q.blocked.add(l.shape)
		return true
	}
	if displace != nobody && r.isDue(q, l) && len(r.claims) < 32 {
		r.claims = append(r.claims, l.id)
	}
	q.dead.add(l.shape)
	return true
}

// renew renews the lease of a candidate, if it does not bind GPUs beyond its tenant's share.
func (r *run) renew(q *queue, l *life) {
	r.keep(l)
	r.pay(q, l)
}

// pay charges a lease to its queue.
func (r *run) pay(q *queue, l *life) {
	q.holds += l.counts()
	if q.entitled > 0 {
		q.behind -= l.counts() * float64(r.bound.Sub(r.now)) / q.entitled
	}
}

// overBurst tells whether a job would take its tenant above the burst limit, as lease's does.
func (r *run) overBurst(q *queue, l *life) bool {
	if q.entitled == 0 {
		return true
	}
	if r.set.BurstMaxMilli == 0 || q.holds == 0 {
		return false
	}
	most := max(q.entitled, r.tenants[q.tenant].shares[q.pool].own) * float64(r.set.BurstMaxMilli) / 1000
	if float64(l.gpus) > most {
		return q.holds > q.entitled
	}
	return q.holds+float64(l.gpus) > most
}

// beyond tells whether a job would take its tenant beyond its cells.
func (r *run) beyond(q *queue, gpus int32) bool {
	return q.holds+float64(gpus) > r.tenants[q.tenant].shares[q.pool].own+0.5
}

// isDue tells whether a gang that fits nowhere gets a claim.
func (r *run) isDue(q *queue, l *life) bool {
	if l.gpus < 2*r.sharing.unit || q.entitled == 0 {
		return false
	}
	cost := float64(l.gpus) * float64(r.set.Term) / q.entitled
	if q.behind >= cost/2 {
		return true
	}
	even := q.behind >= -float64(r.set.Term)/2
	return (even || !l.served) && r.owes(l) >= float64(l.gpus)*float64(r.set.Term)/2
}

// serveClaims serves the gangs that fitted nowhere at the last boundary.
func (r *run) serveClaims() {
	claims := r.claims
	r.claims = nil
	for _, id := range claims {
		l := r.lives[id]
		if l.phase != waits || !r.fits(l.quota) {
			continue
		}
		for p := range r.pools {
			q := &r.scratch.queues[int(l.tenant)*len(r.pools)+p]
			if r.serves(&r.shapes[l.shape], int32(p)) && (!r.sharing.cells || !r.beyond(q, l.gpus)) && r.place(q, l, anybody) {
				break
			}
		}
	}
}
