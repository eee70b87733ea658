package entitle

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// relative is a tenant whose weight is a part of an account's.
type relative struct {
	tenant      round.TenantIndex
	above       []string // cluster.Tenant.Above
	quota, want cluster.MicroGPU
	part        cluster.MicroGPU
	all         cluster.MicroGPU // sum of its parts in all pools
}

// nest returns the quotas with the sum of each account divided among the tenants below it by what they want: what a tenant does not
// want goes to the others below the same account first, and only what none of them wants is left to all. Otherwise an account
// whose jobs are spread over all its sub-accounts would get more than one with a few busy ones. nest also sets the weights in that
// proportion. active is the jobs that count as demand, by tenant; base is the quotas by weight, without cells of tenants' own.
func (x *shares) nest(base byTenant, active [][]ltgf.Claimant, own *round.Owned) byTenant {
	nested := round.TableOf[round.TenantIndex](slices.Clone(base.Cells), len(x.in.Pools))
	families := groups(relatives(x.in.Tenants, x.in.Snapshot.Tenants), 0)
	for p := range x.in.Pools {
		for _, family := range families {
			total := cluster.MicroGPU(0)
			for i := range family {
				r := &family[i]
				r.quota, r.want = *base.At(r.tenant, p), wanted(active[r.tenant], p)
				if own != nil {
					r.want = max(r.want-cluster.MicroGPU(own.Base[p][r.tenant])*cluster.WholeGPU, 0)
				}
				total += r.quota
			}
			divide(family, 1, total)
			for i := range family {
				r := &family[i]
				*nested.At(r.tenant, p) = r.part
				r.all += r.part
			}
		}
	}
	for _, family := range families {
		weight, all := int64(0), cluster.MicroGPU(0)
		for i := range family {
			weight, all = weight+x.weights[family[i].tenant], all+family[i].all
		}
		for i := range family {
			if all > 0 {
				x.weights[family[i].tenant] = cluster.MulDiv(weight, int64(family[i].all), int64(all))
			}
		}
	}
	return nested
}

// relatives returns the tenants below accounts, those below the same account one after the other. names is the tenants of the ledger,
// and all is those of the snapshot, by name.
func relatives(names []string, all []cluster.Tenant) []relative {
	var out []relative
	for i := range all {
		if len(all[i].Above) == 0 {
			continue
		}
		if t, ok := slices.BinarySearch(names, all[i].Name); ok {
			out = append(out, relative{tenant: round.TenantIndex(t), above: all[i].Above})
		}
	}
	slices.SortStableFunc(out, func(a, b relative) int { return slices.Compare(a.above, b.above) })
	return out
}

// wanted returns the GPUs of a pool that a tenant's jobs could use.
func wanted(active []ltgf.Claimant, pool int) cluster.MicroGPU {
	sum := cluster.MicroGPU(0)
	for _, c := range active {
		if slices.Contains(c.Pools, pool) {
			sum += c.In(pool)
		}
	}
	return sum
}

// groups splits relatives by the account at a depth above them, 0 = right below root. One with fewer accounts above it is alone.
func groups(all []relative, depth int) [][]relative {
	var out [][]relative
	for len(all) > 0 {
		n := 1
		for len(all[0].above) > depth && n < len(all) && len(all[n].above) > depth && all[n].above[depth] == all[0].above[depth] {
			n++
		}
		out, all = append(out, all[:n]), all[n:]
	}
	return out
}

// divide sets the parts that relatives with the same accounts above them, down to a depth, get of a total.
func divide(family []relative, depth int, total cluster.MicroGPU) {
	if len(family) == 1 {
		family[0].part = total
		return
	}
	branches := groups(family, depth)
	quotas, wants := make([]int64, len(branches)), make([]cluster.MicroGPU, len(branches))
	for b, branch := range branches {
		for i := range branch {
			quotas[b] += int64(branch[i].quota)
			wants[b] += branch[i].want
		}
	}
	for b, part := range policy.Readjust(total, quotas, wants) {
		divide(branches[b], depth+1, part)
	}
}
