package engine_test

import (
	"math/rand/v2"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// To opt out is never better than to say nothing. Of two equal tenants that want more than all GPUs all the time, the first comes
// when the cluster is idle. It receives with jobs that cannot be stopped at most what it receives with the same jobs as they are, and
// an hour of its largest job more. Neither kind saves.
func TestOptingOutIsNeverBetter(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	for seed := range seeds.Of(t, 4) {
		plain := received(t, seed, func(*sim.Work) {})
		for way, opts := range map[string]func(*sim.Work){
			"no requeue": func(j *sim.Work) { j.NoRequeue = true },
			"contiguous": func(j *sim.Work) { j.Request.Unplaceable = cluster.Contiguous },
		} {
			if opted := received(t, seed, opts); opted > plain+cluster.Times(4, hour) {
				t.Errorf("seed %d, %s: %.0f GPU hours, and %.0f as plain jobs", seed, way, opted.Hours(), plain.Hours())
			}
		}
	}
}

// received gives what the first comer's jobs receive in 60 hours from the second's return on.
func received(t *testing.T, seed uint64, opts func(*sim.Work)) (sum cluster.GPUTime) {
	rng := rand.New(rand.NewPCG(seed, 7))
	set := simtest.Product()
	set.Interval = minute
	w := newWorld(t, set, []int{4, 4, 4, 4}, "a", "b")
	w.Gate, w.License = 10*minute, 1_000_000
	for range 12 { // both were here before
		w.submit("a", 1, 30*minute, neverSaves)
		w.submit("b", 1, 30*minute, neverSaves)
	}
	w.Run(2 * hour)
	var mine []cluster.JobID
	ask := func(tenant string) cluster.JobID {
		gpus, runs := []int{1, 1, 2, 4}[rng.IntN(4)], cluster.Span(1+rng.IntN(12))*hour
		return w.submit(tenant, gpus, runs, func(j *sim.Work) {
			if neverSaves(j); tenant == "a" {
				opts(j)
			}
		})
	}
	for range 24 {
		mine = append(mine, ask("a"))
	}
	w.Run(hour)
	for _, id := range mine {
		sum -= w.Received(id)
	}
	for range 60 {
		mine = append(mine, ask("a"), ask("a"))
		ask("b")
		ask("b")
		w.Run(hour)
	}
	for _, id := range mine {
		sum += w.Received(id)
	}
	return sum
}
