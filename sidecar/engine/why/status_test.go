package why

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// In a pool without budget for stops, leases do not end with their terms. A waiting job is told the earliest
// time limit instead, or nothing.
func TestNextEndsOfJobsThatAreTooDearToStop(t *testing.T) {
	const term, limit = cluster.Instant(1000), cluster.Instant(5000)
	for _, c := range []struct {
		name  string
		dear  bool
		limit cluster.Span
		state cluster.LeaseState
		want  cluster.Instant
	}{
		{"a job that may be stopped", false, cluster.Hour, cluster.Active, term},
		{"one that is too dear", true, cluster.Hour, cluster.Active, limit},
		{"one that is too dear and has no limit", true, 0, cluster.Active, 0},
		{"one that was told to end before", true, cluster.Hour, cluster.Noticed, term},
	} {
		b := &Input{In: &round.Facts{Pools: []string{"a100"}, Snapshot: &cluster.Snapshot{Cases: []cluster.Case{{Job: cluster.Job{Limit: c.limit, End: limit}}}}},
			Leases: []*cluster.Lease{{Pool: "a100", State: c.state, End: term}}, Owes: []budget.Owe{{Dear: c.dear}}}
		if got := nextEnds(b)[0]; got != c.want {
			t.Errorf("%s: the next lease ends at %d, want %d", c.name, got, c.want)
		}
	}
}
