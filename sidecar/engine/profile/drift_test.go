package profile

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// noise is how a steady job's ln rate varies, in standard deviations.
var noise = map[string]func(r *rand.Rand) float64{
	"normal": (*rand.Rand).NormFloat64,
	"Student, 3 degrees": func(r *rand.Rand) float64 {
		x := 0.0
		for range 3 {
			n := r.NormFloat64()
			x += n * n
		}
		return r.NormFloat64() / math.Sqrt(x/3) / math.Sqrt(3)
	},
	"one sample in 20 at a third": func(r *rand.Rand) float64 {
		if r.IntN(20) == 0 {
			return -3
		}
		return r.NormFloat64() / 2
	},
}

// A steady job of 1,000 samples, 17 hours of one a minute, is thought to have changed
// in at most 1 of 200 cases, whatever its noise.
func TestFewFalseAlarms(t *testing.T) {
	const jobs, samples, most = 400, 1000, 2
	for name, draw := range noise {
		for _, spread := range []float64{0.005, 0.03, 0.3} {
			r := rand.New(rand.NewPCG(1, 2))
			alarms := 0
			for range jobs {
				var p cluster.Pace
				for range samples {
					if notice(&p, 2+spread*draw(r)) {
						alarms++
						break
					}
				}
			}
			t.Logf("%s, spread %g: %d of %d steady jobs raised an alarm in %d samples", name, spread, alarms, jobs, samples)
			if alarms > most {
				t.Errorf("%s, spread %g: %d false alarms, want %d at most", name, spread, alarms, most)
			}
		}
	}
}

// A change that is three times the spread, and more than 10 %, is noticed soon, in either
// direction; one sample that is far off is none.
func TestAChangeOfMannerIsNoticedSoon(t *testing.T) {
	for _, x := range []struct {
		spread, shift float64
		most          int // samples
	}{{0.005, math.Log(0.8), 6}, {0.03, math.Log(0.8), 7}, {0.03, math.Log(1.5), 6}, {0.1, math.Log(0.5), 7}, {0.3, math.Log(0.33), 12}} {
		r := rand.New(rand.NewPCG(3, 4))
		worst := 0
		for range 200 {
			var p cluster.Pace
			for range 100 {
				notice(&p, x.spread*r.NormFloat64())
			}
			if p.Samples < 100 {
				continue // a false alarm: counted by another test
			}
			n := 1
			for !notice(&p, x.shift+x.spread*r.NormFloat64()) {
				n++
				if n > 1000 {
					t.Fatalf("spread %g, shift %.2f: not noticed in 1,000 samples", x.spread, x.shift)
				}
			}
			worst = max(worst, n)
		}
		t.Logf("spread %g, a rate %.2f of what it was: noticed within %d samples", x.spread, math.Exp(x.shift), worst)
		if worst > x.most {
			t.Errorf("spread %g, shift %.2f: noticed after %d samples, want %d at most", x.spread, x.shift, worst, x.most)
		}
	}
	for _, glitch := range []float64{-20, 20} {
		var p cluster.Pace
		for i := range 60 {
			x := 0.01 * math.Sin(float64(i))
			if i == 40 {
				x = glitch
			}
			if notice(&p, x) {
				t.Errorf("one sample at %g in the logarithm counts as a change", glitch)
			}
		}
	}
}
