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
	b        *round.Books
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
	f.b = b
	f.refused.open(causes, b.In.Tenants)
	s := b.In.Snapshot
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
	if site := place.Resurvey(old.site, b.In.Pools, s.Nodes, same, s.Reservations, s.Now, len(s.Claims) > 0); site != old.site {
		*old = surveyed{site: site, possible: newProber(site, b.In.Pools, s.Now, place.View{})}
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
	if !slices.ContainsFunc(b.In.Snapshot.Reservations, func(r cluster.Reservation) bool { return len(r.Parts) > 0 }) {
		return
	}
	for i := range b.Jobs {
		if j := &b.In.Snapshot.Cases[i].Job; j.Reservation != "" && b.Jobs[i].Is.Live && !b.Jobs[i].Is.Waits {
			place.Occupy(site, j.Reservation, j.Holds)
		}
	}
}

// Active lists the jobs of every tenant that run or could run now. It records for each job where it could
// run, or the reason why it cannot.
func (f *Nodes) Active() [][]ltgf.Claimant {
	possible, open := f.possible, f.possible
	if place.Reserved(f.Site) {
		open = newProber(f.Site, f.b.In.Pools, f.b.In.Now, place.View{Reserved: true})
	}
	f.alone = f.b.In.Snapshot.Cells != nil
	f.rules.Count(f.b, func(i int) bool { return !f.alone && f.b.Expiring(i) })
	f.waiting = f.waiting[:0]
	for len(f.claims) < len(f.b.In.Tenants) {
		f.claims = append(f.claims, nil)
	}
	f.claims = f.claims[:len(f.b.In.Tenants)]
	for t := range f.claims {
		f.claims[t] = f.claims[t][:0]
	}
	for i := range f.b.Jobs {
		st := &f.b.Jobs[i]
		if !st.Is.Runs {
			if st.Is.Live {
				f.waiting = append(f.waiting, i)
			}
			f.judgeWaiting(i, possible, open)
			if len(f.refused.causes) > 0 {
				f.refused.see(f, i)
			}
			continue
		}
		if st.Can.Pools = f.shapes.held(f.b, i); st.Is.Tenant >= 0 && len(st.Can.Pools) > 0 {
			f.claim(i, st.Is.Held)
		}
		if len(f.refused.causes) > 0 {
			f.refused.seeRunning(f, i)
		}
		if f.b.In.Settings.Divide != "" && len(st.Can.Pools) > 0 {
			st.Can.Shape = f.shapes.of(f.b, i, f.Site, f.site)
			st.Can.May = f.fitting(i, st.Can.Pools[0], possible.Pools(st.Can.Shape, f.b.In.Snapshot.Cases[i].Job.Request.Model))
		}
	}
	f.refused.thin(f)
	f.holdBack(f.b.Leases)
	for _, i := range f.waiting {
		st := &f.b.Jobs[i]
		st.Can.May = st.Can.Pools
		if st.Is.Tenant < 0 || len(st.Can.Pools) == 0 || st.Can.Probes != round.NoProbe || !st.Can.Eligible && st.Can.Why != cluster.ReasonCompleting && st.Can.Why != cluster.ReasonStarting {
			continue
		}
		if !st.Can.Eligible || f.rules.Wants(&f.b.In.Snapshot.Cases[i].Job) { // else the limits leave its tenant less: it may have its turn, but is due no more
			f.claim(i, st.Is.GPUs)
		}
	}
	return f.claims
}

