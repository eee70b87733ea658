package backtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// Behaviour ranks before declarations, declarations before the site's rules.
func TestWhatIsKnownOfSaving(t *testing.T) {
	habits := []cluster.Habit{{Type: cluster.JobType{User: "ann", Command: "train.sh", GPUs: 8}, Restarted: 1, Last: cluster.Restarted},
		{Type: cluster.JobType{User: "ann", Command: "new.sh", GPUs: 8}, Completed: 3}}
	job := func(user, name string, s cluster.Saving) cluster.Job {
		return cluster.Job{User: user, Name: name, QOS: "free", Partitions: []string{"gpu"}, Request: cluster.Request{Size: cluster.Whole(8)}, Declares: s}
	}
	term := cluster.Saving{Manner: cluster.SavesOnTerm}
	jobs := []cluster.Job{job("ann", "train.sh", term), job("bob", "run7", term), job("bob", "run8", cluster.Saving{}), job("eve", "x", cluster.Saving{}), job("eve", "", term)}
	rules := []cluster.SavingRule{{Partition: "long", Manner: cluster.SavesNever}, {QOS: "free", Manner: cluster.SavesEvery, Every: cluster.Hour}}
	habit := func(user, command string, m experiment.Manner, source cluster.SavingSource) experiment.Habit {
		return experiment.Habit{User: user, Command: command, GPUs: 8, Manner: m, Source: source}
	}
	want := []experiment.Habit{habit("ann", "train.sh", experiment.Manner{Saves: sim.Never}, cluster.FromConduct),
		habit("bob", "run#", experiment.Manner{Saves: sim.OnTerm}, cluster.FromDeclaration),
		habit("eve", "x", experiment.Manner{Saves: sim.Periodic, Every: cluster.Hour}, cluster.FromSite)}
	if d := cmp.Diff(want, habitsOf(habits, jobs, rules)); d != "" {
		t.Error(d)
	}
}

// Two tenants share four GPUs; the jobs of one save, those of the other do not. Each kind has its
// own result.
func TestKindsOfJobs(t *testing.T) {
	w, s := observed(t, simtest.Nodes("v", "v100", 1, 4), "early", "late")
	submit := func(user, name string, saves sim.Saves, gpus int, runs cluster.Span) {
		w.Virtual.Submit(sim.Work{Name: name, User: user, Account: user, Partition: "gpu", Request: simtest.Gang(gpus), Runs: runs, Saves: saves})
	}
	submit("early", "never1", sim.Never, 4, 3*cluster.Hour)
	submit("early", "never2", sim.Never, 4, 3*cluster.Hour)
	w.Run(10 * cluster.Second)
	submit("late", "saver1", sim.AtEnd, 4, 2*cluster.Hour)
	submit("late", "saver2", sim.AtEnd, 4, 2*cluster.Hour)
	w.Run(11 * cluster.Hour)
	look(t, w)
	past, err := s.Rounds.Past(t.Context(), cluster.Instant(0).Time(), simtest.Start.Add(cluster.Day).Time())
	if err != nil {
		t.Fatal(err)
	}
	sh := Of(&past, "test")
	sh.Assume(experiment.Only(sim.Never))
	if got := sh.Setup.Saves.String(); got != "as the journal says (1 kinds), else never" {
		t.Errorf("the backtest rests on %q", got)
	}
	r, err := experiment.All(t.Context(), sh.Setups(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	kinds := sh.Kinds(r[0].Kept)
	if len(kinds) != 2 || r[1].Kept != nil {
		t.Fatalf("%+v", kinds)
	}
	lost, requeued := 0.0, 0
	for _, k := range kinds {
		lost, requeued = lost+k.Lost, requeued+k.Requeued
		saves, why := "never", "assumed"
		if k.User == "late" {
			saves, why = "term", "declared"
			if k.Lost > 0 || k.Losers > 0 {
				t.Errorf("jobs that save lose work: %+v", k)
			}
		}
		if k.Jobs != 2 || k.GPUs != 4 || k.Saves != saves || k.Why != why || k.Requeued > 2 || k.Losers > k.Requeued || k.Held <= 0 {
			t.Errorf("%+v, want it to save %s, %s", k, saves, why)
		}
	}
	if want := r[0].Preempted; requeued != want {
		t.Errorf("%d jobs of all kinds were requeued, %d in the scores", requeued, want)
	}
	if lost < r[0].Overhead.Lost.GPUHours {
		t.Errorf("%.2f GPU hours are lost by kind, %.2f in the scores", lost, r[0].Overhead.Lost.GPUHours)
	}
	// In the record there are no losses.
	for _, k := range sh.Kinds(sh.Was.Jobs) {
		if k.Requeued > 0 || k.Lost > 0 {
			t.Errorf("as it was: %+v", k)
		}
	}
	if d := cmp.Diff([]score.Kind{}, sh.Kinds(nil)); d != "" {
		t.Error(d)
	}
}
