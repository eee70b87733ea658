package cluster

import compare "cmp"

// AllocationRequest is the input of a policy that divides heterogeneous GPUs between parties. The answer
// depends on nothing else.
type AllocationRequest struct {
	Policy string  `json:"policy"`      // "gavel:las", "oef:coop", "gandiva-fair", …
	At     Instant `json:"at,omitzero"` // when it is asked
	Pools  []GPUs  `json:"pools"`       // the GPUs that tenants share
	Bids   []Bid   `json:"bids"`        // by party
	// Trades are those in force (Gandiva_fair); NextTrade is the number of the next new one.
	Trades    []Trade `json:"trades,omitempty"`
	NextTrade int64   `json:"next_trade,omitempty"`
	// Prices are per GPU and hour, by pool (Gavel's cost policies); empty = 1 each.
	Prices []float64 `json:"prices,omitempty"`
	// Together is the part of each pool's GPUs, in thousandths, that the largest gang with Apart could have on its fewest nodes; nil = all.
	Together []int `json:"together,omitempty"`
	// Pairs are the types of jobs that do more beside each other on a GPU than in turns, by name; nil = jobs share no GPUs, or none is known.
	Pairs []TypePair `json:"pairs,omitempty"`
	// MostKinds is the maximum number of a tenant's kinds of jobs that the policy keeps apart; 0 = any.
	MostKinds int `json:"most_kinds,omitempty"`
	// Cells are the GPUs in healthy cells of virtual clusters, by tenant. They are part of Pools. CellTrades are the
	// trades of cells that are agreed.
	Cells      []CellGPUs  `json:"cells,omitempty"`
	CellTrades []CellTrade `json:"cell_trades,omitempty"`
	// Digest is equal for questions with equal answers.
	Digest string `json:"digest"`
}

// TypePair is two types of jobs that may share a GPU; see Bid.Type.
type TypePair struct {
	A string `json:"a"`
	B string `json:"b"` // not before A, by name; A for two jobs of one type
	// PartA and PartB are the parts of their speeds alone that the two keep beside each other, by pool; 0 = they are not put together there.
	PartA []float64 `json:"part_a"`
	PartB []float64 `json:"part_b"`
}

// CellGPUs is the GPUs in a tenant's cells, with the trades of cells in force.
type CellGPUs struct {
	Tenant string `json:"tenant"`
	GPUs   []int  `json:"gpus"` // by pool
	// Base is the GPUs without trades, by pool, and Lots the cells that the tenant may trade; both are nil if no
	// tenant may trade cells.
	Base []int     `json:"base,omitempty"`
	Lots []CellLot `json:"lots,omitempty"`
}

// Bid is the demand of one party in an AllocationRequest.
type Bid struct {
	Party  string `json:"party"`
	Tenant string `json:"tenant"`
	// User is the user of all jobs of the party, where the users of a tenant share equally; "" = several users, or
	// users do not matter.
	User   string `json:"user,omitempty"`
	Job    JobKey `json:"job,omitempty"`    // set if the party is one job
	Pinned bool   `json:"pinned,omitempty"` // its jobs request this one model
	Weight int64  `json:"weight"`           // of its tenant
	Milli  int64  `json:"milli"`            // its weight inside its tenant, in thousandths
	Gang   int    `json:"gang"`             // GPUs at once for one job; the largest of all its jobs
	Demand int    `json:"demand"`           // GPUs requested by all its jobs
	// Speeds is the throughput of one GPU for this party, by pool: steps/s, or relative to the
	// reference model if no steps were counted; 0 = unusable.
	Speeds []float64 `json:"speeds"`
	// Apart is the part of Speeds that a job keeps on more nodes than it needs, by pool; 0 = all. It is nil if that is not known, or no job.
	Apart []float64 `json:"apart,omitempty"`
	// Type is that of a job which may share a GPU with another one; "" = it may not.
	Type string `json:"type,omitempty"`
	// Margins is the factor by which a speed may be off in either direction, by pool; 0 =
	// unknown.
	Margins []float64 `json:"margins"`
	// Basis is the source of each speed, by pool. For several jobs it is the least certain one;
	// "" = unknown for one of them. It is nil if speeds are certain.
	Basis []Source `json:"basis,omitempty"`
	// Priced is what prices of trades go by: the speeds without what kinds show that report nothing; nil = Speeds.
	Priced *Terms `json:"priced,omitempty"`
	// Of a party that is one job: remaining and completed steps (unit: Speeds × seconds), time
	// since arrival, and deadline (SLO; 0 = none).
	Steps    float64 `json:"steps,omitempty"`
	Did      float64 `json:"did,omitempty"`
	Elapsed  Span    `json:"elapsed,omitempty"`
	Deadline Instant `json:"deadline,omitempty"`
}

// Terms are speeds with their margins and sources, by pool; see Bid.
type Terms struct {
	Speeds  []float64 `json:"speeds"`
	Margins []float64 `json:"margins"`
	Basis   []Source  `json:"basis,omitempty"`
}

