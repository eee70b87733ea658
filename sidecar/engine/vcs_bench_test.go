package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

func BenchmarkDecideInCells(b *testing.B) {
	var d engine.Decider
	s := simtest.CrowdInCells(50_000)
	at, ends := s.Ledger.At, s.Leases[0].End
	first := d.Decide(s).State // puts the leases into cells
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
