package budget_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/round/roundtest"
)

const (
	now    = roundtest.Now
	minute = cluster.Minute
	second = cluster.Second
)

// site is a site whose stops may cost a job ten minutes. A start costs two, and may cost its pool as much.
func site(cases ...cluster.Case) *cluster.Snapshot {
	s := roundtest.Snapshot(cases...)
	s.Settings.StopAllowance, s.Settings.StartCost = 10*minute, 2*minute
	return s
}

// open opens the account of a round. The facts have a copy of the ledger's pools.
func open(s *cluster.Snapshot, change ...func(in *round.Facts)) (*budget.Account, *round.Facts) {
	in, leases := roundtest.Facts(s)
	in.Ledger.Pools = slices.Clone(in.Ledger.Pools)
	for _, f := range change {
		f(in)
	}
	a := new(budget.Account)
	a.Open(in, new(eligible.Nodes).Find(in, leases, nil))
	return a, in
}

// waits returns a waiting job that saves in a manner.
func waits(saves cluster.Saving) cluster.Case {
	c := roundtest.Job(7, "bio", 2, cluster.Waiting)
	c.Job.Declares = saves
	return c
}

// runs returns a job that has run on v100 for so long, and saves in a manner.
func runs(id int64, ran cluster.Span, saves cluster.Saving) cluster.Case {
	c := roundtest.On(roundtest.Job(id, "bio", 1, cluster.Running), "a", "v100", 1)
	c.Job.Start, c.Job.Declares = now.Add(-ran), saves
	return c
}

// active returns a lease of a job on v100.
func active(job cluster.JobKey, end cluster.Span) cluster.Lease {
	return cluster.Lease{Job: job, Term: 1, Pool: "v100", Size: cluster.Whole(1), State: cluster.Active, Granted: now.Add(-cluster.Hour), Start: now.Add(-cluster.Hour), End: now.Add(end)}
}

// after is a moment after now, or before.
func after(s cluster.Span) cluster.Instant { return now.Add(s) }

// A lease ends at the next boundary if its job may be stopped there, else at the last moment before or the first one after. It binds the GPUs of a job
// that may not be stopped at its end.
func TestEndsOfLeases(t *testing.T) {
	every := func(s cluster.Span) cluster.Saving {
		return cluster.Saving{Manner: cluster.SavesEvery, Every: s}
	}
	none := cluster.Saving{}
	for _, c := range []struct {
		name   string
		job    cluster.Case
		change func(s *cluster.Snapshot, c *cluster.Case)
		end    cluster.Span
		binds  bool
	}{
		{"a new job may lose a term", waits(none), func(s *cluster.Snapshot, _ *cluster.Case) { s.Settings.StopAllowance = 15 * minute }, 15 * minute, false},
		{"it may lose a millisecond less, and ends in the last interval", waits(none), func(s *cluster.Snapshot, _ *cluster.Case) { s.Settings.StopAllowance = 15*minute - 1 }, 15*minute - 20*second, false},
		{"it may lose ten minutes", waits(none), nil, 10*minute - 10*second, false},
		{"it has lost eight of them", waits(none), func(_ *cluster.Snapshot, c *cluster.Case) { c.Record.Spent = 8 * minute }, 2*minute - 10*second, false},
		{"it has lost nine: not even a start is left", waits(none), func(_ *cluster.Snapshot, c *cluster.Case) { c.Record.Spent = 9 * minute }, 15 * minute, true},
		{"it has run long before, and overhead grows with that", waits(none), func(s *cluster.Snapshot, c *cluster.Case) {
			s.Settings.StopOverheadMilli, c.Record.Ran = 100, 35*minute
		}, 15 * minute, false},
		{"it has lost too much already", runs(7, 20*minute, none), nil, 15 * minute, true},
		{"it saves at the notice", runs(7, 20*minute, cluster.Saving{Manner: cluster.SavesOnNotice}), nil, 15 * minute, false},
		{"it saves at the notice, which is too short", runs(7, 20*minute, cluster.Saving{Manner: cluster.SavesOnNotice, Takes: minute + 1}), nil, 15 * minute, true},
		{"it saves before the boundary", runs(7, 20*minute, every(30*minute)), nil, 15 * minute, false},
		{"it saves after the boundary, and long before the next", runs(7, 20*minute, every(40*minute)), nil, 22*minute + 48*second, false},
		{"it saves shortly before the boundary after the next", runs(7, 20*minute, every(45*minute)), nil, 30 * minute, false},
		{"it has just saved", runs(7, 20*minute, none), func(s *cluster.Snapshot, _ *cluster.Case) {
			s.Cases[0].Record.Saved = now
		}, 8*minute - 10*second, false},
		{"a lease has a minimum length", waits(cluster.Saving{Manner: cluster.SavesOnTerm}), func(s *cluster.Snapshot, _ *cluster.Case) { s.Settings.MinLease = 20 * minute }, 30 * minute, false},
		{"it wishes for forty minutes", waits(cluster.Saving{Manner: cluster.SavesOnTerm}), func(s *cluster.Snapshot, c *cluster.Case) {
			s.Settings.MinLeaseTerms, c.Job.Hints = 4, &cluster.Hints{MinLease: 40 * minute}
		}, 45 * minute, false},
		{"it wishes for more than the site allows", waits(cluster.Saving{Manner: cluster.SavesOnTerm}), func(s *cluster.Snapshot, c *cluster.Case) {
			s.Settings.MinLeaseTerms, c.Job.Hints = 2, &cluster.Hints{MinLease: 40 * minute}
		}, 30 * minute, false},
		{"most of its wish is past", runs(7, 20*minute, cluster.Saving{Manner: cluster.SavesOnTerm}), func(s *cluster.Snapshot, c *cluster.Case) {
			s.Settings.MinLeaseTerms, c.Job.Hints = 4, &cluster.Hints{MinLease: 40 * minute}
		}, 30 * minute, false},
		{"its wish is longer than GPUs may be kept", waits(cluster.Saving{Manner: cluster.SavesOnTerm}), func(s *cluster.Snapshot, c *cluster.Case) {
			s.Settings.MinLeaseTerms, c.Job.Hints = 9, &cluster.Hints{MinLease: cluster.Hour + 1}
		}, 75 * minute, true},
		{"its wish is as long as that", waits(cluster.Saving{Manner: cluster.SavesOnTerm}), func(s *cluster.Snapshot, c *cluster.Case) {
			s.Settings.MinLeaseTerms, c.Job.Hints = 9, &cluster.Hints{MinLease: cluster.Hour}
		}, 60 * minute, false},
		{"it is never reclaimed", runs(7, 20*minute, none), func(_ *cluster.Snapshot, c *cluster.Case) { c.Control = cluster.NoReclaim }, 15 * minute, true},
		{"stops have no budget", runs(7, 20*minute, none), func(s *cluster.Snapshot, _ *cluster.Case) { s.Settings.StopAllowance = 0 }, 15 * minute, false},
		{"its pool can afford no stop", runs(7, 20*minute, cluster.Saving{Manner: cluster.SavesOnTerm}), func(s *cluster.Snapshot, c *cluster.Case) {
			s.Settings.StopTotalMilli, s.Ledger.Pools[1].Capacity = 10, 1
		}, 15 * minute, true},
	} {
		s := site(c.job)
		if c.change != nil {
			c.change(s, &s.Cases[0])
		}
		a, _ := open(s)
		if got := a.EndFor(0, now); got != after(c.end) {
			t.Errorf("%s: it ends after %s, want %s", c.name, got.Sub(now), c.end)
		}
		if got := a.Binds(0, after(c.end)); got != c.binds {
			t.Errorf("%s: it binds: %t", c.name, got)
		}
		if end, binds, cost := budget.EndAndBinds(a, 0, now); end != after(c.end) || binds != c.binds || s.Settings.StopTotalMilli == 0 && cost != 0 {
			t.Errorf("%s: asked at once, it ends after %s, binds %t and costs %s", c.name, end.Sub(now), binds, cost)
		}
	}
}

