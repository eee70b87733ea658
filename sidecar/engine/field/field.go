// Package field is what a chooser chooses on: the jobs that may hold a lease next, the nodes, and what is known of them; and what
// choosers have in common: they list candidates, put what is held on boards, and make, prolong and end leases.
package field

import (
	"slices"

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
	room   Room
}

// Room is what is used again from round to round.
type Room struct {
	unsorted, sorted []lease.Candidate
	refused          []round.Refusal
}

// Open gives the field of a round.
func (f *Field) Open(b *round.Books, stops *budget.Account, site *place.Site, m *market.Market) {
	f.Books, f.Stops, f.Site, f.Market, f.Closed = b, stops, site, m, nil
}

// Spec gives what a job asks of its nodes.
func (f *Field) Spec(i int) place.Spec { return eligible.Spec(f.Books, i) }

// Chooser chooses the jobs that hold a lease next, and their nodes. It makes, prolongs and ends leases and claims in the books of
// the field as it goes, since it weighs each against those before; the rest of what it chose is its choice.
type Chooser interface {
	Choose(f *Field) Choice
}

// Choice is what a chooser chose, besides leases and claims.
type Choice struct {
	Next    cluster.Instant // the first moment at which time alone may change what is chosen; 0 = none
	Refused []round.Refusal // by case; nil = it says nothing of any
	// Of virtual clusters. Fences are the nodes to keep from jobs of partitions that are not managed, by the VC that has them.
	Fences map[string][]string
	Lost   []cluster.CellLoss
	Lent   []cluster.Lending
	Cells  *cluster.CellReport
}

// Blank gives a choice of nothing, in the room of that of an earlier round.
func (f *Field) Blank() Choice {
	f.room.refused = slices.Grow(f.room.refused[:0], len(f.Jobs))[:len(f.Jobs)]
	clear(f.room.refused)
	return Choice{Refused: f.room.refused}
}

// Later tells whether a moment is still to come; if so, leases are looked at again then.
func (c *Choice) Later(now, at cluster.Instant) bool {
	if at > now && (c.Next == 0 || at < c.Next) {
		c.Next = at
	}
	return at > now
}

// ControlLevels are the rounds of choosing: first the jobs that we act on, then, as if those were fixed, the jobs that we only
// watch.
var ControlLevels = []cluster.Control{cluster.FullControl, cluster.ObserveOnly}
