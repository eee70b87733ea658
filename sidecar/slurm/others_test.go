package slurm

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// TestUseOfEndedJobsWithoutGPUs: the use of a job that concerns no GPU node no longer counts when the job has left the list, though nothing else has changed.
func TestUseOfEndedJobsWithoutGPUs(t *testing.T) {
	f, _ := recordedFull(t, 1000)
	c := f.client()
	f.see(c)
	use := cluster.Use{Account: "nlp", Jobs: 1, CPUs: 8}
	c.seen.records[7777] = &record{id: 7777, states: "RUNNING", use: &use}
	c.seen.last.Limits.Others, c.seen.states = []cluster.Use{use}, 0
	if s := f.see(c); s.Unchanged || len(s.Limits.Others) != 0 {
		t.Errorf("after the job's end: unchanged %v, others use %v", s.Unchanged, s.Limits.Others)
	}
	if s := f.see(c); !s.Unchanged {
		t.Error("a look that finds nothing new is no change")
	}
}
