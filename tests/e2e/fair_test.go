package e2e

import (
	"math"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// within fails unless got is within percent of want.
func within(t *testing.T, what string, got, want, percent float64) {
	t.Helper()
	t.Logf("%s: %.0f, want %.0f", what, got, want)
	if math.Abs(got-want) > want*percent/100 {
		t.Errorf("%s: %.0f, want %.0f within %.0f %%", what, got, want, percent)
	}
}

func tenants(nlp, vision int) []testcluster.Account {
	return []testcluster.Account{
		{Name: "nlp", Shares: nlp, Users: []string{"alice", "carol"}},
		{Name: "vision", Shares: vision, Users: []string{"bob"}},
	}
}

func TestSaturatedOneToOne(t *testing.T)   { saturated(t, 1, 1) }
func TestSaturatedThreeToOne(t *testing.T) { saturated(t, 3, 1) }

// saturated: two tenants with mixed gangs over 26 terms of 20 s, since a tenant may be
// ahead by a term of its largest gang in each of the two pools: 8 % of what the smaller
// one is due in so many terms. Each tenant wants 19 GPUs, more than all 16: one that
// wants hardly more than its due cannot catch up. Each gets its due within 10 %, every
// job is served, and slurmdbd agrees with the ledger.
func saturated(t *testing.T, nlp, vision int) {
	onBoth(t, testcluster.Options{Accounts: tenants(nlp, vision), Plugin: testcluster.PluginC}, func(t *testing.T, r *rig) {
		begin := time.Now().Add(-2 * time.Second)
		r.govern()
		r.heard()
		var jobs []string
		for _, gang := range []string{"1", "1", "2", "4", "1", "2", "v100:2", "k80:2", "1", "1", "1", "1"} {
			jobs = append(jobs, r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:"+gang))
			jobs = append(jobs, r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:"+gang))
		}
		time.Sleep(26 * r.settings.Term.Duration())
		r.halt()
		for _, id := range jobs { // end them, so that slurmdbd knows all there is
			if _, err := r.Exec(r.ctx(), "root", "scancel", id); err != nil {
				t.Error(err)
			}
		}
		r.until("all jobs are gone", 30*time.Second, func() bool {
			out, _ := r.Exec(r.ctx(), "root", "squeue", "-h", "-t", "R,CG")
			return out == ""
		})
		r.govern() // one more look, to book the ends
		before := r.plan().Round
		r.until("the ends are booked", 10*time.Second, func() bool { return r.plan().Round > before+1 || r.holds("nlp")+r.holds("vision") == 0 })
		r.halt()

		var ledger, slurmdbd float64
		for tenant, shares := range map[string]int{"nlp": nlp, "vision": vision} {
			alloc, due := r.used(tenant)
			within(t, tenant+" received / due [GPU-s]", float64(alloc)/1000, float64(due)/1000, 10)
			all := 0.0
			for _, p := range r.plan().State.Ledger.Pools {
				all += float64(p.Capacity) / 1000
			}
			t.Logf("%s: %.1f %% of all GPU time, %d of %d shares", tenant, float64(alloc)/10/all, shares, nlp+vision)
			of := r.accounted(tenant, begin)
			t.Logf("%s: ledger / slurmdbd [GPU-s]: %d, %.0f", tenant, alloc/1000, of)
			ledger, slurmdbd = ledger+float64(alloc)/1000, slurmdbd+of
		}
		within(t, "ledger / slurmdbd [GPU-s]", ledger, slurmdbd, 1)
		for rec := range r.plan().State.All() {
			if rec.Terms == 0 {
				t.Errorf("job %s was never served", rec.ID)
			}
		}
	})
}

// A tenant that is idle lends its GPUs; it gets them back within one term, and a
// late tenant has its share within two.
func TestLendingAndLateTenant(t *testing.T) {
	onBoth(t, testcluster.Options{Accounts: tenants(1, 1)}, func(t *testing.T, r *rig) {
		for range 16 {
			r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:1")
		}
		r.govern()
		r.until("the only tenant uses all 16 GPUs", 30*time.Second, func() bool { return r.holds("nlp") == 16 })
		time.Sleep(r.settings.Term.Duration())
		for range 4 {
			r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:2")
		}
		came := time.Now() // it wants its whole share only now
		term := r.settings.Term.Duration()
		r.until("the late tenant has its 8 GPUs", 2*term, func() bool { return r.holds("vision") >= 8 })
		t.Logf("the late tenant had its share after %s (term %s)", time.Since(came).Round(time.Second), term)
		if waited := time.Since(came); waited > term+10*time.Second {
			t.Errorf("lent GPUs came back after %s, want one term (%s) and the hand-over", waited, term)
		}
	})
}

// An 8-GPU gang among one-GPU jobs of another tenant gets its node at the next
// boundary or the one after, every time that it is due.
func TestGangAmongSmallJobs(t *testing.T) {
	o := testcluster.Options{Accounts: tenants(1, 1), Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 1, Model: "v100", GPUs: 8}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		for range 12 {
			r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:1")
		}
		r.govern()
		r.until("small jobs fill the node", 30*time.Second, func() bool { return r.holds("nlp") == 8 })
		gang := r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:8")
		term := r.settings.Term.Duration()
		r.until("the gang has its node", 2*term+10*time.Second, func() bool { return r.state(gang) == "RUNNING" })
		// Both are due half of the node. A term of the gang is what one may be ahead of the other.
		time.Sleep(6 * term)
		alloc, due := r.used("vision")
		apart := time.Duration(alloc-due) * time.Millisecond
		t.Logf("the gang has had %d of %d GPU-seconds that it was due since it came", alloc/1000, due/1000)
		if apart.Abs() > 8*term {
			t.Errorf("the gang has had %d GPU-seconds, and was due %d: more than one term of it apart", alloc/1000, due/1000)
		}
		if n := r.count(cluster.Reclaim, gang); n < 2 {
			t.Errorf("the gang was reclaimed %d times in six terms, want it to take turns", n)
		}
	})
}

// With users: equal the users of a tenant have equal parts of its GPUs, however many jobs each submits.
func TestUsersOfATenant(t *testing.T) {
	onBoth(t, testcluster.Options{}, func(t *testing.T, r *rig) {
		r.settings.Users = cluster.UsersEqual
		begin := time.Now().Add(-2 * time.Second)
		var jobs []string
		for range 12 {
			for range 3 {
				jobs = append(jobs, r.submit("alice", sleeps(3600), "--gres=gpu:1"))
			}
			jobs = append(jobs, r.submit("carol", sleeps(3600), "--gres=gpu:1"))
		}
		r.govern()
		time.Sleep(8 * r.settings.Term.Duration())
		r.halt()
		for _, id := range jobs {
			if _, err := r.Exec(r.ctx(), "root", "scancel", id); err != nil {
				t.Error(err)
			}
		}
		both := r.accounted("nlp", begin)
		within(t, "GPU-seconds of the user with a quarter of the jobs", r.accounted("nlp", begin, "carol"), both/2, 10)
	})
}

// A tenant whose job takes all memory of a node, and leaves its GPUs idle, gets no GPUs of another tenant for them.
func TestStrandedGPUs(t *testing.T) {
	o := testcluster.Options{Accounts: tenants(1, 1), Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		takes := r.submit("alice", sleeps(3600), "-A", "nlp", "-w", "v2", "--mem=0")
		r.waitState(takes, 30*time.Second, "RUNNING")
		due := r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:4")
		r.waitState(due, 30*time.Second, "RUNNING")
		for range 8 {
			r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:1")
		}
		r.govern()
		r.until("bob's job has its fifth lease, or was stopped", 7*r.settings.Term.Duration(), func() bool {
			return r.lease(due).Term >= 5 || r.restarts(due) != "RUNNING 0"
		})
		if got := r.restarts(due); got != "RUNNING 0" {
			r.dump()
			t.Errorf("bob's job on the GPUs that vision is due is %s, want RUNNING 0", got)
		}
	})
}
