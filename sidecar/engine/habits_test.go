package engine_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// school is a cluster that runs jobs of one type. Every round starts from the state in the journal, so learnt
// habits survive a kill -9 each time.
type school struct {
	t    *testing.T
	set  cluster.Settings
	now  cluster.Instant
	m    cluster.State
	jobs []cluster.Job
	plan cluster.Plan
	snap cluster.Snapshot
}

func newSchool(t *testing.T) *school {
	set := simtest.Product()
	set.StopAllowance, set.StopOverheadMilli, set.StartCost = 15*minute, 20, 5*minute
	return &school{t: t, set: set, now: simtest.Start}
}

// start begins an attempt of a job after the given number of restarts.
func (s *school) start(id int64, restarts int) *cluster.Job {
	for i := range s.jobs {
		if j := &s.jobs[i]; j.ID.ID == id {
			j.State, j.Start, j.End, j.Restarts, j.Outcome = cluster.Running, s.now, 0, restarts, ""
			j.Holds = []cluster.Holding{{Node: "n000", Model: "v100", Size: cluster.Whole(1)}}
			return j
		}
	}
	s.jobs = append(s.jobs, cluster.Job{ID: cluster.JobID{ID: id}, Record: id, User: "alice", Account: "nlp", Partitions: []string{"gpu"}, Batch: true, Requeueable: true,
		Request: cluster.Request{Size: cluster.Whole(1), Nodes: 1, PerNode: 1}, Submit: s.now, Command: "/home/alice/train.sh --seed #"})
	return s.start(id, restarts)
}

// requeue ends the attempt of a job as if the engine had ordered it.
func (s *school) requeue(id int64) {
	s.round(0)
	for i := range s.jobs {
		if j := &s.jobs[i]; j.ID.ID == id {
			j.State, j.Holds, j.Restarts, j.Submit, j.Eligible = cluster.Waiting, nil, j.Restarts+1, s.now, s.now.Add(hour)
		}
	}
	for i := range s.m.Leases {
		if l := &s.m.Leases[i]; s.key(id) == l.Job {
			l.State, l.End, l.NoticedAt = cluster.Ending, s.now, s.now.Add(-minute)
		}
	}
	s.round(minute)
}

// complete ends a job.
func (s *school) complete(id int64) {
	for i := range s.jobs {
		if j := &s.jobs[i]; j.ID.ID == id {
			j.State, j.Holds, j.End, j.Outcome = cluster.Done, nil, s.now, "COMPLETED"
		}
	}
	s.round(10 * second)
}

func (s *school) key(id int64) cluster.JobKey {
	for r := range s.m.All() {
		if r.ID.ID == id {
			return r.Key
		}
	}
	return 0
}

func (s *school) record(id int64) *cluster.Record {
	for r := range s.m.All() {
		if r.ID.ID == id {
			return r
		}
	}
	s.t.Fatalf("job %d is not remembered", id)
	return nil
}

// round decides one round after the given time.
func (s *school) round(after cluster.Span, progress ...cluster.Progress) {
	s.t.Helper()
	text, err := json.Marshal(s.m)
	if err != nil {
		s.t.Fatal(err)
	}
	s.m = cluster.State{}
	if err := json.Unmarshal(text, &s.m); err != nil {
		s.t.Fatal(err)
	}
	seen := cluster.Observation{Now: s.now, Nodes: simtest.Nodes("n", "v100", 1, 8), Jobs: append([]cluster.Job(nil), s.jobs...), Progress: progress,
		Accounts: []cluster.Account{{Name: "nlp", Parent: "root", Shares: 1}}}
	if s.snap, err = loop.Remember(s.m, seen, nil, loop.Rules{Mode: loop.Act, Partitions: []string{"gpu"}, TenantLevel: 1}, s.set); err != nil {
		s.t.Fatal(err)
	}
	s.plan = engine.Decide(s.snap)
	s.m = s.plan.State
	s.now = s.now.Add(after)
}

func (s *school) report(id int64, steps float64, saved bool) cluster.Progress {
	p := cluster.Progress{Job: cluster.JobID{ID: id}, Steps: steps, At: s.now}
	if saved {
		p.Saved = s.now
	}
	return p
}

// saves returns how a job saves, as reported to users.
func (s *school) saves(id int64) cluster.Saving {
	s.t.Helper()
	r, ok := engine.StopOf(&s.snap, &s.plan, s.key(id))
	if !ok {
		s.t.Fatalf("nothing is told of job %d", id)
	}
	return r.Saving
}

