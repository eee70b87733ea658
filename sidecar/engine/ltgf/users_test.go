package ltgf

import (
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
