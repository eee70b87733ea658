package engine_test

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// reportSave makes a running job report one save that took so long, in the next round.
func (w *world) reportSave(id cluster.JobID, took cluster.Span) {
	w.alter = func(s *cluster.Observation) {
		s.Progress = append(s.Progress, cluster.Progress{Job: id, At: s.Now, Saved: s.Now, Took: took})
		w.alter = nil
	}
}

// saver submits a job that saves at the notice.
func (w *world) saver(tenant string) cluster.JobID {
	return w.submit(tenant, 1, 10*hour, func(j *sim.Work) {
		j.Saves, j.Command = sim.AtNotice, "/home/"+tenant+"/train.sh"
		j.Costs = &sim.Costs{RequeueDelay: 2 * minute} // so it does not declare how long its save takes
	})
}

// A notice has the length of the save and half of it, and two rounds, within the bounds. Without a known
// duration, and without bounds, it is the usual one.
func TestNoticesGrowAndShrinkWithTheSave(t *testing.T) {
	for _, x := range []struct {
		name           string
		least, most    cluster.Span
		took           cluster.Span
		want           cluster.Span
		withoutABudget bool
	}{
		{"no bounds", 0, 0, 50 * second, minute, false},
		{"nothing is known", 20 * second, 4 * minute, 0, minute, false},
		{"longer", 20 * second, 4 * minute, 100 * second, 170 * second, false},
		{"longer, without a stop budget", 20 * second, 4 * minute, 100 * second, 170 * second, true},
		{"the longest", 20 * second, 4 * minute, 200 * second, 4 * minute, false},
		{"shorter", 20 * second, 4 * minute, 6 * second, 29 * second, false},
		{"the shortest", 40 * second, 4 * minute, second, 40 * second, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			set := simtest.Product()
			set.RecallFirst, set.NoticeMin, set.NoticeMax = false, x.least, x.most
			if x.withoutABudget {
				set.StopAllowance, set.StopOverheadMilli = 0, 0
			}
			w := newWorld(t, set, []int{1}, "a", "b")
			id := w.saver("a")
			w.Run(10 * minute)
			if x.took > 0 {
				w.reportSave(id, x.took)
			}
			w.Run(2 * minute)
			w.saver("b")
			w.Run(4 * term)
			told := w.done(cluster.Notify, id)
			if len(told) == 0 {
				t.Fatalf("the job was never told to stop: %+v", w.lease(id))
			}
			// A save cannot have taken longer than the attempt has run.
			if got := told[0].Reason.Until.Sub(told[0].at); got > x.want || got <= x.want-set.Interval {
				t.Errorf("its notice was %s before the end of its term, want %s", got, x.want)
			}
			if ends := w.done(cluster.Reclaim, id); len(ends) == 0 || ends[0].at < told[0].Reason.Until || told[0].Signal != "USR1" {
				t.Errorf("told %+v, requeued %+v", told[0], ends)
			}
			w.books()
		})
	}
}

// No more jobs save at the same time than may; the notice of the others waits, is as long as it should be, and all
// jobs get their turn.
func TestOnlySoManySaveAtOnce(t *testing.T) {
	most := func(limit int) int {
		set := simtest.Product()
		set.NoticeConcurrent = limit
		w := newWorld(t, set, []int{4, 4}, "a", "b")
		var ids []cluster.JobID
		for range 8 {
			ids = append(ids, w.saver("a"))
		}
		w.Run(5 * minute)
		for range 8 {
			ids = append(ids, w.saver("b"))
		}
		atOnce := 0
		for range 36 * 6 {
			w.Run(10 * second)
			n := 0
			for _, l := range w.Last.State.Leases {
				if l.State == cluster.Noticed || l.State == cluster.Ending {
					n++
				}
			}
			atOnce = max(atOnce, n)
		}
		w.Run(6 * term)
		for _, id := range ids {
			if w.Received(id) == 0 {
				t.Errorf("limit %d: job %s never ran", limit, id)
			}
			for _, told := range w.done(cluster.Notify, id) {
				if got := told.Reason.Until.Sub(told.at); got < set.Notice-set.Interval {
					t.Errorf("limit %d: job %s had a notice of %s, want %s", limit, id, got, set.Notice)
				}
			}
		}
		w.books()
		return atOnce
	}
	if got := most(0); got < 3 {
		t.Fatalf("without a limit at most %d jobs save at once: too few to show anything", got)
	}
	for _, limit := range []int{1, 2} {
		if got := most(limit); got != limit {
			t.Errorf("%d jobs save at once, and %d may", got, limit)
		}
	}
}

