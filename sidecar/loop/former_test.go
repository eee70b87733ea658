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
		return cluster.Record{Key: key, ID: cluster.JobID{ID: id}, User: "alice", Account: "nlp", Tenant: "nlp", Submit: noon.Add(-cluster.Hour), State: cluster.Done, Done: over, ChargedTo: noon.Add(-cluster.Hour)}
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
		"nothing new":              {},
		"its owner requeued it":    {job: listed(func(j *cluster.Job) { j.Restarts = 1 }), again: true},
		"it was never over":        {job: listed(func(*cluster.Job) {}), again: true},
		"it ran again and is over": {job: listed(func(j *cluster.Job) { j.State, j.Restarts, j.End = cluster.Done, 1, noon.Add(cluster.Minute) }), again: true},
		"still listed as over":     {job: listed(func(j *cluster.Job) { j.State, j.End = cluster.Done, over })},
		"over by a fast clock": {job: listed(func(j *cluster.Job) {
			j.State, j.Submit, j.End = cluster.Done, noon.Add(-cluster.Hour), noon.Add(cluster.Minute)
		}), again: true},
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
			if at >= 0 && (s.Cases[at].Record.ChargedTo != noon.Add(-cluster.Hour) || s.Cases[at].Gone != (c.job == nil)) {
				t.Errorf("it is charged since %s, gone: %v", s.Cases[at].Record.ChargedTo, s.Cases[at].Gone)
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

// Several former jobs are revived at once, also in the first look of a process: that look still counts as its first, before which gates may have
// been opened by fairlease release.
func TestFormerJobsAreRevivedInTheFirstLook(t *testing.T) {
	m := cluster.State{Round: 9, NextKey: 9, Ledger: cluster.Ledger{At: noon}}
	seen := sight(noon.Add(cluster.Minute))
	opened := batch(1) // its gate was shut at the last look
	opened.State, opened.Start = cluster.Running, noon.Add(30*cluster.Second)
	m.Records = []cluster.Record{{Key: 1, ID: opened.ID, User: "alice", Account: "nlp", State: cluster.Waiting, Submit: noon, Gate: noon.Add(cluster.Hour)}}
	seen.Jobs = append(seen.Jobs, opened)
	for id := int64(2); id < 6; id++ {
		j := batch(id)
		m.Former = append(m.Former, cluster.Record{Key: cluster.JobKey(id), ID: j.ID, User: j.User, Account: "nlp", Submit: j.Submit, State: cluster.Done, Done: noon.Add(-10 * cluster.Minute)})
		if j.Restarts = 1; id != 4 {
			seen.Jobs = append(seen.Jobs, j)
		}
	}
	for _, first := range []bool{true, false} {
		d := new(desk)
		if !first {
			if _, err := d.remember(cluster.State{}, sight(noon), nil, everything, settings); err != nil {
				t.Fatal(err)
			}
		}
		s, err := d.remember(m, seen, nil, everything, settings)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Cases) != 4 || len(s.Former) != 1 || s.Former[0].Key != 4 || s.NextKey != 9 {
			t.Fatalf("%d cases, %d former jobs, the next key is %d", len(s.Cases), len(s.Former), s.NextKey)
		}
		if forced := s.Cases[0].Record.Basis.Forced; forced == first {
			t.Errorf("in the first look: %v; somebody opened the gate: %v", first, forced)
		}
	}
}
