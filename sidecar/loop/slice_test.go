package loop

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A job keeps its slice as long as it may be suspended for its partner, or ask for a part of a GPU, and no longer.
func TestTakeSlice(t *testing.T) {
	whole := cluster.Request{Size: cluster.Whole(1), Nodes: 1, PerNode: 1}
	half := cluster.SliceOf(whole, 2, cluster.WholeGPU/2)
	grant := []cluster.Lease{{Job: 1, State: cluster.Granted, Size: half.Size, Nodes: []cluster.Holding{{Node: "n1", Size: half.Size}}}}
	held := []cluster.Holding{{Node: "n1", Model: "v100", Size: half.Size, Index: []int{0}}}
	for _, c := range []struct {
		name    string
		job     cluster.Job
		was     cluster.JobState
		runs    bool
		leases  []cluster.Lease
		want    cluster.Request
		state   cluster.JobState
		dropped bool
		held    bool
	}{
		{name: "it waits for a lease, and still asks for its part", job: cluster.Job{State: cluster.Waiting, Request: half}, want: whole, state: cluster.Waiting},
		{name: "it asks for its GPU again", job: cluster.Job{State: cluster.Waiting, Request: whole}, want: whole, state: cluster.Waiting, dropped: true},
		{name: "its grant was not carried out", job: cluster.Job{State: cluster.Waiting, Request: whole}, leases: grant, want: whole, state: cluster.Waiting},
		{name: "its grant was carried out", job: cluster.Job{State: cluster.Waiting, Request: half}, leases: grant, want: half, state: cluster.Waiting},
		{name: "it is suspended", job: cluster.Job{State: cluster.Suspended, Request: half, Holds: held}, want: half, state: cluster.Running},
		{name: "it is suspended, and Slurm does not say where", job: cluster.Job{State: cluster.Suspended, Request: half}, want: half, state: cluster.Running},
		{name: "it runs, and Slurm does not say where", job: cluster.Job{State: cluster.Running, Request: half}, want: half, state: cluster.Running},
		{name: "it runs on a whole GPU", job: cluster.Job{State: cluster.Running, Request: whole, Holds: []cluster.Holding{{Size: cluster.Whole(1)}}}, want: whole, state: cluster.Running, dropped: true},
		{name: "it was requeued while it was suspended", job: cluster.Job{State: cluster.Waiting, Request: half, Inactive: "held", Restarts: 1}, was: cluster.Running, want: whole, state: cluster.Waiting, held: true},
		{name: "it was, and was seen to end before", job: cluster.Job{State: cluster.Waiting, Request: half, Inactive: "held"}, was: cluster.Completing, want: whole, state: cluster.Waiting, held: true},
		{name: "its user holds it while it waits", job: cluster.Job{State: cluster.Waiting, Request: half, Inactive: "held", Restarts: 1}, was: cluster.Waiting, want: whole, state: cluster.Waiting},
		{name: "its user holds it", job: cluster.Job{State: cluster.Waiting, Request: half, Inactive: "held", Restarts: 1}, was: cluster.Running, runs: true, want: whole, state: cluster.Waiting},
	} {
		r := cluster.Record{Key: 1, State: c.was, Slice: &cluster.Slice{Ask: "gres/gpu:1", Request: whole, Shards: 2, Runs: c.runs}}
		j := c.job
		takeSlice(&j, &r, c.leases, 100)
		if (r.Slice == nil) != c.dropped || j.Request != c.want || j.State != c.state || j.Paused != (c.job.State == cluster.Suspended) || r.Slice != nil && (r.Slice.Held != c.held || j.Ask != "gres/gpu:1") {
			t.Errorf("%s: %+v with slice %+v", c.name, j, r.Slice)
		}
	}
}

