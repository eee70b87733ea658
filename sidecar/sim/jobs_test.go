package sim_test

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

func (s *stage) look() cluster.Observation {
	s.t.Helper()
	seen, err := s.Observe(context.Background(), 0)
	if err != nil {
		s.t.Fatal(err)
	}
	return seen
}

func TestHowJobsEnd(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*sim.Work)
		outcome string
		end     cluster.Span
		worked  cluster.Span
	}{
		{"done", nil, "COMPLETED", 10 * minute, 10 * minute},
		{"as the trace says", func(w *sim.Work) { w.Outcome = "FAILED" }, "FAILED", 10 * minute, 10 * minute},
		{"limit", func(w *sim.Work) { w.Limit = 4 * minute }, "TIMEOUT", 4 * minute, 4 * minute},
		{"done as its limit ends", func(w *sim.Work) { w.Limit = 10 * minute }, "COMPLETED", 10 * minute, 10 * minute},
		{"cancelled while it runs", func(w *sim.Work) { w.Cancel = start.Add(3 * minute) }, "CANCELLED", 3 * minute, 3 * minute},
		{"cancelled while it waits", func(w *sim.Work) { w.Begin, w.Cancel = start.Add(hour), start.Add(3*minute) }, "CANCELLED", 3 * minute, 0},
		{"cancelled too late", func(w *sim.Work) { w.Cancel = start.Add(11 * minute) }, "COMPLETED", 10 * minute, 10 * minute},
		{"cancelled while it waits for room", func(w *sim.Work) { w.Request.Size, w.Request.PerNode, w.Cancel = cluster.Whole(5), 5, start.Add(hour) }, "CANCELLED", hour, 0},
		{"no work at all", func(w *sim.Work) { w.Runs = 0 }, "COMPLETED", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := onStage(t)
			id := s.Submit(work(10*minute, c.change))
			s.at(2 * hour)
			s.became(id, sim.Event{What: sim.Ended, Outcome: c.outcome, At: cluster.Instant(c.end), Worked: c.worked})
			if j := s.Job(id); j.State != cluster.Done || j.Outcome != c.outcome || j.End != start.Add(c.end) {
				t.Errorf("it ended %+v", j)
			}
			if other := s.Submit(work(minute, func(w *sim.Work) { w.Request = simtest.Gang(4) })); true {
				s.at(3 * hour)
				if s.Job(other).State != cluster.Done {
					t.Error("it did not give back its GPUs")
				}
			}
		})
	}
}

func TestANodeThatFails(t *testing.T) {
	s := onStage(t)
	s.Fail(sim.Failure{Node: "n01", At: start.Add(10 * minute), Back: start.Add(30 * minute)})
	saves := s.Submit(work(20*minute, func(w *sim.Work) { w.Saves, w.Every = sim.Periodic, 6*minute }))
	surprised := s.Submit(work(20*minute, func(w *sim.Work) { w.Saves = sim.AtEnd }))
	kept := s.Submit(work(20*minute, func(w *sim.Work) { w.NoRequeue = true }))
	person := s.Submit(work(20*minute, func(w *sim.Work) { w.Interactive = true }))
	s.at(20 * minute)
	if n := s.look().Nodes[0]; n.Bad == "" {
		t.Error("the node is down and does not look so")
	}
	s.at(2 * hour)
	for _, id := range []cluster.JobID{kept, person} {
		s.became(id, sim.Event{What: sim.Ended, Outcome: "NODE_FAIL", At: after(10, 0), Worked: span(10, 0)})
	}
	s.became(surprised, sim.Event{What: sim.Requeued, Outcome: "REQUEUED", At: after(10, 0), Lost: span(10, 0)},
		sim.Event{What: sim.Ended, Outcome: "COMPLETED", Start: after(30, 0), At: after(50, 0), Worked: span(20, 0)})
	s.became(saves, sim.Event{What: sim.Requeued, Outcome: "REQUEUED", At: after(10, 0), Worked: span(6, 0), Lost: span(3, 55), Saving: 5 * second},
		sim.Event{What: sim.Ended, Outcome: "COMPLETED", Start: after(30, 0), At: after(44, 43), Worked: span(14, 0), Saving: 10 * second, Cold: 30 * second, Loading: 3 * second})
}

