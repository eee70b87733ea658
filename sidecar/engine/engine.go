// Package engine decides. Decide receives all its inputs as a snapshot and returns all its outputs as a plan.
// It has no clock, no I/O, no log and no goroutine, and equal snapshots give equal plans, byte for byte.
//
// A round is a chain of steps. Each step is a package. It reads the results of those before it, and gives one of its own, which nobody else
// changes:
//
//	account   ltgf      GPU time received and due since the last round
//	          lease     leases in force, and grants that failed
//	          round     Facts: all that is known before anything is decided
//	see       eligible  Found: jobs that could be granted a lease now, and where
//	learn     speeds    Speeds of each job type on each GPU model
//	          slownodes nodes and GPUs that are slower than others
//	          budget    Account: how each job saves, and the budget for its stops
//	divide    entitle   Due: entitlements of tenants and parties by GPU model
//	choose    share, vc jobs that hold a lease next, and where (field.Chooser), as a Hand and a Choice
//	plan      actions   actions on the cluster, and what they change of gates
//	          why       reasons why every job runs or waits
//
// Outside the rounds, package answer computes the allocation of a policy for heterogeneous GPUs.
package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/actions"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/entitle"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/market"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/share"
	"github.com/fairlease/fairlease/sidecar/engine/slownodes"
	"github.com/fairlease/fairlease/sidecar/engine/speeds"
	"github.com/fairlease/fairlease/sidecar/engine/vc"
)

// Decide makes the plan for one round. It never fails, because bad input is rejected when the snapshot is
// built.
func Decide(s cluster.Snapshot) cluster.Plan { return new(Decider).Decide(s) }

// Decider decides round after round and makes the same plans as Decide. Between rounds it keeps memory for
// reuse, and results about unchanged nodes. It is not safe for concurrent use.
type Decider struct {
	// Brief means that the lists of a plan are valid only until the next decision. If that decision continues
	// from the plan, they are valid until the one after it. Their memory is then reused.
	Brief bool

	charges ltgf.Memory
	leases  lease.Workspace
	facts   round.Facts
	nodes   eligible.Nodes
	rates   profile.Memory
	stops   budget.Account
	due     entitle.Due
	field   field.Field
	share   share.Chooser
	cells   vc.Chooser
	actions actions.Workspace
	buffers [2]*buffer
	former  former
	last    last
}

// Decide makes the plan for one round.
func (d *Decider) Decide(s cluster.Snapshot) cluster.Plan { return d.DecideBy(s, d.chooser(&s)) }

// chooser returns the chooser that the settings ask for: virtual clusters if there are any, else fair share.
func (d *Decider) chooser(s *cluster.Snapshot) field.Chooser {
	if s.Cells == nil {
		return &d.share
	}
	d.cells.Commons, d.cells.Picks, d.cells.Brief = d.share.Contest, d.share.Picks, d.Brief
	return &d.cells
}

// DecideBy decides as Decide does, with another chooser. All choosers get the same field, and their choices
// are carried out in the same way.
func (d *Decider) DecideBy(s cluster.Snapshot, chooser field.Chooser) cluster.Plan {
	done := false
	defer func() {
		if !done { // after a panic no kept data is reliable
			*d = Decider{Brief: d.Brief}
		}
	}()
	if s.Follows = d.last.before(&s); !s.Follows {
		s.NodesVersion = 0
	}
	x := d.open(&s)
	d.field.Open(&d.facts, x.found, &d.due, &d.stops, x.market, x.ended)
	choice := field.Play(&d.field, chooser)
	p := d.plan(x, &choice)
	d.last = last{p.Round, p.State.Ledger.Pools}
	done = true
	return p
}

// last identifies the last plan: its round, and the memory of a list in it.
type last struct {
	round int64
	pools []cluster.PoolAccount
}

// before tells whether a snapshot continues from the plan.
func (l *last) before(s *cluster.Snapshot) bool {
	now := s.Ledger.Pools
	return s.Round == l.round+1 && len(now) > 0 && len(l.pools) > 0 && &now[0] == &l.pools[0]
}

// opened is the state of a round before the choice.
type opened struct {
	buffer *buffer
	ended  []cluster.Lease // leases that ended since the last round
	found  *eligible.Found
	speeds *speeds.Speeds
	market *market.Market
	nodes  cluster.NodeSpeeds
	events []cluster.Event
}

// open runs the steps before the choice.
func (d *Decider) open(s *cluster.Snapshot) opened {
	x := d.look(s)
	capacity := d.due.Open(&d.facts, x.found, x.speeds, x.buffer.ledger)
	x.buffer.ledger = d.due.Ledger
	x.market = market.Open(&d.facts, x.found, &d.due, x.speeds)
	d.due.Divide(&d.facts, x.found, x.speeds, capacity, d.cells.Own(&d.facts), d.charges.Users)
	return x
}

