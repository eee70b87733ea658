package field

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// Fresh returns an empty board, in the memory of an old one. The caller puts all jobs on it.
func (f *Field) Fresh(old *place.Board) *place.Board {
	v := place.View{Busy: true, Reserved: true, Occupied: true}
	if old == nil {
		old = f.Site.Board(v)
	} else {
		f.Site.Clear(old, v)
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

// Lay puts all holdings on a board: leases of running jobs that may end are soft, the others fixed.
func (f *Field) Lay(board *place.Board, may func(i int) (Soft, bool)) {
	board.Await(len(f.Jobs))
	for i := range f.Jobs {
		st, l := &f.Jobs[i], f.Leases[i]
		switch {
		case !st.Live:
			continue
		case l != nil && l.State == cluster.Granted:
			board.Hold(l.Nodes)
			continue
		case st.Waits:
			continue
		case l != nil && st.Runs:
			if s, ok := may(i); ok {
				board.Soften(i, s.Owner, s.Rank, s.End, f.Snapshot.Cases[i].Job.Holds)
				continue
			}
		}
		board.Hold(f.Snapshot.Cases[i].Job.Holds)
	}
}
