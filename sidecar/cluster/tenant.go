package cluster

// Tenant is a Slurm account at the configured level of the account tree.
type Tenant struct {
	Name string `json:"name"`
	// Weight sets the share relative to other tenants; 0 = idle GPUs only.
	Weight int64 `json:"weight"`
	// Under is the account right below root whose weight it is a part of, if other tenants may be parts of it, too; "" = none.
	Under string `json:"under,omitempty"`
	// Above is the accounts whose weight it is a part of, from Under down. The last is the account right above it, or itself
	// where it stands for the account's own jobs or has no accounts below it.
	Above []string `json:"above,omitempty"`
	// Budget is the state of its budget; zero = it has none, or there is nothing to say about it.
	Budget TenantBudget `json:"budget,omitzero"`
}

// Funded reports whether a tenant with a weight has budget left. If none has, all count by weight as ever.
func Funded(tenants []Tenant) bool {
	for i := range tenants {
		if tenants[i].Weight > 0 && tenants[i].Budget.Since == 0 {
			return true
		}
	}
	return false
}

// TenantBudget is the state of a tenant's budget of GPU hours in its present period.
type TenantBudget struct {
	// Since is when the budget was used up; 0 = it is not, or it only warns. Until Until, when the next period begins, the
	// tenant gets idle GPUs only.
	Since Instant `json:"since,omitempty"`
	Until Instant `json:"until,omitempty"`
	News  string  `json:"news,omitempty"` // a limit that was crossed, in words, in the first round after that; "" = no news
}

// Member is a Slurm user of a tenant.
type Member struct {
	Tenant string `json:"tenant"`
	User   string `json:"user_name"`
}