// Terms returns what prices of trades go by.
func (b *Bid) Terms() Terms {
	if b.Priced != nil {
		return *b.Priced
	}
	return Terms{b.Speeds, b.Margins, b.Basis}
}

// Allocation is the answer to an AllocationRequest: the GPUs that each party is entitled to, by pool. It is
// computed beside the rounds, and is data in later snapshots.
type Allocation struct {
	Policy string   `json:"policy"`
	Digest string   `json:"digest"`       // of the question
	At     Instant  `json:"at,omitempty"` // when the question was asked; 0 = unknown
	Pools  []string `json:"pools"`
	Parts  []Part   `json:"parts"` // by party
	// Pairs are the GPUs on which jobs of two types run beside each other; each has half of them among its Parts. nil = the request had no pairs.
	Pairs []PairGPUs `json:"pairs,omitempty"`
	// Trades are those in force, in the order in which they were made. Undone lists what this
	// division reverted of earlier trades.
	Trades    []Trade  `json:"trades,omitempty"`
	Undone    []Undone `json:"undone,omitempty"`
	NextTrade int64    `json:"next_trade,omitempty"`
	// CellTrades are the trades of cells that are agreed, in the order in which they were made. A round puts them in
	// force.
	CellTrades []CellTrade `json:"cell_trades,omitempty"`
	// Late lists jobs, by key, whose deadlines cannot be met together with the others. The policy
	// omits them.
	Late      []JobKey `json:"late,omitempty"`
	Objective float64  `json:"objective"`
	// Bound is an upper bound of the largest objective, in its units, where the policy could not
	// prove that Objective is the largest; 0 = it is.
	Bound float64 `json:"bound,omitempty"`
	// Why is empty if the policy answered; else it says why tenants fall back to weighted shares.
	Why string `json:"why,omitempty"`
}

// Part is a party's entitlement in each pool.
type Part struct {
	Party string     `json:"party"`
	GPUs  []MicroGPU `json:"gpus"` // by pool
}

// PairGPUs is the GPUs of each pool for jobs of two types beside each other.
type PairGPUs struct {
	A    string     `json:"a"`
	B    string     `json:"b"`
	GPUs []MicroGPU `json:"gpus"` // by pool
}

// PartyPool is the account of a party in a pool, as TenantPool is that of a tenant.
type PartyPool struct {
	Party       string   `json:"party"`
	Pool        string   `json:"pool"`
	Entitlement MicroGPU `json:"entitlement"`
	Deficit     GPUTime  `json:"deficit"`
	Carry       int64    `json:"carry,omitempty"`
}

// PartyName names a party that trades: a tenant's jobs of one kind.
type PartyName struct {
	Tenant string `json:"tenant"`
	Kind   string `json:"kind,omitempty"`
}

// Compare orders by tenant, then kind.
func (n PartyName) Compare(o PartyName) int {
	return compare.Or(compare.Compare(n.Tenant, o.Tenant), compare.Compare(n.Kind, o.Kind))
}

// Trade is a swap of entitlements between two parties (Gandiva_fair §3.4).
type Trade struct {
	ID            int64     `json:"id,omitempty"` // 0 = a new one
	Fast          string    `json:"fast"`         // model
	Slow          string    `json:"slow"`         // model
	FastTo        PartyName `json:"fast_to"`      // receives fast GPUs, gives slow ones
	SlowTo        PartyName `json:"slow_to"`      // receives slow GPUs, gives fast ones
	FastGPUs      MicroGPU  `json:"fast_gpus"`
	SlowGPUs      MicroGPU  `json:"slow_gpus"`
	Price         float64   `json:"price"`           // slow GPUs per fast GPU
	FastToSpeedup float64   `json:"fast_to_speedup"` // of fast over slow at the time of the trade: the lower bound
	SlowToSpeedup float64   `json:"slow_to_speedup"` // same: the upper bound
	// The speedup was its jobs' declaration, and nobody had measured it.
	FastToDeclared bool    `json:"fast_to_declared,omitempty"`
	SlowToDeclared bool    `json:"slow_to_declared,omitempty"`
	FastToGain     float64 `json:"fast_to_gain"` // throughput, in units of one GPU of the slowest model
	SlowToGain     float64 `json:"slow_to_gain"`
}

// CellTrade is a swap of whole cells between the virtual clusters of two tenants.
type CellTrade struct {
	Trade
	Cells CellSwap `json:"cells"`
}

// Undone is the part of a trade that was reverted, at the price of the trade.
type Undone struct {
	ID       int64    `json:"id"`
	At       int      `json:"at"` // index in the trades that were in force
	FastGPUs MicroGPU `json:"fast_gpus"`
	SlowGPUs MicroGPU `json:"slow_gpus"`
	Why      string   `json:"why"` // "left", "speedups", "entitlement", "demand"
	All      bool     `json:"all"` // nothing remains of the trade
}
