package price_test

import (
	"math"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
	"github.com/fairlease/fairlease/sidecar/engine/policy/price"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }

// clp gives CLP's objective of a program. It skips the rest of a test where there is no CLP.
func clp(t *testing.T, p *lp.Program) float64 {
	t.Helper()
	if !lp.Available {
		t.Skip(lp.ErrNone)
	}
	defer p.Close()
	if err := p.Solve(lp.Presolve); err != nil {
		t.Fatal(err)
	}
	return p.Objective()
}

func TestMaxMinIsCLPs(t *testing.T) {
	for _, k := range []int{1, 2, 3, 8, 12} {
		for _, n := range []int{1, 5, 50, 299, 1100} {
			in := simtest.Weighted(simtest.Scarce(n, k))
			got, err := price.MaxMin(in)
			if err != nil {
				t.Fatal(err)
			}
			if got.High-got.Low > 1e-9*got.High {
				t.Errorf("%d jobs, %d models: between %.12g and %.12g", n, k, got.Low, got.High)
			}
			over(t, in, got.X)
			want := clp(t, simtest.MaxMinProgram(in, got.High)) * got.High
			if math.Abs(got.Low-want) > 1e-8*want { // CLP's tolerance
				t.Errorf("%d jobs, %d models: %.12g, CLP %.12g", n, k, got.Low, want)
			}
		}
	}
}

func TestEqualThroughputIsCLPs(t *testing.T) {
	for _, k := range []int{1, 2, 5, 10} {
		for _, n := range []int{1, 7, 60, 299} {
			gpus, speedup := simtest.Tenants(n, k)
			got, err := price.EqualThroughput(gpus, ones(n), speedup)
			if err != nil {
				t.Fatal(err)
			}
			want := clp(t, simtest.EqualProgram(gpus, speedup, got.High)) * got.High
			if math.Abs(got.Low-want) > 1e-8*want {
				t.Errorf("%d tenants, %d models: %.12g, CLP %.12g", n, k, got.Low, want)
			}
		}
	}
}

// over fails where more GPUs or time are given than there are.
func over(t *testing.T, in price.Instance, x []float64) {
	t.Helper()
	k := len(in.GPUs)
	use := make([]float64, k)
	for m, s := range in.Gang {
		time := 0.0
		for j, v := range x[m*k : (m+1)*k] {
			time += v
			use[j] += s * v
		}
		if time > 1+1e-9 {
			t.Errorf("job %d runs %v of its time", m, time)
		}
	}
	for j, n := range in.GPUs {
		if use[j] > n*(1+1e-9) {
			t.Errorf("%v of %v GPUs of model %d", use[j], n, j)
		}
	}
}

// Both where jobs are few and where a part of them shows the way.
func TestTheSameBytes(t *testing.T) {
	for _, n := range []int{200, 3000} {
		in, weight := simtest.Scarce(n, 8)
		a, err := price.MaxMin(in)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := price.MaxMin(in); err != nil || !slices.Equal(a.X, b.X) || a.High != b.High || a.Rounds != b.Rounds {
			t.Errorf("two answers to %d jobs: %v", n, err)
		}
		f, err := price.Fill(in, weight, simtest.Teams(n, 16))
		if err != nil {
			t.Fatal(err)
		}
		if g, err := price.Fill(in, weight, simtest.Teams(n, 16)); err != nil || !slices.Equal(f.X, g.X) || f.Rounds != g.Rounds {
			t.Errorf("two fillings of %d jobs: %v", n, err)
		}
	}
}

// At size: levels that start with the largest smallest one, and no more phases than models.
func TestFillAtSize(t *testing.T) {
	for _, k := range []int{3, 8} {
		in, weight := simtest.Scarce(2048, k)
		first, err := price.MaxMin(simtest.Weighted(in, weight))
		if err != nil {
			t.Fatal(err)
		}
		for name, entities := range map[string][]price.Entity{"flat": nil, "fair": simtest.Teams(2048, 0), "fifo": simtest.Teams(2048, 32), "mixed": simtest.Teams(2048, 16)} {
			got, err := price.Fill(in, weight, entities)
			if err != nil {
				t.Fatal(err)
			}
			over(t, in, got.X)
			if got.Short || got.Phases > k {
				t.Errorf("%d models, %s: %d phases, short: %v", k, name, got.Phases, got.Short)
			}
			if name != "flat" {
				continue
			}
			low := math.Inf(1)
			for m, l := range got.Level {
				low = min(low, l/weight[m])
			}
			if math.Abs(low-first.Low) > 1e-8*low {
				t.Errorf("%d models: %.12g, want %.12g", k, low, first.Low)
			}
		}
	}
}
