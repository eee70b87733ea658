package cluster_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

func TestEvenIn(t *testing.T) {
	const gpu = cluster.WholeGPU
	owed := cluster.Times(192, cluster.Hour)
	for _, c := range []struct {
		what string
		st   cluster.TenantStatus
		want cluster.Span
		ok   bool
	}{
		{"repaid", cluster.TenantStatus{Entitlement: 12 * gpu, Repays: 4 * gpu, Holds: cluster.CountOf(12), Owed: owed}, 48 * cluster.Hour, true},
		{"repays", cluster.TenantStatus{Entitlement: 4 * gpu, Repays: -4 * gpu, Holds: cluster.CountOf(4), Owed: -owed}, 48 * cluster.Hour, true},
		{"repays half of what it should", cluster.TenantStatus{Entitlement: 4 * gpu, Repays: -4 * gpu, Holds: cluster.CountOf(6), Owed: -owed}, 96 * cluster.Hour, true},
		{"holds more than its due", cluster.TenantStatus{Entitlement: 4 * gpu, Repays: -4 * gpu, Holds: cluster.CountOf(12), Owed: -owed}, 0, false},
		{"given nothing", cluster.TenantStatus{Entitlement: 8 * gpu, Holds: cluster.CountOf(12), Owed: owed}, 0, false},
		{"even", cluster.TenantStatus{Entitlement: 8 * gpu, Holds: cluster.CountOf(8)}, 0, false},
	} {
		if got, ok := c.st.EvenIn(); got != c.want || ok != c.ok {
			t.Errorf("%s: %s, %v; want %s, %v", c.what, got, ok, c.want, c.ok)
		}
	}
}
