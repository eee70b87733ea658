package profile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

func completion(kind cluster.Kind, rates map[string]float64) cluster.Completion {
	c := cluster.Completion{Kind: kind, Gang: 1, At: 9}
	for _, m := range []string{"a100", "k80", "v100"} {
		if r, ok := rates[m]; ok {
			c.Models, c.Rates = append(c.Models, m), append(c.Rates, cluster.RunRate{Rate: r, Spread: 0.1, Jobs: 7})
		}
	}
	return c
}

func observed(kind cluster.Kind, model string, rate float64) cluster.Profile {
	return cluster.Profile{Kind: kind, Model: model, Gang: 1, Rate: rate, Source: cluster.Observed, Samples: 5, Spread: 0.02, At: 8}
}

func TestCompletionTimesAreASource(t *testing.T) {
	b := New(Default(), []cluster.Profile{observed("t/seen", "k80", 3), observed("t/apart", "a100", 5)}, nil)
	b.Consider([]cluster.Completion{
		completion("t/apart", map[string]float64{"k80": 1e-4, "v100": 2e-4}),
		completion("t/one", map[string]float64{"v100": 2e-4}),
		completion("t/seen", map[string]float64{"k80": 1e-4, "v100": 4e-4}),
		completion("t/unseen", map[string]float64{"k80": 1e-4, "v100": 2e-4}),
	}, nil)
	for _, x := range []struct {
		kind     cluster.Kind
		model    string
		rate     float64
		relative bool
		ok       bool
	}{
		{"t/unseen", "k80", 1e-4, true, true},
		{"t/unseen", "v100", 2e-4, true, true},
		{"t/unseen", "a100", 0, false, false},
		{"t/seen", "v100", 12, false, true},   // as much faster than the rate that was observed
		{"t/apart", "v100", 0, false, false},  // nothing says how many steps a job has
		{"t/one", "v100", 0, false, false},    // there is nothing to compare it with
		{"u/unseen", "v100", 0, false, false}, // of another tenant
	} {
		p, ok := b.shown.byCompletions(x.kind, x.model, 1)
		if ok != x.ok || ok && (math.Abs(p.Rate/x.rate-1) > 1e-9 || p.Relative != x.relative || p.Source != cluster.Estimated || p.Samples != 7 || p.At != 9 || p.Spread == 0) {
			t.Errorf("%s on %s: %+v, %v", x.kind, x.model, p, ok)
		}
	}
	if p, _ := b.Rate("t/seen", "k80", 1); p.Source != cluster.Observed {
		t.Errorf("an observation yields to %+v", p)
	}
	speeds := b.Speedups("t/unseen", 1, []string{"k80", "v100", "a100"})
	if math.Abs(speeds[1].Value/speeds[0].Value-2) > 1e-9 || speeds[2].Source != "" {
		t.Errorf("speedups %+v", speeds)
	}
	if off := New(Settings{Trust: 3, Entries: 9}, nil, nil); off.shown.works != nil {
		t.Error("works without evidence")
	} else if off.Consider(b.shown.completions, nil); off.Speedups("t/unseen", 1, []string{"k80", "v100"})[1].Source != "" {
		t.Error("estimates though they are turned off")
	}
}

// usage makes a kind's counters on a model: work per step w at so many steps a second.
func usage(kind cluster.Kind, model string, pcie, dram float64) cluster.Usage {
	return cluster.Usage{Kind: kind, Model: model, Gang: 1, At: 9, PCIeRX: cluster.Level{Jobs: 3, Mean: math.Log(pcie)}, DRAM: cluster.Level{Jobs: 3, Mean: math.Log(dram)}}
}

