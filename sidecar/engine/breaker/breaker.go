// Package breaker finds out when fairlease does harm: starts that fail, work that stops destroy, requeues by others, jobs that fail after a stop,
// and a slurmctld that answers late. Beyond the bound of a kind within an hour the breaker trips, and rounds only observe until an operator resumes.
//
// No user, and no tenant, can trip it: a job counts once an hour, and one user or tenant adds at most just over half of a bound.
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
	slow  = 3                  // slices of looks in which slurmctld must have answered late
	usual = 14 * cluster.Day   // how much of the past counts in cluster.Usual
	times = 4                  // a bound is so many times what is usual
	least = 10                 // jobs, of a bound that follows from the site
	most  = 10 * cluster.Second
)

// Site is what bounds follow from, besides the rule.
type Site struct {
	GPUs      int
	Tenants   int
	Shadow    cluster.Shadow
	Allowance cluster.Span // which a stop may cost a job
}

// Bound gives the bound of a kind; 0 = none. Jobs: 10 and one for each 20 GPUs, or four times what is usual. Lost work: a tenth of the GPU time, or
// four times what the stops could have cost that were planned while fairlease only observed. Latency: 10 seconds, or four times what is usual.
func Bound(rule *cluster.BreakerRule, kind cluster.FaultKind, u *cluster.Usual, site *Site) int64 {
	bound := rule.Of(kind)
	if !bound.Auto {
		return bound.Max
	}
	few, known := int64(least+site.GPUs/20), u.Observed >= cluster.Hour
	hourly := func(n int) int64 {
		if !known {
			return 0
		}
		return times * cluster.MulDiv(int64(n), int64(cluster.Hour), int64(u.Observed))
	}
	switch kind {
	case cluster.LostWork:
		planned := int64(site.Shadow.PerHour(site.GPUs)*site.GPUs) * int64(site.Allowance) / 100
		return max(int64(site.GPUs)*int64(cluster.Hour)/10, times*planned)
	case cluster.Latency:
		if known && u.Looks > 0 {
			return max(int64(most), times*int64(u.Took)/int64(u.Looks))
		}
		return int64(most)
	case cluster.Requeued:
		return max(few, hourly(u.Requeues))
	case cluster.BadEnds:
		return max(few, hourly(u.BadEnds))
	}
	return few
}

// Share gives how much of a bound one user, or one of several tenants, may add: two of them can pass it, and one cannot.
func Share(bound int64) int64 { return min(bound, bound/2+1) }

// Count sums up what counts of a kind, and gives the jobs. One user adds at most its share of the bound, and one tenant, where there are several.
func Count(faults []cluster.Fault, kind cluster.FaultKind, bound int64, tenants int) (sum int64, jobs []cluster.Fault) {
	users, owners := map[string]int64{}, map[string]int64{}
	for _, x := range faults {
		if x.Kind != kind || x.Observed {
			continue
		}
		n := min(x.Amount, Share(bound)-users[x.User])
		if tenants > 1 {
			n = min(n, Share(bound)-owners[x.Tenant])
		}
		if n <= 0 {
			continue
		}
		users[x.User] += n
		owners[x.Tenant] += n
		sum, jobs = sum+n, append(jobs, x)
	}
	return sum, jobs
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
	if observes {
		observe(&next.Usual, s, next.Faults, found)
	} else {
		next.Looks = looks(was.Looks, s.Now, s.Latency)
	}
	for _, x := range found {
		if bound := Bound(&s.Settings.Breaker, x.Kind, &next.Usual, site); bound > 0 {
			next.Faults = add(next.Faults, x, bound, site.Tenants)
		}
	}
	if !observes {
		next.Trip = trip(s, site, &next)
	}
	if next.Trip == nil {
		return next, ""
	}
	next.Faults, next.Looks = nil, nil
	return next, "fairlease only observes from now on: " + next.Trip.Says() + ". When the cause is found: fairlease resume"
}

