package lease

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Candidate is a job that could hold a lease in the next term: a waiting job, or a job whose lease ends at
// the coming boundary.
type Candidate struct {
	Case   int // index into the snapshot's cases
	Key    cluster.JobKey
	Tenant int
	Pools  []int // that could serve it; for a running job its own first, then those to which it may move
	Shape  int
	GPUs   cluster.MicroGPU // in devices
	Worths cluster.PoolWorths

	Better []Better // of Pools, where a move would pay
	Due    []int    // of Pools, where its party is behind by at least half of the lease's cost
	Idle   []int    // of Pools, where it has no part of its tenant's share and takes only idle GPUs

	Running  bool
	IdleOnly bool // it takes only idle GPUs: it asks for that, or its last grants did not start
	Keeping
	Ends     Ahead
	Priority Priority
}

// Ahead is how a candidate's new lease ends.
type Ahead struct {
	By   cluster.Instant // of a waiting job: the time by which its new lease can be ended; Unending = not before the job ends
	Next cluster.Instant // of a running job: the end of the term after the present one, if its lease is renewed
	Cost cluster.Span    // of the end of an unbound new lease, for each GPU; 0 = nothing, or its job ends soon
}

// Keeping is how a candidate holds what it gets.
type Keeping struct {
	Binds  Binding
	Barred bool // it runs on GPUs that are gathered for a gang, and must not bind them
	Loose  bool // Slurm may start it in any of its pools
}

// Binding says whether a candidate's next lease can be ended.
type Binding uint8

// The bindings of a lease.
const (
	Unbound    Binding = iota // it can be ended
	BindsShort                // it cannot, and its job ends soon (Settings.BindHorizon)
	BindsLong                 // it cannot
)

// Priority decides a candidate's turn within its tenant.
type Priority struct {
	Urgent   bool  // by QOS or boosted
	Resting  bool  // it runs, and is renewed only if nobody else wants its GPUs: all have been idle for long, or it opened its gate itself
	Unserved bool  // no lease so far
	New      bool  // unserved, and the settings put such jobs first
	UserSide int8  // at its turn its user is behind (1) or ahead (-1) by at least half a term of it
	User     int32 // its user's account; -1 = none
	Level    int32 // in its virtual cluster, at most MaxLevel: a higher one goes first
	Rho      cluster.Rho
	Aged     cluster.Rho     // replaces Rho if New is removed
	Owed     cluster.GPUTime // its entitlement less what it received
	First    cluster.Instant // when it became eligible
}

// Unending is the end of a lease that binds its GPUs. No claim relies on it.
const Unending cluster.Instant = math.MaxInt64

// In returns what the candidate's GPUs count in a pool.
func (k *Candidate) In(pool int) cluster.MicroGPU { return k.Worths.In(pool, k.GPUs) }

// Counts returns what they count in the first of its pools, where the pool that it gets is not known yet.
func (k *Candidate) Counts() cluster.MicroGPU {
	if len(k.Pools) == 0 {
		return k.GPUs
	}
	return k.In(k.Pools[0])
}

// idles reports whether a candidate takes only idle GPUs in a pool.
func (k *Candidate) idles(pool int) bool { return len(k.Idle) > 0 && slices.Contains(k.Idle, pool) }

// Better is a pool in which a running job would get more done, including the cost of the move. In its own pool it would on its fewest nodes.
type Better struct {
	Pool int
	Near bool         // under as few switches as these need
	Gain cluster.Span // in the coming term, as time at its present speed
}

// Gain returns by how much more a job gets done in a time if it moves to GPUs on which it is so many times as fast, as time at its present speed:
// (faster - 1) · time - cost; 0 = no more. All moves for a job's own speed go by it.
func Gain(faster, time float64, cost cluster.Span) cluster.Span {
	return max(cluster.Span((faster-1)*time)-cost, 0)
}

// starves reports whether a job never had a lease, or is owed at least four terms. Its tenant may be ahead
// and hold its whole share, on nodes that are never free together.
func (k *Candidate) starves(term cluster.Span) bool {
	return k.Priority.Unserved || k.Priority.Owed >= 4*k.Counts().Over(term)
}

// Sorter orders candidates, and keeps its memory for the next ones.
type Sorter struct{ line, late []turn }

