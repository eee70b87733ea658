package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/tests/traces"
)

// period is the jobs of some days on a cluster. Defaults are chosen on some windows and judged on others; no day of a trace is in two of them.
type period struct {
	traces.Scene
	from, days int // of the trace
	judged     bool
	made       func() trace.Recipe // nil = days of a trace
}

// windows are those of real traces, then made-up ones. As many GPUs are wanted on average as the cluster has, more or less.
var windows = []period{
	{traces.VenusOf("venus80", "venus_2w.csv.gz", 80), 0, 7, false, nil},
	{traces.VenusOf("venus100", "venus_2w.csv.gz", 100), 7, 7, true, nil},
	{traces.VenusOf("may80", "venus_gpu_20d.csv.gz", 80), 0, 6, true, nil},
	{traces.PhillyOf("before52", "philly_3w_before.csv.gz", 52), 0, 7, false, nil},
	{traces.PhillyOf("before56", "philly_3w_before.csv.gz", 56), 7, 7, false, nil},
	{traces.PhillyOf("before60", "philly_3w_before.csv.gz", 60), 14, 7, true, nil},
	{traces.PhillyOf("philly64", "philly_2w_most_demand.csv.gz", 64), 0, 7, true, nil},
	{traces.PhillyOf("philly72", "philly_2w_most_demand.csv.gz", 72), 7, 7, false, nil},
	{traces.PhillyOf("early48", "philly_4w_late.csv.gz", 48), 0, 7, false, nil},
	{traces.PhillyOf("late28", "philly_4w_late.csv.gz", 28), 7, 7, true, nil},
	{traces.PhillyOf("late40", "philly_4w_late.csv.gz", 40), 14, 7, false, nil},
	{traces.PhillyOf("last36", "philly_4w_late.csv.gz", 36), 21, 7, true, nil},
	{traces.Scene{Name: "made-philly", Fleet: "32x8"}, 0, 7, false, func() trace.Recipe { return likeWeek(1, 0.9, phillySizes, false) }},
	{traces.Scene{Name: "made-helios", Fleet: "32x8"}, 0, 7, false, func() trace.Recipe { return likeWeek(2, 0.9, heliosSizes, false) }},
	{traces.Scene{Name: "made-bursts", Fleet: "32x8"}, 0, 7, false, func() trace.Recipe { return likeWeek(3, 0.8, phillySizes, true) }},
	{traces.Scene{Name: "made-gangs", Fleet: "32x8"}, 0, 7, false, func() trace.Recipe { return likeWeek(4, 0.8, gangSizes, false) }},
	{traces.Scene{Name: "drawn-philly", Fleet: "32x8"}, 0, 7, true, func() trace.Recipe { return likeWeek(5, 0.9, phillySizes, false) }},
	{traces.Scene{Name: "drawn-helios", Fleet: "32x8"}, 0, 7, true, func() trace.Recipe { return likeWeek(6, 0.9, heliosSizes, false) }},
	{traces.Scene{Name: "drawn-bursts", Fleet: "32x8"}, 0, 7, true, func() trace.Recipe { return likeWeek(7, 0.8, phillySizes, true) }},
	{traces.Scene{Name: "drawn-gangs", Fleet: "32x8"}, 0, 7, true, func() trace.Recipe { return likeWeek(8, 0.8, gangSizes, false) }},
}

// Sizes of made-up jobs: Philly's (Gandiva_fair §3.3) with larger gangs, Helios' (a tenth of the jobs has whole nodes), and one with gangs of half the cluster.
var (
	phillySizes = []trace.Size{{GPUs: 1, Share: 84}, {GPUs: 2, Share: 3}, {GPUs: 4, Share: 5}, {GPUs: 8, Share: 6}, {GPUs: 16, Share: 1.5}, {GPUs: 32, Share: 0.5}}
	heliosSizes = []trace.Size{{GPUs: 1, Share: 60}, {GPUs: 2, Share: 8}, {GPUs: 4, Share: 10}, {GPUs: 8, Share: 18}, {GPUs: 16, Share: 3}, {GPUs: 32, Share: 1}}
	gangSizes   = []trace.Size{{GPUs: 1, Share: 50}, {GPUs: 8, Share: 30}, {GPUs: 32, Share: 15}, {GPUs: 64, Share: 4}, {GPUs: 128, Share: 1}}
)

