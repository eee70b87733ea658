package round_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// tasks are the records of n tasks of an array of a user, and of as many jobs of another.
func tasks(n int) (records []cluster.Record) {
	for i := range n {
		records = append(records, cluster.Record{Key: cluster.JobKey(i + 1), ID: cluster.TaskID(7, int32(i)), User: "alice"})
	}
	for i := range n {
		records = append(records, cluster.Record{Key: cluster.JobKey(n + i + 1), ID: cluster.JobID{ID: int64(100 + i)}, User: "bob"})
	}
	return records
}

// One command on an array is one event, and says of how many jobs.
func TestACommandOnAnArrayIsOneEvent(t *testing.T) {
	records := tasks(1000)
	var events []cluster.Event
	for i := range records[:1000] {
		r := &records[i]
		events = append(events, cluster.Event{Kind: "changed_in_lease", Job: r.Key, Text: fmt.Sprintf("job %s of nlp: its owner changed Requeue", r.ID)},
			cluster.Event{Kind: "gate_opened", Job: r.Key, Text: fmt.Sprintf("job %s of nlp waits without a gate", r.ID)})
	}
	events = append(events, cluster.Event{Kind: "gate_opened", Text: "of no job"}, cluster.Event{Kind: "cells_unsafe", Job: 1, Text: "of no user"})
	got, noise := round.Quiet(cluster.Instant(cluster.Hour), nil, events, records)
	want := []string{"job 7_0 of nlp: its owner changed Requeue (and 999 more of its array)", "job 7_0 of nlp waits without a gate (and 999 more of its array)", "of no job", "of no user"}
	if d := cmp.Diff(want, texts(got)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]cluster.Noise{{User: "alice", Since: cluster.Instant(cluster.Hour), Told: 2}}, noise); d != "" {
		t.Error(d)
	}
}

// Beyond a number of events in an hour, those of a user are counted and left out, and those of another are not. It is said when that
// begins, and how many they were.
func TestEventsOfAUserAreLimited(t *testing.T) {
	records := tasks(100)
	var noise []cluster.Noise
	var all []string
	at := cluster.Instant(10 * cluster.Hour)
	say := func(events ...cluster.Event) {
		var got []cluster.Event
		got, noise = round.Quiet(at, noise, events, records)
		all = append(all, texts(got)...)
	}
	for i := range 100 {
		r := &records[100+i]
		say(cluster.Event{Kind: "profile", Job: r.Key, Text: fmt.Sprintf("%s: odd report %d", r.ID, i)})
		at = at.Add(10 * cluster.Second)
	}
	say(cluster.Event{Kind: "aside", Job: 1, Text: "another user's"})
	if len(all) != round.MostNoise+2 || !strings.HasPrefix(all[round.MostNoise], "user bob has caused 20 events since 1970-01-01T10:00:00.000Z; more are counted and left out until 1970-01-01T11:00") ||
		all[round.MostNoise+1] != "another user's" {
		t.Errorf("%d events:\n%s", len(all), strings.Join(all, "\n"))
	}
	all, at = nil, at.Add(cluster.Hour)
	say()
	if d := cmp.Diff([]string{"user bob caused 80 more events in the hour from 1970-01-01T10:00:00.000Z on; they were counted and left out"}, all); d != "" || noise != nil {
		t.Errorf("%s, %+v", d, noise)
	}
	say(cluster.Event{Kind: "profile", Job: 101, Text: "again"})
	if len(all) != 2 || all[1] != "again" {
		t.Errorf("in the next hour: %q", all)
	}
}

func texts(events []cluster.Event) (out []string) {
	for _, e := range events {
		out = append(out, e.Text)
	}
	return out
}
