package sim_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/sim"
)

func TestMemoryIsAJournal(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journaltest.Ground {
		memory := sim.NewMemory()
		return journaltest.Ground{
			Start:    func(*testing.T) loop.Journal { return memory },
			Override: func(_ *testing.T, o cluster.Override) int64 { return memory.Override(o) },
		}
	})
}
