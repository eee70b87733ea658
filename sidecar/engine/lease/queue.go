package lease

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Candidate is a job that could hold a lease in the next term: one that waits,
// or one whose lease ends at the coming boundary.
type Candidate struct {
	Case   int // index into the snapshot's cases
	Key    cluster.JobKey
	Tenant int
	Pools  []int // that could serve it; of a running job the one it is on, then those to which it may move
	Shape  int
	GPUs   int

	Better []Better // of Pools, where a move would pay
	Due    []int    // of Pools, where it is its turn among its tenant's: those are far enough behind in what they have of its share
	Idle   []int    // of Pools, where its tenant's share is not for it: it takes idle GPUs only there

	End      cluster.Instant // of a waiting job: by when the lease that it would have now can be ended; Unending = not before its job ends
	Running  bool
	Binds    bool // once it has its lease we cannot end that any more
	Barred   bool // it runs on GPUs that are gathered for a gang, and must not be bound there
	IdleOnly bool // it takes idle GPUs only: it says so, or its last grants did not start
	Priority
}

// Priority is what decides on a candidate's turn among its tenant's.
type Priority struct {
	Urgent   bool // by QOS or boosted
	Unserved bool // no lease so far
	New      bool // unserved, and such jobs go first
	Rho      cluster.Rho
	Aged     cluster.Rho     // counts instead of Rho where New is taken away
	Owed     cluster.GPUTime // its due less what it received
	First    cluster.Instant // when it became eligible
}

// Unending is the end of a lease that binds its GPUs: no claim counts on it.
const Unending cluster.Instant = math.MaxInt64

// idles tells whether a candidate takes idle GPUs only in a pool.
func (k *Candidate) idles(pool int) bool { return len(k.Idle) > 0 && slices.Contains(k.Idle, pool) }

// Better is a pool in which a running job would get more done, even with the move.
type Better struct {
	Pool int
	Gain cluster.Span // in the coming term, as time where it runs
}

// starves tells whether a job has never had a lease, or is owed four terms: its tenant
// may be ahead, and hold all that it is due, on nodes that are never free together.
func (k *Candidate) starves(term cluster.Span) bool {
	return k.Unserved || k.Owed >= 4*cluster.Times(k.GPUs, term)
}

// Order sorts a tenant's candidates, given by their indices, as Algorithm 2 and
// §5.2.1 choose among them: urgent jobs, then new ones (for at most newGPUs of
// GPUs, but always one), then by the smallest rho; a tie goes to the job that
// runs, then to the one that has waited longest. New ones beyond newGPUs are
// ordered by Aged like the rest.
func Order(cs []Candidate, jobs []int, newGPUs int) {
	line := make([]turn, len(jobs))
	for at, i := range jobs {
		line[at] = turnOf(&cs[i], i)
	}
	slices.SortFunc(line, turn.compare)
	used, over := 0, false
	for at := range line {
		k := &cs[line[at].candidate]
		if !k.New {
			continue
		}
		if used > 0 && used+k.GPUs > newGPUs {
			k.New, k.Rho, over = false, k.Aged, true
			line[at] = turnOf(k, line[at].candidate)
		}
		used += k.GPUs
	}
	if over {
		slices.SortFunc(line, turn.compare)
	}
	for at := range line {
		jobs[at] = line[at].candidate
	}
}

// turn is what decides a candidate's turn within its tenant, small enough to sort.
type turn struct {
	rho       cluster.Rho
	first     cluster.Instant
	key       cluster.JobKey
	candidate int
	class     int8 // urgent and new ones first
	waits     int8 // 0 = it runs
}

func turnOf(k *Candidate, candidate int) turn {
	return turn{class: 2*last(k.Urgent) + last(k.New), rho: k.Rho, waits: last(k.Running),
		first: k.First, key: k.Key, candidate: candidate}
}

// last gives 0 for what goes first, 1 for the rest.
func last(first bool) int8 {
	if first {
		return 0
	}
	return 1
}

func (a turn) compare(b turn) int {
	switch {
	case a.class != b.class:
		return cmp.Compare(a.class, b.class)
	case a.rho != b.rho:
		return cmp.Compare(a.rho, b.rho)
	case a.waits != b.waits:
		return cmp.Compare(a.waits, b.waits)
	case a.first != b.first:
		return cmp.Compare(a.first, b.first)
	}
	return cmp.Compare(a.key, b.key)
}

// queue is the candidates of one tenant in one pool, in their order.
type queue struct {
	tenant, pool int
	jobs         []int // indices of candidates
	at           int
	movers       []int // running ones of other pools
	idlers       []int // those that take idle GPUs only
	running      int   // running ones from at on
	deferred     []int
	boost        bool
	behind       cluster.Span
	entitled     cluster.MicroGPU
	own          cluster.MicroGPU // without repayments
	holds        int              // GPUs that the tenant holds in this pool
}

// holding tells whether the queue still has running jobs to decide on.
func (q *queue) holding() bool { return q.running > 0 }

// queues is a heap: the tenant furthest behind first. Running jobs count as
// threshold further behind, so that a waiting one has to be that much further
// behind to take their GPUs.
type queues struct {
	all       []*queue
	threshold cluster.Span
}

func newQueues(all []*queue, threshold cluster.Span) *queues {
	h := &queues{all: all, threshold: threshold}
	for i := len(all)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
	return h
}

func (h *queues) key(q *queue) cluster.Span {
	if q.holding() {
		return q.behind + h.threshold
	}
	return q.behind
}

// leads tells whether the first queue's waiting jobs come before everybody else in
// their pool, also without the advantage that its running jobs have: what is
// displaced for them need not be its own then.
func (h *queues) leads(q *queue) bool {
	for _, o := range h.all {
		over := o.at >= len(o.jobs) && len(o.deferred) == 0
		if o == q || o.pool != q.pool || q.boost && !o.boost || over {
			continue
		}
		if o.boost && !q.boost || h.key(o) >= q.behind {
			return false
		}
	}
	return true
}

// before tells whether a queue is served before another.
func (h *queues) before(a, b *queue) bool {
	if a.boost != b.boost {
		return a.boost
	}
	if x, y := h.key(a), h.key(b); x != y {
		return x > y
	}
	if a.holding() != b.holding() {
		return a.holding()
	}
	if a.tenant != b.tenant {
		return a.tenant < b.tenant
	}
	return a.pool < b.pool
}

// sink puts the queue at i, which may have been served, back into the heap's order.
func (h *queues) sink(i int) {
	for {
		next := 2*i + 1
		if next >= len(h.all) {
			return
		}
		if next+1 < len(h.all) && h.before(h.all[next+1], h.all[next]) {
			next++
		}
		if !h.before(h.all[next], h.all[i]) {
			return
		}
		h.all[i], h.all[next] = h.all[next], h.all[i]
		i = next
	}
}

// pop takes the first queue off the heap.
func (h *queues) pop() *queue {
	first, n := h.all[0], len(h.all)-1
	h.all[0] = h.all[n]
	h.all = h.all[:n]
	h.sink(0)
	return first
}
