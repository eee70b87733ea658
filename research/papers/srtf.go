package papers

import "github.com/fairlease/fairlease/sidecar/sim/baseline"

import (
	"cmp"
	"slices"
)

// newSRTF makes shortest remaining time first, the bound for mean completion times: it is told how long each job still
// runs, and knows no tenants. Jobs are ordered by the GPU time that remains to them (Tiresias §2.2 calls that shortest
// remaining service first), which is the better order for gangs. It preempts at the ends of leases.
func newSRTF(o baseline.Options) rule {
	return func(r *round) {
		r.UpForRenewal()
		line := r.Contenders()
		needs := r.needs(line, o.Runs)
		slices.SortStableFunc(line, func(a, b int) int { return cmp.Compare(needs[a], needs[b]) })
		r.Contest(line)
	}
}
