package engine_test

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// These snapshots are built by hand, at a boundary of a term, for tests of a single decision. The jobs belong
// to tenants a, b and c, with equal weights.

func boundary(gpus ...int) cluster.Snapshot {
	s := cluster.Snapshot{Round: 9, Now: simtest.Start, Settings: simtest.Paper(term), NextKey: 100,
		Tenants: []cluster.Tenant{{Name: "a", Weight: 1}, {Name: "b", Weight: 1}}}
	for i, n := range gpus {
		node := simtest.Nodes("n", "v100", i+1, n)[i]
		s.Nodes = append(s.Nodes, node)
	}
	s.Ledger.At = s.Now
	return s
}

func caseOf(key cluster.JobKey, tenant string, gpus int) cluster.Case {
	id := cluster.JobID{ID: int64(key)}
	return cluster.Case{Control: cluster.FullControl,
		Job: cluster.Job{ID: id, Record: id.ID, User: tenant, Account: tenant, Partitions: []string{"gpu"}, Batch: true,
			Requeueable: true, Request: simtest.Gang(gpus), Submit: simtest.Start.Add(-hour)},
		Record: cluster.Record{Key: key, ID: id, Tenant: tenant, User: tenant, Account: tenant, Submit: simtest.Start.Add(-hour),
			First: simtest.Start.Add(-hour), ChargedTo: simtest.Start}}
}

func waits(key cluster.JobKey, tenant string, gpus int) cluster.Case {
	c := caseOf(key, tenant, gpus)
	c.Job.State, c.Record.State = cluster.Waiting, cluster.Waiting
	c.Job.Eligible = simtest.Start.Add(10 * minute)
	c.Record.Gate = c.Job.Eligible
	return c
}

// runsOn returns a job that runs evenly on nodes.
func runsOn(key cluster.JobKey, tenant string, gpus int, nodes ...string) cluster.Case {
	c := caseOf(key, tenant, gpus)
	c.Job.State, c.Record.State = cluster.Running, cluster.Running
	c.Job.Start = simtest.Start.Add(-term)
	c.Job.Request.Nodes, c.Job.Request.PerNode = len(nodes), gpus/len(nodes)
	for _, n := range nodes {
		g := gpus / len(nodes)
		c.Job.Holds = append(c.Job.Holds, cluster.Holding{Node: n, Model: "v100", Size: cluster.Whole(g), CPUs: g, MemoryMB: int64(g) * 1024})
	}
	c.Record.Held, c.Record.HeldSince = []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(gpus)}}, c.Job.Start
	c.Record.Terms = 1
	return c
}

// leaseOf returns the lease of a running job, which ends now.
func leaseOf(s *cluster.Snapshot, i int) cluster.Lease {
	c := &s.Cases[i]
	return cluster.Lease{Job: c.Record.Key, Term: 1, State: cluster.Active, Class: cluster.Shared, Pool: "v100", Size: cluster.Whole(c.Job.GPUsHeld()),
		Nodes: c.Job.Holds, Granted: c.Job.Start, Start: c.Job.Start, End: s.Now}
}

// owe sets a tenant's deficit.
func owe(s *cluster.Snapshot, tenant string, deficit cluster.GPUTime) {
	s.Ledger.Tenants = append(s.Ledger.Tenants, cluster.TenantPool{Tenant: tenant, Pool: "v100", Base: 1, Deficit: deficit})
	slices.SortFunc(s.Ledger.Tenants, func(a, b cluster.TenantPool) int { return cmp.Compare(a.Tenant, b.Tenant) })
	if len(s.Ledger.Pools) == 0 {
		s.Ledger.Pools = []cluster.PoolAccount{{Pool: "v100"}}
	}
}

// after returns the snapshot some time after a plan, with no other changes.
func after(s *cluster.Snapshot, p cluster.Plan, span cluster.Span) cluster.Snapshot {
	next := *s
	next.Round, next.Now = p.Round+1, s.Now.Add(span)
	next.Ledger, next.Leases, next.Claims, next.NextKey = p.State.Ledger, p.State.Leases, p.State.Claims, p.State.NextKey
	next.Cases = slices.Clone(s.Cases)
	for i := range next.Cases {
		for r := range p.State.All() {
			if r.Key == next.Cases[i].Record.Key {
				next.Cases[i].Record = *r
			}
		}
	}
	return next
}

// holders returns the jobs that hold or will hold a lease under a plan, except those with notice.
func holders(p cluster.Plan) []cluster.JobKey {
	var keys []cluster.JobKey
	for _, l := range p.State.Leases {
		if l.State == cluster.Granted || l.State == cluster.Active {
			keys = append(keys, l.Job)
		}
	}
	return keys
}
