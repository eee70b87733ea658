package backtest

import (
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/store"
)

// With a stop budget the journal books destroyed work separately from received GPU time: a job
// held GPUs for both.
func TestWhatStopsDestroyedWasHeld(t *testing.T) {
	for _, c := range []struct {
		allowance        cluster.Span
		held, lost, runs cluster.Span
	}{
		{0, 20 * cluster.Minute, 5 * cluster.Minute, 15 * cluster.Minute},
		{cluster.Minute, 25 * cluster.Minute, 5 * cluster.Minute, 20 * cluster.Minute},
	} {
		const from = cluster.Instant(1_800_000_000_000)
		when := func(minutes int) *time.Time {
			at := from.Add(cluster.Span(minutes) * cluster.Minute).Time()
			return &at
		}
		p := &store.Past{}
		p.Begin.Plan.At, p.End.Plan.At, p.End.Plan.State.NextKey = from, from.Add(cluster.Hour), 100
		p.End.Snapshot.Settings.StopAllowance = c.allowance
		b := newBuilder(p)
		b.job(&store.PastJob{Key: 6, SlurmID: "6", Tenant: "a", GPUs: cluster.CountOf(2), Started: when(10), Eligible: when(10), Done: when(50), Alloc: 2_400_000, Lost: 600_000})
		if len(b.was) != 1 {
			t.Fatalf("%d jobs, want 1", len(b.was))
		}
		if j := b.was[0]; j.Held != c.held || j.Lost != c.lost || j.Runs != c.runs || j.Alloc != 2_400_000 {
			t.Errorf("allowance %s: held %s, lost %s, ran %s; want %s, %s, %s", c.allowance, j.Held, j.Lost, j.Runs, c.held, c.lost, c.runs)
		}
	}
}
