package sim_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

const (
	start  = simtest.Start
	second = cluster.Second
	minute = cluster.Minute
	hour   = cluster.Hour
)

// stage is a virtual cluster that a test controls, with its events.
type stage struct {
	*sim.Virtual
	t      *testing.T
	events []sim.Event
}

func onStage(t *testing.T, nodes ...cluster.Node) *stage {
	if len(nodes) == 0 {
		nodes = simtest.Nodes("n", "v100", 1, 4)
	}
	s := &stage{Virtual: sim.NewVirtual(start, nodes, nil), t: t}
	s.Costs = sim.Costs{Save: 5 * second, Load: 3 * second, ColdStart: 30 * second, Completing: second, RequeueDelay: 2 * minute}
	s.Term = 5 * minute
	s.Watch = func(e sim.Event) { s.events = append(s.events, e) }
	return s
}

// work is a one-GPU job with changes.
func work(runs cluster.Span, change func(*sim.Work)) sim.Work {
	w := sim.Work{User: "u", Account: "a", Partition: "gpu", Request: simtest.Gang(1), Runs: runs}
	if change != nil {
		change(&w)
	}
	return w
}

// at lets time pass until so long after the start.
func (s *stage) at(after cluster.Span) { s.Advance(start.Add(after)) }

func (s *stage) do(a cluster.Action) {
	s.t.Helper()
	if out := s.Apply(context.Background(), []cluster.Action{a}); !out[0].OK {
		s.t.Fatalf("%s: %s", a.Verb, out[0].Error)
	}
}

// reclaim requeues a job now, gated for two seconds.
func (s *stage) reclaim(id cluster.JobID) {
	s.t.Helper()
	s.do(cluster.Action{Verb: cluster.Reclaim, ID: id, Until: s.Now().Add(2 * second)})
}

// attempts gives a job's attempts, without what is equal in all.
func (s *stage) attempts(id cluster.JobID) []sim.Event {
	var out []sim.Event
	for _, e := range s.events {
		if e.Job == id && (e.What == sim.Requeued || e.What == sim.Ended) {
			e.At, e.Start, e.Job, e.Work, e.Holds = e.At-start, max(e.Start-start, 0), cluster.JobID{}, nil, nil
			out = append(out, e)
		}
	}
	return out
}

func (s *stage) became(id cluster.JobID, want ...sim.Event) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.attempts(id)); diff != "" {
		s.t.Errorf("the attempts of job %s (-want +got):\n%s", id, diff)
	}
}

func after(m, s int) cluster.Instant { return cluster.Instant(span(m, s)) }
func span(m, s int) cluster.Span     { return cluster.Span(m)*minute + cluster.Span(s)*second }

// A job of 20 minutes gets a notice after 14 that its lease ends after 15, is requeued then, and
// starts again two seconds later. A save takes 5 s, a load 3 s, a cold start 30 s.
func TestWhatAReclaimCosts(t *testing.T) {
	first := sim.Event{What: sim.Requeued, Outcome: "REQUEUED", At: after(15, 0), Reclaimed: true}
	last := sim.Event{What: sim.Ended, Outcome: "COMPLETED", Start: after(15, 2), Cold: 30 * second, Loading: 3 * second}
	for _, c := range []struct {
		name          string
		saves         sim.Saves
		every         cluster.Span
		first, second func(e *sim.Event)
	}{
		{"always", sim.Always, 0,
			func(e *sim.Event) { e.Worked = span(15, 0) },
			func(e *sim.Event) { e.Worked, e.At = span(5, 0), after(20, 35) }},
		{"at the end", sim.AtEnd, 0,
			func(e *sim.Event) { e.Worked, e.Saving = span(14, 55), 5*second },
			func(e *sim.Event) { e.Worked, e.At = span(5, 5), after(20, 40) }},
		{"at the notice", sim.AtNotice, 0, // the 55 s after the save are lost
			func(e *sim.Event) { e.Worked, e.Saving, e.Lost = span(14, 0), 5*second, 55*second },
			func(e *sim.Event) { e.Worked, e.At = span(6, 0), after(21, 35) }},
		{"each term of 5 minutes", sim.EachTerm, 0, // saves end at 5, 10, 15 and 20
			func(e *sim.Event) { e.Worked, e.Saving = span(14, 45), 15*second },
			func(e *sim.Event) { e.Worked, e.Saving, e.At = span(5, 15), 5*second, after(20, 55) }},
		{"every 6 minutes of work", sim.Periodic, 6 * minute, // saves begin at 6:00, 12:05 and 21:35
			func(e *sim.Event) { e.Worked, e.Saving, e.Lost = span(12, 0), 10*second, span(2, 50) },
			func(e *sim.Event) { e.Worked, e.Saving, e.At = span(8, 0), 5*second, after(23, 40) }},
		{"never", sim.Never, 0, // begins anew: its own start-up is in its work
			func(e *sim.Event) { e.Lost = span(15, 0) },
			func(e *sim.Event) { e.Worked, e.At, e.Cold, e.Loading = span(20, 0), after(35, 2), 0, 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := onStage(t)
			id := s.Submit(work(20*minute, func(w *sim.Work) { w.Saves, w.Every = c.saves, c.every }))
			s.at(14 * minute)
			s.do(cluster.Action{Verb: cluster.Notify, ID: id, Reason: cluster.Reason{Until: start.Add(15 * minute)}})
			s.at(15 * minute)
			s.reclaim(id)
			s.at(hour)
			one, two := first, last
			c.first(&one)
			c.second(&two)
			s.became(id, one, two)
			if got := s.Progress(id); got != 20*minute {
				t.Errorf("it did %s of work, want all 20 minutes", got)
			}
			if got, want := s.Received(id), cluster.Times(1, two.At.Sub(0)-2*second); got != want {
				t.Errorf("it held %d GPU-ms, want %d: all but the two seconds between", got, want)
			}
		})
	}
}

