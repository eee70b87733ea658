package engine

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// Books is a round without its choosing: what Decide knows when it has accounted and
// divided, for another chooser to act on. Indices of cases, tenants and pools are those
// of the snapshot's cases, of Tenants and of Pools. Everything but the leases, which the
// methods change, is to be read only.
type Books struct {
	Ledger  *cluster.Ledger  // its rows by tenant, then pool
	Records []cluster.Record // by case
	Leases  []*cluster.Lease // in force, by case; nil = none
	Pools   []string         // GPU models
	Tenants []string
	Site    *place.Site
	f       *field.Field
}

// DecideBy decides as Decide does, but for step 3: choose says who holds a lease next, by
// what it does to the books. So the same books are kept whoever chooses, and what is chosen
// is carried out in the same way.
func (d *Decider) DecideBy(s cluster.Snapshot, choose func(*Books)) cluster.Plan {
	return d.by(&s, func(f *field.Field) field.Outcome {
		choose(&Books{Ledger: &f.Ledger, Records: f.Records, Leases: f.Leases, Pools: f.Pools, Tenants: f.Tenants, Site: f.Site, f: f})
		return field.Outcome{}
	})
}

// Job is what was found out about a case.
type Job struct {
	Waits   bool  // for a lease, which it could be granted now
	Runs    bool  // it is running or suspended
	Holds   bool  // it has GPUs: it runs or cleans up
	Movable bool  // it may be requeued
	Tenant  int   // -1 = none
	GPUs    int   // that it asks for
	Shape   int   // on the site; of a job that waits
	Pools   []int // that could serve it; of a job that runs the one that it runs on
}

// Job gives what was found out about a case.
func (b *Books) Job(i int) Job {
	st := &b.f.Jobs[i]
	return Job{
		Waits: st.Eligible && st.Ours(cluster.Act), Runs: st.Runs, Holds: st.Live && !st.Waits,
		Movable: st.Touch == cluster.Act && !st.Ordered(cluster.Exempt),
		Tenant:  st.Tenant, GPUs: st.GPUs, Shape: st.Shape, Pools: st.Pools,
	}
}

// Spec gives what a job asks of its nodes.
func (b *Books) Spec(i int) place.Spec { return eligible.Spec(b.f.Books, i) }

// Grant gives a job that waits a lease until end; 0 = for as long as it runs.
func (b *Books) Grant(i int, model string, nodes []cluster.Holding, end cluster.Instant) {
	b.f.Lend(i, model, nodes, end)
}

// Renew puts a term that ends at end in the place of the present one.
func (b *Books) Renew(i int, end cluster.Instant) {
	b.f.Prolong(i, end)
	b.f.Jobs[i].Began = true
}

// Notify tells a job that its lease ends at end.
func (b *Books) Notify(i int, end cluster.Instant) {
	l := b.Leases[i]
	l.State, l.NoticedAt, l.End = cluster.Noticed, b.f.Now, end
	b.f.Jobs[i].Noticed = true
}

// Reclaim ends the lease of a job, which is requeued.
func (b *Books) Reclaim(i int) { b.Leases[i].State = cluster.Ending }
