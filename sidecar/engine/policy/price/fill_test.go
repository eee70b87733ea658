package price

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// dumbFill is Gavel's procedure (§4.3) to the letter: raise all that can rise by their
// weights, as a linear program; find the bottlenecked ones by a linear program each; hand
// their weights on; again.
func dumbFill(t interface{ Fatalf(string, ...any) }, in Instance, weight []float64, entities []Entity) []float64 {
	k, n := len(in.GPUs), len(in.Gang)
	stuck := make([]bool, n)
	base := make([]float64, n)
	// best maximises add·(o, levels of one job) with every level at least base + prio·o.
	// Levels below base cost more than anything gains, so there is always a start: how much more
	// depends on how near each other speeds are, and too much costs digits.
	var best func(prio []float64, one int, dear float64) float64
	best = func(prio []float64, one int, dear float64) float64 {
		a, b := in.rows(n + 1)
		c := make([]float64, n*k+n+1)
		for m := range n {
			row := make([]float64, n*k+n+1)
			row[n*k+m] = 1 // the part of base that is met
			row[n*k+n] = prio[m]
			for j := range k {
				row[m*k+j] = -in.Speed[m*k+j]
			}
			most := make([]float64, n*k+n+1)
			most[n*k+m] = 1
			a, b = append(a, row, most), append(b, 0, base[m])
			c[n*k+m] = dear
		}
		if one < 0 {
			c[n*k+n] = 1
		} else {
			copy(c[one*k:(one+1)*k], in.Speed[one*k:(one+1)*k])
		}
		_, x := simplex(t, a, b, c)
		for m := range n {
			if x[n*k+m] < base[m]-1e-8 {
				if dear < 1e8 {
					return best(prio, one, 100*dear)
				}
				t.Fatalf("job %d at %v, below %v", m, x[n*k+m], base[m])
			}
		}
		if one < 0 {
			return x[n*k+n]
		}
		got := 0.0
		for j := range k {
			got += in.Speed[one*k+j] * x[one*k+j]
		}
		return got
	}
	for range 3 * n {
		prio := make([]float64, n)
		rising := false
		for _, e := range entities {
			sum := 0.0
			for _, m := range e.Jobs {
				if !stuck[m] && (!e.FIFO || sum == 0) {
					prio[m] = weight[m]
					if e.FIFO {
						prio[m] = 1
					}
					sum += prio[m]
				}
			}
			for _, m := range e.Jobs {
				if sum > 0 {
					prio[m] *= e.Weight / sum
					rising = true
				}
			}
		}
		if !rising {
			return base
		}
		o := best(prio, -1, 1e4)
		for m := range base {
			base[m] += prio[m] * o * (1 - 1e-12)
		}
		for m := range base {
			if prio[m] > 0 && best(make([]float64, n), m, 1e4) <= base[m]*(1+1e-7)+1e-9 {
				stuck[m] = true
			}
		}
	}
	t.Fatalf("no bottleneck found")
	return nil
}

// drawEntities draws entities over n jobs.
func drawEntities(t *rapid.T, n int) []Entity {
	entities := make([]Entity, rapid.IntRange(1, 3).Draw(t, "entities"))
	for i := range entities {
		entities[i].Weight = float64(rapid.IntRange(1, 3).Draw(t, "weight"))
		entities[i].FIFO = rapid.Bool().Draw(t, "FIFO")
	}
	for m := range n {
		e := &entities[rapid.IntRange(0, len(entities)-1).Draw(t, "entity")]
		e.Jobs = append(e.Jobs, m)
	}
	return entities
}

func drawWeights(t *rapid.T, n int) []float64 {
	weight := make([]float64, n)
	for m := range weight {
		weight[m] = float64(rapid.IntRange(1, 5).Draw(t, "weight"))
	}
	return weight
}

func filled(t interface{ Fatalf(string, ...any) }, in Instance, weight []float64, entities []Entity) Filling {
	got, err := Fill(in, weight, entities)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return got
}

func TestFillIsGavelsProcedure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 6, rapid.Float64Range(0.5, 4))
		weight, entities := drawWeights(t, len(in.Gang)), drawEntities(t, len(in.Gang))
		got, want := filled(t, in, weight, entities), dumbFill(t, in, weight, entities)
		for m, w := range want {
			if math.Abs(got.Level[m]-w) > 1e-6*max(w, 0.01) {
				t.Errorf("job %d at %.10g, want %.10g", m, got.Level[m], w)
			}
		}
	})
}

// Speeds of a few values, so that prices tie, and zeros.
func TestFillIsGavelsProcedureWithTies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 6, rapid.Map(rapid.IntRange(0, 3), func(i int) float64 { return float64(i) }))
		weight, entities := drawWeights(t, len(in.Gang)), drawEntities(t, len(in.Gang))
		got, want := filled(t, in, weight, entities), dumbFill(t, in, weight, entities)
		for m, w := range want {
			if math.Abs(got.Level[m]-w) > 1e-6*max(w, 0.01) {
				t.Errorf("job %d at %.10g, want %.10g", m, got.Level[m], w)
			}
		}
	})
}

