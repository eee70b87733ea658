package e2e

import (
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/store"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// A job for which GPUs are kept is exempted: it starts with them all the same, and is never requeued while the order lasts. The order ends with
// the job.
func TestExemptJobKeepsItsTurn(t *testing.T) {
	onOne(t, "forky", eightGPUs, func(t *testing.T, r *rig) {
		r.govern()
		for range 8 {
			r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:1", savesOnTerm)
		}
		r.until("all GPUs are nlp's", 2*time.Minute, func() bool { return r.holds("nlp") == 8 })
		id := r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:2", savesOnTerm)
		r.until("GPUs are kept for it", 2*time.Minute, func() bool { return len(r.plan().State.Claims) > 0 })
		s, err := store.Open(r.ctx(), store.Config{DSN: r.dsn})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		number, err := cluster.ParseJobID(id)
		if err != nil {
			t.Fatal(err)
		}
		to, err := s.Overrides.TargetOf(r.ctx(), number)
		if err != nil || to.User != "bob" || to.Waiting != 1 {
			t.Fatalf("the job is %+v (%v)", to, err)
		}
		if _, err := s.Overrides.Add(r.ctx(), cluster.Override{Kind: cluster.Exempt, Scope: "job", Name: id, Job: to.Key, User: to.User, Submit: cluster.InstantOf(*to.Submitted),
			Until: cluster.InstantOf(time.Now().Add(time.Hour)), Reason: "demo", By: "me"}); err != nil {
			t.Fatal(err)
		}
		r.waitState(id, 2*time.Minute, "RUNNING")
		r.goesOn(60, 3*time.Minute)
		if j, err := r.Job(r.ctx(), id); err != nil || j["JobState"] != "RUNNING" || j["Restarts"] != "0" {
			t.Errorf("the exempt job is %s, requeued %s times (%v)", j["JobState"], j["Restarts"], err)
		}
	})
}

// A canary of one team's jobs leaves the other's entirely alone: Slurm starts them without a lease, and nothing stops them, however long they run and
// whoever waits.
func TestCanaryOfOneTeam(t *testing.T) {
	o := eightGPUs
	o.Plugin = testcluster.PluginC
	onOne(t, "trixie", o, func(t *testing.T, r *rig) {
		r.rules.Mode, r.rules.Canary, r.rules.Chosen = loop.Canary, []string{"gpu"}, loop.Chosen{Accounts: []string{"nlp"}}
		r.govern()
		r.heard()
		other := r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:4", savesOnTerm)
		r.waitState(other, 2*time.Minute, "RUNNING")
		var own []string
		for range 2 {
			own = append(own, r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:4", savesOnTerm))
		}
		r.until("the team's jobs take turns", 3*time.Minute, func() bool { return r.count(cluster.Reclaim, own[0]) > 0 && r.count(cluster.Reclaim, own[1]) > 0 })
		if c := r.lastCase(other); c.Control != cluster.Unmanaged {
			t.Errorf("the other team's job is %s (%s)", c.Control, c.ControlWhy)
		}
		if j, err := r.Job(r.ctx(), other); err != nil || j["JobState"] != "RUNNING" || j["Restarts"] != "0" {
			t.Errorf("the other team's job is %s, requeued %s times (%v)", j["JobState"], j["Restarts"], err)
		}
		for _, l := range r.plan().State.Leases {
			if l.Job == r.lastCase(other).Record.Key {
				t.Errorf("the other team's job has a lease: %+v", l)
			}
		}
	})
}