// A renewed lease costs nothing for a job that saves only when it must, and one save for a job
// that saves each term.
func TestWhatARenewalCosts(t *testing.T) {
	s := onStage(t)
	careful := s.Submit(work(20*minute, func(w *sim.Work) { w.Saves = sim.AtEnd }))
	always := s.Submit(work(20*minute, func(w *sim.Work) { w.Saves = sim.EachTerm }))
	s.at(hour)
	s.became(careful, sim.Event{What: sim.Ended, Outcome: "COMPLETED", At: after(20, 0), Worked: span(20, 0)})
	s.became(always, sim.Event{What: sim.Ended, Outcome: "COMPLETED", At: after(20, 20), Worked: span(20, 0), Saving: 20 * second})
}

// A job that saves when it must has until SIGKILL, if its node lives.
func TestASaveAfterTheRequeue(t *testing.T) {
	s := onStage(t)
	id := s.Submit(work(20*minute, func(w *sim.Work) { w.Saves = sim.AtEnd }))
	s.at(14 * minute)
	s.do(cluster.Action{Verb: cluster.Notify, ID: id, Reason: cluster.Reason{Until: start.Add(15 * minute)}})
	s.at(span(14, 57))
	s.Requeue(id) // by another user, too early
	s.at(hour)
	resumed := sim.Event{What: sim.Ended, Outcome: "COMPLETED", Cold: 30 * second, Loading: 3 * second}
	end := resumed // after Slurm's own delay, since there is no gate
	end.Start, end.At, end.Worked = after(17, 0), after(22, 38), span(5, 5)
	s.became(id, sim.Event{What: sim.Requeued, Outcome: "REQUEUED", At: after(14, 57), Worked: span(14, 55), Saving: 2 * second, Terminating: 3 * second}, end)
	id = s.Submit(work(20*minute, func(w *sim.Work) { w.Saves = sim.AtEnd }))
	s.at(hour + 15*minute)
	s.reclaim(id)
	s.at(2 * hour)
	end.Start, end.At, end.Worked = after(77, 5), after(82, 38), span(5, 0) // its gate expired while it saved
	s.became(id, sim.Event{What: sim.Requeued, Outcome: "REQUEUED", At: after(75, 0), Start: after(60, 0), Worked: span(15, 0), Reclaimed: true, Terminating: 5 * second}, end)

	slow := sim.Costs{Save: minute, Completing: second}
	id = s.Submit(work(20*minute, func(w *sim.Work) { w.Saves, w.Costs = sim.AtEnd, &slow }))
	s.at(2*hour + 15*minute)
	s.reclaim(id)
	s.at(3 * hour)
	s.became(id, sim.Event{What: sim.Requeued, Outcome: "REQUEUED", At: after(135, 0), Start: after(120, 0), Lost: span(15, 0), Reclaimed: true},
		sim.Event{What: sim.Ended, Outcome: "COMPLETED", Start: after(135, 2), At: after(155, 2), Worked: span(20, 0)})
}

