package slurm_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

func history(l *live) {
	since := cluster.InstantOf(time.Now()) // long after slurmctld's start: from that on, slurmdbd is asked at every look
	id := job(l.submit("alice", sleeper, "--gres=gpu:v100:2"))
	j := l.runs(id)
	r := act(cluster.Reclaim, j)
	r.Until = in1h()
	requeue := l.apply(r)[0]
	l.apply(act(cluster.Open, l.until(id, "waiting", in(cluster.Waiting))))
	l.until(id, "running again", in(cluster.Running))
	task := l.submit("bob", "", "--array=7", "--gres=gpu:k80:1", "--wrap", "true --seed 3")
	ended := l.until(cluster.TaskID(task, 7), "done", in(cluster.Done))

	s, err := l.client.Observe(l.Context(), since)
	if err != nil || len(s.Attempts) != 0 {
		l.Errorf("after a moment: %d attempts, %v; want none asked for", len(s.Attempts), err)
	}
	mine := func() (first, second, brief cluster.Attempt) {
		s, err := l.client.Observe(l.Context(), since.Add(-10*cluster.Minute))
		if err != nil {
			l.Fatal(err)
		}
		for _, a := range s.Attempts {
			switch {
			case a.ID == id && a.Outcome == "REQUEUED":
				first = a
			case a.ID == id:
				second = a
			case a.ID == cluster.TaskID(task, 7):
				brief = a
			}
		}
		if s.Unchanged && len(s.Attempts) > 0 {
			l.Error("a sighting with attempts says that nothing changed")
		}
		return first, second, brief
	}
	var first, second, brief cluster.Attempt
	l.eventually("the history knows three stretches", func() bool {
		first, second, brief = mine()
		return first.End > 0 && second.Start > 0 && brief.End > 0
	}, func() string { return fmt.Sprintf("%+v %+v %+v", first, second, brief) })
	if first.Start != j.Start || first.Submit != j.Submit || first.User != "alice" || first.Account != "nlp" || !reflect.DeepEqual(first.GPUs, []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(2)}}) {
		l.Errorf("first stretch: %+v; the job was %+v", first, j)
	}
	// Slurm's seconds are whole, read at their middle.
	if apart := first.End.Sub(requeue.Stopped); max(apart, -apart) > cluster.Second/2+requeue.Took/2 {
		l.Errorf("the first attempt ended at %v, and a requeue that took %v is said to have ended it at %v", first.End, requeue.Took, requeue.Stopped)
	}
	if second.End != 0 || second.Outcome != "RUNNING" || second.Start < first.End {
		l.Errorf("second stretch: %+v", second)
	}
	if brief.Outcome != "COMPLETED" || !reflect.DeepEqual(brief.GPUs, []cluster.ModelSize{{Model: "k80", Size: cluster.Whole(1)}}) {
		l.Errorf("array task: %+v", brief)
	}
	// The accounting has the submit line of both versions, the controller of 26.05 only.
	if !strings.HasPrefix(brief.Work, "true:") || brief.Name != "wrap" || ended.Work != "" && ended.Work != brief.Work || l.suite == "forky" && ended.Work == "" {
		l.Errorf("the job did %q, its attempt %q, of name %q", ended.Work, brief.Work, brief.Name)
	}
	past, err := l.client.History(l.Context(), since.Add(-cluster.Hour), cluster.InstantOf(time.Now().Add(time.Minute)))
	if err != nil || !slices.ContainsFunc(past, func(a cluster.Attempt) bool { return a.ID == brief.ID && a.Work == brief.Work }) {
		l.Errorf("the history of the last hour: %+v, %v", past, err)
	}
}
