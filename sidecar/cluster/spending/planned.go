package spending

import "github.com/fairlease/fairlease/sidecar/cluster"

// DevicePrice gives the price of an hour of a device of a model: of what it counts as (cluster.Settings.Worths).
func (b *Budget) DevicePrice(s *cluster.Settings, model string) float64 {
	return b.Price(model) * s.Worth(model).Float()
}

// Range gives the lowest and the highest price of an hour of a device among the models of nodes; 1 if there are none.
func (b *Budget) Range(s *cluster.Snapshot) (least, most float64) {
	some := false
	for i := range s.Nodes {
		for _, g := range s.Nodes[i].GPUs {
			price := b.DevicePrice(&s.Settings, g.Model)
			if !some {
				least, most, some = price, price, true
			}
			least, most = min(least, price), max(most, price)
		}
	}
	if !some {
		return 1, 1
	}
	return least, most
}

// Planned gives the GPU hours at prices that the tenant's jobs of a snapshot may still use in the period, from the count of the account on: running jobs
// until their time limits end, waiting ones from their users' begin times on for their whole time limits, and all of them until the period ends at most.
// A waiting job that accepts any model counts as on the cheapest, and with features as on the dearest, as in the submit plugin (gate_hours).
func (a *Account) Planned(s *cluster.Snapshot) float64 {
	rest, sum := a.End.Sub(a.At), 0.0
	cheapest, dearest := a.Range(s)
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
				sum += h.Size.Over(max(left, 0)).Hours() * a.DevicePrice(&s.Settings, h.Model)
			}
		case j.State == cluster.Waiting && (j.Het == 0 || j.Parts > 0):
			price, left := cheapest, a.End.Sub(max(a.At, c.Record.UserBegin))
			switch {
			case j.Request.Model != "":
				price = a.DevicePrice(&s.Settings, j.Request.Model)
			case j.Request.Features != "":
				price = dearest
			}
			if j.Limit > 0 {
				left = min(left, j.Limit)
			}
			sum += j.Request.Size.Over(max(left, 0)).Hours() * price
		}
	}
	return sum
}
