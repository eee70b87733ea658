package share

import (
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/rounds"
)

// overdue chooses, before any mechanism, large gangs that would starve: all mechanisms give a tenant GPUs for what it is due now, and its smaller
// gangs use them up. A gang is overdue if the jobs before it in its party's line leave it all its GPUs of what the party is due with its debt,
// or anything and it is itself owed a term of its GPUs. It runs unless its tenant is ahead, so that none gets ahead by more than a gang. The mechanism chooses from
// what is left. Boosted tenants go before all.
func (m *hand) overdue() (out []rounds.Grant) {
	if slices.ContainsFunc(m.in.Tenants, func(t lease.Tenant) bool { return t.Boost }) {
		return nil
	}
	least, gone := leastGangs(m.x, m.taken.Cases), make([]bool, len(m.wants))
	for p := range m.pools {
		before := make([]float64, m.last-m.first)
		for _, w := range m.pools[p].Line {
			if gone[w] {
				continue
			}
			x, k := &m.wants[w], &m.in.Candidates[m.who[w]]
			own, all := m.debts.Next.At(round.PartyIndex(x.Party), p), m.debts.Tenants.At(round.TenantIndex(x.Tenant), p)
			over := *own - before[x.Party] // left by the jobs before it
			if large(m.x, k, least) && (over >= float64(x.Gang) || over >= 0 && late(m.x, k)) && *all >= 0 && m.pools[p].Take(x.Gang) {
				*own, *all = *own-float64(x.Gang), *all-float64(x.Gang)
				out = append(out, rounds.Grant{Row: w, Model: p})
				gone[w] = true
				continue
			}
			before[x.Party] += float64(x.Gang)
		}
	}
	for p := range m.pools {
		m.pools[p].Line = slices.DeleteFunc(m.pools[p].Line, func(w int) bool { return gone[w] })
	}
	return out
}

// large reports whether a job is larger than others of its tenant.
func large(x *contest, k *lease.Candidate, least []cluster.MicroGPU) bool {
	return k.GPUs > least[x.f.Due.Parties[x.f.Due.Queued[k.Case].Party].Tenant]
}

// late reports whether a job is owed a term of its GPUs.
func late(x *contest, k *lease.Candidate) bool {
	return k.Priority.Owed >= k.GPUs.Over(x.f.In.Settings.Term)
}

// leastGangs gives the smallest gang of each tenant among its jobs in cases (nil = all), so that renewed leases change nothing; the largest number where there
// is none.
func leastGangs(x *contest, cases []int) []cluster.MicroGPU {
	least := slices.Repeat([]cluster.MicroGPU{math.MaxInt64}, len(x.f.In.Tenants))
	count := func(i int) {
		if st, can, who := &x.f.In.Cases[i], &x.f.Can[i], &x.f.Due.Queued[i]; st.Live && who.Party >= 0 {
			n := &least[x.f.Due.Parties[who.Party].Tenant]
			*n = min(*n, can.GPUs)
		}
	}
	if cases == nil {
		for i := range x.f.In.Cases {
			count(i)
		}
	}
	for _, i := range cases {
		count(i)
	}
	return least
}

// anyOverdue reports whether a job may be overdue.
func anyOverdue(x *contest, in *lease.Input) bool {
	least := leastGangs(x, nil)
	return slices.ContainsFunc(in.Candidates, func(k lease.Candidate) bool { return large(x, &k, least) && late(x, &k) })
}
