package price

import (
	"errors"
	"slices"
	"testing"
)

// An answer is proven by its bound, and refused where its X gives 1e-8 less.
func TestAWorseAnswerIsRefused(t *testing.T) {
	in := Instance{GPUs: []float64{3, 2}, Gang: []float64{1, 2, 1, 4}, Speed: []float64{1, 2, 3, 1, 1, 1.5, 0, 2}}
	for name, c := range map[string]struct {
		solve  func() (Answer, error)
		finish func(*Answer)
	}{
		"MaxMin":          {func() (Answer, error) { return MaxMin(in) }, func(a *Answer) { a.finish(in) }},
		"EqualThroughput": {func() (Answer, error) { return EqualThroughput(in.GPUs, in.Gang, in.Speed) }, func(a *Answer) { a.share(in) }},
	} {
		a, err := c.solve()
		if err != nil || a.proves() != nil {
			t.Fatalf("%s: %v", name, err)
		}
		worse := a
		worse.X = slices.Clone(a.X)
		for i := range worse.X {
			worse.X[i] *= 1 - 1e-8
		}
		c.finish(&worse)
		if err := worse.proves(); !errors.Is(err, ErrGap) {
			t.Errorf("%s: an answer 1e-8 below its bound: %v", name, err)
		}
	}
	a, err := Total(in)
	if a.Low *= 1 - 1e-8; err != nil || !errors.Is(a.proves(), ErrGap) {
		t.Errorf("Total: %v, %v", err, a.proves())
	}
}
