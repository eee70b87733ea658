// Package roundtest makes the input of single steps of a round, for tables of what each gives.
package roundtest

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Now is the moment of the rounds: a boundary of terms of 15 minutes.
const Now = cluster.Instant(1_000 * 15 * cluster.Minute)

// Snapshot returns that of a site with two nodes of four GPUs each, "a" with v100 and "b" with k80, and tenants "bio" and "nlp" of equal weight. The jobs
// get keys in their order, from 1 on.
func Snapshot(cases ...cluster.Case) *cluster.Snapshot {
	s := &cluster.Snapshot{Round: 9, Now: Now, NextKey: 100, Tenants: []cluster.Tenant{{Name: "bio", Weight: 1}, {Name: "nlp", Weight: 1}},
		Settings: cluster.Settings{Term: 15 * cluster.Minute, Interval: 10 * cluster.Second, Notice: cluster.Minute, GrantTimeout: 2 * cluster.Minute, GateTTL: cluster.Hour}}
	for i, model := range []string{"v100", "k80"} {
		s.Nodes = append(s.Nodes, cluster.Node{Name: string(rune('a' + i)), GPUs: []cluster.GPUs{{Model: model, Count: 4}}, CPUs: 64, MemoryMB: 1 << 20, Partitions: []string{"gpu"}})
	}
	for _, pool := range []string{"k80", "v100"} {
		s.Ledger.Pools = append(s.Ledger.Pools, cluster.PoolAccount{Pool: pool, GPUs: cluster.CountOf(4)})
	}
	for _, t := range s.Tenants {
		for _, pool := range s.Ledger.Pools {
			s.Ledger.Tenants = append(s.Ledger.Tenants, cluster.TenantPool{Tenant: t.Name, Pool: pool.Pool})
		}
	}
	s.Ledger.At = Now.Add(-10 * cluster.Second)
	for i, c := range cases {
		c.Record.Key, c.Record.ID = cluster.JobKey(i+1), c.Job.ID
		s.Cases = append(s.Cases, c)
	}
	return s
}

// Job returns a job of a tenant that asks for GPUs of any model, in a state, under full control.
func Job(id int64, tenant string, gpus int, state cluster.JobState) cluster.Case {
	return cluster.Case{Control: cluster.FullControl, Job: cluster.Job{ID: cluster.JobID{ID: id}, Record: id, User: "ann", Account: tenant, Partitions: []string{"gpu"}, State: state, Batch: true,
		Requeueable: true, Request: cluster.Request{Size: cluster.Whole(gpus)}, Submit: Now.Add(-cluster.Hour), Eligible: Now.Add(cluster.Hour)},
		Record: cluster.Record{Tenant: tenant, User: "ann", Account: tenant, State: state, Submit: Now.Add(-cluster.Hour)}}
}

// On lets a job hold GPUs of a node since an hour ago.
func On(c cluster.Case, node, model string, gpus int) cluster.Case {
	c.Job.Holds, c.Job.Start = []cluster.Holding{{Node: node, Model: model, Size: cluster.Whole(gpus), CPUs: gpus}}, Now.Add(-cluster.Hour)
	return c
}

// Facts opens the facts of a round on a snapshot whose accounts are up to date, and returns its leases by case.
func Facts(s *cluster.Snapshot) (*round.Facts, []*cluster.Lease) {
	n := len(s.Cases)
	o := &round.Opening{Ledger: s.Ledger, Keys: make([]cluster.JobKey, n), Rows: make([]int, n), Users: slices.Repeat([]int{-1}, n), Leases: make([]*cluster.Lease, n)}
	for i := range s.Nodes {
		for _, g := range s.Nodes[i].GPUs {
			o.GPUs += g.Count
		}
	}
	for i := range s.Cases {
		r := &s.Cases[i].Record
		o.Records, o.Keys[i] = append(o.Records, *r), r.Key
		o.Rows[i] = slices.IndexFunc(s.Ledger.Tenants, func(t cluster.TenantPool) bool { return t.Tenant == r.Tenant })
		if k := slices.IndexFunc(s.Leases, func(l cluster.Lease) bool { return l.Job == r.Key }); k >= 0 {
			l := s.Leases[k]
			o.Leases[i] = &l
		}
	}
	f := &round.Facts{}
	f.Open(s, o)
	return f, o.Leases
}
