package profile

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A book that uses the memory of the last one answers as one without memory, whatever changed in between; and without a change all is kept.
func TestAMemoryAnswersAsANewBookDoes(t *testing.T) {
	models := []string{"k80", "p100", "v100"}
	rapid.Check(t, func(t *rapid.T) {
		var m Memory
		var entries []cluster.Profile
		var completions []cluster.Completion
		set := Default()
		open := func() *Book {
			b := New(set, entries, nil)
			b.Consider(completions, nil)
			return b
		}
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			known, plain := open(), open()
			x, y := acts("x", 10).Draw(t, "x"), acts("y", 20).Draw(t, "y")
			for _, b := range []*Book{known, plain} {
				if rapid.IntRange(0, 3).Draw(t, "site") == 0 {
					_ = site(b)
				}
				for _, list := range [][]act{x, y} {
					for _, a := range list {
						if a.Say != nil {
							_ = b.Declare(*a.Say)
						} else if CheckName(a.Run.Kind.Name()) == nil { // as if it had been sampled
							b.put(&cluster.Profile{Kind: a.Run.Kind, Model: a.Run.Model, Gang: max(a.Run.Gang, 1), Rate: float64(1 + a.Run.Since%7), Source: cluster.Observed, Samples: 4, Spread: 0.1})
						}
					}
				}
			}
			entries = known.Entries()
			plain.set(slices.Clone(entries))
			known.Keep(&m, models)
			var trials []Trial
			for _, tenant := range []string{"x", "y", "z"} {
				for _, name := range []string{"a", "b", "ref", "new"} {
					kind := cluster.KindOf(tenant, name)
					for gang := 1; gang <= 2; gang++ {
						if d := cmp.Diff(plain.Speedups(kind, gang, models), known.Speedups(kind, gang, models)); d != "" {
							t.Fatalf("%s with %d GPUs:\n%s", kind, gang, d)
						}
						trials = append(trials, Trial{Key: cluster.JobKey(len(trials)), Kind: kind, Gang: gang, From: models[gang], Model: models[0], Term: cluster.Hour})
					}
				}
			}
			if d := cmp.Diff(plain.Explore(trials), known.Explore(trials)); d != "" {
				t.Fatalf("trials:\n%s", d)
			}
			asked := len(m.now)
			again := open()
			again.Keep(&m, models)
			for of, k := range m.old {
				if m.kept(of) != k {
					t.Fatalf("%v was not kept, though nothing changed", of)
				}
			}
			if len(m.now) != asked {
				t.Fatalf("%d of %d were kept", len(m.now), asked)
			}
			switch rapid.IntRange(0, 5).Draw(t, "besides") {
			case 0:
				set.Reference = rapid.SampledFrom([]string{"", "k80", "v100"}).Draw(t, "reference")
			case 1:
				set.Estimate = !set.Estimate
			case 2:
				rate := func(name string) cluster.RunRate {
					return cluster.RunRate{Rate: rapid.Float64Range(1, 9).Draw(t, name), Spread: 0.1, Jobs: 3}
				}
				completions = []cluster.Completion{{Kind: "x/new", Gang: 1, Models: []string{"k80", "v100"}, Rates: []cluster.RunRate{rate("slow"), rate("fast")}}}
			}
		}
	})
}

// A book that changes after all forgets what it kept.
func TestAMemoryOfAnotherBookIsEmpty(t *testing.T) {
	var m Memory
	models := []string{"k80", "v100"}
	b := New(Default(), nil, nil)
	observe(b, "ml/a", "k80", 1, 5, 0)
	observe(b, "ml/a", "v100", 4, 5, 0)
	b.Keep(&m, models)
	if got := b.Speedups("ml/a", 1, models)[1].Value; got != 4 {
		t.Fatalf("a speedup of %g", got)
	}
	observe(b, "ml/a", "v100", 8, 5, 0)
	if got := b.Speedups("ml/a", 1, models)[1].Value; got != 8 {
		t.Errorf("after a change a speedup of %g, want 8", got)
	}
	if len(m.now)+len(m.old) > 0 {
		t.Errorf("kept: %v, %v", m.now, m.old)
	}
}
