package price

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawTree draws entities over the jobs, some of them of entities.
func drawTree(t *rapid.T, jobs []int, depth int) []Entity {
	entities := make([]Entity, rapid.IntRange(1, 3).Draw(t, "entities"))
	of := make([][]int, len(entities))
	for _, m := range jobs {
		i := rapid.IntRange(0, len(entities)-1).Draw(t, "entity")
		of[i] = append(of[i], m)
	}
	for i := range entities {
		entities[i] = Entity{Weight: float64(rapid.IntRange(1, 3).Draw(t, "weight")), FIFO: rapid.IntRange(0, 2).Draw(t, "FIFO") == 0}
		if depth > 0 && rapid.Bool().Draw(t, "entities inside") {
			entities[i].Of = drawTree(t, of[i], depth-1)
		} else {
			entities[i].Jobs = of[i]
		}
	}
	return entities
}

// numbers gives the jobs 0 to n-1.
func numbers(n int) []int {
	out := make([]int, n)
	for m := range out {
		out[m] = m
	}
	return out
}

// dumb pours by the definition: it divides the water of an entity between its members by halving.
type dumb struct{ weight, low, high, level []float64 }

func (d *dumb) bounds(e Entity) (low, high float64) {
	for _, m := range e.Jobs {
		low, high = low+d.low[m], high+d.high[m]
	}
	for _, o := range e.Of {
		l, h := d.bounds(o)
		low, high = low+l, high+h
	}
	return low, high
}

func (d *dumb) pour(e Entity, due float64) {
	var weight, low, high []float64
	for _, m := range e.Jobs {
		weight, low, high = append(weight, d.weight[m]), append(low, d.low[m]), append(high, d.high[m])
	}
	for _, o := range e.Of {
		l, h := d.bounds(o)
		weight, low, high = append(weight, o.Weight), append(low, l), append(high, h)
	}
	part := make([]float64, len(weight))
	all := func(height float64) (sum float64) {
		for i := range part {
			part[i] = min(max(weight[i]*height, low[i]), high[i])
			sum += part[i]
		}
		return sum
	}
	if e.FIFO {
		left := due
		for _, l := range low {
			left -= l
		}
		for i := range part {
			part[i] = low[i] + min(max(left, 0), high[i]-low[i])
			left -= part[i] - low[i]
		}
	} else {
		under, over := 0.0, 1e6
		for range 200 {
			if middle := (under + over) / 2; all(middle) < due {
				under = middle
			} else {
				over = middle
			}
		}
		all(over)
	}
	for i, m := range e.Jobs {
		d.level[m] = part[i]
	}
	for i, o := range e.Of {
		d.pour(o, part[i])
	}
}

// The siblings of a job have the rest that it cannot use, then those one level up.
func TestWhatOneLeavesGoesToItsSiblings(t *testing.T) {
	tenants := []Entity{{Weight: 1, Of: []Entity{{Weight: 1, Jobs: []int{0, 1}}, {Weight: 1, Jobs: []int{2}}}}, {Weight: 1, Jobs: []int{3}}}
	for _, c := range []struct {
		caps, want []float64
	}{
		{[]float64{9, 9, 9, 9}, []float64{2, 2, 4, 8}},
		{[]float64{1, 9, 9, 9}, []float64{1, 3, 4, 8}},
		{[]float64{1, 1, 9, 9}, []float64{1, 1, 6, 8}},
		{[]float64{1, 1, 1, 9}, []float64{1, 1, 1, 8}},
	} {
		if got := Pour(tenants, []float64{1, 1, 1, 1}, c.caps, 8); !slices.Equal(got, c.want) {
			t.Errorf("with caps %v: %v, want %v", c.caps, got, c.want)
		}
	}
}

// Water stands by the definition at any depth, with caps, floors and jobs that stand for good, and rises as fast as it says.
func TestWaterIsPouredByTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "jobs")
		entities := drawTree(t, numbers(n), 2)
		some := rapid.Map(rapid.IntRange(0, 8), func(i int) float64 { return float64(i) / 4 })
		d := dumb{weight: drawWeights(t, n), low: make([]float64, n), high: make([]float64, n), level: make([]float64, n)}
		floors, full := rapid.Bool().Draw(t, "floors"), make([]bool, n)
		for m := range n {
			d.high[m] = some.Draw(t, "cap")
			if floors {
				d.low[m] = min(some.Draw(t, "floor"), d.high[m])
			}
			if full[m] = rapid.IntRange(0, 4).Draw(t, "full") == 0; full[m] {
				d.low[m] = d.high[m]
			}
		}
		w := newWater(entities, d.weight, d.high, d.low)
		copy(w.full, full)
		most := w.settle()
		tau := rapid.Float64Range(0, 1).Draw(t, "tau") * most
		check := func(tau float64) {
			for _, e := range entities {
				d.pour(e, e.Weight*tau)
			}
			w.pour(tau)
			for m, want := range d.level {
				if math.Abs(w.level[m]-want) > 1e-9 {
					t.Fatalf("at %v job %d stands at %v, want %v (%+v, caps %v, floors %v)", tau, m, w.level[m], want, entities, d.high, d.low)
				}
			}
		}
		check(0)
		check(most)
		check(tau)
		before, rate := append([]float64(nil), w.level...), append([]float64(nil), w.rate...)
		const step = 1e-7
		w.pour(tau + step)
		for m := range n {
			if rose := (w.level[m] - before[m]) / step; math.Abs(rose-rate[m]) > 1e-6*max(rate[m], 1) && w.rate[m] == rate[m] {
				t.Fatalf("at %v job %d rises by %v, and it says %v", tau, m, rose, rate[m])
			}
		}
	})
}
