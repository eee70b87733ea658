package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// acts counts the grants, notices and reclaims that were carried out.
func (w *world) acts() int {
	n := 0
	for i := range w.did {
		if d := &w.did[i]; !d.Suppressed && slices.Contains([]cluster.Verb{cluster.Grant, cluster.Notify, cluster.Reclaim}, d.Verb) {
			n++
		}
	}
	return n
}

// Starts that fail trip the breaker in the round that finds them. From the next round on nothing is acted on, no job is held, and only an
// operator's word for that trip ends it: neither time nor a new process with the journal's memory.
func TestFailedStartsTripTheBreaker(t *testing.T) {
	set := simtest.Product()
	set.Breaker.FailedStarts.Max = 1
	w := newWorld(t, set, []int{4, 4, 4, 4}, "a", "b")
	w.Run(10 * second)
	w.Refuse = func(*cluster.Job) string { return "Prolog" }
	var ids []cluster.JobID
	for _, tenant := range []string{"a", "b", "a", "b"} {
		ids = append(ids, w.submit(tenant, 4, 10*hour, func(j *sim.Work) { j.User = tenant + "_user" }))
	}
	w.Run(3 * minute)
	at := slices.IndexFunc(w.reports, func(r loop.Report) bool { return r.Plan.State.Breaker.Trip != nil })
	if at < 0 {
		t.Fatal("failed starts of two users do not trip it")
	}
	trip := w.reports[at].Plan.State.Breaker.Trip
	if trip.Kind != cluster.FailedStarts || trip.Users != 2 || trip.Round != w.reports[at].Plan.Round {
		t.Errorf("%+v", trip)
	}
	found := slices.IndexFunc(w.reports, func(r loop.Report) bool {
		failed := 0
		for i := range r.Plan.State.Records {
			failed += min(r.Plan.State.Records[i].Failed, 1)
		}
		return failed > 1
	})
	if found != at {
		t.Errorf("it trips in report %d, and the evidence is in report %d", at, found)
	}
	for k := at + 1; k < len(w.reports); k++ {
		for _, a := range w.reports[k].Plan.Actions {
			if !a.Suppressed && slices.Contains([]cluster.Verb{cluster.Grant, cluster.Notify, cluster.Reclaim, cluster.Gate, cluster.Lock}, a.Verb) {
				t.Fatalf("after the trip, in report %d of %d: %+v", k, at, a)
			}
		}
	}
	w.Refuse = nil
	w.Reconsider()
	w.Run(w.Settings.GateTTL + minute)
	for _, id := range ids {
		w.state(id, cluster.Running)
	}
	w.Loop = &loop.Loop{Cluster: w, Journal: w.journal, Decide: engine.Decide, Configure: w.Loop.Configure}
	before := w.acts()
	w.submit("a", 4, hour, nil)
	w.Run(2 * hour)
	if n := w.acts(); n != before {
		t.Errorf("%d grants, notices and reclaims after the trip", n-before)
	}
	w.Rules.Resumed = cluster.GoAhead{Round: trip.Round, By: "ann", Why: "mended"}
	w.Run(hour)
	if w.acts() == before {
		t.Error("nothing is acted on after an operator resumed")
	}
	told := 0
	for _, r := range w.reports {
		for _, e := range r.Plan.Events {
			if e.Kind == cluster.EventBreaker {
				told++
				if first := strings.Contains(e.Text, "only observes"); first != (told == 1) || !first && !strings.Contains(e.Text, "ann resumed (mended)") {
					t.Errorf("event %d: %s", told, e.Text)
				}
			}
		}
	}
	if told != 2 {
		t.Errorf("%d events of the breaker, want 2", told)
	}
}

// A user whose jobs all fail to start, requeue themselves and fail after stops, beside one who does nothing wrong, ends nothing.
func TestOneUsersJobsTripNothing(t *testing.T) {
	set := simtest.Product()
	set.Breaker = cluster.BreakerRule{FailedStarts: cluster.Bound{Max: 1}, Requeues: cluster.Bound{Max: 1}, BadEnds: cluster.Bound{Max: 1}}
	w := newWorld(t, set, []int{4, 4, 4, 4}, "a", "b")
	w.Run(10 * second)
	w.Refuse = func(*cluster.Job) string { return "Prolog" }
	for range 4 {
		w.submit("a", 4, 10*hour, func(j *sim.Work) { j.User = "bad" })
	}
	w.Run(30 * minute)
	for _, r := range w.reports {
		if r.Plan.State.Breaker.Trip != nil {
			t.Fatalf("one user's jobs trip it: %+v", r.Plan.State.Breaker.Trip)
		}
	}
	failed := 0
	for i := range w.reports[len(w.reports)-1].Plan.State.Records {
		failed += w.reports[len(w.reports)-1].Plan.State.Records[i].Failed
	}
	if failed < 3 {
		t.Errorf("only %d starts failed: that shows nothing", failed)
	}
}
