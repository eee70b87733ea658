package market

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/entitle"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/round/roundtest"
	"github.com/fairlease/fairlease/sidecar/engine/speeds"
)

// The debts to a tenant and its parties are the same whether those to all are asked for or only these.
func TestDebtsToOneTenant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var cases []cluster.Case
		for key := range rapid.IntRange(1, 8).Draw(t, "jobs") {
			c := roundtest.Job(int64(key+1), rapid.SampledFrom([]string{"bio", "nlp"}).Draw(t, "tenant"), 1, cluster.Waiting)
			if rapid.Bool().Draw(t, "runs") {
				c = roundtest.On(roundtest.Job(int64(key+1), c.Record.Tenant, 1, cluster.Running), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node"), "v100", 1)
			}
			cases = append(cases, c)
		}
		s := roundtest.Snapshot(cases...)
		s.Settings.Divide, s.Settings.DivideJobs = "gavel:las", rapid.Bool().Draw(t, "jobs alone")
		in, leases := roundtest.Facts(s)
		found, due := new(eligible.Nodes).Find(in, leases, nil), new(entitle.Due)
		learnt := speeds.Learn(in, found, new(profile.Memory))
		capacity := due.Open(in, found, learnt, cluster.Ledger{})
		m := Open(in, found, due, learnt)
		due.Divide(in, found, learnt, capacity, nil, nil)
		for i := range leases {
			if s.Cases[i].Job.State == cluster.Running {
				leases[i] = &cluster.Lease{Pool: "v100", Size: cluster.Whole(1), End: in.Now.Add(cluster.Span(rapid.IntRange(0, 20).Draw(t, "left")) * cluster.Minute)}
			}
		}
		taken := round.Taken{Leases: leases, Ending: func(int) bool { return false }}
		if rapid.Bool().Draw(t, "claim") {
			taken.Claims = []cluster.Claim{{Job: 1, Pool: "k80", Nodes: []cluster.Holding{{Size: cluster.Whole(1)}}}}
		}
		end := in.Now.Add(cluster.Hour)
		all := m.Debts(taken, end, 0, round.PartyIndex(len(due.Parties)))
		for tenant := range in.Tenants {
			tenant := round.TenantIndex(tenant)
			own, first, last := m.Of(tenant)
			if own == nil {
				continue
			}
			taken.Cases = own
			one := m.Debts(taken, end, first, last)
			seen := 0
			for p := range in.Pools {
				if *one.Tenants.At(tenant, p) != *all.Tenants.At(tenant, p) {
					t.Fatalf("tenant %d is due %g GPUs, and %g among all", tenant, *one.Tenants.At(tenant, p), *all.Tenants.At(tenant, p))
				}
				for k := range due.Parties {
					k := round.PartyIndex(k)
					if due.Parties[k].Tenant != tenant {
						continue
					}
					seen++
					if *one.Next.At(k-first, p) != *all.Next.At(k, p) || *one.Due.At(k-first, p) != *all.Due.At(k, p) {
						t.Fatalf("party %s is due %g GPUs, and %g among all", due.Parties[k].Name, *one.Next.At(k-first, p), *all.Next.At(k, p))
					}
				}
			}
			if seen == 0 {
				t.Fatal("the tenant has no party")
			}
		}
	})
}
