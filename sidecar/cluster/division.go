package cluster

// Question is what a policy is to divide, with all that its answer depends on: the GPUs of
// unlike models between parties.
type Question struct {
	Policy string `json:"policy"` // "gavel:las", "oef:coop", "gandiva-fair", …
	Pools  []GPUs `json:"pools"`  // the GPUs that tenants share
	Bids   []Bid  `json:"bids"`   // by party
	// Trades are those in force (Gandiva_fair).
	Trades []Trade `json:"trades,omitempty"`
	// Digest is equal for questions that have the same answer.
	Digest string `json:"digest"`
}

// Bid is what one party asks of a Question.
type Bid struct {
	Party  string `json:"party"`
	Tenant string `json:"tenant"`
	Weight int64  `json:"weight"` // of its tenant
	Milli  int64  `json:"milli"`  // its own weight inside its tenant, in thousandths
	Gang   int    `json:"gang"`   // GPUs at once, of one job; the largest of a kind's
	Demand int    `json:"demand"` // GPUs that all its jobs ask for
	// Speeds is, by pool, what one GPU does for it: steps a second, or relative to the
	// slowest model where nobody counted steps; 0 = of no use to it.
	Speeds []float64 `json:"speeds"`
	// Of one job: the steps that remain, in the unit of Speeds times seconds, and how long ago
	// it came.
	Steps   float64 `json:"steps,omitempty"`
	Elapsed Span    `json:"elapsed,omitempty"`
}

// Division is the answer to a Question: who is due how much of each pool. It is worked out
// beside the rounds, and is data in the snapshots after that.
type Division struct {
	Policy    string   `json:"policy"`
	Digest    string   `json:"digest"` // of the question
	Pools     []string `json:"pools"`
	Parts     []Part   `json:"parts"` // by party
	Trades    []Trade  `json:"trades,omitempty"`
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

// Trade is GPUs of two models that two tenants have swapped (Gandiva_fair §3.4): the tenant FastTo
// is due Fast of the faster model that were SlowTo's, and gave Slow of the slower one for them.
type Trade struct {
	FastTo    string   `json:"fast_to"`
	SlowTo    string   `json:"slow_to"`
	FastModel string   `json:"fast_model"`
	SlowModel string   `json:"slow_model"`
	Fast      MicroGPU `json:"fast"`
	Slow      MicroGPU `json:"slow"`
	// Price is slow GPUs for a fast one; the speedups are those of the two tenants then.
	Price       float64 `json:"price"`
	FastSpeedup float64 `json:"fast_speedup"`
	SlowSpeedup float64 `json:"slow_speedup"`
}
