package cellworld

import (
	"container/heap"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
)

// Result is the result of a run.
type Result struct {
	// Waits is each job's total wait, in the order of the jobs: its completion time less its run
	// time; Never = it cannot run there.
	Waits     []cluster.Span
	Preempted int // GPUs of preempted opportunistic jobs, counted each time
	Moved     int // GPUs of opportunistic jobs that moved to become guaranteed
	Hours     []Hour
}

// Never is the wait of a job that cannot run.
const Never cluster.Span = -1

// Hour is the state at the start of an hour in which jobs arrive.
type Hour struct {
	Guaranteed, Lent int // GPUs in use
	Bound            int // GPUs in cells that are bound
	Broken, Nodes    int // nodes that cannot give all their GPUs to a guaranteed job; all nodes
}

// Run replays jobs, which must be in order of Submit. An error is about that order, or about the
// world's cells.
func Run(w World, jobs []Job) (Result, error) {
	r, err := start(w, jobs)
	if err != nil {
		return Result{}, err
	}
	r.run()
	return r.result, nil
}

// Within tells whether every job can run and the total wait is at most most.
func Within(w World, jobs []Job, most cluster.Span) (bool, error) {
	r, err := start(w, jobs)
	if err != nil {
		return false, err
	}
	for i := range jobs {
		if l := &r.lives[i]; !w.lend && !l.tenant.fits[l.shape] {
			return false, nil
		}
	}
	r.most = most
	r.run()
	return r.waited <= most, nil
}

// start makes a run.
func start(w World, jobs []Job) (*run, error) {
	s, err := cells.New(w.Cells)
	if err != nil {
		return nil, err
	}
	r := &run{world: w, state: s, jobs: jobs, lives: make([]life, len(jobs)), most: math.MaxInt64}
	return r, r.sort()
}

// run is a running simulation. Jobs and shapes have numbers.
type run struct {
	world   World
	state   *cells.State
	jobs    []Job
	lives   []life
	tenants []*tenant
	shapes  []shape
	tight   []bool // by shape: cannot be lent until GPUs become free
	ends    ends
	now     cluster.Span
	waited  cluster.Span // by ended jobs
	most    cluster.Span // maximum wait: beyond it the run stops
	result  Result
}

// life is the state of a job.
type life struct {
	tenant *tenant
	shape  int32
	key    int                // of its lease
	right  cluster.LeaseClass // "" = it does not run
	began  cluster.Span       // start of this attempt
	left   cluster.Span       // remaining run time at its start
}

// shape is the part of a job that matters for its placement.
type shape struct {
	nodes, gpus int
	model       string
	soft        bool
}

// tenant is a tenant's account.
type tenant struct {
	name, vc   string
	share      int
	used, lent int     // GPUs
	fits       []bool  // by shape: the tenant could have it guaranteed
	line       []queue // by shape: waiting jobs
	guests     []queue // by shape: opportunistic jobs, and ones that were
}

// sort numbers jobs' shapes, and finds what tenants can have guaranteed.
func (r *run) sort() error {
	tenants, shapes := map[string]*tenant{}, map[shape]int32{}
	for i := range r.jobs {
		j := &r.jobs[i]
		if i > 0 && j.Submit < r.jobs[i-1].Submit {
			return fmt.Errorf("job %d comes before the one before it", i)
		}
		key := shape{j.Nodes, j.GPUs, j.Model, j.Soft}
		k, ok := shapes[key]
		if !ok {
			k = int32(len(r.shapes))
			shapes[key], r.shapes = k, append(r.shapes, key)
		}
		t := tenants[j.Tenant]
		if t == nil {
			t = &tenant{name: j.Tenant, vc: j.Tenant, share: r.world.shares[j.Tenant]}
			if r.world.one != "" {
				t.vc = r.world.one
			}
			tenants[j.Tenant], r.tenants = t, append(r.tenants, t)
		}
		r.lives[i] = life{tenant: t, shape: k, left: j.Runs}
		r.result.Waits = append(r.result.Waits, Never)
	}
	r.tight = make([]bool, len(r.shapes))
	for _, t := range r.tenants {
		t.line, t.guests, t.fits = make([]queue, len(r.shapes)), make([]queue, len(r.shapes)), make([]bool, len(r.shapes))
		for k, s := range r.shapes {
			if _, err := r.state.Request(s.request(0, t.vc)); err == nil {
				t.fits[k] = s.nodes*s.gpus <= t.share
				r.state.Release(0)
			}
		}
	}
	return nil
}