// Order sorts a tenant's candidates, given by their indices, as in Algorithm 2 and §5.2.1. Urgent jobs come
// first, then new ones (at most newGPUs of them, but at least one job), then the smallest rho. A tie
// goes to the running job, then to the job that has waited longest. New jobs beyond newGPUs are ordered by
// Aged like the rest.
func (s *Sorter) Order(cs []Candidate, jobs []int, newGPUs cluster.MicroGPU) {
	line := s.line[:0]
	for _, i := range jobs {
		line = append(line, turnOf(&cs[i], i))
	}
	s.line = line
	s.late = sortNearly(line, s.late)
	used, over := cluster.MicroGPU(0), false
	for at := range line {
		k := &cs[line[at].candidate]
		if !k.Priority.New {
			continue
		}
		if used > 0 && used+k.Counts() > newGPUs {
			k.Priority.New, k.Priority.Rho, over = false, k.Priority.Aged, true
			line[at] = turnOf(k, line[at].candidate)
		}
		used += k.Counts()
	}
	if over {
		s.late = sortNearly(line, s.late)
	}
	for at := range line {
		jobs[at] = line[at].candidate
	}
}

// turn is the sort key of a candidate within its tenant, small enough to sort fast.
type turn struct {
	rho       cluster.Rho
	first     cluster.Instant
	key       cluster.JobKey
	candidate int
	class     int32 // urgent ones first, then those of a higher level, then new ones
	waits     int8  // 0 = it runs
}

// MaxLevel bounds the level of a candidate in both directions.
const MaxLevel = 1_000_000

func turnOf(k *Candidate, candidate int) turn {
	return turn{class: class(k) + int32(last(k.Priority.New)), rho: k.Priority.Rho, waits: last(k.Running),
		first: k.Priority.First, key: k.Key, candidate: candidate}
}

// class ranks a candidate by urgency and level: those of a smaller class go first.
func class(k *Candidate) int32 { return int32(last(k.Priority.Urgent))*8*MaxLevel - 2*k.Priority.Level }

// last returns 0 for jobs that go first, 1 for the rest.
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

// sortNearly sorts turns that are mostly in order, as they are if they come in the order of the last round. It sorts those that are not,
// and merges them into the rest. It returns its memory, which may be that of an earlier call.
func sortNearly(line, memory []turn) []turn {
	kept, late := line[:0], memory[:0]
	for _, x := range line {
		switch n := len(kept); {
		case n == 0 || kept[n-1].compare(x) < 0:
			kept = append(kept, x)
		case n > 1 && kept[n-2].compare(x) < 0: // the last one came too early
			late, kept[n-1] = append(late, kept[n-1]), x
		default:
			late = append(late, x)
		}
	}
	memory = late
	slices.SortFunc(late, turn.compare)
	for i, at := len(kept), len(line); len(late) > 0; at-- {
		if n := len(late) - 1; i == 0 || kept[i-1].compare(late[n]) < 0 {
			line[at-1], late = late[n], late[:n]
		} else {
			i--
			line[at-1] = kept[i]
		}
	}
	return memory
}

// queue is the candidates of one tenant in one pool, in their order.
type queue struct {
	tenant, pool int
	jobs         []int // indices of candidates
	at           int
	movers       []int // running ones of other pools
	idlers       []int // those that take only idle GPUs
	running      int   // running ones from at on
	deferred     []int
	boost, spent bool
	behind       cluster.Span
	lacks        cluster.GPUTime // of its floor
	owed         float64         // GPU time of its share that others received, as time at its entitlement
	entitled     cluster.MicroGPU
	holds        cluster.MicroGPU // GPUs that the tenant holds in this pool
}

// holding reports whether the queue still has running jobs to decide.
func (q *queue) holding() bool { return q.running > 0 }

// queues is a heap with the tenant furthest behind first. Running jobs count as further behind by threshold,
// so that a waiting job must be further behind by that much to take their GPUs.
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

// leads reports whether the first queue's waiting jobs come before all others in their pool, even without the
// bonus of its running jobs. They may then displace leases of other tenants.
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

// before reports whether queue a is served before queue b.
func (h *queues) before(a, b *queue) bool {
	if a.boost != b.boost {
		return a.boost
	}
	if a.spent != b.spent {
		return b.spent
	}
	if x, y := h.key(a), h.key(b); x != y {
		return x > y
	}
	if a.holding() != b.holding() {
		return a.holding()
	}
	if a.owed != b.owed { // behind says no more from credit.cap on
		return a.owed > b.owed
	}
	if a.tenant != b.tenant {
		return a.tenant < b.tenant
	}
	return a.pool < b.pool
}

// sink restores the heap order after the queue at i has changed.
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

// pop removes and returns the first queue of the heap.
func (h *queues) pop() *queue {
	first, n := h.all[0], len(h.all)-1
	h.all[0] = h.all[n]
	h.all = h.all[:n]
	h.sink(0)
	return first
}
