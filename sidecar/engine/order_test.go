package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// By attained service a job that has had little goes before one that has had much, until it has had about as much; then
// they take turns that get longer. By rho they take turns from the first term on. No job starves by either.
func TestTheLeastAttainedGoesFirst(t *testing.T) {
	for _, order := range []cluster.JobOrder{cluster.ByRho, cluster.ByAttained} {
		w := newWorld(t, simtest.Product(), []int{1}, "a")
		w.Settings.JobOrder, w.Settings.StopAllowance, w.Settings.StopOverheadMilli = order, 0, 0
		old := w.submit("a", 1, forever, nil)
		w.Run(4 * hour)
		had := w.Alloc(old)
		young := w.submit("a", 1, forever, nil)
		w.Run(3 * hour)
		if got := w.Alloc(old) - had; (got < cluster.GPUTime(hour/2)) != (order == cluster.ByAttained) {
			t.Errorf("order %q: the old job got %.1f GPU-h beside the young one, which got %.1f", order, got.Hours(), w.Alloc(young).Hours())
		}
		w.Run(21 * hour)
		if a, b := w.Alloc(old)-had, w.Alloc(young); a < cluster.GPUTime(5*hour) || b < cluster.GPUTime(5*hour) {
			t.Errorf("order %q: in a day the old job got %.1f GPU-h and the young one %.1f", order, a.Hours(), b.Hours())
		}
		w.books()
	}
}
