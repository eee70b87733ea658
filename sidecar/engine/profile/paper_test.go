package profile

import (
	"compress/gzip"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Gavel §3.1: "T_mj can be set to -∞ if job m does not run on accelerator type j"; here
// such a rate is 0. The matrices are its T of jobs 0 and 1 and their combination.
func TestGavel31ThroughputsAloneAndInCombination(t *testing.T) {
	b := New(Default(), nil, nil)
	declare(t, b, "job0", "", 1, map[string]float64{"v100": 40, "p100": 20, "k80": 10})
	declare(t, b, "job1", "", 1, map[string]float64{"v100": 15, "p100": 10, "k80": 5})
	declare(t, b, "job0", "job1", 1, map[string]float64{"v100": 20, "p100": 0, "k80": 0})
	declare(t, b, "job1", "job0", 1, map[string]float64{"v100": 7.5, "p100": 0, "k80": 0})
	for _, x := range []struct {
		kind, with cluster.Kind
		model      string
		want       float64
	}{{"job0", "", "v100", 40}, {"job1", "", "k80", 5}, {"job0", "job1", "v100", 20}, {"job1", "job0", "v100", 7.5}, {"job1", "job0", "p100", 0}} {
		if p, ok := b.Beside(x.kind, x.with, x.model, 1); !ok || p.Rate != x.want || p.Source != cluster.Declared {
			t.Errorf("%s beside %q on %s: %+v, want %g", x.kind, x.with, x.model, p, x.want)
		}
	}
}

// OEF §4.1: "the final speedup vector is generated", relative to the slowest model (§3.1).
func TestOEF41SpeedupVector(t *testing.T) {
	b := New(Default(), nil, nil)
	declare(t, b, "lstm", "", 1, map[string]float64{"k80": 10, "p100": 20, "v100": 50})
	var got []float64
	for _, s := range b.Speedups("ml/lstm", 1, []string{"k80", "p100", "v100"}) {
		got = append(got, s.Value)
	}
	if want := []float64{1, 2, 5}; !slices.Equal(got, want) {
		t.Errorf("speedups %v, want %v", got, want)
	}
}

// measured is Gavel's measurements: model, kind and gang size, alone or beside another.
type measured map[string]map[string]map[string]any

var named = regexp.MustCompile(`^\('(.*?)(?: \(batch size (\d+)\))?', (\d+)\)$`)

// name gives a kind of the table as we may name it, and its gang size.
func name(t *testing.T, key string) (kind cluster.Kind, gang int) {
	t.Helper()
	m := named.FindStringSubmatch(key)
	if m == nil {
		t.Fatalf("%q is no kind", key)
	}
	gang, _ = strconv.Atoi(m[3])
	if m[2] != "" {
		return cluster.Kind(m[1] + "-" + m[2]), gang
	}
	return cluster.Kind(m[1]), gang
}

// gavel reads the authors' measurements as entries of the site's kinds.
func gavel(t *testing.T) []cluster.Profile {
	t.Helper()
	f, err := os.Open("testdata/oracles/simulation_throughputs.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all measured
	if err := json.UnmarshalRead(z, &all); err != nil {
		t.Fatal(err)
	}
	var out []cluster.Profile
	for _, model := range []string{"k80", "p100", "v100"} {
		for key, row := range all[model] {
			kind, gang := name(t, key)
			for other, rate := range row {
				p := cluster.Profile{Kind: kind, Model: model, Gang: gang, Source: cluster.Declared, Basis: File}
				if other == "null" {
					p.Rate = rate.(float64)
				} else {
					with, size := name(t, other)
					if size != gang {
						continue
					}
					p.With, p.Rate = with, rate.([]any)[0].(float64)
				}
				out = append(out, p)
			}
		}
	}
	slices.SortFunc(out, func(a, b cluster.Profile) int { return a.Compare(&b) })
	return out
}

// Gavel §6: from "direct profiling" of a new job beside a few references on one GPU model its
// "most similar pre-profiled reference job" is found, whose measurements are "an initial
// throughput estimate"; here the more similar ones count more. Each kind of the authors' table in turn is such a new job, profiled
// beside every fifth of the others on the P100 alone; what it does beside the rest
// there, and beside all on the V100 and the K80, is estimated, with no other batch size of the
// same network as a reference in the second count.
func TestGavel6PairsAreEstimatedFromTheClosestReference(t *testing.T) {
	all := gavel(t)
	for _, x := range []struct {
		what   string
		family bool // other batch sizes of the network are references
		most   float64
	}{{"any reference", true, 0.125}, {"no reference of the same network", false, 0.138}} {
		var errs, naive []float64
		for _, target := range kinds(all) {
			errsOf, naiveOf := pairErrors(t, all, target, x.family)
			errs, naive = append(errs, errsOf...), append(naive, naiveOf...)
		}
		mean, p90 := summary(errs)
		plain, plain90 := summary(naive)
		t.Logf("%s: part of the rate beside another off by %.3f on average, %.3f at the 90th percentile (%d estimates); the mean over all references: %.3f, %.3f",
			x.what, mean, p90, len(errs), plain, plain90)
		if mean > x.most || mean >= plain {
			t.Errorf("%s: off by %.3f on average, want %.3f at most and less than the mean's %.3f", x.what, mean, x.most, plain)
		}
	}
}

func pairErrors(t *testing.T, all []cluster.Profile, target cluster.Kind, family bool) (errs, naive []float64) {
	t.Helper()
	mine := "ml/new"
	own := func(p cluster.Profile) cluster.Profile {
		p.Kind, p.Basis = cluster.Kind(mine), "job 1"
		return p
	}
	alike := func(k cluster.Kind) bool { return k == target || !family && familyOf(k) == familyOf(target) }
	b := New(Default(), nil, nil)
	var truth []cluster.Profile
	n := 0
	for _, p := range all {
		if p.Gang != 1 {
			continue
		}
		switch {
		case !alike(p.Kind) && (p.With == "" || !alike(p.With)):
			must(t, b.Declare(p))
		case p.Kind == target && p.With == "":
			must(t, b.Declare(own(p)))
		}
	}
	for _, p := range all {
		if p.Gang != 1 || p.Kind != target || p.With == "" || alike(p.With) {
			continue
		}
		if n++; p.Model == "p100" && n%5 == 0 {
			must(t, b.Declare(own(p)))
		} else {
			truth = append(truth, p)
		}
	}
	for _, p := range truth {
		alone, _ := b.Rate(cluster.Kind(mine), p.Model, 1)
		if alone.Rate == 0 {
			continue
		}
		got, ok := b.Beside(cluster.Kind(mine), p.With, p.Model, 1)
		if !ok || got.Source != cluster.Estimated {
			t.Fatalf("%s beside %s on %s: %+v, want an estimate", target, p.With, p.Model, got)
		}
		want := min(p.Rate/alone.Rate, 1)
		errs = append(errs, math.Abs(got.Rate/alone.Rate-want))
		sum, m := 0.0, 0.0
		for _, k := range b.guess.prints(1).kinds {
			if part := b.guess.part(k, p.With, p.Model, 1); !math.IsNaN(part) {
				sum, m = sum+part, m+1
			}
		}
		naive = append(naive, math.Abs(sum/m-want))
	}
	return errs, naive
}

var batch = regexp.MustCompile(`-\d+$`)

// familyOf gives the network of a kind, without its batch size.
func familyOf(k cluster.Kind) string { return batch.ReplaceAllString(string(k), "") }

// Single jobs are our extension: each kind of the authors' table in turn is known on one model
// or two and estimated on the others, from the kinds of other networks only, and from all.
func TestSinglesAreEstimatedFromWhatOthersGain(t *testing.T) {
	all := gavel(t)
	for _, x := range []struct {
		what   string
		family bool
		known  int
		most   float64 // of the mean error of ln rate
	}{{"known on one, any reference", true, 1, 0.50}, {"known on two, any reference", true, 2, 0.35},
		{"known on one, other networks", false, 1, 0.57}, {"known on two, other networks", false, 2, 0.43}} {
		var errs, ones []float64
		for _, target := range kinds(all) {
			for _, first := range []string{"k80", "p100", "v100"} {
				b := New(Default(), nil, nil)
				own, truth := map[string]float64{}, map[string]float64{}
				for _, p := range all {
					alike := p.Kind == target || !x.family && familyOf(p.Kind) == familyOf(target)
					switch {
					case p.Gang != 1 || p.With != "" || p.Rate == 0:
					case !alike:
						must(t, b.Declare(p))
					case p.Kind == target && (x.known == 1) == (p.Model == first):
						own[p.Model] = p.Rate
					case p.Kind == target:
						truth[p.Model] = p.Rate
					}
				}
				if len(own) != x.known {
					continue
				}
				declare(t, b, "ml/new", "", 1, own)
				mean := 0.0
				for _, r := range own {
					mean += math.Log(r) / float64(len(own))
				}
				for model, want := range truth {
					got, ok := b.Rate("ml/new", model, 1)
					if !ok || got.Source != cluster.Estimated || got.Basis == "" {
						t.Fatalf("%s on %s: %+v, want an estimate with its basis", target, model, got)
					}
					errs = append(errs, math.Abs(math.Log(got.Rate/want)))
					ones = append(ones, math.Abs(mean-math.Log(want)))
				}
			}
		}
		mean, p90 := summary(errs)
		plain, plain90 := summary(ones)
		t.Logf("%s: ln rate off by %.3f on average, %.3f at the 90th percentile (%d estimates); by a speedup of 1: %.3f, %.3f", x.what, mean, p90, len(errs), plain, plain90)
		if mean > x.most || mean >= plain {
			t.Errorf("%s: off by %.3f on average, want %.2f at most and less than with a speedup of 1, %.3f", x.what, mean, x.most, plain)
		}
	}
}

func kinds(all []cluster.Profile) []cluster.Kind {
	var out []cluster.Kind
	for i := range all {
		if p := &all[i]; p.Gang == 1 && p.With == "" && !slices.Contains(out, p.Kind) {
			out = append(out, p.Kind)
		}
	}
	return out
}

func summary(errs []float64) (mean, p90 float64) {
	slices.Sort(errs)
	for _, e := range errs {
		mean += e / float64(len(errs))
	}
	return mean, errs[len(errs)*9/10]
}

// declare puts rates by model into the book, a tenant's by a job, the site's by the file.
func declare(t *testing.T, b *Book, kind, with cluster.Kind, gang int, rates map[string]float64) {
	t.Helper()
	basis := File
	if kind.Tenant() != "" {
		basis = "job 1"
	}
	for model, rate := range rates {
		must(t, b.Declare(cluster.Profile{Kind: kind, With: with, Model: model, Gang: gang, Rate: rate, Basis: basis}))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
