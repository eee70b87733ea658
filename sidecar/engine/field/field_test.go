package field_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/entitle"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/market"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/round/roundtest"
	"github.com/fairlease/fairlease/sidecar/engine/speeds"
)

const (
	now    = roundtest.Now
	minute = cluster.Minute
	gpu    = cluster.WholeGPU
)

// site is a site whose stops may cost a job ten minutes. A start costs two.
func site(cases ...cluster.Case) *cluster.Snapshot {
	s := roundtest.Snapshot(cases...)
	s.Settings.StopAllowance, s.Settings.StartCost = 10*minute, 2*minute
	return s
}

// open opens the field of a round.
func open(s *cluster.Snapshot) *field.Field {
	f := new(field.Field)
	reopen(f, new(eligible.Nodes), s)
	return f
}

// reopen opens the field of a further round, with the nodes of the one before.
func reopen(f *field.Field, nodes *eligible.Nodes, s *cluster.Snapshot) {
	in, leases := roundtest.Facts(s)
	found, due, stops := nodes.Find(in, leases, nil), new(entitle.Due), new(budget.Account)
	learnt := speeds.Learn(in, found, new(profile.Memory))
	stops.Open(in, found)
	capacity := due.Open(in, found, learnt, cluster.Ledger{})
	m := market.Open(in, found, due, learnt)
	due.Divide(in, found, learnt, capacity, nil, nil)
	f.Open(in, found, due, stops, m, nil)
}

// runs returns a job of a GPU that has run on v100 for so long; it saves at the term signal, and may be stopped at any time.
func runs(id int64, ran cluster.Span) cluster.Case {
	c := roundtest.On(roundtest.Job(id, "bio", 1, cluster.Running), "a", "v100", 1)
	c.Job.Start, c.Job.Declares.Manner, c.Record.Terms, c.Record.State = now.Add(-ran), cluster.SavesOnTerm, 1, cluster.Running
	return c
}

func waits(id int64, gpus int) cluster.Case { return roundtest.Job(id, "bio", gpus, cluster.Waiting) }

// leased returns a lease of a job, which was granted an hour ago.
func leased(job cluster.JobKey, state cluster.LeaseState, end cluster.Span) cluster.Lease {
	return cluster.Lease{Job: job, Term: 1, Pool: "v100", Size: cluster.Whole(1), State: state, Nodes: []cluster.Holding{{Node: "a", Model: "v100", Size: cluster.Whole(1)}}, Granted: now.Add(-cluster.Hour), Start: now.Add(-cluster.Hour), End: now.Add(end)}
}

func freeze(name string) []cluster.Override {
	return []cluster.Override{{ID: 1, Kind: cluster.Freeze, Scope: "user", Name: name, Until: now + 1}}
}

