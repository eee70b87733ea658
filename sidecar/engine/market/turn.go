package market

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Turns orders the candidates of each tenant by the backlog of their parties, pool by pool, if a policy
// allocates the pools between parties. Each candidate is charged to its party in turn. A running job keeps
// its GPUs until another is further behind by the threshold. A candidate whose party has no entitlement takes
// only idle GPUs.
//
// With users, the users of a tenant take turns first, and the backlog of parties orders the jobs of each.
func (m *Market) Turns(cs []lease.Candidate, tenants []lease.Tenant, users []lease.UserTurn) {
	if m.Settings.Divide == "" || m.JobsQueue {
		return
	}
	type turn struct {
		candidate int
		behind    cluster.Span
	}
	debit, _ := round.Committed(m.Books, len(m.Parties), round.PartyOf)
	n := len(m.Pools)
	behind := round.NewTable[round.PartyIndex, cluster.Span](len(m.Parties), n)
	for at := range behind.Cells {
		account := &m.PartyRows.Cells[at]
		behind.Cells[at] = ltgf.Behind(account.Deficit-debit.Cells[at], account.Entitlement)
	}
	for t := range tenants {
		lines := make([][]turn, n)
		for _, i := range tenants[t].Jobs {
			k := &cs[i]
			for at, p := range k.Pools {
				party := m.Jobs[k.Case].Party
				account, late := m.PartyRows.At(party, p), behind.At(party, p)
				x := turn{i, *late}
				switch {
				case account.Entitlement == 0:
					k.Idle = append(k.Idle, p)
				case k.Urgent:
					x.behind = math.MaxInt64
				case k.Running && at == 0:
					x.behind += m.Settings.Threshold
				}
				cost := lease.Cost(account.Entitlement, k.GPUs, m.Settings.Term)
				if !k.Running && cost > 0 && *late >= cost/2 {
					k.Due = append(k.Due, p)
				}
				*late -= cost
				lines[p] = append(lines[p], x)
			}
		}
		tenants[t].Turns = make([][]int, n)
		for p, line := range lines {
			slices.SortStableFunc(line, func(a, b turn) int {
				return cmp.Compare(b.behind, a.behind)
			})
			for _, x := range line {
				tenants[t].Turns[p] = append(tenants[t].Turns[p], x.candidate)
			}
			if users != nil {
				lease.TakeTurns(cs, tenants[t].Turns[p], slices.Clone(users), m.Settings)
			}
		}
	}
}
