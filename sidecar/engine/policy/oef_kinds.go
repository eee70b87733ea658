package policy

// Kind is one of several kinds of jobs of a tenant.
type Kind struct {
	Name    string
	Speedup []float64 // as Tenant's
	Demand  float64   // as Tenant's, of the jobs of this kind
	Count   int       // the number of kinds that it stands for, >= 1
}

// Virtual gives a tenant for each kind of jobs of a tenant, at an equal part of its weight
// (OEF §4.2.4), so that several kinds are not worth more than one.
func Virtual(t Tenant, kinds []Kind) []Tenant {
	all := 0
	for _, kind := range kinds {
		all += kind.Count
	}
	var virtual []Tenant
	for _, kind := range kinds {
		virtual = append(virtual, Tenant{
			Name: t.Name + "/" + kind.Name, Weight: t.Weight * float64(kind.Count) / float64(all),
			Speedup: kind.Speedup, Demand: min(kind.Demand, t.Demand),
		})
	}
	return virtual
}
