package policy

import (
	"math"
	"math/rand/v2"
	"testing"
)

// crowd draws n jobs of five kinds, each with a weight of its own, and the pairs of all with as many GPUs.
func crowd(rng *rand.Rand, n int) Problem {
	p := Problem{Models: gpus(float64(n/6), float64(n/8), 3)}
	const kinds = 5
	speed, beside := [kinds][]float64{}, [kinds][kinds]float64{}
	for k := range kinds {
		for range p.Models {
			speed[k] = append(speed[k], 1+9*rng.Float64())
		}
		speed[k][rng.IntN(len(p.Models))] = 0
		for o := range kinds {
			beside[k][o] = rng.Float64()
		}
	}
	kind := make([]int, n)
	for m := range kind {
		kind[m] = rng.IntN(kinds)
		p.Jobs = append(p.Jobs, Job{ID: int64(1 + m), Gang: 1 + kind[m]%2, Weight: .5 + 3*rng.Float64(), Speed: speed[kind[m]]})
	}
	for b := range n {
		for a := range b {
			x, y := kind[a], kind[b]
			if x%2 != y%2 {
				continue
			}
			q := Pair{A: a, B: b}
			for i := range p.Models {
				q.SpeedA, q.SpeedB = append(q.SpeedA, beside[x][y]*speed[x][i]), append(q.SpeedB, beside[y][x]*speed[y][i])
				if q.SpeedA[i] == 0 || q.SpeedB[i] == 0 {
					q.SpeedA[i], q.SpeedB[i] = 0, 0
				}
			}
			p.Pairs = append(p.Pairs, q)
		}
	}
	return p
}

// A program that begins with likely pairs has the same smallest level as with all pairs.
func TestLikelyPairs(t *testing.T) {
	needsCLP(t)
	for seed := range uint64(6) {
		p := crowd(rand.New(rand.NewPCG(seed, 5)), 70)
		d := newDivision(p, Options{}, false)
		need := d.in.ones(true)
		s := d.in.space(func(m int) []float64 { return need[m : m+1] })
		likely, pairs := d.likely(s, need), 0
		begin(d.solve(s, need), likely)
		for _, u := range likely {
			if u.b >= 0 {
				pairs++
			}
		}
		if columns := len(d.solver.ways) - s.alone; pairs == 0 || columns == 0 || columns > pairs {
			t.Errorf("seed %d: %d likely pairs, %d columns", seed, pairs, columns)
		}
		ours := solved(t, "las", p)
		whole, err := Gavel("las", p, Options{Whole: true})
		if err != nil || math.Abs(whole.Objective-ours.Objective) > 1e-8*whole.Objective {
			t.Errorf("seed %d: %v, as a whole %v (%v)", seed, ours.Objective, whole.Objective, err)
		}
	}
	// There are none where all jobs differ, or few are there.
	p := crowd(rand.New(rand.NewPCG(1, 5)), 70)
	for m := range p.Jobs {
		p.Jobs[m].Speed = []float64{1 + float64(m), 2, 3}
	}
	for _, n := range []int{70, 60} {
		p.Jobs = p.Jobs[:n]
		d := newDivision(Problem{Models: p.Models, Jobs: p.Jobs}, Options{}, false)
		if got := d.likely(d.in.space(nil), d.in.ones(true)); got != nil {
			t.Errorf("%d jobs that differ: %d uses", n, len(got))
		}
	}
}