// After a restart from the beginning, a job and the next jobs of its type are known not to save.
func TestARestartIsLearnt(t *testing.T) {
	s := newSchool(t)
	s.start(1, 0)
	s.jobs[0].Declares = cluster.Saving{Manner: cluster.SavesOnTerm, Source: cluster.FromDeclaration, Evidence: "--requeue", Implied: true}
	s.round(2 * minute)
	s.round(8*minute, s.report(1, 1, false))
	s.round(minute, s.report(1, 500, false))
	if got := s.saves(1); got.Manner != cluster.SavesOnTerm || got.Evidence != "--requeue" {
		t.Errorf("before its requeue: %+v", got)
	}
	s.requeue(1)
	s.start(1, 1)
	s.round(2 * minute)
	s.round(minute, s.report(1, 2, false))
	got := s.saves(1)
	if got.Manner != cluster.SavesNever || got.Resumes != cluster.Restarted || got.Evidence != "it restarted from the beginning after its last requeue" {
		t.Errorf("after its requeue: %+v", got)
	}
	if spent := s.record(1).Spent; spent < 9*minute || spent > 13*minute {
		t.Errorf("its stop is booked with %s, and destroyed 11 minutes", spent)
	}
	s.start(2, 0)
	s.round(minute)
	if got := s.saves(2); got.Manner != cluster.SavesNever || got.Evidence != "jobs of its type restarted from the beginning after a requeue" {
		t.Errorf("the next of its type: %+v", got)
	}
	habits := s.m.Habits
	if len(habits) != 1 || habits[0].Restarted != 1 || len(habits[0].Starts) != 1 || habits[0].Starts[0].Mean != 2*minute || habits[0].Starts[0].Samples != 2 {
		t.Errorf("habits: %+v", habits)
	}
}

// A job of an unknown type, which gets no signal, continues after its requeue: the type is then known to save on
// SIGTERM. One that gets a signal with its notice may have saved on that.
func TestAResumptionIsLearnt(t *testing.T) {
	for _, c := range []struct {
		rules []cluster.SignalRule
		want  cluster.Manner
	}{{nil, cluster.SavesOnTerm}, {[]cluster.SignalRule{{Signal: "USR1", To: "steps"}}, cluster.SavesOnNotice}} {
		s := newSchool(t)
		s.set.Signals = c.rules
		s.start(1, 0)
		s.round(2 * minute)
		s.round(20*minute, s.report(1, 1, false))
		s.round(minute, s.report(1, 1200, false))
		if got := s.saves(1); got != (cluster.Saving{}) {
			t.Errorf("before its requeue: %+v", got)
		}
		s.requeue(1)
		s.start(1, 1)
		s.round(2 * minute)
		s.round(minute, s.report(1, 1201, false))
		if got := s.saves(1); got.Manner != c.want || got.Resumes != cluster.Resumed || got.Source != cluster.FromConduct {
			t.Errorf("after its requeue: %+v, want %s", got, c.want)
		}
	}
}

// A job that saves on the notice is requeued while it is still starting, as starts of its type go: it got no signal, so
// that its restart from the beginning says nothing of its saves.
func TestARestartWithoutASignalIsNotJudged(t *testing.T) {
	for _, slow := range []bool{true, false} {
		s := newSchool(t)
		if slow {
			s.start(10, 0)
			s.round(9 * minute)
			s.round(0, s.report(10, 1, false))
		}
		s.start(1, 0).Declares = cluster.Saving{Manner: cluster.SavesOnNotice, Source: cluster.FromDeclaration}
		s.round(minute)
		s.round(3*minute, s.report(1, 1, false))
		s.round(minute/2, s.report(1, 500, false))
		s.requeue(1)
		s.start(1, 1)
		s.round(20 * second)
		s.round(minute, s.report(1, 2, false))
		want := cluster.SavesNever // the notice had a signal
		if slow {
			want = cluster.SavesOnNotice
		}
		if got := s.saves(1); got.Manner != want {
			t.Errorf("slow starts %v: %+v, want %s", slow, got, want)
		}
	}
}

// Reports come every minute, but no round is made for a quarter of an hour. The first report is still judged,
// and gives the start cost.
func TestTheFirstReportOfSeveralIsJudged(t *testing.T) {
	for _, resumes := range []bool{true, false} {
		s := newSchool(t)
		s.start(1, 0)
		s.round(2 * minute)
		s.round(20*minute, s.report(1, 1, false))
		s.round(minute, s.report(1, 1200, false))
		s.requeue(1)
		s.start(1, 1)
		saved, want := 0., cluster.SavesNever
		if resumes {
			saved, want = 1200, cluster.SavesOnTerm
		}
		var reports []cluster.Progress
		s.round(minute)
		s.now = s.now.Add(minute)
		reports = append(reports, s.report(1, saved+60, false))
		s.now = s.now.Add(14 * minute)
		reports = append(reports, s.report(1, saved+900, false))
		s.round(minute, reports...)
		if got := s.saves(1); got.Manner != want {
			t.Errorf("resumes %v: %+v", resumes, got)
		}
		if starts := s.m.Habits[0].Starts; len(starts) != 1 || starts[0].Mean != 2*minute {
			t.Errorf("its starts took 2 minutes each, and not %+v", starts)
		}
	}
}

