package loop

import (
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// tree finds the tenant of an account.
type tree struct {
	accounts []cluster.Account // its input
	parent   map[string]cluster.Account
	sums     map[string]int64
	known    map[string]string // cache: the tenant of every account queried so far
	recent   [64]answer        // the last ones, by spot: comparing a name is faster than a map lookup
	level    int
	standing []cluster.Tenant // the accounts at the level, by name
	above    map[string]bool  // the accounts above it
}

// answer is the tenant of an account.
type answer struct{ account, tenant string }

// spot gives the cache index of an account; several accounts may share one.
func spot(account string) int {
	at := 0
	for i := max(len(account)-4, 0); i < len(account); i++ {
		at = 10*at + int(account[i])
	}
	return at % len(tree{}.recent)
}

// whole is the share of the whole cluster in the units of a tenant's weight.
const whole = 1_000_000_000_000

func growTree(accounts []cluster.Account, level int) *tree {
	t := &tree{accounts: slices.Clone(accounts), parent: map[string]cluster.Account{}, sums: map[string]int64{},
		known: map[string]string{}, level: max(level, 1), above: map[string]bool{}}
	for _, a := range accounts {
		t.parent[a.Name] = a
		if !a.ViaParent {
			t.sums[a.Parent] += max(a.Shares, 0)
		}
	}
	for name := range t.parent {
		switch n := len(t.path(name)); {
		case n == t.level:
			t.standing = append(t.standing, cluster.Tenant{Name: name, Weight: t.weight(name)})
		case n > 0 && n < t.level:
			t.above[name] = true
		}
	}
	byName(t.standing)
	return t
}

// fits tells whether the same input would give the same tree.
func (t *tree) fits(accounts []cluster.Account, level int) bool {
	return t != nil && t.level == max(level, 1) && slices.Equal(t.accounts, accounts)
}

// path gives the accounts from below root down to name; nil for a missing account, for root, and
// for a broken tree.
func (t *tree) path(name string) []string {
	var up []string
	for name != "root" {
		a, ok := t.parent[name]
		if !ok || len(up) > len(t.parent) {
			return nil
		}
		up = append(up, name)
		name = a.Parent
		if name == "" {
			break
		}
	}
	slices.Reverse(up)
	return up
}

// tenant gives the tenant of an account: its ancestor at the level, or itself if it is above the
// level; "" if there is none.
func (t *tree) tenant(account string) string {
	last := &t.recent[spot(account)]
	if last.account == account {
		return last.tenant
	}
	name, ok := t.known[account]
	if !ok {
		if p := t.path(account); len(p) > 0 {
			name = p[min(t.level, len(p))-1]
		}
		t.known[account] = name
	}
	*last = answer{account, name}
	return name
}

// weight gives the product of shares over siblings' shares along the tree, in
// millionths of a millionth (RawShares compare siblings only;
// fairshare=parent passes through).
func (t *tree) weight(account string) int64 {
	w := int64(whole)
	for _, name := range t.path(account) {
		if a := t.parent[name]; !a.ViaParent {
			w = cluster.MulDiv(w, max(a.Shares, 0), max(t.sums[a.Parent], 1))
		}
	}
	return w
}

// tenants lists the tenants: every account at the level, and shallower ones with jobs of their
// own. Configured weights replace all shares: an unlisted tenant then has weight 0.
func (t *tree) tenants(jobs []cluster.Job, r *Rules) []cluster.Tenant {
	out := slices.Clone(t.standing)
	for i := 0; i < len(jobs) && len(t.above) > 0; i++ {
		if name := t.tenant(jobs[i].Account); name != "" && t.above[name] && !slices.ContainsFunc(out[len(t.standing):], func(x cluster.Tenant) bool { return x.Name == name }) {
			out = append(out, cluster.Tenant{Name: name, Weight: t.weight(name)})
		}
	}
	byName(out)
	for i := range out {
		if len(r.Weights) > 0 {
			out[i].Weight = r.Weights[out[i].Name]
		}
		out[i].Budget = r.Budgets[out[i].Name]
	}
	return out
}

func byName(tenants []cluster.Tenant) {
	slices.SortFunc(tenants, func(a, b cluster.Tenant) int { return strings.Compare(a.Name, b.Name) })
}

// Tenants lists the tenants that the rules make of an account tree, by name, and gives a function
// that finds the tenant of an account, "" = none. Accounts above the level that have jobs of
// their own are tenants, too: the function finds them, the list omits them.
func Tenants(accounts []cluster.Account, r *Rules) (list []cluster.Tenant, of func(account string) string) {
	t := growTree(accounts, r.TenantLevel)
	return t.tenants(nil, r), t.tenant
}
