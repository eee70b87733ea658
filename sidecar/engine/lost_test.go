package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// A slurmctld that was started without its state is an event, once. A restart is none, nor are jobs that slurmdbd knows to have ended in time.
func TestALostStateIsSaid(t *testing.T) {
	for what, c := range map[string]struct {
		restarts, ends bool
		events         int
	}{"lost": {true, false, 1}, "jobs are gone without a start": {false, false, 0}, "they ended in time": {true, true, 0}} {
		w := newWorld(t, simtest.Product(), []int{4, 4}, "a")
		var ids []cluster.JobID
		for range 10 {
			ids = append(ids, w.submit("a", 1, forever, nil))
		}
		w.Run(5 * minute)
		events := 0
		from := w.Now()
		for range 4 {
			w.alter = func(o *cluster.Observation) {
				if c.restarts {
					o.Boot = from
				}
				o.Jobs = slices.DeleteFunc(slices.Clone(o.Jobs), func(j cluster.Job) bool { return slices.Contains(ids, j.ID) })
				if o.Unchanged = false; c.ends {
					for _, id := range ids {
						o.Attempts = append(o.Attempts, cluster.Attempt{ID: id, User: "a_user", Account: "a", Start: from.Add(-minute), End: from, Outcome: "COMPLETED"})
					}
				}
			}
			w.reports = nil
			w.Run(minute)
			for _, r := range w.reports {
				for _, e := range r.Plan.Events {
					if e.Kind != cluster.EventSlurmStateLost {
						continue
					}
					if events++; !strings.Contains(e.Text, "no longer lists: 8 (1, 2, 3, 4, 5, …); that ran and wait again: 0; that waited and are gone: 2.") {
						t.Error(e.Text)
					}
				}
			}
		}
		if events != c.events {
			t.Errorf("%s: %d events, want %d", what, events, c.events)
		}
	}
}
