package round

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Facts are the inputs of a round.
type Facts struct {
	Snapshot *cluster.Snapshot
	Now      cluster.Instant
	Settings *cluster.Settings
	Pools    []string // GPU models
	Tenants  []string // of the ledger, in order
	weights  []int64  // by tenant
	spent    map[string]*cluster.TenantBudget
	single   [][]int          // by pool: a list of that pool alone
	keys     []cluster.JobKey // by case: cases are too large to search in them
	// Orders are the administrators' overrides in force.
	Orders cluster.Overrides
}

// Owned is the GPUs of tenants in cells of their own, by pool, then tenant.
type Owned struct {
	GPUs [][]int // with the trades of cells in force
	Base [][]int // without them
	// Lots are the cells that tenants may trade, by tenant; nil = no tenant may.
	Lots [][]cluster.CellLot
}

// reset sets the facts of a snapshot and reuses the memory of old ones.
func (f *Facts) reset(s *cluster.Snapshot, o *Opening) {
	f.Snapshot, f.Now, f.Settings = s, s.Now, &s.Settings
	f.Orders = cluster.OverridesOf(s.Overrides, s.Now)
	f.Pools = f.Pools[:0]
	for p := range o.Ledger.Pools {
		f.Pools = append(f.Pools, o.Ledger.Pools[p].Pool)
		if p == len(f.single) {
			f.single = append(f.single, []int{p})
		}
	}
	f.keys = o.Keys
	n := len(f.Pools)
	f.Tenants = f.Tenants[:0]
	for i := 0; n > 0 && i < len(o.Ledger.Tenants); i += n {
		f.Tenants = append(f.Tenants, o.Ledger.Tenants[i].Tenant)
	}
	f.weigh(s.Tenants)
}

// weigh sets the weights. A tenant whose budget is used up has none, unless that holds for all tenants with a weight: they
// then share by weight as ever.
func (f *Facts) weigh(tenants []cluster.Tenant) {
	f.weights = slices.Grow(f.weights[:0], len(f.Tenants))[:len(f.Tenants)]
	clear(f.weights)
	f.spent = nil
	left := slices.ContainsFunc(tenants, func(t cluster.Tenant) bool { return t.Weight > 0 && t.Budget.Since == 0 })
	at := 0 // both are by name
	for i := range tenants {
		t := &tenants[i]
		for at < len(f.Tenants) && f.Tenants[at] != t.Name {
			at++
		}
		if at == len(f.Tenants) { // there are no pools
			return
		}
		if !left || t.Budget.Since == 0 {
			f.weights[at] = t.Weight
			continue
		}
		if f.spent == nil {
			f.spent = map[string]*cluster.TenantBudget{}
		}
		f.spent[t.Name] = &cluster.TenantBudget{Since: t.Budget.Since, Until: t.Budget.Until}
	}
}

// Spent returns the budget of a tenant that has used it up, and gets idle GPUs only; else nil.
func (f *Facts) Spent(tenant string) *cluster.TenantBudget { return f.spent[tenant] }

// Weight returns the weight of a tenant; 0 = none.
func (f *Facts) Weight(tenant TenantIndex) int64 { return f.weights[tenant] }

// Pool returns the index of a GPU model, or -1.
func (f *Facts) Pool(model string) int {
	for i, p := range f.Pools {
		if p == model {
			return i
		}
	}
	return -1
}

// Just returns a list of one pool, which must not be changed.
func (f *Facts) Just(pool int) []int { return f.single[pool] }

// PoolOf returns the pool of a lease as a list of one, which must not be changed.
func (f *Facts) PoolOf(l *cluster.Lease) []int {
	if len(f.Pools) == 0 {
		return nil
	}
	return f.single[max(f.Pool(l.Pool), 0)]
}

// Find returns the case of a job, or -1.
func (f *Facts) Find(key cluster.JobKey) int {
	if i, ok := slices.BinarySearch(f.keys, key); ok {
		return i
	}
	return -1
}
