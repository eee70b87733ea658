package sim_test

import (
	"context"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// A job that saves on SIGTERM loses nothing at a requeue, although it ignores the notice.
func TestAJobThatSavesOnTerm(t *testing.T) {
	s := onStage(t)
	id := s.Submit(work(20*minute, func(w *sim.Work) { w.Saves = sim.OnTerm }))
	slow := s.Submit(work(20*minute, func(w *sim.Work) {
		w.Saves, w.Costs = sim.OnTerm, &sim.Costs{Save: minute, Completing: second}
	}))
	for _, c := range []struct {
		id   cluster.JobID
		want cluster.Manner
	}{{id, cluster.SavesOnTerm}, {slow, cluster.UnknownManner}} {
		if got := s.Job(c.id).Declares.Manner; got != c.want {
			t.Errorf("job %s declares %q, want %q", c.id, got, c.want)
		}
	}
	s.at(14 * minute)
	s.do(cluster.Action{Verb: cluster.Notify, ID: id, Reason: cluster.Reason{Until: start.Add(15 * minute)}})
	s.at(15 * minute)
	s.reclaim(id)
	s.reclaim(slow) // SIGKILL comes before the save is complete
	s.at(2 * hour)
	if e := s.events[len(s.events)-1]; e.What != sim.Ended {
		t.Errorf("the last event is %+v", e)
	}
	for _, e := range s.events {
		if e.What != sim.Requeued {
			continue
		}
		lost, saving := cluster.Span(0), 5*second
		if e.Job == slow {
			lost, saving = 15*minute, 0
		}
		if e.Lost != lost || e.Terminating != saving {
			t.Errorf("job %s lost %s and saved for %s, want %s and %s", e.Job, e.Lost, e.Terminating, lost, saving)
		}
	}
}

// Jobs that save on their own report each save with their progress, if reports are enabled;
// others report none.
func TestSavesAreReported(t *testing.T) {
	s := onStage(t)
	s.ReportSaves = true
	id := s.Submit(work(20*minute, func(w *sim.Work) { w.Saves, w.Every = sim.Periodic, 6*minute }))
	s.Submit(work(20*minute, func(w *sim.Work) { w.Saves = sim.AtEnd }))
	look := func(m, sec int) []cluster.Progress {
		t.Helper()
		s.at(span(m, sec))
		seen, err := s.Observe(context.Background(), start)
		if err != nil {
			t.Fatal(err)
		}
		return seen.Progress
	}
	for _, c := range []struct {
		m, s  int
		saved cluster.Span // 0 = no report
		steps float64
	}{{1, 0, 0, 0}, {6, 4, 0, 0}, {6, 5, span(6, 5), 360}, {6, 15, 0, 0}, {13, 0, span(12, 10), 770}} {
		got := look(c.m, c.s)
		if c.saved == 0 && len(got) == 0 {
			continue
		}
		if len(got) != 1 || got[0].Job != id || got[0].Saved != start.Add(c.saved) || got[0].Steps != c.steps || got[0].At != s.Now() {
			t.Errorf("after %d:%02d: %+v, want a save at %s", c.m, c.s, got, c.saved)
		}
	}
	// A save of one attempt is not reported for the next, which saves 6 minutes of work after its
	// load.
	s.at(14 * minute)
	s.reclaim(id)
	if got := look(20, 0); len(got) != 0 {
		t.Errorf("reports of the first attempt: %+v", got)
	}
	if got := look(21, 0); len(got) != 1 || got[0].Saved != start.Add(span(20, 40)) || got[0].Steps != 18*60+20 {
		t.Errorf("reports of the second attempt: %+v", got)
	}
	if got := look(60, 0); len(got) != 0 {
		t.Errorf("reports of a job that has ended: %+v", got)
	}
	s.ReportSaves = false
	s.Submit(work(20*minute, func(w *sim.Work) { w.Saves, w.Every = sim.Periodic, 6*minute }))
	if got := look(75, 0); len(got) != 0 {
		t.Errorf("reports though none are made: %+v", got)
	}
}
