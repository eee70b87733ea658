package market

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Debts are what parties are due, by party and pool, in GPUs for a term.
type Debts struct {
	Due  round.Table[round.PartyIndex, float64] // entitlement, with the repayments of its tenant
	Next round.Table[round.PartyIndex, float64] // until the end of the coming term, with the debt of earlier terms, less leases in force
}

// Debts returns the debts to parties by their accounts. end is the end of the coming term.
func (m *Market) Debts(end cluster.Instant) Debts {
	n, span := len(m.Pools), end.Sub(m.Now)
	d := Debts{round.NewTable[round.PartyIndex, float64](len(m.Parties), n), round.NewTable[round.PartyIndex, float64](len(m.Parties), n)}
	term := float64(m.Settings.Term)
	use, _ := round.Committed(m.Books, len(m.Parties), round.PartyOf)
	for at := range d.Next.Cells {
		row := &m.PartyRows.Cells[at]
		due := float64(row.Entitlement) / float64(cluster.WholeGPU)
		d.Due.Cells[at] = due
		d.Next.Cells[at] = (float64(row.Deficit) + due*float64(span) - float64(use.Cells[at])) / term
	}
	return d
}

// BySpeed returns the pools from the slowest to the fastest, by the mean of the jobs' speeds.
func (m *Market) BySpeed() []int {
	speed, order := make([]float64, len(m.Pools)), make([]int, len(m.Pools))
	for i := range m.Jobs {
		if m.Jobs[i].Party < 0 {
			continue
		}
		speeds := m.speeds.Speedups(i)
		for _, p := range m.Jobs[i].May {
			speed[p] += speeds[p].Value
		}
	}
	for p := range order {
		order[p] = p
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(speed[a], speed[b]) })
	return order
}
