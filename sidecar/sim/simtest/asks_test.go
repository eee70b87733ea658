package simtest_test

import (
	"testing"

	_ "github.com/fairlease/fairlease/research/papers"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// A tenant that keeps GPUs with useless jobs, and runs its wanted ones inside them, gains by it where GPUs go to the first that asks. Under astraea it
// pays for them, and neither this nor useless jobs while it wants nothing gain anything.
func TestUselessJobsGainNothing(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	all := simtest.Ask{Useless: 16, Gang: 1, Fill: true}
	for _, c := range []struct {
		scheduler string
		ask       simtest.Ask
		gains     bool
	}{
		{"fifo", all, true}, {"astraea", all, false}, {"astraea", simtest.Ask{Useless: 1, Gang: 1, Yield: true}, false},
		{"astraea", simtest.Ask{Useless: 8, Gang: 8, Yield: true}, false},
	} {
		t.Run(c.scheduler+", "+c.ask.String(), func(t *testing.T) {
			var honest, other []cluster.GPUTime
			for seed := range seeds.Of(t, 12) {
				for _, ask := range []simtest.Ask{{}, c.ask} {
					s, err := baseline.New(c.scheduler, baseline.Options{})
					if err != nil {
						t.Fatal(err)
					}
					useful, err := simtest.DrawBursts(seed).Useful(ask, s.Decide)
					if err != nil {
						t.Fatal(err)
					}
					if ask == c.ask {
						other = append(other, useful)
					} else {
						honest = append(honest, useful)
					}
				}
			}
			mean, sem := simtest.MeanGain(honest, other)
			if least := mean - 3*sem; !c.gains && least > 1 || c.gains && mean < 5 {
				t.Errorf("the gain in useful GPU time is %+.1f %% (standard error %.1f)", mean, sem)
			}
		})
	}
}
