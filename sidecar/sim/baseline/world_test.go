package baseline_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

const (
	second  = cluster.Second
	minute  = cluster.Minute
	hour    = cluster.Hour
	term    = 15 * minute
	forever = 10_000 * hour
)

func newWorld(t testing.TB, s baseline.Scheduler, nodes []cluster.Node, tenants ...string) *simtest.Scheduled {
	return simtest.Schedule(t, term, s.Decide, nodes, tenants...)
}

// scheduler gives a scheduler by name.
func scheduler(t testing.TB, name string, o baseline.Options) baseline.Scheduler {
	t.Helper()
	s, err := baseline.New(name, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// nodes gives n nodes of so many GPUs.
func nodes(n, gpus int) []cluster.Node { return simtest.Nodes("n", "v100", n, gpus) }
