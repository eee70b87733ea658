package stop

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

const (
	minute                 = cluster.Minute
	hour                   = cluster.Hour
	start  cluster.Instant = 1_800_000_000_000
)

func job(m cluster.Manner) Job {
	return Job{Saving: &cluster.Saving{Manner: m, Takes: 10 * cluster.Second}, Start: start, Begin: 5 * minute}
}

// When jobs of each manner may be stopped, with an allowance of 15 minutes and 2 %, and starts of 5 minutes.
func TestWhenAJobMayBeStopped(t *testing.T) {
	rule := Rule{Allowance: 15 * minute, OverheadMilli: 20}
	after := func(s cluster.Span) cluster.Instant { return start.Add(s) }
	never, notice, term, every := job(cluster.SavesNever), job(cluster.SavesOnNotice), job(cluster.SavesOnTerm), job(cluster.SavesEvery)
	every.Saving.Every = 2 * hour
	reported := every
	reported.Saved = after(3 * hour)
	spent := term
	spent.Spent = 15 * minute
	for _, c := range []struct {
		what   string
		job    Job
		at     cluster.Instant
		notice cluster.Span
		may    bool
		cost   cluster.Span
	}{
		{"young, never saves", never, after(14 * minute), minute, true, 14 * minute},
		{"a start is lost, too", never, after(minute), minute, true, 5 * minute},
		{"grown up, never saves", never, after(16 * minute), minute, false, 16 * minute},
		{"saves at the notice", notice, after(hour), minute, true, minute + 5*minute + 10*cluster.Second},
		{"saves at the notice, and none is given", notice, after(hour), 0, false, hour},
		{"saves at the notice, too slowly", Job{Saving: &cluster.Saving{Manner: cluster.SavesOnNotice, Takes: 2 * minute}, Start: start}, after(hour), minute, false, hour},
		{"saves at SIGTERM", term, after(hour), 0, true, 5*minute + 10*cluster.Second},
		{"its budget is spent", spent, after(hour), 0, false, 5*minute + 10*cluster.Second},
		{"its budget has grown again", spent, after(5 * hour), 0, true, 5*minute + 10*cluster.Second},
		{"in the middle of an interval", every, after(hour), minute, false, hour},
		{"after a save that must be done by now", every, after(2*hour + 8*minute), minute, true, 8*minute + 5*minute + 10*cluster.Second},
		{"before it surely is", every, after(2*hour + 2*minute), minute, false, 2*hour + 2*minute},
		{"after a reported save", reported, after(3*hour + minute), minute, true, minute + 5*minute + 10*cluster.Second},
		{"long after it", reported, after(4 * hour), minute, false, hour + 5*minute + 10*cluster.Second},
	} {
		if got := c.job.May(rule, c.at, c.notice); got != c.may {
			t.Errorf("%s: %v, its cost is %s of %s", c.what, got, c.job.Cost(c.at, c.notice), c.job.Budget(rule, c.at))
		}
		if got := c.job.Cost(c.at, c.notice); got != c.cost {
			t.Errorf("%s: costs %s, want %s", c.what, got, c.cost)
		}
	}
	if !never.May(Rule{}, after(hour), 0) {
		t.Error("without a budget a job may not be stopped")
	}
}

// From is the first moment, and Until the last in a row, at which a job may be stopped.
func TestFromAndUntil(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		span := func(name string, most cluster.Span) cluster.Span {
			return cluster.Span(rapid.Int64Range(0, int64(most/cluster.Second)).Draw(rt, name)) * cluster.Second
		}
		j := job(rapid.SampledFrom([]cluster.Manner{cluster.UnknownManner, cluster.SavesNever, cluster.SavesOnNotice, cluster.SavesOnTerm, cluster.SavesEvery}).Draw(rt, "manner"))
		j.Saving.Every, j.Saving.Takes = minute+span("every", 3*hour), span("takes", minute)
		j.Ran, j.Spent, j.Begin = span("ran", 20*hour), span("spent", hour), span("begin", 10*minute)
		rule := Rule{span("allowance", hour) + cluster.Second, int64(rapid.IntRange(0, 200).Draw(rt, "overhead"))}
		notice := rapid.SampledFrom([]cluster.Span{0, minute}).Draw(rt, "notice")
		if rapid.Bool().Draw(rt, "reported") {
			j.Saved = start.Add(span("saved", hour))
		}
		t0 := max(start, j.Saved).Add(span("from", 5*hour))
		const step = cluster.Instant(10 * cluster.Second)
		t0 = max(t0, start.Add(notice+cluster.Second)) // before, a job has nothing to save
		from := j.From(rule, t0, notice)
		if from != 0 && !j.May(rule, from, notice) {
			rt.Fatalf("it may not be stopped at %s, %s after %s", from, from.Sub(t0), t0)
		}
		for at := t0; at < t0.Add(12*hour) && (from == 0 || at < from); at += step {
			if j.May(rule, at, notice) {
				rt.Fatalf("it may be stopped at %s, before %s", at, from)
			}
		}
		if !j.May(rule, t0, notice) {
			return
		}
		until := j.Until(rule, t0, notice)
		end := until
		if until == 0 {
			end = t0.Add(12 * hour)
		}
		base, _ := j.base(t0, notice)
		for at := t0; at <= end; at += step {
			if later, _ := j.base(at, notice); later != base && j.Saving.Manner == cluster.SavesEvery {
				return // it has saved again
			}
			if !j.May(rule, at, notice) {
				rt.Fatalf("it may not be stopped at %s, before %s", at, until)
			}
		}
		if until != 0 && j.Saving.Manner != cluster.SavesEvery && j.May(rule, until+1000, notice) {
			rt.Fatalf("it may still be stopped after %s", until)
		}
	})
}

