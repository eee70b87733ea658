package share

import (
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/market"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// two is a candidate that has its turn together with another one: the division gives their types a GPU of a pool.
type two struct {
	other, pool  int
	first, holds bool // the first stands for both; they have the GPU already
}

// couple makes one want of two jobs to which the division gives a GPU together, with what both are due there: of those that have one and whose leases end, so
// that the turn of one does not part them; and of those that wait. The first of these gets a GPU, which the second joins.
func (m *hand) couple(taken []int) {
	f := m.x.f
	plan := planOf(m.x, func(i, k int) bool { return !f.Ending(i) || !f.Ending(k) })
	if plan == nil {
		return
	}
	m.twos = map[int]two{}
	shared, at := sharedWith(m.x), map[int]int{} // by case: the candidate
	for b := range m.in.Candidates {
		k := &m.in.Candidates[b]
		if !k.Running || taken[b] >= 0 || k.Priority.Resting {
			continue
		}
		at[k.Case] = b
		for _, other := range shared[k.Case] {
			if a, ok := at[other]; ok && plan.gives(f, other, k.Case, k.Pools[0]) {
				m.join(plan, a, b, two{pool: k.Pools[0], holds: true})
			}
		}
	}
	waiting := map[couple][]int{} // by type and pool: candidates
	for b := range m.in.Candidates {
		k := &m.in.Candidates[b]
		if k.Running || taken[b] >= 0 || k.IdleOnly || m.in.Tenants[k.Tenant].Spent {
			continue
		}
		pool, own := m.owed(k), market.TypeOf(f.Market, k.Case)
		if pool < 0 || !f.In.MaySlice(k.Case, f.In.Pools[pool]) {
			continue
		}
		a := -1
		for _, x := range f.In.Snapshot.Allocation.Pairs {
			other := x.A
			if other == own {
				other = x.B
			}
			if own != x.A && own != x.B || plan[couple{x.A, x.B, pool}] <= 0 {
				continue
			}
			if line := waiting[couple{a: other, pool: pool}]; len(line) > 0 && (f.Due.JobsQueue || m.in.Candidates[line[0]].Tenant == k.Tenant) {
				a, waiting[couple{a: other, pool: pool}] = line[0], line[1:]
				break
			}
		}
		if a < 0 {
			waiting[couple{a: own, pool: pool}] = append(waiting[couple{a: own, pool: pool}], b)
			continue
		}
		m.join(plan, a, b, two{pool: pool})
	}
}

// owed returns the pool in which a candidate's party is owed most; -1 = it is due nothing.
func (m *hand) owed(k *lease.Candidate) int {
	best, party := -1, m.x.f.Due.Queued[k.Case].Party-m.first
	for _, p := range k.Pools {
		if *m.debts.Due.At(party, p) > 0 && (best < 0 || *m.debts.Next.At(party, p) > *m.debts.Next.At(party, best)) {
			best = p
		}
	}
	return best
}

// join makes one want of two candidates.
func (m *hand) join(p plan, a, b int, x two) {
	one, other := m.in.Candidates[a].Case, m.in.Candidates[b].Case
	p.take(m.x.f, one, other, x.pool)
	x.other = b
	x.first = true
	m.twos[a] = x
	x.other, x.first = a, false
	m.twos[b] = x
	to, from := &m.x.f.Due.Queued[one], &m.x.f.Due.Queued[other]
	owed := *m.debts.Next.At(from.Party-m.first, x.pool)
	*m.debts.Tenants.At(to.Tenant, x.pool) += owed
	*m.debts.Tenants.At(from.Tenant, x.pool) -= owed
	for _, table := range []round.Table[round.PartyIndex, float64]{m.debts.Next, m.debts.Due} {
		*table.At(to.Party-m.first, x.pool) += *table.At(from.Party-m.first, x.pool)
		*table.At(from.Party-m.first, x.pool) = 0
	}
}
