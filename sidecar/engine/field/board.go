package field

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// view is how boards of choosers see nodes.
var view = place.View{Busy: true, Reserved: true, Occupied: true}

// Fresh returns an empty board, in the memory of an old one. The caller puts all jobs on it.
func (f *Field) Fresh(old *place.Board) *place.Board {
	if old == nil {
		old = f.Site.Board(view)
	} else {
		f.Site.Clear(old, view)
	}
	for _, node := range f.Closed {
		old.Close(node)
	}
	return old
}

// Soft is a lease on a board that may end: its owner (-1 = no tenant relies on it), its rank among such
// leases, and the time of its end.
type Soft struct {
	Owner, Rank int
	End         cluster.Instant
}

// Lay returns a board with all holdings, in the memory of an old one: leases of running jobs that may end are soft, the others fixed.
func (f *Field) Lay(old *place.Board, may func(i int) (Soft, bool)) *place.Board {
	f.room.base.update(f)
	if old == nil {
		old = f.Site.Board(view)
	}
	place.Copy(old, f.room.base.board)
	for _, node := range f.Closed {
		old.Close(node)
	}
	old.Await(len(f.In.Cases))
	for _, i := range f.room.base.runs {
		l, spots := f.Hand.Leases[i], f.room.base.held[i].spots
		if !f.Hand.Marks[i].Stoppable {
			place.Bind(old, spots)
		}
		if l == nil || l.State == cluster.Granted {
			continue
		}
		if s, ok := may(i); ok {
			place.Loosen(old, i, s.Owner, s.Rank, s.End, spots)
		}
	}
	return old
}

// base is a board with all holdings fixed. It is kept from round to round: only the holdings that change are moved on it.
type base struct {
	board   *place.Board
	site    *place.Site    // nil = the board must be filled anew
	edition int            // of the site
	across  cluster.Across // settings of sharing for which it is
	slices  bool
	held    []holding        // by case
	was     []holding        // of the round before
	leases  []*cluster.Lease // by case, that the board has; empty = those of an earlier round
	runs    []int            // the cases that run
}

// holding is all that is on the board for a case.
type holding struct {
	granted bool // GPUs of its lease; else those of its job
	nodes   []cluster.Holding
	spots   []place.Spot // of nodes
}

// open takes over, case by case, all that is on the board.
func (b *base) open(f *Field) {
	b.leases, b.runs = b.leases[:0], b.runs[:0]
	if b.site != f.Site || b.edition != place.Edition(f.Site) || !f.In.Snapshot.Follows || b.across != f.In.Settings.Across || b.slices != (f.In.Settings.Slices != nil) {
		b.site = nil
		return
	}
	b.was, b.held = b.held, slices.Grow(b.was[:0], len(f.In.Cases))[:len(f.In.Cases)]
	for i := range f.In.Cases {
		if b.held[i] = (holding{}); f.In.Cases[i].Before >= 0 {
			was := &b.was[f.In.Cases[i].Before]
			b.held[i], *was = *was, holding{}
		}
	}
	for i := range b.was {
		place.Fill(b.board, b.was[i].spots, -1)
	}
}

// update brings the board to the present leases.
func (b *base) update(f *Field) {
	if b.site == nil {
		if b.board == nil {
			b.board = f.Site.Board(view)
		} else {
			f.Site.Clear(b.board, view)
		}
		b.across, b.slices = f.In.Settings.Across, f.In.Settings.Slices != nil
		b.site, b.edition, b.held = f.Site, place.Edition(f.Site), slices.Grow(b.held[:0], len(f.In.Cases))[:len(f.In.Cases)]
		clear(b.held)
	}
	if len(b.leases) == len(f.In.Cases) {
		for i, l := range f.Hand.Leases {
			if l != b.leases[i] {
				b.move(f, i)
			}
		}
	} else {
		for i := range f.In.Cases {
			if b.move(f, i); f.In.Cases[i].Runs {
				b.runs = append(b.runs, i)
			}
		}
	}
	b.leases = append(b.leases[:0], f.Hand.Leases...)
}

// move brings what the board has of a case up to date.
func (b *base) move(f *Field, i int) {
	var now holding
	switch st, l := &f.In.Cases[i], f.Hand.Leases[i]; {
	case !st.Live:
	case l != nil && l.State == cluster.Granted:
		now.granted, now.nodes = true, l.Nodes
	case !st.Waits:
		now.nodes = f.In.Snapshot.Cases[i].Job.Holds
	}
	if was := &b.held[i]; !now.same(was) {
		place.Fill(b.board, was.spots, -1)
		now.spots = b.site.Spots(now.nodes, f.In.Sharer(i), nil)
		place.Fill(b.board, now.spots, 1)
		*was = now
	}
}

// same reports whether two holdings of one case are the same.
func (h *holding) same(o *holding) bool {
	n := len(h.nodes)
	return n == len(o.nodes) && (n == 0 || h.granted == o.granted && &h.nodes[0] == &o.nodes[0])
}
