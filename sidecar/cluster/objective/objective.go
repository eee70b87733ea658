// Package objective counts how a site keeps its three objectives: jobs wait at most so long for their first lease, GPUs do not idle while jobs
// wait, and rounds are in time.
//
// An objective has a target in percent: that part of its events should be good. The events are first leases, GPU-seconds and beats of the
// daemon's clock. The rest is the error budget: with a target of 99 %, one event of a hundred may be bad.
package objective

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Name is the name of an objective.
type Name string

// The objectives.
const (
	FirstLease Name = "first_lease" // jobs, by tenant
	GPUs       Name = "gpus"        // GPU-seconds of GPUs that are well
	Rounds     Name = "rounds"      // beats of the daemon's clock
)

// Names lists the objectives.
var Names = []Name{FirstLease, GPUs, Rounds}

// Targets are the objectives of a site: percents of good events, and how long a job waits for its first lease at most.
type Targets struct {
	Percent map[Name]float64
	Within  cluster.Span
}

// Count is how many events of an objective there were, and how many of these were bad.
type Count struct {
	Objective Name
	Tenant    string // of jobs; "" = the whole site
	Total     float64
	Bad       float64
}

// Counts are counts by objective and tenant, in no order.
type Counts []Count

// Add adds events.
func (c *Counts) Add(name Name, tenant string, total, bad float64) {
	if total == 0 {
		return
	}
	k := slices.IndexFunc(*c, func(x Count) bool { return x.Objective == name && x.Tenant == tenant })
	if k < 0 {
		*c, k = append(*c, Count{Objective: name, Tenant: tenant}), len(*c)
	}
	(*c)[k].Total += total
	(*c)[k].Bad += bad
}

// Beats adds a round that took so long. Each beat of the clock within it was missed; a round that failed is bad, too.
func (c *Counts) Beats(took, interval cluster.Span, failed bool) {
	missed := float64(took / max(interval, 1))
	total := missed + 1
	if failed {
		missed = total
	}
	c.Add(Rounds, "", total, missed)
}

// Decided adds what happened between the round before a snapshot and the plan that was made of it: first leases and GPU time. within is how long a job
// waits for its first lease at most.
func (c *Counts) Decided(s *cluster.Snapshot, p *cluster.Plan, within cluster.Span) {
	if s.Ledger.At > 0 {
		c.leases(s, p, within)
		c.gpus(s, p)
	}
}

// leases counts each job once: when its first lease began in time, or else when it had waited for so long.
func (c *Counts) leases(s *cluster.Snapshot, p *cluster.Plan, within cluster.Span) {
	began := map[cluster.JobKey]cluster.Instant{}
	for i := range p.State.Leases {
		if l := &p.State.Leases[i]; !l.Adopted {
			began[l.Job] = l.Start
		}
	}
	for i := range s.Leases {
		if s.Leases[i].Start > 0 {
			delete(began, s.Leases[i].Job)
		}
	}
	for i := range s.Cases {
		x := &s.Cases[i]
		if x.Record.First == 0 || x.Record.Tenant == "" || x.Record.Alloc > 0 || x.Record.Ran > 0 {
			continue
		}
		last, start := x.Record.First.Add(within), began[x.Record.Key]
		switch {
		case start > 0 && start <= last:
			c.job(x.Record.Tenant, 0)
		case waits(x, p.At) && last > s.Ledger.At && last <= p.At, start > last && last > s.Ledger.At:
			c.job(x.Record.Tenant, 1)
		}
	}
}

// job adds a job, to those of its tenant and of the site.
func (c *Counts) job(tenant string, bad float64) {
	c.Add(FirstLease, tenant, 1, bad)
	c.Add(FirstLease, "", 1, bad)
}

// waits reports whether a job waits for a lease at a moment: not one whose user has postponed it beyond that.
func waits(x *cluster.Case, at cluster.Instant) bool {
	return x.Record.UserBegin <= at && x.Job.State == cluster.Waiting && x.Job.Inactive == "" && (x.Control == cluster.FullControl || x.Control == cluster.NoReclaim)
}

// gpus counts the time of GPUs that were well. Idle GPUs are bad where jobs waited for as many GPUs of the model, or of any. Runs that were seen late
// can make the idle time of a ledger shrink; what was counted before stays.
func (c *Counts) gpus(s *cluster.Snapshot, p *cluster.Plan) {
	wanted, anywhere := map[string]cluster.MicroGPU{}, cluster.MicroGPU(0)
	for i := range s.Cases {
		switch x := &s.Cases[i]; {
		case !waits(x, s.Ledger.At) || x.Record.First == 0 || x.Record.First > s.Ledger.At:
		case x.Job.Request.Model != "":
			wanted[x.Job.Request.Model] += x.Job.Request.Size.Amount().At(s.Settings.Worth(x.Job.Request.Model))
		default:
			anywhere += x.Job.Request.Size.Amount()
		}
	}
	span := p.At.Sub(s.Ledger.At)
	spare := anywhere.Over(span)
	var total, bad cluster.GPUTime
	for i := range p.State.Ledger.Pools {
		now := &p.State.Ledger.Pools[i]
		k := slices.IndexFunc(s.Ledger.Pools, func(o cluster.PoolAccount) bool { return o.Pool == now.Pool })
		if k < 0 {
			continue
		}
		was := &s.Ledger.Pools[k]
		idle := max(now.Idle-was.Idle, 0)
		total += now.Capacity - was.Capacity - (now.Bad - was.Bad)
		missed := min(idle, wanted[now.Pool].Over(span))
		more := min(idle-missed, spare)
		spare -= more
		bad += missed + more
	}
	c.Add(GPUs, "", float64(total)/1000, float64(bad)/1000)
}
