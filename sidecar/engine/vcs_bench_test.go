package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

func BenchmarkDecideInCells(b *testing.B) { decideInCells(b, preset.Hived) }

// The models of the cells are divided between jobs.
func BenchmarkDecideInCellsDivided(b *testing.B) { decideInCells(b, "gavel:las") }

func decideInCells(b *testing.B, by string) {
	var d engine.Decider
	s := simtest.CrowdInCells(50_000)
	if by != preset.Hived {
		s.Settings.Divide, s.Settings.DivideJobs = by, preset.OfJobs(by)
	}
	at, ends := s.Ledger.At, s.Leases[0].End
	plan := d.Decide(s) // puts the leases into cells
	first := plan.State
	if by != preset.Hived {
		answer := engine.Divide(*plan.AllocationRequest)
		s.Allocation, s.Parties = &answer, first.Parties
	}
	s.Ledger, s.Lost, s.Leases = first.Ledger, first.Lost, nil
	s.Ledger.At = at
	for _, l := range first.Leases {
		if l.State != cluster.Granted {
			l.State, l.End, l.NoticedAt, l.Why = cluster.Active, ends, 0, ""
			s.Leases = append(s.Leases, l)
		}
	}
	for b.Loop() {
		if p := d.Decide(s); p.Cells.Unsafe != nil {
			b.Fatal(p.Cells.Unsafe)
		}
	}
}
