// Package field is the input of a chooser: the jobs that may hold a lease next, the nodes, and the
// information about them. It also has the operations that choosers share: listing candidates, filling boards,
// and making, prolonging and ending leases.
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

// Field is the input of a chooser. Indices are those of round.Books.
type Field struct {
	Books  *round.Books
	Stops  *budget.Account
	Site   *place.Site
	Market *market.Market
	Closed []string     // nodes that are granted only as cells
	Limits lease.Limits // Slurm's; nil = none, or eligible jobs fit all together
	room   Room
}

// Room is memory that is reused from round to round.
type Room struct {
	unsorted, sorted []lease.Candidate
	refused          []round.Refusal
	order            order
	sorter           lease.Sorter
	base             base
}

// Open sets the field of a round.
func (f *Field) Open(b *round.Books, stops *budget.Account, site *place.Site, m *market.Market) {
	f.Books, f.Stops, f.Site, f.Market, f.Closed, f.Limits = b, stops, site, m, nil, nil
	f.room.base.open(f)
}

// Spec returns the requirements of a job on its nodes.
func (f *Field) Spec(i int) place.Spec { return eligible.Spec(f.Books, i) }

// Chooser chooses the jobs that hold a lease next, and their nodes. It changes leases and claims in the books
// of the field as it goes, because each decision depends on the previous ones. Its other results are in the
// Choice.
type Chooser interface {
	Choose(f *Field) Choice
}

// Choice is the result of a chooser, besides leases and claims.
type Choice struct {
	Next    cluster.Instant // the first moment at which time alone may change what is chosen; 0 = none
	Refused []round.Refusal // by case; nil = no information
	// For virtual clusters. Fences are the nodes to keep from jobs of unmanaged partitions, by VC.
	Fences map[string][]string
	Lost   []cluster.CellLoss
	Lent   []cluster.Lending
	Cells  *cluster.CellReport
	// CellTrades are the trades of cells in force.
	CellTrades []cluster.CellTrade
}

// Blank returns an empty choice, in the memory of an earlier round's.
func (f *Field) Blank() Choice {
	f.room.refused = slices.Grow(f.room.refused[:0], len(f.Books.Jobs))[:len(f.Books.Jobs)]
	clear(f.room.refused)
	return Choice{Refused: f.room.refused}
}

// Later reports whether a moment is still to come. If so, leases are examined again then.
func (c *Choice) Later(now, at cluster.Instant) bool {
	if at > now && (c.Next == 0 || at < c.Next) {
		c.Next = at
	}
	return at > now
}

// ControlLevels are the passes of a choice: first the managed jobs, then the observed jobs, with the results
// of the first pass as fixed.
var ControlLevels = []cluster.Control{cluster.FullControl, cluster.ObserveOnly}
