package loop

import (
	"reflect"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A former job is a case again if Slurm lists it as not over, or the history has an attempt with its id. It is charged from the last
// round on, and nobody else's list changes.
func TestAFormerJobOfWhichALookShowsMoreIsACaseAgain(t *testing.T) {
	const key = cluster.JobKey(3)
	over := noon.Add(-10 * cluster.Minute)
	former := func(id int64, key cluster.JobKey) cluster.Record {
		return cluster.Record{Key: key, ID: cluster.JobID{ID: id}, User: "alice", Account: "nlp", Tenant: "nlp", Submit: noon.Add(-cluster.Hour), State: cluster.Done, Done: over, ChargedTo: over}
	}
	listed := func(change func(*cluster.Job)) *cluster.Job {
		j := batch(7)
		j.Submit = noon.Add(-cluster.Hour)
		change(&j)
		return &j
	}
	for name, c := range map[string]struct {
		job     *cluster.Job
		attempt *cluster.Attempt
		again   bool
		news    int // other cases
	}{
		"nothing new":               {},
		"its owner requeued it":     {job: listed(func(j *cluster.Job) { j.Restarts = 1 }), again: true},
		"it was never over":         {job: listed(func(*cluster.Job) {}), again: true},
		"it ran again and is over":  {job: listed(func(j *cluster.Job) { j.State, j.Restarts, j.End = cluster.Done, 1, noon.Add(cluster.Minute) }), again: true},
		"still listed as over":      {job: listed(func(j *cluster.Job) { j.State, j.End = cluster.Done, over })},
		"its id is another job's":   {job: listed(func(j *cluster.Job) { j.Submit = noon.Add(cluster.Second) }), news: 1},
		"its id is another user's":  {job: listed(func(j *cluster.Job) { j.User = "bob" }), news: 1},
		"slurmdbd is late":          {attempt: &cluster.Attempt{ID: cluster.JobID{ID: 7}, User: "alice", Account: "nlp", Start: over.Add(-cluster.Hour), End: over}, again: true},
		"slurmdbd tells of another": {attempt: &cluster.Attempt{ID: cluster.JobID{ID: 9}, User: "alice", Account: "nlp", Submit: noon, Start: noon, End: noon.Add(1)}, news: 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := cluster.State{Round: 9, NextKey: 5, Ledger: cluster.Ledger{At: noon}, Former: []cluster.Record{former(7, key), former(6, 4)}}
			m.Records = []cluster.Record{{Key: 2, ID: cluster.JobID{ID: 5}, User: "alice", Account: "nlp", State: cluster.Waiting, Submit: noon}}
			before := m
			before.Records, before.Former = slices.Clone(m.Records), slices.Clone(m.Former)
			seen := sight(noon.Add(cluster.Minute), batch(5))
			if c.job != nil {
				seen.Jobs = append(seen.Jobs, *c.job)
			}
			if c.attempt != nil {
				seen.Attempts = []cluster.Attempt{*c.attempt}
			}
			s, err := Remember(m, seen, nil, everything, settings)
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(s.Cases, func(x cluster.Case) bool { return x.Record.Key == key })
			left := slices.ContainsFunc(s.Former, func(r cluster.Record) bool { return r.Key == key })
			if (at >= 0) != c.again || left == c.again || len(s.Cases) != 1+c.news+min(at+1, 1) {
				t.Fatalf("case %d of %d, among the former ones: %v", at, len(s.Cases), left)
			}
			if at >= 0 && (s.Cases[at].Record.ChargedTo != noon || s.Cases[at].Gone != (c.job == nil)) {
				t.Errorf("it is charged to %s, gone: %v", s.Cases[at].Record.ChargedTo, s.Cases[at].Gone)
			}
			if !slices.IsSortedFunc(s.Cases, func(a, b cluster.Case) int { return int(a.Record.Key - b.Record.Key) }) {
				t.Error("the cases are not in order")
			}
			if !reflect.DeepEqual(m, before) {
				t.Error("the memory has changed")
			}
		})
	}
}