// Property: counters are believed between two models only if enough kinds show both, and each is foretold by the others. Then
// a kind that reports nothing, or on one model only, gets the rate by the better counter.
func TestCountersAreASourceOfTestedQuality(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, x := range []struct {
		kinds  int
		noise  float64
		wanted bool
	}{{4, 0.01, false}, {5, 0.01, true}, {20, 0.1, true}, {20, 1.5, false}} {
		var entries []cluster.Profile
		var usages []cluster.Usage
		for i := range x.kinds {
			kind := cluster.Kind(fmt.Sprintf("t%d/k", i%7))
			kind += cluster.Kind(fmt.Sprintf("%02d", i))
			slow, fast, w := 1+rng.Float64(), 3+5*rng.Float64(), math.Exp(rng.NormFloat64())
			entries = append(entries, observed(kind, "k80", slow), observed(kind, "v100", fast))
			noise := func() float64 { return math.Exp(x.noise * rng.NormFloat64()) }
			usages = append(usages, usage(kind, "k80", 1e7*w*slow*noise(), 0.1*rng.Float64()), usage(kind, "v100", 2e7*w*fast*noise(), 0.1*rng.Float64()))
		}
		entries = append(entries, observed("x/half", "k80", 2))
		usages = append(usages, usage("x/half", "k80", 5e7, 0.5), usage("x/half", "v100", 30e7, 0.5), usage("x/silent", "k80", 5e7, 0.5), usage("x/silent", "v100", 30e7, 0.5))
		slices.SortFunc(usages, func(a, b cluster.Usage) int { return a.CompareSubject(&b) })
		b := New(Default(), entries, nil)
		b.Consider(nil, usages)
		half, ok := b.Rate("x/half", "v100", 1)
		if (ok && half.Method == cluster.ByCounters) != x.wanted {
			t.Errorf("%d kinds with noise %v: %+v", x.kinds, x.noise, half)
			continue
		}
		from, _ := b.Rate("x/silent", "k80", 1)
		to, ok := b.Rate("x/silent", "v100", 1)
		if (ok && to.Method == cluster.ByCounters) != x.wanted {
			t.Errorf("%d kinds with noise %v: a silent kind has %+v", x.kinds, x.noise, to)
		}
		if !x.wanted {
			continue
		}
		// The counter is six times as high; the model itself doubles it.
		if math.Abs(math.Log(half.Rate/6)) > 3*x.noise || math.Abs(math.Log(to.Rate/from.Rate/3)) > 3*x.noise || half.Relative || !to.Relative || half.Spread < x.noise/20 {
			t.Errorf("%d kinds with noise %v: %+v, %v over %v", x.kinds, x.noise, half, to.Rate, from.Rate)
		}
		for _, q := range Test(b, []string{"k80", "v100"}) {
			if q.Method == cluster.ByCounters && (x.kinds > leastKinds && q.Tested < x.kinds || q.Known != 3 || q.Error > 3*x.noise) {
				t.Errorf("%d kinds with noise %v: %+v", x.kinds, x.noise, q)
			}
		}
	}
}

// Property: one tenant's kinds, however many and however false, do not move a factor that many tenants agree on.
func TestNoTenantSetsAFactor(t *testing.T) {
	var values []float64
	var tenants []string
	for i := range 5 {
		values, tenants = append(values, 0.5+0.01*float64(i)), append(tenants, fmt.Sprintf("t%d", i))
	}
	for range 50 {
		values, tenants = append(values, 9), append(tenants, "liar")
	}
	if got := balanced(values, tenants, -1); got < 0.5 || got > 0.54 {
		t.Errorf("the factor is %v", got)
	}
}

// Property: prices of trades know nothing of counters, nor of what other kinds gain, nor of run times without bounds.
func TestPricedIgnoresGuesses(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	models := []string{"a100", "k80", "v100"}
	for range 200 {
		var entries []cluster.Profile
		for _, m := range models {
			if rng.IntN(2) == 0 {
				entries = append(entries, observed("t/k", m, 1+rng.Float64()))
			}
		}
		var usages []cluster.Usage
		for _, m := range models {
			usages = append(usages, usage("t/k", m, 1e7*rng.Float64(), rng.Float64()))
		}
		old := []cluster.Completion{completion("t/k", map[string]float64{"a100": rng.Float64(), "k80": rng.Float64(), "v100": rng.Float64()})}
		for i := range 6 { // others show counters and run times on all models
			kind := cluster.Kind(fmt.Sprintf("u%d/k", i))
			old = append(old, bounded(rng, kind, map[string]float64{"a100": 4, "k80": 1, "v100": 2}, 1))
			for _, m := range models {
				usages = append(usages, usage(kind, m, 1e7, 0.5))
			}
		}
		b := New(Default(), entries, nil)
		b.Consider(old, usages)
		got := Priced(b, "t/k", 1, models, b.Speedups("t/k", 1, models))
		if got == nil {
			got = b.Speedups("t/k", 1, models)
		}
		for m, s := range got {
			if seen := slices.ContainsFunc(entries, func(p cluster.Profile) bool { return p.Model == models[m] }); (s.Source == cluster.Observed) != seen || s.Source == cluster.Declared {
				t.Fatalf("priced %+v of %+v", got, entries)
			}
		}
	}
}

