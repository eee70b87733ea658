package baseline

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// dismiss ends the lease of a displaced job: first the notice, then the requeue.
func (r *round) dismiss(j *job) {
	if j.lease.State == cluster.Active {
		r.f.Notify(j.at, max(j.lease.End, r.now.Add(r.set.Notice)))
	}
	if j.lease.End <= r.now {
		r.f.Reclaim(j.at)
	}
}

// term gives the end of a term that begins at t. Each lease has its own end, as in Themis and in
// ASTRAEA's evaluation; ends are rounded up to the notice, to limit their number. With
// Options.Grid all end together as the product's do.
func (r *round) term(t cluster.Instant) cluster.Instant {
	if r.grid {
		return lease.Next(t, r.set)
	}
	step := cluster.Instant(max(r.set.Notice, r.set.Interval, 1))
	return (t.Add(r.set.Term) + step - 1) / step * step
}

// upForRenewal marks the jobs whose lease ends within the notice.
func (r *round) upForRenewal() {
	for k := range r.jobs {
		if j := &r.jobs[k]; j.lease != nil && j.runs {
			ends := j.lease.End.Sub(r.now) <= r.set.Notice && (j.lease.State == cluster.Active || j.lease.State == cluster.Noticed)
			if ends && !j.movable {
				r.f.Renew(j.at, r.term(max(j.lease.End, r.now)))
			}
			j.soft = ends && j.movable
		}
	}
}

// contenders gives the waiting jobs and those that may lose their lease, in order of arrival.
func (r *round) contenders() []int {
	r.line = r.line[:0]
	for k := range r.jobs {
		if j := &r.jobs[k]; j.soft || j.lease == nil {
			r.line = append(r.line, k)
		}
	}
	return r.line
}

// contest gives the jobs of a line their turns, best first. A job with an ending lease keeps its
// GPUs for the next term, unless an earlier one has displaced it. A waiting job takes idle GPUs,
// else those of the last jobs in the line. A job that does not fit is skipped. The line must
// contain all ending leases.
func (r *round) contest(line []int) {
	r.hold()
	r.board.Await(len(r.s.Cases))
	for rank, k := range line {
		if j := &r.jobs[k]; j.lease != nil {
			r.board.Soften(j.at, j.tenant, rank, max(j.lease.End, r.now), r.holds(j))
		}
	}
	for _, k := range line {
		switch j := &r.jobs[k]; {
		case j.lease == nil:
			r.displace(j, r.term(r.now), nil)
		case r.board.Renew(j.at):
			r.f.Renew(j.at, r.term(max(j.lease.End, r.now)))
		default:
			r.dismiss(j)
		}
	}
}

// displace gives a waiting job GPUs like start: idle ones, else those of leases that are not
// renewed.
func (r *round) displace(j *job, end cluster.Instant, may func(pool int) bool) int {
	if p := r.start(j, end, may); p >= 0 {
		return p
	}
	var best place.Placement
	pool := -1
	for _, p := range j.pools {
		if may != nil && !may(p) {
			continue
		}
		found, ok := r.board.Fit(place.Ask{Shape: j.shape, Pool: p, Now: r.now, End: end, Displace: place.Anybodys, Max: -1})
		if ok && (pool < 0 || found.At < best.At) {
			best, pool = found, p
		}
	}
	if pool >= 0 {
		r.take(j, best, end)
	}
	return pool
}

// alloc gives the GPU time that a job has received.
func (r *round) alloc(j *job) cluster.GPUTime { return r.f.Books.Records[j.at].Alloc }
