package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// holdsIn counts the GPUs that running jobs hold.
func (w *world) holdsIn(ids []cluster.JobID) (gpus int) {
	for _, id := range ids {
		if j := w.Job(id); j.State == cluster.Running {
			gpus += j.GPUsHeld()
		}
	}
	return gpus
}

// waitIn counts the jobs that wait.
func (w *world) waitIn(ids []cluster.JobID) (n int) {
	for _, id := range ids {
		if w.Job(id).State == cluster.Waiting {
			n++
		}
	}
	return n
}

// Tenant b wanted all of its due an hour ago. Tenant a then binds no more than its own due, unless b has wanted nothing
// for bind.quiet, or bind.max allows more. That also holds if both are below one account, so that each leaves to the other what it
// does not want.
func TestTheFirstComerBindsItsDue(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(*sim.Work){
		"not requeueable":           func(j *sim.Work) { j.NoRequeue = true },
		"never save":                neverSaves,
		"siblings, not requeueable": func(j *sim.Work) { j.NoRequeue = true },
	}
	for _, c := range []struct {
		name  string
		set   func(*cluster.Settings)
		away  cluster.Span
		bound int // GPUs of the first comer, of 16, after two hours
	}{
		{"its due", func(s *cluster.Settings) { s.BindQuiet *= 20 }, hour, 8},
		{"some more by bind.max", func(s *cluster.Settings) { s.BindQuiet, s.BindMaxPercent = 20*s.BindQuiet, 13 }, hour, 10},
		{"all, if b has wanted none for bind.quiet", nil, 25 * hour, 16},
		{"all, if no limit is set", func(s *cluster.Settings) { s.BindQuiet = 0 }, hour, 16},
		{"half of b's due after half of bind.quiet", func(s *cluster.Settings) { s.BindQuiet = cluster.Day }, 8*hour + 10*minute, 12},
	} {
		for kind, makes := range kinds {
			siblings := kind == "siblings, not requeueable"
			t.Run(c.name+", "+kind, func(t *testing.T) {
				t.Parallel()
				set := simtest.Product()
				set.Interval = minute
				if c.set != nil {
					c.set(&set)
				}
				w := newWorld(t, set, []int{8, 8}, "a", "b")
				if siblings {
					w.Rules.TenantLevel = 2
					w.alter = func(s *cluster.Observation) {
						s.Accounts = []cluster.Account{{Name: "root"}, {Name: "above", Parent: "root", Shares: 1}, {Name: "a", Parent: "above", Shares: 1}, {Name: "b", Parent: "above", Shares: 1}}
					}
				}
				for range 16 {
					w.submit("a", 1, 30*minute, nil)
					w.submit("b", 1, 30*minute, nil)
				}
				w.Run(2 * hour)
				w.Run(c.away)
				var first, second []cluster.JobID
				for range 16 {
					first = append(first, w.submit("a", 1, 100*hour, func(j *sim.Work) { makes(j); j.Begin = w.Now().Add(3 * minute) }))
				}
				w.Run(2 * hour)
				if got := w.holdsIn(first); got != c.bound {
					t.Errorf("the first comer holds %d GPUs, want %d", got, c.bound)
				}
				if c.bound < 16 {
					held := w.Reason(first[15])
					for _, id := range first {
						if w.Job(id).State == cluster.Waiting {
							held = w.Reason(id)
						}
					}
					if held.Code != cluster.ReasonBound || held.Bound == nil || held.Bound.Tenant != "b" || held.Until <= w.Now() {
						t.Errorf("its other jobs wait because of %+v, want %q for b", held, cluster.ReasonBound)
					}
				}
				for range 16 {
					second = append(second, w.submit("b", 1, 100*hour, nil))
				}
				w.Run(2 * hour)
				if got := w.holdsIn(second); got != 16-c.bound {
					t.Errorf("b holds %d GPUs after its return, want %d", got, 16-c.bound)
				}
			})
		}
	}
}

// A job whose time limit ends it within bind.horizon may bind what absent tenants are due: they wait for it at most that
// long.
func TestShortJobsBindWhatOthersAreDue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit cluster.Span
		bound int
	}{{hour, 16}, {3 * hour, 9}} {
		set := simtest.Product()
		set.Interval = minute
		w := newWorld(t, set, []int{8, 8}, "a", "b")
		for range 16 {
			w.submit("b", 1, 30*minute, nil)
		}
		w.Run(2 * hour)
		var first []cluster.JobID
		for range 16 {
			first = append(first, w.submit("a", 1, hour, func(j *sim.Work) { j.NoRequeue, j.Limit, j.Begin = true, c.limit, w.Now().Add(3*minute) }))
		}
		w.Run(10 * minute)
		if got := w.holdsIn(first); got != c.bound {
			t.Errorf("with a limit of %s the first comer holds %d GPUs, want %d", c.limit, got, c.bound)
		}
	}
}

