package rounds

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// problem is an input of Nearest.
type problem struct {
	pools []Pool
	debts Debts
	wants []Want
}

// drawn draws nodes of 8 GPUs, tenants with up to so many parties, each with gangs of one of the sizes, and their debts.
func drawn(t *rapid.T, models, nodes, jobs, parties int, gangs ...int) (x problem) {
	for range rapid.IntRange(1, models).Draw(t, "models") {
		x.pools = append(x.pools, Pool{Free: slices.Repeat([]int{8}, rapid.IntRange(1, nodes).Draw(t, "nodes")), Node: 8})
	}
	for tenant := range rapid.IntRange(1, 4).Draw(t, "tenants") {
		all := make([]float64, len(x.pools))
		for range rapid.IntRange(1, parties).Draw(t, "parties") {
			gang := rapid.SampledFrom(gangs).Draw(t, "gang")
			var debts []float64
			for p := range x.pools {
				debt := rapid.Float64Range(-8, 16).Draw(t, "debt")
				debts, all[p] = append(debts, debt), all[p]+debt
			}
			for range rapid.IntRange(1, jobs).Draw(t, "jobs") {
				for p := range x.pools {
					x.pools[p].Line = append(x.pools[p].Line, len(x.wants))
				}
				x.wants = append(x.wants, Want{Party: len(x.debts.Parties), Tenant: tenant, Gang: gang, On: -1})
			}
			x.debts.Parties = append(x.debts.Parties, debts)
		}
		if parties > 1 {
			all[0] += rapid.Float64Range(-8, 8).Draw(t, "left behind")
		}
		x.debts.Tenants = append(x.debts.Tenants, all)
	}
	return x
}

// sum returns the objective of Nearest for GPUs by party and model.
func (x *problem) sum(had [][]int) float64 {
	most, sum := 1, 0.0
	gangs, got := make([]int, len(x.debts.Tenants)), make([][]int, len(x.debts.Tenants))
	for t := range got {
		got[t] = make([]int, len(x.pools))
	}
	for _, w := range x.wants {
		most, gangs[w.Tenant] = max(most, w.Gang), max(gangs[w.Tenant], w.Gang)
	}
	square := func(debt float64, had, gang int) float64 {
		return (debt - float64(had)) * (debt - float64(had)) / float64(gang) / 2
	}
	for k := range x.debts.Parties {
		w := x.wants[slices.IndexFunc(x.wants, func(w Want) bool { return w.Party == k })]
		for p, debt := range x.debts.Parties[k] {
			sum += square(debt, had[k][p], w.Gang) - 2*waste*float64(most)*float64(had[k][p])
			got[w.Tenant][p] += had[k][p]
		}
	}
	for t := range got {
		for p, debt := range x.debts.Tenants[t] {
			sum += square(debt, got[t][p], gangs[t])
		}
	}
	return sum
}

// had returns the GPUs by party and model that Nearest chooses.
func (x *problem) had() [][]int {
	had := make([][]int, len(x.debts.Parties))
	for k := range had {
		had[k] = make([]int, len(x.pools))
	}
	for _, g := range Nearest(x.pools, x.debts, x.wants, 0) {
		had[x.wants[g.Row].Party][g.Model] += x.wants[g.Row].Gang
	}
	return had
}

// least returns the smallest objective of all sets of jobs on one model.
func (x *problem) least() float64 {
	had, best := make([][]int, len(x.debts.Parties)), math.Inf(1)
	var each func(k, left int)
	each = func(k, left int) {
		if k == len(had) {
			best = min(best, x.sum(had))
			return
		}
		jobs, gang := 0, 0
		for _, w := range x.wants {
			if w.Party == k {
				jobs, gang = jobs+1, w.Gang
			}
		}
		for n := 0; n <= jobs && n*gang <= left; n++ {
			had[k] = []int{n * gang}
			each(k+1, left-n*gang)
		}
	}
	each(0, 8*len(x.pools[0].Free))
	return best
}

// On one model no other set of jobs is nearer, if tenants have one party with gangs that are a power of two each, or all gangs are alike.
func TestNearestIsExactOnOneModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gang := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "all gangs")
		for _, x := range []problem{drawn(t, 1, 2, 6, 1, 1, 2, 4, 8), drawn(t, 1, 2, 3, 3, gang)} {
			if got, best := x.sum(x.had()), x.least(); got > best+1e-6 {
				t.Fatalf("the sum is %g, and %g for the nearest set", got, best)
			}
		}
	})
}