// A lease goes on until its job may be stopped. One that is up for renewal says so.
func TestExtend(t *testing.T) {
	never := func(ran cluster.Span) cluster.Case {
		c := runs(7, ran)
		c.Job.Declares.Manner = cluster.SavesNever
		return c
	}
	for _, c := range []struct {
		name      string
		job       cluster.Case
		lease     cluster.Lease
		change    func(s *cluster.Snapshot, l *cluster.Lease)
		end       cluster.Span
		stoppable bool
		renewed   bool
	}{
		{"it ends at the next boundary, and its job may be stopped then", runs(7, cluster.Hour), leased(1, cluster.Active, 15*minute), nil, minute, true, false},
		{"it began a moment ago, and ends at the next boundary", runs(7, minute), leased(1, cluster.Active, 15*minute), func(_ *cluster.Snapshot, l *cluster.Lease) { l.Granted, l.Start = now.Add(-minute), now.Add(-minute) }, 15 * minute, true, false},
		{"it expired while nobody looked", runs(7, cluster.Hour), leased(1, cluster.Active, -5*minute), nil, minute, true, false},
		{"it expires now, and is never reclaimed", runs(7, cluster.Hour), leased(1, cluster.Active, 0), func(s *cluster.Snapshot, _ *cluster.Lease) { s.Cases[0].Control = cluster.NoReclaim }, 0, true, false},
		{"it expires now, and is exempt", runs(7, cluster.Hour), leased(1, cluster.Active, 0), func(s *cluster.Snapshot, _ *cluster.Lease) {
			s.Overrides = []cluster.Override{{ID: 1, Kind: cluster.Exempt, Scope: "user", Name: "ann", Until: now + 1}}
		}, 0, true, false},
		{"its job is too old to be stopped", never(cluster.Hour), leased(1, cluster.Active, minute), nil, 15 * minute, false, true},
		{"its job is too old, and it goes on for now", never(cluster.Hour), leased(1, cluster.Active, minute+1), nil, minute + 1, false, false},
		{"its job may be stopped for a minute more", never(9 * minute), leased(1, cluster.Active, minute), nil, minute, true, false},
		{"its job may be stopped for a millisecond less", never(9*minute + 1), leased(1, cluster.Active, minute), nil, 15 * minute, false, true},
		{"its pool cannot pay", runs(7, cluster.Hour), leased(1, cluster.Active, minute), func(s *cluster.Snapshot, _ *cluster.Lease) {
			s.Settings.StopTotalMilli, s.Ledger.Pools[1].Capacity = 10, 1
		}, 15 * minute, false, true},
		{"its job is frozen", never(cluster.Hour), leased(1, cluster.Active, minute), func(s *cluster.Snapshot, _ *cluster.Lease) { s.Overrides = freeze("ann") }, minute, true, false},
		{"it is recalled", never(cluster.Hour), leased(1, cluster.Active, minute), func(_ *cluster.Snapshot, l *cluster.Lease) { l.Why = round.Recalled }, minute, true, false},
		{"notice is given", never(cluster.Hour), leased(1, cluster.Noticed, minute), nil, minute, true, false},
		{"its job had its gate opened", never(cluster.Hour), leased(1, cluster.Active, minute), func(s *cluster.Snapshot, l *cluster.Lease) {
			l.Adopted, s.Cases[0].Record.Basis = true, &cluster.Basis{Forced: true}
		}, minute, true, false},
		{"stops have no budget", never(cluster.Hour), leased(1, cluster.Active, minute), func(s *cluster.Snapshot, _ *cluster.Lease) { s.Settings.StopAllowance = 0 }, minute, true, false},
		{"it is adopted now", runs(7, cluster.Hour), leased(1, cluster.Active, minute), func(_ *cluster.Snapshot, l *cluster.Lease) { l.Adopted, l.Granted, l.Start = true, now, now }, 15 * minute, true, false},
		{"it was adopted a minute ago", runs(7, cluster.Hour), leased(1, cluster.Active, 5*minute), func(_ *cluster.Snapshot, l *cluster.Lease) {
			l.Adopted, l.Granted, l.Start = true, now.Add(-minute), now.Add(-minute)
		}, 5 * minute, true, false},
		{"it is over now", runs(7, cluster.Hour), leased(1, cluster.Active, 0), nil, minute, true, false},
		{"it has not begun", waits(7, 1), leased(1, cluster.Granted, 9*minute), func(_ *cluster.Snapshot, l *cluster.Lease) { l.Granted = now - 1 }, 9 * minute, true, false},
		{"it has not begun, and could not be ended", waits(7, 1), leased(1, cluster.Granted, 11*minute), func(_ *cluster.Snapshot, l *cluster.Lease) { l.Granted = now - 1 }, 11 * minute, false, false},
		{"its nodes boot, and its term begins with it", roundtest.On(roundtest.Job(7, "bio", 1, cluster.Configuring), "a", "v100", 1), leased(1, cluster.Granted, minute), func(s *cluster.Snapshot, l *cluster.Lease) { l.Granted, s.Cases[0].Job.Start = now-1, 0 },
			10*minute - 10*cluster.Second, true, false},
	} {
		s := site(c.job)
		if c.change != nil {
			c.change(s, &c.lease)
		}
		s.Leases = []cluster.Lease{c.lease}
		f := open(s)
		field.Extend(f)
		l, mark := f.Hand.Leases[0], f.Hand.Marks[0]
		if l.End != now.Add(c.end) || mark.Stoppable != c.stoppable || (len(f.Hand.Ended) == 1) != c.renewed || mark.Terms != len(f.Hand.Ended) {
			t.Errorf("%s: it ends after %s, may be stopped: %t, renewed: %+v; want %s, %t, %t", c.name, l.End.Sub(now), mark.Stoppable, f.Hand.Ended, c.end, c.stoppable, c.renewed)
		}
		if c.renewed && (f.Hand.Ended[0].Why != "renewed" || f.Hand.Ended[0].State != cluster.Over || f.Hand.Ended[0].Ended != c.lease.End || l.Term != 2 || l.State != cluster.Active || l.Granted != now || l.Start != max(c.lease.End, now)) {
			t.Errorf("%s: the old lease is %+v, the new one %+v", c.name, f.Hand.Ended[0], *l)
		}
		if s.Leases[0].End != c.lease.End {
			t.Errorf("%s: the snapshot has another lease now", c.name)
		}
	}
}

// A lease has a notice of its own where that is not the usual one.
func TestExtendSetsNotices(t *testing.T) {
	for _, c := range []struct {
		name  string
		takes cluster.Span
		state cluster.LeaseState
		want  cluster.Span
	}{
		{"its save takes four minutes", 4 * minute, cluster.Active, 6*minute + 20*cluster.Second},
		{"its save takes as long as the usual notice allows", 26*cluster.Second + 667, cluster.Active, minute},
		{"nothing is known of its save", 0, cluster.Active, 0},
		{"notice was given", 4 * minute, cluster.Noticed, 7},
	} {
		job, l := runs(7, cluster.Hour), leased(1, c.state, 5*minute)
		job.Job.Declares.Takes, l.Notice = c.takes, 7
		s := site(job)
		s.Settings.NoticeMax, s.Leases = cluster.Hour, []cluster.Lease{l}
		f := open(s)
		field.Extend(f)
		want := c.want
		if want == s.Settings.Notice {
			want = 0
		}
		if got := f.Hand.Leases[0].Notice; got != want {
			t.Errorf("%s: %s, want %s", c.name, got, want)
		}
	}
}

