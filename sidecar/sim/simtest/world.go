// Package simtest makes small virtual clusters for tests.
package simtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// Start is the start of simulated time: on a boundary of every term that divides an hour.
const Start cluster.Instant = 1_800_000_000_000

// World is a virtual cluster under the loop.
type World struct {
	*sim.Virtual
	Loop     *loop.Loop
	Settings cluster.Settings
	Rules    loop.Rules
	Last     cluster.Plan
	// Check is called after every turn that was not quiet.
	Check func(loop.Report)
	t     testing.TB
}

// Paper gives settings as in the paper's examples: no threshold, no minimum lease, no limits.
func Paper(term cluster.Span) cluster.Settings {
	return cluster.Settings{Preset: "astraea", Interval: 10 * cluster.Second, Term: term,
		GrantTimeout: cluster.Minute, GateTTL: 10 * cluster.Minute,
		RhoSelect: 16, CreditCap: cluster.Day, Window: 14 * cluster.Day}
}

// Product gives the daemon's default settings.
func Product() cluster.Settings {
	s := Paper(15 * cluster.Minute)
	s.MinLease, s.MinLeaseTerms, s.Notice = 5*cluster.Minute, 2, cluster.Minute
	s.BurstMaxMilli, s.Threshold, s.MaxReclaims, s.CreditCap = 2000, 15*cluster.Minute, 100, 2*cluster.Hour
	s.RecallFirst, s.NewFirst, s.NewSharePercent = true, true, 50
	s.JobOrder, s.Patience = cluster.ByExpected, 4*cluster.Hour
	s.StopAllowance, s.StopOverheadMilli, s.RepayFloorPercent, s.CompactPercent = 15*cluster.Minute, 20, 75, 25
	s.BindQuiet, s.BindHorizon, s.BindMaxPercent = 12*cluster.Hour, 4, 5
	s.SlowNodePercent = 85
	s.StartCost = 35 * cluster.Second // cost of a start in simulations
	s.Signal, s.SignalTo = "USR1", "steps"
	return s
}

// Nodes gives n nodes of one model with space for any job.
func Nodes(prefix, model string, n, gpus int) []cluster.Node {
	out := make([]cluster.Node, n)
	for i := range out {
		out[i] = cluster.Node{Name: fmt.Sprintf("%s%02d", prefix, i+1), GPUs: []cluster.GPUs{{Model: model, Count: gpus}},
			CPUs: 16 * gpus, MemoryMB: int64(gpus) * 65536, Partitions: []string{"gpu"}}
	}
	return out
}

// New makes a world of nodes and tenants with equal shares.
func New(t testing.TB, settings cluster.Settings, nodes []cluster.Node, tenants ...string) *World {
	accounts := []cluster.Account{{Name: "root"}}
	for _, name := range tenants {
		accounts = append(accounts, cluster.Account{Name: name, Parent: "root", Shares: 1})
	}
	w := &World{Virtual: sim.NewVirtual(Start, nodes, accounts), Settings: settings, t: t,
		Rules: loop.Rules{Mode: loop.Act, Partitions: []string{"gpu"}, TenantLevel: 1}}
	w.Loop = &loop.Loop{Cluster: w.Virtual, Journal: sim.NewMemory(), Decide: engine.Decide, Divide: engine.Divide,
		Configure: func() (loop.Rules, cluster.Settings) { return w.Rules, w.Settings }}
	return w
}

// Gang requests GPUs on one node.
func Gang(gpus int) cluster.Request {
	return cluster.Request{Size: cluster.Whole(gpus), Nodes: 1, PerNode: gpus, CPUs: gpus, MemoryMB: int64(gpus) * 1024}
}

// Shard requests shards of a GPU that has so many.
func Shard(shards, of int) cluster.Request {
	return cluster.Request{Size: cluster.Size{Devices: 1, Part: cluster.WholeGPU * cluster.MicroGPU(shards) / cluster.MicroGPU(of)}, Shards: shards, Nodes: 1, CPUs: 1, MemoryMB: 128}
}

// Submit queues n jobs of a tenant, each with so many GPUs on one node and that run time.
func (w *World) Submit(tenant string, n, gpus int, runs cluster.Span) []cluster.JobID {
	ids := make([]cluster.JobID, n)
	for i := range ids {
		ids[i] = w.Virtual.Submit(sim.Work{Name: "train", User: tenant + "_user", Account: tenant, Partition: "gpu",
			Request: Gang(gpus), Runs: runs})
	}
	return ids
}

// Run lets span of simulated time pass.
func (w *World) Run(span cluster.Span) {
	w.t.Helper()
	err := sim.Run(context.Background(), w.Virtual, w.Loop, w.Settings.Interval, w.Now().Add(span), func(r loop.Report) {
		w.Last = r.Plan
		if w.Check != nil {
			w.Check(r)
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, w.Last, err = w.Loop.Preview(context.Background()); err != nil { // charge up to now
		w.t.Fatal(err)
	}
}

// Standing gives a tenant's state in a pool after the last turn.
func (w *World) Standing(tenant, pool string) cluster.TenantStatus {
	for _, s := range w.Last.Tenants {
		if s.Tenant == tenant && s.Pool == pool {
			return s
		}
	}
	w.t.Fatalf("tenant %s has no standing in pool %s", tenant, pool)
	return cluster.TenantStatus{}
}

// Used gives the GPU time that a tenant has received.
func (w *World) Used(tenant string) cluster.GPUTime {
	var sum cluster.GPUTime
	for _, r := range w.Last.State.Ledger.Tenants {
		if r.Tenant == tenant {
			sum += r.Alloc
		}
	}
	return sum
}

// Record gives a job's record.
func (w *World) Record(id cluster.JobID) cluster.Record {
	for r := range w.Last.State.All() {
		if r.ID == id {
			return *cluster.AsOf(r, w.Last.At)
		}
	}
	w.t.Fatalf("job %s is not remembered", id)
	return cluster.Record{}
}

// Reason gives the last reason of a job.
func (w *World) Reason(id cluster.JobID) cluster.Reason {
	key := w.Record(id).Key
	for _, v := range w.Last.Statuses {
		if v.Job == key {
			return v.Reason
		}
	}
	w.t.Fatalf("job %s has no status", id)
	return cluster.Reason{}
}

// Alloc gives the GPU time that a job has received; 0 before it was seen.
func (w *World) Alloc(id cluster.JobID) cluster.GPUTime {
	for r := range w.Last.State.All() {
		if r.ID == id {
			return r.Alloc
		}
	}
	return 0
}
