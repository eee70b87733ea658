package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// A tenant that opens the gates of its jobs while the other one is away for minutes binds no more than by its turns: the other one has its due
// soon after its return.
func TestOpenedGatesWhileOthersAreAway(t *testing.T) {
	w := withLicense(t, true, []int{4, 4, 4, 4}, "a", "b")
	for range 8 {
		w.submit("a", 1, 20*minute, nil)
		w.submit("b", 1, 20*minute, nil)
	}
	w.Run(hour)
	var mine []cluster.JobID
	for _, gpus := range []int{4, 4, 4, 2, 1, 1} {
		mine = append(mine, w.submit("a", gpus, forever, func(j *sim.Work) { neverSaves(j); j.NoRequeue = true; j.Limit = 90 * hour }))
	}
	for range 30 {
		w.Run(10 * second)
		for _, id := range mine {
			if w.Job(id).State == cluster.Waiting {
				w.TakeOff(id)
			}
		}
	}
	w.Run(40 * minute)
	var second []cluster.JobID
	for range 16 {
		second = append(second, w.submit("b", 1, 100*hour, nil))
	}
	w.Run(hour)
	if got := w.holdsIn(second); got < 7 {
		t.Errorf("the other tenant has %d GPUs an hour after its return, want its 8 less bind.max; %d are held by the first", got, w.holdsIn(mine))
	}
}
