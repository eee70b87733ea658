package cluster

import compare "cmp"

// Question is what a policy is to divide, with all that its answer depends on: the GPUs of
// unlike models between parties.
type Question struct {
	Policy string  `json:"policy"` // "gavel:las", "oef:coop", "gandiva-fair", …
	At     Instant `json:"at"`     // when it is asked
	Pools  []GPUs  `json:"pools"`  // the GPUs that tenants share
	Bids   []Bid   `json:"bids"`   // by party
	// Trades are those in force (Gandiva_fair); NextTrade is the number of the next.
	Trades    []Trade `json:"trades,omitempty"`
	NextTrade int64   `json:"next_trade,omitempty"`
	// Prices of a GPU of each pool and hour (Gavel's cost); none = 1 each.
	Prices []float64 `json:"prices,omitempty"`
	// Digest is equal for questions that have the same answer.
	Digest string `json:"digest"`
}

// Bid is what one party asks of a Question.
type Bid struct {
	Party  string `json:"party"`
	Tenant string `json:"tenant"`
	Job    JobKey `json:"job,omitempty"`    // where a party is one job
	Pinned bool   `json:"pinned,omitempty"` // its jobs name the one model on which they run
	Weight int64  `json:"weight"`           // of its tenant
	Milli  int64  `json:"milli"`            // its own weight inside its tenant, in thousandths
	Gang   int    `json:"gang"`             // GPUs at once, of one job; the largest of a kind's
	Demand int    `json:"demand"`           // GPUs that all its jobs ask for
	// Speeds is, by pool, what one GPU does for it: steps a second, or relative to the
	// slowest model where nobody counted steps; 0 = of no use to it.
	Speeds []float64 `json:"speeds"`
	// Margins is, by pool, by what factor a speed may be off either way; 0 = it is not known.
	Margins []float64 `json:"margins"`
	// Basis is, by pool, where the speed comes from; of several jobs the least sure of theirs, "" = nothing
	// is known of one. It is nil where speeds are sure.
	Basis []Source `json:"basis,omitempty"`
	// Of one job: the steps that remain and those that it has done, in the unit of Speeds times seconds, how
	// long ago it came, and by when it is to be done (its SLO; 0 = whenever).
	Steps    float64 `json:"steps,omitempty"`
	Did      float64 `json:"did,omitempty"`
	Elapsed  Span    `json:"elapsed,omitempty"`
	Deadline Instant `json:"deadline,omitempty"`
}

// Division is the answer to a Question: who is due how much of each pool. It is worked out
// beside the rounds, and is data in the snapshots after that.
type Division struct {
	Policy string   `json:"policy"`
	Digest string   `json:"digest"`       // of the question
	At     Instant  `json:"at,omitempty"` // when that was asked; 0 = it is not known
	Pools  []string `json:"pools"`
	Parts  []Part   `json:"parts"` // by party
	// Trades are those in force, in the order in which they were made; Undone what this division
	// took back of those before.
	Trades    []Trade  `json:"trades,omitempty"`
	Undone    []Undone `json:"undone,omitempty"`
	NextTrade int64    `json:"next_trade,omitempty"`
	// Late are the jobs whose deadlines cannot be kept beside the others', by key: the policy
	// leaves them out.
	Late      []JobKey `json:"late,omitempty"`
	Objective float64  `json:"objective"`
	// Why is empty where the policy answered; else it says why everybody has the share that is
	// due by weight.
	Why string `json:"why,omitempty"`
}

// Part is what a party is due of each pool.
type Part struct {
	Party string     `json:"party"`
	GPUs  []MicroGPU `json:"gpus"` // by pool
}

// PartyPool is the account of a party in a pool: what TenantPool is for tenants.
type PartyPool struct {
	Party       string   `json:"party"`
	Pool        string   `json:"pool"`
	Entitlement MicroGPU `json:"entitlement"`
	Deficit     GPUTime  `json:"deficit"`
	Carry       int64    `json:"carry,omitempty"`
}

// PartyName names who trades: a tenant's jobs of one kind.
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
	FastTo        PartyName `json:"fast_to"`      // gets fast GPUs, gives slow ones
	SlowTo        PartyName `json:"slow_to"`      // gets slow GPUs, gives fast ones
	FastGPUs      MicroGPU  `json:"fast_gpus"`
	SlowGPUs      MicroGPU  `json:"slow_gpus"`
	Price         float64   `json:"price"`           // slow GPUs for a fast one
	FastToSpeedup float64   `json:"fast_to_speedup"` // of fast over slow when they traded: the lower bound
	SlowToSpeedup float64   `json:"slow_to_speedup"` // the upper bound
	FastToGain    float64   `json:"fast_to_gain"`    // throughput, in GPUs of the slowest model
	SlowToGain    float64   `json:"slow_to_gain"`
}

// Undone is what is taken back of a trade, at the price of the trade.
type Undone struct {
	ID       int64    `json:"id"`
	At       int      `json:"at"` // the trade's place among those that were in force
	FastGPUs MicroGPU `json:"fast_gpus"`
	SlowGPUs MicroGPU `json:"slow_gpus"`
	Why      string   `json:"why"` // "left", "speedups", "entitlement", "demand"
	All      bool     `json:"all"` // nothing remains of the trade
}
