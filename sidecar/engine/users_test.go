package engine_test

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// by makes a job one of a user.
func by(user string) func(*sim.Work) { return func(j *sim.Work) { j.User = user } }

// received returns the GPU time that a user's jobs have received inside a tenant, by the books.
func (w *world) received(tenant, user string) cluster.GPUTime {
	for _, u := range w.Last.State.Ledger.Users {
		if u.Tenant == tenant && u.User == user {
			return u.Received().Alloc
		}
	}
	return 0
}

// even fails unless the accounts of users in each tenant sum to 0.
func (w *world) even() {
	w.t.Helper()
	sums := map[string]cluster.GPUTime{}
	for _, u := range w.Last.State.Ledger.Users {
		sums[u.Tenant] += u.Owed
		if u.Lent < 0 {
			w.t.Errorf("user %s of %s lent %d", u.User, u.Tenant, u.Lent)
		}
	}
	for tenant, sum := range sums {
		if sum != 0 {
			w.t.Errorf("the accounts of the users of %s sum to %d", tenant, sum)
		}
	}
}

// One user's thirty jobs do not bury another's eight.
func TestUsersOfATenantShareEqually(t *testing.T) {
	seeds.Slow(t)
	for _, order := range []cluster.JobOrder{cluster.ByRho, cluster.ByAttained} {
		for _, users := range []cluster.Users{cluster.UsersByJob, cluster.UsersEqual} {
			w := newWorld(t, simtest.Product(), []int{8, 8}, "a", "b")
			w.Settings.Users, w.Settings.JobOrder, w.Settings.StopAllowance, w.Settings.StopOverheadMilli = users, order, 0, 0
			var many, few []cluster.JobID
			for range 30 {
				many = append(many, w.submit("a", 1, forever, by("alice")))
			}
			w.Submit("b", 20, 1, forever)
			w.Run(hour)
			for range 8 {
				few = append(few, w.submit("a", 1, forever, by("bob")))
			}
			w.Run(minute)
			told := 0
			for _, id := range many {
				if r := w.Reason(id); r.Inside != nil && r.Inside.User == "bob" {
					told++
				}
			}
			if (told > 0) != (users == cluster.UsersEqual) {
				t.Errorf("users %q, order %q: %d jobs of alice are told that bob goes first", users, order, told)
			}
			w.Run(12 * hour)
			sum := func(ids []cluster.JobID) (out cluster.GPUTime) {
				for _, id := range ids {
					out += w.Alloc(id)
				}
				return out
			}
			alice, bob := sum(many), sum(few)
			if equal := bob > cluster.Times(4, 11*hour); equal != (users == cluster.UsersEqual) {
				t.Errorf("users %q, order %q: alice got %.1f GPU-h, bob %.1f", users, order, alice.Hours(), bob.Hours())
			}
			if users == cluster.UsersEqual && w.received("a", "bob") != bob {
				t.Errorf("the books say that bob got %.1f GPU-h, it got %.1f", w.received("a", "bob").Hours(), bob.Hours())
			}
			w.books()
			w.even()
		}
	}
}

// halves lets alice's many jobs of tenant a run for an hour, then bob's few come. In 12 hours both must get the same, but for
// off, and bob at least least.
func (w *world) halves(name string, off, least cluster.GPUTime) {
	w.t.Helper()
	for range 20 {
		w.submit("a", 1, forever, by("alice"))
	}
	w.Run(hour)
	had := w.received("a", "alice")
	for range 4 {
		w.submit("a", 1, forever, by("bob"))
	}
	w.Run(12 * hour)
	if alice, bob := w.received("a", "alice")-had, w.received("a", "bob"); max(alice-bob, bob-alice) > off || bob < least {
		w.t.Errorf("%s: alice got %.2f GPU-h, bob %.2f", name, alice.Hours(), bob.Hours())
	}
	w.even()
}

// The same holds inside virtual clusters, by every chooser.
func TestUsersOfAVirtualClusterShareEqually(t *testing.T) {
	seeds.Slow(t)
	for _, chooser := range []string{"astraea", "fifo", "tiresias-l", "gandiva-fair"} {
		w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
		w.Settings.Chooser, w.Settings.Users, w.Settings.StopAllowance, w.Settings.StopOverheadMilli = chooser, cluster.UsersEqual, 0, 0
		w.Submit("b", 4, 1, forever)
		w.halves(chooser, cluster.Times(2, hour), cluster.Times(2, 11*hour))
		w.books()
	}
}

// And where a policy divides the models, between tenants or between jobs.
func TestUsersShareEquallyWhereModelsAreDivided(t *testing.T) {
	seeds.Slow(t)
	for policy, jobs := range map[string]bool{"gandiva-fair": false, "gavel:las": true} {
		set := simtest.Product()
		set.Divide, set.DivideJobs = policy, jobs
		set.Users, set.StopAllowance, set.StopOverheadMilli = cluster.UsersEqual, 0, 0
		w := newWorldOn(t, set, append(simtest.Nodes("k", "k80", 1, 4), simtest.Nodes("v", "v100", 1, 4)...), "a", "b")
		w.Submit("b", 16, 1, forever)
		w.halves(policy, cluster.Times(4, hour), cluster.Times(2, 10*hour))
	}
}

