// Package engine decides. Decide is given everything that it may know and returns
// everything that it wants; it has no clock, no I/O, no log and no goroutine, and
// equal snapshots give equal plans, byte for byte.
//
// It is a hall with rooms; each step is a call into one of them, and the rooms
// do not know each other:
//
//	account  ltgf    who received and was due how much since the last look
//	learn    profile how fast each kind of job runs on each GPU model
//	observe  stop    how each type of job saves, and what its starts cost
//	divide   policy  who is due how many GPUs of each model
//	choose   lease   who holds a lease in the next term
//	place    place   where
//	say              the actions, and the reasons in numbers
package engine

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/entitle"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/market"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/speeds"
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

	room  room
	pages [2]*page
}

// room is what a round is worked out in.
type room struct {
	leasing lease.Room
	field   eligible.Field
	// The cells' description, and the cells as they are when all is healthy and free.
	described *cluster.Cells
	plain     *cells.State
	refused   error
	board     *place.Board
	common    *place.Board // of nodes in no cell, where there are cells
	kept      *place.Board // on which claims are made
	books     round.Books
	ranks     []int
	unsorted  []lease.Candidate
	sorted    []lease.Candidate
	stops     budget.Account
	passed    [2][]round.Passed // of those that we act on, and of those that we watch
}

// page is room for the lists of a plan.
type page struct {
	books    ltgf.Page
	leases   []cluster.Lease
	verdicts []cluster.Verdict
	standing []cluster.Standing
}

func newPage() *page {
	// What is empty is written as an empty list.
	return &page{books: ltgf.Page{Records: []cluster.Record{}}, leases: []cluster.Lease{}, verdicts: []cluster.Verdict{}, standing: []cluster.Standing{}}
}

// page gives the page on which the snapshot does not stand.
func (d *Decider) page(s *cluster.Snapshot) *page {
	if !d.Brief {
		return newPage()
	}
	if d.pages[0] == nil {
		d.pages = [2]*page{newPage(), newPage()}
	}
	p := d.pages[0]
	if on := p.books.Ledger.Pools; len(on) > 0 && len(s.Ledger.Pools) > 0 && &on[0] == &s.Ledger.Pools[0] {
		p = d.pages[1]
	}
	return p
}

// Decide makes the plan for one round.
func (d *Decider) Decide(s cluster.Snapshot) cluster.Plan {
	done := false
	defer func() {
		if !done { // it broke down, and nothing that it kept can be relied on
			*d = Decider{Brief: d.Brief}
		}
	}()
	h := d.open(&s)
	budget.Extend(&h.stops)
	h.youth()
	h.lending()
	// 3 choose and place: first the jobs that we act on, then, as if those were
	// fixed, the jobs that we only watch
	h.choose(cluster.Act)
	h.choose(cluster.Watch)
	if s.Cells != nil && h.cells == nil { // there is no job at all
		h.chooseCells(cluster.Act)
	}
	slices.SortFunc(h.Claims, func(a, b cluster.Claim) int { return cmp.Compare(a.Job, b.Job) })
	// 4 say
	p := h.say()
	done = true
	return p
}

// open takes the steps before anything is chosen.
func (d *Decider) open(s *cluster.Snapshot) *hall {
	h := &hall{Books: &d.room.books, brief: d.Brief, room: &d.room, page: d.page(s)}
	// 1 account
	h.page.books = ltgf.Charge(s, h.page.books)
	books := &h.page.books
	leases, ended := lease.Reconcile(s, books.Records, &h.leasing)
	h.Open(s, books.Ledger, books.Records, leases, ended, books.Rows)
	h.setAside()
	h.field.Survey(h.Books)
	h.speeds = speeds.Learn(h.Books)
	h.stops.Open(h.Books, h.field.Site.Good)
	active := h.field.Active()
	entitle.Parties(h.Books, h.speeds)
	// 2 divide
	capacity := entitle.Capacity(h.Books, h.field.Site)
	h.market = market.Open(h.Books, h.speeds)
	h.question = entitle.Divide(h.Books, h.speeds, capacity, h.own())
	ltgf.Due(&h.Ledger, h.Records, active)
	return h
}

// hall carries the values from room to room.
type hall struct {
	*round.Books
	*room
	page   *page
	lost   []cluster.CellLoss
	lent   []cluster.Lending // by pool
	market *market.Market
	speeds *speeds.Speeds
	// What is to be divided anew; nil = what was divided holds.
	question *cluster.Question
	cells    *cluster.CellReport
	unsafe   []string // how promises to VCs do not add up
	brief    bool
	closed   []string // nodes on which only cells are given out
	// When a lease may be recalled that may not be now; 0 = no such moment is known.
	recallAt cluster.Instant
}
