package lease

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Candidate is a job that could hold a lease in the next term: one that waits,
// or one whose lease ends at the coming boundary.
type Candidate struct {
	Case   int // index into the snapshot's cases
	Key    cluster.JobKey
	Tenant int
	Pools  []int // that could serve it; of a running job the one it is on
	Shape  int
	GPUs   int

	Running bool

	Humble   bool // its last grants did not start: it takes idle GPUs only
	Urgent   bool // by QOS or boosted
	Unserved bool // no lease so far
	New      bool // unserved, and such jobs go first
	Rho      cluster.Rho
	Aged     cluster.Rho     // counts instead of Rho where New is taken away
	Owed     cluster.GPUTime // its due less what it received
	First    cluster.Instant // when it became eligible
}

// Order sorts a tenant's candidates, given by their indices, as Algorithm 2 and
// §5.2.1 choose among them: urgent jobs, then new ones (for at most newGPUs of
// GPUs, but always one), then by the smallest rho; a tie goes to the job that
// runs, then to the one that has waited longest. New ones beyond newGPUs are
// ordered by Aged like the rest.
func Order(cs []Candidate, jobs []int, newGPUs int) {
	sorted := func() { slices.SortFunc(jobs, func(i, j int) int { return compare(&cs[i], &cs[j]) }) }
	sorted()
	used, over := 0, false
	for _, i := range jobs {
		if !cs[i].New {
			continue
		}
		if used > 0 && used+cs[i].GPUs > newGPUs {
			cs[i].New, cs[i].Rho, over = false, cs[i].Aged, true
		}
		used += cs[i].GPUs
	}
	if over {
		sorted()
	}
}

func compare(a, b *Candidate) int {
	switch {
	case a.Urgent != b.Urgent:
		return first(a.Urgent)
	case a.New != b.New:
		return first(a.New)
	case a.Rho != b.Rho:
		return cmp.Compare(a.Rho, b.Rho)
	case a.Running != b.Running:
		return first(a.Running)
	case a.First != b.First:
		return cmp.Compare(a.First, b.First)
	}
	return cmp.Compare(a.Key, b.Key)
}

func first(a bool) int {
	if a {
		return -1
	}
	return 1
}

// queue is the candidates of one tenant in one pool, in their order.
type queue struct {
	tenant, pool int
	jobs         []int // indices of candidates
	at           int
	running      int // running ones from at on
	deferred     []int
	boost        bool
	behind       cluster.Span
	entitled     cluster.MicroGPU
	holds        int // GPUs that the tenant holds in this pool
	index        int // in the heap
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

func (h *queues) Len() int { return len(h.all) }
func (h *queues) Less(i, j int) bool {
	a, b := h.all[i], h.all[j]
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
func (h *queues) Swap(i, j int) {
	h.all[i], h.all[j] = h.all[j], h.all[i]
	h.all[i].index, h.all[j].index = i, j
}
func (h *queues) Push(x any) {
	q := x.(*queue)
	q.index = len(h.all)
	h.all = append(h.all, q)
}
func (h *queues) Pop() any {
	q := h.all[len(h.all)-1]
	h.all = h.all[:len(h.all)-1]
	return q
}

var _ heap.Interface = (*queues)(nil)
