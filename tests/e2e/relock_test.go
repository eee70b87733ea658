package e2e

import (
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// A running job has the gate's licence: after a requeue by its owner it waits for its turn, with no change at that moment.
func TestARequeuedJobWaitsForItsTurn(t *testing.T) {
	o := testcluster.Options{Accounts: tenants(1, 1), Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 1, Model: "v100", GPUs: 4}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		r.license = license
		r.client = r.newClient()
		r.govern()
		id := r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:4")
		r.waitState(id, time.Minute, "RUNNING")
		r.until("the running job has the licence", time.Minute, func() bool {
			j, err := r.Job(r.ctx(), id)
			return err == nil && j["JobState"] == "RUNNING" && j["Licenses"] == license+":1"
		})
		r.halt()
		gates := r.count(cluster.Gate, id)
		if out, err := r.Exec(r.ctx(), "alice", "scontrol", "requeue", id); err != nil {
			t.Fatal(out, err)
		}
		r.until("it waits", time.Minute, func() bool { return r.state(id) == "PENDING" })
		if out, err := r.Exec(r.ctx(), "alice", "scontrol", "update", "jobid="+id, "StartTime=now"); err != nil {
			t.Fatal(out, err)
		}
		r.until("it waits for the licence", time.Minute, func() bool {
			j, err := r.Job(r.ctx(), id)
			return err == nil && j["JobState"] == "PENDING" && j["Reason"] == "Licenses"
		})
		if n := r.count(cluster.Gate, id); n != gates {
			t.Errorf("its gate was shut %d times more", n-gates)
		}
		r.govern()
		r.waitState(id, 2*time.Minute, "RUNNING")
	})
}
