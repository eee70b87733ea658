package engine_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A mix of short and long jobs, with jobs that their users hold, cancel and requeue: GPUs are leased once, the accounts add up,
// and each job is charged for what it ran.
func TestChainsAddUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := tinyWorld(t)
		w.History = true // also of attempts that begin and are requeued between two looks
		var all []cluster.JobID
		for range rapid.IntRange(5, 12).Draw(rt, "steps") {
			tenant := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "tenant")
			runs := rapid.SampledFrom([]cluster.Span{second, 2 * second, 2 * second, 4 * second, 9 * second, 40 * second, hour}).Draw(rt, "runs")
			gpus := rapid.SampledFrom([]int{1, 1, 1, 2, 8}).Draw(rt, "gpus")
			all = append(all, w.Submit(tenant, rapid.IntRange(1, 40).Draw(rt, "jobs"), gpus, runs)...)
			w.Run(cluster.Span(rapid.IntRange(1, 9).Draw(rt, "rounds")) * 7 * second)
			id := rapid.SampledFrom(all).Draw(rt, "job")
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0:
				w.Cancel(id)
			case 1:
				if w.Job(id).State == cluster.Waiting {
					w.Hold(id, true)
				}
			case 2:
				w.Requeue(id)
			}
		}
		w.Run(minute)
		for _, id := range all {
			if got, want := w.Alloc(id), w.Received(id); got != want {
				rt.Fatalf("job %s is charged %v, and ran %v", id, got, want)
			}
		}
	})
}
