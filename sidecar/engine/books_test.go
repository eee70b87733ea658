package engine_test

import (
	"reflect"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// harsh is a chooser that reclaims every lease.
type harsh struct{}

func (harsh) Choose(f *field.Field) field.Choice {
	for i, l := range f.Hand.Leases {
		if l != nil && f.In.Cases[i].Control == cluster.FullControl {
			f.Notify(i, f.In.Now)
			f.Reclaim(i)
		}
	}
	return field.Choice{}
}

// The books are the same under every chooser: the ledger, and the GPU time that every job received and was
// due.
func TestTheBooksAreTheSameWhoeverChooses(t *testing.T) {
	s := simtest.Crowd(600, 12)
	own := engine.Decide(s)
	other := new(engine.Decider).DecideBy(s, harsh{})
	if !reflect.DeepEqual(own.State.Ledger, other.State.Ledger) {
		t.Error("the ledgers differ")
	}
	for i := range own.State.Records {
		a, b := own.State.Records[i], other.State.Records[i]
		if a.Alloc != b.Alloc || a.Due != b.Due || a.DueRate != b.DueRate {
			t.Fatalf("job %d: %+v and %+v", a.Key, a, b)
		}
	}
	reclaimed := 0
	for _, a := range other.Actions {
		if a.Verb == cluster.Reclaim {
			reclaimed++
		}
	}
	if reclaimed != len(s.Leases) {
		t.Errorf("%d of %d leases were reclaimed", reclaimed, len(s.Leases))
	}
}
