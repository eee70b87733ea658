// Package breaker finds out when fairlease does harm: starts that fail, work that stops destroy, requeues by others, jobs that fail after a stop,
// and looks at Slurm that take long. Beyond the bound of a kind within an hour the breaker trips, and rounds only observe until an operator resumes.
//
// No user, and no tenant, can trip it by jobs: one user or tenant adds at most just over half of a bound, and a job counts once an hour, except that
// each loss of its work counts. The latency belongs to no user: whatever slows Slurm down raises it.
package breaker

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

const (
	slice = 5 * cluster.Minute // of looks, and in which a user counts once for what is usual
	slow  = 3                  // slices in which looks must have taken long
	usual = 14 * cluster.Day   // how much of the past counts in cluster.Usual
	times = 4                  // a bound is so many times what is usual
	least = 10                 // jobs, of a bound that follows from the site
	most  = 10 * cluster.Second
	many  = 1000 // losses that are kept one by one; beyond, a user has one for each slice
)

// Site is what bounds follow from, besides the rule.
type Site struct {
	GPUs      cluster.GPUCount
	Tenants   int
	Shadow    cluster.Shadow
	Allowance cluster.Span // which a stop may cost a job
}

// Bound gives the bound of a kind; 0 = none. Jobs: 10 and one for each 20 GPUs, or four times what is usual. Lost work: a tenth of the GPU time, or
// four times what the stops could have cost that were planned while fairlease only observed. Latency: 10 seconds, or four times what is usual; none
// until an hour of looks shows what is usual.
func Bound(rule *cluster.BreakerRule, kind cluster.FaultKind, u *cluster.Usual, site *Site) int64 {
	bound := rule.Of(kind)
	if !bound.Auto {
		return bound.Max
	}
	few, known := least+int64(site.GPUs/cluster.CountOf(20)), u.Observed >= cluster.Hour
	hourly := func(n int) int64 {
		if !known {
			return 0
		}
		return times * cluster.MulDiv(int64(n), int64(cluster.Hour), int64(u.Observed))
	}
	switch kind {
	case cluster.LostWork:
		planned := int64(site.Shadow.PerHour(site.GPUs)) * int64(cluster.MicroGPU(site.GPUs).Over(site.Allowance)) / 100
		return max(int64(cluster.MicroGPU(site.GPUs).Over(cluster.Hour))/10, times*planned)
	case cluster.Latency:
		if u.Looked < cluster.Hour {
			return 0
		}
		return max(int64(most), times*int64(u.Took)/int64(max(u.Looks, 1)))
	case cluster.Requeued:
		return max(few, hourly(u.Requeues))
	case cluster.BadEnds:
		return max(few, hourly(u.BadEnds))
	}
	return few
}

// Share gives how much of a bound one user, or one of several tenants, may add: two of them can pass it, and one cannot.
func Share(bound int64) int64 { return min(bound, bound/2+1) }

// tally sums up the faults of a kind, each in constant time. One user adds at most its share of the bound, and one tenant, where there are several.
type tally struct {
	bound         int64
	tenants       int
	sum           int64
	jobs          []cluster.Fault // that count
	seen          map[cluster.JobKey]bool
	users, owners map[string]int64
}

// add counts a fault, and reports whether it counts for anything.
func (t *tally) add(x *cluster.Fault) bool {
	n := min(x.Amount, Share(t.bound)-t.users[x.User])
	if t.tenants > 1 {
		n = min(n, Share(t.bound)-t.owners[x.Tenant])
	}
	if n <= 0 || x.Kind != cluster.LostWork && t.seen[x.Job] {
		return false
	}
	t.seen[x.Job] = true
	t.users[x.User] += n
	t.owners[x.Tenant] += n
	t.sum, t.jobs = t.sum+n, append(t.jobs, *x)
	return true
}

