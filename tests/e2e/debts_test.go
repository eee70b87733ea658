package e2e

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// owed gives what a tenant is owed by others, over all pools.
func (r *rig) owed(tenant string) (sum cluster.GPUTime) {
	for _, row := range r.plan().State.Ledger.Tenants {
		if row.Tenant == tenant {
			sum += row.Owed
		}
	}
	return sum
}

// received gives the GPU-seconds that both tenants have received up to the newest round that was written down, and its time.
func (r *rig) received() (nlp, vision float64, at time.Time) {
	r.t.Helper()
	a, _ := r.used("nlp")
	b, _ := r.used("vision")
	return float64(a) / 1000, float64(b) / 1000, r.plan().State.Ledger.At.Time()
}

// A tenant holds 12 of 16 GPUs with jobs that may not be requeued, while another one of the same weight waits. When these
// jobs end, the other tenant has that GPU time back within about the same time: it holds 12 GPUs on average, the
// first one the 4 that repay.floor leaves it, and then both get the same.
func TestDebtsAreRepaid(t *testing.T) {
	o := testcluster.Options{Accounts: tenants(1, 1), Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 4, Model: "v100", GPUs: 4}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		s := &r.settings
		s.StopAllowance, s.StopOverheadMilli, s.StartCost = 30*cluster.Second, 20, cluster.Second
		s.CreditCap, s.RepayFloorPercent, s.BurstMaxMilli = 2*cluster.Second, 50, 2000
		for range 6 {
			r.submit("alice", until("end"), "-A", "nlp", "--gres=gpu:2", "--no-requeue")
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

		nlp, vision, freed := r.received()
		behind := 0.0 // GPU-seconds that vision is short of its share already, besides what it is owed
		for _, s := range r.plan().Tenants {
			if s.Tenant == "vision" {
				behind += max(float64(s.Deficit)/1000, 0)
			}
		}
		r.until("vision has back what it was owed, but for a twentieth", 4*lent, func() bool { return r.owed("vision") <= owes/20 })
		nlpNow, visionNow, since := r.received()
		took := since.Sub(freed).Seconds()
		gave, got := (nlpNow-nlp)/took, (visionNow-vision)/took
		t.Logf("vision was owed %d GPU-s after %s, and had them back after %.0f s, in which it held %.1f GPUs on average and nlp %.1f; it was %.0f GPU-s behind before",
			owes/1000, lent.Round(time.Second), took, got, gave, behind)
		if most := (lent*3/2 + 2*r.settings.Term.Duration()).Seconds(); took > most {
			t.Errorf("vision was repaid in %.0f s what it had lent in %s; want at most %.0f s", took, lent, most)
		}
		// Leases are of whole terms, so means count. A tenant may be ahead by a term of its
		// largest gang (2 GPUs); its deficit gives that back, which repay.floor does not bound.
		// Now it makes up for vision's deficit at the time when the GPUs became free.
		gang := 2 * r.settings.Term.Duration().Seconds()
		if gave*took < 0.9*4*took-gang || got*took > 12*took+gang+behind {
			t.Errorf("while debts were repaid vision held %.1f GPUs on average and nlp %.1f; want at most 12 and at least 4 (repay.floor 50 %%)", got, gave)
		}

		// From then on both get as much, but for a term of one of their jobs each, and what was repaid too much in the last term.
		var at time.Time
		r.until("two terms are over", 4*r.settings.Term.Duration(), func() bool {
			nlp, vision, at = r.received()
			return at.Sub(since) >= 2*r.settings.Term.Duration()
		})
		nlp, vision = nlp-nlpNow, vision-visionNow
		t.Logf("in the %.0f s afterwards nlp received %.0f GPU-s, vision %.0f", at.Sub(since).Seconds(), nlp, vision)
		if apart := math.Abs(nlp - vision); apart > 4*gang {
			t.Errorf("in the two terms after the repayment nlp received %.0f GPU-s, vision %.0f", nlp, vision)
		}
	})
}

// The same with a credit.cap so long that vision's deficit holds all of what it is owed: it is far behind when the jobs that kept their
// GPUs end, and still nlp holds its floor of 6 GPUs from then on, but for a term of its largest gang.
func TestWhoRepaysKeepsItsFloor(t *testing.T) {
	t.Parallel()
	const suite = "forky"
	r := newRig(t, suite, usual[suite], testcluster.Options{Accounts: tenants(1, 1), Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 4, Model: "v100", GPUs: 4}}})
	s := &r.settings
	s.CreditCap, s.RepayFloorPercent, s.BurstMaxMilli = 5*cluster.Minute, 75, 2000
	for range 12 {
		r.submit("alice", until("end"), "-A", "nlp", "--gres=gpu:1", "--no-requeue")
	}
	r.govern()
	r.until("nlp holds 12 idle GPUs", 30*time.Second, func() bool { return r.holds("nlp") == 12 })
	for user, account := range map[string]string{"bob": "vision", "carol": "nlp"} {
		for range 16 {
			r.submit(user, sleeps(3600), "-A", account, "--gres=gpu:1", "--comment=saves=term")
		}
	}
	r.until("vision is owed 280 GPU-seconds", 3*time.Minute, func() bool { return r.owed("vision") >= 280*cluster.GPUTime(cluster.Second) })
	if err := os.WriteFile(filepath.Join(r.Home("alice"), "end"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.until("the jobs that kept their GPUs are gone", 40*time.Second, func() bool { return r.holds("nlp") <= 8 && r.holds("nlp")+r.holds("vision") == 16 })
	nlp, vision, freed := r.received()
	gang, least := s.Term.Duration().Seconds(), 0.0
	took, got := 0.0, 0.0
	r.until("three terms are over", 5*s.Term.Duration(), func() bool {
		now, _, at := r.received()
		took, got = at.Sub(freed).Seconds(), now-nlp
		least = min(least, got-0.9*6*took) // a tenth for hand-overs
		return took > 3*gang
	})
	_, v, _ := r.received()
	t.Logf("in the %.0f s after its jobs ended nlp held %.1f GPUs on average, vision %.1f, which is owed %d GPU-s now; nlp had at worst %.0f GPU-s less than 5.4 GPUs",
		took, got/took, (v-vision)/took, r.owed("vision")/1000, -least)
	if least < -gang {
		t.Errorf("nlp had %.0f GPU-s less than nine tenths of its floor of 6 GPUs; want at most a term of a job, %.0f", -least, gang)
	}
}
