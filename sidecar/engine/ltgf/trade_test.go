package ltgf

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// swaps are tenants' entitlements in a market, without trades and with them.
type swaps struct {
	rows, pools   int
	own, entitled []cluster.MicroGPU
}

// swap is a trade: the first of its tenants gives GPUs of the first of its pools, for GPUs of the second pool.
type swap struct {
	tenants, pools []int
	given          [2]Given
	moved          cluster.Moved
}

// trade swaps GPUs of two pools between two tenants, 0.01 GPU or more. Either may give all that it has.
func (s *swaps) trade(rt *rapid.T) swap {
	t := swap{tenants: rapid.Permutation(upTo(s.rows/s.pools)).Draw(rt, "tenants"), pools: rapid.Permutation(upTo(s.pools)).Draw(rt, "pools")}
	for k, pool := range t.pools[:2] {
		if s.entitled[t.tenants[k]*s.pools+pool] < gpu/100 {
			return swap{tenants: t.tenants, pools: t.pools}
		}
	}
	for k, pool := range t.pools[:2] {
		giver, taker := t.tenants[k]*s.pools+pool, t.tenants[1-k]*s.pools+pool
		gpus := cluster.MicroGPU(rapid.OneOf(rapid.Just(int64(s.entitled[giver])), rapid.Int64Range(one/100, int64(s.entitled[giver]))).Draw(rt, "GPUs"))
		t.given[k] = Given{gpus, s.entitled[giver]}
		s.entitled[giver] -= gpus
		s.entitled[taker] += gpus
	}
	return t
}

// sides gives the accounts of a trade; false = one side gives nothing.
func (s *swaps) sides(t *swap, rows []cluster.TenantPool, ahead func(row int) cluster.GPUTime) (*Sides, bool) {
	side := func(k int) Side {
		slow, fast := t.tenants[k]*s.pools+t.pools[0], t.tenants[k]*s.pools+t.pools[1]
		return Side{Fast: &rows[fast], Slow: &rows[slow], FastAhead: ahead(fast), SlowAhead: ahead(slow)}
	}
	return &Sides{FastTo: side(0), SlowTo: side(1), Slow: t.given[0].GPUs, Fast: t.given[1].GPUs}, min(t.given[0].GPUs, t.given[1].GPUs) > 0
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Trades come and go, balances convert with them, and all tenants receive their entitlements. Afterwards all accounts are as they
// were: those of tenants that sell all their GPUs of a model, and those of tenants to which these owe GPU time.
func TestTradesThatComeAndGoLeaveAllAccountsAsTheyWere(t *testing.T) {
	const rounding = 1000 // GPU-ms, over all looks
	rapid.Check(t, func(rt *rapid.T) {
		set := &cluster.Settings{RhoSelect: 16, Divide: "gandiva-fair", Term: 15 * minute, Window: 14 * cluster.Day,
			CreditCap: 2 * cluster.Hour, Threshold: 15 * minute, RepayFloorPercent: 75}
		tenants, pools := rapid.IntRange(2, 5).Draw(rt, "tenants"), rapid.IntRange(2, 3).Draw(rt, "models")
		m := &swaps{rows: tenants * pools, pools: pools}
		b := books{settings: set, now: begin}
		for p := range pools {
			b.ledger.Pools = append(b.ledger.Pools, cluster.PoolAccount{Pool: fmt.Sprint("p", p)})
		}
		gangs := make([]cluster.MicroGPU, m.rows)
		sums := make([]cluster.GPUTime, pools)
		for i := range m.rows {
			gpus := rapid.IntRange(1, 8).Draw(rt, "own")
			m.own = append(m.own, cluster.MicroGPU(gpus)*cluster.WholeGPU)
			gangs[i] = cluster.Micro(rapid.IntRange(1, 8).Draw(rt, "gang"))
			ahead := -gangs[i].Over(set.Term) - cluster.Times(gpus, set.Threshold)
			row := cluster.TenantPool{Tenant: fmt.Sprint("t", i/pools), Pool: fmt.Sprint("p", i%pools), Demand: 1000 * cluster.WholeGPU,
				Base: m.own[i], Entitlement: m.own[i], Alloc: 1, // not new
				Deficit: max(cluster.Times(gpus, cluster.Span(rapid.IntRange(-60, 60).Draw(rt, "behind"))*minute), ahead)}
			if i/pools == tenants-1 { // all GPUs are in use: it received what the others lack
				row.Deficit = max(-sums[i%pools], ahead)
			}
			sums[i%pools] += row.Deficit
			b.ledger.Tenants = append(b.ledger.Tenants, row)
		}
		for p, sum := range sums { // no tenant owes this
			if sum > 0 {
				for i := p; i < m.rows; i += pools {
					b.ledger.Tenants[i].Deficit = min(b.ledger.Tenants[i].Deficit, 0)
				}
			}
		}
		m.entitled = slices.Clone(m.own)
		ahead := func(row int) cluster.GPUTime {
			return Ahead(&b.ledger.Tenants[row], gangs[row], Most(m.entitled, m.own)[row], set)
		}
		settle := func() {
			Settle(&b.ledger, m.own, m.entitled, m.own, gangs, make([]cluster.MicroGPU, m.rows), set, true)
		}
		if rapid.Bool().Draw(rt, "parties") {
			ahead = func(row int) cluster.GPUTime { return PartyAhead(8*gpu, Most(m.entitled, m.own)[row], set) }
			settle = func() { SettleParties(b.ledger.Tenants, pools, m.entitled, m.own, 8*gpu, set) }
		}
		for range 50 { // until limits and common shortages are settled
			settle()
		}
		before := slices.Clone(b.ledger.Tenants)
		var trades []swap
		undo := func() {
			m.entitled = slices.Clone(m.own)
			for _, change := range []func(*Sides, *swap){
				func(s *Sides, t *swap) { s.Revert(t.moved, Given{1, 1}) }, func(s *Sides, _ *swap) { s.ConvertLeads() }} {
				for i := range trades {
					if s, ok := m.sides(&trades[i], b.ledger.Tenants, ahead); ok {
						change(s, &trades[i])
					}
				}
			}
			trades = nil
		}
		for range rapid.IntRange(1, 4).Draw(rt, "times") {
			undo()
			for range rapid.IntRange(0, 6).Draw(rt, "trades") {
				trades = append(trades, m.trade(rt))
			}
			for i := range trades {
				if s, ok := m.sides(&trades[i], b.ledger.Tenants, ahead); ok {
					trades[i].moved = s.Convert(trades[i].given[0], trades[i].given[1])
				}
			}
			settle()
			dt := cluster.Span(rapid.IntRange(1, 100).Draw(rt, "minutes")) * minute
			b.usage = new(lists).usage(m.rows)
			a := b.accounts()
			for i := range b.ledger.Tenants {
				row := &b.ledger.Tenants[i]
				a.used[i], _ = cluster.Accrue(row.Entitlement, dt, row.SelCarry)
			}
			a.lend(dt)
			a.settle(dt)
			settle()
		}
		undo()
		settle()
		for i, row := range b.ledger.Tenants {
			if change := row.Deficit - before[i].Deficit; max(change, -change) > rounding || row.Owed != before[i].Owed {
				rt.Fatalf("%s of %s: the accounts were %d and %d GPU-ms, and are %d and %d", row.Tenant, row.Pool,
					before[i].Deficit, before[i].Owed, row.Deficit, row.Owed)
			}
		}
	})
}