// count adds what was found of a kind to the faults, as long as they are within the bound, and gives their tally.
func count(faults []cluster.Fault, found []cluster.Fault, kind cluster.FaultKind, bound int64, tenants int) ([]cluster.Fault, *tally) {
	t := &tally{bound: bound, tenants: tenants, seen: map[cluster.JobKey]bool{}, users: map[string]int64{}, owners: map[string]int64{}}
	type owner struct{ tenant, user string }
	last := map[owner]int{}
	for k := range faults {
		if x := &faults[k]; x.Kind == kind && !x.Observed {
			t.add(x)
			last[owner{x.Tenant, x.User}] = k
		}
	}
	for k := range found {
		x, full := &found[k], t.sum > bound
		if x.Kind != kind || x.Observed || !t.add(x) || full {
			continue
		}
		by := owner{x.Tenant, x.User}
		if at, ok := last[by]; ok && kind == cluster.LostWork && len(t.jobs) > many && x.At.Sub(faults[at].At) < slice {
			faults[at].Amount += x.Amount
			continue
		}
		last[by] = len(faults)
		faults = append(faults, *x)
	}
	return faults, t
}

// Find gives what has happened since the last round. losses are those of the round.
func Find(in *round.Facts, losses []cluster.Loss) (out []cluster.Fault) {
	for i := range in.Cases {
		c, r := &in.Snapshot.Cases[i], &in.Records[i]
		note := func(kind cluster.FaultKind) {
			out = append(out, cluster.Fault{Kind: kind, Job: r.Key, ID: r.ID, Tenant: r.Tenant, User: r.User, Amount: 1, At: in.Now, Observed: c.Control == cluster.ObserveOnly})
		}
		if r.Failed > c.Record.Failed {
			note(cluster.FailedStarts)
		}
		if requeues(r) > requeues(&c.Record) && r.Others.Cause != cluster.ByNodeFailure {
			note(cluster.Requeued)
		}
		if r.Done > 0 && c.Record.Done == 0 && failed(c.Job.Outcome) && (c.Control == cluster.ObserveOnly || stopped(r, in.Snapshot.Leases)) {
			note(cluster.BadEnds)
		}
	}
	for _, x := range losses {
		if i := in.Find(x.Job); i >= 0 && x.Time > 0 {
			r := &in.Records[i]
			out = append(out, cluster.Fault{Kind: cluster.LostWork, Job: r.Key, ID: r.ID, Tenant: r.Tenant, User: r.User, Amount: int64(x.Time), At: in.Now,
				Observed: in.Snapshot.Cases[i].Control == cluster.ObserveOnly})
		}
	}
	return out
}

// requeues counts those that fairlease did not order.
func requeues(r *cluster.Record) int {
	if r.Others == nil {
		return 0
	}
	return r.Others.Count
}

