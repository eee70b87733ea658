package price

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Jobs that are equal but for their gangs, of an entity that is not in turn, are one job to Fill. All levels are those of Gavel's procedure on all jobs.
func TestEqualJobsAreOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := drawInstance(t, 3, rapid.Float64Range(0.5, 4))
		weights, k := drawWeights(t, len(kinds.Gang)), len(kinds.GPUs)
		in, weight := Instance{GPUs: kinds.GPUs}, []float64(nil)
		var of []int // by job: its kind
		for kind, w := range weights {
			w += float64(5 * kind) // no kind has the weight of another
			for range rapid.IntRange(1, 3).Draw(t, "equal jobs") {
				of, weight = append(of, kind), append(weight, w)
				in.Gang = append(in.Gang, float64(rapid.IntRange(1, 4).Draw(t, "gang")))
				in.Speed = append(in.Speed, kinds.Speed[kind*k:(kind+1)*k]...)
			}
		}
		entities := drawEntities(t, len(of))
		few := merge(in, weight, nil, entities)
		groups := 0
		for _, e := range entities {
			var there []int
			for _, m := range e.Jobs {
				if e.FIFO || !slices.Contains(there, of[m]) {
					there, groups = append(there, of[m]), groups+1
				}
			}
		}
		if len(few.in.Gang) != groups {
			t.Errorf("%d groups, want %d", len(few.in.Gang), groups)
		}
		got := filled(t, in, weight, entities)
		feasible(t, in, got.X)
		for m, want := range dumbFill(t, in, weight, entities) {
			if math.Abs(got.Level[m]-want) > 1e-6*max(want, 0.01) {
				t.Errorf("job %d at %.10g, want %.10g", m, got.Level[m], want)
			}
		}
	})
}
