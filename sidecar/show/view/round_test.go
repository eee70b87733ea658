package view_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// small is a round of two nodes with four GPUs: job 1 holds two of them, job 2 waits, and a4 is down.
func small() (*cluster.Snapshot, *cluster.Plan) {
	job := func(key cluster.JobKey, state cluster.JobState, holds ...cluster.Holding) cluster.Case {
		id := cluster.JobID{ID: 100 + int64(key)}
		return cluster.Case{Job: cluster.Job{ID: id, User: "ann", State: state, Holds: holds, Request: cluster.Request{Size: cluster.Whole(2)}},
			Record: cluster.Record{Key: key, ID: id, User: "ann", Tenant: "nlp", State: state}, Control: cluster.FullControl}
	}
	held := []cluster.Holding{{Node: "a3", Model: "v100", Size: cluster.Whole(2), Index: []int{0, 1}}}
	snap := &cluster.Snapshot{Round: 9, Now: at, Cases: []cluster.Case{job(1, cluster.Running, held...), job(2, cluster.Waiting)},
		Nodes: []cluster.Node{{Name: "a3", GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}}, {Name: "a4", GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}, Bad: "down"}}}
	plan := &cluster.Plan{Round: 9, At: at, Statuses: []cluster.JobStatus{
		{Job: 1, Reason: cluster.Reason{Code: cluster.ReasonRenewed}}, {Job: 2, Reason: cluster.Reason{Code: cluster.ReasonLost, Chain: "rack"}}}}
	plan.State.Leases = []cluster.Lease{{Job: 1, Term: 2, State: cluster.Active, Class: cluster.Guaranteed, Pool: "v100", Size: cluster.Whole(2), Nodes: held,
		End: at.Add(15 * cluster.Minute), Parts: []cluster.CellPart{{Node: "a3", GPUs: 3}}}}
	plan.State.Ledger.Pools = []cluster.PoolAccount{{Pool: "v100", GPUs: cluster.CountOf(8), BadGPUs: cluster.CountOf(4)}}
	return snap, plan
}

func lead(silent time.Duration) *store.Leader {
	now := at.Time()
	return &store.Leader{Holder: "login1:7", Acquired: now, Renewed: now, Takeover: now.Add(time.Minute), Silent: silent}
}