// The notice of a job is as long as its save needs it, within bounds, and stays as it was given.
func TestNotices(t *testing.T) {
	for _, c := range []struct {
		name  string
		max   cluster.Span // notice.max; 0 = one length for all
		saves cluster.Saving
		lease func(l *cluster.Lease)
		want  cluster.Span
	}{
		{"all are alike", 0, cluster.Saving{Takes: 4 * minute}, nil, minute},
		{"its save takes long", 10 * minute, cluster.Saving{Takes: 4 * minute}, nil, 6*minute + 20*second},
		{"its save takes too long", 5 * minute, cluster.Saving{Takes: 4 * minute}, nil, 5 * minute},
		{"its save is short", 5 * minute, cluster.Saving{Takes: second}, nil, 30 * second},
		{"nothing is known of it", 5 * minute, cluster.Saving{}, nil, minute},
		{"it never saves", 5 * minute, cluster.Saving{Manner: cluster.SavesNever, Takes: 4 * minute}, nil, minute},
		{"notice was given", 10 * minute, cluster.Saving{Takes: 4 * minute}, func(l *cluster.Lease) { l.State, l.Notice = cluster.Noticed, 3*minute }, 3 * minute},
		{"the usual notice was given", 10 * minute, cluster.Saving{Takes: 4 * minute}, func(l *cluster.Lease) { l.State = cluster.Noticed }, minute},
		{"its lease ends without one", 10 * minute, cluster.Saving{Takes: 4 * minute}, func(l *cluster.Lease) { l.Notice = 3 * minute }, 6*minute + 20*second},
	} {
		s := site(runs(7, cluster.Hour, c.saves))
		s.Settings.NoticeMin, s.Settings.NoticeMax, s.Leases = 30*second, c.max, []cluster.Lease{active(1, minute)}
		if c.lease != nil {
			c.lease(&s.Leases[0])
		}
		a, _ := open(s)
		if got := a.Notice(0); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A signal goes to jobs that have a handler for it: by their own word, by a rule, or as they save on notices. It kills others.
func TestSignals(t *testing.T) {
	asks := func(signal, to string) cluster.Saving { return cluster.Saving{Signal: signal, SignalTo: to} }
	for _, c := range []struct {
		name  string
		ran   cluster.Span
		saves cluster.Saving
		rule  *cluster.SignalRule
		want  string
	}{
		{"nothing is known of it", cluster.Hour, cluster.Saving{}, nil, " "},
		{"it saves at the notice", cluster.Hour, cluster.Saving{Manner: cluster.SavesOnNotice}, nil, "USR1 steps"},
		{"it saves at the term signal", cluster.Hour, cluster.Saving{Manner: cluster.SavesOnTerm}, nil, " "},
		{"it asks for a signal", cluster.Hour, asks("USR2", "batch"), nil, "USR2 batch"},
		{"it leaves open who gets it", cluster.Hour, asks("USR2", ""), nil, "USR2 steps"},
		{"it asks for none, and a rule is for it", cluster.Hour, asks(cluster.NoSignal, ""), &cluster.SignalRule{Signal: "HUP", To: "all"}, " "},
		{"a rule is for all", cluster.Hour, cluster.Saving{}, &cluster.SignalRule{Signal: "HUP", To: "all"}, "HUP all"},
		{"a rule is for its partition, QOS and account", cluster.Hour, cluster.Saving{}, &cluster.SignalRule{Partition: "gpu", QOS: "low", Account: "bio", Signal: "HUP", To: "all"}, "HUP all"},
		{"a rule is for another partition", cluster.Hour, cluster.Saving{}, &cluster.SignalRule{Partition: "cpu", Signal: "HUP", To: "all"}, " "},
		{"a rule is for another QOS", cluster.Hour, cluster.Saving{}, &cluster.SignalRule{QOS: "high", Signal: "HUP", To: "all"}, " "},
		{"a rule is for another account", cluster.Hour, cluster.Saving{}, &cluster.SignalRule{Account: "nlp", Signal: "HUP", To: "all"}, " "},
		{"its own word precedes the rule", cluster.Hour, asks("USR2", ""), &cluster.SignalRule{Signal: "HUP", To: "all"}, "USR2 steps"},
		{"it has just started", 2 * minute, asks("USR2", "batch"), nil, "USR2 batch"},
		{"it is still starting", 2*minute - 1, asks("USR2", "batch"), nil, " "},
	} {
		s := site(runs(7, c.ran, c.saves))
		s.Settings.Signal, s.Settings.SignalTo, s.Cases[0].Job.QOS = "USR1", "steps", "low"
		if c.rule != nil {
			s.Settings.Signals = []cluster.SignalRule{*c.rule}
		}
		a, _ := open(s)
		if signal, to := a.Signal(0); signal+" "+to != c.want {
			t.Errorf("%s: %q %q, want %s", c.name, signal, to, c.want)
		}
		if got, want := a.SavesAtEnd(0), c.saves.Manner != ""; got != want {
			t.Errorf("%s: it saves at its end: %t", c.name, got)
		}
	}
}

// A pool saves for stops a part of the run time since the last round, up to the allowance of a job on all of its GPUs.
func TestBudgetsOfPools(t *testing.T) {
	const gpuMinute = cluster.GPUTime(minute)
	for _, c := range []struct {
		name     string
		had      cluster.GPUTime
		ran      cluster.GPUTime // since the last round: a third of it by jobs of no tenant
		change   func(s *cluster.Snapshot)
		want     cluster.GPUTime
		mayStart cluster.GPUTime // the cost of stops that more jobs may bring
	}{
		{"it grows", 5 * gpuMinute, 300 * gpuMinute, nil, 8 * gpuMinute, 8 * gpuMinute},
		{"it is full", 39 * gpuMinute, 300 * gpuMinute, nil, 40 * gpuMinute, 40 * gpuMinute},
		{"it is overdrawn", -5 * gpuMinute, 300 * gpuMinute, nil, -2 * gpuMinute, -2 * gpuMinute},
		{"time runs backwards", 5 * gpuMinute, -300 * gpuMinute, nil, 5 * gpuMinute, 5 * gpuMinute},
		{"the pool is new", 0, 0, func(s *cluster.Snapshot) { s.Ledger.Pools[1].Capacity = 0 }, 40 * gpuMinute, 40 * gpuMinute},
		{"a start costs more than the allowance", 99 * gpuMinute, 0, func(s *cluster.Snapshot) { s.Settings.StartCost = 12 * minute }, 48 * gpuMinute, 48 * gpuMinute},
		{"stops have no total", 5 * gpuMinute, 300 * gpuMinute, func(s *cluster.Snapshot) { s.Settings.StopTotalMilli = 0 }, 0, math.MaxInt64},
		{"stops have no budget", 5 * gpuMinute, 300 * gpuMinute, func(s *cluster.Snapshot) { s.Settings.StopAllowance = 0 }, 0, math.MaxInt64},
	} {
		s := site()
		s.Settings.StopTotalMilli = 10
		s.Ledger.Pools[1].Stops, s.Ledger.Pools[1].Capacity, s.Ledger.Pools[1].Tenants, s.Ledger.Pools[1].Untouchable = c.had, 1, 7*gpuMinute, 3*gpuMinute
		if c.change != nil {
			c.change(s)
		}
		a, in := open(s, func(in *round.Facts) {
			in.Ledger.Pools[1].Tenants += c.ran * 2 / 3
			in.Ledger.Pools[1].Untouchable += c.ran / 3
		})
		a.PutPools(in.Ledger.Pools)
		if got := in.Ledger.Pools[1].Stops; got != c.want || budget.Pays(a, 1) != c.mayStart {
			t.Errorf("%s: %d and %d ms, want %d and %d", c.name, got, budget.Pays(a, 1), c.want, c.mayStart)
		}
	}
}

// A pool keeps money for stops at the ends of leases, of those that end first and hold more than they are due. The rest pays for stops now.
func TestStopsThatAPoolCanAfford(t *testing.T) {
	never := cluster.Saving{Manner: cluster.SavesNever}
	// A job that is four minutes old costs five at a notice from now, and a lease that ends at the boundary as much and a round more.
	young := func(id int64) cluster.Case { return runs(id, 4*minute, never) }
	holder := runs(10, 10*second, never) // a grant follows it
	holder.Control = cluster.NoReclaim
	granted := func(end cluster.Span, behind cluster.JobKey) cluster.Lease {
		return cluster.Lease{Job: 1, Term: 1, Pool: "v100", Size: cluster.Whole(1), State: cluster.Granted, Granted: now, End: after(end), Behind: behind}
	}
	for _, c := range []struct {
		name   string
		money  cluster.Span // of a GPU
		cases  []cluster.Case
		leases []cluster.Lease
		change func(s *cluster.Snapshot)
		owes   []budget.Owe
	}{
		{"there is enough for both", 13 * minute, []cluster.Case{young(7), young(8)}, []cluster.Lease{active(1, minute), active(2, minute)}, nil, []budget.Owe{{}, {}}},
		{"there is enough for one at its end, and the other now", 10*minute + 20*second, []cluster.Case{young(7), young(8)}, []cluster.Lease{active(1, minute), active(2, minute)}, nil, []budget.Owe{{}, {}}},
		{"a second less: the second waits", 10*minute + 9*second, []cluster.Case{young(7), young(8)}, []cluster.Lease{active(1, minute), active(2, minute)}, nil, []budget.Owe{{}, {Dear: true, Unpaid: true}}},
		{"the lease that ends first comes first", 7 * minute, []cluster.Case{young(7), young(8)}, []cluster.Lease{active(1, minute+1), active(2, minute)}, nil, []budget.Owe{{Dear: true, Unpaid: true}, {}}},
		{"of equal ends the tenant that holds more than it is due comes first", 7 * minute, []cluster.Case{young(7), young(8)}, []cluster.Lease{active(1, minute), active(2, minute)}, func(s *cluster.Snapshot) {
			s.Cases[1].Record.Tenant = "nlp"
			s.Ledger.Tenants[1].Entitlement = cluster.WholeGPU
		}, []budget.Owe{{Dear: true, Unpaid: true}, {}}},
		{"of equal tenants the cheapest comes first", 7 * minute, []cluster.Case{runs(7, 5*minute, never), young(8)}, []cluster.Lease{active(1, minute), active(2, minute)}, nil, []budget.Owe{{Dear: true, Unpaid: true}, {}}},
		{"no money is kept for a job that ends soon by itself", 7 * minute, []cluster.Case{young(7), young(8)}, []cluster.Lease{active(1, minute), active(2, minute)}, func(s *cluster.Snapshot) {
			s.Settings.BindHorizon, s.Cases[0].Job.Limit = 1, 19*minute
		}, []budget.Owe{{Dear: true}, {}}},
		{"a millisecond later it does not end soon", 7 * minute, []cluster.Case{young(7), young(8)}, []cluster.Lease{active(1, minute), active(2, minute)}, func(s *cluster.Snapshot) {
			s.Settings.BindHorizon, s.Cases[0].Job.Limit = 1, 19*minute+1
		}, []budget.Owe{{}, {Dear: true, Unpaid: true}}},
		{"nor does one whose time stands still", 7 * minute, []cluster.Case{young(7), young(8)}, []cluster.Lease{active(1, minute), active(2, minute)}, func(s *cluster.Snapshot) {
			s.Settings.BindHorizon, s.Cases[0].Job.Limit, s.Cases[0].Job.State = 1, 19*minute, cluster.Suspended
		}, []budget.Owe{{}, {Dear: true, Unpaid: true}}},
		{"a stop that is as good as made is paid first", 6 * minute, []cluster.Case{young(7), young(8)}, []cluster.Lease{active(1, minute), func() cluster.Lease { l := active(2, minute); l.State = cluster.Noticed; return l }()}, nil,
			[]budget.Owe{{Dear: true, Unpaid: true}, {}}},
		{"and so is a recall", 6 * minute, []cluster.Case{young(7), young(8)}, []cluster.Lease{active(1, minute), func() cluster.Lease { l := active(2, minute); l.Why = round.Recalled; return l }()}, nil,
			[]budget.Owe{{Dear: true, Unpaid: true}, {}}},
		{"money is kept for a grant, too", 10*minute + 9*second, []cluster.Case{waits(never), young(8)}, []cluster.Lease{granted(5*minute, 0), active(2, minute)}, nil, []budget.Owe{{Unpaid: true}, {}}},
		{"but not for one that follows a job", 10*minute + 9*second, []cluster.Case{waits(never), young(8), holder}, []cluster.Lease{granted(5*minute, 3), active(2, minute), active(3, minute)}, nil, []budget.Owe{{}, {}, {}}},
		{"nor does its tenant hold GPUs by that", 7 * minute, []cluster.Case{waits(never), young(8), young(9), holder}, []cluster.Lease{granted(5*minute, 4), active(2, minute), active(3, minute), active(4, minute)}, func(s *cluster.Snapshot) {
			s.Cases[2].Record.Tenant = "nlp"
			s.Ledger.Tenants[1].Entitlement = 2 * cluster.WholeGPU
		}, []budget.Owe{{}, {Dear: true, Unpaid: true}, {}, {}}},
		{"a job that is opened costs nothing", 0, []cluster.Case{young(7)}, []cluster.Lease{func() cluster.Lease { l := active(1, minute); l.Adopted = true; return l }()}, func(s *cluster.Snapshot) {
			s.Cases[0].Record.Basis = &cluster.Basis{Forced: true}
		}, []budget.Owe{{}}},
		{"a job that is never reclaimed costs nothing", 6 * minute, []cluster.Case{young(7), young(8)}, []cluster.Lease{active(1, minute), active(2, minute)}, func(s *cluster.Snapshot) { s.Cases[0].Control = cluster.NoReclaim }, []budget.Owe{{}, {}}},
		{"a lease of a model that vanished costs nothing", 6 * minute, []cluster.Case{young(7), young(8)}, []cluster.Lease{func() cluster.Lease { l := active(1, minute); l.Pool = "p100"; return l }(), active(2, minute)}, nil, []budget.Owe{{}, {}}},
	} {
		s := site(c.cases...)
		s.Settings.StopTotalMilli, s.Leases = 10, c.leases
		s.Ledger.Pools[1].Stops, s.Ledger.Pools[1].Capacity = cluster.GPUTime(c.money), 1
		if c.change != nil {
			c.change(s)
		}
		a, _ := open(s)
		if d := cmp.Diff(c.owes, a.Owes); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// A stop is charged to the job and to its pool. One that could not wait for the budget is counted, and said.
func TestWhatAStopCosts(t *testing.T) {
	never := cluster.Saving{Manner: cluster.SavesNever}
	for _, c := range []struct {
		name   string
		change func(s *cluster.Snapshot)
		want   budget.Stops
		pool   cluster.GPUTime // its money after 20 minutes
		event  string          // a part of it
	}{
		{"it loses all", nil, budget.Stops{Spent: 6 * minute, Stops: 1, Stopping: &cluster.PendingStop{Since: after(-6 * minute), Certainty: cluster.BoundedLoss, Restarts: 3}}, cluster.GPUTime(14 * minute), ""},
		{"it saved two minutes ago, and starts anew", func(s *cluster.Snapshot) {
			r := &s.Cases[0].Record
			r.Saved, r.Stops, r.Spent = after(-2*minute), 4, minute
		}, budget.Stops{Spent: 5 * minute, Stops: 5, Stopping: &cluster.PendingStop{Since: after(-2 * minute), Certainty: cluster.KnownLoss, Restarts: 3, Saved: after(-2 * minute)}}, cluster.GPUTime(16 * minute), ""},
		{"its turn had not come: the pool pays nothing", func(s *cluster.Snapshot) {
			s.Leases[0].Adopted, s.Cases[0].Record.Basis = true, &cluster.Basis{Forced: true}
		}, budget.Stops{Spent: 6 * minute, Stops: 1, Stopping: &cluster.PendingStop{Since: after(-6 * minute), Certainty: cluster.BoundedLoss, Restarts: 3}}, cluster.GPUTime(20 * minute), ""},
		{"a recall of lent GPUs does not wait for its budget", func(s *cluster.Snapshot) {
			s.Settings.StopAllowance, s.Leases[0].Why, s.Leases[0].Class = 6*minute-1, round.Recalled, cluster.Opportunistic
		}, budget.Stops{Spent: 6 * minute, Stops: 1, Beyond: 1, Stopping: &cluster.PendingStop{Since: after(-6 * minute), Certainty: cluster.BoundedLoss, Restarts: 3}}, cluster.GPUTime(14 * minute),
			"job 7 of bio was stopped beyond its stop budget: the stop cost it 6 min, its budget was 5 min; its GPUs were lent"},
		{"a recall within its budget", func(s *cluster.Snapshot) {
			s.Settings.StopAllowance, s.Leases[0].Why, s.Leases[0].Class = 6*minute, round.Recalled, cluster.Opportunistic
		}, budget.Stops{Spent: 6 * minute, Stops: 1, Stopping: &cluster.PendingStop{Since: after(-6 * minute), Certainty: cluster.BoundedLoss, Restarts: 3}}, cluster.GPUTime(14 * minute), ""},
		{"a recall of its own GPUs waited for its budget", func(s *cluster.Snapshot) { s.Settings.StopAllowance, s.Leases[0].Why = 6*minute-1, round.Recalled },
			budget.Stops{Spent: 6 * minute, Stops: 1, Stopping: &cluster.PendingStop{Since: after(-6 * minute), Certainty: cluster.BoundedLoss, Restarts: 3}}, cluster.GPUTime(14 * minute), ""},
		{"its gate was opened, and its turn has come", func(s *cluster.Snapshot) { s.Cases[0].Record.Basis = &cluster.Basis{Forced: true} },
			budget.Stops{Spent: 6 * minute, Stops: 1, Stopping: &cluster.PendingStop{Since: after(-6 * minute), Certainty: cluster.BoundedLoss, Restarts: 3}}, cluster.GPUTime(14 * minute), ""},
		{"it says that its save takes a day, and the pool pays for its work and a start only", func(s *cluster.Snapshot) {
			s.Cases[0].Job.Declares, s.Cases[0].Record.Saved = cluster.Saving{Manner: cluster.SavesEvery, Every: 2 * minute, Takes: cluster.Day}, after(-2*minute)
		}, budget.Stops{Spent: cluster.Day + 4*minute, Stops: 1, Stopping: &cluster.PendingStop{Since: after(-2 * minute), Certainty: cluster.KnownLoss, Restarts: 3, Saved: after(-2 * minute)}}, cluster.GPUTime(12 * minute), ""},
		{"an order does not wait either", func(s *cluster.Snapshot) {
			s.Settings.StopAllowance, s.Cases[0].Record.Spent = minute, 5*minute
			s.Overrides = []cluster.Override{{ID: 1, Kind: cluster.Freeze, Scope: "tenant", Name: "bio", Until: after(1)}}
		}, budget.Stops{Spent: 11 * minute, Stops: 1, Beyond: 1, Stopping: &cluster.PendingStop{Since: after(-6 * minute), Certainty: cluster.BoundedLoss, Restarts: 3}}, cluster.GPUTime(2 * minute), "its budget was 0 s; an administrator ordered it"},
		{"the pool is overdrawn by no more than it can save", func(s *cluster.Snapshot) { s.Ledger.Pools[1].Stops = -cluster.GPUTime(39 * minute) },
			budget.Stops{Spent: 6 * minute, Stops: 1, Stopping: &cluster.PendingStop{Since: after(-6 * minute), Certainty: cluster.BoundedLoss, Restarts: 3}}, -cluster.GPUTime(40 * minute), ""},
		{"it is only observed", func(s *cluster.Snapshot) { s.Cases[0].Control = cluster.ObserveOnly }, budget.Stops{}, cluster.GPUTime(20 * minute), ""},
		{"it has left by itself", func(s *cluster.Snapshot) { s.Cases[0].Job.State = cluster.Completing }, budget.Stops{}, cluster.GPUTime(20 * minute), ""},
		{"stops have no budget", func(s *cluster.Snapshot) { s.Settings.StopAllowance = 0 }, budget.Stops{}, 0, ""},
	} {
		s := site(runs(7, 6*minute, never))
		s.Cases[0].Job.Restarts, s.Cases[0].Record.Restarts = 3, 3
		s.Settings.StopTotalMilli, s.Leases = 10, []cluster.Lease{active(1, 0)}
		s.Ledger.Pools[1].Stops, s.Ledger.Pools[1].Capacity = cluster.GPUTime(20*minute), 1
		if c.change != nil {
			c.change(s)
		}
		a, in := open(s)
		events := a.Stopped(0, minute)
		if d := cmp.Diff(c.want, a.Of(0)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		a.PutPools(in.Ledger.Pools)
		if got := in.Ledger.Pools[1].Stops; got != c.pool {
			t.Errorf("%s: the pool has %d ms, want %d", c.name, got, c.pool)
		}
		text := ""
		for _, e := range events {
			text += e.Text
		}
		if !strings.Contains(text, c.event) || c.event == "" && text != "" {
			t.Errorf("%s: %q, want %q", c.name, text, c.event)
		}
		records := slices.Clone(in.Records)
		if a.Put(records); records[0].Spent != c.want.Spent && c.want.Stops > 0 || in.Records[0].Stops != s.Cases[0].Record.Stops {
			t.Errorf("%s: records %+v", c.name, records[0])
		}
	}
}

// Losses are those of stops whose end was seen in this round, with what is sure about them.
func TestLosses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(r *cluster.Record)
		want   []cluster.Loss
	}{
		{"nothing was lost", func(*cluster.Record) {}, nil},
		{"some time was, surely", func(r *cluster.Record) { r.Lost, r.KnownLost, r.MostLost = 15, 15, 18 }, []cluster.Loss{{Job: 1, Term: 1, Pool: "v100", Time: 5, Most: 8, Certainty: cluster.KnownLoss}}},
		{"some may be", func(r *cluster.Record) { r.Lost, r.UnknownLost = 15, 15 }, []cluster.Loss{{Job: 1, Term: 1, Pool: "v100", Time: 5, Certainty: cluster.UnknownLoss}}},
		{"some is within a bound", func(r *cluster.Record) { r.MostLost = 11 }, []cluster.Loss{{Job: 1, Term: 1, Pool: "v100", Most: 1, Certainty: cluster.BoundedLoss}}},
		{"less is lost than it seemed", func(r *cluster.Record) { r.Lost, r.MostLost = 9, 9 }, nil},
	} {
		s := site(runs(7, 6*minute, cluster.Saving{}))
		s.Leases = []cluster.Lease{active(1, 0)}
		r := &s.Cases[0].Record
		r.Lost, r.MostLost, r.KnownLost, r.UnknownLost = 10, 10, 10, 10
		a, _ := open(s, func(in *round.Facts) { c.change(&in.Records[0]) })
		for k := range c.want {
			c.want[k].Type = cluster.JobType{User: "ann", Command: cluster.Untyped, GPUs: 1}
		}
		got := budget.Losses(a)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// A job's GPUs are bound in one way, since it could last have been stopped, until it ends or can be stopped again.
func TestBoundJobs(t *testing.T) {
	never := cluster.Saving{Manner: cluster.SavesNever}
	for _, c := range []struct {
		name      string
		saves     cluster.Saving
		change    func(s *cluster.Snapshot)
		stoppable bool
		want      string // way, since and until
	}{
		{"it may be stopped", never, nil, true, ""},
		{"it may be stopped in more than an hour", never, func(s *cluster.Snapshot) { s.Leases[0].End = after(cluster.Hour + 1) }, true, "age -0:10 0"},
		{"it is too old", never, nil, false, "age -0:10 0"},
		{"it is too old, and has a limit", never, func(s *cluster.Snapshot) { s.Cases[0].Job.Limit = 2 * cluster.Hour }, false, "age -0:10 1:40"},
		{"it can be stopped after its next save", cluster.Saving{Manner: cluster.SavesEvery, Every: 25 * minute}, nil, false, "saves -0:10 0:09"},
		{"it wishes to run on", never, func(s *cluster.Snapshot) {
			s.Settings.MinLeaseTerms, s.Cases[0].Job.Hints = 99, &cluster.Hints{MinLease: 81*minute + 1}
		}, false, "min_lease -0:20 0:09"},
		{"its wish ends within an hour", never, func(s *cluster.Snapshot) {
			s.Settings.MinLeaseTerms, s.Cases[0].Job.Hints = 99, &cluster.Hints{MinLease: 80 * minute}
		}, false, "age -0:10 0"},
		{"it is exempt", never, func(s *cluster.Snapshot) {
			s.Overrides = []cluster.Override{{ID: 1, Kind: cluster.Exempt, Scope: "tenant", Name: "bio", Until: after(cluster.Hour)}}
		}, false, "exempt -0:20 1:00"},
		{"it is exempt, and ends before that is over", never, func(s *cluster.Snapshot) {
			s.Cases[0].Job.Limit = cluster.Hour
			s.Overrides = []cluster.Override{{ID: 1, Kind: cluster.Exempt, Scope: "tenant", Name: "bio", Until: after(cluster.Hour)}}
		}, false, "exempt -0:20 0:40"},
		{"it is frozen", never, func(s *cluster.Snapshot) {
			s.Overrides = []cluster.Override{{ID: 1, Kind: cluster.Freeze, Scope: "tenant", Name: "bio", Until: after(cluster.Hour)}}
		}, false, ""},
		{"notice is given", never, func(s *cluster.Snapshot) { s.Leases[0].State = cluster.Noticed }, false, ""},
		{"it is recalled", never, func(s *cluster.Snapshot) { s.Leases[0].Why = round.Recalled }, false, ""},
		{"it is never reclaimed", never, func(s *cluster.Snapshot) {
			s.Cases[0].Control, s.Cases[0].Way = cluster.NoReclaim, cluster.WaySession
		}, true, "session -0:20 0"},
		{"it is not managed", never, func(s *cluster.Snapshot) { s.Cases[0].Control, s.Cases[0].Left = cluster.Unmanaged, "other" }, true, "other -0:20 0"},
		{"its pool cannot pay", never, func(s *cluster.Snapshot) { s.Settings.StopTotalMilli, s.Ledger.Pools[1].Capacity = 10, 1 }, true, "pool -0:20 0"},
	} {
		s := site(runs(7, 20*minute, c.saves))
		s.Leases = []cluster.Lease{active(1, 9*minute)}
		if c.change != nil {
			c.change(s)
		}
		a, _ := open(s)
		got := ""
		clock := func(at cluster.Instant) string {
			if at == 0 {
				return "0"
			}
			d, sign := at.Sub(now), ""
			if d < 0 {
				d, sign = -d, "-"
			}
			return fmt.Sprintf("%s%d:%02d", sign, d/cluster.Hour, d%cluster.Hour/minute)
		}
		for _, x := range budget.BoundJobs(a, []round.Mark{{Stoppable: c.stoppable}}, nil) {
			got += fmt.Sprintf("%s %s %s", x.Way, clock(x.Since), clock(x.Until))
			if x.Job != 1 || x.Pool != "v100" || x.GPUs != cluster.CountOf(1) {
				t.Errorf("%s: %+v", c.name, x)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Jobs without GPUs keep those of others idle. Each counts whole GPUs, and together they count as many as idle.
func TestGPUsThatJobsWithoutGPUsKeepIdle(t *testing.T) {
	const half = cluster.WholeGPU / 2
	s := site(runs(6, minute, cluster.Saving{}), roundtest.Job(7, "bio", 0, cluster.Running), roundtest.Job(8, "bio", 0, cluster.Running), roundtest.Job(9, "bio", 0, cluster.Running))
	a, _ := open(s, func(in *round.Facts) {
		in.Stranded = []cluster.Stranding{{Case: 0, Pool: "v100", GPUs: half}, {Case: 1, Pool: "v100", GPUs: half}, {Case: 2, Pool: "v100", GPUs: half}, {Case: 2, Pool: "p100", GPUs: 9 * cluster.WholeGPU},
			{Case: 3, Pool: "k80", GPUs: 2 * cluster.WholeGPU}, {Case: 3, Pool: "v100", GPUs: 3 * cluster.WholeGPU}}
	})
	var got []string
	for _, x := range budget.BoundJobs(a, make([]round.Mark, 4), nil) {
		got = append(got, fmt.Sprintf("%d keeps %s %s: %s", x.Job, x.GPUs, x.Pool, x.Way))
	}
	if want := []string{"3 keeps 1 v100: no_gpus", "4 keeps 3 v100: no_gpus"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Young jobs count for their allowance on the day, and fade. Jobs larger than their tenant's share do not count.
func TestYouth(t *testing.T) {
	const gpu = cluster.WholeGPU
	for _, c := range []struct {
		name   string
		gpus   int
		change func(s *cluster.Snapshot)
		want   cluster.MicroGPU // of bio in k80, which had one GPU
	}{
		{"a job comes, of two GPUs for a 96th of a day", 2, func(s *cluster.Snapshot) { s.Settings.StopAllowance = 15 * minute }, gpu + 2*gpu/96},
		{"half a day has gone", 2, func(s *cluster.Snapshot) { s.Ledger.At, s.Cases[0].Record.ChargedTo = now.Add(-cluster.Day/2), 1 }, gpu / 2},
		{"ten days have", 2, func(s *cluster.Snapshot) { s.Ledger.At, s.Cases[0].Record.ChargedTo = now.Add(-10*cluster.Day), 1 }, 0},
		{"it is not new", 2, func(s *cluster.Snapshot) { s.Cases[0].Record.ChargedTo = 1 }, gpu},
		{"it is larger than its share", 3, nil, gpu},
		{"it is of no tenant", 2, func(s *cluster.Snapshot) { s.Cases[0].Record.Tenant = "" }, gpu},
		{"the journal is new", 2, func(s *cluster.Snapshot) { s.Ledger.At = 0 }, gpu},
		{"stops have no budget", 2, func(s *cluster.Snapshot) { s.Settings.StopAllowance = 0 }, gpu},
	} {
		s := site(roundtest.Job(7, "bio", c.gpus, cluster.Waiting))
		s.Ledger.At, s.Ledger.Tenants[0].Young, s.Ledger.Tenants[0].Entitlement = now, gpu, 2*gpu
		if c.change != nil {
			c.change(s)
		}
		a, in := open(s)
		if got := budget.Youth(a, in.Ledger.Tenants); got[0] != c.want || in.Ledger.Tenants[0].Young != gpu {
			t.Errorf("%s: %d, want %d; the ledger has %d", c.name, got[0], c.want, in.Ledger.Tenants[0].Young)
		}
	}
}

// The report of a job says whether it may be stopped now, until when, or from when on.
func TestReport(t *testing.T) {
	never, every := cluster.Saving{Manner: cluster.SavesNever}, cluster.Saving{Manner: cluster.SavesEvery, Every: 25 * minute}
	for _, c := range []struct {
		name   string
		job    cluster.Case
		change func(s *cluster.Snapshot)
		want   *cluster.StopReport // nil = none; its saving and spans are not compared
	}{
		{"it may be stopped for two minutes more", runs(7, 8*minute, never), nil, &cluster.StopReport{May: true, Until: after(2 * minute)}},
		{"it may be stopped at the end of a notice, and no longer", runs(7, 9*minute, never), nil, &cluster.StopReport{May: true, Until: after(minute)}},
		{"it is a millisecond too old", runs(7, 9*minute+1, never), nil, &cluster.StopReport{}},
		{"it may be stopped after its next save", runs(7, 20*minute, every), nil, &cluster.StopReport{From: after(7*minute + 30*second)}},
		{"it saves on a notice that is too short", runs(7, 20*minute, cluster.Saving{Manner: cluster.SavesOnNotice, Takes: minute + 1}), nil, &cluster.StopReport{Short: true}},
		{"it saves on a notice that is just long enough", runs(7, 20*minute, cluster.Saving{Manner: cluster.SavesOnNotice, Takes: minute}), nil, &cluster.StopReport{May: true}},
		{"its pool cannot pay", runs(7, 8*minute, never), func(s *cluster.Snapshot) { s.Settings.StopTotalMilli = 10 }, &cluster.StopReport{May: true, Until: after(2 * minute), Dear: "v100"}},
		{"stops have no budget", runs(7, 20*minute, never), func(s *cluster.Snapshot) { s.Settings.StopAllowance = 0 }, &cluster.StopReport{May: true, Off: true}},
		{"Slurm does not say yet since when it runs", runs(7, 20*minute, never), func(s *cluster.Snapshot) { s.Cases[0].Job.Start, s.Cases[0].Record.Saved = 0, 5 }, &cluster.StopReport{May: true, Until: after(10 * minute)}},
		{"it is suspended", runs(7, 8*minute, never), func(s *cluster.Snapshot) { s.Cases[0].Job.State = cluster.Suspended }, &cluster.StopReport{May: true, Until: after(2 * minute)}},
		{"it waits", waits(never), nil, nil},
		{"it is gone", runs(7, 8*minute, never), func(s *cluster.Snapshot) { s.Cases[0].Gone = true }, nil},
		{"it is never reclaimed", runs(7, 8*minute, never), func(s *cluster.Snapshot) { s.Cases[0].Control = cluster.NoReclaim }, nil},
		{"it is only observed", runs(7, 8*minute, never), func(s *cluster.Snapshot) { s.Cases[0].Control = cluster.ObserveOnly }, &cluster.StopReport{May: true, Until: after(2 * minute)}},
		{"it has no case", runs(7, 8*minute, never), func(s *cluster.Snapshot) { s.Cases[0].Record.Key = 2 }, nil},
	} {
		s := site(c.job)
		if c.change != nil {
			c.change(s)
		}
		plan := &cluster.Plan{State: cluster.State{Records: []cluster.Record{s.Cases[0].Record}, Ledger: s.Ledger}}
		got, ok := budget.Report(s, plan, 1)
		if ok != (c.want != nil) {
			t.Errorf("%s: a report: %t", c.name, ok)
		}
		if !ok || c.want == nil {
			continue
		}
		if d := cmp.Diff(*c.want, cluster.StopReport{May: got.May, Until: got.Until, From: got.From, Short: got.Short, Dear: got.Dear, Off: got.Off}); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}
