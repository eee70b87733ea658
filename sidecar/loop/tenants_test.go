package loop

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

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

// weighs gives the weights of the tenants at a level, with jobs of the accounts.
func weighs(accounts []cluster.Account, level int, jobs ...string) map[string]int64 {
	var list []cluster.Job
	for _, a := range jobs {
		list = append(list, cluster.Job{Account: a})
	}
	out := map[string]int64{}
	for _, tenant := range growTree(accounts, level).tenants(list, &Rules{}) {
		out[tenant.Name] = tenant.Weight
	}
	return out
}

func TestWeights(t *testing.T) {
	type parts map[string][2]int64 // weights as fractions of the whole
	for _, c := range []struct {
		name  string
		level int
		jobs  []string
		want  parts
	}{
		{"level 1: loners counts as the mean of physics and bio", 1, nil,
			parts{"physics": {1, 2}, "bio": {1, 6}, "guests": {0, 1}, "loners": {1, 3}}},
		{"level 2: the sums of physics and bio are those of level 1", 2, nil,
			parts{"astro": {1, 4}, "solid": {1, 4}, "gene": {1, 12}, "cell": {1, 12}, "guests": {0, 1}, "loners": {1, 3}}},
		{"jobs of an account above the level take a mean part of it", 2, []string{"physics", "radio"},
			parts{"astro": {1, 6}, "solid": {1, 6}, "physics": {1, 6}, "gene": {1, 12}, "cell": {1, 12}, "guests": {0, 1}, "loners": {1, 3}}},
		{"level 3: an only child has all", 3, nil,
			parts{"radio": {1, 4}, "solid": {1, 4}, "gene": {1, 12}, "cell": {1, 12}, "guests": {0, 1}, "loners": {1, 3}}},
	} {
		got := weighs(tree3(), c.level, c.jobs...)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v", c.name, got)
		}
		for name, part := range c.want {
			if want := cluster.MulDiv(whole, part[0], part[1]); got[name] < want-2 || got[name] > want+2 {
				t.Errorf("%s: %s weighs %d, want %d/%d of the whole", c.name, name, got[name], part[0], part[1])
			}
		}
	}
}

func TestWeightsOfZeroAndOddShares(t *testing.T) {
	zeros := []cluster.Account{{Name: "root"}, {Name: "a", Parent: "root"}, {Name: "b", Parent: "root", Shares: -1}}
	if got := weighs(zeros, 1); len(got) != 2 || got["a"] != 0 || got["b"] != 0 {
		t.Errorf("with all siblings at 0: %v, want 0", got)
	}
	// Shares of 0 give the weight to no other account: dept keeps it.
	kept := []cluster.Account{{Name: "root"}, {Name: "dept", Parent: "root", Shares: 1}, {Name: "a", Parent: "dept"}, {Name: "b", Parent: "dept"}}
	if got := weighs(kept, 2); len(got) != 3 || got["a"] != 0 || got["b"] != 0 || got["dept"] != whole {
		t.Errorf("with all below dept at 0: %v, want all for dept", got)
	}
	odd := weighs([]cluster.Account{{Name: "root"}, {Name: "a", Parent: "root", Shares: 2690}, {Name: "b", Parent: "root", Shares: 36}}, 1)
	if a, b := odd["a"], odd["b"]; a*36 < (b-1)*2690 || a*36 > (b+1)*2690 {
		t.Errorf("2690:36 became %d:%d", a, b)
	}
	broken := []cluster.Account{{Name: "root", Parent: "root"}, {Name: "a", Parent: "root", Shares: 1}, {Name: "b", Shares: 1}, // b is right below root
		{Name: "orphan", Parent: "nobody", Shares: 8}, {Name: "ring1", Parent: "ring2", Shares: 8}, {Name: "ring2", Parent: "ring1", Shares: 8}, {Name: "self", Parent: "self", Shares: 8}}
	for level := 1; level <= 3; level++ {
		if got := weighs(broken, level); len(got) != 2 || got["a"] != whole/2 || got["b"] != whole/2 {
			t.Errorf("broken tree, level %d: %v, want half each for a and b", level, got)
		}
	}
}