// No job runs twice or on a model without its line, no more GPUs are given than there are, larger gangs come first, and gangs fit on nodes.
func TestNearestFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawn(t, 4, 3, 12, 3, 1, 2, 4, 8)
		for p := range x.pools {
			for n := range x.pools[p].Free {
				x.pools[p].Free[n] = rapid.IntRange(0, 8).Draw(t, "free")
			}
			x.pools[p].Line = slices.DeleteFunc(x.pools[p].Line, func(int) bool { return rapid.Bool().Draw(t, "cannot") })
		}
		if rapid.Bool().Draw(t, "odd") {
			for i := range x.wants {
				x.wants[i].Gang = rapid.IntRange(1, 20).Draw(t, "gang")
			}
		}
		seen, last := map[int]bool{}, math.MaxInt
		left := make([]int, len(x.pools))
		for p := range x.pools {
			for _, n := range x.pools[p].Free {
				left[p] += n
			}
		}
		for _, g := range Nearest(x.pools, x.debts, x.wants, rapid.Float64Range(0, 2).Draw(t, "stay")) {
			gang := x.wants[g.Row].Gang
			if left[g.Model] -= gang; left[g.Model] < 0 {
				t.Fatalf("more GPUs of model %d than there are", g.Model)
			}
			if seen[g.Row] || !slices.Contains(x.pools[g.Model].Line, g.Row) || gang > last {
				t.Fatalf("job %d of %d GPUs on model %d after one of %d", g.Row, gang, g.Model, last)
			}
			if gang <= 8 && gang > slices.Max(x.pools[g.Model].Free) {
				t.Fatalf("a gang of %d, and no node has more than %d free", gang, slices.Max(x.pools[g.Model].Free))
			}
			seen[g.Row], last = true, gang
		}
	})
}

// Two gangs of 8 and jobs of 2 GPUs share two models. The jobs fill one node, not both: a chooser that serves the party furthest behind
// first would give half of the second to them.
func TestNearestLeavesNoHalfNode(t *testing.T) {
	all := Pool{Free: []int{8}, Node: 8, Line: []int{0, 1, 2, 3, 4, 5}}
	x := problem{pools: []Pool{all, all}, debts: Debts{Parties: [][]float64{{5, 5}, {4, 4}}, Tenants: [][]float64{{5, 5}, {4, 4}}}}
	for range 5 {
		x.wants = append(x.wants, Want{Party: 0, Gang: 2, On: -1})
	}
	x.wants = append(x.wants, Want{Party: 1, Tenant: 1, Gang: 8, On: -1})
	had := x.had()
	if had[0][0]+had[0][1] != 8 || had[1][0]+had[1][1] != 8 {
		t.Errorf("got %v, want a model for each", had)
	}
}

func TestNearestOfNothing(t *testing.T) {
	if got := Nearest(nil, Debts{}, nil, 1); got != nil {
		t.Errorf("got %v", got)
	}
	if got := Nearest([]Pool{{Node: 8, Line: []int{0}}}, Debts{Parties: [][]float64{{1}}, Tenants: [][]float64{{1}}}, []Want{{Gang: 1, On: -1}}, 1); len(got) != 0 {
		t.Errorf("got %v without GPUs", got)
	}
}

// Gangs take GPUs as a search through all nodes does: of a node with the fewest that suffice, or of several whole ones.
func TestTake(t *testing.T) {
	dumb := func(free []int, node, gang int) bool {
		best := -1
		for i, n := range free {
			if n >= gang && (best < 0 || n < free[best]) {
				best = i
			}
		}
		if best >= 0 {
			free[best] -= gang
			return true
		}
		whole := 0
		for _, n := range free {
			if n == node {
				whole++
			}
		}
		if gang <= node || whole*node < gang {
			return false
		}
		for i, n := range free {
			if n == node {
				free[i] -= min(n, gang)
				gang -= min(n, gang)
			}
		}
		return true
	}
	rapid.Check(t, func(t *rapid.T) {
		free := rapid.SliceOfN(rapid.IntRange(0, 8), 0, 6).Draw(t, "free")
		p := Pool{Free: slices.Clone(free), Node: 8}
		for _, gang := range rapid.SliceOfN(rapid.IntRange(1, 30), 1, 9).Draw(t, "gangs") {
			took, want := p.Take(gang), dumb(free, 8, gang)
			now, all := slices.Sorted(slices.Values(p.Free)), slices.Sorted(slices.Values(free))
			if took != want || !slices.Equal(now, all) {
				t.Fatalf("a gang of %d: %v, free are %v, want %v and %v", gang, took, now, want, all)
			}
		}
	})
}
