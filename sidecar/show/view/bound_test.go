package view

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/store"
)

// The rows add up to the jobs, whatever their order, each names the job that is bound the longest, and a longer span counts fewer GPUs.
func TestBoundOf(t *testing.T) {
	const now = cluster.Instant(1_800_000_000_000)
	rapid.Check(t, func(rt *rapid.T) {
		pick := func(name string, words ...string) string { return rapid.SampledFrom(words).Draw(rt, name) }
		jobs := make([]store.Bound, rapid.IntRange(0, 12).Draw(rt, "jobs"))
		for i := range jobs {
			ago := time.Duration(rapid.IntRange(0, 300).Draw(rt, "minutes"))*time.Minute + time.Duration(i)*time.Millisecond
			jobs[i] = store.Bound{SlurmID: fmt.Sprint(i), Tenant: pick("tenant", "", "bio", "nlp"), User: pick("user", "ann", "bob"), Way: cluster.Way(pick("way", "age", "session")),
				Pool: pick("pool", "v100", "k80"), GPUs: cluster.GPUCount(rapid.IntRange(1, 8_000_000).Draw(rt, "GPUs")), Since: now.Time().Add(-ago), Beyond: cluster.MicroGPU(rapid.IntRange(0, 8).Draw(rt, "beyond"))}
		}
		span := cluster.Span(rapid.IntRange(0, 300).Draw(rt, "span")) * cluster.Minute
		got, later := BoundOf(jobs, span, now), BoundOf(jobs, 2*span, now)
		if d := cmp.Diff(got, BoundOf(rapid.Permutation(jobs).Draw(rt, "order"), span, now)); d != "" {
			rt.Fatalf("in another order:\n%s", d)
		}
		for i := range jobs {
			b := &jobs[i]
			for k := range got {
				x := &got[k]
				if x.Tenant != b.Tenant || x.User != b.User || x.Way != b.Way || x.Pool != b.Pool {
					continue
				}
				if x.Since.After(b.Since) || x.SlurmID == b.SlurmID && !x.Since.Equal(b.Since) {
					rt.Errorf("%+v is bound since %s, but its job %s since %s", *x, x.Since, b.SlurmID, b.Since)
				}
				x.Jobs, x.GPUs, x.Beyond = x.Jobs-1, x.GPUs-b.GPUs, x.Beyond-b.Beyond
				if now.Sub(cluster.InstantOf(b.Since)) > span {
					x.Longer -= b.GPUs
				}
			}
		}
		longer := cluster.GPUCount(0)
		for _, x := range got {
			if x.Jobs != 0 || x.GPUs != 0 || x.Beyond != 0 || x.Longer != 0 {
				rt.Errorf("too much: %+v", x)
			}
		}
		for _, x := range later {
			longer += x.Longer
		}
		for _, x := range BoundOf(jobs, span, now) {
			longer -= x.Longer
		}
		if longer > 0 {
			rt.Errorf("%s more GPUs are bound for longer than twice the span", longer)
		}
	})
}