// A job reports zero steps until it has loaded its checkpoint. This is neither progress nor a restart.
func TestAReportOfNoStepsIsNotJudged(t *testing.T) {
	s := newSchool(t)
	s.start(1, 0)
	s.round(2 * minute)
	s.round(20*minute, s.report(1, 1, false))
	s.round(minute, s.report(1, 1200, false))
	s.requeue(1)
	s.start(1, 1)
	s.round(minute)
	s.round(minute, s.report(1, 0, false))
	if got := s.saves(1); got != (cluster.Saving{}) {
		t.Errorf("after a report of no steps: %+v", got)
	}
	s.round(minute, s.report(1, 1201, false))
	if got := s.saves(1); got.Manner != cluster.SavesOnTerm || got.Resumes != cluster.Resumed {
		t.Errorf("after one of its next step: %+v", got)
	}
	s.start(2, 0)
	s.jobs[1].Command = "other"
	s.round(20 * minute)
	s.round(minute, s.report(2, 0, true)) // it reports only its saves
	if got := s.saves(2); got.Manner != cluster.SavesEvery {
		t.Errorf("a job that reports saves and no steps: %+v", got)
	}
}

// A type without reports is known after at most three jobs, by their run times.
func TestCompletionsAreLearnt(t *testing.T) {
	for _, resumes := range []bool{true, false} {
		s := newSchool(t)
		for id := range int64(2) {
			s.start(10+id, 0)
			s.round(100 * minute)
			s.complete(10 + id)
		}
		s.start(2, 0)
		s.round(60 * minute)
		s.requeue(2)
		s.start(2, 1)
		want := cluster.SavesNever
		if s.round(100 * minute); resumes {
			s.now, want = s.now.Add(-58*minute), cluster.SavesOnTerm
		}
		s.complete(2)
		s.start(3, 0)
		s.round(minute)
		if got := s.saves(3); got.Manner != want || got.Source != cluster.FromConduct {
			t.Errorf("resumes %v: %+v; %+v", resumes, got, s.m.Habits)
		}
	}
}

// Reported saves give the interval, and the time at which the job may be stopped next.
func TestReportedSavesAreLearnt(t *testing.T) {
	s := newSchool(t)
	s.start(1, 0)
	s.round(minute)
	s.round(30*minute, s.report(1, 1, false))
	s.round(20*minute, s.report(1, 30, true))
	saved := s.now
	s.round(10*minute, s.report(1, 50, true))
	s.round(minute, s.report(1, 60, false))
	got := s.saves(1)
	if got.Manner != cluster.SavesEvery || got.Every < 28*minute || got.Every > 31*minute || got.At != saved || got.Resumes != "" {
		t.Errorf("%+v", got)
	}
	if r := s.record(1); r.Saved != saved {
		t.Errorf("its newest save was at %s, not %s", r.Saved, saved)
	}
	s.requeue(1)
	if r := s.record(1); r.Saved != 0 {
		t.Errorf("a save of an attempt that is over counts: %s", r.Saved)
	}
	s.start(2, 0)
	s.round(minute)
	if got := s.saves(2); got.Manner != cluster.SavesEvery || got.Evidence != "jobs of its type report their saves" {
		t.Errorf("the next of its type: %+v", got)
	}
}

// Jobs without evidence teach nothing, and the order of reports does not matter.
func TestLearningIsDeterministic(t *testing.T) {
	var all []cluster.Plan
	for turn := range 2 {
		s := newSchool(t)
		for id := range int64(6) {
			j := s.start(id+1, 0)
			j.Command = fmt.Sprint("job ", id%3)
			s.round(10 * second)
		}
		if s.round(10 * minute); len(s.m.Habits) != 0 {
			t.Errorf("habits without evidence: %+v", s.m.Habits)
		}
		var progress []cluster.Progress
		for id := range int64(6) {
			progress = append(progress, s.report(id+1, 10, id%2 == 0))
		}
		if turn == 1 {
			for i := range 3 {
				progress[i], progress[5-i] = progress[5-i], progress[i]
			}
		}
		s.round(minute, progress...)
		all = append(all, s.plan)
	}
	if len(all[0].State.Habits) != 3 || !reflect.DeepEqual(all[0], all[1]) {
		t.Errorf("two plans:\n%+v\n%+v", all[0].State.Habits, all[1].State.Habits)
	}
}
