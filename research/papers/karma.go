package papers

import "github.com/fairlease/fairlease/sidecar/sim/baseline"

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// guaranteedPart is Karma's alpha in its evaluation: the part of its share that a user has whatever its credits are.
const guaranteedPart = 0.5

// newKarma makes Karma (Vuppalapati et al., OSDI'23, §3, Algorithm 1). Users are tenants, slices GPUs, and quanta terms. A tenant has
// alpha of its share in any case. The rest of all shares, and what tenants with little demand leave of their guaranteed part, goes slice
// by slice to the tenant with the most credits. A slice costs a credit. Each tenant gets 1 - alpha of its share as credits; a slice of a
// guaranteed part that others use gives its owner one, the owner with the fewest first.
//
// Left open by the paper, and chosen for the baseline: credits are GPU time, charged by what was received, so that a preview leaves no
// trace; a credit of a tenant with twice the share is worth half as much; slices are those of all pools; what gangs leave
// empty goes to other jobs, of tenants with the most credits first; nobody runs out of credits.
func newKarma(baseline.Options) rule {
	k := &karma{}
	return func(r *round) {
		r.Grid = true
		k.charge(r)
		r.UpForRenewal()
		line := r.Contenders()
		slices.SortStableFunc(line, k.order(r, line))
		r.Contest(line)
	}
}

// karma is the credits of tenants: those of the last committed round, and those of this one.
type karma struct{ was, is credits }

// credits is the tenants' state at a moment.
type credits struct {
	at cluster.Instant
	of map[string]account
}

// account is a tenant's credits in GPU-milliseconds, for each GPU of its share, and how many GPUs its jobs want.
type account struct{ credits, wants float64 }

// shares gives the tenants' shares, in GPUs.
func (r *round) shares() []float64 {
	shares := make([]float64, len(r.Field.In.Tenants))
	for i := range r.Field.Due.Ledger.Tenants {
		shares[i/len(r.Field.In.Pools)] += float64(r.Field.Due.Ledger.Tenants[i].Base) / float64(cluster.WholeGPU)
	}
	return shares
}

// charge brings the credits up to now.
func (k *karma) charge(r *round) {
	if k.is.at == r.Snapshot.Ledger.At {
		k.was = k.is
	}
	k.is = credits{at: r.Now, of: make(map[string]account, len(r.Field.In.Tenants))}
	shares, got := r.shares(), make(map[string]float64, len(r.Field.In.Tenants))
	for i := range r.Field.In.Records {
		got[r.Field.In.Records[i].Tenant] += float64(r.Field.In.Records[i].Alloc - r.Snapshot.Cases[i].Record.Alloc)
	}
	span := float64(r.Now.Sub(max(k.was.at, r.Snapshot.Ledger.At)))
	if k.was.at == 0 {
		span = 0
	}
	borrowed := 0.0
	var donors []int
	for t, name := range r.Field.In.Tenants {
		a := k.was.of[name]
		if sure := guaranteedPart * shares[t]; shares[t] > 0 {
			more := max(got[name]-sure*span, 0)
			borrowed += more
			a.credits += (1-guaranteedPart)*span - more/shares[t]
			if a.wants < sure {
				donors = append(donors, t)
			}
		}
		k.is.of[name] = a
	}
	slices.SortStableFunc(donors, func(a, b int) int {
		return cmp.Compare(k.is.of[r.Field.In.Tenants[a]].credits, k.is.of[r.Field.In.Tenants[b]].credits)
	})
	for _, t := range donors {
		a := k.is.of[r.Field.In.Tenants[t]]
		used := min(borrowed, (guaranteedPart*shares[t]-a.wants)*span)
		borrowed -= used
		a.credits += used / shares[t]
		k.is.of[r.Field.In.Tenants[t]] = a
	}
	wants := make([]float64, len(r.Field.In.Tenants))
	for i := range r.Jobs {
		if j := &r.Jobs[i]; j.Tenant >= 0 {
			wants[j.Tenant] += float64(j.GPUs)
		}
	}
	for t, name := range r.Field.In.Tenants {
		a := k.is.of[name]
		a.wants = wants[t]
		k.is.of[name] = a
	}
}

// slices gives how many GPUs each tenant has in the next quantum.
func (k *karma) slices(r *round) []float64 {
	shares, out, left := r.shares(), make([]float64, len(r.Field.In.Tenants)), 0.0
	have := make([]float64, len(r.Field.In.Tenants))
	for t, name := range r.Field.In.Tenants {
		a := k.is.of[name]
		out[t], have[t] = min(guaranteedPart*shares[t], a.wants), a.credits
		left += shares[t] - out[t]
	}
	for left > 0 {
		best := -1
		for t, name := range r.Field.In.Tenants {
			if shares[t] > 0 && out[t] < k.is.of[name].wants && (best < 0 || have[t] > have[best]) {
				best = t
			}
		}
		if best < 0 {
			return out
		}
		slice := min(1, left, k.is.of[r.Field.In.Tenants[best]].wants-out[best])
		out[best], left = out[best]+slice, left-slice
		have[best] -= slice * float64(r.Settings.Term) / shares[best]
	}
	return out
}

// order compares jobs of a line: those within their tenants' slices first, as they came; then those of tenants with the most credits.
func (k *karma) order(r *round, line []int) func(a, b int) int {
	left := k.slices(r)
	for i := range r.Jobs {
		if j := &r.Jobs[i]; j.Tenant >= 0 && j.Lease != nil && !j.Soft {
			left[j.Tenant] -= float64(j.Lease.Size.Devices)
		}
	}
	type turn struct {
		rest    int // 1 = beyond its tenant's slices
		credits float64
	}
	turns := make(map[int]turn, len(line))
	for _, i := range line {
		j := &r.Jobs[i]
		if j.Tenant < 0 {
			turns[i] = turn{1, math.Inf(-1)}
		} else if gpus := float64(j.GPUs); left[j.Tenant] > gpus-0.5 { // shares are no whole GPUs
			left[j.Tenant] -= gpus
		} else {
			turns[i] = turn{1, k.is.of[r.Field.In.Tenants[j.Tenant]].credits}
		}
	}
	return func(a, b int) int {
		x, y := turns[a], turns[b]
		return cmp.Or(cmp.Compare(x.rest, y.rest), cmp.Compare(y.credits, x.credits))
	}
}