func TestFailuresAreDrawn(t *testing.T) {
	nodes := simtest.Nodes("n", "v100", 50, 8)
	end := start.Add(365 * cluster.Day)
	got := sim.Failures(7, nodes, start, end, 30*cluster.Day, 6*hour)
	if !slices.Equal(got, sim.Failures(7, nodes, start, end, 30*cluster.Day, 6*hour)) || slices.Equal(got, sim.Failures(8, nodes, start, end, 30*cluster.Day, 6*hour)) {
		t.Error("the same seed must draw the same failures, and another one others")
	}
	if fewer := sim.Failures(7, nodes[:10], start, end, 30*cluster.Day, 6*hour); !slices.Equal(fewer, got[:len(fewer)]) {
		t.Error("what a node does depends on the others")
	}
	var down cluster.Span
	for i, f := range got {
		if f.Back <= f.At || f.At <= start || f.At >= end || i > 0 && got[i-1].Node == f.Node && f.At <= got[i-1].Back {
			t.Fatalf("failure %+v", f)
		}
		down += f.Back.Sub(f.At)
	}
	// 50 nodes for 365 days with 30.25 days a cycle: 603 failures, give or take 4 deviations.
	if mean := down / cluster.Span(len(got)); len(got) < 505 || len(got) > 701 || mean < 5*hour || mean > 7*hour {
		t.Errorf("%d failures of %s each, want about 603 of 6 hours", len(got), mean)
	}
}

// The submit plugin gates new batch jobs, and marks them.
func TestTheSubmitPluginsGate(t *testing.T) {
	s := onStage(t)
	s.Gate = 10 * minute
	gated := s.Submit(work(hour, nil))
	later := s.Submit(work(hour, func(w *sim.Work) { w.Begin = start.Add(20 * minute) }))
	person := s.Submit(work(hour, func(w *sim.Work) { w.Interactive = true }))
	s.at(minute)
	if j := s.Job(gated); j.State != cluster.Waiting || !j.Marked || j.MarkedBegin != 0 || j.Eligible != start.Add(10*minute) {
		t.Errorf("a batch job: %+v", j)
	}
	if j := s.Job(later); !j.Marked || j.MarkedBegin != start.Add(20*minute) || j.Eligible != j.MarkedBegin {
		t.Errorf("a job with a begin time: %+v", j)
	}
	if j := s.Job(person); j.State != cluster.Running || j.Marked {
		t.Errorf("an interactive job: %+v", j)
	}
	s.at(10 * minute) // it was not extended
	if j := s.Job(gated); j.Start != start.Add(10*minute) {
		t.Errorf("its gate has lapsed: %+v", j)
	}
}

// One record stands for the waiting tasks of an array until they are changed singly.
func TestAnArrayIsOneRecord(t *testing.T) {
	s := onStage(t)
	ids := s.SubmitArray(work(hour, func(w *sim.Work) { w.Begin = start.Add(hour) }), 4)
	base := ids[0].ID
	record := func(i int) (int64, bool) { j := s.Job(ids[i]); return j.Record, j.UnsplitArray }
	for i := range ids {
		if r, whole := record(i); r != base || !whole {
			t.Errorf("task %d has record %d, whole %t", i, r, whole)
		}
	}
	until := start.Add(2 * hour)
	s.do(cluster.Action{Verb: cluster.Gate, ID: ids[0], Record: base, UnsplitArray: true, Array: true, Until: until})
	for i := range ids {
		if s.Job(ids[i]).Eligible != until {
			t.Errorf("task %d has not moved with the gate of its array", i)
		}
	}
	s.do(cluster.Action{Verb: cluster.Grant, ID: ids[1], Record: base, UnsplitArray: true, Nodes: []string{"n01"}})
	s.do(cluster.Action{Verb: cluster.Gate, ID: ids[2], Record: base, UnsplitArray: true, Until: until.Add(hour)})
	one, _ := record(1)
	two, _ := record(2)
	if _, whole := record(1); whole || one == base || one == two || two == base || s.Job(ids[1]).State != cluster.Running {
		t.Errorf("granted alone: %+v", s.Job(ids[1]))
	}
	if r, whole := record(0); r != base || !whole || s.Job(ids[0]).Eligible != until || s.Job(ids[2]).Eligible != until.Add(hour) {
		t.Errorf("the others: %+v", s.Job(ids[0]))
	}
	s.do(cluster.Action{Verb: cluster.Open, ID: ids[3], Record: base, UnsplitArray: true, Array: true})
	s.Advance(s.Now())
	for _, i := range []int{0, 3} {
		if s.Job(ids[i]).State != cluster.Running {
			t.Errorf("opened with its array: %+v", s.Job(ids[i]))
		}
	}
	zero, _ := record(0)
	three, whole := record(3)
	if zero == base || three != base || whole { // the last keeps the array's
		t.Errorf("records %d and %d of array %d", zero, three, base)
	}
}