// likeWeek gives a week of jobs of ten tenants that want a part of 256 GPUs on average, none for more than a day and 16 hours. With sweeps,
// half of the jobs come as sweeps of about thirty.
func likeWeek(seed uint64, load float64, sizes []trace.Size, sweeps bool) trace.Recipe {
	r := trace.LikePhilly(seed, 1)
	r.Sizes, r.Durations, r.Tenants, r.Length = sizes, slices.Clone(r.Durations[:5]), trace.Shifts(10, 0.8), 7*cluster.Day
	r.Durations[4].To = 40 * cluster.Hour
	r.PerHour = load * 256 / r.MeanDemand()
	if sweeps {
		r.PerHour /= 2
		r.Burst = trace.Burst{Every: cluster.Span(30 / r.PerHour * float64(cluster.Hour)), Jobs: 30}
	}
	return r
}

// setup reads, or makes, the jobs of a window. They are run to their end.
func (x *period) setup(dir string) (experiment.Setup, error) {
	if x.made != nil {
		s := experiment.Default()
		jobs, err := trace.Generate(x.made())
		if err != nil {
			return s, err
		}
		s.Load = experiment.Load{Name: x.Name, Jobs: jobs}
		s.Weights = experiment.EqualWeights(experiment.Survey(s.Load))
		s.Fleet, err = experiment.ParseFleet(x.Fleet)
		return s, err
	}
	return daysOf(x.Scene, dir, x.from, x.days)
}

// daysOf reads the jobs of some days of a scene. They are run to their end.
func daysOf(x traces.Scene, dir string, first, days int) (experiment.Setup, error) {
	s, err := x.Setup(dir)
	if err != nil {
		return s, err
	}
	s.Load = traces.Between(s.Load, cluster.Span(first)*cluster.Day, cluster.Span(first+days)*cluster.Day)
	return s, nil
}

// chosenFor tells whether a window is meant by -only: all, judged, chosen, or the beginning of its name.
func (x *period) chosenFor(only string) bool {
	switch only {
	case "judged":
		return x.judged
	case "chosen":
		return !x.judged
	}
	return strings.HasPrefix(x.Name, only)
}

// firstDayScores are those by which a site without jobs that save compares itself with Slurm alone.
var firstDayScores = []struct {
	name string
	of   func(s *score.Scores, v values) float64
	// worse tells how many times worse a is than b: below 1, better.
	worse func(a, b float64) float64
}{
	{"mean JCT h", func(_ *score.Scores, v values) float64 { return v.jct }, func(a, b float64) float64 { return a / b }},
	{"p95 JCT h", func(s *score.Scores, _ values) float64 { return s.Completion.P95 / 3600 }, func(a, b float64) float64 { return a / b }},
	{"lowest rho", func(_ *score.Scores, v values) float64 { return v.lowest }, func(a, b float64) float64 { return b / a }},
	{"loss %", func(_ *score.Scores, v values) float64 { return v.loss }, points},
	{"unfair days %", func(_ *score.Scores, v values) float64 { return v.unfair }, points},
}

// points compares percents by their difference.
func points(a, b float64) float64 { return 1 + (a-b)/100 }

// roundsOfWindows are the lengths of rounds over which scores are means.
var roundsOfWindows = []cluster.Span{10 * cluster.Second, 20 * cluster.Second, 30 * cluster.Second}

// onWindows compares astraea with plain Slurm on each window that only names, where jobs save as told. Variants are settings to compare with, as in
// "jobs: {order: rho}; bind: {max: 10}". It prints the means over roundsOfWindows, and by how many times each score is worse than plain Slurm's.
// The figure is of the defaults on what is judged, on real traces.
func onWindows(dir, only, variants, saves string) error {
	list := []string{""}
	if variants != "" {
		list = append(list, strings.Split(variants, ";")...)
	}
	var noise float64
	worst := make([]float64, len(list))
	sums := make([][]float64, len(list))
	for i := range windows {
		x := &windows[i]
		if !x.chosenFor(only) {
			continue
		}
		apart, err := x.compare(dir, saves, list, worst, sums)
		if err != nil {
			return err
		}
		if x.made == nil {
			noise = max(noise, apart)
		}
	}
	fmt.Printf("worse than plain Slurm, means over the windows and the worst:\n")
	for k, v := range list {
		fmt.Printf("  %-50s", orDefault(v))
		for m := range firstDayScores {
			mean, most := 0.0, 0.0
			for at := m; at < len(sums[k]); at += len(firstDayScores) {
				mean += sums[k][at] / float64(len(sums[k])/len(firstDayScores))
				most = max(most, sums[k][at])
			}
			fmt.Printf("  %s %.3f (%.3f)", firstDayScores[m].name, mean, most)
		}
		fmt.Println()
	}
	fmt.Printf("plain Slurm beside itself with rounds of other lengths: %.3f\n", noise)
	if only == "judged" && saves == "never" {
		figure("first_day_worst", worst[0], "")
		figure("first_day_plain_slurm", noise, "")
		if k := slices.Index(list, fewStops); k > 0 {
			figure("first_day_few_stops_worst", worst[k], "")
		}
	}
	return nil
}