// A job that requeues itself at the notice, as some frameworks do, is reclaimed: the stop counts, its lease ends so,
// and its GPUs go to the job for which it had to stop.
func TestAJobThatRequeuesItselfAtTheNotice(t *testing.T) {
	for _, budget := range []bool{true, false} {
		set := simtest.Product()
		if !budget {
			set.StopAllowance, set.StopOverheadMilli = 0, 0
		}
		w := newWorld(t, set, []int{1}, "a", "b")
		id := w.saver("a")
		w.Run(10 * minute)
		other := w.saver("b")
		for range 600 {
			w.Run(10 * second)
			if len(w.done(cluster.Notify, id)) > 0 {
				break
			}
		}
		w.Run(20 * second)
		w.Requeue(id)
		w.Run(2 * minute)
		w.state(other, cluster.Running)
		w.state(id, cluster.Waiting)
		var why []string
		for _, r := range w.reports {
			for _, l := range r.Plan.Ended {
				if l.Job == w.Record(id).Key && l.Why != "renewed" {
					why = append(why, l.Why)
				}
			}
		}
		if len(why) != 1 || why[0] != "reclaimed" {
			t.Errorf("budget %v: its leases ended as %q, want reclaimed", budget, why)
		}
		r := w.Record(id)
		if r.Conduct == nil || !r.Conduct.Ours || !r.Conduct.Noticed {
			t.Errorf("budget %v: its conduct is %+v", budget, r.Conduct)
		}
		if stops := map[bool]int{true: 1, false: 0}[budget]; r.Stops != stops || budget && (r.Spent < set.StartCost || r.Spent > set.StartCost+set.Notice) {
			t.Errorf("budget %v: %d stops that cost %s", budget, r.Stops, r.Spent)
		}
		w.books()
	}
}

// A job's own word on the signal of its notice has precedence over the site's.
func TestAJobsOwnSignal(t *testing.T) {
	for declared, want := range map[string]string{"": "USR1", "USR2": "USR2", cluster.NoSignal: ""} {
		w := newWorld(t, simtest.Product(), []int{1}, "a", "b")
		w.alter = func(s *cluster.Observation) {
			s.Jobs = slices.Clone(s.Jobs)
			for i := range s.Jobs {
				s.Jobs[i].Declares.Signal, s.Jobs[i].Declares.SignalTo = declared, "steps"
			}
		}
		id := w.saver("a")
		w.Run(10 * minute)
		w.saver("b")
		w.Run(2 * term)
		told := w.done(cluster.Notify, id)
		if len(told) == 0 || told[0].Signal != want {
			t.Errorf("declared %q: the notice is %+v, want the signal %q", declared, told, want)
		}
	}
}

// The time of a save is learnt by type, and reported ones count more than declared ones.
func TestTheTimeOfASaveIsLearnt(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4}, "a")
	id := w.saver("a")
	w.Run(10 * minute)
	w.reportSave(id, 80*second)
	w.Run(minute)
	w.reportSave(id, 16*second)
	w.Run(minute)
	if got := w.Record(id).Conduct; got.Takes != 72*second {
		t.Errorf("its saves take %s, want 72 s: a shorter one lowers the longest by an eighth", got.Takes)
	}
	habits := w.Last.State.Habits
	if len(habits) == 0 || habits[0].Takes != 72*second {
		t.Errorf("habits: %+v", habits)
	}
	w.reportSave(id, 10*hour)
	w.Run(minute)
	if got := w.Record(id).Conduct.Takes; got > 15*minute {
		t.Errorf("a save of an attempt of 13 minutes takes %s", got)
	}
}
