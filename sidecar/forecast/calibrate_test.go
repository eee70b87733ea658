package forecast

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// after gives the moment so many hours after the beginning.
func after(hours float64) cluster.Instant {
	return begin.Add(cluster.Span(hours * float64(cluster.Hour)))
}

// Statements that are too sure, and too early by half: corrected, eight of ten new outcomes are between P10 and P90, and half of
// them before P50.
func TestCalibration(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	draw := func() (Times, cluster.Instant) {
		mid := 1 + 9*rng.Float64()
		return Times{after(mid / 1.2), after(mid), after(mid * 1.2)}, after(1.5 * mid * math.Exp(0.7*rng.NormFloat64()))
	}
	var past []Outcome
	for range 2000 {
		said, was := draw()
		past = append(past, Outcome{Kind: Ends, At: begin, Horizon: 7 * cluster.Day, Said: said, Was: was, Until: after(200)})
	}
	c := Calibrate(past)
	if c[Starts].Known || !c[Ends].Known || c[Ends].Statements != 2000 || c[Ends].In > 900 {
		t.Errorf("%+v", c)
	}
	in, early := 0, 0
	for range 2000 {
		said, was := draw()
		x := c[Ends].correct(said, begin, 7*cluster.Day)
		if was >= x.P10 && was <= x.P90 {
			in++
		}
		if was < x.P50 {
			early++
		}
	}
	if in < 1540 || in > 1660 || early < 920 || early > 1080 {
		t.Errorf("%d of 2000 are in the interval, %d before the median", in, early)
	}
}

// Events that have not happened yet count as later than now. Left out, outcomes would look as if they came early.
func TestOutcomesThatHaveNotCome(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	said := Times{after(5), after(10), after(20)}
	var past []Outcome
	for range 2000 {
		o := Outcome{Kind: Ends, At: begin, Horizon: 7 * cluster.Day, Said: said, Was: after(10 * math.Exp(rng.NormFloat64())), Until: after(12)}
		if o.Was > o.Until {
			o.Was = 0
		}
		past = append(past, o)
	}
	c := Calibrate(past)
	if x := c[Ends].correct(said, begin, 7*cluster.Day); math.Abs(float64(x.P50.Sub(after(10))))/float64(cluster.Hour) > 0.6 {
		t.Errorf("the median moves to %v", x.P50.Sub(begin))
	}
}

// Few outcomes correct nothing, and a statement beyond the horizon stays there.
func TestWithoutCalibration(t *testing.T) {
	said := Times{after(5), after(10), 0}
	few := make([]Outcome, fewest-1)
	for i := range few {
		few[i] = Outcome{Kind: Ends, At: begin, Horizon: cluster.Day, Said: said, Was: after(1), Until: after(30)}
	}
	c := Calibrate(few)
	if got := c[Ends].correct(said, begin, cluster.Day); got != said {
		t.Errorf("%+v", got)
	}
	c = Calibrate(slices.Concat(few, few))
	if got := c[Ends].correct(said, begin, cluster.Day); got.P90 != 0 || got.P50 >= said.P50 {
		t.Errorf("%+v", got)
	}
}
