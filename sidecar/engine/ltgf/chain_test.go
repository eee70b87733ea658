package ltgf

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// The GPUs of a chain count once: what its jobs ran, and what was held for them beyond that, up to the look. A job behind
// another is charged for the GPUs that it asked for, since its lease held none.
func TestGPUsOfAChainCountOnce(t *testing.T) {
	node := func(gpus int) []cluster.Holding {
		return []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(gpus)}}
	}
	for _, first := range []cluster.LeaseState{cluster.Granted, cluster.Active} {
		b := open(t, 8)
		other := b.lending()
		other.Job.Holds[0].Size = cluster.Whole(5)
		ahead := waiting(1, 3)
		if first == cluster.Active {
			ahead = running(1, 3, b.now)
		}
		second := func(n cluster.Span) cluster.Instant { return begin.Add(n * cluster.Second) }
		b.look(0, ahead, waiting(2, 3), other)
		for i := range b.s.Ledger.Tenants {
			r := &b.s.Ledger.Tenants[i]
			r.Base, r.Entitlement, r.Demand = 4*gpu, 4*gpu, 8*gpu
		}
		b.s.Leases = []cluster.Lease{{Job: 1, State: first, Pool: "v100", Size: cluster.Whole(3), Nodes: node(3)},
			{Job: 2, State: cluster.Granted, Pool: "v100", Nodes: node(0), Behind: 1}}
		ran := done(running(2, 3, second(25)), second(35))
		ran.Job.Request.Size = cluster.Whole(3)
		b.pass(minute, done(running(1, 3, b.now), second(20)), ran, other)
		want := cluster.Times(1, minute) // due 4 GPUs, three were held
		if got := b.row("t"); got.Deficit != want || got.Owed != want || got.Alloc != cluster.Times(3, 30*cluster.Second) {
			t.Errorf("%s: t is %d GPU-ms behind, owed %d, and received %d", first, got.Deficit, got.Owed, got.Alloc)
		}
	}
}
