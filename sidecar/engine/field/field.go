// Package field is the input of a chooser: the jobs that may hold a lease next, the nodes, and the
// information about them. It also has the operations that choosers share: listing candidates, filling boards,
// and making, prolonging and ending leases.
package field

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/entitle"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/market"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Field is the input of a chooser, and the hand that it plays.
type Field struct {
	In     *round.Facts
	Found  *eligible.Found
	Can    []round.Eligibility // of Found
	Due    *entitle.Due
	Stops  *budget.Account
	Site   *place.Site
	Market *market.Market
	Closed []string     // nodes that are granted only as cells
	Limits lease.Limits // Slurm's; nil = none, or eligible jobs fit all together
	Hourly Hourly       // stops within the hour
	Hand   Hand
	room   Room
}

// Hand is what a chooser has decided so far.
type Hand struct {
	Leases []*cluster.Lease // in force, by case; nil = none
	Ended  []cluster.Lease
	Claims []cluster.Claim
	Events []cluster.Event
	Marks  []round.Mark       // by case
	Passes []cluster.Span     // by case: places in the strides of virtual clusters; nil = as in the records
	Young  []cluster.MicroGPU // by row of the ledger's tenants: GPUs that its young jobs need
	own    []cluster.Lease    // that Leases point to
}

// open takes over leases by case, those that ended before the choice, and nothing else.
func (h *Hand) open(leases []*cluster.Lease, ended []cluster.Lease) {
	n := 0
	for _, l := range leases {
		if l != nil {
			n++
		}
	}
	h.own = slices.Grow(h.own[:0], n)
	h.Leases = slices.Grow(h.Leases[:0], len(leases))[:len(leases)]
	for i, l := range leases {
		if h.Leases[i] = nil; l != nil {
			h.own = append(h.own, *l)
			h.Leases[i] = &h.own[len(h.own)-1]
		}
	}
	h.Marks = slices.Grow(h.Marks[:0], len(leases))[:len(leases)]
	clear(h.Marks)
	h.Ended, h.Claims, h.Events, h.Passes, h.Young = ended, nil, nil, nil, nil
}

// Report adds an event.
func (h *Hand) Report(e cluster.Event) { h.Events = append(h.Events, e) }

// Room is memory that is reused from round to round.
type Room struct {
	unsorted, sorted []lease.Candidate
	refused          []round.Refusal
	order            order
	sorter           lease.Sorter
	base             base
}

// Open sets the field of a round. ended are leases that ended before the choice.
func (f *Field) Open(in *round.Facts, found *eligible.Found, due *entitle.Due, stops *budget.Account, m *market.Market, ended []cluster.Lease) {
	f.In, f.Found, f.Can, f.Due, f.Stops, f.Site, f.Market = in, found, found.Can, due, stops, found.Site, m
	f.Closed, f.Limits = nil, found.Limits
	f.Hand.open(found.Leases, slices.Concat(ended, found.Revoked))
	stops.Follow(f.Hand.Leases, due.Ledger.Pools)
	f.Hourly.open(f)
	f.room.base.open(f)
}

// Spec returns the requirements of a job on its nodes.
func (f *Field) Spec(i int) place.Spec {
	if f.Hand.Marks[i].Forgiven {
		return f.Found.SpecAnywhere(i)
	}
	return f.Found.Spec(i)
}

// Shape returns the shape of a job's requirements.
func (f *Field) Shape(i int) int {
	if f.Hand.Marks[i].Forgiven {
		return f.Site.Shape(f.Spec(i))
	}
	return f.Can[i].Shape
}

// Taken returns the GPUs that are given away now.
func (f *Field) Taken() round.Taken {
	return round.Taken{Leases: f.Hand.Leases, Claims: f.Hand.Claims, Ending: f.Ending}
}

// Terms returns how many leases a job has had, with this round's.
func (f *Field) Terms(i int) int { return f.In.Records[i].Terms + f.Hand.Marks[i].Terms }

// UsersBehind returns by how much GPU time each user is behind now; see entitle.Due.
func (f *Field) UsersBehind() []cluster.GPUTime { return f.Due.UsersBehind(f.In, f.Taken()) }

// Chooser chooses the jobs that hold a lease next, and their nodes. It changes leases and claims in the hand
// of the field as it goes, because each decision depends on the previous ones. Its other results are in the
// Choice.
type Chooser interface {
	Choose(f *Field) Choice
}

// Play lets a chooser choose, and puts the claims in the order of their jobs, as plans have them.
func Play(f *Field, c Chooser) Choice {
	out := c.Choose(f)
	slices.SortFunc(f.Hand.Claims, func(a, b cluster.Claim) int { return cmp.Compare(a.Job, b.Job) })
	return out
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
func Blank(f *Field) Choice {
	f.room.refused = slices.Grow(f.room.refused[:0], len(f.In.Cases))[:len(f.In.Cases)]
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
