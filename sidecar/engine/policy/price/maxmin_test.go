package price

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawSpeed draws speeds of every kind: continuous, of a few values so that prices tie,
// 0, very small and very large.
var drawSpeed = rapid.OneOf(
	rapid.Float64Range(0.1, 10),
	rapid.Map(rapid.IntRange(1, 4), func(i int) float64 { return float64(i) }),
	rapid.Map(rapid.IntRange(1, 4), func(i int) float64 { return float64(i) }),
	rapid.Just(0.),
	rapid.SampledFrom([]float64{1e-12, 1e-3, 1e3, 1e9}),
)

// drawInstance draws a small instance in which every job can run somewhere.
func drawInstance(t *rapid.T, jobs int, speed *rapid.Generator[float64]) Instance {
	n, k := rapid.IntRange(1, jobs).Draw(t, "jobs"), rapid.IntRange(1, 5).Draw(t, "models")
	in := Instance{GPUs: make([]float64, k), Gang: make([]float64, n), Speed: make([]float64, n*k)}
	for j := range in.GPUs {
		in.GPUs[j] = float64(rapid.IntRange(1, 8).Draw(t, "GPUs"))
	}
	for m := range in.Gang {
		in.Gang[m] = float64(rapid.IntRange(1, 4).Draw(t, "gang"))
		for j := range k {
			in.Speed[m*k+j] = speed.Draw(t, "speed")
		}
		if highest(in.Speed[m*k:(m+1)*k]) == 0 {
			in.Speed[m*k+rapid.IntRange(0, k-1).Draw(t, "somewhere")] = 1
		}
	}
	return in
}

func solved(t interface{ Fatalf(string, ...any) }, in Instance) Answer {
	got, err := MaxMin(in)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return got
}

func TestMaxMinIsFeasibleAndCertified(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 30, drawSpeed)
		got := solved(t, in)
		feasible(t, in, got.X)
		if got.High-got.Low > 1e-9*got.High {
			t.Errorf("between %.12g and %.12g after %d looks", got.Low, got.High, got.Rounds)
		}
		if low := slices.Min(levels(len(in.GPUs), got.X, in.Speed)); low != got.Low {
			t.Errorf("X gives %v, not %v", low, got.Low)
		}
	})
}

// Where speeds lie within what a dense table can bear.
func TestMaxMinIsWhatTheDumbSolverFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 8, rapid.OneOf(rapid.Float64Range(0.1, 10), rapid.Map(rapid.IntRange(0, 3), func(i int) float64 { return float64(i) })))
		got, want := solved(t, in), dumbMaxMin(t, in)
		if math.Abs(got.Low-want) > 1e-8*want {
			t.Errorf("%.12g, want %.12g", got.Low, want)
		}
	})
}

// Gavel §4.4: the smallest level is at least what 1/n of every model gives.
func TestMaxMinHasSharingIncentive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 30, drawSpeed)
		k, n := len(in.GPUs), len(in.Gang)
		x := make([]float64, n*k)
		for m, s := range in.Gang {
			time := 0.0
			for j, have := range in.GPUs {
				x[m*k+j] = have / (float64(n) * s)
				time += x[m*k+j]
			}
			for j := range k {
				x[m*k+j] /= max(time, 1)
			}
		}
		alone := slices.Min(levels(k, x, in.Speed))
		if got := solved(t, in); got.Low < alone*(1-1e-9) {
			t.Errorf("%v, and 1/n of the cluster gives %v", got.Low, alone)
		}
	})
}

// Jobs that are alike are one job with the sum of their gangs, and the order of jobs does
// not count.
func TestMaxMinTakesJobsInAnyOrderAndPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 10, drawSpeed)
		k := len(in.GPUs)
		other := Instance{GPUs: in.GPUs}
		for _, m := range rapid.Permutation(seq(len(in.Gang))).Draw(t, "order") {
			parts := rapid.IntRange(1, 3).Draw(t, "parts")
			for range parts {
				other.Gang = append(other.Gang, in.Gang[m]/float64(parts))
				other.Speed = append(other.Speed, in.Speed[m*k:(m+1)*k]...)
			}
		}
		a, b := solved(t, in), solved(t, other)
		if math.Abs(a.Low-b.Low) > 1e-9*a.Low {
			t.Errorf("%.12g, and %.12g in another order", a.Low, b.Low)
		}
	})
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func TestMaxMinGivesTheSameBytes(t *testing.T) {
	in := weighted(scarce(512, 8))
	a, b := solved(t, in), solved(t, in)
	if !slices.Equal(a.X, b.X) || a.High != b.High || a.Rounds != b.Rounds {
		t.Error("two answers to one instance")
	}
}

// At sizes where jobs are taken together in sums.
func TestMaxMinIsCertifiedAtSize(t *testing.T) {
	for _, k := range []int{1, 3, 8, 12} {
		in := weighted(scarce(3000, k))
		got := solved(t, in)
		feasible(t, in, got.X)
		if got.High-got.Low > 1e-9*got.High {
			t.Errorf("%d models: between %.12g and %.12g", k, got.Low, got.High)
		}
		if k > 1 && got.Rounds < 10 {
			t.Errorf("%d models: done in %d looks: the instance tries nothing", k, got.Rounds)
		}
	}
}

func TestBadInstancesAreRefused(t *testing.T) {
	good := func() Instance {
		return Instance{GPUs: []float64{1, 2}, Gang: []float64{1, 1}, Speed: []float64{1, 2, 3, 4}}
	}
	for name, c := range map[string]struct {
		spoil func(*Instance)
		want  error
	}{
		"no models":         {func(in *Instance) { in.GPUs = nil }, ErrShape},
		"no jobs":           {func(in *Instance) { in.Gang, in.Speed = nil, nil }, ErrShape},
		"a speed is lost":   {func(in *Instance) { in.Speed = in.Speed[1:] }, ErrShape},
		"NaN speed":         {func(in *Instance) { in.Speed[1] = math.NaN() }, ErrNumber},
		"infinite speed":    {func(in *Instance) { in.Speed[1] = math.Inf(1) }, ErrNumber},
		"negative speed":    {func(in *Instance) { in.Speed[1] = -1 }, ErrNumber},
		"absurd speed":      {func(in *Instance) { in.Speed[1] = 1e31 }, ErrNumber},
		"gang of 0":         {func(in *Instance) { in.Gang[0] = 0 }, ErrNumber},
		"NaN gang":          {func(in *Instance) { in.Gang[0] = math.NaN() }, ErrNumber},
		"no GPUs":           {func(in *Instance) { in.GPUs[0] = 0 }, ErrNumber},
		"infinite GPUs":     {func(in *Instance) { in.GPUs[0] = math.Inf(1) }, ErrNumber},
		"runs on no model":  {func(in *Instance) { in.Speed[2], in.Speed[3] = 0, 0 }, ErrNowhere},
		"nothing is spoilt": {func(*Instance) {}, nil},
	} {
		in := good()
		c.spoil(&in)
		if _, err := MaxMin(in); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
