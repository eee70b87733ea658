package e2e

import (
	"math"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// The instances of a GPU that MIG splits count as their parts of it. One tenant has jobs on instances, the other one on whole GPUs: each is due half of the
// worth of all, is charged for what its devices count.
func TestWorthOfInstances(t *testing.T) {
	const sevenths, instances, gpus = "1g.10gb", 7, 2
	o := testcluster.Options{Accounts: tenants(1, 1), Plugin: testcluster.PluginC,
		Nodes: []testcluster.NodeGroup{{Prefix: "m", Count: 1, Model: sevenths, GPUs: instances}, {Prefix: "v", Count: 1, Model: "v100", GPUs: gpus}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		const part = cluster.WholeGPU / 7
		r.settings.Worths = []cluster.Worth{{Model: sevenths, Worth: part}}
		r.govern()
		r.heard()
		var small, large []string
		for range instances - 1 {
			small = append(small, r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:"+sevenths+":1"))
		}
		for range gpus {
			large = append(large, r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:v100:1"))
		}
		for _, id := range append(small, large...) {
			r.waitState(id, 30*time.Second, "RUNNING")
		}
		either := r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:1") // only an instance is left for it
		r.waitState(either, 30*time.Second, "RUNNING")
		r.terms(3)
		r.halt()

		all, due := cluster.MicroGPU(0), map[string]cluster.MicroGPU{}
		for _, p := range r.plan().State.Ledger.Pools {
			all += cluster.MicroGPU(p.GPUs)
			if p.Capacity != p.Tenants+p.Untouchable+p.Overhead+p.Idle+p.Bad {
				t.Errorf("%+v does not balance", p)
			}
		}
		if all != instances*part+gpus*cluster.WholeGPU {
			t.Errorf("the cluster has %d millionths of a GPU", all)
		}
		for _, st := range r.plan().Tenants {
			due[st.Tenant] += st.Entitlement
		}
		for tenant, n := range due {
			if n < all/2-instances || n > all/2+instances {
				t.Errorf("%s is due %d of %d millionths of a GPU", tenant, n, all)
			}
		}
		for _, l := range r.plan().State.Leases {
			want := map[string]cluster.MicroGPU{sevenths: part, "v100": cluster.WholeGPU}[l.Pool]
			if l.Size != (cluster.Size{Devices: 1, Part: want}) {
				t.Errorf("the lease of job %d on %s counts %s", l.Job, l.Pool, l.Size)
			}
		}
		if holds := r.lastCase(either).Job.Holds; len(holds) != 1 || holds[0].Model != sevenths || holds[0].Size != cluster.Whole(1) {
			t.Errorf("a job of one device of any model holds %v", holds)
		}
		// Slurm's records have the starts of jobs, and all of them still run.
		charged, devices := map[string]float64{}, 0.0
		for _, row := range r.plan().State.Ledger.Tenants {
			charged[row.Pool] += float64(row.Alloc) / 1000
		}
		for _, id := range append(append(small, large...), either) {
			devices += float64(r.plan().State.Ledger.At.Sub(r.lastCase(id).Job.Start)) / 1000
		}
		within(t, "devices by the ledger / by their starts [GPU-s]", charged["v100"]+charged[sevenths]*float64(cluster.WholeGPU)/float64(part), devices, 5)
		if ran := charged["v100"] / gpus; math.Abs(charged[sevenths]-ran) > ran/5 {
			t.Errorf("seven instances had %.0f GPU-s while each GPU had %.0f", charged[sevenths], ran)
		}
	})
}
