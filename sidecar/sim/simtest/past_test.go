package simtest

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// The accounting history is learnt from once: not again in later rounds, nor where run times are remembered.
func TestTheHistoryIsLearntFromOnce(t *testing.T) {
	set := Product()
	set.Preset, set.Divide, set.DivideJobs, set.DivideEvery = "gavel:las", "gavel:las", true, 1
	w := New(t, set, Nodes("v", "v100", 1, 8), "a")
	attempt := func(id int64, outcome string, gpus ...cluster.ModelSize) cluster.Attempt {
		start := Start.Add(-cluster.Day)
		return cluster.Attempt{ID: cluster.JobID{ID: id}, User: "u", Account: "a", Work: "train.sh:00000001", Submit: start, Start: start, End: start.Add(cluster.Hour), GPUs: gpus, Outcome: outcome}
	}
	one, asked := cluster.ModelSize{Model: "v100", Size: cluster.Whole(1)}, 0
	other := attempt(9, "COMPLETED", one)
	other.Account = "nobody's"
	w.Loop.Past = func(until cluster.Instant) []cluster.Attempt {
		if asked++; until > w.Now() {
			t.Errorf("asked for the history until %s at %s", until, w.Now())
		}
		return []cluster.Attempt{attempt(1, "COMPLETED", one), attempt(2, "TIMEOUT", one), attempt(3, "REQUEUED", one), attempt(3, "COMPLETED", one),
			attempt(4, "COMPLETED", one, cluster.ModelSize{Model: "k80", Size: cluster.Whole(1)}), attempt(5, "COMPLETED"), other}
	}
	w.Submit("a", 1, 1, cluster.Day)
	for range 3 {
		w.Run(2 * cluster.Minute)
	}
	if n := len(w.Last.State.Completions); n != 1 || asked != 1 {
		t.Fatalf("%d kinds are learnt, asked %d times", n, asked)
	}
	done := 0
	c := &w.Last.State.Completions[0]
	for _, j := range c.Jobs {
		if j.Done {
			done++
		}
	}
	// Nobody knows whether job 3 went on from a save.
	if c.Kind != "a/u.train.sh:00000001" || len(c.Jobs) != 3 || done != 1 {
		t.Errorf("%+v", c)
	}
	again := *w.Loop
	again.Past = func(cluster.Instant) []cluster.Attempt { t.Error("asked again"); return nil }
	w.Loop = &again
	w.Run(2 * cluster.Minute)
}
