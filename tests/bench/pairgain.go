package main

import (
	"context"
	"fmt"

	"github.com/fairlease/fairlease/research/gavel"
	"github.com/fairlease/fairlease/sidecar/cluster"
)

// onPairGain measures pairs of jobs on GPUs (sharing.pairs) on jobs of Gavel's authors, of one GPU each: 2.5 an hour on 36 V100s, which is a little
// more than these can do one by one, and 2.3, where GPUs idle at times. Beside it is the packing of Gandiva, which tries pairs at random.
func onPairGain() error {
	l, err := pairLab()
	if err != nil {
		return err
	}
	hours := func(by string, perHour float64, slices *cluster.Slices) (float64, error) {
		load, err := l.stream("single", perHour)
		if err != nil {
			return 0, err
		}
		s := l.setup(by, load)
		s.Settings.Interval, s.Settings.Slices = 10*cluster.Second, slices
		f, err := gavel.Follow(context.Background(), s, 400, 800)
		return f.Hours(), err
	}
	idleAlone, err := hours("astraea", 2.3, nil)
	if err != nil {
		return err
	}
	idlePairs, err := hours("astraea", 2.3, inPairs)
	if err != nil {
		return err
	}
	alone, err := hours("astraea", 2.5, nil)
	if err != nil {
		return err
	}
	pairs, err := hours("astraea", 2.5, inPairs)
	if err != nil {
		return err
	}
	random, err := hours("gandiva:packing", 2.5, nil)
	if err != nil {
		return err
	}
	fmt.Printf("mean completion of 400 jobs on 36 GPUs: %.2f h on whole GPUs, %.2f h in pairs, %.2f h packed at random\n", alone, pairs, random)
	fmt.Printf("where GPUs idle at times: %.2f h on whole GPUs, %.2f h in pairs\n", idleAlone, idlePairs)
	figure("pair_idle_gain_pct", 100*(idleAlone/idlePairs-1), "%")
	figure("pair_gain_pct", 100*(alone/pairs-1), "%")
	figure("pair_over_gandiva_pct", 100*((alone/pairs-1)/(alone/random-1)-1), "%")
	return nil
}
