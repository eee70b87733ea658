package ltgf

import (
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Whatever happens below an account, its tenants' deficits and debts keep their sums, by age too, and those of other tenants do not change.
func TestAccountsGoAlongWithWeight(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 8).Draw(rt, "tenants")
		pools := rapid.IntRange(1, 2).Draw(rt, "pools")
		l := cluster.Ledger{Pools: make([]cluster.PoolAccount, pools)}
		var tenants []cluster.Tenant
		var base []cluster.MicroGPU
		for i := range n {
			name, under := "t"+strconv.Itoa(i), rapid.SampledFrom([]string{"", "x", "y"}).Draw(rt, "under")
			here, before := rapid.Bool().Draw(rt, "here"), rapid.Bool().Draw(rt, "before")
			if here {
				tenants = append(tenants, cluster.Tenant{Name: name, Under: under})
			}
			for p := range pools {
				row := cluster.TenantPool{Tenant: name, Pool: strconv.Itoa(p)}
				if before {
					row.Under, row.Alloc = under, 1
					row.Base = cluster.MicroGPU(rapid.IntRange(0, 8_000_000).Draw(rt, "was"))
					row.Deficit = cluster.GPUTime(rapid.IntRange(-1_000_000, 1_000_000).Draw(rt, "deficit"))
					sign := cluster.GPUTime(rapid.SampledFrom([]int{-1, 1}).Draw(rt, "sign"))
					for at := range rapid.IntRange(0, 3).Draw(rt, "lots") {
						lot := cluster.Lot{Start: cluster.Instant(at), Time: sign * cluster.GPUTime(rapid.IntRange(1, 1_000_000).Draw(rt, "lot"))}
						row.Lots, row.Owed = append(row.Lots, lot), row.Owed+lot.Time
					}
				}
				l.Tenants = append(l.Tenants, row)
				base = append(base, 0)
				if here {
					base[len(base)-1] = cluster.MicroGPU(rapid.IntRange(0, 8_000_000).Draw(rt, "is"))
				}
			}
		}
		type sum struct{ deficit, owed cluster.GPUTime }
		sums := func() map[string]sum {
			out := map[string]sum{}
			for i, row := range l.Tenants {
				key := row.Pool + "/" + row.Under
				if row.Under == "" {
					key += row.Tenant
				}
				lots := cluster.GPUTime(0)
				for k, lot := range row.Lots {
					if lots += lot.Time; k > 0 && (row.Lots[k-1].Start >= lot.Start || (row.Lots[k-1].Time > 0) != (lot.Time > 0)) {
						rt.Fatalf("row %d: lots %v are not in order and of one sign", i, row.Lots)
					}
				}
				if lots != row.Owed {
					rt.Fatalf("row %d: lots sum to %d, it is owed %d", i, lots, row.Owed)
				}
				out[key] = sum{out[key].deficit + row.Deficit, out[key].owed + row.Owed}
			}
			return out
		}
		for i := range l.Tenants { // as Inherit sees them
			if k := slices.IndexFunc(tenants, func(x cluster.Tenant) bool { return x.Name == l.Tenants[i].Tenant }); k >= 0 {
				l.Tenants[i].Under = tenants[k].Under
			}
		}
		before := sums()
		Inherit(&l, tenants, base)
		for key, now := range sums() {
			if now != before[key] {
				rt.Fatalf("%s: %+v became %+v", key, before[key], now)
			}
		}
	})
}

// A sub-account under another name takes over all, and is no newcomer; six take over a sixth each.
func TestASubAccountUnderAnotherNameKeepsWhatItOwes(t *testing.T) {
	const gpu, hour = cluster.WholeGPU, cluster.GPUTime(cluster.Hour)
	for _, heirs := range []int{1, 6} {
		l := cluster.Ledger{Pools: make([]cluster.PoolAccount, 1), Tenants: []cluster.TenantPool{
			{Tenant: "old", Under: "nlp", Base: 6 * gpu, Entitlement: 6 * gpu, Alloc: hour, Deficit: -6 * hour, Owed: -12 * hour, Lots: []cluster.Lot{{Time: -12 * hour}}},
			{Tenant: "other", Under: "vision", Base: 6 * gpu, Entitlement: 6 * gpu, Alloc: hour, Deficit: 6 * hour, Owed: 12 * hour, Lots: []cluster.Lot{{Time: 12 * hour}}}}}
		tenants, base := []cluster.Tenant{{Name: "other", Under: "vision"}}, []cluster.MicroGPU{0, 6 * gpu}
		for i := range heirs {
			name := "x" + strconv.Itoa(i)
			l.Tenants = append(l.Tenants, cluster.TenantPool{Tenant: name})
			tenants, base = append(tenants, cluster.Tenant{Name: name, Under: "nlp"}), append(base, 6*gpu/cluster.MicroGPU(heirs))
		}
		Inherit(&l, tenants, base)
		for i, row := range l.Tenants {
			share := cluster.GPUTime(heirs)
			want := []cluster.GPUTime{0, 6 * hour, -6 * hour / share}[min(i, 2)]
			if row.Deficit != want || row.Owed != 2*want {
				t.Errorf("%d heirs: %s has a deficit of %d and is owed %d, want %d and %d", heirs, row.Tenant, row.Deficit, row.Owed, want, 2*want)
			}
			if i > 1 && isNew(&row) {
				t.Errorf("%d heirs: %s counts as new", heirs, row.Tenant)
			}
		}
	}
}