// Candidates are jobs that could be granted a lease, and those whose leases are up for renewal.
func TestCandidates(t *testing.T) {
	for _, c := range []struct {
		name   string
		job    cluster.Case
		lease  *cluster.Lease
		change func(s *cluster.Snapshot)
		want   string // running, GPUs, pools, end or next end, binding, other marks; "" = it is none
	}{
		{"it waits", waits(7, 2), nil, nil, "waits 2 [0 1] 9:50 unserved"},
		{"it had a lease before", waits(7, 2), nil, func(s *cluster.Snapshot) { s.Cases[0].Record.Terms = 1 }, "waits 2 [0 1] 9:50"},
		{"new jobs go first", waits(7, 2), nil, func(s *cluster.Snapshot) { s.Settings.NewFirst = true }, "waits 2 [0 1] 9:50 unserved new"},
		{"new jobs go first, and it had a lease", waits(7, 2), nil, func(s *cluster.Snapshot) { s.Settings.NewFirst, s.Cases[0].Record.Terms = true, 1 }, "waits 2 [0 1] 9:50"},
		{"it is urgent by its QOS", waits(7, 2), nil, func(s *cluster.Snapshot) { s.Settings.UrgentQOS, s.Cases[0].Job.QOS = []string{"high"}, "high" }, "waits 2 [0 1] 9:50 unserved urgent"},
		{"it is boosted", waits(7, 2), nil, func(s *cluster.Snapshot) {
			s.Overrides = freeze("ann")
			s.Overrides[0].Kind = cluster.Boost
		}, "waits 2 [0 1] 9:50 unserved urgent"},
		{"it is owed", waits(7, 2), nil, func(s *cluster.Snapshot) { s.Cases[0].Record.Due = 5 }, "waits 2 [0 1] 9:50 unserved owed 5"},
		{"it is owed, and its tenant's budget is used up", waits(7, 2), nil, func(s *cluster.Snapshot) { s.Cases[0].Record.Due, s.Tenants[0].Budget.Since = 5, 1 }, "waits 2 [0 1] 9:50 unserved"},
		{"it takes idle GPUs only", waits(7, 2), nil, func(s *cluster.Snapshot) { s.Cases[0].Job.Hints = &cluster.Hints{Idle: true} }, "waits 2 [0 1] 9:50 unserved idle-only"},
		{"it cannot be stopped once it runs", waits(7, 2), nil, func(s *cluster.Snapshot) { s.Cases[0].Record.Spent = 9 * minute }, "waits 2 [0 1] unending long unserved"},
		{"it cannot be stopped, and ends soon", waits(7, 2), nil, func(s *cluster.Snapshot) {
			s.Cases[0].Record.Spent, s.Cases[0].Job.Limit, s.Settings.BindHorizon = 9*minute, 15*minute, 1
		}, "waits 2 [0 1] unending short unserved"},
		{"it is larger than the site", waits(7, 9), nil, nil, ""},
		{"it has been granted a lease", waits(7, 1), &cluster.Lease{State: cluster.Granted, End: now.Add(cluster.Hour)}, nil, ""},
		{"it is only observed", waits(7, 2), nil, func(s *cluster.Snapshot) { s.Cases[0].Control = cluster.ObserveOnly }, ""},
		{"its lease ends within the notice", runs(7, cluster.Hour), &cluster.Lease{State: cluster.Active, End: now.Add(minute)}, nil, "runs 1 [1] 15:00"},
		{"its lease has a millisecond more", runs(7, cluster.Hour), &cluster.Lease{State: cluster.Active, End: now.Add(minute + 1), Granted: now - 1, Start: now - 1}, nil, ""},
		{"its lease ends, and it is never reclaimed", runs(7, cluster.Hour), &cluster.Lease{State: cluster.Active, End: now.Add(minute)}, func(s *cluster.Snapshot) { s.Cases[0].Control = cluster.NoReclaim }, ""},
		{"its lease ends, and it is frozen", runs(7, cluster.Hour), &cluster.Lease{State: cluster.Active, End: now.Add(minute)}, func(s *cluster.Snapshot) { s.Overrides = freeze("ann") }, ""},
		{"its GPUs have been idle for as long as they may", runs(7, cluster.Hour), &cluster.Lease{State: cluster.Active, End: now.Add(minute)}, func(s *cluster.Snapshot) {
			s.Settings.IdleReclaim = 30 * minute
			s.Uses = []cluster.GPUUse{{Job: s.Cases[0].Job.ID, Start: s.Cases[0].Job.Start, At: now, Idle: 1, IdleSince: now.Add(-30 * minute)}}
		}, "runs 1 [1] 15:00 resting"},
	} {
		s := site(c.job)
		if c.lease != nil {
			l := *c.lease
			l.Job, l.Pool, l.Size, l.Nodes = 1, "v100", cluster.Whole(1), []cluster.Holding{{Node: "a", Model: "v100", Size: cluster.Whole(1)}}
			s.Leases = []cluster.Lease{l}
		}
		if c.change != nil {
			c.change(s)
		}
		f := open(s)
		field.Extend(f)
		got := ""
		for _, k := range f.Candidates(cluster.FullControl) {
			state, end := "waits", k.Ends.By
			if k.Running {
				state, end = "runs", k.Ends.Next
			}
			until := "unending"
			if end != lease.Unending {
				until = fmt.Sprintf("%d:%02d", end.Sub(now)/minute, end.Sub(now)%minute/cluster.Second)
			}
			got = fmt.Sprintf("%s %v %v %s%s", state, cluster.GPUCount(k.GPUs), k.Pools, until, []string{"", " short", " long"}[k.Binds])
			for _, x := range []struct {
				is   bool
				name string
			}{{k.Priority.Unserved, "unserved"}, {k.Priority.New, "new"}, {k.Priority.Urgent, "urgent"}, {k.IdleOnly, "idle-only"}, {k.Priority.Resting, "resting"}} {
				if x.is {
					got += " " + x.name
				}
			}
			if k.Priority.Owed != 0 {
				got += fmt.Sprintf(" owed %d", k.Priority.Owed)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A new lease costs its pool a stop at its end, and a renewed one as much more than the present one would.
func TestCostsOfCandidates(t *testing.T) {
	never := cluster.Saving{Manner: cluster.SavesNever}
	waiting, running := waits(7, 1), runs(8, 4*minute)
	waiting.Job.Declares, running.Job.Declares = never, never
	s := site(waiting, running)
	s.Settings.StopAllowance, s.Settings.StopTotalMilli, s.Ledger.Pools[1].Capacity, s.Ledger.Pools[1].Stops = cluster.Hour, 10, 1, cluster.GPUTime(4*cluster.Hour)
	s.Leases = []cluster.Lease{leased(2, cluster.Active, minute)}
	f := open(s)
	field.Extend(f)
	for _, c := range []struct {
		unpaid bool
		want   []cluster.Span
	}{
		{false, []cluster.Span{15*minute + 10*cluster.Second, 14 * minute}},
		{true, []cluster.Span{15*minute + 10*cluster.Second, 19*minute + 10*cluster.Second}},
	} {
		f.Stops.Owes[1].Unpaid = c.unpaid
		var got []cluster.Span
		for _, k := range f.Candidates(cluster.FullControl) {
			got = append(got, k.Ends.Cost)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("the stop at the end of its lease is unpaid: %t: costs %v, want %v", c.unpaid, got, c.want)
		}
	}
}

// A running job is compared as if it had received less, and a new one as if it had received and been due a term.
func TestRanksOfCandidates(t *testing.T) {
	const term = cluster.GPUTime(15 * minute)
	for _, c := range []struct {
		name   string
		runs   bool
		change func(s *cluster.Snapshot)
		rho    cluster.Rho
		aged   cluster.Rho
		turn   cluster.Rho // of a running job
		new    bool
	}{
		{"it waits", false, nil, cluster.Fair * 2, cluster.Fair * 3 / 2, 0, false},
		{"it runs, and its threshold is a third of a term", true, nil, cluster.Fair * 5 / 3, 0, cluster.Fair * 5 / 3, false},
		{"it has had many terms, and another one comes off", true, func(s *cluster.Snapshot) { s.Settings.LongTerms = 3 }, cluster.Fair * 2 / 3, 0, cluster.Fair * 2 / 3, false},
		{"it has had a term too few", true, func(s *cluster.Snapshot) { s.Settings.LongTerms = 4 }, cluster.Fair * 5 / 3, 0, cluster.Fair * 5 / 3, false},
		{"by GPU time: two terms are the third class", false, func(s *cluster.Snapshot) { s.Settings.JobOrder = cluster.ByAttained }, 2, 2, 0, false},
		{"by GPU time, just less", true, func(s *cluster.Snapshot) { s.Settings.JobOrder, s.Cases[0].Record.Alloc = cluster.ByAttained, 2*term-1 }, 1, 1, 1, false},
		{"by GPU time, with twice the weight", false, func(s *cluster.Snapshot) {
			s.Settings.JobOrder, s.Settings.JobWeights = cluster.ByAttained, []cluster.JobWeight{{QOS: "", Milli: 2000}}
		}, 1, 1, 0, false},
		{"by GPU time, a negative account", false, func(s *cluster.Snapshot) { s.Settings.JobOrder, s.Cases[0].Record.Alloc = cluster.ByAttained, -term }, 0, 0, 0, false},
		{"by GPU time, and it has no patience left", true, func(s *cluster.Snapshot) {
			s.Settings.JobOrder, s.Settings.Patience, s.Cases[0].Record.Due = cluster.ByAttained, 15*minute, 3*term
		}, cluster.Fair*2/3 - cluster.Fair/9, 2, 0, true},
		{"by GPU time, and it has a millisecond of patience left", true, func(s *cluster.Snapshot) {
			s.Settings.JobOrder, s.Settings.Patience, s.Cases[0].Record.Due = cluster.ByAttained, 15*minute, 3*term-1
		}, 2, 2, 2, false},
		{"by expectation: ten minutes, as nothing is known", false, func(s *cluster.Snapshot) { s.Settings.JobOrder, s.Cases[0].Record.Alloc = cluster.ByExpected, 0 }, 10, 10, 0, false},
	} {
		job := waits(7, 1)
		if c.runs {
			job = runs(7, cluster.Hour)
		}
		job.Record.Alloc, job.Record.Due, job.Record.Terms = 2*term, term, 3
		s := site(job)
		s.Settings.Threshold = 5 * minute
		if c.runs {
			s.Leases = []cluster.Lease{leased(1, cluster.Active, minute)}
		}
		if c.change != nil {
			c.change(s)
		}
		f := open(s)
		field.Extend(f)
		cs := f.Candidates(cluster.FullControl)
		if len(cs) != 1 {
			t.Fatalf("%s: %d candidates", c.name, len(cs))
		}
		if p := cs[0].Priority; p.Rho != c.rho || p.Aged != c.aged || p.New != c.new {
			t.Errorf("%s: rho %d, aged %d, new %t; want %d, %d, %t", c.name, p.Rho, p.Aged, p.New, c.rho, c.aged, c.new)
		}
		if c.runs {
			if got := f.Turn(0); got != c.turn {
				t.Errorf("%s: its turn is %d, want %d", c.name, got, c.turn)
			}
		}
	}
}

// A lease that is not renewed gets a notice, and ends after it. As many jobs save at once as may.
func TestDismiss(t *testing.T) {
	for _, c := range []struct {
		name   string
		level  cluster.Control
		leases []cluster.Lease
		change func(s *cluster.Snapshot)
		want   string // state, end, and whether its notice is due now
	}{
		{"it ends within the notice", cluster.FullControl, []cluster.Lease{leased(1, cluster.Active, minute)}, nil, "noticed 60 now"},
		{"it ends now, without a notice", cluster.FullControl, []cluster.Lease{leased(1, cluster.Noticed, 0)}, nil, "ending 0"},
		{"it ends in a millisecond", cluster.FullControl, []cluster.Lease{leased(1, cluster.Noticed, 1)}, nil, "noticed 0.001"},
		{"it goes on", cluster.FullControl, []cluster.Lease{func() cluster.Lease {
			l := leased(1, cluster.Active, minute+1)
			l.Granted, l.Start = now-1, now-1
			return l
		}()}, nil, "active 60.001"},
		{"it is of another level", cluster.ObserveOnly, []cluster.Lease{leased(1, cluster.Active, minute)}, nil, "active 60"},
		{"it is only observed, and its notice is due", cluster.ObserveOnly, []cluster.Lease{leased(1, cluster.Active, minute)}, func(s *cluster.Snapshot) { s.Cases[0].Control = cluster.ObserveOnly }, "noticed 60 now"},
		{"it is only observed, and its notice was due at the last look", cluster.ObserveOnly, []cluster.Lease{leased(1, cluster.Active, 50*cluster.Second)}, func(s *cluster.Snapshot) { s.Cases[0].Control = cluster.ObserveOnly }, "noticed 50"},
		{"one may save at once", cluster.FullControl, []cluster.Lease{leased(1, cluster.Active, minute), leased(2, cluster.Active, minute)}, func(s *cluster.Snapshot) { s.Settings.NoticeConcurrent = 1 }, "noticed 60 now, active 60"},
		{"one may save at once, and one does", cluster.FullControl, []cluster.Lease{leased(1, cluster.Active, minute), leased(2, cluster.Noticed, minute)}, func(s *cluster.Snapshot) { s.Settings.NoticeConcurrent = 1 }, "active 60, noticed 60"},
		{"two may", cluster.FullControl, []cluster.Lease{leased(1, cluster.Active, minute), leased(2, cluster.Noticed, minute)}, func(s *cluster.Snapshot) { s.Settings.NoticeConcurrent = 2 }, "noticed 60 now, noticed 60"},
		{"one that waited gets all of its notice", cluster.FullControl, []cluster.Lease{leased(1, cluster.Active, 20*cluster.Second)}, func(s *cluster.Snapshot) { s.Settings.NoticeConcurrent = 1 }, "noticed 50 now"},
		{"a job that does not save takes no place", cluster.FullControl, []cluster.Lease{leased(1, cluster.Active, minute), leased(2, cluster.Noticed, minute)}, func(s *cluster.Snapshot) {
			s.Settings.NoticeConcurrent, s.Cases[1].Job.Declares.Manner = 1, cluster.SavesNever
		}, "noticed 60 now, noticed 60"},
	} {
		var jobs []cluster.Case
		for k := range c.leases {
			jobs = append(jobs, runs(int64(7+k), cluster.Hour))
		}
		s := site(jobs...)
		s.Leases = c.leases
		if c.change != nil {
			c.change(s)
		}
		f := open(s)
		field.Extend(f)
		f.Dismiss(c.level)
		got := ""
		for i, l := range f.Hand.Leases {
			if i > 0 {
				got += ", "
			}
			if got += fmt.Sprintf("%s %g", l.State, float64(l.End.Sub(now))/1000); f.Hand.Marks[i].Noticed {
				got += " now"
			}
			if l.State == cluster.Noticed && l.NoticedAt != now && c.leases[i].State == cluster.Active {
				t.Errorf("%s: noticed at %d", c.name, l.NoticedAt)
			}
			if l.State == cluster.Ending && f.Stops.Of(i).Stops != 1 {
				t.Errorf("%s: its stop is not charged", c.name)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Leases of jobs that are never reclaimed are renewed when they end within the notice, whether they run or not.
func TestExtendFixed(t *testing.T) {
	exempt := func(s *cluster.Snapshot) { s.Overrides = freeze("ann"); s.Overrides[0].Kind = cluster.Exempt }
	for _, c := range []struct {
		name   string
		lease  cluster.Lease
		change func(s *cluster.Snapshot)
		want   cluster.Span
	}{
		{"it is never reclaimed", leased(1, cluster.Active, minute), func(s *cluster.Snapshot) { s.Cases[0].Control = cluster.NoReclaim }, 15 * minute},
		{"it ends later", leased(1, cluster.Active, minute+1), func(s *cluster.Snapshot) { s.Cases[0].Control = cluster.NoReclaim }, minute + 1},
		{"it is exempt, and had its notice", leased(1, cluster.Noticed, minute), exempt, 15 * minute},
		{"it is exempt, and ends", leased(1, cluster.Ending, 0), exempt, 0},
		{"it may be reclaimed", leased(1, cluster.Active, minute), func(*cluster.Snapshot) {}, minute},
		{"it is only observed", leased(1, cluster.Active, minute), func(s *cluster.Snapshot) { exempt(s); s.Cases[0].Control = cluster.ObserveOnly }, minute},
	} {
		s := site(runs(7, cluster.Hour))
		s.Leases = []cluster.Lease{c.lease}
		c.change(s)
		f := open(s)
		f.ExtendFixed(cluster.FullControl)
		if l := f.Hand.Leases[0]; l.End != now.Add(c.want) || (len(f.Hand.Ended) > 0) != (c.want == 15*minute) || len(f.Hand.Ended) > 0 && (l.State != cluster.Active || l.NoticedAt != 0) {
			t.Errorf("%s: it is %s and ends after %s, want %s", c.name, l.State, l.End.Sub(now), c.want)
		}
	}
}

// A grant counts as a term of its job, except where that is only observed. A job that follows another has its node, and no GPUs.
func TestGrantsAndClaims(t *testing.T) {
	s := site(waits(7, 2), waits(8, 1), runs(9, cluster.Hour))
	s.Cases[1].Control, s.Cases[0].Record.Terms = cluster.ObserveOnly, 4
	s.Leases = []cluster.Lease{leased(3, cluster.Active, 9*minute)}
	s.Claims = []cluster.Claim{{Job: 1, Made: now.Add(-cluster.Hour)}}
	f := open(s)
	nodes := []cluster.Holding{{Node: "a", Model: "v100", Size: cluster.Whole(1)}, {Node: "b", Model: "v100", Size: cluster.Whole(1)}}
	f.Grant(0, "v100", nodes, now.Add(9*minute))
	f.Grant(1, "v100", nodes[:1], now.Add(11*minute))
	want := &cluster.Lease{Job: 1, Term: 5, State: cluster.Granted, Class: cluster.Shared, Pool: "v100", Size: cluster.Whole(2), Nodes: nodes, Granted: now, End: now.Add(9 * minute)}
	if d := cmp.Diff(want, f.Hand.Leases[0]); d != "" {
		t.Error(d)
	}
	if m := f.Hand.Marks; m[0] != (round.Mark{Terms: 1, Began: true, Stoppable: true}) || m[1] != (round.Mark{Began: true}) || f.Terms(0) != 5 {
		t.Errorf("marks %+v", m)
	}
	f.RevokeGrant(0, "lost")
	field.Follow(f, 0, 2)
	if e := f.Hand.Ended; len(e) != 1 || e[0].State != cluster.Over || e[0].Ended != now || e[0].Why != "lost" || e[0].Term != 5 {
		t.Errorf("ended %+v", e)
	}
	if l := f.Hand.Leases[0]; l.Behind != 3 || l.Size.Devices != 0 || l.Nodes[0].Node != "a" || l.Nodes[0].Size.Devices != 0 || f.Hand.Leases[2].Nodes[0].Size.Devices != 1 {
		t.Errorf("the job behind has %+v, the job before %+v", l, f.Hand.Leases[2])
	}
	if !f.Hand.Marks[0].Stoppable || !f.Fixed(0) {
		t.Error("the GPUs of a job behind another are not its own to give")
	}
	if cl := f.Claim(1, "v100", nodes, 5); cl.Made != now.Add(-cluster.Hour) || f.Claim(2, "v100", nodes, 5).Made != now {
		t.Errorf("claims were made at %d", cl.Made)
	}
	f.Hand.Claims = []cluster.Claim{{Job: 1}}
	if !f.Hand.IsClaimed(1) || f.Hand.IsClaimed(2) {
		t.Error("the claim is of job 1")
	}
}

// A job's GPUs stay taken, whatever is decided, unless it may be stopped; and a job leaves that gives them up and will wait.
func TestFixedAndLeaving(t *testing.T) {
	for _, c := range []struct {
		name          string
		lease         cluster.Lease
		change        func(s *cluster.Snapshot)
		fixed, leaves bool
	}{
		{"it may be stopped", leased(1, cluster.Active, minute), nil, false, false},
		{"its lease is over", leased(1, cluster.Ending, 0), nil, false, true},
		{"it has none", cluster.Lease{}, nil, true, false},
		{"it cleans up", cluster.Lease{}, func(s *cluster.Snapshot) { s.Cases[0].Job.State = cluster.Completing }, true, true},
		{"it was requeued in this second", cluster.Lease{}, func(s *cluster.Snapshot) {
			j := &s.Cases[0].Job
			j.State, j.Holds, j.Restarts, j.Submit = cluster.Waiting, nil, 1, now.Add(-cluster.Second)+1
		}, true, true},
		{"it was requeued a second ago", cluster.Lease{}, func(s *cluster.Snapshot) {
			j := &s.Cases[0].Job
			j.State, j.Holds, j.Restarts, j.Submit = cluster.Waiting, nil, 1, now.Add(-cluster.Second)
		}, true, false},
		{"it is gone", leased(1, cluster.Ending, 0), func(s *cluster.Snapshot) { s.Cases[0].Gone = true }, false, false},
		{"it is too old to be stopped", leased(1, cluster.Active, minute), func(s *cluster.Snapshot) { s.Cases[0].Job.Declares.Manner = cluster.SavesNever }, true, false},
		{"it is exempt", leased(1, cluster.Active, minute), func(s *cluster.Snapshot) { s.Overrides = freeze("ann"); s.Overrides[0].Kind = cluster.Exempt }, true, false},
		{"it is only observed", leased(1, cluster.Active, minute), func(s *cluster.Snapshot) { s.Cases[0].Control = cluster.ObserveOnly }, true, false},
	} {
		s := site(runs(7, cluster.Hour))
		if c.lease.Job > 0 {
			s.Leases = []cluster.Lease{c.lease}
		}
		if c.change != nil {
			c.change(s)
		}
		f := open(s)
		field.Extend(f)
		if f.Fixed(0) != c.fixed || field.Leaves(f, 0) != c.leaves {
			t.Errorf("%s: fixed %t, leaves %t", c.name, f.Fixed(0), field.Leaves(f, 0))
		}
	}
}

// GPUs are idle for a renewal only if all have been for long enough, by fresh counters of this attempt.
func TestResting(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(u []cluster.GPUUse)
		limit  cluster.Span
		want   bool
	}{
		{"all have been for as long", func([]cluster.GPUUse) {}, 30 * minute, true},
		{"for a millisecond less", func(u []cluster.GPUUse) { u[0].IdleSince++ }, 30 * minute, false},
		{"on one node for less", func(u []cluster.GPUUse) { u[1].IdleSince = now }, 30 * minute, false},
		{"one is busy", func(u []cluster.GPUUse) { u[0].Idle = 0 }, 30 * minute, false},
		{"the counters are as old as they may be", func(u []cluster.GPUUse) { u[0].At = now.Add(-10 * minute) }, 30 * minute, true},
		{"they are a millisecond older", func(u []cluster.GPUUse) { u[0].At = now.Add(-10*minute) - 1 }, 30 * minute, false},
		{"they are of the attempt before", func(u []cluster.GPUUse) { u[0].Start-- }, 30 * minute, false},
		{"they are of another job", func(u []cluster.GPUUse) { u[0].Job.ID-- }, 30 * minute, false},
		{"idleness does not matter", func([]cluster.GPUUse) {}, 0, false},
	} {
		s := site(runs(7, cluster.Hour))
		j := &s.Cases[0].Job
		j.Holds = append(j.Holds, cluster.Holding{Node: "b", Model: "k80", Size: cluster.Whole(1)})
		for _, model := range []string{"k80", "v100"} {
			s.Uses = append(s.Uses, cluster.GPUUse{Job: j.ID, Model: model, Start: j.Start, At: now, Idle: 1, IdleSince: now.Add(-30 * minute)})
		}
		s.Settings.IdleReclaim = c.limit
		if c.change(s.Uses); field.Resting(s, 0) != c.want {
			t.Errorf("%s: %t", c.name, !c.want)
		}
	}
}

// Tenants come with their accounts, charged with every lease in force, and the candidates of each are in their order.
func TestLine(t *testing.T) {
	other := waits(9, 1)
	other.Record.Tenant = "nlp"
	s := site(waits(7, 1), waits(8, 1), other, runs(10, minute))
	s.Cases[0].Record.Alloc, s.Cases[0].Record.Due = 2, 1
	s.Leases = []cluster.Lease{leased(4, cluster.Active, 15*minute)}
	s.Leases[0].Granted, s.Leases[0].Start = now.Add(-minute), now.Add(-minute)
	s.Overrides = freeze("nlp")
	s.Overrides[0].Kind, s.Overrides[0].Scope = cluster.Boost, "tenant"
	for _, c := range []struct {
		name   string
		change func(s *cluster.Snapshot)
		order  []cluster.JobKey
		boost  []bool
		spent  []bool
	}{
		{"the one that got less goes first", func(*cluster.Snapshot) {}, []cluster.JobKey{2, 1, 3}, []bool{false, true}, []bool{false, false}},
		{"the boost is over", func(s *cluster.Snapshot) { s.Overrides[0].Until = now }, []cluster.JobKey{2, 1, 3}, []bool{false, false}, []bool{false, false}},
		{"an order for a user of that name boosts no tenant", func(s *cluster.Snapshot) { s.Overrides[0].Scope = "user" }, []cluster.JobKey{2, 1, 3}, []bool{false, false}, []bool{false, false}},
		{"its budget is used up", func(s *cluster.Snapshot) { s.Tenants[0].Budget.Since = 1 }, []cluster.JobKey{2, 1, 3}, []bool{false, true}, []bool{true, false}},
	} {
		copied := *s
		copied.Tenants, copied.Overrides = slices.Clone(s.Tenants), slices.Clone(s.Overrides)
		c.change(&copied)
		f := open(&copied)
		field.Extend(f)
		f.Due.Rows.At(0, 1).Deficit, f.Due.Rows.At(0, 1).Entitlement, f.Due.Rows.At(0, 1).Owed = cluster.GPUTime(20*minute), 2*gpu, 5
		for range 2 { // the second time in the order of the first
			sorted, tenants := f.Line(f.Candidates(cluster.FullControl))
			var order []cluster.JobKey
			for k, x := range sorted {
				if order = append(order, x.Key); !slices.Contains(tenants[x.Tenant].Jobs, k) {
					t.Errorf("%s: job %d is none of its tenant's %v", c.name, x.Key, tenants[x.Tenant].Jobs)
				}
			}
			if !slices.Equal(order, c.order) || tenants[0].Boost != c.boost[0] || tenants[1].Boost != c.boost[1] || tenants[0].Spent != c.spent[0] || tenants[1].Spent != c.spent[1] {
				t.Errorf("%s: order %v, tenants %+v", c.name, order, tenants)
			}
			// Twenty minutes of a GPU, less 15 of the lease in force, are 2.5 at two GPUs.
			owed := cluster.GPUTime(5)
			if c.spent[0] {
				owed = 0
			}
			if x := tenants[0].Shares[1]; x.Behind != 150*cluster.Second || x.Holds != gpu || x.Owed != owed || x.Entitlement != 2*gpu {
				t.Errorf("%s: share %+v", c.name, x)
			}
		}
	}
}

// Where debts are repaid, tenants lack of their floors what leases in force leave, to the end of a new lease.
func TestLacking(t *testing.T) {
	const end = now + 30*cluster.Instant(minute)
	for _, c := range []struct {
		name  string
		floor int
		debt  func(f *field.Field)
		lease cluster.Span // of a GPU of bio's; 0 = none
		want  string       // by bio and nlp in v100, in minutes
	}{
		{"debts are repaid: half of two GPUs", 50, func(f *field.Field) { f.Due.Rows.At(1, 1).Owed, f.Due.Rows.At(1, 1).Repays = -1, -1 }, 0, "30 0 [2000000 0]"},
		{"a lease goes on for a while", 50, func(f *field.Field) { f.Due.Rows.At(1, 1).Owed, f.Due.Rows.At(1, 1).Repaying = -1, true }, 10 * minute, "20 0 [2000000 0]"},
		{"a lease goes on for longer", 50, func(f *field.Field) { f.Due.Rows.At(1, 1).Owed, f.Due.Rows.At(1, 1).Repaying = -1, true }, cluster.Hour, "0 0 [2000000 0]"},
		{"a lease has expired", 50, func(f *field.Field) { f.Due.Rows.At(1, 1).Owed, f.Due.Rows.At(1, 1).Repaying = -1, true }, -minute, "30 0 [2000000 0]"},
		{"none is repaid", 50, func(f *field.Field) { f.Due.Rows.At(1, 1).Owed = -1 }, 0, ""},
		{"there is no floor", 0, func(f *field.Field) { f.Due.Rows.At(1, 1).Owed, f.Due.Rows.At(1, 1).Repays = -1, -1 }, 0, ""},
	} {
		s := site(waits(7, 2))
		s.Settings.RepayFloorPercent = c.floor
		f := open(s)
		row := f.Due.Rows.At(0, 1)
		row.Entitlement, row.Demand = 2*gpu, 2*gpu
		f.Due.Rows.At(1, 1).Entitlement, f.Due.Rows.At(1, 1).Demand = 0, 0
		if c.debt(f); c.lease != 0 {
			l := leased(1, cluster.Active, c.lease)
			f.Hand.Leases[0] = &l
		}
		out, gangs := field.Lacking(f, end)
		got := ""
		if gangs != nil {
			got = fmt.Sprintf("%d %d %v", *out.At(0, 1)/cluster.GPUTime(minute), *out.At(1, 1)/cluster.GPUTime(minute), gangs)
			if *out.At(0, 0) > -1<<59 {
				t.Errorf("%s: nobody repays in k80, where bio lacks %d", c.name, *out.At(0, 0))
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A moment counts as the next one if it is still to come, and before the one that is known.
func TestLater(t *testing.T) {
	for _, c := range []struct {
		next, at, want cluster.Instant
		later          bool
	}{{0, now, 0, false}, {0, now + 1, now + 1, true}, {now + 5, now + 3, now + 3, true}, {now + 5, now + 7, now + 5, true}, {now + 5, now - 1, now + 5, false}} {
		x := field.Choice{Next: c.next}
		if got := x.Later(now, c.at); got != c.later || x.Next != c.want {
			t.Errorf("%d after %d: later %t, next %d", c.at, c.next, got, x.Next)
		}
	}
}

// The board has the GPUs of leases that have not begun, and those that jobs hold. The kept board of a later round is that of a fresh one.
func TestLay(t *testing.T) {
	three := func() *cluster.Snapshot {
		gone, done := runs(9, cluster.Hour), runs(10, cluster.Hour)
		gone.Gone, done.Job.State = true, cluster.Done
		stale := waits(11, 1) // its requeue is seen before its nodes are free
		stale.Job.Holds = []cluster.Holding{{Node: "b", Model: "k80", Size: cluster.Whole(1)}}
		s := site(runs(7, cluster.Hour), waits(8, 1), gone, done, stale, runs(12, cluster.Hour))
		s.Leases = []cluster.Lease{leased(1, cluster.Active, minute), leased(2, cluster.Granted, minute)}
		s.Leases[1].Granted, s.NodesVersion = now-1, 1
		return s
	}
	f, nodes := new(field.Field), new(eligible.Nodes)
	reopen(f, nodes, three())
	may := func(int) (field.Soft, bool) { return field.Soft{}, false }
	if b := f.Lay(nil, may); b.Idle(1) != 1 || b.Idle(0) != 4 {
		t.Errorf("%d v100 and %d k80 are idle, want 1 and 4", b.Idle(1), b.Idle(0))
	}
	f.RevokeGrant(1, "")
	if b := f.Lay(nil, may); b.Idle(1) != 2 {
		t.Errorf("after a grant is revoked %d v100 are idle, want 2", b.Idle(1))
	}
	next := three()
	next.Follows = true
	next.Cases[0].Was, next.Cases[1].Was = 1, 0 // the first is as it was; the others are new
	next.Cases = next.Cases[:2]
	next.Cases[1].Job.State, next.Cases[1].Job.Holds, next.Leases = cluster.Running, []cluster.Holding{{Node: "b", Model: "k80", Size: cluster.Whole(1)}}, next.Leases[:1]
	site := f.Site
	reopen(f, nodes, next)
	if b := f.Lay(nil, may); site != f.Site || b.Idle(1) != 3 || b.Idle(0) != 3 {
		t.Errorf("in the next round %d v100 and %d k80 are idle, want 3 and 3", b.Idle(1), b.Idle(0))
	}
	f.Closed = []string{"a"}
	if b := f.Lay(nil, may); b.Idle(1) != 0 || b.Idle(0) != 3 {
		t.Errorf("with node a closed %d v100 and %d k80 are idle, want 0 and 3", b.Idle(1), b.Idle(0))
	}
}
