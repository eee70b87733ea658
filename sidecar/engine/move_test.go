package engine_test

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/engine"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// said collects the reasons of jobs that move to another model: those of their status in every round from now
// on, and those of their notices.
func (w *world) said() (verdicts, notices map[cluster.Reason]int) {
	verdicts, notices = map[cluster.Reason]int{}, map[cluster.Reason]int{}
	check := w.Check
	w.Check = func(r loop.Report) {
		check(r)
		count := func(said map[cluster.Reason]int, why cluster.Reason) {
			if why.To != "" {
				said[cluster.Reason{Code: why.Code, Pool: why.Pool, To: why.To, Speed: why.Speed, Trial: why.Trial}]++
			}
		}
		for i := range r.Plan.Statuses {
			count(verdicts, r.Plan.Statuses[i].Reason)
		}
		for i := range r.Plan.Actions {
			if a := &r.Plan.Actions[i]; a.Verb == cluster.Notify {
				count(notices, a.Reason)
			}
		}
	}
	return verdicts, notices
}

// From the notice until its GPUs are free, a moving job reports the other model and its speed there.
func TestAMoveIsSaid(t *testing.T) {
	w := newMarket(t, 1, 1, false, nil, "a")
	w.Loop.Divide = parts(map[string]map[string]cluster.MicroGPU{"a": {"k80": 4}})
	w.Submit("a", 3, 1, forever)
	w.submit("a", 1, forever, func(k *sim.Work) { k.Comment = "kind=x" })
	w.declared(map[string][2]float64{"a/a_user.train": {2, 5}})
	w.Run(5 * term / 2)
	verdicts, notices := w.said()
	w.Run(2 * term)
	if len(verdicts)+len(notices) > 0 {
		t.Fatalf("nobody is to move, and it is said: %v %v", verdicts, notices)
	}
	w.Settings.DivideEvery = 1
	w.Loop.Divide = parts(map[string]map[string]cluster.MicroGPU{"a": {"k80": 1, "v100": 3}})
	w.Run(2 * term)
	want := cluster.Reason{Pool: "k80", To: "v100", Speed: 2500}
	for _, code := range []cluster.Code{cluster.ReasonNotice, cluster.ReasonEnding} {
		if want.Code = code; verdicts[want] < 3 {
			t.Errorf("%s is said %d times of jobs that move: %v", code, verdicts[want], verdicts)
		}
	}
	if got := notices[cluster.Reason{Code: cluster.ReasonNotice, To: "v100", Speed: 2500}]; got != 3 {
		t.Errorf("the notices say %v", notices)
	}
	if w.on("a", "v100") < 3 {
		t.Errorf("%d have moved", w.on("a", "v100"))
	}
	w.books()
}

// All jobs of a type run and have their entitlement. One moves to another model for a trial, and reports that
// reason.
func TestAMoveForATrial(t *testing.T) {
	w := newMarket(t, 1, 1, false, nil, "a", "b")
	w.Loop.Divide = parts(map[string]map[string]cluster.MicroGPU{"a": {"k80": 4}, "b": {"v100": 4}})
	w.Reports = 30 * second
	for range 8 {
		w.submit("b", 1, forever, func(k *sim.Work) { k.Kind, k.Comment, k.Request.Model = "vae", "kind=vae", "v100" })
	}
	w.Run(2 * minute)
	for range 4 {
		w.submit("a", 1, forever, func(k *sim.Work) { k.Kind, k.Comment = "lstm", "kind=lstm" })
	}
	verdicts, notices := w.said()
	w.Run(10 * minute)
	snap, _, err := w.Loop.Preview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ours := cluster.JobKey(9)
	if s, _ := engine.StakeOf(snap, ours); len(s.Trials) != 2 || s.Trials[0] != 0 || s.Trials[1] != ours {
		t.Errorf("the stake says %+v", s)
	}
	w.Run(4 * term)
	if want := (cluster.Reason{Code: cluster.ReasonNotice, Pool: "k80", To: "v100", Trial: true}); verdicts[want] == 0 || len(verdicts) > 2 {
		t.Errorf("said is %v", verdicts)
	}
	if want := (cluster.Reason{Code: cluster.ReasonNotice, To: "v100", Trial: true}); notices[want] != 1 {
		t.Errorf("the notices say %v", notices)
	}
	if !slices.ContainsFunc(w.Last.State.Profiles, func(p cluster.Profile) bool {
		return p.Kind == "a/lstm" && p.Model == "v100" && p.Source == cluster.Observed
	}) {
		t.Errorf("it is not known how fast lstm is on v100: %+v", w.Last.State.Profiles)
	}
	if due := w.due("b", "v100"); due != 4*cluster.WholeGPU {
		t.Errorf("b is due %d of v100, though the trial is over", due)
	}
	w.books()
}