// Users with constant demand get equal time, whatever their jobs: each is off its part by at most a term of the largest
// gang, and two together by the threshold more. A first lease may be longer than a term by lease.min, and a gang's GPUs
// may idle for a notice.
func TestPropertiesOfUsers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		set := simtest.Product()
		set.Users, set.StopAllowance, set.StopOverheadMilli = cluster.UsersEqual, 0, 0
		set.JobOrder = rapid.SampledFrom([]cluster.JobOrder{cluster.ByRho, cluster.ByAttained, cluster.ByExpected}).Draw(rt, "order")
		set.Threshold = rapid.SampledFrom([]cluster.Span{0, 15}).Draw(rt, "threshold") * minute
		set.RecallFirst = rapid.Bool().Draw(rt, "recall")
		nodes := rapid.IntRange(1, 3).Draw(rt, "nodes")
		tenants := []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(rt, "tenants")]
		w := newWorldOn(t, set, simtest.Nodes("n", "v100", nodes, 8), tenants...)
		for _, tenant := range tenants[1:] {
			w.Submit(tenant, 8*nodes, 1, forever)
		}
		largest, users := 1, rapid.IntRange(2, 4).Draw(rt, "users")
		for u := range users {
			for want := 8 * nodes * rapid.IntRange(1, 4).Draw(rt, "demand"); want > 0; {
				gpus := min(rapid.SampledFrom([]int{1, 1, 2, 4, 8}).Draw(rt, "gpus"), want)
				w.submit("a", gpus, forever, by(fmt.Sprint("user", u)))
				want, largest = want-gpus, max(largest, gpus)
			}
		}
		least, most := cluster.GPUTime(1)<<60, cluster.GPUTime(0)
		w.Run(8 * hour)
		for u := range users {
			got := w.received("a", fmt.Sprint("user", u))
			least, most = min(least, got), max(most, got)
		}
		w.even()
		bound := cluster.Times(largest, 2*set.Term+set.Threshold+set.MinLease+set.Notice)
		if most-least > bound {
			rt.Errorf("%d users: least %.2f GPU-h, most %.2f: %.2f apart, bound %.2f", users, least.Hours(), most.Hours(), (most - least).Hours(), bound.Hours())
		}
	})
}

// With one user in each tenant, users that share equally change no plan.
func TestASingleUserChangesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newChaos(rt, t)
		c.world.Settings.Users = cluster.UsersEqual
		if rapid.Bool().Draw(rt, "cells") {
			c.world.Settings.Preset, c.world.Settings.Chooser = "hived", "astraea"
			c.world.Rules.Cells = c.drawCells()
		} else if rapid.Bool().Draw(rt, "divided") {
			c.world.Settings.Divide = "gandiva-fair"
		}
		decide := c.world.Loop.Decide
		c.world.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
			plan := decide(s)
			s.Settings.Users = cluster.UsersByJob
			without, with := decide(s), plan
			without.State.Ledger.Users, with.State.Ledger.Users = nil, nil
			if a, b := encode(without), encode(with); a != b {
				rt.Fatalf("users by job:\n%s\nusers equal:\n%s", a, b)
			}
			return plan
		}
		c.submit()
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			c.stir()
			c.world.Run(cluster.Span(rapid.IntRange(1, 300).Draw(rt, "seconds")) * second)
		}
	})
}

// The users of a tenant share what it gets, and no other tenant gets more or less for it.
func TestUsersTakeFromTheirOwnTenantOnly(t *testing.T) {
	used := map[cluster.Users][2]cluster.GPUTime{}
	for _, users := range []cluster.Users{cluster.UsersByJob, cluster.UsersEqual} {
		w := newWorld(t, simtest.Product(), []int{8, 8}, "a", "b")
		w.Settings.Users, w.Settings.StopAllowance, w.Settings.StopOverheadMilli = users, 0, 0
		w.Submit("b", 20, 1, forever)
		for range 20 {
			w.submit("a", 1, forever, by("alice"))
		}
		w.Run(2 * hour)
		for range 4 {
			w.submit("a", 1, forever, by("bob"))
		}
		w.Run(10 * hour)
		used[users] = [2]cluster.GPUTime{w.Used("a"), w.Used("b")}
	}
	job, equal := used[cluster.UsersByJob], used[cluster.UsersEqual]
	for i, tenant := range []string{"a", "b"} {
		if off := job[i] - equal[i]; max(off, -off) > cluster.Times(1, term) {
			t.Errorf("%s got %.2f GPU-h by job and %.2f with users that share equally", tenant, job[i].Hours(), equal[i].Hours())
		}
	}
}

