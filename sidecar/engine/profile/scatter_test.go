package profile

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// The part that a gang keeps on more nodes is measured once it was seen often enough on both; else it is declared.
func TestScattered(t *testing.T) {
	part := func(kind cluster.Kind, gang int, part float64) cluster.Profile {
		return cluster.Profile{Kind: kind, With: cluster.Scattered, Model: "v100", Gang: gang, Rate: part, Relative: true, Source: cluster.Declared}
	}
	declared := []cluster.Profile{part("lm", 4, 0.5), part("lm", 8, 0.3), part("nlp/lm", 8, 0.2)}
	seen := func(together, apart int) *Book {
		b := New(Default(), nil, nil)
		for with, n := range map[cluster.Kind]int{"": together, cluster.Scattered: apart} {
			if rate := map[cluster.Kind]float64{"": 10, cluster.Scattered: 6}[with]; n > 0 {
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
		if got, known := Scatterings(c.declared).Of(c.b, c.kind, "v100", c.gang); got != c.want || known != (c.want > 0) {
			t.Errorf("%s: %v, %v, want %v", c.name, got, known, c.want)
		}
	}
}

// The rate of a gang that was never together is that on more nodes, until it is seen together.
func TestRateOfAGangThatWasNeverTogether(t *testing.T) {
	b := New(Default(), nil, nil)
	b.put(&cluster.Profile{Kind: "nlp/lm", With: cluster.Scattered, Model: "v100", Gang: 8, Rate: 6, Source: cluster.Observed, Samples: 5, At: began})
	for _, want := range []float64{6, 10} {
		if p, ok := b.Rate("nlp/lm", "v100", 8); !ok || p.Rate != want || p.With != "" {
			t.Errorf("%+v, %v, want %v", p, ok, want)
		}
		b.put(&cluster.Profile{Kind: "nlp/lm", Model: "v100", Gang: 8, Rate: 10, Source: cluster.Observed, Samples: 1, At: began})
	}
}