func (s shape) request(key int, vc string) cells.Request {
	return cells.Request{Job: key, VC: vc, Model: s.model, Nodes: s.nodes, GPUs: s.gpus, Apart: s.nodes > 1, Soft: s.soft}
}

// run processes event after event.
func (r *run) run() {
	for next := 0; r.waited <= r.most && (next < len(r.jobs) || len(r.ends) > 0); {
		if next < len(r.jobs) && (len(r.ends) == 0 || r.jobs[next].Submit < r.ends[0].at) {
			r.until(r.jobs[next].Submit)
		} else {
			r.until(r.ends[0].at)
		}
		for len(r.ends) > 0 && r.ends[0].at == r.now {
			r.end(heap.Pop(&r.ends).(end))
		}
		for ; next < len(r.jobs) && r.jobs[next].Submit == r.now; next++ {
			r.wait(int32(next))
		}
		r.guarantee()
		if r.world.lend {
			r.lend()
		}
	}
}

// until advances the time, and records the state at each hour.
func (r *run) until(at cluster.Span) {
	last := r.jobs[len(r.jobs)-1].Submit
	for hour := cluster.Hour * cluster.Span(len(r.result.Hours)); !r.world.alone && hour < at && hour <= last; hour += cluster.Hour {
		var h Hour
		for _, t := range r.tenants {
			h.Guaranteed, h.Lent = h.Guaranteed+t.used, h.Lent+t.lent
		}
		for _, b := range r.state.Leases.Bound(nil) {
			for _, p := range b.Parts {
				h.Bound += bits.OnesCount64(p.GPUs)
			}
		}
		for _, f := range r.state.Cells.Fragmentation() {
			if r.world.node(f.Type) {
				h.Broken, h.Nodes = h.Broken+f.Broken, h.Nodes+f.Cells
			}
		}
		r.result.Hours = append(r.result.Hours, h)
	}
	r.now = at
}

// wait adds a job to its tenant's line.
func (r *run) wait(i int32) {
	l := &r.lives[i]
	heap.Push(&l.tenant.line[l.shape], i)
}

// end ends a job, unless it was stopped before.
func (r *run) end(e end) {
	if l := &r.lives[e.job]; l.right != "" && l.began+l.left == e.at {
		r.stop(e.job)
		wait := r.now - r.jobs[e.job].Submit - r.jobs[e.job].Runs
		r.waited += wait
		r.result.Waits[e.job] = wait
	}
}

// stop takes away a job's GPUs.
func (r *run) stop(i int32) {
	l := &r.lives[i]
	r.count(i, -1)
	r.state.Release(l.key)
	l.left -= r.now - l.began
	l.right = ""
	clear(r.tight)
}

// count adds a job's GPUs to its tenant's account, or subtracts them.
func (r *run) count(i int32, sign int) {
	l, n := &r.lives[i], sign*r.jobs[i].Nodes*r.jobs[i].GPUs
	if l.right == cluster.Guaranteed {
		l.tenant.used += n
	} else {
		l.tenant.lent += n
	}
}

// start records that a job runs. Jobs that it displaces wait again.
func (r *run) start(i int32, key int, right cluster.LeaseClass, recall []int) {
	l := &r.lives[i]
	l.key, l.right, l.began = key, right, r.now
	r.count(i, 1)
	heap.Push(&r.ends, end{r.now + l.left, i})
	for _, key := range recall {
		g := int32(key / 2)
		r.stop(g)
		r.wait(g)
		r.result.Preempted += r.jobs[g].Nodes * r.jobs[g].GPUs
	}
}