// Where its owner lets a job run after its turn, also between two looks, that is counted.
func TestTakenTurns(t *testing.T) {
	const at, minute = 1_000_000, cluster.Minute
	for _, c := range []struct {
		name  string
		was   cluster.Slice
		ran   cluster.Span
		state cluster.JobState
		want  cluster.Slice
	}{
		{"it was suspended just now", cluster.Slice{Ran: minute}, minute + 300, cluster.Suspended, cluster.Slice{Ran: minute + 300, Took: 300, Paused: true}},
		{"it is suspended", cluster.Slice{Ran: minute, Took: 300, Paused: true}, minute, cluster.Suspended, cluster.Slice{Ran: minute, Paused: true}},
		{"it has run meanwhile", cluster.Slice{Ran: minute, Paused: true}, minute + 9000, cluster.Suspended, cluster.Slice{Ran: minute + 9000, Took: 9000, Paused: true, Taken: 1}},
		{"it runs", cluster.Slice{Ran: minute, Paused: true}, minute + 9000, cluster.Running, cluster.Slice{Ran: minute + 9000, Took: 9000, Taken: 1}},
		{"it was not suspended", cluster.Slice{Ran: minute}, minute + 9000, cluster.Running, cluster.Slice{Ran: minute + 9000, Took: 9000}},
		{"it has started, and had no turn yet", cluster.Slice{}, 3000, cluster.Running, cluster.Slice{Ran: 3000, Took: 3000}},
		{"Slurm counts whole seconds", cluster.Slice{Ran: minute}, minute - 300, cluster.Suspended, cluster.Slice{Ran: minute, Paused: true}},
		{"it is its turn", cluster.Slice{Runs: true}, minute, cluster.Running, cluster.Slice{Runs: true}},
	} {
		r := cluster.Record{Slice: &c.was}
		takeSlice(&cluster.Job{State: c.state, Start: 100_000, Suspend: at - 100_000 - c.ran}, &r, nil, at)
		if *r.Slice != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, *r.Slice, c.want)
		}
	}
}

// After a dump was restored, the state file tells of slices, whatever else the journal knows of the job.
func TestRecallSlice(t *testing.T) {
	s := &cluster.Slice{Ask: "gres/gpu:1", Shards: 2}
	had := []cluster.Record{{ID: cluster.JobID{ID: 7}, User: "ann", Submit: 5, Slice: s}}
	for _, c := range []struct {
		user string
		at   cluster.Instant
		want *cluster.Slice
	}{{"ann", 5, s}, {"bob", 5, nil}, {"ann", 4, nil}} {
		r := cluster.Record{Pinned: true}
		m := cluster.State{Had: had, Restored: &cluster.Restored{}}
		if recallSlice(&r, &cluster.Job{ID: cluster.JobID{ID: 7}, User: c.user, Submit: c.at}, &m); r.Slice != c.want {
			t.Errorf("%s, submitted at %d: %+v", c.user, c.at, r.Slice)
		}
	}
}

// Where a dump was restored, a suspended job that agreed to turns and has shards is taken for one whose turn had ended, though nobody knows it: it goes on.
func TestRecallUnknownSlices(t *testing.T) {
	half := cluster.Request{Size: cluster.Size{Devices: 1, Part: cluster.WholeGPU / 2}, Shards: 2, Nodes: 1, MaxNodes: 1}
	for _, c := range []struct {
		name     string
		state    cluster.JobState
		share    bool
		shards   int
		restored bool
		want     bool
	}{
		{"suspended for a partner", cluster.Suspended, true, 2, true, true},
		{"its user did not agree", cluster.Suspended, false, 2, true, false},
		{"it has a whole GPU", cluster.Suspended, true, 0, true, false},
		{"it runs", cluster.Running, true, 2, true, false},
		{"no dump was restored", cluster.Suspended, true, 2, false, false},
	} {
		r, m, q := cluster.Record{}, cluster.State{}, half
		if q.Shards = c.shards; c.restored {
			m.Restored = &cluster.Restored{Knew: 41, Found: 28}
		}
		recallSlice(&r, &cluster.Job{ID: cluster.JobID{ID: 28}, State: c.state, Request: q, Hints: &cluster.Hints{Share: c.share}}, &m)
		if (r.Slice != nil) != c.want || c.want && (r.Slice.Ask != "gres/gpu:1" || r.Slice.Request.Size != cluster.Whole(1) || r.Slice.Shards != 2 || r.Slice.Runs) {
			t.Errorf("%s: %+v", c.name, r.Slice)
		}
	}
}