// Tenant b wanted all of its due lately, or wants it all the time, in jobs for parts of nodes that do not always fit. Whatever jobs a submits, and
// whatever the pool has for stops, those of them that cannot be stopped and do not end within bind.horizon hold at most a's due
// and bind.max, and one job more where stops have a total.
func TestBoundGPUsBeyondTheDueHaveALimit(t *testing.T) {
	t.Parallel()
	for seed := range seeds.Of(t, 12) {
		r := rand.New(rand.NewPCG(seed, 7))
		set := simtest.Product()
		set.Interval, set.BindQuiet = minute, 1000*set.BindQuiet
		set.BindMaxPercent = 5 * r.IntN(6)
		present := r.IntN(2) == 0
		w := newWorld(t, set, []int{4, 4, 4, 4}, "a", "b")
		for range 16 {
			w.submit("b", 1, 30*minute, nil)
		}
		w.Run(hour)
		w.Settings.StopTotalMilli = int64(30 * r.IntN(2))
		var all, others []cluster.JobID
		stays := map[cluster.JobID]bool{} // bound from its start
		for range 30 {
			for range 1 + r.IntN(4) {
				never := r.IntN(2) == 0
				id := w.submit("a", 1+r.IntN(4), cluster.Span(1+r.IntN(600))*minute, func(j *sim.Work) {
					j.Begin, j.Limit = w.Now().Add(3*minute), []cluster.Span{0, 0, 30 * minute, hour, 3 * hour, 9 * hour}[r.IntN(6)]
					if never {
						neverSaves(j)
					} else {
						j.NoRequeue = true
					}
				})
				all = append(all, id)
				stays[id] = !never
			}
			for present && w.waitIn(others) < 5 {
				others = append(others, w.submit("b", 1+r.IntN(3), cluster.Span(5+r.IntN(40))*minute, func(j *sim.Work) { j.Begin = w.Now().Add(3 * minute) }))
			}
			w.Run(20 * minute)
			long := 0
			for _, id := range all {
				j := w.Job(id)
				if j.State != cluster.Running || j.Limit > 0 && j.Start.Add(j.Limit).Sub(w.Now()) <= 4*set.Term {
					continue
				}
				if stays[id] || w.Now().Sub(j.Start) > set.StopAllowance+2*minute {
					long += j.GPUsHeld()
				}
			}
			most := 8 + 16*float64(set.BindMaxPercent)/100
			if w.Settings.StopTotalMilli > 0 {
				most += 4 // the cost of stops is foreseen but for one job
			}
			if float64(long) > most {
				t.Fatalf("history %d, after %s: %d GPUs are bound for long, with a due of 8, a bind.max of %d %% and a stop.total of %d ‰",
					seed, w.Now().Sub(simtest.Start), long, set.BindMaxPercent, w.Settings.StopTotalMilli)
			}
		}
	}
}

// Jobs that never save, and are larger than what their tenants are due, take turns: GPUs that are kept for tenants whose jobs do not
// fit into their shares would idle in vain. Nobody keeps them for good, whatever its name.
func TestJobsLargerThanTheirTenantsDueTakeTurns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tenants, gang int
		runs          cluster.Span
	}{{4, 4, 5 * hour}, {7, 4, hour}, {16, 2, hour}, {16, 4, hour}} {
		t.Run(fmt.Sprintf("%d tenants, gangs of %d for %v", c.tenants, c.gang, c.runs), func(t *testing.T) {
			t.Parallel()
			set := simtest.Product()
			set.Interval = minute
			var names []string
			for i := range c.tenants {
				names = append(names, fmt.Sprintf("x%02d", i))
			}
			w := newWorld(t, set, []int{8, 8}, names...)
			jobs := map[string][]cluster.JobID{}
			held, rounds := 0, 0
			for ; rounds < 72*6; rounds++ {
				for _, name := range names {
					for range 3 - w.waitIn(jobs[name]) {
						jobs[name] = append(jobs[name], w.submit(name, c.gang, c.runs, neverSaves))
					}
				}
				w.Run(10 * minute)
				for _, name := range names {
					held += w.holdsIn(jobs[name])
				}
			}
			if part := float64(held) / float64(16*rounds); part < 0.97 {
				t.Errorf("%.1f %% of the GPUs are held", 100*part)
			}
			all := cluster.GPUTime(0)
			for _, name := range names {
				all += w.Used(name)
			}
			for _, name := range names {
				if part := float64(w.Used(name)) / float64(all) * float64(c.tenants); part < 0.85 || part > 1.15 {
					t.Errorf("%s has %.2f of an equal part", name, part)
				}
			}
		})
	}
}

// A tenant comes back with a job of a whole node, and no node is free. Others do not bind its due before GPUs can be gathered.
func TestATenantComesBackWithAWholeNode(t *testing.T) {
	t.Parallel()
	set := simtest.Product()
	set.Interval, set.BindQuiet, set.BindMaxPercent = minute, 20*cluster.Day, 7
	w := newWorld(t, set, []int{4, 4, 4, 4}, "a", "b")
	for range 16 {
		w.submit("a", 1, 30*minute, nil)
		w.submit("b", 1, 30*minute, nil)
	}
	w.Run(4 * hour)
	later := func(change func(*sim.Work)) func(*sim.Work) { // gated before it can start
		return func(j *sim.Work) { change(j); j.Begin = w.Now().Add(3 * minute) }
	}
	var first []cluster.JobID
	for range 32 {
		first = append(first, w.submit("a", 1, 100*hour, later(func(j *sim.Work) { j.NoRequeue = true })))
	}
	w.Run(20 * minute)
	w.submit("b", 1, 100*hour, later(func(j *sim.Work) { j.NoRequeue = true }))
	w.Run(10 * minute)
	for range 2 {
		w.submit("b", 4, 100*hour, later(saves))
	}
	w.Run(10 * minute)
	if got := w.holdsIn(first); got != 9 {
		t.Errorf("a holds %d GPUs, want its due and one by bind.max", got)
	}
}
