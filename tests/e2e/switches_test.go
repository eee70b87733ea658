package e2e

import (
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// Idle nodes are under two switches. A gang whose type is known to be much slower across them waits for nodes under one, and a job of one GPU begins
// meanwhile; others begin. One that runs across moves under one when its lease ends.
func TestAGangWaitsForNodesUnderOneSwitch(t *testing.T) {
	o := testcluster.Options{Plugin: testcluster.PluginC, Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 6, Model: "v100", GPUs: 2}},
		Topology: "SwitchName=s1 Nodes=v[1-3]\nSwitchName=s2 Nodes=v[4-6]\nSwitchName=top Switches=s[1-2]\n"}
	onBoth(t, o, func(t *testing.T, r *rig) {
		r.settings.ScatterWait, r.settings.Term = cluster.Hour, 20*cluster.Second
		gang := func() string {
			return r.submit("alice", sleeps(900), "-A", "nlp", "-N", "2", "--gres=gpu:2", "--comment=kind=lm,saves=notice")
		}
		fills := func(node string) string {
			id := r.submit("bob", sleeps(900), "-A", "vision", "--no-requeue", "--gres=gpu:2", "-w", node)
			r.waitState(id, time.Minute, "RUNNING")
			return id
		}
		r.govern()
		on := map[string]string{}
		for _, node := range []string{"v1", "v2", "v4", "v5"} {
			on[node] = fills(node)
		}
		runs := gang()
		r.waitState(runs, time.Minute, "RUNNING")
		r.nodes(runs, "v[3,6]")

		r.halt()
		r.rules.Profiles = []cluster.Profile{{Kind: "lm", With: cluster.AcrossSwitches, Model: "v100", Gang: 4, Rate: 0.05, Relative: true, Source: cluster.Declared, Basis: profile.File}}
		r.govern()
		r.cancel(on["v1"])
		r.cancel(on["v2"])
		r.until("it has moved under one switch", 2*time.Minute, func() bool {
			j, err := r.Job(r.ctx(), runs)
			return err == nil && j["JobState"] == "RUNNING" && j["NodeList"] == "v[1-2]"
		})

		waits := gang()
		fills("v3")
		r.cancel(on["v5"]) // v5 and v6 are idle, under one switch
		r.waitState(waits, time.Minute, "RUNNING")
		r.nodes(waits, "v[5-6]")
		r.cancel(waits)
		r.cancel(runs)
		fills("v1")
		fills("v5")
		waits = gang() // v2 and v6 are idle
		r.until("it says that it waits for nodes together", time.Minute, func() bool { return r.status(waits).Code == cluster.ReasonTogether })
		r.waitState(r.submit("bob", sleeps(5), "-A", "vision", "--gres=gpu:1"), time.Minute, "RUNNING", "COMPLETED")
		r.waitState(waits, time.Second, "PENDING")
		r.halt()
	})
}
