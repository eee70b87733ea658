package answer

import (
	"math"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
)

// scattering is a question of two tenants with 16 GPUs. The gangs of a have their fewest nodes on four of them. They keep a part of their speed on the others; 0 =
// that is not known.
func scattering(part float64) cluster.AllocationRequest {
	q := cluster.AllocationRequest{Pools: []cluster.GPUs{{Model: "v100", Count: 16}}, Together: []int{250}}
	for n := range 20 {
		b := job("b", "", n+1, 1, 1)
		if n < 4 {
			if b = job("a", "", n+1, 4, 1); part > 0 {
				b.Apart = []float64{part}
			}
		}
		q.Bids = append(q.Bids, b)
	}
	return q
}

// has gives the GPUs of each tenant.
func has(q *cluster.AllocationRequest, d *cluster.Allocation) (a, b float64) {
	for i := range d.Parts {
		for _, gpus := range d.Parts[i].GPUs {
			if q.Bids[i].Tenant == "a" {
				a += float64(gpus) / float64(cluster.WholeGPU)
			} else {
				b += float64(gpus) / float64(cluster.WholeGPU)
			}
		}
	}
	return a, b
}

// Gangs that are slower on more nodes have the nodes that they need first, and both tenants gain by that: with y of the other GPUs, and half of the speed there, a has
// (4 + y/2) / 5 of its half of all, and b (12 - y) / 8 of its own.
func TestScatteredGangsOfTenants(t *testing.T) {
	for name, c := range map[string]struct {
		ways    policy.Ways
		part, a float64
	}{
		"half as fast":      {policy.Ways{}, 0.5, 4 + 28.0/9},
		"in turn":           {policy.Ways{FIFO: true}, 0.5, 4 + 28.0/9},
		"as fast":           {policy.Ways{}, 1, 8},
		"faster":            {policy.Ways{}, 1.3, 8},
		"nothing is known":  {policy.Ways{}, 0, 8},
		"no model is known": {policy.Ways{Blind: true}, 0.5, 8},
	} {
		q := scattering(c.part)
		d := Divide(q, ByTenants(c.ways))
		if a, b := has(&q, &d); math.Abs(a-c.a) > 1e-4 || math.Abs(a+b-16) > 1e-4 || d.Why != "" || len(d.Parts[0].GPUs) != 1 {
			t.Errorf("%s: a has %.4f and b %.4f GPUs, want %.4f and %.4f (%s)", name, a, b, c.a, 16-c.a, d.Why)
		}
		if two, of := Halves(&q); (of != nil) != (c.part == 0.5) {
			t.Errorf("%s: the pools are %v", name, two.Pools)
		}
	}
}

// A tenant whose jobs look slower on more nodes than they are loses by that under gavel:las. Under oef:noncoop, where all have the same throughput by what
// is said of them, it would gain: so that counts no scattered speeds.
func TestFalseScatteringGainsNothing(t *testing.T) {
	honest, says := scattering(0), scattering(0.5)
	for name, c := range map[string]struct {
		by    Policy
		gains bool
	}{
		"gavel:las":   {ByTenants(policy.Ways{}), false},
		"oef:noncoop": {ByMarket(policy.OEFNonCooperative), true},
	} {
		before := Divide(honest, c.by)
		fair, _ := has(&honest, &before)
		two, _ := Halves(&says)
		after := Divide(two, c.by)
		if a, _ := has(&two, &after); (a > fair+1e-3) != c.gains || before.Why+after.Why != "" {
			t.Errorf("%s: a has %.4f GPUs, and %.4f if its jobs look slow on more nodes", name, fair, a)
		}
	}
}

// The audit counts gangs at both speeds, as they were divided.
func TestAuditOfScatteredGangs(t *testing.T) {
	q := scattering(0.5)
	audit := Audit(&q, ByTenants(policy.Ways{}), 1, nil)
	for _, x := range audit.Tenants {
		if math.Abs(x.Incentive-10.0/9) > 1e-3 {
			t.Errorf("%s has %.4f of its share, want %.4f", x.Tenant, x.Incentive, 10.0/9)
		}
	}
}
