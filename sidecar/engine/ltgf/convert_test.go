package ltgf

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// trader is tenants with accounts in pools that trade at any price.
type trader struct {
	*rapid.T
	ledger   cluster.Ledger
	entitled []cluster.MicroGPU // with trades
	ahead    cluster.GPUTime    // of every account
	trades   []traded
}

type traded struct {
	fastTo, slowTo, fast, slow int                 // tenants and pools
	gpus                       [2]cluster.MicroGPU // fast, slow: its price
	left                       cluster.MicroGPU    // of the slow ones
	moved                      cluster.Moved
}

func drawTrader(rt *rapid.T) *trader {
	ahead := rapid.IntRange(10, 100).Draw(rt, "ahead")
	x := &trader{T: rt, ahead: cluster.Times(ahead, cluster.Hour)}
	tenants, pools := rapid.IntRange(2, 5).Draw(rt, "tenants"), rapid.IntRange(2, 3).Draw(rt, "models")
	for p := range pools {
		x.ledger.Pools = append(x.ledger.Pools, cluster.PoolAccount{Pool: fmt.Sprint("p", p)})
	}
	for i := range tenants * pools {
		x.entitled = append(x.entitled, cluster.MicroGPU(rapid.Int64Range(one, 8*one).Draw(rt, "own")))
		x.ledger.Tenants = append(x.ledger.Tenants, cluster.TenantPool{Tenant: fmt.Sprint("t", i/pools), Pool: fmt.Sprint("p", i%pools),
			Deficit: cluster.Times(rapid.IntRange(-ahead, ahead).Draw(rt, "deficit"), cluster.Hour)})
	}
	for range rapid.IntRange(0, 6).Draw(rt, "debts") {
		pool := rapid.IntRange(0, pools-1).Draw(rt, "pool")
		pair := rapid.Permutation(upTo(tenants)).Draw(rt, "pair")
		start := begin + cluster.Instant(rapid.IntRange(0, 5).Draw(rt, "age"))
		debt := cluster.GPUTime(rapid.Int64Range(1, 1_000_000_000).Draw(rt, "debt"))
		shift(&x.ledger.Tenants[pair[0]*pools+pool], start, debt)
		shift(&x.ledger.Tenants[pair[1]*pools+pool], start, -debt)
	}
	return x
}

func (x *trader) sides(t *traded) *Sides {
	n := len(x.ledger.Pools)
	side := func(tenant int) Side {
		return Side{Fast: &x.ledger.Tenants[tenant*n+t.fast], Slow: &x.ledger.Tenants[tenant*n+t.slow], FastAhead: x.ahead, SlowAhead: x.ahead}
	}
	return &Sides{FastTo: side(t.fastTo), SlowTo: side(t.slowTo), Fast: t.gpus[0], Slow: t.gpus[1]}
}

// trade makes a trade; either side may give all that it has.
func (x *trader) trade() {
	n := len(x.ledger.Pools)
	tenants, pools := rapid.Permutation(upTo(len(x.entitled)/n)).Draw(x.T, "tenants"), rapid.Permutation(upTo(n)).Draw(x.T, "pools")
	t := traded{fastTo: tenants[0], slowTo: tenants[1], fast: pools[0], slow: pools[1]}
	has := [2]*cluster.MicroGPU{&x.entitled[t.slowTo*n+t.fast], &x.entitled[t.fastTo*n+t.slow]}
	gets := [2]*cluster.MicroGPU{&x.entitled[t.fastTo*n+t.fast], &x.entitled[t.slowTo*n+t.slow]}
	for k, own := range has {
		if *own < gpu/2 {
			return
		}
		t.gpus[k] = cluster.MicroGPU(rapid.OneOf(rapid.Just(int64(*own)), rapid.Int64Range(one/2, int64(*own))).Draw(x.T, "GPUs"))
	}
	t.left = t.gpus[1]
	s, was := x.sides(&t), slices.Clone(x.ledger.Tenants)
	t.moved = s.Convert(Given{t.gpus[1], *has[1]}, Given{t.gpus[0], *has[0]})
	for k, own := range has {
		*own -= t.gpus[k]
		*gets[k] += t.gpus[k]
	}
	x.trades = append(x.trades, t)
	x.check(&t, was, false)
}

// end reverts a trade, or a part of it.
func (x *trader) end(all bool) {
	k := rapid.IntRange(0, len(x.trades)-1).Draw(x.T, "which")
	t := &x.trades[k]
	gone := t.left
	if !all {
		gone = cluster.MicroGPU(rapid.Int64Range(0, int64(gone)).Draw(x.T, "ended"))
	}
	s, was := x.sides(t), slices.Clone(x.ledger.Tenants)
	t.moved = s.Revert(t.moved, Given{gone, t.left})
	fast := cluster.MicroGPU(cluster.MulDiv(int64(t.gpus[0]), int64(t.left), int64(t.gpus[1])) - cluster.MulDiv(int64(t.gpus[0]), int64(t.left-gone), int64(t.gpus[1])))
	n := len(x.ledger.Pools)
	x.entitled[t.fastTo*n+t.slow] += gone
	x.entitled[t.slowTo*n+t.slow] -= gone
	x.entitled[t.slowTo*n+t.fast] += fast
	x.entitled[t.fastTo*n+t.fast] -= fast
	x.check(t, was, true)
	if t.left -= gone; t.left == 0 {
		if t.moved.Deficit != (cluster.MovedTime{}) || len(t.moved.Debts) > 0 {
			x.Fatalf("of a trade that is over %+v are left", t.moved)
		}
		x.trades = slices.Delete(x.trades, k, k+1)
	}
}