// Memory grows with the active jobs, not with past ones.
func TestWhatIsDoneIsForgotten(t *testing.T) {
	s := onStage(t)
	s.Forget = true
	id := s.Submit(work(minute, nil))
	s.at(4 * minute)
	if seen := s.look(); len(seen.Jobs) != 1 || seen.Jobs[0].State != cluster.Done {
		t.Fatalf("just done: %+v", seen.Jobs)
	}
	s.at(span(5, 59))
	if len(s.look().Jobs) != 1 || s.Job(id).ID != id {
		t.Error("Slurm lists a job for five minutes after its end")
	}
	s.at(6 * minute)
	if len(s.look().Jobs) != 0 || s.Job(id).ID == id {
		t.Error("it is still there")
	}
	seen, err := s.Observe(context.Background(), start) // its attempt is reported again for a longer pause
	if err != nil || len(seen.Attempts) != 1 || seen.Attempts[0].ID != id {
		t.Errorf("attempts %+v: %v", seen.Attempts, err)
	}
	if seen, err = s.Observe(context.Background(), s.Now()); err != nil || len(seen.Attempts) != 0 {
		t.Errorf("attempts %+v: %v", seen.Attempts, err)
	}
	if out := s.Apply(context.Background(), []cluster.Action{{Verb: cluster.Reclaim, ID: id}}); out[0].OK {
		t.Error("what is forgotten cannot be requeued")
	}
}

// Lent lists equal copied ones, and a job with the version of the last look has not changed since.
func TestALookThatLends(t *testing.T) {
	s := onStage(t)
	s.Lend = true
	last := map[cluster.JobID]cluster.Job{}
	check := func() {
		t.Helper()
		seen := s.look()
		for _, j := range seen.Jobs {
			now := s.Job(j.ID)
			if now.Version = j.Version; !reflect.DeepEqual(now, j) {
				t.Errorf("shown %+v\nis    %+v", j, now)
			}
			if was := last[j.ID]; j.Version == 0 || j.Version == was.Version && !reflect.DeepEqual(was, j) {
				t.Errorf("%+v has become\n%+v", was, j)
			}
			last[j.ID] = j
		}
	}
	first := s.Submit(work(10*minute, func(w *sim.Work) { w.Request = simtest.Gang(4) }))
	check()
	second := s.Submit(work(minute, nil))
	tasks := s.SubmitArray(work(minute, nil), 2)
	check()
	s.reclaim(first)
	check()
	s.Hold(second, true)
	s.do(cluster.Action{Verb: cluster.Grant, ID: tasks[0], Nodes: []string{"n01"}, Reservation: cluster.ReservationPrefix + "x"})
	check()
	s.do(cluster.Action{Verb: cluster.Release, ID: tasks[0], Reservation: cluster.ReservationPrefix + "x"})
	check()
	for m := range cluster.Span(30) {
		s.at(m * minute)
		check()
	}
	if n := len(s.look().Jobs); n != 1 { // the held one
		t.Errorf("%d jobs are listed, want 1", n)
	}
}
