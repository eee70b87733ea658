package e2e

import (
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// Parts of GPUs are leased as GPUs are. One tenant has jobs that ask for quarters and halves of GPUs, the other such jobs and some of whole GPUs; each wants
// more than its half of the cluster, and gets what it is due. A part is charged as a part. A job that asks for more than Slurm can put on one GPU is told so.
func TestPartsOfGPUs(t *testing.T) {
	o := testcluster.Options{Accounts: tenants(1, 1), Plugin: testcluster.PluginC,
		Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4, Shards: 16}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		r.govern()
		r.heard()
		for range 12 {
			r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=shard:1")
			r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=shard:2")
		}
		for range 4 {
			for _, gres := range []string{"gpu:1", "shard:2", "shard:3"} {
				r.submit("bob", sleeps(3600), "-A", "vision", "--gres="+gres)
			}
		}
		never := r.submit("bob", sleeps(3600), "-A", "vision", "--gres=shard:5")
		time.Sleep(12 * r.settings.Term.Duration())
		r.halt()
		for _, tenant := range []string{"nlp", "vision"} {
			alloc, due := r.used(tenant)
			within(t, tenant+" received / due [GPU-s]", float64(alloc)/1000, float64(due)/1000, 10)
		}
		all, idle := 0.0, 0.0
		for _, p := range r.plan().State.Ledger.Pools {
			all, idle = all+float64(p.Capacity)/1000, idle+float64(p.Idle)/1000
		}
		t.Logf("%.0f of %.0f GPU-s were idle", idle, all)
		for rec := range r.plan().State.All() {
			if rec.ID.String() == never {
				continue
			}
			if rec.Terms == 0 {
				t.Errorf("job %s was never served", rec.ID)
			}
		}
		if why := r.lastCase(never); why.Job.State != cluster.Waiting {
			t.Errorf("a job that asks for five quarters of a GPU is %s", why.Job.State)
		}
		for _, s := range r.plan().Statuses {
			if s.Job == r.lastCase(never).Record.Key && (s.Reason.Code != cluster.ReasonRule || s.Reason.Note == "") {
				t.Errorf("why a job that asks for five quarters of a GPU waits: %+v", s.Reason)
			}
		}
		if vain, granted := r.inVain(), r.count(cluster.Grant, ""); 20*len(vain) > granted { // Slurm chooses the GPU on a node
			t.Errorf("%d of %d grants in vain: %v", len(vain), granted, vain)
		}
	})
}
