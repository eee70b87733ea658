package lease

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Slurm may start a loose candidate in any of its pools: one in which it may not bind GPUs keeps it from all.
func TestLooseCandidatesMustBeAllowedInAllPools(t *testing.T) {
	in := Input{Lanes: []Lane{{GPUs: cluster.Micro(8)}, {GPUs: cluster.Micro(8)}}, Tenants: []Tenant{{Shares: []Share{{Entitlement: 4_000_000}, {Entitlement: 0}}}}}
	c := &chooser{in: in, bound: openBindings(&in, new(Memory), 2)}
	for _, loose := range []bool{false, true} {
		k := Candidate{GPUs: cluster.Micro(2), Pools: []int{0, 1}, Keeping: Keeping{Binds: BindsLong, Loose: loose}}
		if got := c.mayBind(&k, 0); got == loose {
			t.Errorf("loose %v: it may bind %v in the pool where its tenant is due 4", loose, got)
		}
	}
}
