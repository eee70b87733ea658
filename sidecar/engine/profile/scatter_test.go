package profile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/runtimes"
)

// The part that a gang keeps on more nodes, or under more switches, is measured once it was seen often enough on both; else it is declared.
func TestScattered(t *testing.T) {
	for spread, other := range map[cluster.Kind]cluster.Kind{cluster.Scattered: cluster.AcrossSwitches, cluster.AcrossSwitches: cluster.Scattered} {
		scatteredOr(t, spread, other)
	}
}

// scatteredOr tests the parts on nodes that are spread so. Those on others do not count.
func scatteredOr(t *testing.T, spread, other cluster.Kind) {
	part := func(kind cluster.Kind, gang int, part float64) cluster.Profile {
		return cluster.Profile{Kind: kind, With: spread, Model: "v100", Gang: gang, Rate: part, Relative: true, Source: cluster.Declared}
	}
	declared := []cluster.Profile{part("lm", 4, 0.5), part("lm", 8, 0.3), part("nlp/lm", 8, 0.2),
		{Kind: "nlp/lm", With: other, Model: "v100", Gang: 2, Rate: 0.7, Relative: true, Source: cluster.Declared}}
	seen := func(together, apart int) *Book {
		b := New(Default(), nil, nil)
		for with, n := range map[cluster.Kind]int{"": together, spread: apart, other: 9} {
			if rate := map[cluster.Kind]float64{"": 10, spread: 6, other: 3}[with]; n > 0 {
				b.put(&cluster.Profile{Kind: "nlp/lm", With: with, Model: "v100", Gang: 8, Rate: rate, Source: cluster.Observed, Samples: n, At: began})
			}
		}
		return b
	}
	for _, c := range []struct {
		name     string
		b        *Book
		declared []cluster.Profile
		kind     cluster.Kind
		gang     int
		want     float64 // 0 = unknown
	}{
		{"nothing is known", nil, nil, "nlp/lm", 8, 0},
		{"of its own kind", nil, declared, "nlp/lm", 8, 0.2},
		{"of the site's kind", nil, declared, "nlp/lm", 4, 0.5},
		{"of the site's kind, for another tenant", nil, declared, "vision/lm", 8, 0.3},
		{"not of this gang", nil, declared, "nlp/lm", 2, 0},
		{"seen twice only", seen(9, 2), declared, "nlp/lm", 8, 0.2},
		{"never seen together", seen(0, 9), declared, "nlp/lm", 8, 0.2},
		{"measured", seen(3, 3), declared, "nlp/lm", 8, 0.6},
		{"measured, and not declared", seen(3, 3), nil, "nlp/lm", 8, 0.6},
	} {
		if got, known := Scatterings(c.declared).Of(c.b, nil, spread, c.kind, "v100", c.gang); got != c.want || known != (c.want > 0) {
			t.Errorf("%s, %s: %v, %v, want %v", spread, c.name, got, known, c.want)
		}
	}
}

// Reports of a few jobs vary. They make few types look slow on more nodes that are not, and hardly slower than they are.
func TestScatteredByReports(t *testing.T) {
	rng := rand.New(rand.NewPCG(43, 44))
	for _, c := range []struct {
		samples     int
		part, sd    float64
		most, least float64 // parts of draws: below the truth; below 1
	}{{3, 1, 0, 0, 0}, {3, 1, 0.2, 0.15, 0}, {16, 1, 0.2, 0.1, 0}, {16, 0.5, 0.2, 0.1, 1}, {3, 0.4, 0.1, 0.15, 1}} {
		const draws = 500
		low, below := 0, 0
		for range draws {
			b := New(Default(), nil, nil)
			for n := range 2 * c.samples {
				with, rate := cluster.Kind(""), math.Exp(c.sd*rng.NormFloat64())
				if n%2 > 0 {
					with, rate = cluster.Scattered, c.part*rate
				}
				b.learn(&cluster.Profile{Kind: "nlp/lm", With: with, Model: "v100", Gang: 8, Source: cluster.Observed}, rate, began, false)
			}
			part, known := Scatterings(nil).Of(b, nil, cluster.Scattered, "nlp/lm", "v100", 8)
			if !known {
				t.Fatalf("%+v: it is not known", c)
			}
			if part < c.part*(1-1e-3) {
				low++
			}
			if part < 1 {
				below++
			}
		}
		t.Logf("%+v: too low in %d draws, below 1 in %d", c, low, below)
		if float64(low) > c.most*draws || float64(below) < c.least*draws {
			t.Errorf("%+v: too low in %d of %d draws, below 1 in %d", c, low, draws, below)
		}
	}
}

// The rate of a gang that was never together is that across switches, else that on more nodes, until it is seen together.
func TestRateOfAGangThatWasNeverTogether(t *testing.T) {
	b := New(Default(), nil, nil)
	for _, x := range []struct {
		with cluster.Kind
		rate float64
	}{{cluster.Scattered, 6}, {cluster.AcrossSwitches, 8}, {"", 10}} {
		b.put(&cluster.Profile{Kind: "nlp/lm", With: x.with, Model: "v100", Gang: 8, Rate: x.rate, Source: cluster.Observed, Samples: 5, At: began})
		if p, ok := b.Rate("nlp/lm", "v100", 8); !ok || p.Rate != x.rate || p.With != "" {
			t.Errorf("%+v, %v, want %v", p, ok, x.rate)
		}
	}
	if part, known := Scatterings(nil).Of(b, nil, cluster.AcrossSwitches, "nlp/lm", "v100", 8); part != 0.8 || !known {
		t.Errorf("across switches it keeps %v, %v", part, known)
	}
}

