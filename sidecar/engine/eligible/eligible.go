// Package eligible finds the jobs that could be granted a lease now, and the GPU models that they can use.
package eligible

import (
	"fmt"
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
	in       *round.Facts
	found    Found
	possible *prober // on all nodes, without reservations of others
	open     *prober // with these; possible itself if there are none
	sites    [2]surveyed
	site     int // index of Site in sites
	shapes   shapes
	waiting  []int  // cases that live and do not run
	taken    []bool // slow GPUs that running jobs have
	rules    admit.Book
	alone    bool // eligible jobs must fit the limits all together: the chooser does not look at them
	refused  refused
}

// Find finds the jobs of a round that could be granted a lease now. leases are those that it began with, by case, and causes those for which
// Slurm does not start jobs, which it may change. Grants that others overtook, or that do not get their turn behind another lease, are revoked.
func (f *Nodes) Find(in *round.Facts, leases []*cluster.Lease, causes []cluster.Cause) *Found {
	f.in = in
	f.found.open(in, leases)
	f.survey(causes)
	revokeOvertaken(&f.found)
	revokeBehind(&f.found)
	f.active()
	place.Slow(f.found.Site, f.slowNodes(), f.gangs())
	f.found.Limits = f.limits()
	return &f.found
}

// slowNodes gives the slow nodes, with those of slow GPUs that no running job has: Slurm chooses the GPUs of a node, and may take these.
func (f *Nodes) slowNodes() []cluster.SlowNode {
	x := &f.in.Snapshot.NodeSpeeds
	if len(x.GPUs) == 0 {
		return x.Slow
	}
	out := slices.Clone(x.Slow)
	for k := range x.GPUs {
		if !f.taken[k] {
			out = append(out, x.GPUs[k].SlowNode)
		}
	}
	return out
}

// take notes the slow GPUs that a running job has.
func (f *Nodes) take(holds []cluster.Holding, slow []cluster.SlowGPU) {
	for i := range holds {
		h := &holds[i]
		for k := range slow {
			if g := &slow[k]; g.Node == h.Node && g.Model == h.Model && slices.Contains(h.Index, g.Index) {
				f.taken[k] = true
			}
		}
	}
}

// gangs tells, by pool, whether a job waits that needs several nodes there; nil = nothing is slow, and it makes no difference.
func (f *Nodes) gangs() []bool {
	if x := &f.in.Snapshot.NodeSpeeds; len(x.Slow)+len(x.GPUs) == 0 {
		return nil
	}
	wait := make([]bool, len(f.in.Pools))
	for _, i := range f.waiting {
		r := &f.in.Snapshot.Cases[i].Job.Request
		for _, p := range f.found.Can[i].Pools {
			wait[p] = wait[p] || r.Nodes > 1 || r.Size.Devices > f.found.Site.MostOnANode(p)
		}
	}
	return wait
}

// survey takes the nodes of a round.
func (f *Nodes) survey(causes []cluster.Cause) {
	s := f.in.Snapshot
	f.refused.open(causes, f.in.Tenants)
	f.rules.Open(s.Now, s.Admission, s.Preempted)
	f.shapes.turn(f.in)
	if f.site = 0; len(s.Claims) > 0 {
		f.site = 1
	}
	if s.NodesVersion == 0 {
		f.sites[0].nodes, f.sites[1].nodes = 0, 0
	}
	old := &f.sites[f.site]
	same := s.NodesVersion != 0 && s.NodesVersion == old.nodes
	if site := place.Resurvey(old.site, f.in.Pools, s.Nodes, same, s.Reservations, s.Now, len(s.Claims) > 0, len(s.Cases)); site != old.site {
		*old = surveyed{site: site, possible: newProber(site, f.in.Pools, place.View{})}
		if old.open = old.possible; place.Reserved(site) {
			old.open = newProber(site, f.in.Pools, place.View{Reserved: true})
		}
		for i := range s.Nodes {
			if !s.Nodes[i].MPS {
				old.shards = max(old.shards, s.Nodes[i].Shards)
			}
		}
		f.shapes.forget(f.site)
	}
	occupy(old.site, f.in)
	old.nodes = s.NodesVersion
	old.possible.at(s.Now)
	old.open.at(s.Now)
	f.found.Site, f.found.all, f.possible, f.open = old.site, old.possible, old.possible, old.open
}

