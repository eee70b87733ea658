package e2e

import (
	"math"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// Parts of GPUs by MPS are leased: charged by part, with one user's jobs on a node. Jobs that want more than a part of one GPU start as Slurm starts them.
func TestMPS(t *testing.T) {
	o := testcluster.Options{Accounts: tenants(1, 1), Plugin: testcluster.PluginC,
		Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 2, MPS: 200}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		r.settings.Term = longTerm()
		r.govern()
		r.heard()
		users := map[string]string{}
		var runs []string
		for range 2 {
			for _, x := range [][2]string{{"alice", "nlp"}, {"bob", "vision"}} {
				id := r.submit(x[0], sleeps(3600), "-A", x[1], "--gres=mps:30")
				users[id], runs = x[0], append(runs, id)
			}
		}
		nodes := map[string]string{} // by user
		r.until("all of them run, those of each user on a node", 2*time.Minute, func() bool {
			clear(nodes)
			for _, id := range runs {
				j, err := r.Job(r.ctx(), id)
				if err != nil || j["JobState"] != "RUNNING" || nodes[users[id]] != "" && nodes[users[id]] != j["NodeList"] {
					return false
				}
				nodes[users[id]] = j["NodeList"]
			}
			return nodes["alice"] != nodes["bob"]
		})
		waits := r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=mps:50")
		since, from := time.Now(), cluster.InstantOf(time.Now())
		alice, _ := r.used("nlp")
		bob, _ := r.used("vision")
		r.until("they have run for a while", 2*time.Minute, func() bool { return time.Since(since) > 40*time.Second })
		if got := r.state(waits); got != "PENDING" { // Slurm gives MPS one GPU of a node
			t.Errorf("a job for which the GPUs in use by MPS have no room is %s", got)
		}
		for id := range users {
			if x := r.lastCase(id); len(x.Job.Holds) != 1 || x.Job.Holds[0].Size != (cluster.Size{Devices: 1, Part: 3 * cluster.WholeGPU / 10}) {
				t.Errorf("job %s holds %+v", id, x.Job.Holds)
			}
		}
		r.halt()
		span := r.plan().State.Ledger.At.Sub(from).Duration().Seconds()
		for tenant, before := range map[string]cluster.GPUTime{"nlp": alice, "vision": bob} {
			now, _ := r.used(tenant)
			if got := float64(now-before) / 1000; math.Abs(got-0.6*span) > 0.6*4 {
				t.Errorf("%s was charged %.1f GPU-s in %.0f s for two jobs with 0.3 of a GPU", tenant, got, span)
			}
		}
		if vain := r.inVain(); len(vain) > 0 {
			t.Errorf("grants in vain: %v", vain)
		}
	})
}
