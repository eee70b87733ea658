package baseline

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// round is a scheduler's view of one round, and its decisions. Its lists are reused in the next.
type round struct {
	f     *field.Field
	rule  rule
	s     *cluster.Snapshot
	now   cluster.Instant
	set   *cluster.Settings
	mixed bool // gangs may span models: one pool of all GPUs
	grid  bool // leases end together
	pools int
	site  *place.Site
	board *place.Board
	jobs  []job           // waiting jobs and those with GPUs, in order of arrival
	rest  []int           // cases of the others with GPUs: cleaning up, or not ours
	line  []int           // buffer for an order of jobs, by index
	next  cluster.Instant // when time alone changes the choice; 0 = never
}

// job is a job that waits for a lease, or has one.
type job struct {
	at      int // index of its case
	lease   *cluster.Lease
	soft    bool  // it may lose its lease in this round
	waits   bool  // it could be granted a lease now
	runs    bool  // it is running or suspended
	movable bool  // it may be requeued
	tenant  int   // -1 = none
	gpus    int   // requested
	shape   int   // on the site, of a waiting job
	pools   []int // that could serve it; of a running job its own
}

// Choose implements field.Chooser.
func (r *round) Choose(f *field.Field) field.Choice {
	r.begin(f)
	r.rule(r)
	return field.Choice{Next: r.next}
}

// begin lists the jobs. Cases are ordered by key, and keys are assigned in order of arrival.
func (r *round) begin(f *field.Field) {
	s := f.Books.In.Snapshot
	r.f, r.s, r.now, r.set = f, s, s.Now, &s.Settings
	r.site, r.pools = f.Site, len(f.Books.In.Pools)
	if r.mixed {
		r.site, r.pools = r.merged(), 1
	}
	if r.board == nil {
		r.board = r.empty()
	} else {
		r.board = r.site.Clear(r.board, freely)
	}
	r.jobs, r.rest, r.next = r.jobs[:0], r.rest[:0], 0
	for i := range s.Cases {
		st, l := &f.Books.Jobs[i], f.Books.Leases[i]
		if s.Cases[i].Gone {
			continue
		}
		if waits := st.Can.Eligible && st.Ours(cluster.FullControl); waits || l != nil && (st.Is.Runs || l.State == cluster.Granted) {
			j := job{at: i, lease: l, waits: waits, runs: st.Is.Runs, movable: st.Is.Control == cluster.FullControl && !st.Ordered(cluster.Exempt),
				tenant: int(st.Is.Tenant), gpus: st.Is.GPUs, shape: st.Can.Shape, pools: st.Can.Pools}
			if r.mixed {
				r.merge(&j)
			}
			r.jobs = append(r.jobs, j)
		} else if st.Is.Live && !st.Is.Waits {
			r.rest = append(r.rest, i)
			r.board.Hold(r.onSite(s.Cases[i].Job.Holds))
		}
	}
}

// empty gives an empty board.
func (r *round) empty() *place.Board { return r.site.Board(freely) }

// freely is the view of a board for grants.
var freely = place.View{Busy: true, Reserved: true}

// idle tells whether any GPU is idle.
func (r *round) idle() bool {
	for p := range r.pools {
		if r.board.Idle(p) > 0 {
			return true
		}
	}
	return false
}

// holds gives a job's holdings, or those promised to it.
func (r *round) holds(j *job) []cluster.Holding {
	if j.lease.State == cluster.Granted {
		return r.onSite(j.lease.Nodes)
	}
	return r.onSite(r.s.Cases[j.at].Job.Holds)
}

// hold puts holdings on the board that no job can lose in this round.
func (r *round) hold() {
	for k := range r.jobs {
		if j := &r.jobs[k]; j.lease != nil && !j.soft {
			r.board.Hold(r.holds(j))
		}
	}
}

// start gives a waiting job idle GPUs, consolidated, of the pools that it may use (nil = any),
// until end (0 = without end). It gives the pool; -1 = no pool has enough where it fits.
func (r *round) start(j *job, end cluster.Instant, may func(pool int) bool) int {
	for _, p := range j.pools {
		if r.board.Idle(p) == 0 || may != nil && !may(p) {
			continue
		}
		if found, ok := r.board.Fit(place.Ask{Shape: j.shape, Pool: p, Now: r.now, End: end, Max: -1}); ok {
			r.take(j, found, end)
			return p
		}
	}
	return -1
}

// take carries out a placement. GPUs that become free later are reserved for the job until then.
func (r *round) take(j *job, found place.Placement, end cluster.Instant) {
	r.board.Take(found)
	if found.At > r.now {
		return
	}
	nodes := found.Nodes
	if r.mixed {
		nodes = r.offSite(nodes)
	}
	r.f.Grant(j.at, nodes[0].Model, nodes, end)
	j.lease = r.f.Books.Leases[j.at]
}
