package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// of makes a job one of a QOS.
func of(qos string) func(*sim.Work) { return func(j *sim.Work) { j.QOS = qos } }

// Inside a virtual cluster a job of a higher level takes its cells from one of a lower level at the end of the term, by
// every chooser, and gives them back when it is over. The lower one goes on with GPUs that others do not use, if there
// are any. Cells of other virtual clusters stay theirs.
func TestAHigherLevelTakesCellsOfItsOwnVC(t *testing.T) {
	for _, chooser := range []string{"astraea", "fifo", "tiresias-l", "gandiva-fair"} {
		w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
		w.Settings.Chooser, w.Settings.Levels = chooser, []cluster.QOSLevel{{QOS: "low", Level: -5}, {QOS: "urgent", Level: 10}}
		w.Settings.StopAllowance, w.Settings.StopOverheadMilli = 0, 0
		others := w.submit("b", 4, forever, of("low"))
		normal := w.submit("a", 4, forever, nil)
		w.Run(20 * minute)
		w.class(normal, cluster.Guaranteed)
		urgent := w.submit("a", 4, 2*hour, of("urgent"))
		low := w.submit("a", 4, forever, of("low"))
		w.Run(5 * minute)
		w.class(normal, cluster.Guaranteed) // until its term ends
		w.Run(20 * minute)
		w.class(urgent, cluster.Guaranteed)
		w.state(normal, cluster.Waiting)
		for id, level := range map[cluster.JobID]int32{normal: 0, low: -5} {
			if r := w.why(id, cluster.ReasonCells); r.Inside == nil || *r.Inside != (cluster.Inside{Level: level, Above: 10}) {
				t.Errorf("%s: job %s of level %d is told %+v", chooser, id, level, r)
			}
		}
		w.class(others, cluster.Guaranteed)
		w.Run(2 * hour)
		w.class(normal, cluster.Guaranteed)
		w.state(low, cluster.Waiting)
		w.class(others, cluster.Guaranteed)
		if n := len(w.done(cluster.Reclaim, others)); n != 0 {
			t.Errorf("%s: a job of b was requeued %d times for jobs of a", chooser, n)
		}
		w.books()
	}
}

// A virtual cluster's own levels replace the general ones, and a QOS without a level has 0.
func TestAVirtualClusterHasItsOwnLevels(t *testing.T) {
	own := vc("b", "node", 1)
	own.Levels = []cluster.QOSLevel{{QOS: "urgent", Level: -1}}
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), own), "a", "b")
	w.Settings.Levels = []cluster.QOSLevel{{QOS: "urgent", Level: 1}}
	w.Settings.StopAllowance, w.Settings.StopOverheadMilli = 0, 0
	plain, urgent := map[string]cluster.JobID{}, map[string]cluster.JobID{}
	for _, tenant := range []string{"a", "b"} {
		plain[tenant], urgent[tenant] = w.submit(tenant, 4, forever, of("batch")), w.submit(tenant, 4, forever, of("urgent"))
	}
	w.Run(4 * hour)
	for tenant, jobs := range map[string]map[string]cluster.JobID{"a": {"runs": urgent["a"], "waits": plain["a"]}, "b": {"runs": plain["b"], "waits": urgent["b"]}} {
		w.class(jobs["runs"], cluster.Guaranteed)
		w.state(jobs["waits"], cluster.Waiting)
		r := w.why(jobs["waits"], cluster.ReasonCells)
		if got := w.Alloc(jobs["waits"]); got > cluster.Times(4, 20*minute) || r.Inside == nil || r.Inside.Above <= r.Inside.Level {
			t.Errorf("in %s the job of the lower level got %.2f GPU-h: %+v", tenant, got.Hours(), r)
		}
	}
	w.books()
}
