package stop_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
)

// A job that resumes saves no more often than the work that it was seen to repeat tells, whatever it reports or declares.
func TestRepeatedWorkBoundsIntervals(t *testing.T) {
	every := cluster.Saving{Manner: cluster.SavesEvery, Every: 10 * minute}
	for _, c := range []struct {
		name   string
		said   cluster.Saving
		habit  cluster.Habit
		manner cluster.Manner
		every  cluster.Span
	}{
		{"its saves are reported", cluster.Saving{}, cluster.Habit{Reports: 1, Every: 10 * minute, Redone: 5 * minute}, cluster.SavesEvery, 10 * minute},
		{"they are, and it repeats more", cluster.Saving{}, cluster.Habit{Reports: 1, Every: 10 * minute, Redone: 15 * minute}, cluster.SavesEvery, 15 * minute},
		{"they are declared", every, cluster.Habit{Redone: 5 * minute}, cluster.SavesEvery, 10 * minute},
		{"they are, and it repeats more", every, cluster.Habit{Redone: 15 * minute}, cluster.SavesEvery, 15 * minute},
	} {
		c.habit.Last = cluster.Resumed
		if s := stop.Resolve(nil, &c.habit, c.said, cluster.Saving{}); s.Manner != c.manner || s.Every != c.every {
			t.Errorf("%s: %s every %s, want %s", c.name, s.Manner, s.Every, c.every)
		}
	}
}

// The first report of an attempt proves a resumption by more work than could be done since, at twice the speed, or at eight times on another model,
// and a restart if that is at most half of the work before.
func TestFirstReports(t *testing.T) {
	// The attempt before did a step a second for twenty minutes.
	before := cluster.Conduct{Steps: 1200, At: 1, In: 20 * minute, Model: "v100"}
	for _, c := range []struct {
		name   string
		before func(c *cluster.Conduct)
		report stop.Report
		want   cluster.Resumption
		redone cluster.Span
	}{
		{"as much as at twice the speed", nil, stop.Report{Steps: 600, In: 5 * minute, Model: "v100"}, cluster.Restarted, 0},
		{"a step more", nil, stop.Report{Steps: 601, In: 5 * minute, Model: "v100"}, cluster.Resumed, 599 * second},
		{"it could have done more than half by now", nil, stop.Report{Steps: 602, In: 5*minute + second, Model: "v100"}, cluster.UnknownResumption, 0},
		{"on another model as much as at eight times the speed", nil, stop.Report{Steps: 600, In: 75 * second, Model: "k80"}, cluster.Restarted, 0},
		{"on another model a step more", nil, stop.Report{Steps: 601, In: 75 * second, Model: "k80"}, cluster.Resumed, 599 * second},
		{"on several models, after several", func(c *cluster.Conduct) { c.Model = "" }, stop.Report{Steps: 600, In: 75 * second}, cluster.Restarted, 0},
		{"after an attempt that did nothing", func(c *cluster.Conduct) { c.Steps = 0 }, stop.Report{Steps: 601, In: 5 * minute, Model: "v100"}, cluster.UnknownResumption, 0},
		{"after an attempt with a negative count", func(c *cluster.Conduct) { c.Steps = -1 }, stop.Report{Steps: 601, In: 5 * minute, Model: "v100"}, cluster.UnknownResumption, 0},
		{"after an attempt of no length", func(c *cluster.Conduct) { c.In = 0 }, stop.Report{Steps: 601, In: 5 * minute, Model: "v100"}, cluster.UnknownResumption, 0},
	} {
		was := before
		if c.before != nil {
			c.before(&was)
		}
		if got, redone := c.report.Resumption(&was); got != c.want || redone != c.redone {
			t.Errorf("%s: %q after %s, want %q after %s", c.name, got, redone, c.want, c.redone)
		}
	}
}