// A save of one attempt is not lost in the next one, which is cut short while the job still
// loads.
func TestAReclaimDuringTheLoad(t *testing.T) {
	s := onStage(t)
	id := s.Submit(work(20*minute, func(w *sim.Work) { w.Saves, w.Every = sim.Periodic, 6*minute }))
	s.at(7 * minute)
	s.reclaim(id)
	s.at(span(7, 33)) // it has begun to load at 7:32
	s.reclaim(id)
	s.at(hour)
	s.became(id, sim.Event{What: sim.Requeued, Outcome: "REQUEUED", At: after(7, 0), Worked: span(6, 0), Lost: 55 * second, Saving: 5 * second, Reclaimed: true},
		sim.Event{What: sim.Requeued, Outcome: "REQUEUED", Start: after(7, 2), At: after(7, 33), Cold: 30 * second, Loading: second, Reclaimed: true},
		sim.Event{What: sim.Ended, Outcome: "COMPLETED", Start: after(7, 35), At: after(22, 18), Cold: 30 * second, Loading: 3 * second,
			Worked: span(14, 0), Saving: 10 * second})
}

// A job may have its own costs.
func TestCostsOfOneJob(t *testing.T) {
	s := onStage(t)
	own := sim.Costs{Save: minute, Completing: 10 * second}
	id := s.Submit(work(20*minute, func(w *sim.Work) { w.Saves, w.Costs = sim.EachTerm, &own }))
	s.at(5 * minute)
	s.reclaim(id) // its gate lapses while it completes, and it has no delay of its own
	s.at(hour)
	s.became(id, sim.Event{What: sim.Requeued, Outcome: "REQUEUED", At: after(5, 0), Worked: span(4, 0), Saving: minute, Reclaimed: true},
		sim.Event{What: sim.Ended, Outcome: "COMPLETED", Start: after(5, 10), At: after(25, 10), Worked: span(16, 0), Saving: 4 * minute})
}

// The time limit includes the costs of a lease; it restarts with each attempt.
func TestTheLimitCountsTheCosts(t *testing.T) {
	s := onStage(t)
	id := s.Submit(work(20*minute, func(w *sim.Work) { w.Saves, w.Limit = sim.EachTerm, 10*minute }))
	s.at(5 * minute)
	s.reclaim(id)
	s.at(hour)
	s.became(id, sim.Event{What: sim.Requeued, Outcome: "REQUEUED", At: after(5, 0), Worked: span(4, 55), Saving: 5 * second, Reclaimed: true},
		sim.Event{What: sim.Ended, Outcome: "TIMEOUT", Start: after(5, 2), At: after(15, 2), Cold: 30 * second, Loading: 3 * second,
			Worked: span(9, 17), Saving: 10 * second})
}

func TestSpeeds(t *testing.T) {
	nodes := append(simtest.Nodes("a", "k80", 1, 2), simtest.Nodes("b", "v100", 1, 2)...)
	speeds := sim.Speeds{{Kind: "lstm"}: {"k80": {Speed: sim.Reference / 2}, "v100": {Speed: 3 * sim.Reference}}}
	ends := func(t *testing.T, mixed bool, change func(*sim.Work)) cluster.Span {
		s := onStage(t, nodes...)
		s.Speeds, s.Mixed = speeds, mixed
		id := s.Submit(work(10*minute, change))
		s.at(hour)
		if s.Job(id).State != cluster.Done {
			return 0
		}
		return s.Job(id).End.Sub(start)
	}
	gang := func(kind string) func(*sim.Work) {
		return func(w *sim.Work) {
			w.Kind, w.Request = kind, cluster.Request{Size: cluster.Whole(4), Nodes: 2, PerNode: 2}
		}
	}
	for _, c := range []struct {
		name   string
		mixed  bool
		change func(*sim.Work)
		want   cluster.Span
	}{
		{"slow model", false, func(w *sim.Work) { w.Kind, w.Request.Model = "lstm", "k80" }, 20 * minute},
		{"fast model", false, func(w *sim.Work) { w.Kind, w.Request.Model = "lstm", "v100" }, span(3, 20)},
		{"unknown kind", false, func(w *sim.Work) { w.Kind, w.Request.Model = "gan", "v100" }, 10 * minute},
		{"no kind", false, func(w *sim.Work) { w.Request.Model = "k80" }, 10 * minute},
		{"a gang does not span models", false, gang("lstm"), 0},
		{"unless it may: the slowest sets the pace", true, gang("lstm"), 20 * minute},
	} {
		if got := ends(t, c.mixed, c.change); got != c.want {
			t.Errorf("%s: done after %s, want %s (0 = never)", c.name, got, c.want)
		}
	}
}