// guarantee starts the jobs whose requests are guaranteed, first come, first served.
func (r *run) guarantee() {
	open := make([][]bool, len(r.tenants))
	for k, t := range r.tenants {
		open[k] = slices.Clone(t.fits)
	}
	for {
		best, at, guest := int32(-1), 0, false
		for k, t := range r.tenants {
			if i := head(t.line, open[k]); i >= 0 && (best < 0 || i < best) {
				best, at, guest = i, k, false
			}
			if i := r.guest(t, open[k]); i >= 0 && (best < 0 || i < best) {
				best, at, guest = i, k, true
			}
		}
		if best < 0 {
			return
		}
		l, t := &r.lives[best], r.tenants[at]
		s := r.shapes[l.shape]
		fits := t.used+s.nodes*s.gpus <= t.share
		if !fits || guest && !r.promote(best) || !guest && !r.request(best) {
			open[at][l.shape] = false
		}
	}
}

// request starts a waiting job as a guaranteed one.
func (r *run) request(i int32) bool {
	l := &r.lives[i]
	g, err := r.state.Request(r.shapes[l.shape].request(guaranteed(i), l.tenant.vc))
	if err != nil {
		return false
	}
	heap.Pop(&l.tenant.line[l.shape])
	r.start(i, guaranteed(i), cluster.Guaranteed, g.Recall)
	return true
}

// A job has two keys, so that it can get a new place before it leaves the old one.
func guaranteed(i int32) int    { return 2*int(i) + 1 }
func opportunistic(i int32) int { return 2 * int(i) }

// promote makes an opportunistic job a guaranteed one.
func (r *run) promote(i int32) bool {
	l := &r.lives[i]
	s := r.shapes[l.shape]
	stays := r.world.one != "" || s.gpus == r.world.whole
	if stays && r.state.Promote(l.key, l.tenant.vc, false) {
		r.count(i, -1)
		l.right = cluster.Guaranteed
		r.count(i, 1)
		return true
	}
	g, err := r.state.Request(s.request(guaranteed(i), l.tenant.vc))
	if err != nil {
		return false
	}
	r.result.Moved += s.nodes * s.gpus
	r.stop(i)
	r.start(i, guaranteed(i), cluster.Guaranteed, slices.DeleteFunc(g.Recall, func(key int) bool { return key == opportunistic(i) }))
	return true
}

// lend gives idle GPUs to the tenant with the least lent GPUs for its share, job by job.
func (r *run) lend() {
	open := make([]bool, len(r.shapes))
	for k := range open {
		open[k] = !r.tight[k]
	}
	for {
		best := int32(-1)
		var who *tenant
		for _, t := range r.tenants {
			if i := head(t.line, open); i >= 0 && (who == nil || t.lent*max(who.share, 1) < who.lent*max(t.share, 1)) {
				best, who = i, t
			}
		}
		if best < 0 {
			return
		}
		k := r.lives[best].shape
		if _, err := r.state.Lend(r.shapes[k].request(opportunistic(best), who.name)); err != nil {
			r.tight[k], open[k] = true, false
			continue
		}
		heap.Push(&who.guests[k], heap.Pop(&who.line[k]))
		r.start(best, opportunistic(best), cluster.Opportunistic, nil)
	}
}

// guest gives the earliest opportunistic job of some shapes, or -1.
func (r *run) guest(t *tenant, shapes []bool) int32 {
	for k := range t.guests {
		for q := &t.guests[k]; len(*q) > 0 && r.lives[(*q)[0]].right != cluster.Opportunistic; {
			heap.Pop(q)
		}
	}
	return head(t.guests, shapes)
}

// head gives the earliest job of some shapes, or -1.
func head(line []queue, shapes []bool) int32 {
	best := int32(-1)
	for k, q := range line {
		if shapes[k] && len(q) > 0 && (best < 0 || q[0] < best) {
			best = q[0]
		}
	}
	return best
}

// queue is a heap of jobs with the earliest on top.
type queue []int32

func (q queue) Len() int           { return len(q) }
func (q queue) Less(a, b int) bool { return q[a] < q[b] }
func (q queue) Swap(a, b int)      { q[a], q[b] = q[b], q[a] }
func (q *queue) Push(x any)        { *q = append(*q, x.(int32)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

// end is the planned end of a job.
type end struct {
	at  cluster.Span
	job int32
}

type ends []end // a heap

func (e ends) Len() int { return len(e) }
func (e ends) Less(a, b int) bool {
	return e[a].at < e[b].at || e[a].at == e[b].at && e[a].job < e[b].job
}
func (e ends) Swap(a, b int) { e[a], e[b] = e[b], e[a] }
func (e *ends) Push(x any)   { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}
