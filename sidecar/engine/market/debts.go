package market

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Debts are what parties and tenants are due, by pool, in GPUs for a term.
type Debts struct {
	Due     round.Table[round.PartyIndex, float64]  // entitlement, with the repayments of its tenant
	Next    round.Table[round.PartyIndex, float64]  // until the end of the coming term, with the debt of earlier terms, less leases in force
	Tenants round.Table[round.TenantIndex, float64] // Next by the accounts of tenants, which outlive parties
}

// Debts returns the debts to parties and tenants by their accounts. end is the end of the coming term. Only debts to those tenants count whose cases are all
// among those of taken, and debts to parties are those from the first on that is asked for, up to the one before last.
func (m *Market) Debts(taken round.Taken, end cluster.Instant, first, last round.PartyIndex) Debts {
	n := len(m.in.Pools)
	parties := round.TableOf[round.PartyIndex](m.due.PartyRows.Cells[int(first)*n:int(last)*n], n)
	d := Debts{
		Due: round.NewTable[round.PartyIndex, float64](int(last-first), n),
		Next: next(m, taken, parties, func(q *round.Queued) round.PartyIndex {
			if q.Party >= last {
				return -1
			}
			return q.Party - first
		}, end),
		Tenants: next(m, taken, m.due.TenantRows, round.TenantOf, end),
	}
	for at := range d.Due.Cells {
		d.Due.Cells[at] = float64(parties.Cells[at].Entitlement) / float64(cluster.WholeGPU)
	}
	return d
}

// Of returns the cases of a tenant, and its parties from the first to the one before last; parties of others may be between these.
func (m *Market) Of(tenant round.TenantIndex) (cases []int, first, last round.PartyIndex) {
	if m.own == nil {
		m.own = make([]belongings, len(m.in.Tenants))
		for i := range m.due.Queued {
			if who := &m.due.Queued[i]; who.Tenant >= 0 {
				x := &m.own[who.Tenant]
				if x.cases = append(x.cases, i); who.Party >= 0 && x.last == 0 {
					x.first, x.last = who.Party, who.Party+1
				} else if who.Party >= 0 {
					x.first, x.last = min(x.first, who.Party), max(x.last, who.Party+1)
				}
			}
		}
	}
	x := &m.own[tenant]
	return x.cases, x.first, x.last
}

// belongings is the cases of a tenant, and the places of its parties.
type belongings struct {
	cases       []int
	first, last round.PartyIndex
}

// next returns what the owners of accounts are due until the end of the coming term. of returns the owner of a job.
func next[Row ~int](m *Market, taken round.Taken, accounts round.Table[Row, cluster.TenantPool], of func(*round.Queued) Row, end cluster.Instant) round.Table[Row, float64] {
	span, term := end.Sub(m.in.Now), float64(m.in.Settings.Term)
	out := round.NewTable[Row, float64](int(accounts.Rows()), len(m.in.Pools))
	use, _ := round.Committed(m.in, m.due.Queued, taken, int(accounts.Rows()), of)
	for at := range out.Cells {
		row := &accounts.Cells[at]
		due := float64(row.Entitlement) / float64(cluster.WholeGPU)
		out.Cells[at] = (float64(row.Deficit) + due*float64(span) - float64(use.Cells[at])) / term
	}
	return out
}

// BySpeed returns the pools from the slowest to the fastest, by the mean of the jobs' speeds.
func (m *Market) BySpeed() []int {
	speed := m.speedsOfPools()
	return m.sorted(func(a, b int) int { return cmp.Compare(speed[a], speed[b]) })
}

// FastestFirst returns the pools from the fastest to the slowest; equally fast ones keep their order.
func (m *Market) FastestFirst() []int {
	speed := m.speedsOfPools()
	return m.sorted(func(a, b int) int { return cmp.Compare(speed[b], speed[a]) })
}

// speedsOfPools adds up the speeds of all jobs by pool.
func (m *Market) speedsOfPools() []float64 {
	if m.sums != nil {
		return m.sums
	}
	speed := make([]float64, len(m.in.Pools))
	for i := range m.in.Cases {
		if m.due.Queued[i].Party < 0 {
			continue
		}
		speeds := m.speeds.Speedups(i)
		for _, p := range m.found.Can[i].May {
			speed[p] += speeds[p].Value
		}
	}
	m.sums = speed
	return speed
}

// sorted returns the pools in an order.
func (m *Market) sorted(by func(a, b int) int) []int {
	order := make([]int, len(m.in.Pools))
	for p := range order {
		order[p] = p
	}
	slices.SortStableFunc(order, by)
	return order
}