// failed reports whether a job ended badly, by Slurm's final state. Time limits and cancellations are no harm of fairlease.
func failed(outcome string) bool {
	return slices.Contains([]string{"FAILED", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED"}, outcome)
}

// stopped reports whether a job's last attempt was the first after a stop of fairlease, or was being stopped. leases are those of the last round.
func stopped(r *cluster.Record, leases []cluster.Lease) bool {
	k, ok := slices.BinarySearchFunc(leases, r.Key, func(l cluster.Lease, key cluster.JobKey) int { return cmp.Compare(l.Job, key) })
	return ok && (leases[k].State == cluster.Noticed || leases[k].State == cluster.Ending) || r.Terms > 0 && r.Restarts > requeues(r) && !r.RequeuedByOthers()
}

// Next gives the breaker after a round, and its event; "" = it has none. found is what has happened since the last round. observes says that
// fairlease acts on no job, and only observes.
func Next(s *cluster.Snapshot, site *Site, found []cluster.Fault, observes bool) (next cluster.Breaker, event string) {
	was := &s.Breaker
	next.Usual = was.Usual
	switch {
	case was.Open(&s.Resumed):
		next.Trip = was.Trip
		return next, ""
	case s.Settings.Breaker == cluster.BreakerRule{}:
		return cluster.Breaker{}, ""
	case was.Trip != nil:
		return next, fmt.Sprintf("fairlease acts again: %s resumed (%s)", s.Resumed.By, s.Resumed.Why)
	}
	next.Faults = slices.DeleteFunc(slices.Clone(was.Faults), func(x cluster.Fault) bool {
		age := s.Now.Sub(x.At)
		return age >= cluster.Hour || x.Observed && age >= slice
	})
	next.Looks = look(&next.Usual, was.Looks, s, observes)
	if observes {
		observe(&next, s, found)
	}
	for _, kind := range cluster.FaultKinds {
		bound := Bound(&s.Settings.Breaker, kind, &next.Usual, site)
		if bound <= 0 {
			continue
		}
		var t *tally
		if next.Faults, t = count(next.Faults, found, kind, bound, site.Tenants); t.sum > bound && next.Trip == nil && !observes {
			next.Trip = &cluster.Trip{Round: s.Round, At: s.Now, Kind: kind, Bound: bound, Count: t.sum, Jobs: t.jobs[max(len(t.jobs)-cluster.MostTripJobs, 0):], Users: len(t.users)}
		}
	}
	if next.Trip == nil && !observes {
		next.Trip = late(s, Bound(&s.Settings.Breaker, cluster.Latency, &next.Usual, site), next.Looks)
	}
	if next.Trip == nil {
		return next, ""
	}
	next.Faults, next.Looks = nil, nil
	return next, "fairlease only observes from now on: " + next.Trip.Says() + ". When the cause is found: fairlease resume"
}

// observe adds a round to what is usual. A user counts once in a slice for each kind.
func observe(b *cluster.Breaker, s *cluster.Snapshot, found []cluster.Fault) {
	if s.Ledger.At == 0 {
		return
	}
	u, span := &b.Usual, min(max(s.Now.Sub(s.Ledger.At), 0), slice) // a longer time has passed without fairlease
	if u.Observed+span > usual {
		u.Observed, u.Requeues, u.BadEnds = u.Observed/2, u.Requeues/2, u.BadEnds/2
	}
	u.Observed += span
	counts := map[cluster.FaultKind]*int{cluster.Requeued: &u.Requeues, cluster.BadEnds: &u.BadEnds}
	type once struct {
		kind cluster.FaultKind
		user string
	}
	seen := map[once]bool{}
	for _, x := range b.Faults {
		seen[once{x.Kind, x.User}] = seen[once{x.Kind, x.User}] || x.Observed
	}
	for _, x := range found {
		by := once{x.Kind, x.User}
		if n := counts[x.Kind]; n != nil && x.Observed && !seen[by] {
			seen[by] = true
			*n++
			b.Faults = append(b.Faults, x)
		}
	}
}

// look adds how long a look took to its slice; 0 = it is not known. Slices that are too old become part of what is usual, also while fairlease acts:
// so a site that was always slow stays within its bound. The last quarter of an hour is not part of it, or a sudden change would raise its own bound.
func look(u *cluster.Usual, was []cluster.Looks, s *cluster.Snapshot, observes bool) (out []cluster.Looks) {
	recent := slow * slice
	if observes {
		recent = slice
	}
	for _, x := range was {
		if s.Now.Sub(x.Start) < recent {
			out = append(out, x)
			continue
		}
		if u.Looked+slice > usual {
			u.Looked, u.Looks, u.Took = u.Looked/2, u.Looks/2, u.Took/2
		}
		u.Looked, u.Looks, u.Took = u.Looked+slice, u.Looks+x.Looks, u.Took+x.Took
	}
	if s.Latency <= 0 {
		return out
	}
	if n := len(out); n == 0 || s.Now.Sub(out[n-1].Start) >= slice {
		out = append(out, cluster.Looks{Start: s.Now})
	}
	last := &out[len(out)-1]
	last.Looks, last.Took = last.Looks+1, last.Took+s.Latency
	return out
}

// late gives the trip if looks took longer than the bound in each of the last slices; nil = they did not.
func late(s *cluster.Snapshot, bound int64, looks []cluster.Looks) *cluster.Trip {
	if bound <= 0 || len(looks) < slow {
		return nil
	}
	fastest := int64(math.MaxInt64)
	for _, x := range looks {
		fastest = min(fastest, int64(x.Took)/int64(x.Looks))
	}
	if fastest <= bound {
		return nil
	}
	return &cluster.Trip{Round: s.Round, At: s.Now, Kind: cluster.Latency, Bound: bound, Count: fastest}
}
