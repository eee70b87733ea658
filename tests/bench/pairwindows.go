package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"

	"github.com/fairlease/fairlease/research/gavel"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// pairWindow is jobs 200 to 400, in order of arrival, of Gavel's authors (seed 0) or drawn like theirs, of one GPU each.
type pairWindow struct {
	seed    uint64
	perHour float64
}

func (w pairWindow) String() string {
	of := "the authors' jobs"
	if w.seed > 0 {
		of = fmt.Sprintf("drawn jobs, seed %d", w.seed)
	}
	return fmt.Sprintf("%s, %v an hour", of, w.perHour)
}

var pairWindows = []pairWindow{{0, 3}, {0, 2.5}, {1, 2.5}}

// pairWays are ways to have one, two or three jobs on a GPU.
var pairWays = []struct {
	name, by string
	turns    *cluster.Slices
}{
	{"gavel:las, one on a GPU", "fairlease:gavel:las", nil},
	{"gavel:las, pairs of the division", "fairlease:gavel:las", inPairs},
	{"astraea, one on a GPU", "astraea", nil},
	{"astraea, pairs of the rounds", "astraea", inPairs},
	{"astraea, two in turn", "astraea", &cluster.Slices{Quantum: cluster.Minute}},
	{"astraea, three in turn", "astraea", &cluster.Slices{Quantum: cluster.Minute, Jobs: 3}},
}

var inPairs = &cluster.Slices{Quantum: cluster.Minute, Pairs: true}

// pairLab gives an experiment on 36 V100s.
func pairLab() (l lab, err error) {
	if l.table, err = trace.OpenThroughputs(filepath.Join(gavelData, "simulation_throughputs.json.gz")); err != nil {
		return l, err
	}
	l.beside = experiment.BesideOf(l.table, trace.GavelReference)
	l.fleet, err = experiment.ParseFleet("9x4:v100")
	return l, err
}

// load gives the jobs of a window and those around it.
func (w pairWindow) load(l *lab) (experiment.Load, error) {
	if w.seed == 0 {
		return l.stream("single", w.perHour)
	}
	r := trace.LikeGavel(w.seed, w.perHour)
	r.Sizes, r.Table, r.Jobs = []trace.Size{{GPUs: 1, Share: 1}}, l.table, 4000
	jobs, err := trace.Generate(r)
	return experiment.Load{Name: w.String(), Jobs: jobs}, err
}

// onPairWindows measures divisions that give GPUs to pairs beside pairs that the rounds choose, and two or three jobs in turn on a GPU beside one, on
// several windows: mean completion times, and mean slowdowns (time from submission to end over run time alone). Rounds are a minute.
func onPairWindows() error {
	l, err := pairLab()
	if err != nil {
		return err
	}
	n := len(pairWays)
	runs, hours, slow := make([]int, len(pairWindows)*n), make([]float64, len(pairWindows)*n), make([]float64, len(pairWindows)*n)
	for k := range runs {
		runs[k] = k
	}
	fmt.Print("\nJobs of one GPU on 36 V100s\n\n| window | way | mean JCT h | mean slowdown |\n|---|---|---|---|\n")
	if err := sideBySide(runs, func(k int) (string, error) {
		window, way := pairWindows[k/n], pairWays[k%n]
		load, err := window.load(&l)
		if err != nil {
			return "", err
		}
		s := l.setup(way.by, load)
		s.Settings.Interval, s.Settings.Slices = cluster.Minute, way.turns
		f, err := gavel.Follow(context.Background(), s, 200, 400)
		if err != nil {
			return "", err
		}
		hours[k] = f.Hours()
		for i := range f.Jobs {
			slow[k] += float64(f.Jobs[i].Took) / float64(f.Jobs[i].Runs) / float64(len(f.Jobs))
		}
		return fmt.Sprintf("| %s | %s | %.2f | %.2f |\n", window, way.name, hours[k], slow[k]), nil
	}); err != nil {
		return err
	}
	for _, f := range []struct {
		name     string
		of       []float64
		way, now int
	}{
		{"division_pairs_gain_pct", hours, 0, 1}, {"division_pairs_slowdown_gain_pct", slow, 0, 1}, {"division_pairs_over_rounds_pct", hours, 3, 1},
		{"two_in_turn_gain_pct", hours, 2, 4}, {"three_in_turn_gain_pct", hours, 2, 5},
		{"two_in_turn_slowdown_gain_pct", slow, 2, 4}, {"three_in_turn_slowdown_gain_pct", slow, 2, 5},
	} {
		least := math.Inf(1)
		for w := range pairWindows {
			least = min(least, 100*(f.of[w*n+f.way]/f.of[w*n+f.now]-1))
		}
		figure(f.name, least, "%")
	}
	return nil
}
