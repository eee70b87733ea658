package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// owed gives what a tenant is owed by others, over all pools.
func (r *rig) owed(tenant string) (sum cluster.GPUTime) {
	for _, row := range r.plan().Memory.Ledger.Tenants {
		if row.Tenant == tenant {
			sum += row.Owed
		}
	}
	return sum
}

// A tenant holds 12 of 16 GPUs with jobs that may not be requeued, while another one of the same weight waits. When these
// jobs end, the other tenant has that GPU time back within about the same time: it holds 12 GPUs, the first one the
// 4 that repay.floor leaves it, and then both hold 8.
func TestDebtsAreRepaid(t *testing.T) {
	o := testcluster.Options{Accounts: tenants(1, 1), Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 4, Model: "v100", GPUs: 4}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		s := &r.settings
		s.StopAllowance, s.StopOverheadMilli, s.StartCost = 30*cluster.Second, 20, cluster.Second
		s.CreditCap, s.RepayFloorPercent, s.BurstMaxMilli = 5*cluster.Second, 50, 2000
		for range 3 {
			r.submit("alice", until("end"), "-A", "nlp", "--gres=gpu:4", "--no-requeue")
		}
		r.govern()
		r.until("nlp holds 12 idle GPUs", 30*time.Second, func() bool { return r.holds("nlp") == 12 })
		for range 8 {
			r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:2", "--comment=saves=term")
		}
		for range 8 {
			r.submit("carol", sleeps(3600), "-A", "nlp", "--gres=gpu:2", "--comment=saves=term")
		}
		r.until("vision holds what is left", 30*time.Second, func() bool { return r.holds("vision") == 4 })
		const debt = 280 * cluster.GPUTime(cluster.Second) // of 4 GPUs in 70 s
		began := time.Now()
		r.until("vision is owed 280 GPU-seconds", 3*time.Minute, func() bool { return r.owed("vision") >= debt })
		lent, owes := time.Since(began), r.owed("vision")
		if sum := owes + r.owed("nlp"); sum != 0 {
			t.Errorf("the accounts do not sum to nothing: %d GPU-ms", sum)
		}
		if err := os.WriteFile(filepath.Join(r.Home("alice"), "end"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		r.until("the jobs that kept their GPUs are gone", 40*time.Second, func() bool { return r.holds("nlp") <= 8 && r.holds("nlp")+r.holds("vision") == 16 })

		// From now on the least that a tenant holds counts, but for hand-overs, in which GPUs are nobody's.
		freed, high, low := time.Now(), 0, 16
		series := ""
		r.until("vision has back what it was owed, but for a twentieth", 4*lent, func() bool {
			if v, n := r.holds("vision"), r.holds("nlp"); v+n == 16 {
				high, low = max(high, v), min(low, n)
			}
			series += fmt.Sprintf(" %d/%d", r.holds("vision"), r.owed("vision")/1000)
			return r.owed("vision") <= owes/20+8*cluster.GPUTime(cluster.Second)
		})
		took := time.Since(freed)
		t.Log(series)
		t.Logf("vision was owed %d GPU-s after %s, and had them back after %s; it held at most %d GPUs, nlp at least %d", owes/1000, lent.Round(time.Second), took.Round(time.Second), high, low)
		r.until("both hold their half", 3*r.settings.Term.Duration(), func() bool { return r.holds("nlp") == 8 && r.holds("vision") == 8 })
		if high != 12 || low != 4 {
			t.Errorf("vision held at most %d GPUs, nlp at least %d; want 12 and 4 (repay.floor 50 %%)", high, low)
		}
		if took > lent*3/2+2*r.settings.Term.Duration() {
			t.Errorf("vision was repaid in %s what it had lent in %s", took, lent)
		}
	})
}
