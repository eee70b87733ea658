package telemetry

import (
	"context"
	"testing"
	"time"
)

// An address has at most its own part of the places, others have theirs at once, and a place that was left goes to the one that waits.
func TestOpeningsOfAnAddress(t *testing.T) {
	o := &Openings{Most: 3, Each: 2}
	enter := func(address string, wait time.Duration) (func(), bool) {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		leave, gone, ok := o.Enter(ctx, address)
		return func() { leave(); gone() }, ok
	}
	first, ok1 := enter("a", time.Minute)
	_, ok2 := enter("a", time.Minute)
	_, ok3 := enter("a", 10*time.Millisecond)
	_, ok4 := enter("b", time.Minute)
	_, ok5 := enter("c", 10*time.Millisecond) // all three are taken
	if !ok1 || !ok2 || ok3 || !ok4 || ok5 {
		t.Errorf("a has places: %t, %t, %t; b: %t; c: %t", ok1, ok2, ok3, ok4, ok5)
	}
	time.AfterFunc(10*time.Millisecond, first)
	if _, ok := enter("a", time.Minute); !ok {
		t.Error("a place that was left is lost")
	}
	if len(o.of) != 2 {
		t.Errorf("%d addresses are remembered, 2 have places", len(o.of))
	}
}
