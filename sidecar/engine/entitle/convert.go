package entitle

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// convert moves balances between the accounts of the two sides of each new trade, and back where a trade has ended or
// shrunk, the newest first. due and entitled are the entitlements with trades, parties and tenants without them (nil = there
// are none), by row.
func (x *shares) convert(due byParty, entitled byTenant, parties, tenants []cluster.MicroGPU) {
	var trades []cluster.Trade
	if d := x.in.Snapshot.Allocation; d != nil && x.in.Settings.Divides() && d.Policy == x.in.Settings.Divide {
		trades = d.Trades
	}
	if len(trades)+len(x.due.Ledger.Conversions) == 0 {
		return
	}
	c := &converter{s: x, parties: ltgf.Most(due.Cells, parties), tenants: ltgf.Most(entitled.Cells, tenants)}
	c.largest, c.gang = x.largest(), x.largestGang()
	if x.in.Settings.Divides() {
		c.largest = owe(c.largest, c.tenants)
	}
	was := x.deficits()
	kept := c.revert(trades)
	x.due.Ledger.Conversions = c.make(trades, kept, slices.Clone(parties), slices.Clone(tenants))
	for row, now := range x.deficits() {
		x.due.TenantRows.Cells[row].Deficit += now - was[row]
	}
}

// deficits returns the deficits of each tenant's parties together, by row.
func (x *shares) deficits() []cluster.GPUTime {
	n := len(x.in.Pools)
	out := make([]cluster.GPUTime, len(x.due.TenantRows.Cells))
	for k := range x.due.Parties {
		for p := range n {
			out[int(x.due.Parties[k].Tenant)*n+p] += x.due.PartyRows.Cells[k*n+p].Deficit
		}
	}
	return out
}

// converter converts balances of a round's trades.
type converter struct {
	s                *shares
	parties, tenants []cluster.MicroGPU // the larger of the entitlements with and without trades, by row
	largest          []cluster.MicroGPU // by row of the ledger: see owe
	gang             cluster.MicroGPU   // the largest of all parties
}

// revert moves back what trades that are over or smaller had moved, and returns the conversions of the others.
func (c *converter) revert(trades []cluster.Trade) (kept []cluster.Conversion) {
	span := max(c.s.in.Now.Sub(c.s.in.Snapshot.Ledger.At), 0)
	var leads []ltgf.Sides
	for _, old := range slices.Backward(c.s.due.Ledger.Conversions) {
		left := cluster.MicroGPU(0)
		if k := slices.IndexFunc(trades, func(t cluster.Trade) bool { return isOf(&old, &t) }); k >= 0 && trades[k].FastGPUs > 0 {
			left = trades[k].SlowGPUs
		}
		old.Tenants, old.Parties = ltgf.Age(old.Tenants, c.s.in.Now, span, c.s.in.Settings), ltgf.Age(old.Parties, c.s.in.Now, span, c.s.in.Settings)
		if left < old.Left {
			ended := ltgf.Given{GPUs: old.Left - left, Of: old.Left}
			if s, ok := c.ofTenants(&old); ok {
				old.Tenants = s.Revert(old.Tenants, ended)
				leads = append(leads, s)
			}
			if s, ok := c.ofParties(&old); ok {
				old.Parties = s.Revert(old.Parties, ended)
				leads = append(leads, s)
			}
			old.Left = left
		}
		if left > 0 {
			kept = append(kept, old)
		}
	}
	for i := range leads {
		leads[i].ConvertLeads()
	}
	slices.Reverse(kept)
	return kept
}

// make moves the balances of new trades, and returns the conversions of all trades in force. parties and tenants are the
// entitlements without trades, by row; make changes them.
func (c *converter) make(trades []cluster.Trade, kept []cluster.Conversion, parties, tenants []cluster.MicroGPU) []cluster.Conversion {
	var out []cluster.Conversion
	for i := range trades {
		t := &trades[i]
		if t.FastGPUs <= 0 || t.SlowGPUs <= 0 {
			continue
		}
		x := cluster.Conversion{Trade: t.ID, Fast: t.Fast, Slow: t.Slow, FastTo: t.FastTo, SlowTo: t.SlowTo,
			FastGPUs: t.FastGPUs, SlowGPUs: t.SlowGPUs, Left: t.SlowGPUs}
		at := slices.IndexFunc(kept, func(k cluster.Conversion) bool { return isOf(&k, t) })
		known := at >= 0
		if known {
			x = kept[at]
		}
		if s, ok := c.ofTenants(&x); ok {
			moved := give(tenants, c.tenantRow(t.FastTo), c.tenantRow(t.SlowTo), c.s.in.Pool(t.Fast), c.s.in.Pool(t.Slow), t)
			if !known {
				x.Tenants = s.Convert(moved[0], moved[1])
			}
		}
		if s, ok := c.ofParties(&x); ok {
			moved := give(parties, c.partyRow(t.FastTo), c.partyRow(t.SlowTo), c.s.in.Pool(t.Fast), c.s.in.Pool(t.Slow), t)
			if !known {
				x.Parties = s.Convert(moved[0], moved[1])
			}
		}
		out = append(out, x)
	}
	return out
}