// A rate can depend on the size of the gang, and on its spread over more nodes than it needs.
func TestSpeedsOfGangs(t *testing.T) {
	nodes := append(simtest.Nodes("a", "v100", 3, 2), simtest.Nodes("b", "v100", 1, 4)...)
	speeds := sim.Speeds{
		{Kind: "lstm"}:          {"v100": {Speed: 2 * sim.Reference}},
		{Kind: "lstm", GPUs: 2}: {"v100": {Speed: 4 * sim.Reference, Apart: sim.Reference / 2}},
		{Kind: "lstm", GPUs: 6}: {"v100": {Speed: 5 * sim.Reference, Apart: sim.Reference}},
		{Kind: "lstm", GPUs: 8}: {},
	}
	for _, c := range []struct {
		name string
		ask  cluster.Request
		on   []string
		want cluster.Span
	}{
		{"of any size", cluster.Request{Size: cluster.Whole(1)}, nil, 20 * minute},
		{"of its size", cluster.Request{Size: cluster.Whole(2)}, nil, 10 * minute},
		{"apart", cluster.Request{Size: cluster.Whole(2), Nodes: 2, PerNode: 1}, nil, 80 * minute},
		{"of any size, apart", cluster.Request{Size: cluster.Whole(4), Nodes: 2, PerNode: 2}, nil, 20 * minute},
		{"on the fewest nodes that hold it", cluster.Request{Size: cluster.Whole(6), Nodes: 2}, []string{"a01", "b01"}, 8 * minute},
		{"on more", cluster.Request{Size: cluster.Whole(6), Nodes: 3, PerNode: 2}, nil, 40 * minute},
		{"not listed for its size", cluster.Request{Size: cluster.Whole(8), Nodes: 4, PerNode: 2}, nil, 40 * minute},
	} {
		s := onStage(t, nodes...)
		s.Speeds = speeds
		id := s.Submit(work(40*minute, func(w *sim.Work) { w.Kind, w.Request, w.NodeList = "lstm", c.ask, c.on }))
		s.at(2 * hour)
		if got := s.Job(id).End.Sub(start); got != c.want {
			t.Errorf("%s: done after %s, want %s", c.name, got, c.want)
		}
	}
}

// A gang on its fewest nodes can go on more slowly under more switches than these nodes need; on more nodes it is apart, whatever the switches.
func TestSpeedsAcrossSwitches(t *testing.T) {
	nodes := simtest.Nodes("a", "v100", 5, 2)
	for i := range nodes {
		nodes[i].Switch = []string{"s1", "s1", "s1", "s2", "s2"}[i]
	}
	for _, c := range []struct {
		name       string
		gpus, each int
		on         []string
		want       cluster.Span
	}{
		{"under one switch", 4, 2, []string{"a02", "a03"}, 40 * minute},
		{"across", 4, 2, []string{"a03", "a04"}, 80 * minute},
		{"scattered", 4, 1, []string{"a01", "a02", "a03", "a04"}, 160 * minute},
		{"more nodes than are under any switch", 8, 2, []string{"a01", "a02", "a03", "a04"}, 40 * minute},
		{"on one node", 2, 2, []string{"a04"}, 40 * minute},
	} {
		s := onStage(t, nodes...)
		s.Speeds = sim.Speeds{{Kind: "lstm"}: {"v100": {Speed: sim.Reference, Apart: sim.Reference / 4, Across: sim.Reference / 2}}}
		id := s.Submit(work(40*minute, func(w *sim.Work) {
			w.Kind, w.NodeList = "lstm", c.on
			w.Request = cluster.Request{Size: cluster.Whole(c.gpus), Nodes: len(c.on), PerNode: c.each}
		}))
		s.at(3 * hour)
		if got := s.Job(id).End.Sub(start); got != c.want {
			t.Errorf("%s: done after %s, want %s", c.name, got, c.want)
		}
	}
}

// Thirds of a millisecond still add up.
func TestWorkAtAnySpeedAddsUp(t *testing.T) {
	s := onStage(t)
	s.Speeds = sim.Speeds{{Kind: "x"}: {"v100": {Speed: 333_333}}}
	s.Costs = sim.Costs{}
	id := s.Submit(work(minute, func(w *sim.Work) { w.Kind = "x" }))
	for i := range 500 {
		s.at(cluster.Span(i*101 + 7))
		s.do(cluster.Action{Verb: cluster.Reclaim, ID: id, Until: s.Now().Add(1)})
	}
	s.at(hour)
	var sum cluster.Span
	for _, e := range s.attempts(id) {
		sum += e.Worked
	}
	if held := s.Received(id); s.Job(id).State != cluster.Done || sum != minute || held < 180_000 || held > 180_001 {
		t.Errorf("did %s of work in %d ms, want a minute in three", sum, held)
	}
}
