package forecast

import (
	"math"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/expect"
)

// line is the waiting jobs of a tenant that have one shape and use the same of Slurm's limits, in their order.
type line struct {
	shape int32
	quota int32
	jobs  int32 // that wait
	// settled means that no entry that comes first is stale.
	settled bool
	gone    bool           // stops have used up their budgets: they borrow no cells of other tenants
	turns   queueOf[entry] // by the settings' order
	owed    queueOf[entry] // by what they are owed
}

// entry is a waiting job in a line. It is stale if the job has another version.
type entry struct {
	urgent  bool
	key     float64
	first   cluster.Instant
	id      int32
	version int32
	gpus    int32
}

func (a entry) before(b entry) bool {
	switch {
	case a.urgent != b.urgent:
		return a.urgent
	case a.key != b.key:
		return a.key < b.key
	case a.first != b.first:
		return a.first < b.first
	}
	return a.id < b.id
}

// refresh drops the entries of a line that are stale and come first.
func (r *run) refresh(in *line) {
	for _, q := range []*queueOf[entry]{&in.turns, &in.owed} {
		for len(*q) > 0 && r.stale(&(*q)[0]) {
			q.pop()
		}
	}
	in.settled = true
}

func (r *run) stale(e *entry) bool {
	l := r.lives[e.id]
	return l.phase != waits || l.version != e.version
}

// queueOf is a heap. That of container/heap converts, and allocates, each element.
type queueOf[T ordered[T]] []T

type ordered[T any] interface{ before(other T) bool }

func (h *queueOf[T]) push(x T) {
	*h = append(*h, x)
	all, i := *h, len(*h)-1
	for up := (i - 1) / 2; i > 0 && x.before(all[up]); up = (i - 1) / 2 {
		all[i], i = all[up], up
	}
	all[i] = x
}

func (h *queueOf[T]) pop() T {
	all, last := *h, len(*h)-1
	first, x := all[0], all[last]
	all = all[:last]
	*h = all
	i := 0
	for down := 1; down < last; down = 2*i + 1 {
		if down+1 < last && all[down+1].before(all[down]) {
			down++
		}
		if !all[down].before(x) {
			break
		}
		all[i], i = all[down], down
	}
	if last > 0 {
		all[i] = x
	}
	return first
}

// rank gives the key of a job in the order of the settings, by what it has received.
func (r *run) rank(l *life) float64 {
	got := l.got
	if l.phase == runs {
		got += l.counts() * float64(r.now.Sub(l.start))
	}
	if l.order != nil {
		return float64(l.order[expect.ClassOf(cluster.GPUTime(got/float64(r.sharing.unit)))])
	}
	due := r.owes(l) + got
	switch {
	case got <= 0:
		return 0
	case due <= 0:
		return math.Inf(1)
	}
	return got / due
}

// wait puts a job into its line.
func (r *run) wait(l *life) {
	l.phase, l.version = waits, l.version+1
	c := &r.clocks[l.tenant]
	c.tick(r, l.tenant)
	attempt := l.attempt()
	gone := r.sharing.cells && attempt.Gone(r.rule)
	var in *line
	for _, x := range c.lines {
		if x.shape == l.shape && x.quota == l.quota && x.gone == gone {
			in = x
		}
	}
	if in == nil {
		in = &line{shape: l.shape, quota: l.quota, gone: gone}
		c.lines = append(c.lines, in)
	}
	e := entry{urgent: l.urgent, key: r.rank(l), first: l.job.first, id: l.id, version: l.version, gpus: l.job.gpus}
	in.turns.push(e)
	if r.set.Patience > 0 && l.order != nil {
		e.key = -l.owed
		in.owed.push(e)
	}
	if !l.served {
		c.fresh = append(c.fresh, l.id)
	}
	l.line = in
	r.count(l, 1)
}

// unwait takes a job out of its line.
func (r *run) unwait(l *life) {
	r.count(l, -1)
	l.line.settled = false
}

// count counts a waiting job, times by. demand counts those that use something of Slurm's limits.
func (r *run) count(l *life, by int32) {
	l.line.jobs += by
	if l.quota == 0 {
		a := r.account(l.tenant, r.poolOf(l.shape))
		a.waiting += float64(by * l.job.gpus)
		a.free += float64(by * l.job.gpus)
	}
}

// poolOf gives the pool in which the demand of waiting jobs of a shape counts: the first that serves it.
func (r *run) poolOf(shape int32) int32 {
	x := &r.shapes[shape]
	for p := range r.pools {
		if r.serves(x, int32(p)) {
			return int32(p)
		}
	}
	return 0
}

// serves tells whether a pool has nodes for a shape.
func (s *site) serves(x *shape, pool int32) bool { return x.groups&s.inPool[pool] != 0 }
