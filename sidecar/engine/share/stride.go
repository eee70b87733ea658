package share

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/rounds"
	"github.com/fairlease/fairlease/sidecar/engine/stride"
)

// stride adds jobs to the chosen ones by gang-aware stride (Gandiva_fair §3.1, Algorithm 1), in each pool for itself. A party's tickets are
// the GPUs that it is due there. Its pass is what it has received over its tickets, which its account has as a debt. A newcomer thus
// joins at the smallest pass: its account begins as far behind as the furthest (ltgf.SettleParties).
//
// The paper splits the stride between servers, where its jobs live, and balances their tickets per GPU by migration. Here a job that
// pauses may return to any node, so one stride balances all nodes of a pool. Between pools jobs migrate: the pool with the
// smallest pass chooses first, and a job that it does not take is still in line for the others.
func (m *hand) stride(chosen []rounds.Grant) []rounds.Grant {
	free, runs := m.gpus(), make([]bool, len(m.wants))
	given := round.NewTable[round.PartyIndex, int](int(m.last-m.first), len(m.pools))
	take := func(g rounds.Grant) {
		w := &m.wants[g.Row]
		runs[g.Row], free[g.Model] = true, free[g.Model]-w.Gang
		*given.At(round.PartyIndex(w.Party), g.Model) += w.Gang
	}
	for _, g := range chosen {
		take(g)
	}
	passes, order := make([][]stride.Job, len(m.pools)), make([]int, len(m.pools))
	for p := range m.pools {
		passes[p], order[p] = m.passes(p, runs, given), p
	}
	least := func(p int) stride.Pass { return stride.Join(stride.Never, passes[p]) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(least(a), least(b)) })
	for _, p := range order {
		for i, w := range m.pools[p].Line {
			if runs[w] {
				passes[p][i].GPUs = 0
			}
		}
		for _, i := range stride.Next(passes[p], free[p]) {
			g := rounds.Grant{Row: m.pools[p].Line[i], Model: p}
			take(g)
			chosen = append(chosen, g)
		}
	}
	return chosen
}

// passes returns the jobs in line in a pool with their passes, in terms. The first job of a party has the pass of the party, and each
// further one the pass that the party has after the jobs before it; a job keeps its place in line if those run in another pool. A job
// that runs there goes on until one of another party is further behind by the threshold; in its own party's line that counts already.
func (m *hand) passes(p int, runs []bool, given round.Table[round.PartyIndex, int]) []stride.Job {
	const most = 1e9 // keeps passes in range
	stay := float64(m.x.f.In.Settings.Threshold) / float64(m.x.f.In.Settings.Term)
	before, last := make([]int, m.last-m.first), slices.Repeat([]float64{-most}, int(m.last-m.first))
	out := make([]stride.Job, len(m.pools[p].Line))
	for i, w := range m.pools[p].Line {
		want := &m.wants[w]
		party := round.PartyIndex(want.Party)
		pass := (float64(*given.At(party, p)+before[party]) - *m.debts.Next.At(party, p)) / *m.debts.Due.At(party, p)
		if want.On == p {
			pass -= stay
		}
		pass = min(max(pass, last[party]), most)
		last[party] = pass
		out[i] = stride.Job{Key: m.in.Candidates[m.who[w]].Key, GPUs: want.Gang, Pass: stride.Pass(pass * float64(stride.One))}
		if !runs[w] {
			before[party] += want.Gang
		}
	}
	return out
}