// A job that completes as late as jobs of its type that were never stopped began anew, if at least two of these are known.
func TestCompletions(t *testing.T) {
	const begin = 2 * minute
	for _, c := range []struct {
		name          string
		completed     int
		last, earlier cluster.Span
		want          cluster.Resumption
	}{
		{"two are known", 2, 60 * minute, 30 * minute, cluster.Restarted},
		{"one is", 1, 60 * minute, 30 * minute, cluster.UnknownResumption},
		{"the rest of its work would take as long", 2, 57 * minute, 10 * minute, cluster.UnknownResumption},
		{"it had not run before", 2, 60 * minute, 0, cluster.UnknownResumption},
		{"it was shorter than its type", 2, 53 * minute, 50 * minute, cluster.UnknownResumption},
	} {
		habit := cluster.Habit{Completed: c.completed, Shortest: 60 * minute, Longest: 60 * minute}
		if got, _ := stop.Completion(nil, "v100", &habit, c.last, c.earlier, begin); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	// 57 minutes are what 50 and a tenth leave after a start.
	habit := cluster.Habit{Completed: 2, Shortest: 60 * minute, Longest: 60 * minute}
	for last, want := range map[cluster.Span]cluster.Resumption{57 * minute: cluster.UnknownResumption, 57*minute + 1: cluster.Restarted} {
		if got, _ := stop.Completion(nil, "v100", &habit, last, 10*minute, begin); got != want {
			t.Errorf("after %d ms: %q, want %q", last, got, want)
		}
	}
}

// Jobs of a type are short if nine of ten of enough were.
func TestShort(t *testing.T) {
	for _, c := range []struct {
		jobs, brief  int32
		short, known bool
	}{{3999, 3999, false, false}, {4000, 4000, true, true}, {10000, 9000, true, true}, {10000, 8999, false, true}} {
		h := &cluster.Habit{Brief: &cluster.Brief{Jobs: c.jobs, Short: c.brief, Ran: second}}
		if _, short, known := stop.Short(h); short != c.short || known != c.known {
			t.Errorf("%d of %d: short %t, known %t", c.brief, c.jobs, short, known)
		}
	}
}

// A time of up to two hours from a start to the first progress is a start; work that is repeated after a stop of ours within its tolerance is none.
func TestWhatHabitsLearn(t *testing.T) {
	train := cluster.JobType{User: "ann", Command: "train", GPUs: 1}
	for took, want := range map[cluster.Span]cluster.Span{2 * hour: 2 * hour, 2*hour + 1: minute, 0: minute, -1: minute} {
		var b stop.Habits
		b.Reset(nil)
		b.Began(train, 1, "v100", took)
		if got := stop.Begin(b.At(b.Find(train)), "v100", minute); got != want {
			t.Errorf("a start of %s costs %s, want %s", took, got, want)
		}
	}
	const tolerance = 3 * minute
	for _, c := range []struct {
		redone   cluster.Span
		ours     bool
		noticed  bool
		onTerm   int
		onNotice int
	}{{tolerance, true, false, 1, 0}, {tolerance, true, true, 0, 1}, {tolerance + 1, true, true, 0, 0}, {0, false, true, 0, 0}} {
		var b stop.Habits
		b.Reset(nil)
		b.Judged(train, 1, cluster.Resumed, c.redone, &cluster.Conduct{Ours: c.ours, Noticed: c.noticed})
		if h := b.At(b.Find(train)); h.OnTerm != c.onTerm || h.OnNotice != c.onNotice || h.Resumed != 1 || h.Redone != c.redone {
			t.Errorf("%+v gives %+v", c, h)
		}
	}
}

// A job saves on a notice that is as long as its save takes, and its cost is then the work after the notice, the save and a start.
func TestNoticesThatAreLongEnough(t *testing.T) {
	for _, c := range []struct {
		notice, cost cluster.Span
	}{{5 * minute, 12 * minute}, {5*minute - 1, hour}, {0, hour}} {
		j := stop.Job{Saving: &cluster.Saving{Manner: cluster.SavesOnNotice, Takes: 5 * minute}, Start: 1, Begin: 2 * minute}
		if got := j.Cost(cluster.Instant(1).Add(hour), c.notice); got != c.cost {
			t.Errorf("after a notice of %s a stop costs %s, want %s", c.notice, got, c.cost)
		}
	}
}
