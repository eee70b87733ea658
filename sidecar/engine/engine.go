// Package engine decides. Decide is given everything that it may know and returns
// everything that it wants; it has no clock, no I/O, no log and no goroutine, and
// equal snapshots give equal plans, byte for byte.
//
// A round is a pipeline of steps. Each is a package, and hands on what it found out in the books (package round):
//
//	account   ltgf      who received and was due how much since the last look
//	          lease     which leases are in force
//	see       eligible  which jobs could be granted a lease now, and where
//	learn     speeds    how fast each kind of job runs on each GPU model
//	          budget    how each job saves, and what its stops may cost
//	divide    entitle   who is due how many GPUs of each model
//	choose    share, vc who holds a lease next, and where (field.Chooser)
//	plan      actions   what has to be done
//	          why       why every job runs or waits
//
// Beside the rounds, answer works out what a policy makes of unlike GPU models.
package engine

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/entitle"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/market"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/share"
	"github.com/fairlease/fairlease/sidecar/engine/speeds"
	"github.com/fairlease/fairlease/sidecar/engine/vc"
)

// Decide makes the plan for one round. It never fails: bad input is refused when
// the snapshot is built.
func Decide(s cluster.Snapshot) cluster.Plan { return new(Decider).Decide(s) }

// Decider decides round after round as Decide does, and makes the same plans: what it keeps
// between them is room, and what it found out about nodes that have not changed since. It is not
// safe for use by several goroutines.
type Decider struct {
	// Brief tells that the lists of a plan are good until the next decision only, or where that
	// goes on from the plan until the one after it: their room is then used again.
	Brief bool

	books   round.Books
	leases  lease.Workspace
	nodes   eligible.Nodes
	stops   budget.Account
	field   field.Field
	share   share.Chooser
	cells   vc.Chooser
	buffers [2]*buffer
}

// Decide makes the plan for one round.
func (d *Decider) Decide(s cluster.Snapshot) cluster.Plan { return d.DecideBy(s, d.chooser(&s)) }

// chooser gives the chooser that the settings ask for: virtual clusters where there are any, else fair share.
func (d *Decider) chooser(s *cluster.Snapshot) field.Chooser {
	if s.Cells == nil {
		return &d.share
	}
	d.cells.Commons, d.cells.Brief = d.share.Contest, d.Brief
	return &d.cells
}

// DecideBy decides as Decide does, with another chooser: the same books are kept under all of them, and what they choose
// is carried out in the same way.
func (d *Decider) DecideBy(s cluster.Snapshot, chooser field.Chooser) cluster.Plan {
	done := false
	defer func() {
		if !done { // it broke down, and nothing that it kept can be relied on
			*d = Decider{Brief: d.Brief}
		}
	}()
	x := d.open(&s)
	d.field.Open(&d.books, &d.stops, d.nodes.Site, x.market)
	choice := chooser.Choose(&d.field)
	slices.SortFunc(d.books.Claims, func(a, b cluster.Claim) int { return cmp.Compare(a.Job, b.Job) })
	p := d.plan(x, &choice)
	done = true
	return p
}

// opened is what is known of a round, besides the books, before anything is chosen.
type opened struct {
	buffer   *buffer
	speeds   *speeds.Speeds
	market   *market.Market
	question *cluster.AllocationRequest // what is to be divided anew; nil = what was divided holds
}

// open takes the steps before anything is chosen.
func (d *Decider) open(s *cluster.Snapshot) opened {
	x, b := opened{buffer: d.buffer(s)}, &d.books
	charged := ltgf.Charge(s, x.buffer.books)
	x.buffer.books = charged
	leases, ended := lease.Reconcile(s, charged.Records, &d.leases)
	b.Open(s, charged.Ledger, charged.Records, leases, ended, charged.Rows)
	d.nodes.Survey(b)
	eligible.RevokeOvertaken(b, d.nodes.Site)
	x.speeds = speeds.Learn(b)
	d.stops.Open(b, d.nodes.Site.Good)
	active := d.nodes.Active()
	entitle.Parties(b, x.speeds)
	capacity := entitle.Capacity(b, d.nodes.Site)
	x.market = market.Open(b, x.speeds)
	x.question = entitle.Divide(b, x.speeds, capacity, d.cells.Own(b))
	ltgf.Due(&b.Ledger, b.Records, active)
	return x
}
