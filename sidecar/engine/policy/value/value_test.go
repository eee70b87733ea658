package value_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/engine/policy/value"
)

// The answer breaks no row, and its prices prove that none is better: weak duality.
func TestTheBestUseIsProven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, k := rapid.IntRange(1, 8).Draw(t, "kinds"), rapid.IntRange(1, 6).Draw(t, "models")
		whole := rapid.Bool().Draw(t, "whole")
		number := func(low, high int, what string) float64 {
			x := float64(rapid.IntRange(low, high).Draw(t, what))
			if !whole {
				x *= rapid.Float64Range(.1, 1).Draw(t, what)
			}
			return x
		}
		kinds, gpus := make([]value.Kind, n), make([]float64, k)
		for j := range gpus {
			gpus[j] = number(0, 16, "gpus")
		}
		for i := range kinds {
			kinds[i].Most = number(0, 20, "most")
			if rapid.IntRange(0, 5).Draw(t, "any") == 0 {
				kinds[i].Most = math.Inf(1)
			}
			for range k {
				kinds[i].Speed = append(kinds[i].Speed, number(0, 5, "speed"))
			}
		}
		p := value.Of(kinds, gpus)
		if w := value.Worth(kinds, gpus); math.Abs(w-p.Worth) > 1e-9*max(1, w) {
			t.Fatalf("it is worth %v, and %v without its plan", p.Worth, w)
		}
		used, worth := make([]float64, k), 0.0
		for i, part := range p.GPUs {
			sum := 0.0
			for j, x := range part {
				if x < 0 || x > 0 && kinds[i].Speed[j] == 0 {
					t.Fatalf("kind %d has %v of model %d", i, x, j)
				}
				used[j], sum, worth = used[j]+x, sum+x, worth+x*kinds[i].Speed[j]
			}
			if sum > kinds[i].Most*(1+1e-9) {
				t.Fatalf("kind %d has %v, and can use %v", i, sum, kinds[i].Most)
			}
		}
		bound := value.Rest(kinds, p.Price)
		for j, x := range used {
			if x > gpus[j]*(1+1e-9) {
				t.Fatalf("%v of %v GPUs of model %d are used", x, gpus[j], j)
			}
			bound += p.Price[j] * gpus[j]
		}
		if math.Abs(worth-p.Worth) > 1e-9*max(1, worth) || math.Abs(bound-worth) > 1e-9*max(1, worth) {
			t.Fatalf("it is worth %v, says %v, and prices prove %v", worth, p.Worth, bound)
		}
	})
}

func BenchmarkOf(b *testing.B) {
	kinds := make([]value.Kind, 16)
	for i := range kinds {
		kinds[i] = value.Kind{Most: float64(1 + i*7%11), Speed: []float64{1, 1 + float64(i%5)/4, 2 + float64(i%7)/3, 3 + float64(i%3)}}
	}
	for b.Loop() {
		value.Of(kinds, []float64{10, 12, 9, 20})
	}
}
