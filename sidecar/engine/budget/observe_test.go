package budget_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// train is the type of the jobs here.
var train = cluster.JobType{User: "ann", Command: "train", GPUs: 1}

// trains returns a job of that type that has run on v100 for so long.
func trains(ran cluster.Span) cluster.Case {
	c := runs(7, ran, cluster.Saving{})
	c.Job.Command, c.Record.Held, c.Record.HeldSince = "train", []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(1)}}, c.Job.Start
	return c
}

// A report tells how long a job took to start, when it saved and how it began after a requeue. Old ones tell nothing.
func TestReportsOfJobs(t *testing.T) {
	// The attempt before took 20 minutes for 1200 steps, a step a second, and ended in a stop that was booked with 3 minutes.
	before := cluster.Conduct{Steps: 1200, At: after(-cluster.Hour), In: 20 * minute, Model: "v100", Attempts: 1, Ran: 20 * minute, Longest: 20 * minute, Ours: true, Booked: 3 * minute, Spent: 3 * minute}
	started := []cluster.StartCost{{Model: "v100", Mean: 9 * minute, Samples: 1}}
	for _, c := range []struct {
		name   string
		before *cluster.Conduct
		report cluster.Progress
		change func(s *cluster.Snapshot)
		own    func(c *cluster.Conduct)
		habit  *cluster.Habit
		spent  cluster.Span
	}{
		{"the first of its first attempt", nil, cluster.Progress{Steps: 5, At: after(-minute)}, nil, func(c *cluster.Conduct) {
			*c = cluster.Conduct{Steps: 5, At: after(-minute), In: 9 * minute, First: 5, FirstIn: 9 * minute, Model: "v100"}
		}, &cluster.Habit{Starts: started}, 0},
		{"it was suspended for a while", nil, cluster.Progress{Steps: 5, At: after(-minute)}, func(s *cluster.Snapshot) { s.Cases[0].Job.Suspend = minute }, func(c *cluster.Conduct) {
			*c = cluster.Conduct{Steps: 5, At: after(-minute), In: 8 * minute, First: 5, FirstIn: 8 * minute, Model: "v100"}
		}, &cluster.Habit{Starts: []cluster.StartCost{{Model: "v100", Mean: 8 * minute, Samples: 1}}}, 0},
		{"of no step", nil, cluster.Progress{At: after(-minute)}, nil, nil, nil, 0},
		{"of the attempt before", nil, cluster.Progress{Steps: 5, At: after(-10*minute - 1)}, nil, nil, nil, 0},
		{"as it begins", nil, cluster.Progress{Steps: 5, At: after(-10 * minute)}, nil, func(c *cluster.Conduct) {
			*c = cluster.Conduct{Steps: 5, At: after(-10 * minute), First: 5, Model: "v100"}
		}, nil, 0},
		{"it does not run", nil, cluster.Progress{Steps: 5, At: after(-minute)}, func(s *cluster.Snapshot) { s.Cases[0].Job.State = cluster.Completing }, nil, nil, 0},
		{"it went on from a save", &before, cluster.Progress{Steps: 1700, At: after(-minute)}, nil, func(c *cluster.Conduct) {
			c.Steps, c.At, c.In, c.First, c.FirstIn, c.Last, c.LastAt = 1700, after(-minute), 9*minute, 1700, 9*minute, cluster.Resumed, now
			c.Booked, c.Spent = 9*minute, 9*minute // its start took that
		}, &cluster.Habit{Starts: started, Resumed: 1, OnTerm: 1, Last: cluster.Resumed, LastAt: now}, 9 * minute},
		{"it began anew, and the stop cost all", &before, cluster.Progress{Steps: 50, At: after(-9*minute - 30*second)}, nil, func(c *cluster.Conduct) {
			c.Steps, c.At, c.In, c.First, c.FirstIn, c.Last, c.LastAt = 50, after(-9*minute-30*second), 30*second, 50, 30*second, cluster.Restarted, now
			c.Booked, c.Spent = 20*minute, 20*minute
		}, &cluster.Habit{Starts: []cluster.StartCost{{Model: "v100", Mean: 30 * second, Samples: 1}}, Restarted: 1, Last: cluster.Restarted, LastAt: now}, 20 * minute},
		{"it saved", nil, cluster.Progress{At: after(-minute), Saved: after(-minute), Took: 20 * second}, nil, func(c *cluster.Conduct) {
			*c = cluster.Conduct{Saved: after(-minute), Takes: 20 * second, Reports: 1, Every: 7 * minute}
		}, &cluster.Habit{Takes: 20 * second, Reports: 1, Every: 7 * minute, SavedAt: after(-minute)}, 0},
		{"it says that a save took longer than it ran", nil, cluster.Progress{At: after(-9 * minute), Saved: after(-9 * minute), Took: cluster.Hour}, nil, func(c *cluster.Conduct) {
			*c = cluster.Conduct{Saved: after(-9 * minute), Takes: minute}
		}, &cluster.Habit{Takes: minute}, 0},
		{"it saved at the notice", nil, cluster.Progress{At: after(-minute), Saved: after(-minute)}, func(s *cluster.Snapshot) {
			s.Leases = []cluster.Lease{active(1, minute)}
			s.Leases[0].State, s.Leases[0].NoticedAt = cluster.Noticed, after(-minute)
		}, func(c *cluster.Conduct) { *c = cluster.Conduct{Saved: after(-minute)} }, nil, 0},
		{"its save is that of the attempt before", nil, cluster.Progress{At: after(-minute), Saved: after(-10 * minute)}, nil, nil, nil, 0},
		{"its save is known", &cluster.Conduct{Saved: after(-2 * minute)}, cluster.Progress{At: after(-minute), Saved: after(-2 * minute)}, nil, func(*cluster.Conduct) {}, nil, 0},
		{"it saves again", &cluster.Conduct{Saved: after(-5 * minute), Reports: 1, Every: minute}, cluster.Progress{At: after(-minute), Saved: after(-2 * minute)}, nil, func(c *cluster.Conduct) {
			c.Saved, c.Reports, c.Every = after(-2*minute), 2, 3*minute
		}, &cluster.Habit{Reports: 1, Every: 3 * minute, SavedAt: after(-2 * minute)}, 0},
		{"a save after a stop was ordered makes that cheaper", nil, cluster.Progress{At: after(-minute), Saved: after(-minute)}, func(s *cluster.Snapshot) {
			s.Cases[0].Record.Stopping = &cluster.PendingStop{Since: after(-10 * minute), Certainty: cluster.UnknownLoss}
		}, func(c *cluster.Conduct) { *c = cluster.Conduct{Saved: after(-minute), Reports: 1, Every: 7 * minute} }, &cluster.Habit{Reports: 1, Every: 7 * minute, SavedAt: after(-minute)}, 0},
	} {
		s := site(trains(10 * minute))
		r := &s.Cases[0].Record
		if c.before != nil {
			own := *c.before
			r.Conduct, r.Ran, r.Spent = &own, c.before.Ran, c.before.Spent
		}
		c.report.Job = s.Cases[0].Job.ID
		s.Progress = []cluster.Progress{c.report}
		if c.change != nil {
			c.change(s)
		}
		a, _ := open(s)
		var want *cluster.Conduct
		if c.own != nil {
			want = &cluster.Conduct{}
			if c.before != nil {
				*want = *c.before
			}
			c.own(want)
		}
		if d := cmp.Diff(want, a.Of(0).Conduct); d != "" {
			t.Errorf("%s: conduct %s", c.name, d)
		}
		if got := a.Of(0).Spent; got != c.spent {
			t.Errorf("%s: its stops cost %s, want %s", c.name, got, c.spent)
		}
		var habits []cluster.Habit
		if c.habit != nil {
			habits = []cluster.Habit{*c.habit}
			habits[0].Type = train
		}
		if d := cmp.Diff(habits, a.Habits(), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(cluster.Habit{}, "At")); d != "" {
			t.Errorf("%s: habits %s", c.name, d)
		}
		if was := r.Stopping; was != nil {
			if got := a.Of(0).Stopping; got.Since != c.report.Saved || got.Saved != c.report.Saved || got.Certainty != cluster.KnownLoss || was.Since == got.Since {
				t.Errorf("%s: the stop is %+v, it was %+v", c.name, got, was)
			}
		}
		if d := cmp.Diff(c.before, r.Conduct); d != "" {
			t.Errorf("%s: the snapshot has changed: %s", c.name, d)
		}
	}
}

