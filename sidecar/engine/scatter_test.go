package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// With opt_out.contiguous: override, a job with --contiguous waits for a lease, loses the option with its grant, and is stopped like
// others. With charge it keeps option and GPUs.
func TestContiguousIsTakenAway(t *testing.T) {
	t.Parallel()
	for _, word := range []loop.OptOut{loop.Override, loop.Charge} {
		set := simtest.Product()
		set.Interval = minute
		w := newWorld(t, set, []int{4, 4}, "a", "b")
		w.Gate = 10 * minute
		w.Rules.OptOut.Contiguous = word
		var first []cluster.JobID
		for range 2 {
			first = append(first, w.submit("a", 4, 100*hour, func(j *sim.Work) {
				j.Request.Unplaceable, j.Saves, j.Comment = cluster.Contiguous, sim.OnTerm, "saves=term"
			}))
		}
		w.Run(30 * minute)
		w.submit("b", 4, hour, nil)
		w.Run(2 * hour)
		for _, id := range first {
			grants, told := w.done(cluster.Grant, id), w.toldOf("contiguous_dropped", id)
			if word == loop.Charge {
				if len(w.done(cluster.Reclaim, id)) > 0 || told > 0 {
					t.Errorf("with %s, job %s was stopped, or %d events say that it lost the option", word, id, told)
				}
				continue
			}
			if len(grants) == 0 || !grants[0].Scatter || told != 1 || w.Job(id).Request.Unplaceable != "" {
				t.Fatalf("job %s got %d grants, and %d events say that it lost the option: %+v", id, len(grants), told, w.Job(id).Request)
			}
			for _, g := range grants[1:] {
				if g.Scatter {
					t.Errorf("job %s loses the option twice", id)
				}
			}
			if b := w.Record(id).Basis; b != nil && b.Unplaceable != "" {
				t.Errorf("the lease of job %s was granted on %+v", id, *b)
			}
		}
		if stops := len(w.done(cluster.Reclaim)); (stops > 0) != (word == loop.Override) {
			t.Errorf("with %s, %d jobs were stopped", word, stops)
		}
		w.books()
	}
}
