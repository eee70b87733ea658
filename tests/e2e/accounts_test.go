package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// A coordinator makes six sub-accounts with fairshare=parent and fills them with jobs: the other tenant keeps its half, although one of its own
// sub-accounts has no jobs.
func TestSubAccountsOfACoordinator(t *testing.T) {
	t.Parallel()
	const suite = "forky"
	t.Run(suite, func(t *testing.T) {
		t.Parallel()
		r := newRig(t, suite, usual[suite], testcluster.Options{Accounts: tenants(1, 1)})
		r.rules.TenantLevel = 2
		for range 24 {
			r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:1")
			r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:1")
		}
		r.govern()
		r.halves(8, 2*time.Minute, r.holds)
		as := func(user string, words ...string) {
			t.Helper()
			if out, err := r.Exec(r.ctx(), user, append([]string{"sacctmgr", "-i"}, words...)...); err != nil {
				t.Fatalf("sacctmgr %v: %v: %s", words, err, out)
			}
		}
		as("root", "add", "coordinator", "accounts=nlp", "names=alice")
		as("root", "add", "account", "idle", "parent=vision", "fairshare=1") // leaves its part to its sibling, not to all
		for i := range 6 {
			name := fmt.Sprintf("sub%d", i)
			as("alice", "add", "account", name, "parent=nlp", "fairshare=parent")
			as("alice", "add", "user", "alice", "account="+name)
			for range 8 {
				r.submit("alice", sleeps(3600), "-A", name, "--gres=gpu:1")
			}
		}
		r.until("the sub-accounts are tenants", 2*time.Minute, func() bool {
			for _, s := range r.plan().Tenants {
				if s.Tenant == "sub5" && (s.Waiting > 0 || s.Holds > 0) {
					return true
				}
			}
			return false
		})
		capacity := func() (all cluster.GPUTime) {
			for _, p := range r.plan().State.Ledger.Pools {
				all += p.Capacity
			}
			return all
		}
		had, _ := r.used("vision")
		all, from := capacity(), r.plan().State.Ledger.At
		window := 9 * r.settings.Term
		r.until("nine terms are booked", 3*window.Duration(), func() bool { return r.plan().State.Ledger.At.Sub(from) >= window })
		has, _ := r.used("vision")
		percent := 100 * float64(has-had) / float64(capacity()-all)
		t.Logf("the other tenant had %.1f %% of the GPU time", percent)
		if percent < 43 {
			t.Errorf("the other tenant had %.1f %% of the GPU time, want its half", percent)
		}
	})
}
