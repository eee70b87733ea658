package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// A user changes an array of 1,000 jobs again and again, each task by its own record: without a limit that made
// a thousand events.
func TestOneCommandIsOneEvent(t *testing.T) {
	t.Parallel()
	t.Run("forky", func(t *testing.T) { // Slurm 24.11 shows no such change of a waiting array
		r := newRig(t, "forky", usual["forky"], eightGPUs)
		r.govern()
		id := r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:1", "--array=0-999", savesOnTerm)
		r.until("all GPUs are nlp's", time.Minute, func() bool { return r.holds("nlp") == 8 })
		caused := func() (n int) {
			for _, kind := range []string{"aside", "changed_in_lease", "contiguous_dropped", "gate_opened", "idle_reclaim", "profile", "requeue_set"} {
				n += r.events(kind)
			}
			return n
		}
		for i := range 16 {
			for _, update := range []string{"licenses=", "starttime=now", "requeue=0", fmt.Sprintf("comment=rates=k80:%d,saves=term", -1-i), "requeue=1"} {
				_ = r.owner("alice", fmt.Sprintf("%s_[%d-999]", id, i), update) // some are refused
			}
		}
		r.until("fairlease has seen it", time.Minute, func() bool { return caused() > 0 })
		r.goesOn(5, time.Minute)
		t.Logf("%d events of users, %d about events that were left out", caused(), r.events("events_left_out"))
		if n := caused(); n > round.MostNoise {
			t.Errorf("%d events by one user, at most %d may be", n, round.MostNoise)
		}
	})
}
