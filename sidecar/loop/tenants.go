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
	below    map[string][]string // the accounts right below an account, by name
	known    map[string]string   // cache: the tenant of every account queried so far
	recent   [64]answer          // the last ones, by spot: comparing a name is faster than a map lookup
	level    int
	inner    map[string]bool  // the accounts above the level with accounts below them
	busy     []string         // those of them with jobs of their own at the last call of tenants
	list     []cluster.Tenant // the tenants with that, by name
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

// maxShares limits the shares of an account, so that the sums of shares of a site fit into 64 bits. Slurm's own limit is lower.
const maxShares = 1 << 31

// root is the name of Slurm's uppermost account.
const root = "root"

func growTree(accounts []cluster.Account, level int) *tree {
	t := &tree{accounts: slices.Clone(accounts), parent: map[string]cluster.Account{}, below: map[string][]string{},
		known: map[string]string{}, level: max(level, 1), inner: map[string]bool{}}
	for _, a := range accounts {
		if a.Parent == "" && a.Name != root {
			a.Parent = root
		}
		t.parent[a.Name] = a
	}
	for name, a := range t.parent {
		if name != root {
			t.below[a.Parent] = append(t.below[a.Parent], name)
		}
	}
	for name, list := range t.below {
		slices.Sort(list)
		if n := len(t.path(name)); n > 0 && n < t.level {
			t.inner[name] = true
		}
	}
	t.list = t.divide(nil)
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
	for name != root {
		a, ok := t.parent[name]
		if !ok || len(up) > len(t.parent) {
			return nil
		}
		up = append(up, name)
		name = a.Parent
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

// divide gives the tenants by name, with their weights from Slurm's shares in millionths of a millionth. busy lists the
// inner accounts that have jobs of their own, by name.
//
// The weight of an account goes to the accounts below it as Slurm's shares divide it (RawShares compare siblings only), and
// the parts add up to it, except for rounding. So nothing that happens below an account changes the sum of its tenants' weights.
func (t *tree) divide(busy []string) []cluster.Tenant {
	var out []cluster.Tenant
	var down func(name string, weight int64, depth int)
	down = func(name string, weight int64, depth int) {
		if depth == t.level || depth > 0 && len(t.below[name]) == 0 {
			out = append(out, cluster.Tenant{Name: name, Weight: weight})
			return
		}
		_, own := slices.BinarySearch(busy, name)
		parts, left := t.parts(name, weight, own, depth > 0)
		if own || left > 0 {
			out = append(out, cluster.Tenant{Name: name, Weight: left})
		}
		for i, child := range t.below[name] {
			down(child, parts[i], depth+1)
		}
	}
	down(root, whole, 0)
	for i := range out {
		if t.level > 1 {
			path := t.path(out[i].Name)
			out[i].Above = path[:min(len(path), t.level-1)]
			out[i].Under = path[0]
		}
	}
	byName(out)
	return out
}

// parts divides the weight of an account among the accounts right below it, and leaves the part of its own jobs where own is
// set. Two have no shares to compare: an account with fairshare=parent, and the account's own jobs. Each counts as
// much as the mean of the accounts with shares. If nothing below has shares, the account keeps its weight where keep is set.
func (t *tree) parts(name string, weight int64, own, keep bool) (parts []int64, left int64) {
	list := t.below[name]
	sum, sharing, equals := int64(0), int64(0), int64(0)
	for _, child := range list {
		switch a := t.parent[child]; {
		case a.ViaParent:
			equals++
		case a.Shares > 0:
			sum, sharing = sum+min(a.Shares, maxShares), sharing+1
		}
	}
	parts = make([]int64, len(list))
	if sharing+equals == 0 {
		if keep {
			left = weight
		}
		return parts, left
	}
	if own {
		equals++
	}
	compared := cluster.MulDiv(weight, sharing, sharing+equals)
	for i, child := range list {
		switch a := t.parent[child]; {
		case a.ViaParent:
			parts[i] = (weight - compared) / equals
		case a.Shares > 0:
			parts[i] = cluster.MulDiv(compared, min(a.Shares, maxShares), sum)
		}
	}
	if own {
		left = (weight - compared) / equals
	}
	return parts, left
}

// tenants lists the tenants: every account at the level, and shallower ones with no account below or with jobs of their
// own. Configured weights replace all shares: an unlisted tenant then has weight 0.
func (t *tree) tenants(jobs []cluster.Job, r *Rules) []cluster.Tenant {
	var busy []string
	for i := 0; i < len(jobs) && len(t.inner) > 0; i++ {
		if name := t.tenant(jobs[i].Account); name != "" && !slices.Contains(busy, name) && t.inner[name] {
			busy = append(busy, name)
		}
	}
	if slices.Sort(busy); !slices.Equal(busy, t.busy) {
		t.busy, t.list = busy, t.divide(busy)
	}
	if len(r.Weights)+len(r.Budgets) == 0 {
		return slices.Clip(t.list)
	}
	out := slices.Clone(t.list)
	for i := range out {
		if len(r.Weights) > 0 {
			out[i].Weight, out[i].Under, out[i].Above = r.Weights[out[i].Name], "", nil
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
// their own are tenants, too: the function finds them, the list omits those that have accounts below them.
func Tenants(accounts []cluster.Account, r *Rules) (list []cluster.Tenant, of func(account string) string) {
	t := growTree(accounts, r.TenantLevel)
	return t.tenants(nil, r), t.tenant
}
