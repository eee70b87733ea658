package cluster

// Audit reports how fair an Allocation is to its tenants, by the throughput that they get from GPUs.
type Audit struct {
	At      Instant         `json:"at,omitzero"` // of the snapshot that was audited
	Policy  string          `json:"policy"`
	Tenants []AuditedTenant `json:"tenants"` // by name
	// Envy lists all pairs of tenants, by envious tenant, then by the other one.
	Envy []Envy `json:"envy"`
	// Slack is the fraction by which total throughput could rise without lowering anyone's: 0 =
	// Pareto efficient, negative = not computed.
	Slack      float64     `json:"slack"`
	Misreports []Misreport `json:"misreports"`
}

// MaxRatio replaces every larger ratio in an audit, also infinite ones.
const MaxRatio = 1e6

// AuditedTenant reports how a division treats one tenant.
type AuditedTenant struct {
	Tenant string `json:"tenant"`
	// Incentive is the throughput of the tenant's share, over that of a weighted fraction of
	// every model. Below 1 the tenant would be better off alone (sharing incentive, OEF §2.3.1).
	Incentive float64 `json:"incentive"`
	// More and Less are the tenant's relative gain if it declared speedups a fifth higher or
	// lower than they are; nil = not computed.
	More *float64 `json:"more,omitempty"`
	Less *float64 `json:"less,omitempty"`
}

// Envy is the throughput that another tenant's share would give this tenant, scaled to its weight
// and demand, over that of its own share. Above 1 the tenant is envious.
type Envy struct {
	Tenant string  `json:"tenant"`
	Of     string  `json:"of"`
	Ratio  float64 `json:"ratio"`
}

// Misreport is a declared rate, or speedup over another model, that observations contradict.
type Misreport struct {
	Kind    Kind    `json:"kind"`
	Model   string  `json:"model"`
	Than    string  `json:"than,omitempty"` // the declaration is a speedup over this model; "" = a rate
	Gang    int     `json:"gang"`
	By      string  `json:"by"` // the declaring user or tenant
	Said    float64 `json:"said"`
	Seen    float64 `json:"seen"`
	Spread  float64 `json:"spread"` // of the observations, as a fraction
	Samples int     `json:"samples"`
}
