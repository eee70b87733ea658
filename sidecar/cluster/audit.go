package cluster

// Audit is how fair a Division is, by what GPUs are worth to those between whom it divides
// them.
type Audit struct {
	At      Instant         `json:"at"` // of the snapshot that was audited
	Policy  string          `json:"policy"`
	Tenants []AuditedTenant `json:"tenants"` // by name
	// Envy is of all pairs of tenants, by envious tenant, then by the other.
	Envy []Envy `json:"envy"`
	// Slack is by how much all throughputs together could be higher with nobody's lower, as a
	// part of what they are: 0 = Pareto efficient; negative = it was not worked out.
	Slack      float64     `json:"slack"`
	Misreports []Misreport `json:"misreports"`
}

// Most stands for all ratios above it in an audit, infinite ones too.
const Most = 1e6

// AuditedTenant is how a division treats a tenant.
type AuditedTenant struct {
	Tenant string `json:"tenant"`
	// Incentive is the throughput of what it is due, over that of a part of every model by weight:
	// below 1 it had rather be alone (sharing incentive, OEF §2.3.1).
	Incentive float64 `json:"incentive"`
	// More and Less are what it would gain, as a part, by speedups said to be a fifth higher or
	// lower than they are; nil = it was not worked out.
	More *float64 `json:"more,omitempty"`
	Less *float64 `json:"less,omitempty"`
}

// Envy is what another's part would be to a tenant at its own weight and demand, over what its
// own is: above 1 it would rather have that.
type Envy struct {
	Tenant string  `json:"tenant"`
	Of     string  `json:"of"`
	Ratio  float64 `json:"ratio"`
}

// Misreport is a declared rate, or speedup over another model, that observation does not
// bear out.
type Misreport struct {
	Kind    Kind    `json:"kind"`
	Model   string  `json:"model"`
	Than    string  `json:"than,omitempty"` // a speedup over this model is meant; "" = the rate itself
	Gang    int     `json:"gang"`
	By      string  `json:"by"` // who declared it
	Said    float64 `json:"said"`
	Seen    float64 `json:"seen"`
	Spread  float64 `json:"spread"` // of what was seen, as a part
	Samples int     `json:"samples"`
}
