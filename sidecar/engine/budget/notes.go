package budget

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// note is what an account finds out about a case.
type note struct {
	kind  *kind  // nil = not looked up
	habit int32  // of its type: see kind.habit
	kept  bool   // stopBase is that of the last round
	own   *Stops // nil = as in the case's record
	stopBase
}

// notes are those of a round and of the one before. A case that is what it was then has the same kind, and saves and starts as it did,
// if the evidence and the settings are the same.
type notes struct {
	cases     []note
	last      []note
	changed   []int // cases with own
	open      []int // cases to observe: an attempt of theirs may have ended, or reported, or gets long
	began     int   // the habits' evidence at the beginning of the round
	lastBegan int
	startCost cluster.Span
	saves     []cluster.SavingRule
	declared  []*cluster.Saving // that jobs share
}

// turn opens the notes of a round; evidence is that of the habits at its beginning.
func (x *notes) turn(b *round.Facts, evidence int) {
	n := len(b.Cases)
	x.cases, x.last = slices.Grow(x.last[:0], n)[:n], x.cases
	x.began, x.lastBegan = evidence, x.began
	if x.startCost != b.Settings.StartCost || !slices.Equal(x.saves, b.Settings.Saves) {
		x.startCost, x.saves, x.last = b.Settings.StartCost, slices.Clone(b.Settings.Saves), nil
	}
	x.open, x.changed = x.open[:0], x.changed[:0]
	news := len(b.Snapshot.Attempts)+len(b.Snapshot.Progress) > 0
	for i := range x.cases {
		now, st := &x.cases[i], &b.Cases[i]
		if before := int(st.Before); before >= 0 && before < len(x.last) {
			*now = x.last[before]
			now.kept, now.known, now.habit, now.own = now.known, false, 0, nil
		} else {
			*now = note{}
		}
		if news || st.Before < 0 || st.Runs && (!now.kept || getsLong(b, now.start)) {
			x.open = append(x.open, i)
		}
	}
}

// maxDeclared is the maximum number of declarations that jobs share.
const maxDeclared = 64

// share returns a declaration that outlives the snapshot of a job, and is the same one for jobs that declare the same.
func (x *notes) share(declared *cluster.Saving) *cluster.Saving {
	for _, s := range x.declared {
		if *s == *declared {
			return s
		}
	}
	if len(x.declared) == maxDeclared {
		x.declared = nil
	}
	s := *declared
	x.declared = append(x.declared, &s)
	return &s
}
