package simtest

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
)

// Term is the term of schedulers that are compared, and Forever a run time that no test waits for.
const (
	Term    = 15 * cluster.Minute
	Forever = 10_000 * cluster.Hour
)

// Compare makes a virtual cluster under a scheduler that fairlease is compared with.
func Compare(t testing.TB, s baseline.Scheduler, nodes []cluster.Node, tenants ...string) *Scheduled {
	return Schedule(t, Term, s.Decide, nodes, tenants...)
}

// Baseline gives such a scheduler by its name.
func Baseline(t testing.TB, name string, o baseline.Options) baseline.Scheduler {
	t.Helper()
	s, err := baseline.New(name, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// V100s gives n nodes of so many V100.
func V100s(n, gpus int) []cluster.Node { return Nodes("n", "v100", n, gpus) }
