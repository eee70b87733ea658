package loop

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// The tree of these tests; shares in brackets:
//
//	root
//	├── physics (3)
//	│   ├── astro (2)
//	│   │   └── radio (1)
//	│   └── solid (2)
//	├── bio (1)
//	│   ├── gene (parent)
//	│   └── cell (5)
//	├── guests (0)
//	└── loners (parent)
func tree3() []cluster.Account {
	return []cluster.Account{{Name: "root"},
		{Name: "physics", Parent: "root", Shares: 3}, {Name: "bio", Parent: "root", Shares: 1},
		{Name: "guests", Parent: "root"}, {Name: "loners", Parent: "root", ViaParent: true},
		{Name: "astro", Parent: "physics", Shares: 2}, {Name: "solid", Parent: "physics", Shares: 2},
		{Name: "radio", Parent: "astro", Shares: 1},
		{Name: "gene", Parent: "bio", ViaParent: true, Shares: 99}, {Name: "cell", Parent: "bio", Shares: 5},
	}
}

// "π_j = product along the account tree of shares / Σ siblings'
// shares (RawShares compare siblings only; `parent` passes through)".
func TestWeights(t *testing.T) {
	for _, c := range []struct {
		account string
		of      [2]int64 // the weight as a fraction of the whole
	}{
		{"physics", [2]int64{3, 4}}, {"bio", [2]int64{1, 4}},
		{"guests", [2]int64{0, 1}}, // no shares: only idle GPUs
		{"loners", [2]int64{1, 1}}, // passes root's share through
		{"astro", [2]int64{3, 8}},  // 3/4 · 2/4
		{"radio", [2]int64{3, 8}},  // an only child
		{"gene", [2]int64{1, 4}},   // passes bio's share through
		{"cell", [2]int64{1, 4}},   // 5/5: gene's shares are not compared
	} {
		want := whole / c.of[1] * c.of[0]
		if got := growTree(tree3(), 1).weight(c.account); got != want {
			t.Errorf("%s weighs %d, want %d/%d of the whole", c.account, got, c.of[0], c.of[1])
		}
	}
	zeros := []cluster.Account{{Name: "root"}, {Name: "a", Parent: "root"}, {Name: "b", Parent: "root", Shares: -1}}
	for _, name := range []string{"a", "b"} {
		if got := growTree(zeros, 1).weight(name); got != 0 {
			t.Errorf("with all siblings at 0 %s weighs %d, want 0", name, got)
		}
	}
	odd := []cluster.Account{{Name: "root"}, {Name: "a", Parent: "root", Shares: 2690}, {Name: "b", Parent: "root", Shares: 36}}
	if a, b := growTree(odd, 1).weight("a"), growTree(odd, 1).weight("b"); a*36 < (b-1)*2690 || a*36 > (b+1)*2690 {
		t.Errorf("2690:36 became %d:%d", a, b)
	}
}

func TestTheTenantOfAnAccount(t *testing.T) {
	accounts := append(tree3(), cluster.Account{Name: "orphan", Parent: "nobody"},
		cluster.Account{Name: "ring1", Parent: "ring2"}, cluster.Account{Name: "ring2", Parent: "ring1"})
	for _, c := range []struct {
		account        string
		level1, level2 string
	}{
		{"physics", "physics", "physics"}, // above the level: itself
		{"astro", "physics", "astro"},
		{"radio", "physics", "astro"},
		{"gene", "bio", "gene"},
		{"guests", "guests", "guests"},
		{"root", "", ""},
		{"unknown", "", ""},
		{"orphan", "", ""},
		{"ring1", "", ""},
		{"", "", ""},
	} {
		if got := growTree(accounts, 1).tenant(c.account); got != c.level1 {
			t.Errorf("level 1: %q belongs to %q, want %q", c.account, got, c.level1)
		}
		if got := growTree(accounts, 2).tenant(c.account); got != c.level2 {
			t.Errorf("level 2: %q belongs to %q, want %q", c.account, got, c.level2)
		}
	}
}

func TestTenantsAreTheAccountsAtTheLevel(t *testing.T) {
	names := func(level int, weights map[string]int64, accounts ...string) []string {
		var jobs []cluster.Job
		for _, a := range accounts {
			jobs = append(jobs, cluster.Job{Account: a})
		}
		var out []string
		for _, tenant := range growTree(tree3(), level).tenants(jobs, &Rules{Weights: weights}) {
			out = append(out, tenant.Name)
		}
		return out
	}
	for _, c := range []struct {
		name string
		got  []string
		want []string
	}{
		{"level 1", names(1, nil), []string{"bio", "guests", "loners", "physics"}},
		{"level 2", names(2, nil), []string{"astro", "cell", "gene", "solid"}},
		{"level 2 and jobs above it", names(2, nil, "physics", "radio", "unknown"), []string{"astro", "cell", "gene", "physics", "solid"}},
		{"level 0 is 1", names(0, nil), []string{"bio", "guests", "loners", "physics"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	for _, tenant := range growTree(tree3(), 1).tenants(nil, &Rules{Weights: map[string]int64{"bio": 7}}) {
		if want := map[string]int64{"bio": 7}[tenant.Name]; tenant.Weight != want {
			t.Errorf("configured weights: %s weighs %d, want %d", tenant.Name, tenant.Weight, want)
		}
	}
}