// A status says whether a daemon lives, how GPUs are used and why some cannot be leased.
func TestStatus(t *testing.T) {
	for _, c := range []struct {
		name   string
		lead   *store.Leader
		change func(*cluster.Snapshot, *cluster.Plan)
		alive  bool
		pool   view.PoolStatus
		want   string
	}{
		{"as it is", lead(time.Second), nil, true, view.PoolStatus{GPUs: cluster.CountOf(8), Busy: cluster.CountOf(2), Idle: cluster.CountOf(2), Bad: cluster.CountOf(4)}, "leases    1 in force, 0 claims; the next ends at 08:15:00 (in 15 min)\n"},
		{"nobody leading", nil, nil, false, view.PoolStatus{GPUs: cluster.CountOf(8), Busy: cluster.CountOf(2), Idle: cluster.CountOf(2), Bad: cluster.CountOf(4)}, "daemon    no daemon leads"},
		{"silent", lead(2 * time.Minute), nil, false, view.PoolStatus{GPUs: cluster.CountOf(8), Busy: cluster.CountOf(2), Idle: cluster.CountOf(2), Bad: cluster.CountOf(4)}, "it is dead or cut off\n"},
		{"a job that opts out", lead(0), func(s *cluster.Snapshot, _ *cluster.Plan) {
			s.Cases[0].Control, s.Cases[0].Left = cluster.Unmanaged, cluster.LeftOptOut
		}, true,
			view.PoolStatus{GPUs: cluster.CountOf(8), Busy: cluster.CountOf(2), Idle: cluster.CountOf(2), Bad: cluster.CountOf(4), Out: cluster.CountOf(2)}, "beyond    GPUs that cannot be leased: 2 held by jobs that opt out of leases\n"},
		{"reserved by others", lead(0), func(s *cluster.Snapshot, _ *cluster.Plan) {
			s.Reservations = []cluster.Reservation{{Nodes: []string{"a3", "a4"}, Start: at, End: at.Add(1)}, {Nodes: []string{"a3"}, Ours: true, Start: at, End: at.Add(1)}}
		}, true, view.PoolStatus{GPUs: cluster.CountOf(8), Busy: cluster.CountOf(2), Idle: cluster.CountOf(2), Bad: cluster.CountOf(4), Out: cluster.CountOf(2)}, "2 reserved by others\n"},
		{"parts reserved by others", lead(0), func(s *cluster.Snapshot, _ *cluster.Plan) {
			s.Reservations = []cluster.Reservation{{Name: "cores", Nodes: []string{"a3"}, Start: at, End: at.Add(1), Parts: []cluster.ReservedPart{{Node: "a3", CPUs: 4}}},
				{Name: "gpus", Nodes: []string{"a3"}, Start: at, End: at.Add(1), Parts: []cluster.ReservedPart{{Node: "a3", CPUs: 4, GPUs: 1}}}}
		}, true, view.PoolStatus{GPUs: cluster.CountOf(8), Busy: cluster.CountOf(2), Idle: cluster.CountOf(2), Bad: cluster.CountOf(4), Out: cluster.CountOf(1)}, "1 reserved by others\n"},
		{"parts reserved by others, and in use", lead(0), func(s *cluster.Snapshot, _ *cluster.Plan) {
			s.Cases[0].Job.Reservation = "gpus"
			s.Reservations = []cluster.Reservation{{Name: "gpus", Nodes: []string{"a3"}, Start: at, End: at.Add(1), Parts: []cluster.ReservedPart{{Node: "a3", CPUs: 4, GPUs: 3}}}}
		}, true, view.PoolStatus{GPUs: cluster.CountOf(8), Busy: cluster.CountOf(2), Idle: cluster.CountOf(2), Bad: cluster.CountOf(4), Out: cluster.CountOf(1)}, "1 reserved by others\n"},
		{"a job of half a GPU, and a claim to an eighth", lead(0), func(s *cluster.Snapshot, p *cluster.Plan) {
			s.Cases[0].Job.Holds[0].Size = cluster.Size{Devices: 1, Part: 500_000}
			s.Cases[0].Control, s.Cases[0].Left = cluster.Unmanaged, cluster.LeftOptOut
			p.State.Claims = []cluster.Claim{{Job: 2, Nodes: []cluster.Holding{{Node: "a3", Model: "v100", Size: cluster.Size{Devices: 1, Part: 125_000}}}}}
		}, true, view.PoolStatus{GPUs: cluster.CountOf(8), Busy: 500_000, Idle: 3_500_000, Bad: cluster.CountOf(4), Claim: 125_000, Out: 500_000}, "v100     8   0.5   3.5    0.125    4           0.5\n"},
		{"a claim", lead(0), func(_ *cluster.Snapshot, p *cluster.Plan) {
			p.State.Claims = []cluster.Claim{{Job: 2, Nodes: []cluster.Holding{{Node: "a3", Model: "v100", Size: cluster.Whole(2)}}}}
		}, true, view.PoolStatus{GPUs: cluster.CountOf(8), Busy: cluster.CountOf(2), Idle: cluster.CountOf(2), Bad: cluster.CountOf(4), Claim: cluster.CountOf(2)}, ", 1 claims;"},
		{"a job that takes the memory of others' GPUs", lead(0), func(s *cluster.Snapshot, _ *cluster.Plan) {
			s.Nodes[0].CPUs, s.Nodes[0].MemoryMB, s.Cases[0].Job.Holds[0].MemoryMB = 4, 100, 80
		}, true, view.PoolStatus{GPUs: cluster.CountOf(8), Busy: cluster.CountOf(2), Idle: cluster.CountOf(2), Bad: cluster.CountOf(4)}, "stranded  1 idle GPU without the CPUs or memory that jobs hold, charged to their tenants; most by job 101 of ann\n"},
		{"a job set aside", lead(0), func(s *cluster.Snapshot, _ *cluster.Plan) { s.Cases[1].Job.Aside = "odd" }, true,
			view.PoolStatus{GPUs: cluster.CountOf(8), Busy: cluster.CountOf(2), Idle: cluster.CountOf(2), Bad: cluster.CountOf(4)}, "the first is job 102 of ann: odd\n"},
		{"a partition in which Slurm preempts", lead(0), preempted, true, view.PoolStatus{GPUs: cluster.CountOf(8), Busy: cluster.CountOf(2), Idle: cluster.CountOf(2), Bad: cluster.CountOf(4)}, "mode      act: acting on big (as configured here)\nobserved  partition gpu: Slurm may requeue its jobs"},
		{"slow nodes", lead(0), func(_ *cluster.Snapshot, p *cluster.Plan) {
			p.State.NodeSpeeds.Slow = []cluster.SlowNode{{Node: "a3", Model: "v100", Percent: 80}, {Node: "a4", Model: "v100", Percent: 62}}
		}, true, view.PoolStatus{GPUs: cluster.CountOf(8), Busy: cluster.CountOf(2), Idle: cluster.CountOf(2), Bad: cluster.CountOf(4)}, "slow      a4 at 62 %, a3 at 80 % of the usual speed of jobs (docs/telemetry.md, \"Slow nodes\"); if the first is at fault: scontrol update nodename=a4 state=drain reason=\"slow: 62 % of the usual speed\"\n"},
		{"slow GPUs", lead(0), func(_ *cluster.Snapshot, p *cluster.Plan) {
			p.State.NodeSpeeds.GPUs = []cluster.SlowGPU{{SlowNode: cluster.SlowNode{Node: "a3", Model: "v100", Percent: 80}, Index: 1}, {SlowNode: cluster.SlowNode{Node: "a4", Model: "v100", Percent: 62}}}
		}, true, view.PoolStatus{GPUs: cluster.CountOf(8), Busy: cluster.CountOf(2), Idle: cluster.CountOf(2), Bad: cluster.CountOf(4)}, "slow      GPU 0 of a4 at 62 %, GPU 1 of a3 at 80 % of the usual speed of jobs (docs/telemetry.md, \"Slow GPUs\"); if the first is at fault: scontrol update nodename=a4 state=drain reason=\"slow: GPU 0 has 62 % of the usual speed\"\n"},
		{"a tripped breaker", lead(0), func(_ *cluster.Snapshot, p *cluster.Plan) {
			p.State.Breaker.Trip = &cluster.Trip{At: at, Kind: cluster.BadEnds, Bound: 10, Count: 11, Jobs: []cluster.Fault{{ID: cluster.TaskID(7, 3)}}, Users: 3}
		}, true, view.PoolStatus{GPUs: cluster.CountOf(8), Busy: cluster.CountOf(2), Idle: cluster.CountOf(2), Bad: cluster.CountOf(4)}, "act: no partition is acted on (as configured here)\nconfig    a change waits to be accepted: 2 leases would end; to see it: fairlease config accept\nbreaker   has tripped at 08:00:00 (now), and nothing is acted on: 11 jobs failed after a stop of fairlease within an hour, and at most 10 may (breaker.bad_ends): jobs of 3 users, the last ones 7_3; when the cause is found: fairlease resume"},
	} {
		t.Run(c.name, func(t *testing.T) {
			snap, plan := small()
			if c.change != nil {
				c.change(snap, plan)
			}
			st := view.StatusOf(c.lead, snap, plan, nil)
			st.Mode, st.Acting = "act", []string{"big", "gpu"}
			if st.Tripped != nil {
				st.Waits = "2 leases would end"
			}
			if st.Alive != c.alive || len(st.Pools) != 1 || st.Round != 9 || st.Jobs[cluster.Waiting] != 1 || st.Reasons[cluster.ReasonLost] != 1 || st.Reasons[cluster.ReasonRenewed] != 0 {
				t.Fatalf("%+v", st)
			}
			got := st.Pools[0]
			if c.pool.Pool, c.pool.OutBy, got.OutBy = "v100", nil, nil; got.Out != c.pool.Out || got.Busy != c.pool.Busy || got.Idle != c.pool.Idle || got.Bad != c.pool.Bad || got.Claim != c.pool.Claim {
				t.Errorf("%+v, want %+v", got, c.pool)
			}
			var out bytes.Buffer
			st.Write(&view.Page{Out: &out, Now: at})
			if !strings.Contains(out.String(), c.want) {
				t.Errorf("want %q in\n%s", c.want, &out)
			}
		})
	}
}

