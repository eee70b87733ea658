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
func (m *Market) Turns(taken round.Taken, cs []lease.Candidate, tenants []lease.Tenant, users []lease.UserTurn) {
	if !m.in.Settings.Divides() || m.due.JobsQueue {
		return
	}
	debit, _ := round.Committed(m.in, m.due.Queued, taken, len(m.due.Parties), round.PartyOf)
	n := len(m.in.Pools)
	behind := round.NewTable[round.PartyIndex, cluster.Span](len(m.due.Parties), n)
	for at := range behind.Cells {
		account := &m.due.PartyRows.Cells[at]
		behind.Cells[at] = ltgf.Behind(account.Deficit-debit.Cells[at], account.Entitlement)
	}
	for t := range tenants {
		lines := make([][]turn, n)
		for _, i := range tenants[t].Jobs {
			k := &cs[i]
			for at, p := range k.Pools {
				party := m.due.Queued[k.Case].Party
				account, late := m.due.PartyRows.At(party, p), behind.At(party, p)
				x := turn{i, *late, len(lines[p])}
				switch {
				case account.Entitlement == 0:
					k.Idle = with(m.in, k.Idle, p)
				case k.Priority.Urgent:
					x.behind = math.MaxInt64
				case k.Running && at == 0:
					x.behind += m.in.Settings.Threshold
				}
				cost := lease.Cost(account.Entitlement, k.GPUs, m.in.Settings.Term)
				if !k.Running && taken.Leases[k.Case] != nil {
					cost = 0 // charged as a lease in force
				}
				if !k.Running && cost > 0 && *late >= cost/2 {
					k.Due = with(m.in, k.Due, p)
				}
				*late -= cost
				lines[p] = append(lines[p], x)
			}
		}
		tenants[t].Turns = make([][]int, n)
		for p, line := range lines {
			slices.SortFunc(line, func(a, b turn) int {
				if a.behind != b.behind {
					return cmp.Compare(b.behind, a.behind)
				}
				return a.at - b.at
			})
			tenants[t].Turns[p] = slices.Grow([]int(nil), len(line))
			for _, x := range line {
				tenants[t].Turns[p] = append(tenants[t].Turns[p], x.candidate)
			}
			if users != nil {
				lease.TakeTurns(cs, tenants[t].Turns[p], slices.Clone(users), m.in.Settings)
			}
		}
		if m.in.Snapshot.Cells != nil {
			tenants[t].Line = m.line(cs, lines)
		}
	}
}

// with adds a pool to a list of pools. Most lists are of one pool, and are shared.
func with(in *round.Facts, pools []int, p int) []int {
	if len(pools) == 0 {
		return in.Just(p)
	}
	return append(slices.Clip(pools), p)
}

// turn is the turn of a candidate in a pool.
type turn struct {
	candidate int
	behind    cluster.Span
	at        int // among the tenant's candidates in the pool
}

// line returns the turns of all pools in one order, as Gavel orders jobs and models (Gavel §5, Algorithm 1): the
// party furthest behind in a pool first. Turns without an entitlement come last. Of equal turns, the one that a job
// has on its fastest model comes first.
func (m *Market) line(cs []lease.Candidate, lines [][]turn) []lease.Turn {
	type place struct {
		turn
		pool  int
		idle  bool
		speed float64
	}
	var all []place
	for p, line := range lines {
		for _, x := range line {
			k := &cs[x.candidate]
			all = append(all, place{x, p, slices.Contains(k.Idle, p), m.speeds.Speedups(k.Case)[p].Value})
		}
	}
	slices.SortStableFunc(all, func(a, b place) int {
		if a.idle != b.idle {
			if a.idle {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(b.behind, a.behind), cmp.Compare(a.candidate, b.candidate), cmp.Compare(b.speed, a.speed))
	})
	out := make([]lease.Turn, len(all))
	for i, x := range all {
		out[i] = lease.Turn{Candidate: x.candidate, Pool: x.pool}
	}
	return out
}