// bounded is a completion with bounds that contain the true rates, somewhere; wide is how wide they are, in the logarithm.
func bounded(rng *rand.Rand, kind cluster.Kind, rates map[string]float64, wide float64) cluster.Completion {
	c := completion(kind, rates)
	for m := range c.Rates {
		c.Rates[m].Least = make([]float64, len(c.Models))
	}
	for x := range c.Models {
		for y := range x {
			ratio := rates[c.Models[x]] / rates[c.Models[y]]
			c.Rates[x].Least[y], c.Rates[y].Least[x] = ratio*math.Exp(-wide*rng.Float64()), math.Exp(-wide*rng.Float64())/ratio
		}
	}
	for m := range c.Rates { // the fitted rates are anywhere
		c.Rates[m].Rate *= math.Exp(wide * (rng.Float64() - 0.5))
	}
	return c
}

// Property: whatever others report, declare or show, lies or not, the bounds at which the market takes a kind's speeds contain the truth if those
// of its own run times do: it neither buys for more than its gain nor sells for less than its loss.
func TestOthersCannotMoveAPrice(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	models := []string{"a100", "k80", "v100"}
	priced, far := 0, 0
	for range 2000 {
		truth := map[string]float64{}
		for _, m := range models[:2+rng.IntN(2)] {
			truth[m] = math.Exp(3 * rng.NormFloat64())
		}
		list := []cluster.Completion{bounded(rng, "honest/k", truth, 1)}
		var entries []cluster.Profile
		var usages []cluster.Usage
		for i := range rng.IntN(12) {
			kind := cluster.Kind(fmt.Sprintf("liar%d/k", i))
			lie := func() float64 { return math.Exp(6 * rng.NormFloat64()) }
			rates := map[string]float64{}
			for _, m := range models {
				rates[m] = min(max(lie(), 1e-5), 1e5)
				if p := observed(kind, m, rates[m]); rng.IntN(2) == 0 {
					entries = append(entries, p)
				} else if p.Source = cluster.Declared; rng.IntN(2) == 0 {
					p.Basis, p.Samples, p.Spread = "job 7", 0, 0
					entries = append(entries, p)
				}
				usages = append(usages, usage(kind, m, 1e7*lie(), lie()))
			}
			list = append(list, bounded(rng, kind, rates, 3))
		}
		slices.SortFunc(list, func(a, b cluster.Completion) int { return a.CompareSubject(&b) })
		slices.SortFunc(usages, func(a, b cluster.Usage) int { return a.CompareSubject(&b) })
		b := New(Default(), entries, nil)
		b.Consider(list, usages)
		got := Priced(b, "honest/k", 1, models, b.Speedups("honest/k", 1, models))
		for f := range got {
			for s := range got {
				fast, slow := &got[f], &got[s]
				if f == s || fast.Source != cluster.Observed || slow.Source != cluster.Observed {
					continue
				}
				low := func(x *Speedup) float64 { return x.Value * x.Value / x.High } // as margins are taken
				priced++
				if is := truth[models[f]] / truth[models[s]]; low(fast)/slow.High > is*(1+1e-6) || fast.High/low(slow) < is*(1-1e-6) {
					t.Fatalf("%s over %s is %v, priced at %v to %v: %+v\nof %+v\nbeside %+v", models[f], models[s], is, low(fast)/slow.High, fast.High/low(slow), got, list, entries)
				} else if is > 100 {
					far++
				}
			}
		}
	}
	if priced < 3000 || far < 100 {
		t.Errorf("%d ratios were priced, %d of them above 100", priced, far)
	}
}

