package engine_test

import (
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{1000, 10000, 50000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := simtest.Crowd(n, 100)
			warm := engine.Decide(s) // opens the accounts
			at := s.Ledger.At
			s.Ledger = warm.Memory.Ledger
			s.Ledger.At = at
			b.ReportAllocs()
			for b.Loop() {
				engine.Decide(s)
			}
		})
	}
}