// A user gains nothing by many small jobs instead of few large ones, nor by cancelling and submitting again.
func TestTricksGainAUserNothing(t *testing.T) {
	for _, trick := range []string{"none", "split", "resubmit"} {
		w := newWorld(t, simtest.Product(), []int{8}, "a")
		w.Settings.Users, w.Settings.StopAllowance, w.Settings.StopOverheadMilli = cluster.UsersEqual, 0, 0
		for range 4 {
			w.submit("a", 4, forever, by("honest"))
		}
		var theirs []cluster.JobID
		submit := func() {
			for range 4 {
				if trick != "split" {
					theirs = append(theirs, w.submit("a", 4, forever, by("sly")))
					continue
				}
				for range 12 {
					theirs = append(theirs, w.submit("a", 1, forever, by("sly")))
				}
			}
		}
		submit()
		for range 24 {
			w.Run(30 * minute)
			if trick == "resubmit" {
				for _, id := range theirs {
					w.Cancel(id)
				}
				theirs = nil
				submit()
			}
		}
		honest, sly := w.received("a", "honest"), w.received("a", "sly")
		if bound := cluster.Times(4, term+w.Settings.Threshold); sly > honest+bound {
			t.Errorf("%s: the sly user got %.2f GPU-h, the honest one %.2f", trick, sly.Hours(), honest.Hours())
		}
		w.even()
	}
}

// An idle user leaves its part to the others, and gets back at most credit.cap of it. Accounts survive a restart, and are
// dropped when a user had no job in the window.
func TestAccountsOfUsersAreKeptAndForgotten(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4}, "a")
	w.Settings.Users, w.Settings.StopAllowance, w.Settings.StopOverheadMilli, w.Settings.Window = cluster.UsersEqual, 0, 0, 2*cluster.Day
	for range 8 {
		w.submit("a", 1, forever, by("alice"))
	}
	w.submit("a", 1, 10*minute, by("bob"))
	w.Run(12 * hour)
	account := func(user string) *cluster.UserAccount {
		for i, u := range w.Last.State.Ledger.Users {
			if u.User == user {
				return &w.Last.State.Ledger.Users[i]
			}
		}
		return nil
	}
	most := cluster.Times(2, w.Settings.CreditCap) // an equal part of 4 GPUs
	if bob := account("bob"); bob == nil || bob.Lent < most*9/10 || bob.Lent > most {
		t.Errorf("bob's account after half a day: %+v, want %.2f GPU-h lent", bob, most.Hours())
	}
	w.Loop.Journal = w.journal
	restarted := *w.Loop
	w.Loop = &loop.Loop{Cluster: w, Journal: w.journal, Decide: restarted.Decide, Divide: restarted.Divide, Configure: restarted.Configure}
	before := *account("bob")
	w.Run(minute)
	if after := account("bob"); after == nil || after.Lent != before.Lent || after.Owed != before.Owed {
		t.Errorf("bob's account before the restart: %+v, after it: %+v", before, after)
	}
	for range 8 {
		w.submit("a", 1, 2*hour, by("bob"))
	}
	had := w.received("a", "bob")
	w.Run(100 * minute)
	if got := w.received("a", "bob") - had; got < cluster.Times(3, 100*minute) {
		t.Errorf("bob comes back with %.2f GPU-h of credit and gets %.2f in 100 minutes of 4 GPUs", before.Lent.Hours(), got.Hours())
	}
	w.Run(3 * cluster.Day)
	if bob := account("bob"); bob != nil {
		t.Errorf("bob had no job for more than a window: %+v", bob)
	}
	w.even()
}

// Where users share equally a question names the user of each party whose jobs are all of one. A job of another user makes it
// another question.
func TestBidsNameTheirUser(t *testing.T) {
	for _, users := range []cluster.Users{cluster.UsersEqual, cluster.UsersByJob, cluster.UsersBooked} {
		var asked []cluster.AllocationRequest
		w := newMarket(t, 1, 1, false, func(q cluster.AllocationRequest) cluster.Allocation {
			asked = append(asked, q)
			return engine.Divide(q)
		}, "a")
		w.Settings.Users = users
		for _, x := range []struct{ kind, user string }{{"one", "alice"}, {"one", "alice"}, {"two", "alice"}} {
			w.submit("a", 1, forever, func(k *sim.Work) { k.User, k.Comment = x.user, "kind="+x.kind })
		}
		w.Run(minute)
		w.submit("a", 1, forever, func(k *sim.Work) { k.User, k.Comment = "bob", "kind=two" })
		w.Run(minute)
		want := [][]string{{"", ""}, {"alice", ""}} // of one user alone nobody asks
		if users != cluster.UsersEqual {
			want = [][]string{{"", ""}, {"", ""}}
		}
		var got [][]string
		for _, q := range []cluster.AllocationRequest{asked[0], asked[len(asked)-1]} {
			var row []string
			for i := range q.Bids {
				row = append(row, q.Bids[i].User)
			}
			got = append(got, row)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("users %q: the parties' users are %q, want %q", users, got, want)
		}
	}
}
