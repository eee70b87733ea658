// Package eligible finds the jobs that could be granted a lease now, and the GPU models that they can use.
package eligible

import (
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/admit"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Nodes is the nodes of the cluster, with cached answers about which jobs could run on them. It is kept from
// round to round, so that unchanged nodes are not examined again.
type Nodes struct {
	*round.Books
	Site     *place.Site
	possible *prober // on all nodes, without reservations of others
	sites    [2]surveyed
	site     int // index of Site in sites
	shapes   shapes
	waiting  []int // cases that live and do not run
	rules    admit.Book
	alone    bool              // eligible jobs must fit the limits all together: the chooser does not look at them
	claims   [][]ltgf.Claimant // by tenant
	refused  refused
}

// Survey takes the nodes of a round, and the causes for which Slurm does not start jobs, which it may change.
func (f *Nodes) Survey(b *round.Books, causes []cluster.Cause) {
	f.Books = b
	f.refused.open(causes, b.Tenants)
	s := b.Snapshot
	f.rules.Open(s.Now, s.Admission, s.Preempted)
	f.shapes.turn(b)
	if f.site = 0; len(s.Claims) > 0 {
		f.site = 1
	}
	if s.NodesVersion == 0 {
		f.sites[0].nodes, f.sites[1].nodes = 0, 0
	}
	old := &f.sites[f.site]
	same := s.NodesVersion != 0 && s.NodesVersion == old.nodes
	if site := place.Resurvey(old.site, b.Pools, s.Nodes, same, s.Reservations, s.Now, len(s.Claims) > 0); site != old.site {
		*old = surveyed{site: site, possible: newProber(site, b.Pools, s.Now, place.View{})}
		f.shapes.forget(f.site)
		occupy(site, b) // a site with reservations of others is new in every round
	}
	old.nodes = s.NodesVersion
	f.Site, f.possible = old.site, old.possible
}

// surveyed is a site with the answers about it. Claims come and go: the sites with and without are kept.
type surveyed struct {
	site     *place.Site
	possible *prober
	nodes    int64 // version of its nodes
}

// occupy tells a site which jobs run in reservations of others.
func occupy(site *place.Site, b *round.Books) {
	if !slices.ContainsFunc(b.Snapshot.Reservations, func(r cluster.Reservation) bool { return len(r.Parts) > 0 }) {
		return
	}
	for i := range b.Jobs {
		if j := &b.Snapshot.Cases[i].Job; j.Reservation != "" && b.Jobs[i].Live && !b.Jobs[i].Waits {
			place.Occupy(site, j.Reservation, j.Holds)
		}
	}
}

// Active lists the jobs of every tenant that run or could run now. It records for each job where it could
// run, or the reason why it cannot.
func (f *Nodes) Active() [][]ltgf.Claimant {
	possible, open := f.possible, f.possible
	if place.Reserved(f.Site) {
		open = newProber(f.Site, f.Pools, f.Now, place.View{Reserved: true})
	}
	f.alone = f.Snapshot.Cells != nil
	f.rules.Count(f.Books, func(i int) bool { return !f.alone && f.Expiring(i) })
	f.waiting = f.waiting[:0]
	for len(f.claims) < len(f.Tenants) {
		f.claims = append(f.claims, nil)
	}
	f.claims = f.claims[:len(f.Tenants)]
	for t := range f.claims {
		f.claims[t] = f.claims[t][:0]
	}
	for i := range f.Jobs {
		st := &f.Jobs[i]
		if !st.Runs {
			if st.Live {
				f.waiting = append(f.waiting, i)
			}
			f.judgeWaiting(i, possible, open)
			if len(f.refused.causes) > 0 {
				f.refused.see(f, i)
			}
			continue
		}
		if st.Pools = f.shapes.held(f.Books, i); st.Tenant >= 0 && len(st.Pools) > 0 {
			f.claim(i, st.Held)
		}
		if len(f.refused.causes) > 0 {
			f.refused.seeRunning(f, i)
		}
		if f.Settings.Divide != "" && len(st.Pools) > 0 {
			st.Shape = f.shapes.of(f.Books, i, f.Site, f.site)
			st.May = f.fitting(i, st.Pools[0], possible.Pools(st.Shape, f.Snapshot.Cases[i].Job.Request.Model))
		}
	}
	f.refused.thin(f)
	f.holdBack(f.Leases)
	for _, i := range f.waiting {
		st := &f.Jobs[i]
		st.May = st.Pools
		if st.Tenant < 0 || len(st.Pools) == 0 || st.Probes != round.NoProbe || !st.Eligible && st.Why != cluster.ReasonCompleting && st.Why != cluster.ReasonStarting {
			continue
		}
		if !st.Eligible || f.rules.Wants(&f.Snapshot.Cases[i].Job) { // else the limits leave its tenant less: it may have its turn, but is due no more
			f.claim(i, st.GPUs)
		}
	}
	return f.claims
}

// claim adds a case to the claimants of its tenant.
func (f *Nodes) claim(i, gpus int) {
	st := &f.Jobs[i]
	f.claims[st.Tenant] = append(f.claims[st.Tenant], ltgf.Claimant{Case: i, GPUs: gpus, Weight: Weight(f.Books, i), Pools: st.Pools})
}

// Limits returns the limits that a chooser must look at; nil = none.
func (f *Nodes) Limits() lease.Limits {
	if f.alone || !f.rules.Limits() {
		return nil
	}
	return &f.rules
}

// judgeWaiting decides whether a job that does not run could be granted a lease now, and records the reason
// if not.
func (f *Nodes) judgeWaiting(i int, possible, open *prober) {
	c, r := &f.Snapshot.Cases[i], &f.Records[i]
	st, j := &f.Jobs[i], &c.Job
	switch l := f.Leases[i]; {
	case !st.Live:
		st.Why, st.Note = cluster.ReasonDone, j.Outcome
	case c.Control == cluster.Unmanaged:
		st.Why, st.Note = cluster.ReasonUntouched, c.ControlWhy
	case j.State == cluster.Completing || f.Now < Settled(j):
		st.Why = cluster.ReasonCompleting
		st.Shape = f.shapes.of(f.Books, i, f.Site, f.site)
		st.Pools = possible.Pools(st.Shape, j.Request.Model)
		st.GPUs = possible.counts(st, j)
	case l != nil && l.State == cluster.Granted:
		st.Why, st.Until = cluster.ReasonStarting, l.Granted.Add(f.Settings.GrantTimeout)
		if st.Pools = f.PoolOf(l); j.State == cluster.Configuring {
			st.GPUs, st.Until = l.GPUs, 0
		}
		if j.Request.Exclusive {
			st.GPUs = l.GPUs
		}
	case j.Inactive != "":
		st.Why, st.Note = cluster.ReasonInactive, j.Inactive
	case r.UserBegin > f.Now:
		st.Why, st.Note, st.Until = cluster.ReasonInactive, "begin", r.UserBegin
	case r.AvoidUntil > f.Now:
		st.Why, st.Note, st.Until = cluster.ReasonFailed, r.SlurmSaid, r.AvoidUntil
	case st.Ordered(cluster.Freeze):
		st.Why, st.Note = cluster.ReasonFrozen, st.Order.Reason
	default:
		if st.Gate, st.Note = f.rules.Of(j); st.Note != "" {
			st.Why = cluster.ReasonRule
			return
		}
		if f.Now >= r.AvoidUntil.Add(f.Settings.Term) {
			r.AvoidNodes = nil // no other node took it for a term: a failure tells nothing for good
		}
		st.Shape = f.shapes.of(f.Books, i, f.Site, f.site)
		st.Pools = possible.Pools(st.Shape, j.Request.Model)
		if len(st.Pools) == 0 && len(r.AvoidNodes) > 0 {
			r.AvoidNodes = nil // nowhere else to go: try the same nodes again
			st.Shape = f.shapes.of(f.Books, i, f.Site, f.site)
			st.Pools = possible.Pools(st.Shape, j.Request.Model)
		}
		if len(st.Pools) == 0 {
			st.Why, st.GPUs, st.Note = cluster.ReasonTooBig, 0, place.Unknown(f.Site, r.UserNodes)
			return
		}
		st.GPUs = possible.counts(st, j)
		if open != possible {
			st.Pools = open.Pools(st.Shape, j.Request.Model)
		}
		if len(st.Pools) == 0 {
			st.Why, st.Note = cluster.ReasonReserved, f.reservationsAhead()
			return
		}
		st.Pools = f.fitting(i, -1, st.Pools)
		st.Eligible = true
		if f.alone && f.rules.Limits() {
			f.rules.Take(i, true)
		}
		if r.First == 0 {
			r.First = f.Now
		}
	}
}

// reservationsAhead names the reservations that keep jobs off nodes.
func (f *Nodes) reservationsAhead() string {
	var names []string
	for i := range f.Snapshot.Reservations {
		if r := &f.Snapshot.Reservations[i]; !r.Ours && r.End > f.Now && len(r.Nodes) > 0 {
			names = append(names, r.Name)
		}
	}
	return strings.Join(names, ", ")
}

// Settled returns the time from which a job may start again after a requeue; 0 = it was not requeued. slurmd
// mistakes a start in the same second for the attempt that it was just told to end ("Job credential
// revoked"). Slurm then fails the job for good.
func Settled(j *cluster.Job) cluster.Instant {
	if j.Restarts == 0 || j.State != cluster.Waiting {
		return 0
	}
	return j.Submit.Add(cluster.Second)
}

// Rules returns the rules of the round, with what is in use of their limits after Active.
func (f *Nodes) Rules() *admit.Book { return &f.rules }
