package price

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestTotalIsWhatTheDumbSolverFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 8, plainSpeed)
		got, err := Total(in)
		if err != nil {
			t.Fatal(err)
		}
		feasible(t, in, got.X)
		a, b := in.rows(0)
		if want, _ := simplex(t, a, b, slices.Clone(in.Speed)); got.Low < want*(1-1e-9) || got.High < want*(1-1e-9) || got.Low > want*(1+1e-9) {
			t.Errorf("between %.12g and %.12g, want %.12g", got.Low, got.High, want)
		}
		if again, err := Total(in); err != nil || !slices.Equal(again.X, got.X) {
			t.Errorf("another answer to the same: %v", err)
		}
	})
}

func TestTotalIsCertified(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 30, drawSpeed)
		got, err := Total(in)
		if err != nil {
			t.Fatal(err)
		}
		feasible(t, in, got.X)
		if got.High-got.Low > 1e-9*got.High {
			t.Errorf("between %.12g and %.12g after %d looks", got.Low, got.High, got.Rounds)
		}
	})
}