// claim adds a case to the claimants of its tenant.
func (f *Nodes) claim(i, gpus int) {
	st := &f.b.Jobs[i]
	f.claims[st.Is.Tenant] = append(f.claims[st.Is.Tenant], ltgf.Claimant{Case: i, GPUs: gpus, Weight: Weight(f.b, i), Pools: st.Can.Pools})
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
	c, r := &f.b.In.Snapshot.Cases[i], &f.b.Records[i]
	st, j := &f.b.Jobs[i], &c.Job
	switch l := f.b.Leases[i]; {
	case !st.Is.Live:
		st.Can.Why, st.Can.Note = cluster.ReasonDone, j.Outcome
	case c.Control == cluster.Unmanaged:
		st.Can.Why, st.Can.Note = cluster.ReasonUntouched, c.ControlWhy
	case j.State == cluster.Completing || f.b.In.Now < Settled(j):
		st.Can.Why = cluster.ReasonCompleting
		st.Can.Shape = f.shapes.of(f.b, i, f.Site, f.site)
		st.Can.Pools = possible.Pools(st.Can.Shape, j.Request.Model)
		st.Is.GPUs = possible.counts(st, j)
	case l != nil && l.State == cluster.Granted:
		st.Can.Why, st.Can.Until = cluster.ReasonStarting, l.Granted.Add(f.b.In.Settings.GrantTimeout)
		if st.Can.Pools = f.b.In.PoolOf(l); j.State == cluster.Configuring {
			st.Is.GPUs, st.Can.Until = l.GPUs, 0
		}
		if j.Request.Exclusive {
			st.Is.GPUs = l.GPUs
		}
	case j.Inactive != "":
		st.Can.Why, st.Can.Note = cluster.ReasonInactive, j.Inactive
	case r.UserBegin > f.b.In.Now:
		st.Can.Why, st.Can.Note, st.Can.Until = cluster.ReasonInactive, "begin", r.UserBegin
	case r.AvoidUntil > f.b.In.Now:
		st.Can.Why, st.Can.Note, st.Can.Until = cluster.ReasonFailed, r.SlurmSaid, r.AvoidUntil
	case st.Ordered(cluster.Freeze):
		st.Can.Why, st.Can.Note = cluster.ReasonFrozen, st.Is.Order.Reason
	default:
		if st.Can.Gate, st.Can.Note = f.rules.Of(j); st.Can.Note != "" {
			st.Can.Why = cluster.ReasonRule
			return
		}
		if f.b.In.Now >= r.AvoidUntil.Add(f.b.In.Settings.Term) {
			r.AvoidNodes = nil // no other node took it for a term: a failure tells nothing for good
		}
		st.Can.Shape = f.shapes.of(f.b, i, f.Site, f.site)
		st.Can.Pools = possible.Pools(st.Can.Shape, j.Request.Model)
		if len(st.Can.Pools) == 0 && len(r.AvoidNodes) > 0 {
			r.AvoidNodes = nil // nowhere else to go: try the same nodes again
			st.Can.Shape = f.shapes.of(f.b, i, f.Site, f.site)
			st.Can.Pools = possible.Pools(st.Can.Shape, j.Request.Model)
		}
		if len(st.Can.Pools) == 0 {
			st.Can.Why, st.Is.GPUs, st.Can.Note = cluster.ReasonTooBig, 0, place.Unknown(f.Site, r.UserNodes)
			return
		}
		st.Is.GPUs = possible.counts(st, j)
		if open != possible {
			st.Can.Pools = open.Pools(st.Can.Shape, j.Request.Model)
		}
		if len(st.Can.Pools) == 0 {
			st.Can.Why, st.Can.Note = cluster.ReasonReserved, f.reservationsAhead()
			return
		}
		st.Can.Pools = f.fitting(i, -1, st.Can.Pools)
		st.Can.Eligible = true
		if f.alone && f.rules.Limits() {
			f.rules.Take(i, true)
		}
		if r.First == 0 {
			r.First = f.b.In.Now
		}
	}
}

// reservationsAhead names the reservations that keep jobs off nodes.
func (f *Nodes) reservationsAhead() string {
	var names []string
	for i := range f.b.In.Snapshot.Reservations {
		if r := &f.b.In.Snapshot.Reservations[i]; !r.Ours && r.End > f.b.In.Now && len(r.Nodes) > 0 {
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