// An attempt that ends says how its job stops, how long jobs of its type take, or nothing.
func TestEndsOfAttempts(t *testing.T) {
	noticed := func(s *cluster.Snapshot) {
		s.Leases = []cluster.Lease{active(1, minute)}
		s.Leases[0].State, s.Leases[0].NoticedAt = cluster.Noticed, after(-minute)
	}
	requeued := func(s *cluster.Snapshot) {
		c := &s.Cases[0]
		c.Job.State, c.Job.Holds, c.Job.Start, c.Job.Restarts = cluster.Waiting, nil, 0, 1
		c.Job.Declares.Manner = cluster.SavesOnNotice
	}
	completed := func(s *cluster.Snapshot) {
		s.Cases[0].Job.State, s.Cases[0].Job.Outcome, s.Cases[0].Job.End = cluster.Done, "COMPLETED", now
	}
	for _, c := range []struct {
		name   string
		change func(s *cluster.Snapshot)
		ran    cluster.Span // as the accounts have it; the attempt began so long ago
		own    *cluster.Conduct
		habit  *cluster.Habit
		stops  int
		spent  cluster.Span
	}{
		{"it completed", completed, 10 * minute, nil, &cluster.Habit{Completed: 1, Shortest: 10 * minute, Longest: 10 * minute}, 0, 0},
		{"it was suspended for a while", func(s *cluster.Snapshot) { completed(s); s.Cases[0].Job.Suspend = minute }, 9 * minute, nil, &cluster.Habit{Completed: 1, Shortest: 9 * minute, Longest: 9 * minute}, 0, 0},
		{"it was shorter than a lease may be", func(s *cluster.Snapshot) { completed(s); s.Settings.MinLease = 10*minute + 1 }, 10 * minute, nil, nil, 0, 0},
		{"it was as long as a lease must be", func(s *cluster.Snapshot) { completed(s); s.Settings.MinLease = 10 * minute }, 10 * minute, nil, &cluster.Habit{Completed: 1, Shortest: 10 * minute, Longest: 10 * minute}, 0, 0},
		{"it failed", func(s *cluster.Snapshot) { completed(s); s.Cases[0].Job.Outcome = "FAILED" }, 10 * minute, nil, nil, 0, 0},
		{"it is gone", func(s *cluster.Snapshot) { completed(s); s.Cases[0].Gone = true }, 10 * minute, nil, nil, 0, 0},
		{"its owner requeued it", requeued, 10 * minute, &cluster.Conduct{Attempts: 1, Ran: 10 * minute, Longest: 10 * minute, Model: "v100"}, nil, 0, 0},
		{"its lease was over", func(s *cluster.Snapshot) { requeued(s); noticed(s); s.Leases[0].State = cluster.Ending }, 10 * minute,
			&cluster.Conduct{Attempts: 1, Ran: 10 * minute, Longest: 10 * minute, Model: "v100", Ours: true, Noticed: true}, nil, 0, 0},
		{"it requeued itself at the notice, a minute after it", func(s *cluster.Snapshot) { requeued(s); noticed(s) }, 10 * minute,
			&cluster.Conduct{Attempts: 1, Ran: 10 * minute, Longest: 10 * minute, Model: "v100", Ours: true, Noticed: true, Booked: 3 * minute, Spent: 3 * minute}, nil, 1, 3 * minute},
		{"the same, and stops have no budget", func(s *cluster.Snapshot) { requeued(s); noticed(s); s.Settings.StopAllowance = 0 }, 10 * minute,
			&cluster.Conduct{Attempts: 1, Ran: 10 * minute, Longest: 10 * minute, Model: "v100", Ours: true, Noticed: true}, nil, 0, 0},
		{"its node failed at the notice", func(s *cluster.Snapshot) {
			requeued(s)
			noticed(s)
			s.Cases[0].Record.Restarts, s.Cases[0].Record.Others = 1, &cluster.Requeues{Restart: 1}
		}, 10 * minute, &cluster.Conduct{Attempts: 1, Ran: 10 * minute, Longest: 10 * minute, Model: "v100", Noticed: true}, nil, 0, 0},
		{"it held several models", func(s *cluster.Snapshot) {
			requeued(s)
			s.Cases[0].Record.Held = append(s.Cases[0].Record.Held, cluster.ModelSize{Model: "k80", Size: cluster.Whole(1)})
		}, 10 * minute, &cluster.Conduct{Attempts: 1, Ran: 10 * minute, Longest: 10 * minute}, nil, 0, 0},
		{"it goes on", func(*cluster.Snapshot) {}, 0, nil, nil, 0, 0},
	} {
		s := site(trains(10 * minute))
		s.Settings.Signal, s.Settings.SignalTo = "USR1", "steps"
		c.change(s)
		a, _ := open(s, func(in *round.Facts) {
			if in.Records[0].Ran = c.ran; s.Cases[0].Job.State == cluster.Done {
				in.Records[0].Done = now
			}
		})
		got := a.Of(0)
		if d := cmp.Diff(c.own, got.Conduct); d != "" {
			t.Errorf("%s: conduct %s", c.name, d)
		}
		if got.Stops != c.stops || got.Spent != c.spent {
			t.Errorf("%s: %d stops cost %s, want %d and %s", c.name, got.Stops, got.Spent, c.stops, c.spent)
		}
		var habits []cluster.Habit
		if c.habit != nil {
			habits = []cluster.Habit{*c.habit}
			habits[0].Type = train
		}
		if d := cmp.Diff(habits, a.Habits(), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(cluster.Habit{}, "At")); d != "" {
			t.Errorf("%s: habits %s", c.name, d)
		}
	}
}

