package ltgf

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A max-min division gives each user its demand or the level, sums to the amount but for a remainder below the number of
// users, and leaves nobody below the level whose demand is above it.
func TestLevel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var all cluster.GPUTime
		wants := make([]cluster.GPUTime, rapid.IntRange(1, 8).Draw(rt, "users"))
		for i := range wants {
			wants[i] = cluster.GPUTime(rapid.Int64Range(0, 1000).Draw(rt, "wants"))
			all += wants[i]
		}
		amount := cluster.GPUTime(rapid.Int64Range(0, int64(all)).Draw(rt, "amount"))
		slices.Sort(wants)
		part, sum := level(amount, wants), cluster.GPUTime(0)
		for _, w := range wants {
			sum += min(w, part)
		}
		if sum > amount || amount-sum >= cluster.GPUTime(len(wants)) {
			rt.Errorf("%d between %v: the level %d makes %d", amount, wants, part, sum)
		}
	})
}

// The accounts of users that had no job in the window are dropped, and the others of their tenant still sum to 0.
func TestIdleUsersAreDropped(t *testing.T) {
	const day = cluster.Instant(cluster.Day)
	users := []cluster.UserAccount{
		{Tenant: "a", User: "ann", Owed: 60, Seen: 1 * day}, {Tenant: "a", User: "bob", Owed: -20, Seen: 20 * day}, {Tenant: "a", User: "eve", Owed: -40, Seen: 20 * day},
		{Tenant: "b", User: "ann", Owed: -30, Seen: 1 * day}, {Tenant: "b", User: "bob", Owed: 30, Seen: 20 * day}, {Tenant: "c", User: "ann", Owed: 0, Seen: 20 * day},
	}
	left := withoutIdle(users, 21*day, 14*cluster.Day)
	if len(left) != 4 {
		t.Fatalf("left: %+v", left)
	}
	for _, u := range left {
		if u.Owed != 0 {
			t.Errorf("%s of %s is owed %d", u.User, u.Tenant, u.Owed)
		}
	}
}

// GPU time that a user's jobs keep from others without use is a debt to the others, as if they had used it: GPUs of grants that do not
// start, and GPUs gathered for gangs. Reports show what was used.
func TestWhatAUserKeepsIsCharged(t *testing.T) {
	for _, how := range []string{"granted", "gathered"} {
		b := open(t, 8)
		b.s.Settings.Users = cluster.UsersEqual
		keeps, works := waiting(1, 4), running(2, 4, begin)
		keeps.Job.User, keeps.Record.User = "v", "v"
		b.look(0, keeps, works)
		nodes := []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(4)}}
		b.s.Ledger.Users[0].Wants = []cluster.UserDemand{{Pool: "v100", GPUs: 8 * cluster.WholeGPU}}
		b.s.Ledger.Users[1].Wants = []cluster.UserDemand{{Pool: "v100", GPUs: 8 * cluster.WholeGPU}}
		if how == "granted" {
			b.s.Leases = []cluster.Lease{{Job: 1, State: cluster.Granted, Pool: "v100", Size: cluster.Whole(4), Nodes: nodes}}
		} else {
			b.s.Claims = []cluster.Claim{{Job: 1, Pool: "v100", Gathers: true, Nodes: nodes}}
		}
		b.look(cluster.Minute, keeps, works)
		for _, u := range b.s.Ledger.Users {
			if u.Owed != 0 {
				t.Errorf("%s: %s is owed %d GPU-ms, though both had 4 GPUs", how, u.User, u.Owed)
			}
			if want := map[string]cluster.GPUTime{"u": cluster.Times(4, cluster.Minute)}[u.User]; u.Alloc != want {
				t.Errorf("%s: %s received %d GPU-ms, want %d", how, u.User, u.Alloc, want)
			}
		}
		b.balanced()
		if got, want := b.pool().Idle, cluster.Times(4, cluster.Minute); got != want {
			t.Errorf("%s: %d GPU-ms are idle, want %d", how, got, want)
		}
	}
}

// GPUs that are gathered for a tenant's gang are no reason to rank it further behind.
func TestGatheredGPUsLowerTheDeficit(t *testing.T) {
	deficit := func(gathers bool) cluster.GPUTime {
		b := open(t, 8)
		b.look(0, waiting(1, 8))
		b.due(8*gpu, waiting(1, 8))
		if gathers {
			b.s.Claims = []cluster.Claim{{Job: 1, Pool: "v100", Gathers: true, Nodes: []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(8)}}}}
		}
		b.look(cluster.Minute, waiting(1, 8))
		return b.row("t").Deficit
	}
	if got := deficit(true); got != 0 {
		t.Errorf("the deficit is %d GPU-ms, want 0: all its GPUs are kept for it", got)
	}
	if got, want := deficit(false), cluster.Times(8, cluster.Minute); got != want {
		t.Errorf("without them the deficit is %d GPU-ms, want %d", got, want)
	}
}
