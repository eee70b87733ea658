package sim_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/clustertest"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// virtual is the virtual cluster for the suite.
type virtual struct{ *sim.Virtual }

func (v virtual) Submit(_ *testing.T, w clustertest.Work) cluster.JobID {
	work := sim.Work{User: w.Account + "_user", Account: w.Account, Partition: "gpu", Request: simtest.Gang(w.GPUs),
		Runs: cluster.Span(w.Seconds) * cluster.Second, Limit: cluster.SpanOf(w.Limit), NoRequeue: w.NoRequeue}
	if w.Shards > 0 {
		work.Request = simtest.Shard(w.Shards, 2)
	}
	work.Request.Model = w.Model
	if w.Shares {
		work.Comment = "share=yes"
	}
	if w.Gated {
		work.Begin = v.Now().Add(cluster.Hour)
	}
	work.Locked = w.Locked
	if w.Array > 0 {
		return cluster.JobID{ID: v.SubmitArray(work, w.Array)[0].ID}
	}
	return v.Virtual.Submit(work)
}

func (v virtual) Cancel(_ *testing.T, id cluster.JobID) { v.Virtual.Cancel(id) }
func (v virtual) Pass()                                 { v.Advance(v.Now().Add(cluster.Second)) }

func TestVirtualPassesTheClusterSuite(t *testing.T) {
	clustertest.Run(t, func(*testing.T) clustertest.World {
		var nodes []cluster.Node
		for _, n := range []struct{ name, model string }{{"v1", "v100"}, {"v2", "v100"}, {"k1", "k80"}, {"k2", "k80"}} {
			nodes = append(nodes, cluster.Node{Name: n.name, GPUs: []cluster.GPUs{{Model: n.model, Count: 4}}, Shards: 2, CPUs: 16,
				MemoryMB: 64000, Partitions: []string{"gpu"}})
		}
		accounts := []cluster.Account{{Name: "root"}}
		for _, a := range []string{"nlp", "vision", "third"} {
			accounts = append(accounts, cluster.Account{Name: a, Parent: "root", Shares: 1})
		}
		v := sim.NewVirtual(simtest.Start, nodes, accounts)
		v.License = 1_000_000
		return virtual{v}
	})
}
