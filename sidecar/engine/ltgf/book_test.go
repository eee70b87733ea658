package ltgf

import (
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// book keeps the accounts of one node of one pool over several looks, as rounds
// do: what Charge returns is what the next look remembers.
type book struct {
	t          testing.TB
	s          cluster.Snapshot
	start, now cluster.Instant
	attempts   []cluster.Attempt
}

const begin cluster.Instant = 1_800_000_000_000

func open(t testing.TB, gpus int) *book {
	return &book{t: t, start: begin, now: begin, s: cluster.Snapshot{
		Settings: cluster.Settings{RhoSelect: 16, CreditCap: cluster.Day, Window: 14 * cluster.Day, Term: 15 * cluster.Minute},
		Nodes:    []cluster.Node{{Name: "n1", GPUs: []cluster.GPUs{{Model: "v100", Count: gpus}}}},
		Tenants:  []cluster.Tenant{{Name: "t", Weight: 1}},
	}}
}

// look charges up to now with the cases as they are seen; a case continues the
// record of its key.
func (b *book) look(span cluster.Span, cases ...cluster.Case) {
	b.t.Helper()
	b.now = b.now.Add(span)
	b.s.Now = b.now
	old := b.s.Cases
	b.s.Cases = append([]cluster.Case(nil), cases...)
	for i := range b.s.Cases {
		c := &b.s.Cases[i]
		for k := range old {
			if old[k].Record.Key == c.Record.Key {
				tenant, uncharged := c.Record.Tenant, c.Record.Uncharged
				c.Record = old[k].Record
				c.Record.Tenant, c.Record.Uncharged = tenant, uncharged
			}
		}
	}
	b.s.Attempts, b.attempts = b.attempts, nil
	page := Charge(&b.s, Buffer{}, new(Memory))
	ledger, records := page.Ledger, page.Records
	b.s.Ledger = ledger
	for i := range records {
		b.s.Cases[i].Record = records[i]
	}
	p := &b.s.Ledger.Pools[0]
	p.GPUs, p.BadGPUs = 0, 0
	for _, n := range b.s.Nodes {
		p.GPUs += cluster.CountOf(n.GPUs[0].Count)
		if n.Bad != "" {
			p.BadGPUs += cluster.CountOf(n.GPUs[0].Count)
		}
	}
}

// pass is look after some time.
func (b *book) pass(span cluster.Span, cases ...cluster.Case) { b.t.Helper(); b.look(span, cases...) }

// due sets what everybody is due from now on.
func (b *book) due(quota cluster.MicroGPU, cases ...cluster.Case) {
	for i := range b.s.Ledger.Tenants {
		b.s.Ledger.Tenants[i].Base, b.s.Ledger.Tenants[i].Entitlement = quota, quota
	}
	records := make([]cluster.Record, len(b.s.Cases))
	claimants := make([][]Claimant, len(b.s.Ledger.Tenants))
	for i := range b.s.Cases {
		records[i] = b.s.Cases[i].Record
		for k := range claimants {
			if b.s.Ledger.Tenants[k].Tenant == records[i].Tenant {
				claimants[k] = append(claimants[k], Claimant{Case: i, GPUs: b.s.Cases[i].Job.Request.Size.Amount(), Weight: 1000, Pools: []int{0}})
			}
		}
	}
	rates := make([]Rate, len(records))
	Due(&b.s.Ledger, rates, claimants, nil, nil)
	for i := range records {
		b.s.Cases[i].Record = records[i]
		b.s.Cases[i].Record.DueRate, b.s.Cases[i].Record.Extra.Faster = rates[i].Due, rates[i].Faster
	}
}

func (b *book) record(key cluster.JobKey) cluster.Record {
	for i := range b.s.Cases {
		if b.s.Cases[i].Record.Key == key {
			return b.s.Cases[i].Record
		}
	}
	b.t.Fatalf("job %d is not remembered", key)
	return cluster.Record{}
}

func (b *book) row(tenant string) *cluster.TenantPool {
	for i := range b.s.Ledger.Tenants {
		if b.s.Ledger.Tenants[i].Tenant == tenant {
			return &b.s.Ledger.Tenants[i]
		}
	}
	b.t.Fatalf("tenant %s has no account", tenant)
	return nil
}

func (b *book) pool() cluster.PoolAccount { return b.s.Ledger.Pools[0] }

// balanced fails unless the pool's books add up.
func (b *book) balanced() {
	b.t.Helper()
	if err := balance(b.pool()); err != "" {
		b.t.Error(err)
	}
}

func balance(p cluster.PoolAccount) string {
	if sum := p.Tenants + p.Untouchable + p.Overhead + p.Idle + p.Bad; sum != p.Capacity {
		return fmt.Sprintf("%d of %d GPU-ms are on the books: %+v", sum, p.Capacity, p)
	}
	for what, x := range map[string]cluster.GPUTime{"tenants": p.Tenants, "untouchable": p.Untouchable,
		"overhead": p.Overhead, "idle": p.Idle, "bad": p.Bad} {
		if x < 0 {
			return fmt.Sprintf("negative time: %s has %d GPU-ms: %+v", what, x, p)
		}
	}
	return ""
}

// Jobs as they are seen. All are of tenant t and on node n1.

func seen(key cluster.JobKey, gpus int, state cluster.JobState) cluster.Case {
	id := cluster.JobID{ID: int64(key)}
	return cluster.Case{Job: cluster.Job{ID: id, User: "u", State: state, Submit: begin, Request: cluster.Request{Size: cluster.Whole(gpus)}},
		Record: cluster.Record{Key: key, ID: id, User: "u", Tenant: "t", Submit: begin}, Control: cluster.FullControl}
}

func waiting(key cluster.JobKey, gpus int) cluster.Case { return seen(key, gpus, cluster.Waiting) }

func running(key cluster.JobKey, gpus int, start cluster.Instant) cluster.Case {
	c := seen(key, gpus, cluster.Running)
	c.Job.Start = start
	c.Job.Holds = []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(gpus)}}
	return c
}

// requeued is a job that waits again, since the moment at.
func requeued(c cluster.Case, at cluster.Instant) cluster.Case {
	c.Job.State, c.Job.Holds, c.Job.Start = cluster.Waiting, nil, 0
	c.Job.Submit = at
	c.Job.Restarts++
	return c
}

// completing is a job that was requeued at the moment at and still cleans up.
func completing(c cluster.Case, at cluster.Instant) cluster.Case {
	holds := c.Job.Holds
	c = requeued(c, at)
	c.Job.State, c.Job.Holds = cluster.Completing, holds
	return c
}

// done is a job that ended at the moment at; Slurm no longer says what it held.
func done(c cluster.Case, at cluster.Instant) cluster.Case {
	c.Job.State, c.Job.Holds, c.Job.End, c.Job.Outcome = cluster.Done, nil, at, "COMPLETED"
	return c
}

func gone(key cluster.JobKey, gpus int) cluster.Case {
	c := seen(key, gpus, cluster.Done)
	c.Gone = true
	return c
}

// lending gives book b a tenant u besides t, with a job that uses all 8 GPUs.
func (b *book) lending() cluster.Case {
	b.s.Tenants = append(b.s.Tenants, cluster.Tenant{Name: "u", Weight: 1})
	c := running(9, 8, begin)
	c.Record.Tenant = "u"
	return c
}