// The work that a stop at 3 h 1 min destroys, after a notice of a minute, and its certainty.
func TestHowWellALossIsKnown(t *testing.T) {
	saved := func(j Job, at cluster.Span) Job { j.Saved = start.Add(at); return j }
	every := func(j Job) Job { j.Saving.Every = hour; return j }
	seen := func(j Job) Job {
		j.Saving.Source, j.Saving.Resumes = cluster.FromConduct, cluster.Restarted
		return j
	}
	slow := job(cluster.SavesOnNotice)
	slow.Saving.Takes = 2 * minute
	for _, c := range []struct {
		what  string
		job   Job
		since cluster.Span
		sure  cluster.Certainty
	}{
		{"nothing is known", job(cluster.UnknownManner), 0, cluster.UnknownLoss},
		{"but that it reported a save", saved(job(cluster.UnknownManner), 2*hour), 2 * hour, cluster.KnownLoss},
		{"it says that it never saves", job(cluster.SavesNever), 0, cluster.BoundedLoss},
		{"it was seen to restart", seen(job(cluster.SavesNever)), 0, cluster.KnownLoss},
		{"so, and reported a save", saved(seen(job(cluster.SavesNever)), 2*hour), 2 * hour, cluster.KnownLoss},
		{"every hour, by a reported save", saved(every(job(cluster.SavesEvery)), 2*hour), 2 * hour, cluster.KnownLoss},
		{"every hour, and none was reported", every(job(cluster.SavesEvery)), 2 * hour, cluster.BoundedLoss},
		{"at the notice", job(cluster.SavesOnNotice), 3 * hour, cluster.BoundedLoss},
		{"at the notice, too slowly", slow, 0, cluster.BoundedLoss},
	} {
		since, sure := c.job.Destroys(start.Add(3*hour+minute), minute)
		if since != start.Add(c.since) || sure != c.sure {
			t.Errorf("%s: %s from %s on, want %s from %s on", c.what, sure, since.Sub(start), c.sure, c.since)
		}
		from, _ := c.job.base(start.Add(3*hour+minute), minute)
		if got, want := start.Add(3*hour+minute).Sub(from), 3*hour+minute-c.since; got != want {
			t.Errorf("%s: %s, and the cost counts %s", c.what, want, got)
		}
	}
	term := job(cluster.SavesOnTerm)
	if since, _ := term.Destroys(start.Add(hour), 0); since != 0 {
		t.Errorf("a job that saves at SIGTERM loses what it did from %s on", since)
	}
}

func TestWhenABudgetIsGone(t *testing.T) {
	rule := Rule{Allowance: 15 * minute, OverheadMilli: 20}
	for _, c := range []struct {
		what              string
		ran, spent, begin cluster.Span
		rule              Rule
		want              bool
	}{
		{"never stopped", 0, 0, 5 * minute, rule, false},
		{"never stopped, and its start costs more than the allowance", 0, 0, 20 * minute, rule, false},
		{"another start is within the budget", 0, 10 * minute, 5 * minute, rule, false},
		{"another start is beyond it", 0, 10*minute + 1, 5 * minute, rule, true},
		{"it has run, and its budget has grown", 10 * hour, 20 * minute, 5 * minute, rule, false},
		{"it has spent that, too", 10 * hour, 23 * minute, 5 * minute, rule, true},
		{"no overhead", 1000 * hour, 11 * minute, 5 * minute, Rule{Allowance: 15 * minute}, true},
		{"no budget", 0, hour, 5 * minute, Rule{}, false},
	} {
		j := Job{Start: start, Ran: c.ran, Spent: c.spent, Begin: c.begin}
		if got := j.Gone(c.rule); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

// A stop beyond the budget leaves it gone; while it is gone no stop of the next attempt's beginning is within it.
func TestStopsBeyondTheBudgetLeaveItGone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		span := func(name string, most cluster.Span) cluster.Span {
			return cluster.Span(rapid.Int64Range(0, int64(most)).Draw(rt, name))
		}
		j := job(rapid.SampledFrom([]cluster.Manner{cluster.SavesNever, cluster.SavesOnNotice, cluster.SavesOnTerm, cluster.SavesEvery}).Draw(rt, "manner"))
		j.Saving.Every, j.Begin = minute+span("every", 3*hour), span("begin", 20*minute)
		j.Ran, j.Spent = span("ran", 20*hour), span("spent", hour)
		rule := Rule{span("allowance", hour) + cluster.Second, int64(rapid.IntRange(0, 200).Draw(rt, "overhead"))}
		at := start.Add(span("age", 10*hour))
		beyond, cost := !j.May(rule, at, minute), j.Cost(at, minute)
		j.Ran, j.Spent, j.Start = j.run(at), j.Spent+cost, at.Add(hour)
		if beyond && !j.Gone(rule) {
			rt.Fatalf("%s are left after a stop beyond the budget", j.Budget(rule, j.Start))
		}
		if j.Gone(rule) && j.May(rule, j.Start, 0) {
			rt.Fatal("the budget is gone, and a stop is within it")
		}
	})
}