// check fails unless pools keep their sums, each side keeps its value at the price, and no new trade puts somebody further ahead
// than it may be.
func (x *trader) check(t *traded, was []cluster.TenantPool, ends bool) {
	price := float64(t.gpus[0]) / float64(t.gpus[1])
	sound(x.T, &x.ledger)
	n, rounding := len(x.ledger.Pools), 20*(1+price)
	sums := make([]cluster.GPUTime, n)
	value := map[int][2]float64{}
	for i := range was {
		now := &x.ledger.Tenants[i]
		change, debt := now.Deficit-was[i].Deficit, now.Owed-was[i].Owed
		sums[i%n] += change
		if lead := -now.Deficit - x.ahead; float64(lead) > rounding && change < 0 && !ends {
			x.Fatalf("%s in %s is %d GPU-ms ahead, may be %d", now.Tenant, now.Pool, -now.Deficit, x.ahead)
		}
		in := 1.0 // in fast GPU time
		if i%n == t.slow {
			in = price
		}
		v := value[i/n]
		value[i/n] = [2]float64{v[0] + in*float64(change), v[1] + in*float64(debt)}
	}
	for p, sum := range sums {
		if sum != 0 {
			x.Fatalf("pool %d: deficits sum to %d GPU-ms more", p, sum)
		}
	}
	for tenant, v := range value {
		if max(v[0], -v[0], v[1], -v[1]) > rounding {
			x.Fatalf("tenant %d: at the price of the trade its deficits are %.0f GPU-ms more, its debts %.0f", tenant, v[0], v[1])
		}
	}
}

// Trades come, shrink and go in any order, at any price. Meanwhile pools keep their sums, and tenants their value at the price. When
// all are over, all accounts are as they were, and no debt is younger.
func TestPropertyBalancesConvertWithTradesAndBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := drawTrader(rt)
		before := slices.Clone(x.ledger.Tenants)
		ages := map[cluster.Instant]bool{}
		for i := range before {
			before[i].Lots = slices.Clone(before[i].Lots)
			for _, l := range before[i].Lots {
				ages[l.Start] = true
			}
		}
		for range rapid.IntRange(1, 12).Draw(rt, "events") {
			if len(x.trades) == 0 || rapid.Bool().Draw(rt, "new") {
				x.trade()
			} else {
				x.end(rapid.Bool().Draw(rt, "all"))
			}
		}
		for len(x.trades) > 0 {
			x.end(true)
		}
		for i := range before {
			now := &x.ledger.Tenants[i]
			if now.Deficit != before[i].Deficit || now.Owed != before[i].Owed {
				rt.Fatalf("%s in %s: deficit and debt were %d and %d GPU-ms, and are %d and %d", now.Tenant, now.Pool, before[i].Deficit, before[i].Owed, now.Deficit, now.Owed)
			}
			for _, l := range now.Lots {
				if !ages[l.Start] {
					rt.Fatalf("%s in %s: a debt of another age: %+v of %+v", now.Tenant, now.Pool, now.Lots, before[i].Lots)
				}
			}
		}
	})
}

// A lead that a tenant built up with traded GPUs, beyond what it may be ahead by without them, is paid in the other model when the
// trade ends: at its price, as long as both may be ahead by as much there.
func TestLeadsConvertWhenATradeEnds(t *testing.T) {
	hour := func(n int) cluster.GPUTime { return cluster.Times(n, cluster.Hour) }
	for _, c := range []struct {
		what           string
		fastTo, slowTo [2]int // deficits in fast and slow GPU-hours, when the trade ends
		want           [4]int // deficits after it, in this order
	}{
		{"none", [2]int{-10, 0}, [2]int{0, -10}, [4]int{-10, 0, 0, -10}},
		{"of slow GPUs", [2]int{0, 0}, [2]int{0, -16}, [4]int{3, -6, -3, -10}},
		{"of fast GPUs", [2]int{-12, 0}, [2]int{0, 0}, [4]int{-10, -4, -2, 4}},
		{"of both", [2]int{-12, 0}, [2]int{0, -16}, [4]int{-9, -6, -3, -10}},
		{"and the other side may not be ahead by as much", [2]int{0, -8}, [2]int{0, -16}, [4]int{1, -10, -1, -14}},
		{"and there is no room", [2]int{0, -10}, [2]int{0, -16}, [4]int{0, -10, 0, -16}},
		{"and the other model has no room", [2]int{0, 0}, [2]int{-10, -16}, [4]int{0, 0, -10, -16}},
	} {
		var rows [4]cluster.TenantPool
		for k, n := range []int{c.fastTo[0], c.fastTo[1], c.slowTo[0], c.slowTo[1]} {
			rows[k].Deficit = hour(n)
		}
		s := Sides{FastTo: Side{&rows[0], &rows[1], hour(10), hour(10)}, SlowTo: Side{&rows[2], &rows[3], hour(10), hour(10)}, Fast: gpu, Slow: 2 * gpu}
		s.ConvertLeads()
		for k, want := range c.want {
			if got := rows[k].Deficit; got != hour(want) {
				t.Errorf("%s: account %d is %.2f GPU-hours, want %d", c.what, k, got.Hours(), want)
			}
		}
	}
}