// look charges the time since the last round, and finds out who may hold GPUs in this one.
func (d *Decider) look(s *cluster.Snapshot) opened {
	x := opened{buffer: d.buffer(s)}
	charged := ltgf.Charge(s, x.buffer.books, &d.charges)
	x.buffer.books = charged
	leases, ended, failures := lease.Reconcile(s, charged.Records, &d.leases)
	of := &d.charges.Accounts
	x.ended = ended
	x.events = d.facts.Open(s, &round.Opening{Ledger: charged.Ledger, Records: charged.Records, Failures: failures, Stranded: charged.Stranded,
		Keys: of.Keys, Rows: of.Rows, Users: of.Users, GPUs: d.charges.GPUs(), Leases: leases})
	x.events = append(x.events, news(s)...)
	x.found = d.nodes.Find(&d.facts, leases, lease.Learn(s, &d.leases))
	x.speeds = speeds.Learn(&d.facts, x.found, &d.rates)
	nodes, told := slownodes.Next(&d.facts)
	x.nodes = nodes
	d.stops.Brief = d.Brief
	x.events = slices.Concat(x.events, x.speeds.News().Events, told, d.stops.Open(&d.facts, x.found))
	return x
}

// news returns the events that a snapshot brings.
func news(s *cluster.Snapshot) (out []cluster.Event) {
	tell := func(kind, text string) { out = append(out, cluster.Event{Kind: kind, Text: text}) }
	if r := s.Restored; r != nil {
		tell(cluster.EventJournalRestored, fmt.Sprintf("the journal got younger: its newest round was %d, and this daemon had seen round %d; "+
			"a dump was restored, PostgreSQL failed over, or another database is in use. What ran since then is read from Slurm; overrides given since then are lost", r.Found, r.Knew))
	}
	if s.Apart != "" {
		tell(cluster.EventClock, s.Apart)
	}
	if text := lost(s); text != "" {
		tell(cluster.EventSlurmStateLost, text)
	}
	if t := s.Settings.Tuned; t != nil && t.News != "" {
		tell(cluster.EventTune, t.News)
	}
	for i := range s.Tenants {
		if news := s.Tenants[i].Budget.News; news != "" {
			tell(cluster.EventBudget, news)
		}
	}
	now, was := s.Preempted, s.WasPreempted
	for _, p := range now {
		if !slices.Contains(was, p) {
			tell(cluster.EventPreemption, fmt.Sprintf("partition %s is only observed: %s; change Slurm's configuration, or set preemption: known", p.Partition, p.Why))
		}
	}
	for _, p := range was {
		if !slices.ContainsFunc(now, func(x cluster.Preempted) bool { return x.Partition == p.Partition }) {
			tell(cluster.EventPreemption, fmt.Sprintf("partition %s is no longer only observed for Slurm's preemption", p.Partition))
		}
	}
	return out
}

// lost says that slurmctld was started without its state, or with an older one: it does not know jobs that ran. "" = it was not. A job that
// has ended by slurmdbd is none of them, but slurmdbd shows lost ones as cancelled.
func lost(s *cluster.Snapshot) string {
	if s.Boot == 0 {
		return ""
	}
	ended := map[cluster.JobID]bool{}
	for i := range s.Attempts {
		if a := &s.Attempts[i]; a.End > 0 && a.Outcome != "CANCELLED" {
			ended[a.ID] = true
		}
	}
	var ran, again []string
	waited := 0
	for i := range s.Cases {
		c, r := &s.Cases[i], &s.Cases[i].Record
		switch runs := len(r.Held) > 0; {
		case c.Gone && runs && !ended[r.ID]:
			ran = append(ran, r.ID.String())
		case c.Gone && !runs && r.State == cluster.Waiting && r.Done == 0:
			waited++
		case !c.Gone && runs && c.Job.State == cluster.Waiting && c.Job.Restarts == r.Restarts:
			again = append(again, r.ID.String())
		}
	}
	if len(ran)+len(again) == 0 {
		return ""
	}
	return fmt.Sprintf("slurmctld was started at %s without the state that it had. Jobs that ran and that it no longer lists: %s; that ran and wait again: %s; "+
		"that waited and are gone: %d. The GPU time of those that ran counts up to the end that slurmdbd has, or else up to that start. Jobs that are gone must be submitted again",
		s.Boot, few(ran), few(again), waited)
}

// few gives the number of jobs and the first of them.
func few(ids []string) string {
	const most = 5
	switch n := len(ids); {
	case n == 0:
		return "0"
	case n > most:
		return fmt.Sprintf("%d (%s, …)", n, strings.Join(ids[:most], ", "))
	}
	return fmt.Sprintf("%d (%s)", len(ids), strings.Join(ids, ", "))
}