func TestFillIsFeasible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 30, plainSpeed)
		n := len(in.Gang)
		got := filled(t, in, drawWeights(t, n), drawEntities(t, n))
		feasible(t, in, got.X)
		if got.Short {
			t.Errorf("ended early after %d phases", got.Phases)
		}
		if got.Phases > len(in.GPUs) {
			t.Errorf("%d phases for %d models", got.Phases, len(in.GPUs))
		}
	})
}

// Where levels differ by more than a float64 can tell apart it may end early, and says so.
func TestFillIsFeasibleWithAbsurdSpeeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 12, drawSpeed)
		n := len(in.Gang)
		feasible(t, in, filled(t, in, drawWeights(t, n), drawEntities(t, n)).X)
	})
}

// Where filling ends early the rest is given out: no GPU is idle on which a job by itself would be faster,
// and nobody has less than before. So it is wherever filling might have ended.
func TestWhatFillingLeavesIsGivenOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 12, rapid.OneOf(drawSpeed, rapid.Map(rapid.Float64Range(0, 5), func(x float64) float64 { return math.Pow(10, x) })))
		n, k := len(in.Gang), len(in.GPUs)
		weight := drawWeights(t, n)
		got := filled(t, in, weight, drawEntities(t, n))
		if !got.Short {
			early := rapid.Float64Range(0, 1).Draw(t, "ends early")
			a := Answer{X: got.X, Level: got.Level}
			for i := range a.X {
				a.X[i] *= early
			}
			before := levels(k, a.X, in.Speed)
			a.top(in, weight)
			for m, l := range a.Level {
				if l < before[m]*(1-1e-12) {
					t.Fatalf("job %d fell from %v to %v", m, before[m], l)
				}
			}
		}
		feasible(t, in, got.X)
		left := slices.Clone(in.GPUs)
		for m, s := range in.Gang {
			for j := range k {
				left[j] -= s * got.X[m*k+j]
			}
		}
		for m := range in.Gang {
			x, speed, idle := got.X[m*k:(m+1)*k], in.Speed[m*k:(m+1)*k], 1.0
			for _, v := range x {
				idle -= v
			}
			for j, v := range left {
				for i := range x {
					if v > 1e-8*in.GPUs[j] && speed[j] > 0 && (idle > 1e-8 || x[i] > 1e-8 && speed[i] < speed[j]) {
						t.Fatalf("%v of %v GPUs of model %d are idle, and job %d has %v at speeds %v", v, in.GPUs[j], j, m, x, speed)
					}
				}
			}
		}
	})
}

// The smallest level by weight is that of MaxMin.
func TestFillStartsWithMaxMin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 30, plainSpeed)
		weight := drawWeights(t, len(in.Gang))
		got, want := filled(t, in, weight, nil), solved(t, weighted(in, weight))
		low := math.Inf(1)
		for m, l := range got.Level {
			low = min(low, l/weight[m])
		}
		if math.Abs(low-want.Low) > 1e-8*want.Low {
			t.Errorf("%.12g, want %.12g", low, want.Low)
		}
	})
}

func TestBadEntitiesAreRefused(t *testing.T) {
	in := Instance{GPUs: []float64{1}, Gang: []float64{1, 1}, Speed: []float64{1, 2}}
	for name, c := range map[string]struct {
		weight   []float64
		entities []Entity
		want     error
	}{
		"a weight is lost":    {[]float64{1}, nil, ErrShape},
		"weight 0":            {[]float64{1, 0}, nil, ErrNumber},
		"NaN weight":          {[]float64{1, math.NaN()}, nil, ErrNumber},
		"a job of nobody":     {nil, []Entity{{Weight: 1, Jobs: []int{0}}}, ErrShape},
		"a job of two":        {nil, []Entity{{Weight: 1, Jobs: []int{0, 1}}, {Weight: 1, Jobs: []int{1}}}, ErrShape},
		"no such job":         {nil, []Entity{{Weight: 1, Jobs: []int{0, 2}}}, ErrShape},
		"an entity's weight":  {nil, []Entity{{Weight: math.Inf(1), Jobs: []int{0, 1}}}, ErrNumber},
		"a job of two inside": {nil, []Entity{{Weight: 1, Jobs: []int{0, 1}}, {Weight: 1, Of: []Entity{{Weight: 1, Jobs: []int{1}}}}}, ErrShape},
		"weight 0 inside":     {nil, []Entity{{Weight: 1, Of: []Entity{{Jobs: []int{0, 1}}}}}, ErrNumber},
		"jobs and entities":   {nil, []Entity{{Weight: 1, Jobs: []int{0}, Of: []Entity{{Weight: 1, Jobs: []int{1}}}}}, ErrShape},
		"an entity of nobody": {nil, []Entity{{Weight: 1, Jobs: []int{0, 1}}, {Weight: 1}}, nil},
	} {
		if _, err := Fill(in, c.weight, c.entities); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