func orDefault(v string) string {
	if v = strings.TrimSpace(v); v == "" {
		return "as by default"
	}
	return v
}

// fewStops is a setting by which stopped jobs lose hardly any work. It is measured beside the defaults: a site whose jobs do not save may ask for it.
const fewStops = "stop: {allowance: 1m}"

// compare runs a window. By variant, it adds to sums how many times worse each score is, and to worst the most of them. It returns how many
// times worse the worst run of plain Slurm is than its best, in the score in which these are farthest apart.
func (x *period) compare(dir, saves string, list []string, worst []float64, sums [][]float64) (apart float64, err error) {
	base, err := x.setup(dir)
	if err != nil {
		return 0, err
	}
	base.Until = 0
	m := manner{saves: saves, byJob: true}
	if err := m.onto(&base); err != nil {
		return 0, err
	}
	var setups []experiment.Setup
	for k := -1; k < len(list); k++ {
		for _, interval := range roundsOfWindows {
			s := base
			if k < 0 {
				s.Scheduler = "slurm-multifactor"
			} else if s.Settings, err = settingsOf(list[k]); err != nil {
				return 0, err
			}
			s.Settings.StartCost, s.Settings.Interval = base.Settings.StartCost, interval
			s.Settings = experiment.Fit(s.Settings)
			setups = append(setups, s)
		}
	}
	results, err := together(setups)
	if err != nil {
		return 0, err
	}
	n := len(roundsOfWindows)
	for a := range n {
		for b := range n {
			x, y := &results[a].Scores, &results[b].Scores
			for _, s := range firstDayScores {
				apart = max(apart, s.worse(s.of(x, valuesOf(x)), s.of(y, valuesOf(y))))
			}
		}
	}
	means := func(k int) []float64 {
		out := make([]float64, len(firstDayScores))
		for _, r := range results[k*n : (k+1)*n] {
			if v := valuesOf(&r.Scores); v.unfinished == 0 {
				for i, s := range firstDayScores {
					out[i] += s.of(&r.Scores, v) / float64(n)
				}
				continue
			}
			for i := range out {
				out[i] = math.NaN()
			}
		}
		return out
	}
	plain := means(0)
	fmt.Printf("%-13s %-6s %-40s", x.Name, x.Fleet, "plain Slurm")
	for i := range firstDayScores {
		fmt.Printf("  %s %7.3f        ", firstDayScores[i].name, plain[i])
	}
	fmt.Println()
	for k, v := range list {
		ours := means(k + 1)
		fmt.Printf("%-13s %-6s %-40s", "", "", orDefault(v))
		for i, s := range firstDayScores {
			times := s.worse(ours[i], plain[i])
			if math.IsNaN(times) {
				return 0, errors.New("jobs of " + x.Name + " did not end")
			}
			fmt.Printf("  %s %7.3f (%5.3f)", s.name, ours[i], times)
			if sums[k] = append(sums[k], times); x.made == nil {
				worst[k] = max(worst[k], times)
			}
		}
		lost := 0.0
		for _, r := range results[(k+1)*n : (k+2)*n] {
			lost += 100 * r.Overhead.OfRun / float64(n)
		}
		fmt.Printf("  overhead %.2f %%\n", lost)
	}
	return apart, nil
}

// settingsOf gives the settings of a configuration with some keys.
func settingsOf(text string) (cluster.Settings, error) {
	c, err := config.Parse("-set", []byte("{"+strings.TrimSpace(text)+"}"), nil)
	if err != nil {
		return cluster.Settings{}, err
	}
	return c.Settings(), nil
}