// A tenant that sells all its slow GPUs is owed fast ones instead, and owes them.
func TestDebtsMoveAtThePrice(t *testing.T) {
	hour := func(n int) cluster.GPUTime { return cluster.Times(n, cluster.Hour) }
	var a, b [2]cluster.TenantPool // fast, slow
	shift(&a[1], begin, hour(12))
	shift(&a[1], begin+1, hour(6))
	shift(&b[0], begin+1, -hour(4))
	s := Sides{FastTo: Side{Fast: &a[0], Slow: &a[1]}, SlowTo: Side{Fast: &b[0], Slow: &b[1]}, Fast: 2 * gpu, Slow: 6 * gpu}
	moved := s.Convert(Given{6 * gpu, 6 * gpu}, Given{2 * gpu, 8 * gpu})
	// All 18 of a's slow hours are worth 6 fast ones, and a fourth of b's debt is worth 3 slow ones.
	for _, x := range []struct {
		row  *cluster.TenantPool
		want cluster.GPUTime
	}{{&a[0], hour(6 - 1)}, {&a[1], hour(3)}, {&b[0], -hour(4 + 5)}, {&b[1], hour(18 - 3)}} {
		if x.row.Owed != x.want {
			t.Errorf("owed %.2f GPU-hours, want %.2f", x.row.Owed.Hours(), x.want.Hours())
		}
	}
	set := cluster.Settings{Window: cluster.Day}
	if got := Age(moved, begin.Add(cluster.Day), minute, &set); len(got.Debts) != 1 || got.Debts[0].Start != begin+1 {
		t.Errorf("a day later %+v are left of %+v, want those of the later lot", got.Debts, moved.Debts)
	}
	set.HalfLife = cluster.Hour
	if got := Age(moved, begin.Add(cluster.Hour), cluster.Hour, &set); len(got.Debts) != 2 || got.Debts[0].Slow != moved.Debts[0].Slow/2 {
		t.Errorf("a half-life later %+v are left of %+v", got.Debts, moved.Debts)
	}
}

// Whatever the leads are when a trade ends: converting them leaves both sides their value and pools their sums, puts nobody beyond a limit,
// and leaves a lead beyond one only if its other account, or the other side's, is at its limit, too.
func TestPropertyLeadsKeepTheirValue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const most = 1_000_000_000
		var rows, was [4]cluster.TenantPool // fast and slow, of fast_to and of slow_to
		var ahead [4]cluster.GPUTime
		for i := range rows {
			ahead[i] = cluster.GPUTime(rapid.Int64Range(0, most).Draw(rt, "ahead"))
			rows[i].Deficit = cluster.GPUTime(rapid.Int64Range(-2*most, most).Draw(rt, "deficit"))
		}
		was = rows
		s := Sides{FastTo: Side{&rows[0], &rows[1], ahead[0], ahead[1]}, SlowTo: Side{&rows[2], &rows[3], ahead[2], ahead[3]},
			Fast: cluster.MicroGPU(rapid.Int64Range(one/10, 8*one).Draw(rt, "fast")), Slow: cluster.MicroGPU(rapid.Int64Range(one/10, 8*one).Draw(rt, "slow"))}
		s.ConvertLeads()
		price := float64(s.Fast) / float64(s.Slow)
		rounding := 2 * (1 + price + 1/price)
		lead := func(i int) float64 { return float64(-rows[i].Deficit - ahead[i]) }
		change := func(i int) cluster.GPUTime { return rows[i].Deficit - was[i].Deficit }
		if change(0)+change(2) != 0 || change(1)+change(3) != 0 {
			rt.Fatalf("pools have other sums: %v from %v", rows, was)
		}
		for _, side := range []int{0, 2} {
			if v := float64(change(side)) + price*float64(change(side+1)); v > rounding || v < -rounding {
				rt.Fatalf("at the price a side has %.0f GPU-ms more", v)
			}
		}
		for i := range rows {
			if lead(i) > rounding && change(i) < 0 {
				rt.Fatalf("account %d is put %.0f GPU-ms beyond its limit", i, lead(i))
			}
		}
		for _, way := range [][4]int{{3, 0, 1, 2}, {1, 2, 3, 0}} { // leads, and the accounts that would take them over
			if max(lead(way[0]), lead(way[1])) > rounding && max(lead(way[2]), lead(way[3])) < -rounding {
				rt.Fatalf("a lead of %.0f or %.0f GPU-ms stays beyond its limit: %v", lead(way[0]), lead(way[1]), rows)
			}
		}
	})
}