// ended draws the run times of a type's jobs, on their fewest nodes and on more by turns: an hour on its fewest, of spread sd.
func ended(rng *rand.Rand, jobs int, part, sd float64) cluster.Completion {
	c := cluster.Completion{Kind: "nlp/lm", Gang: 8, Models: []string{"v100", cluster.Spread("v100", cluster.Scattered)}}
	for n := range jobs {
		ran, took := make([]cluster.Span, 2), math.Exp(sd*rng.NormFloat64())*float64(cluster.Hour)
		if n%2 > 0 {
			took /= part
		}
		ran[n%2] = cluster.Span(took)
		c.Jobs = append(c.Jobs, cluster.JobRun{Ran: ran, Done: true})
	}
	c.Rates = runtimes.Fit(c.Models, c.Jobs, nil)
	return c
}

// Run times tell that gangs are slower on more nodes from five jobs of each on, if chance alone does not explain it. They never tell more than there is, but in a
// few of a hundred draws. Reports and declarations count more.
func TestScatteredByRunTimes(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	for _, c := range []struct {
		jobs            int
		part, sd        float64
		least, mostPast int // draws of 200 in which it is known; in which the part is below the truth
	}{
		{8, 0.2, 0.2, 0, 0}, {10, 0.5, 0.1, 195, 10}, {16, 0.5, 0.3, 180, 10}, {16, 1, 0.3, 0, 20}, {40, 1, 1, 0, 10}, {40, 1.2, 0.3, 0, 2}, {60, 0.3, 1, 150, 10},
	} {
		known, past, sum := 0, 0, 0.0
		for range 200 {
			all := []cluster.Completion{ended(rng, c.jobs, c.part, c.sd)}
			part, ok := Scatterings(nil).Of(nil, all, cluster.Scattered, "nlp/lm", "v100", 8)
			if ok {
				known, sum = known+1, sum+part
			}
			if ok && part < c.part {
				past++
			}
			across := slices.Clone(all)
			across[0].Models = []string{"v100", cluster.Spread("v100", cluster.AcrossSwitches)}
			if same, known := Scatterings(nil).Of(nil, across, cluster.AcrossSwitches, "nlp/lm", "v100", 8); same != part || known != ok {
				t.Fatalf("across switches the part is %v, %v, want %v, %v", same, known, part, ok)
			}
			if _, known := Scatterings(nil).Of(nil, across, cluster.Scattered, "nlp/lm", "v100", 8); known {
				t.Fatal("jobs across switches tell of scattered ones")
			}
			if declared := []cluster.Profile{{Kind: "lm", With: cluster.Scattered, Model: "v100", Gang: 8, Rate: 0.7}}; part != 0 {
				if part, ok = Scatterings(declared).Of(nil, all, cluster.Scattered, "nlp/lm", "v100", 8); part != 0.7 || !ok {
					t.Fatalf("declared as 0.7, it counts as %v, %v", part, ok)
				}
			}
		}
		t.Logf("%+v: known in %d draws, %.2f by the mean; too low in %d", c, known, sum/float64(max(known, 1)), past)
		if known < c.least || past > c.mostPast || c.jobs < 10 && known > 0 {
			t.Errorf("%+v: known in %d draws, too low in %d", c, known, past)
		}
	}
}

// Where models are compared, the rate of gangs is that on their fewest nodes; where that is not known, that on more.
func TestRunTimesByModel(t *testing.T) {
	k80, v100, apart := cluster.RunRate{Rate: 1, Jobs: 5}, cluster.RunRate{Rate: 4, Jobs: 6}, cluster.RunRate{Rate: 2, Jobs: 7}
	for _, c := range []struct {
		models []string
		rates  []cluster.RunRate
		want   string
	}{
		{[]string{"k80", "v100"}, []cluster.RunRate{k80, v100}, "[k80 v100] 1 4"},
		{[]string{"k80", "v100", "v100 (scattered)"}, []cluster.RunRate{k80, v100, apart}, "[k80 v100] 1 4"},
		{[]string{"k80", "v100", "v100 (scattered)"}, []cluster.RunRate{k80, {}, apart}, "[k80 v100] 1 2"},
		{[]string{"k80", "v100 (scattered)"}, []cluster.RunRate{k80, apart}, "[k80 v100] 1 2"},
	} {
		x := cluster.Completion{Kind: "nlp/lm", Gang: 8, Models: c.models, Rates: c.rates}
		for m := range c.rates {
			for o := range c.rates {
				x.Rates[m].Least = append(x.Rates[m].Least, float64(10*m+o+1))
			}
		}
		out := merged(&x)
		if got := fmt.Sprint(out.Models, out.Rates[0].Rate, out.Rates[1].Rate); got != c.want {
			t.Errorf("%v: %s, want %s", c.models, got, c.want)
		}
		last := 1
		if out.Rates[1].Rate == 2 {
			last = len(c.models) - 1
		}
		if low, _, ok := out.Ratio(1, 0); !ok || low != float64(10*last+1) {
			t.Errorf("%v: the bound is %v", c.models, low)
		}
	}
}
