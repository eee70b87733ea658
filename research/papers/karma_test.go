package papers_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// A tenant that left its GPUs to another has them back later: all but half of the other's share, until both have had the same. Then each
// has its share.
func TestKarmaPaysBack(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "karma", baseline.Options{}), simtest.V100s(2, 4), "a", "b")
	had := map[string]cluster.GPUTime{}
	ids := map[string][]cluster.JobID{}
	part := func(span cluster.Span) float64 { // that a receives
		w.Run(span)
		now, got := map[string]cluster.GPUTime{}, map[string]cluster.GPUTime{}
		for tenant, list := range ids {
			for _, id := range list {
				now[tenant] += w.Alloc(id)
			}
			got[tenant] = now[tenant] - had[tenant]
		}
		had = now
		return float64(got["a"]) / float64(got["a"]+got["b"])
	}
	for range 16 {
		ids["b"] = append(ids["b"], w.Queue("b", 1, simtest.Forever, nil))
	}
	if got := part(4 * hour); got != 0 {
		t.Errorf("alone, b leaves %.2f", got)
	}
	for range 16 {
		ids["a"] = append(ids["a"], w.Queue("a", 1, simtest.Forever, nil))
	}
	part(15 * minute) // the term that has begun
	if got := part(2 * hour); got < 0.7 || got > 0.8 {
		t.Errorf("while it has credits a receives %.2f, want three quarters", got)
	}
	part(10 * hour)
	if got := part(4 * hour); got < 0.45 || got > 0.55 {
		t.Errorf("when both have the same a receives %.2f, want half", got)
	}
}

// Shares follow weights, and no tenant is below half of its share however many credits the others have.
func TestKarmaGuaranteesHalf(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "karma", baseline.Options{}), simtest.V100s(4, 4), "a", "b")
	w.SetShares("a", 3)
	for range 24 {
		w.Queue("a", 1, simtest.Forever, nil)
	}
	w.Run(24 * hour)
	var ids []cluster.JobID
	for range 24 {
		ids = append(ids, w.Queue("b", 1, simtest.Forever, nil))
	}
	w.Run(hour)
	count := func() (n int) {
		for _, id := range ids {
			if w.Job(id).State == cluster.Running {
				n++
			}
		}
		return n
	}
	if got := count(); got != 10 { // all but half of the 12 GPUs of a
		t.Errorf("b, which has borrowed nothing, runs on %d GPUs, want 10", got)
	}
	w.Run(200 * hour)
	if got := count(); got < 3 || got > 5 {
		t.Errorf("in the long run b has %d GPUs, want 4", got)
	}
}
