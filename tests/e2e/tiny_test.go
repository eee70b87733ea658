package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// An array of two-second jobs runs many of them on each GPU of its tenant's half beside long jobs, though rounds are ten seconds
// apart and one job a round would use a fifth. The other tenant has its half.
func TestTinyJobsBesideLongOnes(t *testing.T) {
	t.Parallel()
	const suite = "forky"
	r := newRig(t, suite, usual[suite], testcluster.Options{Accounts: tenants(1, 1), Plugin: testcluster.PluginC})
	r.settings = short(120)
	r.settings.Interval, r.settings.GrantTimeout = 10*cluster.Second, cluster.Minute
	r.govern()
	r.heard()
	for range 16 {
		r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:1")
	}
	tiny := r.submit("alice", sleeps(2), "-A", "nlp", "--gres=gpu:1", "--array=0-999")
	r.until("the first jobs wait behind others", 3*time.Minute, func() bool {
		for _, l := range r.plan().State.Leases {
			if l.Behind != 0 {
				return true
			}
		}
		return false
	})
	states := func() []string {
		out, err := r.Exec(r.ctx(), "root", "sacct", "-n", "-P", "-X", "-j", tiny, "-o", "state")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(out)
	}
	completed := func() (n int) {
		for _, state := range states() {
			if state == "COMPLETED" {
				n++
			}
		}
		return n
	}
	from, before := r.plan(), completed()
	a, _ := r.used("nlp")
	b, _ := r.used("vision")
	r.until("a term and a half pass", 10*time.Minute, func() bool { return r.plan().At.Sub(from.At) >= 3*r.settings.Term/2 })
	a2, _ := r.used("nlp")
	b2, _ := r.used("vision")
	span := r.plan().At.Sub(from.At)
	half := cluster.Times(8, span)
	ran, gpuRounds := completed()-before, 8*float64(span)/float64(r.settings.Interval)
	t.Logf("%d tiny jobs ran, %.1f on each GPU in each round, and used %.0f %% of their tenant's half, long ones %.0f %%", ran, float64(ran)/gpuRounds,
		100*float64(a2-a)/float64(half), 100*float64(b2-b)/float64(half))
	if float64(ran) < 1.25*gpuRounds { // the GPU time depends on how fast Slurm starts them
		t.Errorf("%d tiny jobs ran, %.2f on each GPU in each round", ran, float64(ran)/gpuRounds)
	}
	if b2-b < half*85/100 {
		t.Errorf("the other tenant used %v of its half of %v", b2-b, half)
	}
	failed := 0
	for rec := range r.plan().State.All() {
		if rec.Failed > 0 {
			failed++
		}
	}
	if failed > 0 {
		t.Errorf("%d grants did not start", failed)
	}
	r.halt()
	for _, state := range states() {
		if state != "COMPLETED" && state != "PENDING" && state != "RUNNING" {
			t.Errorf("a tiny job is %s", state)
		}
	}
}