// A user who may not read whole rounds reads its own tenants' numbers, with a note that there may
// be more.
func TestOwnStatus(t *testing.T) {
	own := view.Own{Round: 9, At: at.Time(), Jobs: []store.Count{{State: string(cluster.Waiting), Jobs: 3}, {Code: string(cluster.ReasonLost), Jobs: 2}},
		Leases:    []store.Lease{{Ends: at.Add(cluster.Hour).Time()}, {Ends: at.Add(cluster.Minute).Time()}},
		Overrides: []store.Override{{Until: at.Add(cluster.Minute).Time()}, {Until: at.Time()}}}
	st := view.OwnStatusOf(lead(0), &own)
	if st.Jobs[cluster.Waiting] != 3 || st.Reasons[cluster.ReasonLost] != 2 || st.Leases != 2 || st.Overrides != 1 || !st.Next.Equal(at.Add(cluster.Minute).Time()) {
		t.Errorf("%+v", st)
	}
	var out bytes.Buffer
	st.Write(&view.Page{Out: &out, Now: at})
	if text := out.String(); !strings.Contains(text, "may not see others") || strings.Contains(text, "POOL") || strings.Contains(text, "claims") {
		t.Error(text)
	}
	if st := view.OwnStatusOf(nil, &view.Own{}); st.At != nil || st.Alive {
		t.Errorf("without a round: %+v", st)
	}
}

func preempted(s *cluster.Snapshot, _ *cluster.Plan) {
	s.Preempted = []cluster.Preempted{{Partition: "gpu", Why: "Slurm may requeue its jobs"}}
}