// The sum of the weights below an account never depends on what is below it: accounts, their places, their shares and flags, and
// jobs.
func TestNothingBelowAnAccountChangesTheSumOfItsWeights(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		level := rapid.IntRange(1, 4).Draw(rt, "level")
		draw := func(name, parent string) cluster.Account {
			a := cluster.Account{Name: name, Parent: parent, Shares: rapid.SampledFrom([]int64{0, 1, 1, 2, 3, 7, 1000, 1<<31 - 2}).Draw(rt, "shares")}
			a.ViaParent = rapid.IntRange(0, 3).Draw(rt, "parent") == 0
			return a
		}
		// below draws accounts below a place.
		below := func(place, prefix string) []cluster.Account {
			var out []cluster.Account
			names := []string{place}
			for i := range rapid.IntRange(0, 9).Draw(rt, "accounts") {
				name := prefix + strconv.Itoa(i)
				out = append(out, draw(name, rapid.SampledFrom(names).Draw(rt, "below")))
				names = append(names, name)
			}
			return out
		}
		base := append([]cluster.Account{{Name: "root"}}, below("root", "a")...)
		node := draw("node", rapid.SampledFrom(base).Draw(rt, "place").Name)
		base = append(base, node)
		var jobs []string
		for _, a := range base {
			if a.Name != "root" && rapid.IntRange(0, 3).Draw(rt, "job") == 0 {
				jobs = append(jobs, a.Name)
			}
		}
		if growTree(base, level).path("node") == nil || len(growTree(base, level).path("node")) > level {
			return // it is part of a tenant
		}
		sums := func() (inside, all int64, others map[string]int64) {
			others = map[string]int64{}
			sub, more := below("node", rapid.SampledFrom([]string{"x", "m"}).Draw(rt, "names")), slices.Clone(jobs)
			for _, a := range append(slices.Clone(sub), node) {
				if rapid.Bool().Draw(rt, "job below") {
					more = append(more, a.Name)
				}
			}
			tree := append(slices.Clone(base), sub...)
			for name, weight := range weighs(rapid.Permutation(tree).Draw(rt, "order"), level, more...) {
				if slices.Contains(growTree(tree, level).path(name), "node") {
					inside += weight
				} else {
					others[name] = weight
				}
				all += weight
			}
			return inside, all, others
		}
		one, allOne, others := sums()
		two, allTwo, still := sums()
		differ := func(a, b int64) bool { return max(a-b, b-a) > 30 } // a unit per account, for rounding
		if differ(one, two) || differ(allOne, allTwo) || !maps.Equal(others, still) {
			rt.Fatalf("below node the sum was %d, then %d; of all %d, then %d; the others %v, then %v", one, two, allOne, allTwo, others, still)
		}
		if differ(allOne, whole) && allOne != 0 {
			rt.Fatalf("all weights sum to %d", allOne)
		}
	})
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
		{"level 2", names(2, nil), []string{"astro", "cell", "gene", "guests", "loners", "solid"}},
		{"level 2 and jobs above it", names(2, nil, "physics", "radio", "unknown"), []string{"astro", "cell", "gene", "guests", "loners", "physics", "solid"}},
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

func TestTheAccountsWhoseWeightTenantsDivide(t *testing.T) {
	under := func(level int, weights map[string]int64) (out []string) {
		for _, tenant := range growTree(tree3(), level).tenants([]cluster.Job{{Account: "physics"}}, &Rules{Weights: weights}) {
			out = append(out, tenant.Name+" "+strings.Join(tenant.Above, "/"))
			if len(tenant.Above) > 0 && tenant.Above[0] != tenant.Under || len(tenant.Above) == 0 && tenant.Under != "" {
				t.Errorf("%s is below %q, and under %q", tenant.Name, tenant.Above, tenant.Under)
			}
		}
		return out
	}
	want := []string{"astro physics", "cell bio", "gene bio", "guests guests", "loners loners", "physics physics", "solid physics"}
	if got := under(2, nil); !slices.Equal(got, want) {
		t.Errorf("level 2: %q, want %q", got, want)
	}
	want = []string{"cell bio/cell", "gene bio/gene", "guests guests", "loners loners", "physics physics", "radio physics/astro", "solid physics/solid"}
	if got := under(3, nil); !slices.Equal(got, want) {
		t.Errorf("level 3: %q, want %q", got, want)
	}
	for _, got := range append(under(1, nil), under(2, map[string]int64{"astro": 1})...) {
		if !strings.HasSuffix(got, " ") {
			t.Errorf("%q: nobody below root's accounts, or below configured tenants, can change their weights", got)
		}
	}
}
