package baseline

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// Round is a scheduler's view of one round, and its decisions. Its lists are reused in the next.
type Round struct {
	Field    *field.Field
	rule     Rule
	Snapshot *cluster.Snapshot
	Now      cluster.Instant
	Settings *cluster.Settings
	Mixed    bool // gangs may span models: one pool of all GPUs
	Grid     bool // leases end together
	Pools    int
	Site     *place.Site
	Board    *place.Board
	later    place.Board     // buffer of keep
	Jobs     []Job           // waiting jobs and those with GPUs, in order of arrival
	Rest     []int           // cases of the others with GPUs: cleaning up, or not ours
	Line     []int           // buffer for an order of jobs, by index
	next     cluster.Instant // when time alone changes the choice; 0 = never
}

// Job is a job that waits for a lease, or has one.
type Job struct {
	Case    int // index of its case
	Lease   *cluster.Lease
	Soft    bool  // it may lose its lease in this round
	Waits   bool  // it could be granted a lease now
	Runs    bool  // it is running or suspended
	Movable bool  // it may be requeued
	Tenant  int   // -1 = none
	GPUs    int   // requested
	Shape   int   // on the site, of a waiting job
	Pools   []int // that could serve it; of a running job its own
}

// Choose implements field.Chooser.
func (r *Round) Choose(f *field.Field) field.Choice {
	r.begin(f)
	r.rule(r)
	return field.Choice{Next: r.next}
}

// begin lists the jobs. Cases are ordered by key, and keys are assigned in order of arrival.
func (r *Round) begin(f *field.Field) {
	s := f.In.Snapshot
	r.Field, r.Snapshot, r.Now, r.Settings = f, s, s.Now, &s.Settings
	r.Site, r.Pools = f.Site, len(f.In.Pools)
	if r.Mixed {
		r.Site, r.Pools = r.merged(), 1
	}
	if r.Board == nil {
		r.Board = r.Empty()
	} else {
		r.Board = r.Site.Clear(r.Board, freely)
	}
	r.Jobs, r.Rest, r.next = r.Jobs[:0], r.Rest[:0], 0
	for i := range s.Cases {
		st, can, l := &f.In.Cases[i], &f.Can[i], f.Hand.Leases[i]
		if s.Cases[i].Gone {
			continue
		}
		if waits := can.Eligible && st.Ours(cluster.FullControl); waits || l != nil && (st.Runs || l.State == cluster.Granted) {
			j := Job{Case: i, Lease: l, Waits: waits, Runs: st.Runs, Movable: st.Control == cluster.FullControl && !st.Ordered(cluster.Exempt),
				Tenant: int(st.Tenant), GPUs: can.GPUs.Devices(), Shape: can.Shape, Pools: can.Pools}
			if r.Mixed {
				r.merge(&j)
			}
			r.Jobs = append(r.Jobs, j)
		} else if st.Live && !st.Waits {
			r.Rest = append(r.Rest, i)
			r.Board.Hold(r.onSite(s.Cases[i].Job.Holds), 0)
		}
	}
}

// Empty gives an empty board.
func (r *Round) Empty() *place.Board { return r.Site.Board(freely) }

// freely is the view of a board for grants.
var freely = place.View{Busy: true, Reserved: true}

// Idle tells whether any GPU is idle.
func (r *Round) Idle() bool {
	for p := range r.Pools {
		if r.Board.Idle(p) > 0 {
			return true
		}
	}
	return false
}

// Holds gives a job's holdings, or those promised to it.
func (r *Round) Holds(j *Job) []cluster.Holding {
	if j.Lease.State == cluster.Granted {
		return r.onSite(j.Lease.Nodes)
	}
	return r.onSite(r.Snapshot.Cases[j.Case].Job.Holds)
}

// Hold puts holdings on the board that no job can lose in this round.
func (r *Round) Hold() {
	for k := range r.Jobs {
		if j := &r.Jobs[k]; j.Lease != nil && !j.Soft {
			r.Board.Hold(r.Holds(j), 0)
		}
	}
}

// Start gives a waiting job idle GPUs, consolidated, of the pools that it may use (nil = any),
// until end (0 = without end). It gives the pool; -1 = no pool has enough where it fits.
func (r *Round) Start(j *Job, end cluster.Instant, may func(pool int) bool) int {
	for _, p := range j.Pools {
		if r.Board.Idle(p) == 0 || may != nil && !may(p) {
			continue
		}
		if found, ok := r.Board.Fit(place.Ask{Shape: j.Shape, Pool: p, Now: r.Now, End: end, Max: -1}); ok {
			r.Take(j, found, end)
			return p
		}
	}
	return -1
}

// Take carries out a placement. GPUs that become free later are reserved for the job until then.
func (r *Round) Take(j *Job, found place.Placement, end cluster.Instant) {
	r.Board.Take(found)
	if found.At > r.Now {
		return
	}
	nodes := found.Nodes
	if r.Mixed {
		nodes = r.offSite(nodes)
	}
	r.Field.Grant(j.Case, nodes[0].Model, nodes, end)
	j.Lease = r.Field.Hand.Leases[j.Case]
}