// A job counts once as short or long: if it has ended within an interval of ten seconds, or when it has run for two.
func TestShortAndLongJobs(t *testing.T) {
	for _, c := range []struct {
		name  string
		ran   cluster.Span
		ended bool
		last  cluster.Span // the last round was so long ago
		how   string       // outcome
		want  *cluster.Brief
	}{
		{"it ended within an interval", 10 * second, true, 10 * second, "COMPLETED", &cluster.Brief{Jobs: 1980, Short: 1980, Ran: 10 * second}},
		{"it ended a millisecond later", 10*second + 1, true, 10 * second, "COMPLETED", &cluster.Brief{Jobs: 1980, Short: 980, Ran: 10 * second}},
		{"it failed within an interval", 10 * second, true, 10 * second, "FAILED", &cluster.Brief{Jobs: 1980, Short: 1980, Ran: 10 * second}},
		{"it was cancelled", 10 * second, true, 10 * second, "CANCELLED", nil},
		{"it gets long", 20 * second, false, 10 * second, "", &cluster.Brief{Jobs: 1980, Short: 980, Ran: 10 * second}},
		{"it will in a millisecond", 20*second - 1, false, 10 * second, "", nil},
		{"it was long at the last look", 30 * second, false, 10 * second, "", nil},
		{"it got long and ended since then", 30 * second, true, 20 * second, "COMPLETED", &cluster.Brief{Jobs: 1980, Short: 980, Ran: 10 * second}},
		{"it ended, and was long at the last look", 30 * second, true, 10 * second, "COMPLETED", nil},
	} {
		s := site(trains(c.ran))
		s.Ledger.At = after(-c.last)
		s.Habits = []cluster.Habit{{Type: train, Brief: &cluster.Brief{Jobs: 1000, Short: 1000, Ran: 10 * second}}}
		if c.ended {
			s.Cases[0].Job.State, s.Cases[0].Job.Outcome, s.Cases[0].Job.End = cluster.Done, c.how, now
		}
		a, _ := open(s, func(in *round.Facts) {
			if c.ended {
				in.Records[0].Done = now
			}
		})
		if c.want == nil {
			c.want = s.Habits[0].Brief
		}
		k := slices.IndexFunc(a.Habits(), func(h cluster.Habit) bool { return h.Type == train })
		if d := cmp.Diff(c.want, a.Habits()[k].Brief); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// A job is expected to be short if nine of ten jobs like it were: of its type, or of its user where none of its type is known.
func TestWhichJobsAreShort(t *testing.T) {
	user := cluster.JobType{User: "ann", GPUs: 1}
	brief := func(of cluster.JobType, jobs, short int32) cluster.Habit {
		return cluster.Habit{Type: of, Brief: &cluster.Brief{Jobs: jobs, Short: short, Ran: 7 * second}}
	}
	for _, c := range []struct {
		name   string
		habits []cluster.Habit
		want   bool
	}{
		{"nothing is known", nil, false},
		{"nine of ten of its type were", []cluster.Habit{brief(train, 10000, 9000)}, true},
		{"fewer were", []cluster.Habit{brief(train, 10000, 8999)}, false},
		{"few of its type are known, and its user's were", []cluster.Habit{brief(user, 10000, 9000), brief(train, 500, 500)}, true},
		{"its type is long, and its user's others were", []cluster.Habit{brief(user, 10000, 9000), brief(train, 10000, 100)}, false},
		{"all of its type that ended were long", []cluster.Habit{brief(user, 10000, 9000), {Type: train, Completed: 1}}, false},
		{"its type is known by its saves only", []cluster.Habit{brief(user, 10000, 9000), {Type: train, Reports: 1}}, true},
	} {
		s := site(trains(cluster.Hour))
		s.Habits = c.habits
		a, _ := open(s)
		if ran, short := budget.Brief(a, 0); short != c.want || short && ran != 7*second {
			t.Errorf("%s: short %t, after %s", c.name, short, ran)
		}
		if got, want := budget.AnyBrief(a), len(c.habits) > 0; got != want {
			t.Errorf("%s: any is short: %t", c.name, got)
		}
	}
}

// A job is expected to need what jobs like it needed: those of its type count with its user's, and everybody's as three.
func TestNeeds(t *testing.T) {
	const tenMinutes = 7 // class of up to √2^7 minutes, which are 678 seconds
	counts := func(class int, jobs int32) []int32 {
		return append(make([]int32, class), jobs*1000)
	}
	for _, c := range []struct {
		name   string
		habits []cluster.Habit
		got    cluster.Span // its GPU time so far
		want   int64        // seconds
	}{
		{"nothing is known", nil, 0, 600},
		{"nothing is known, and it has run for hours", nil, 4 * cluster.Hour, 10861},
		{"jobs of its type need about ten minutes", []cluster.Habit{{Type: train, Needed: counts(tenMinutes, 5)}}, 0, 579},
		{"it has outlived them", []cluster.Habit{{Type: train, Needed: counts(tenMinutes, 5)}}, cluster.Hour, 2715},
		{"jobs of its user do", []cluster.Habit{{Type: cluster.JobType{User: "ann", GPUs: 1}, Needed: counts(tenMinutes, 5)}}, 0, 579},
		{"jobs of everybody do", []cluster.Habit{{Type: cluster.JobType{GPUs: 1}, Needed: counts(tenMinutes, 500)}}, 0, 579},
		{"jobs of another size do", []cluster.Habit{{Type: cluster.JobType{GPUs: 2}, Needed: counts(tenMinutes, 500)}}, 0, 600},
		{"its own outweigh everybody's", []cluster.Habit{{Type: cluster.JobType{GPUs: 1}, Needed: counts(1, 500)}, {Type: train, Needed: counts(tenMinutes, 97)}}, 0, 563},
	} {
		s := site(trains(cluster.Hour))
		s.Cases[0].Record.Alloc, s.Habits = cluster.GPUTime(c.got), c.habits
		a, _ := open(s)
		for range 2 { // the second answer is kept
			if got := a.Needs(0); got != c.want {
				t.Errorf("%s: %d s, want %d", c.name, got, c.want)
			}
		}
	}
}