// surveyed is a site with the answers about it. Claims come and go: the sites with and without are kept.
type surveyed struct {
	site     *place.Site
	possible *prober
	open     *prober // where reservations of others let jobs run; possible itself if there are none
	nodes    int64   // version of its nodes
	shards   int     // of the GPUs that have most
}

// occupy tells a site which jobs run in reservations of others.
func occupy(site *place.Site, in *round.Facts) {
	if !slices.ContainsFunc(in.Snapshot.Reservations, func(r cluster.Reservation) bool { return len(r.Parts) > 0 }) {
		return
	}
	place.Vacate(site)
	for i := range in.Cases {
		if j := &in.Snapshot.Cases[i].Job; j.Reservation != "" && in.Cases[i].Live && !in.Cases[i].Waits {
			place.Occupy(site, j.Reservation, j.Holds)
		}
	}
}

// active lists the jobs of every tenant that run or could run now. It records for each job where it could
// run, or the reason why it cannot.
func (f *Nodes) active() *Found {
	possible, open := f.possible, f.open
	f.alone = f.in.Snapshot.Cells != nil
	f.rules.Count(f.in, f.found.Leases, func(i int) bool { return !f.alone && f.in.Expiring(i, f.found.Leases[i]) })
	f.waiting = f.waiting[:0]
	slow := f.in.Snapshot.NodeSpeeds.GPUs
	f.taken = make([]bool, len(slow))
	for i := range f.in.Cases {
		st, can := &f.in.Cases[i], &f.found.Can[i]
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
		if can.Pools = f.shapes.held(f.in, i); st.Tenant >= 0 && len(can.Pools) > 0 {
			f.claim(i, st.Held)
		}
		if len(f.refused.causes) > 0 {
			f.refused.seeRunning(f, i)
		}
		if len(slow) > 0 {
			f.take(f.in.Snapshot.Cases[i].Job.Holds, slow)
		}
		if f.in.Settings.Divides() && len(can.Pools) > 0 {
			can.Shape = f.shapes.of(&f.found, i, f.site)
			can.May = f.fitting(i, can.Pools[0], possible.Pools(can.Shape, f.in.Snapshot.Cases[i].Job.Request.Model))
		}
	}
	f.refused.thin(f)
	f.holdBack(f.found.Leases)
	for _, i := range f.waiting {
		st, can := &f.in.Cases[i], &f.found.Can[i]
		can.May = can.Pools
		if st.Tenant < 0 || len(can.Pools) == 0 || can.Probes != round.NoProbe || !can.Eligible && can.Why != cluster.ReasonCompleting && can.Why != cluster.ReasonStarting {
			continue
		}
		if !can.Eligible || f.rules.Wants(&f.in.Snapshot.Cases[i].Job) { // else the limits leave its tenant less: it may have its turn, but is due no more
			f.claim(i, can.GPUs)
		}
	}
	return &f.found
}

// claim adds a case to the claimants of its tenant.
func (f *Nodes) claim(i int, gpus cluster.MicroGPU) {
	st, can := &f.in.Cases[i], &f.found.Can[i]
	f.found.Claimants[st.Tenant] = append(f.found.Claimants[st.Tenant], ltgf.Claimant{Case: i, GPUs: gpus, Worths: f.in.Worths(), Weight: Weight(f.in, i), Pools: can.Pools})
}

// limits returns the limits that a chooser must look at; nil = none.
func (f *Nodes) limits() lease.Limits {
	if f.alone || !f.rules.Limits() {
		return nil
	}
	return &f.rules
}

