package price

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// checkShares fails where more GPUs are given than there are, throughputs differ, or the
// bounds are apart.
func checkShares(t interface{ Errorf(string, ...any) }, gpus, weight, speedup []float64, got Answer) {
	k := len(gpus)
	for j, n := range gpus {
		sum := 0.0
		for l := range weight {
			if !(got.X[l*k+j] >= 0) {
				t.Errorf("tenant %d has %v GPUs of model %d", l, got.X[l*k+j], j)
			}
			sum += got.X[l*k+j]
		}
		if sum > n*(1+1e-9) {
			t.Errorf("%v of %v GPUs of model %d", sum, n, j)
		}
	}
	for l, e := range levels(k, got.X, speedup) {
		if math.Abs(e/weight[l]-got.Low) > 1e-9*got.Low {
			t.Errorf("tenant %d has %v by weight, not %v", l, e/weight[l], got.Low)
		}
	}
	if got.High-got.Low > 1e-9*got.High {
		t.Errorf("between %.12g and %.12g after %d looks", got.Low, got.High, got.Rounds)
	}
}

// drawMarket draws tenants with speedups over a few models.
func drawMarket(t *rapid.T, speedup *rapid.Generator[float64]) (gpus, weight, speed []float64) {
	k := rapid.IntRange(1, 5).Draw(t, "models")
	for range k {
		gpus = append(gpus, float64(rapid.IntRange(1, 30).Draw(t, "GPUs")))
	}
	for range rapid.IntRange(1, 8).Draw(t, "tenants") {
		weight = append(weight, float64(rapid.IntRange(1, 4).Draw(t, "weight")))
		row := rapid.SliceOfN(speedup, k, k).Draw(t, "speedup")
		row[0] = max(row[0], 1e-3)
		speed = append(speed, row...)
	}
	return gpus, weight, speed
}

func TestEqualThroughputIsCertified(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gpus, weight, speed := drawMarket(t, drawSpeed)
		got, err := EqualThroughput(gpus, weight, speed)
		if err != nil {
			t.Fatal(err)
		}
		checkShares(t, gpus, weight, speed, got)
	})
}

var plainSpeed = rapid.OneOf(rapid.Float64Range(0.1, 10), rapid.Map(rapid.IntRange(0, 3), func(i int) float64 { return float64(i) }))

func TestEqualThroughputIsWhatTheDumbSolverFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gpus, weight, speed := drawMarket(t, plainSpeed)
		got, err := EqualThroughput(gpus, weight, speed)
		if err != nil {
			t.Fatal(err)
		}
		k, n := len(gpus), len(weight)
		var a [][]float64
		var b []float64
		for j, have := range gpus {
			row := make([]float64, n*k+1)
			for l := range n {
				row[l*k+j] = 1
			}
			a, b = append(a, row), append(b, have)
		}
		for l := range n {
			row := make([]float64, n*k+1)
			row[n*k] = weight[l]
			for j := range k {
				row[l*k+j] = -speed[l*k+j]
			}
			a, b = append(a, row), append(b, 0)
		}
		c := make([]float64, n*k+1)
		c[n*k] = 1
		if want, _ := simplex(t, a, b, c); math.Abs(got.Low-want) > 1e-8*want {
			t.Errorf("%.12g, want %.12g", got.Low, want)
		}
	})
}

// OEF §4.2.3: a tenant of weight w is w tenants.
func TestEqualThroughputOfWeightsIsThatOfReplicas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gpus, weight, speed := drawMarket(t, drawSpeed)
		var ones, rows []float64
		k := len(gpus)
		for l, w := range weight {
			for range int(w) {
				ones, rows = append(ones, 1), append(rows, speed[l*k:(l+1)*k]...)
			}
		}
		a, err := EqualThroughput(gpus, weight, speed)
		if err != nil {
			t.Fatal(err)
		}
		b, err := EqualThroughput(gpus, ones, rows)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(a.Low-b.Low) > 1e-9*a.Low {
			t.Errorf("%.12g by weights, %.12g by replicas", a.Low, b.Low)
		}
	})
}

// OEF §5.2, Theorem 5.4, and its proof: the throughput of a tenant that inflates a speedup
// does not rise.
func TestEqualThroughputDoesNotRewardInflation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gpus, weight, speed := drawMarket(t, plainSpeed)
		k := len(gpus)
		honest, err := EqualThroughput(gpus, weight, speed)
		if err != nil {
			t.Fatal(err)
		}
		liar := rapid.IntRange(0, len(weight)-1).Draw(t, "liar")
		told := slices.Clone(speed)
		told[liar*k+rapid.IntRange(0, k-1).Draw(t, "model")] *= rapid.Float64Range(1, 3).Draw(t, "inflation")
		got, err := EqualThroughput(gpus, weight, told)
		if err != nil {
			t.Fatal(err)
		}
		if is := levels(k, got.X, speed)[liar] / weight[liar]; is > honest.Low*(1+1e-9) {
			t.Errorf("%v instead of %v", is, honest.Low)
		}
	})
}

func TestBadMarketsAreRefused(t *testing.T) {
	two := []float64{1, 2}
	for name, c := range map[string]struct {
		gpus, weight, speedup []float64
		want                  error
	}{
		"no models":        {nil, two, nil, ErrShape},
		"no tenants":       {two, nil, nil, ErrShape},
		"a speedup lost":   {two, two, []float64{1, 2, 3}, ErrShape},
		"weight 0":         {two, []float64{1, 0}, []float64{1, 2, 1, 2}, ErrNumber},
		"NaN weight":       {two, []float64{1, math.NaN()}, []float64{1, 2, 1, 2}, ErrNumber},
		"NaN GPUs":         {[]float64{1, math.NaN()}, two, []float64{1, 2, 1, 2}, ErrNumber},
		"negative speedup": {two, two, []float64{1, 2, 1, -2}, ErrNumber},
		"NaN speedup":      {two, two, []float64{1, 2, 1, math.NaN()}, ErrNumber},
		"of no use":        {two, two, []float64{1, 2, 0, 0}, ErrNowhere},
		"nothing is wrong": {two, two, []float64{1, 2, 0, 1}, nil},
	} {
		if _, err := EqualThroughput(c.gpus, c.weight, c.speedup); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