// A speedup is contradicted by the kind's own counters only if these have a tested quality, and clearly show the opposite.
func TestCountersContradictClaims(t *testing.T) {
	fleet := func(kinds int, noise float64) (entries []cluster.Profile, usages []cluster.Usage) {
		rng := rand.New(rand.NewPCG(3, 4))
		for i := range kinds {
			kind := cluster.Kind(fmt.Sprintf("t%d/k%02d", i%7, i))
			entries = append(entries, observed(kind, "k80", 1), observed(kind, "v100", 3))
			usages = append(usages, usage(kind, "k80", 1e7*math.Exp(noise*rng.NormFloat64()), rng.Float64()), usage(kind, "v100", 6e7*math.Exp(noise*rng.NormFloat64()), rng.Float64()))
		}
		return entries, usages
	}
	said := func(model string, rate float64) cluster.Profile {
		return cluster.Profile{Kind: "x/liar", Model: model, Gang: 1, Rate: rate, Source: cluster.Declared, Basis: "job 7"}
	}
	for name, c := range map[string]struct {
		kinds  int
		noise  float64
		claims []cluster.Profile
		pcie   [2]float64 // of the kind, on k80 and v100; the model itself doubles it
		want   bool
	}{
		"declared":               {8, 0.02, []cluster.Profile{said("k80", 1), said("v100", 3)}, [2]float64{1e7, 1e7}, true},
		"reported":               {8, 0.02, []cluster.Profile{observed("x/liar", "k80", 1), observed("x/liar", "v100", 3)}, [2]float64{1e7, 1e7}, true},
		"true":                   {8, 0.02, []cluster.Profile{said("k80", 1), said("v100", 3)}, [2]float64{1e7, 6e7}, false},
		"too much, but not less": {8, 0.02, []cluster.Profile{said("k80", 1), said("v100", 9)}, [2]float64{1e7, 2.2e7}, false},
		"no speedup claimed":     {8, 0.02, []cluster.Profile{said("k80", 1), said("v100", 1.05)}, [2]float64{1e7, 1e7}, false},
		"nothing claimed":        {8, 0.02, nil, [2]float64{1e7, 1e7}, false},
		"too few kinds":          {4, 0.02, []cluster.Profile{said("k80", 1), said("v100", 3)}, [2]float64{1e7, 1e7}, false},
		"counters of no quality": {20, 1.5, []cluster.Profile{said("k80", 1), said("v100", 3)}, [2]float64{1e7, 1e7}, false},
	} {
		entries, usages := fleet(c.kinds, c.noise)
		usages = append(usages, usage("x/liar", "k80", c.pcie[0], 0.1), usage("x/liar", "v100", c.pcie[1], 0.1))
		slices.SortFunc(usages, func(a, b cluster.Usage) int { return a.CompareSubject(&b) })
		b := New(Default(), append(entries, c.claims...), nil)
		b.Consider(nil, usages)
		got := Contradictions(b)
		if !c.want && len(got) == 0 {
			continue
		}
		if len(got) != 1 || !c.want || got[0].Kind != "x/liar" || got[0].Model != "v100" || got[0].Than != "k80" || got[0].Claimed != 3 || math.Abs(got[0].Shown-0.5) > 0.05 || got[0].Counter != "PCIe reads" || got[0].Jobs != 3 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A kind that shows nothing on a model is expected to gain what other kinds do, from where its own rate is shown; never by a rate that only its
// jobs declare. Without evidence nothing is expected, and a tenant with many kinds does not set the gain.
func TestOtherKindsFillGaps(t *testing.T) {
	entries := []cluster.Profile{observed("x/seen", "v100", 50), {Kind: "x/said", Model: "v100", Gang: 1, Rate: 50, Source: cluster.Declared, Basis: "job 7"}}
	var shown []cluster.Completion
	for i := range 5 {
		shown = append(shown, completion(cluster.Kind(fmt.Sprintf("t%d/k", i)), map[string]float64{"k80": 1e-4, "v100": 5e-4}))
	}
	for i := range 20 {
		shown = append(shown, completion(cluster.Kind(fmt.Sprintf("u/k%02d", i)), map[string]float64{"k80": 1e-4, "v100": 90e-4}))
	}
	shown = append(shown, completion("x/fast", map[string]float64{"a100": 9e-4, "v100": 5e-4}))
	b := New(Default(), entries, nil)
	if p, ok := b.Rate("x/seen", "k80", 1); ok {
		t.Errorf("nothing shows what is expected: %+v", p)
	}
	b.Consider(shown, nil)
	for _, x := range []struct {
		kind  cluster.Kind
		model string
		rate  float64 // 0 = unknown
	}{{"x/seen", "k80", 10}, {"x/fast", "k80", 1e-4}, {"x/said", "k80", 0}, {"x/new", "k80", 1}, {"x/new", "v100", 5}, {"x/new", "a100", 0}} {
		p, ok := b.Rate(x.kind, x.model, 1)
		if ok != (x.rate > 0) || math.Abs(p.Rate-x.rate) > 1e-9 || ok && (p.Method != cluster.ByOthers || p.Relative == (x.kind == "x/seen")) {
			t.Errorf("%s on %s: %+v, %v", x.kind, x.model, p, ok)
		}
	}
	if s := Priced(b, "x/seen", 1, []string{"k80", "v100"}, b.Speedups("x/seen", 1, []string{"k80", "v100"})); s == nil || s[0].Source != "" {
		t.Errorf("what others gain prices trades: %+v", s)
	}
}
