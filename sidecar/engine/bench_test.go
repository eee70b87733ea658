package engine_test

import (
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
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

// The same snapshots where a policy has divided the pools: between jobs, and between tenants' kinds.
func BenchmarkDecideDivided(b *testing.B) {
	for _, preset := range []string{"gavel:las", "gandiva-fair"} {
		for _, n := range []int{1000, 10000, 50000} {
			b.Run(fmt.Sprintf("%s/%d", preset, n), func(b *testing.B) {
				s := simtest.Crowd(n, 100)
				s.Settings.Divide, s.Settings.DivideJobs = preset, policy.OfJobs(preset)
				warm := engine.Decide(s) // opens the accounts, and asks
				at := s.Ledger.At
				s.Ledger, s.Parties = warm.Memory.Ledger, warm.Memory.Parties
				s.Ledger.At = at
				d := engine.Divide(*warm.Question)
				if d.Why != "" {
					b.Fatal(d.Why)
				}
				s.Division = &d
				b.ReportAllocs()
				for b.Loop() {
					engine.Decide(s)
				}
			})
		}
	}
}
