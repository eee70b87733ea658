package main

import (
	"fmt"
	"runtime/debug"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// asks measures what a tenant gains at most in useful GPU time by asking for GPUs that it does not need, or later than it could, under
// astraea and under Karma. The best strategy is chosen on some histories and judged on others: the most of several means is too high by chance.
// Histories with jobs that cannot be stopped are shown by themselves, too: there is a gain in these, which the mean over all hides.
func asks() error {
	const chosen, judged = 5, 32 // histories
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	all := simtest.Asks()
	fmt.Printf("%d ways to ask of one of four tenants with bursts, in two days; the best of %d histories is judged in %d others\n", len(all), chosen, judged)
	for _, x := range []struct{ figure, scheduler string }{{"karma_gain_pct", "astraea"}, {"karma_gain_by_karma_pct", "karma"}} {
		useful := func(a simtest.Ask, from, to uint64) (out []cluster.GPUTime, err error) {
			for seed := from; seed < to; seed++ {
				s, err := baseline.New(x.scheduler, baseline.Options{})
				if err != nil {
					return nil, err
				}
				got, err := simtest.DrawBursts(seed).Useful(a, s.Decide)
				if err != nil {
					return nil, fmt.Errorf("history %d, %s: %w", seed, a, err)
				}
				out = append(out, got)
			}
			return out, nil
		}
		gain := func(a simtest.Ask, honest []cluster.GPUTime, from, to uint64) (mean, sem float64, err error) {
			got, err := useful(a, from, to)
			if err != nil {
				return 0, 0, err
			}
			mean, sem = simtest.MeanGain(honest, got)
			return mean, sem, nil
		}
		honest, err := useful(simtest.Ask{}, 0, chosen+judged)
		if err != nil {
			return err
		}
		var best simtest.Ask
		most := 0.0
		for i, a := range all {
			mean, sem, err := gain(a, honest[:chosen], 0, chosen)
			if err != nil {
				return err
			}
			fmt.Printf("%s, %s: %+.1f %% (standard error %.1f)\n", x.scheduler, a, mean, sem)
			if i == 0 || mean > most {
				best, most = a, mean
			}
		}
		got, err := useful(best, chosen, chosen+judged)
		if err != nil {
			return err
		}
		mean, sem := simtest.MeanGain(honest[chosen:], got)
		fmt.Printf("%s: %s gains %+.2f %% (standard error %.2f)", x.scheduler, best, mean, sem)
		for k, what := range []string{"all jobs can be stopped", "some cannot"} {
			var with, without []cluster.GPUTime
			for i := range got {
				if seed := chosen + i; simtest.BurstsBound(uint64(seed)) == (k == 1) {
					with, without = append(with, got[i]), append(without, honest[seed])
				}
			}
			mean, sem := simtest.MeanGain(without, with)
			fmt.Printf("; where %s %+.2f %% (%.2f)", what, mean, sem)
		}
		fmt.Println()
		figure(x.figure, mean, "%")
	}
	return nil
}
