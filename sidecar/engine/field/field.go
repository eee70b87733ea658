// Package field is what a chooser chooses on: the jobs that may hold a lease next, the nodes, and what is known of them; and what
// choosers have in common: they list candidates, put what is held on boards, and make, prolong and end leases.
package field

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/market"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Field is what a chooser chooses on. Indices are those of round.Books.
type Field struct {
	*round.Books
	Stops  *budget.Account
	Site   *place.Site
	Market *market.Market
	Closed []string // nodes on which only cells are given out
	next   cluster.Instant
	room   Room
}

// Room is what is used again from round to round.
type Room struct {
	unsorted, sorted []lease.Candidate
}

// Open gives the field of a round.
func (f *Field) Open(b *round.Books, stops *budget.Account, site *place.Site, m *market.Market) {
	f.Books, f.Stops, f.Site, f.Market, f.Closed, f.next = b, stops, site, m, nil, 0
}

// Spec gives what a job asks of its nodes.
func (f *Field) Spec(i int) place.Spec { return eligible.Spec(f.Books, i) }

// Next gives the first moment at which time alone may change what is chosen, as far as choosers have told by Later; 0 = none.
func (f *Field) Next() cluster.Instant { return f.next }

// Chooser says who holds a lease next, and where: it makes, prolongs and ends leases and claims in the books of the field.
type Chooser interface {
	Choose(f *Field) Outcome
}

// Outcome is what a chooser has to tell of virtual clusters; empty where there are none.
type Outcome struct {
	Lost  []cluster.CellLoss
	Lent  []cluster.Lending
	Cells *cluster.CellReport
}

// Touches are the rounds of choosing: first the jobs that we act on, then, as if those were fixed, the jobs that we only
// watch.
var Touches = []cluster.Touch{cluster.Act, cluster.Watch}
