package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// A job of two GPUs (--gpus=2) finds one on each of two nodes. If its type is known to be much slower there, it waits until a node has room for
// both, and a job of one GPU begins meanwhile; else it begins on both nodes.
func TestAGangWaitsForNodesTogether(t *testing.T) {
	o := testcluster.Options{Plugin: testcluster.PluginC, Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		r.settings.ScatterWait = cluster.Hour
		r.rules.Profiles = []cluster.Profile{{Kind: "lm", With: cluster.Scattered, Model: "v100", Gang: 2, Rate: 0.05, Relative: true, Source: cluster.Declared, Basis: profile.File}}
		r.govern()
		first := r.submit("alice", sleeps(600), "-A", "nlp", "--no-requeue", "--gres=gpu:3", "-w", "v1")
		r.waitState(first, time.Minute, "RUNNING")
		r.waitState(r.submit("bob", sleeps(600), "-A", "vision", "--no-requeue", "--gres=gpu:3", "-w", "v2"), time.Minute, "RUNNING")
		apart := r.submit("alice", sleeps(600), "-A", "nlp", "-n", "2", "--gpus=2", "--comment=kind=other")
		r.waitState(apart, time.Minute, "RUNNING")
		r.nodes(apart, "v[1-2]")
		r.cancel(apart)
		gang := r.submit("alice", sleeps(600), "-A", "nlp", "-n", "2", "--gpus=2", "--comment=kind=lm")
		r.until("it says that it waits for nodes together", time.Minute, func() bool { return r.status(gang).Code == cluster.ReasonTogether })
		r.waitState(r.submit("bob", sleeps(5), "-A", "vision", "--gres=gpu:1"), time.Minute, "RUNNING", "COMPLETED")
		r.waitState(gang, time.Second, "PENDING")
		r.cancel(first)
		r.waitState(gang, time.Minute, "RUNNING")
		r.nodes(gang, "v1")
		r.halt()
	})
}

// nodes fails unless a job is on these nodes.
func (r *rig) nodes(id, want string) {
	r.t.Helper()
	if out, err := r.Exec(r.ctx(), "root", "squeue", "-h", "-j", id, "-o", "%N"); err != nil || strings.TrimSpace(out) != want {
		r.t.Errorf("job %s is on %s (%v), want %s", id, out, err, want)
	}
}

// cancel cancels a job, and waits until it is gone.
func (r *rig) cancel(id string) {
	r.t.Helper()
	if _, err := r.Exec(r.ctx(), "root", "scancel", id); err != nil {
		r.t.Fatal(err)
	}
	r.waitState(id, time.Minute, "CANCELLED")
}
