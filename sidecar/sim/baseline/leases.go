package baseline

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// Dismiss ends the lease of a displaced job: first the notice, then the requeue.
func (r *Round) Dismiss(j *Job) {
	if j.Lease.State == cluster.Active {
		r.Field.Notify(j.Case, max(j.Lease.End, r.Now.Add(r.Settings.Notice)))
	}
	if j.Lease.End <= r.Now {
		r.Field.Reclaim(j.Case)
	}
}

// Term gives the end of a term that begins at t. Each lease has its own end, as in Themis and in
// ASTRAEA's evaluation; ends are rounded up to the notice, to limit their number. With
// Options.Grid all end together as the product's do.
func (r *Round) Term(t cluster.Instant) cluster.Instant {
	if r.Grid {
		return lease.Next(t, r.Settings)
	}
	step := cluster.Instant(max(r.Settings.Notice, r.Settings.Interval, 1))
	return (t.Add(r.Settings.Term) + step - 1) / step * step
}

// UpForRenewal marks the jobs whose lease ends within the notice.
func (r *Round) UpForRenewal() {
	for k := range r.Jobs {
		if j := &r.Jobs[k]; j.Lease != nil && j.Runs {
			ends := j.Lease.End.Sub(r.Now) <= r.Settings.Notice && (j.Lease.State == cluster.Active || j.Lease.State == cluster.Noticed)
			if ends && !j.Movable {
				r.Field.Renew(j.Case, r.Term(max(j.Lease.End, r.Now)))
			}
			j.Soft = ends && j.Movable
		}
	}
}

// Contenders gives the waiting jobs and those that may lose their lease, in order of arrival.
func (r *Round) Contenders() []int {
	r.Line = r.Line[:0]
	for k := range r.Jobs {
		if j := &r.Jobs[k]; j.Soft || j.Lease == nil {
			r.Line = append(r.Line, k)
		}
	}
	return r.Line
}

// Contest gives the jobs of a line their turns, best first. A job with an ending lease keeps its
// GPUs for the next term, unless an earlier one has displaced it. A waiting job takes idle GPUs,
// else those of the last jobs in the line. A job that does not fit is skipped. The line must
// contain all ending leases.
func (r *Round) Contest(line []int) {
	r.Hold()
	r.Board.Await(len(r.Snapshot.Cases))
	for rank, k := range line {
		if j := &r.Jobs[k]; j.Lease != nil {
			r.Board.Soften(j.Case, j.Tenant, rank, max(j.Lease.End, r.Now), r.Holds(j), 0)
		}
	}
	for _, k := range line {
		switch j := &r.Jobs[k]; {
		case j.Lease == nil:
			r.Displace(j, r.Term(r.Now), nil)
		case r.Board.Renew(j.Case):
			r.Field.Renew(j.Case, r.Term(max(j.Lease.End, r.Now)))
		default:
			r.Dismiss(j)
		}
	}
}

// Displace gives a waiting job GPUs like start: idle ones, else those of leases that are not
// renewed.
func (r *Round) Displace(j *Job, end cluster.Instant, may func(pool int) bool) int {
	if p := r.Start(j, end, may); p >= 0 {
		return p
	}
	var best place.Placement
	pool := -1
	for _, p := range j.Pools {
		if may != nil && !may(p) {
			continue
		}
		found, ok := r.Board.Fit(place.Ask{Shape: j.Shape, Pool: p, Now: r.Now, End: end, Displace: place.Anybodys, Max: -1})
		if ok && (pool < 0 || found.At < best.At) {
			best, pool = found, p
		}
	}
	if pool >= 0 {
		r.Take(j, best, end)
	}
	return pool
}

// Alloc gives the GPU time that a job has received.
func (r *Round) Alloc(j *Job) cluster.GPUTime { return r.Field.In.Records[j.Case].Alloc }
