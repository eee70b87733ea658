package spending

import "github.com/fairlease/fairlease/sidecar/cluster"

// Cheapest gives the lowest price of a GPU hour among the models of nodes; 1 if there are none.
func (b *Budget) Cheapest(nodes []cluster.Node) float64 {
	least, some := 1.0, false
	for i := range nodes {
		for _, g := range nodes[i].GPUs {
			if price := b.Price(g.Model); !some || price < least {
				least, some = price, true
			}
		}
	}
	return least
}

// Planned gives the GPU hours at prices that the tenant's jobs of a snapshot may still use in the period, from the count of the account on: running jobs
// until their time limits end, waiting ones for their whole time limits, and all of them until the period ends at most. A waiting job
// that accepts any model counts as on the cheapest.
func (a *Account) Planned(s *cluster.Snapshot) float64 {
	rest, cheapest, sum := a.End.Sub(a.At), a.Cheapest(s.Nodes), 0.0
	for i := range s.Cases {
		c := &s.Cases[i]
		j := &c.Job
		if c.Record.Tenant != a.Tenant || c.Control == cluster.Unmanaged || c.Gone {
			continue
		}
		switch {
		case j.Started():
			left := rest
			if j.Limit > 0 {
				left = min(left, j.Start.Add(j.Limit+j.Suspend).Sub(a.At))
			}
			for _, h := range j.Holds {
				sum += h.Size.Over(max(left, 0)).Hours() * a.Price(h.Model)
			}
		case j.State == cluster.Waiting && (j.Het == 0 || j.Parts > 0):
			price, left := cheapest, rest
			if j.Request.Model != "" {
				price = a.Price(j.Request.Model)
			}
			if j.Limit > 0 {
				left = min(left, j.Limit)
			}
			sum += j.Request.Size.Over(max(left, 0)).Hours() * price
		}
	}
	return sum
}