// Decisions list news: a lease that continues is none.
func TestDecisions(t *testing.T) {
	snap, plan := small()
	show := func() string {
		var out bytes.Buffer
		(&view.Decisions{Snapshot: snap, Plan: plan}).Write(&view.Page{Out: &out, Form: view.Form{Parsable: true, NoHeader: true}})
		return out.String()
	}
	if got := show(); !strings.HasPrefix(got, "renew|101|nlp|ann|2|v100|a3|08:15:00|") || strings.Count(got, "\n") != 1 {
		t.Error(got)
	}
	snap.Cases[0].Control = cluster.ObserveOnly
	if got := show(); !strings.HasPrefix(got, "would renew|101|") {
		t.Error(got)
	}
	plan.Statuses[0].Reason.Code = cluster.ReasonHolding
	plan.Actions = []cluster.Action{{Verb: cluster.Grant, Job: 2, Suppressed: true, Nodes: []string{"a3"}, Reason: cluster.Reason{Pool: "v100"}}, {Verb: cluster.Gate}}
	if got := show(); !strings.HasPrefix(got, "grant|102|nlp|ann|2|v100|a3||") || strings.Count(got, "\n") != 1 {
		t.Error(got)
	}
	var out bytes.Buffer
	snap.Settings.Schedule = &cluster.Schedule{Name: "night", Until: plan.At.Add(cluster.Hour), Sets: "lease.term 1h"}
	snap.Settings.Term = cluster.Hour
	snap.Settings.Tuned = &cluster.Tuned{Term: 20 * cluster.Minute, File: 15 * cluster.Minute, Since: plan.At.Add(-cluster.Day), By: "ann", Why: "as proposed"}
	(&view.Decisions{Snapshot: snap, Plan: plan, Outcomes: []cluster.Outcome{{OK: true}, {}, {Skipped: true}}}).Write(&view.Page{Out: &out})
	if !strings.Contains(out.String(), "\nSchedule: night until 2027-01-15 09:00:00: lease.term 1h\nTerm:    20m (now 1h, by the schedule) in place of 15m since 2027-01-14 08:00:00, by ann: as proposed\nActions: gate 1, suppressed 1 (the mode forbids them), failed 1\nJobs:    ") {
		t.Error(out.String())
	}
}

// Cells show the users of their GPUs, and faults.
func TestCells(t *testing.T) {
	snap, plan := small()
	snap.Cells = &cluster.Cells{Types: []cluster.CellType{{Name: "rack", Child: "node", Split: 2}, {Name: "node", Child: "gpu", Split: 4, Node: true}, {Name: "gpu", Model: "v100"}},
		Tops: []cluster.TopCell{{Name: "r1", Type: "rack", Nodes: []string{"a3", "a4"}}}}
	plan.Cells = &cluster.CellReport{Bound: []cluster.BoundCell{{VC: "nlp", Chain: "rack", Type: "node", Used: 2, Holders: []cluster.JobKey{1}, Parts: []cluster.CellPart{{Node: "a3", GPUs: 15}}}},
		Views: []cluster.CellView{{VC: "nlp", Chain: "rack", Type: "node", Reserved: 2, Bound: 1, Lost: 1}, {VC: "vision", Chain: "rack", Type: "node"}}}
	c := view.CellsOf(snap, plan)
	var out bytes.Buffer
	c.Write(&view.Page{Out: &out, Now: at}, true)
	for _, want := range []string{"chain rack  8 GPUs: 4 bound, 4 bad\n", "GPU 0-1  bound to nlp, 101 of ann (nlp), guaranteed until 08:15:00\n", "GPU 2-3  bound to nlp\n", "a4  bad: down\n",
		"  node of chain rack, 4 GPUs: 2 reserved, 1 bound, 1 lost to bad hardware\n    a3: 101 of ann (nlp), guaranteed until 08:15:00, 2 of 4 GPUs used\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, &out)
		}
	}
	text, err := json.Marshal(c)
	if err != nil || !strings.Contains(string(text), `"holder":{"job":1,"slurm_id":"101","user":"ann","tenant":"nlp","right":"guaranteed","gpus":2,`) {
		t.Errorf("%v: %s", err, text)
	}
	if c.Only("astro") || !view.CellsOf(snap, plan).Only("vision") {
		t.Error("a virtual cluster is taken for another")
	}
	x := store.Explanation{Job: store.Job{Key: 2}, Status: &plan.Statuses[1], Newest: store.Edge{Snapshot: *snap, Plan: *plan}}
	if got := view.Explain(x); len(got.Hardware) != 1 || got.Hardware[0] != "a4: down" || got.Words == "" || got.Models != nil || got.Stop != nil {
		t.Errorf("%+v", got)
	}
}