// judgeWaiting decides whether a job that does not run could be granted a lease now, and records the reason
// if not.
func (f *Nodes) judgeWaiting(i int, possible, open *prober) {
	c, r := &f.in.Snapshot.Cases[i], &f.in.Records[i]
	st, can, j := &f.in.Cases[i], &f.found.Can[i], &c.Job
	switch l := f.found.Leases[i]; {
	case !st.Live:
		can.Why, can.Note = cluster.ReasonDone, j.Outcome
	case c.Control == cluster.Unmanaged:
		can.Why, can.Note = cluster.ReasonUntouched, c.ControlWhy
	case j.State == cluster.Completing || f.in.Now < Settled(j):
		can.Why = cluster.ReasonCompleting
		can.Shape = f.shapes.of(&f.found, i, f.site)
		can.Pools = possible.Pools(can.Shape, j.Request.Model)
		can.GPUs = possible.counts(can, j)
	case l != nil && l.State == cluster.Granted:
		can.Why, can.Until = cluster.ReasonStarting, l.Granted.Add(f.in.Settings.GrantTimeout)
		if f.in.Settings.Divides() {
			can.Shape = f.shapes.of(&f.found, i, f.site)
		}
		if can.Pools = f.in.PoolOf(l); j.State == cluster.Configuring {
			can.GPUs, can.Until = cluster.SizeHeld(l.Nodes).Amount(), 0
		}
		if j.Request.Exclusive {
			can.GPUs = cluster.SizeHeld(l.Nodes).Amount()
		}
	case j.Inactive != "":
		can.Why, can.Note = cluster.ReasonInactive, j.Inactive
	case r.UserBegin > f.in.Now:
		can.Why, can.Note, can.Until = cluster.ReasonInactive, "begin", r.UserBegin
	case r.AvoidUntil > f.in.Now:
		can.Why, can.Note, can.Until = cluster.ReasonFailed, f.found.Said(i), r.AvoidUntil
	case st.Ordered(cluster.Freeze):
		can.Why, can.Note = cluster.ReasonFrozen, st.Order.Reason
	case !j.Request.MPS && j.Request.Shards > f.sites[f.site].shards:
		can.Why, can.Note = cluster.ReasonRule, fmt.Sprintf("it asks for %d shards of a GPU, and no GPU has more than %d", j.Request.Shards, f.sites[f.site].shards)
	default:
		if can.Gate, can.Note = f.rules.Of(j); can.Note != "" {
			can.Why = cluster.ReasonRule
			return
		}
		if f.in.Now >= r.AvoidUntil.Add(f.in.Settings.Term) {
			f.found.forgive(i) // no other node took it for a term: a failure tells nothing for good
		}
		can.Shape = f.shapes.of(&f.found, i, f.site)
		can.Pools = possible.Pools(can.Shape, j.Request.Model)
		if len(can.Pools) == 0 && len(f.found.Avoids(i)) > 0 {
			f.found.forgive(i) // nowhere else to go: try the same nodes again
			can.Shape = f.shapes.of(&f.found, i, f.site)
			can.Pools = possible.Pools(can.Shape, j.Request.Model)
		}
		if len(can.Pools) == 0 {
			can.Why, can.GPUs, can.Note = cluster.ReasonTooBig, 0, place.Unknown(f.found.Site, r.UserNodes)
			return
		}
		can.GPUs = possible.counts(can, j)
		if open != possible {
			can.Pools = open.Pools(can.Shape, j.Request.Model)
		}
		if len(can.Pools) == 0 {
			can.Why, can.Note = cluster.ReasonReserved, f.reservationsAhead()
			return
		}
		can.Pools = f.fitting(i, -1, can.Pools)
		can.Eligible = true
		if f.alone && f.rules.Limits() {
			f.rules.Take(i, true)
		}
		if can.First == 0 {
			can.First = f.in.Now
		}
	}
}

// reservationsAhead names the reservations that keep jobs off nodes.
func (f *Nodes) reservationsAhead() string {
	var names []string
	for i := range f.in.Snapshot.Reservations {
		if r := &f.in.Snapshot.Reservations[i]; !r.Ours && r.End > f.in.Now && len(r.Nodes) > 0 {
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

// Rules returns the rules of the last round, with what is in use of their limits.
func (f *Nodes) Rules() *admit.Book { return &f.rules }