// add adds a fault, unless it counts for nothing. A job counts once for each kind, and a user that is only observed once in a slice.
func add(faults []cluster.Fault, x cluster.Fault, bound int64, tenants int) []cluster.Fault {
	at := slices.IndexFunc(faults, func(o cluster.Fault) bool {
		return o.Kind == x.Kind && o.Observed == x.Observed && (o.Job == x.Job || x.Observed && o.User == x.User)
	})
	if at < 0 {
		more := append(slices.Clip(faults), x)
		before, _ := Count(faults, x.Kind, bound, tenants)
		if after, _ := Count(more, x.Kind, bound, tenants); after == before && !x.Observed {
			return faults
		}
		return more
	}
	if was := &faults[at]; x.Kind == cluster.LostWork {
		was.Amount, was.At = was.Amount+x.Amount, x.At
	}
	return faults
}

// observe adds a round to what is usual. known are faults of the last slice.
func observe(u *cluster.Usual, s *cluster.Snapshot, known, found []cluster.Fault) {
	if s.Ledger.At == 0 {
		return
	}
	span := min(max(s.Now.Sub(s.Ledger.At), 0), slice) // a longer time has passed without fairlease
	if u.Observed+span > usual {
		*u = cluster.Usual{Observed: u.Observed / 2, Requeues: u.Requeues / 2, BadEnds: u.BadEnds / 2, Looks: u.Looks / 2, Took: u.Took / 2}
	}
	u.Observed += span
	if s.Latency > 0 {
		u.Looks, u.Took = u.Looks+1, u.Took+s.Latency
	}
	known = slices.Clone(known)
	for _, x := range found {
		before := len(known)
		if known = add(known, x, 0, 0); !x.Observed || len(known) == before {
			continue
		}
		switch x.Kind {
		case cluster.Requeued:
			u.Requeues++
		case cluster.BadEnds:
			u.BadEnds++
		}
	}
}

// looks adds how long a look took to its slice, and leaves out slices that are too old; 0 = it is not known.
func looks(was []cluster.Looks, now cluster.Instant, took cluster.Span) []cluster.Looks {
	out := slices.DeleteFunc(slices.Clone(was), func(x cluster.Looks) bool { return now.Sub(x.Start) >= slow*slice })
	if took <= 0 {
		return out
	}
	if n := len(out); n == 0 || now.Sub(out[n-1].Start) >= slice {
		out = append(out, cluster.Looks{Start: now})
	}
	last := &out[len(out)-1]
	last.Looks, last.Took = last.Looks+1, last.Took+took
	return out
}

// trip gives why the breaker trips now; nil = it does not.
func trip(s *cluster.Snapshot, site *Site, b *cluster.Breaker) *cluster.Trip {
	for _, kind := range cluster.FaultKinds {
		bound := Bound(&s.Settings.Breaker, kind, &b.Usual, site)
		if bound <= 0 {
			continue
		}
		count, jobs := Count(b.Faults, kind, bound, site.Tenants)
		if count <= bound {
			continue
		}
		users := map[string]bool{}
		for _, x := range jobs {
			users[x.User] = true
		}
		return &cluster.Trip{Round: s.Round, At: s.Now, Kind: kind, Bound: bound, Count: count, Jobs: jobs[max(len(jobs)-cluster.MostTripJobs, 0):], Users: len(users)}
	}
	bound := Bound(&s.Settings.Breaker, cluster.Latency, &b.Usual, site)
	if bound <= 0 || len(b.Looks) < slow {
		return nil
	}
	fastest := int64(math.MaxInt64)
	for _, x := range b.Looks {
		fastest = min(fastest, int64(x.Took)/int64(x.Looks))
	}
	if fastest <= bound {
		return nil
	}
	return &cluster.Trip{Round: s.Round, At: s.Now, Kind: cluster.Latency, Bound: bound, Count: fastest}
}
