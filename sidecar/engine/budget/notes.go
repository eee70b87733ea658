package budget

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// note is what an account finds out about a case.
type note struct {
	kind  *kind // nil = not looked up
	habit int32 // of its type: see kind.habit
	stopBase
}

// notes are those of a round and of the one before. A case that is what it was then has the same kind, and saves and starts as it did,
// if the evidence and the settings are the same.
type notes struct {
	cases     []note
	last      []note
	began     int // the habits' evidence at the beginning of the round
	lastBegan int
	startCost cluster.Span
	saves     []cluster.SavingRule
	declared  []*cluster.Saving // that jobs share
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

// turn opens the notes of a round; evidence is that of the habits at its beginning.
func (x *notes) turn(s *cluster.Snapshot, evidence int) {
	x.cases, x.last = slices.Grow(x.last[:0], len(s.Cases))[:len(s.Cases)], x.cases
	clear(x.cases)
	x.began, x.lastBegan = evidence, x.began
	if x.startCost != s.Settings.StartCost || !slices.Equal(x.saves, s.Settings.Saves) {
		x.startCost, x.saves, x.last = s.Settings.StartCost, slices.Clone(s.Settings.Saves), nil
	}
}

// lastOf returns the note of the last round on a case that is what it was then; nil = there is none.
func lastOf(a *Account, i int) *note {
	if k := int(a.Jobs[i].Before); k >= 0 && k < len(a.notes.last) {
		return &a.notes.last[k]
	}
	return nil
}