// isOf reports whether a conversion is of a trade.
func isOf(x *cluster.Conversion, t *cluster.Trade) bool {
	return x.Trade == t.ID && x.Fast == t.Fast && x.Slow == t.Slow && x.FastTo == t.FastTo && x.SlowTo == t.SlowTo
}

// give carries a trade out on entitlements, and returns the parts that both sides give: of slow GPUs and of fast ones.
func give(entitled []cluster.MicroGPU, fastTo, slowTo, fast, slow int, t *cluster.Trade) [2]ltgf.Given {
	parts := [2]ltgf.Given{{GPUs: t.SlowGPUs, Of: entitled[fastTo+slow]}, {GPUs: t.FastGPUs, Of: entitled[slowTo+fast]}}
	entitled[fastTo+slow] -= t.SlowGPUs
	entitled[slowTo+slow] += t.SlowGPUs
	entitled[slowTo+fast] -= t.FastGPUs
	entitled[fastTo+fast] += t.FastGPUs
	return parts
}

// ofTenants returns the accounts of the two tenants of a trade; false = it is between job types of one, or one has left.
func (c *converter) ofTenants(x *cluster.Conversion) (ltgf.Sides, bool) {
	if x.FastTo.Tenant == x.SlowTo.Tenant {
		return ltgf.Sides{}, false
	}
	return c.sides(c.s.due.Ledger.Tenants, c.tenantRow(x.FastTo), c.tenantRow(x.SlowTo), x, func(row int) cluster.GPUTime {
		return ltgf.Ahead(&c.s.due.Ledger.Tenants[row], c.largest[row], c.tenants[row], c.s.in.Settings)
	})
}

// ofParties returns the accounts of the two parties of a trade; false = one has left.
func (c *converter) ofParties(x *cluster.Conversion) (ltgf.Sides, bool) {
	s, ok := c.sides(c.s.due.PartyRows.Cells, c.partyRow(x.FastTo), c.partyRow(x.SlowTo), x, func(row int) cluster.GPUTime {
		return ltgf.PartyAhead(c.gang, c.parties[row], c.s.in.Settings)
	})
	if ok { // a party that sells all is not new, though nothing is left on its account
		for _, row := range []*cluster.TenantPool{s.FastTo.Slow, s.SlowTo.Fast} {
			row.Base = max(row.Base, 1)
		}
	}
	return s, ok
}

func (c *converter) sides(rows []cluster.TenantPool, fastTo, slowTo int, x *cluster.Conversion, ahead func(row int) cluster.GPUTime) (ltgf.Sides, bool) {
	fast, slow := c.s.in.Pool(x.Fast), c.s.in.Pool(x.Slow)
	if min(fastTo, slowTo, fast, slow) < 0 {
		return ltgf.Sides{}, false
	}
	side := func(first int) ltgf.Side {
		return ltgf.Side{Fast: &rows[first+fast], Slow: &rows[first+slow], FastAhead: ahead(first + fast), SlowAhead: ahead(first + slow)}
	}
	return ltgf.Sides{FastTo: side(fastTo), SlowTo: side(slowTo), Fast: x.FastGPUs, Slow: x.SlowGPUs}, true
}

// tenantRow returns the first row of a side's tenant in the ledger; -1 = there is none.
func (c *converter) tenantRow(side cluster.PartyName) int {
	t, ok := slices.BinarySearch(c.s.in.Tenants, side.Tenant)
	if !ok {
		return -1
	}
	return t * len(c.s.in.Pools)
}

// partyRow returns the first row of a side in the accounts of parties; -1 = there is none.
func (c *converter) partyRow(side cluster.PartyName) int {
	k, ok := slices.BinarySearchFunc(c.s.due.Parties, side.Kind, func(p round.Claimant, name string) int { return cmp.Compare(p.Name, name) })
	if !ok {
		return -1
	}
	return k * len(c.s.in.Pools)
}
