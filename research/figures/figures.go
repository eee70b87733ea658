package figures

import (
	"context"
	"fmt"

	_ "github.com/fairlease/fairlease/research/papers"
	"github.com/fairlease/fairlease/research/steady"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/report"
)

// Figure makes charts that come of the same runs.
type Figure struct {
	Paper string // gandiva-fair, gavel or oef
	Name  string
	Make  func(context.Context) ([]report.Chart, error)
}

// All lists the figures. Those of Gavel's runs read its authors' data, in a folder, and say what run is over.
func All(data string, say func(run string)) []Figure {
	runs := func(of func(*lab, context.Context) ([]report.Chart, error)) func(context.Context) ([]report.Chart, error) {
		return func(ctx context.Context) ([]report.Chart, error) {
			l, err := quarter(data, say)
			if err != nil {
				return nil, err
			}
			return of(l, ctx)
		}
	}
	single, multiple := []float64{0.7, 1.1, 1.4}, []float64{0.25, 0.5, 0.65} // a quarter of what Gavel's loads are
	return []Figure{
		{"gandiva-fair", "8, 10, 11", func(ctx context.Context) ([]report.Chart, error) {
			return trading(ctx, 8*cluster.Hour, 30*cluster.Minute)
		}},
		{"gandiva-fair", "4, 5, 6, 7", shares},
		{"oef", "4", lying},
		{"oef", "5b", virtualTenants},
		{"oef", "5a, 6", func(context.Context) ([]report.Chart, error) { return envyAndSharing() }},
		{"oef", "7, 8", throughput},
		{"oef", "9", func(ctx context.Context) ([]report.Chart, error) { return completion(ctx, 50) }},
		{"oef", "10a", func(context.Context) ([]report.Chart, error) { return scale([]int{10, 20, 50, 100, 200}) }},
		{"oef", "10b", func(ctx context.Context) ([]report.Chart, error) { return wrongSpeedups(ctx, 20) }},
		{"gavel", "9", runs(func(l *lab, ctx context.Context) ([]report.Chart, error) {
			l.first, l.last = 700, 1000 // the blind queue grows for long
			return l.las(ctx, "9", "single", "3.5 times shorter at 5.6 jobs an hour; with pairs 2.2 times shorter than with Gandiva's (§7.3).", single)
		})},
		{"gavel", "10", runs(func(l *lab, ctx context.Context) ([]report.Chart, error) {
			return l.las(ctx, "10", "multiple", "2.2 times shorter at 2.6 jobs an hour; with pairs 2.2 times shorter than with Gandiva's (§7.3).", multiple)
		})},
		{"gavel", "11", runs(func(l *lab, ctx context.Context) ([]report.Chart, error) { return l.fairness(ctx, multiple) })},
		{"gavel", "7.3, FIFO", runs(func(l *lab, ctx context.Context) ([]report.Chart, error) {
			return l.fifo(ctx, map[string][]float64{"single": single, "multiple": multiple})
		})},
		{"gavel", "7.3, makespan", runs(func(l *lab, ctx context.Context) ([]report.Chart, error) { return l.makespan(ctx, 50, 100, 200) })},
		{"gavel", "7.3, priorities", runs(func(l *lab, ctx context.Context) ([]report.Chart, error) { return l.priorities(ctx, single[2:]) })},
		{"gavel", "12, 13", func(context.Context) ([]report.Chart, error) { return entities() }},
		{"gavel", "14", runs(func(l *lab, _ context.Context) ([]report.Chart, error) {
			return l.scaling(512, 32, 64, 128, 256, 512, 1024, 2048)
		})},
		{"gavel", "15a", runs(func(l *lab, ctx context.Context) ([]report.Chart, error) {
			return l.roundLengths(ctx, single, 6, 12, 24, 48)
		})},
		{"gavel", "15b", runs(func(l *lab, ctx context.Context) ([]report.Chart, error) { return l.mechanism(ctx, single) })},
		{"gavel", "15b, lag", func(context.Context) ([]report.Chart, error) { return lag(150, 1000) }},
		{"gavel", "16", runs(func(l *lab, ctx context.Context) ([]report.Chart, error) {
			return l.estimates(ctx, []float64{0.4, 0.6, 0.8})
		})},
	}
}

// over runs users on a fleet under a preset, in steps of equal length.
func over(ctx context.Context, s experiment.Setup, by, fleet string, users []steady.User, until, step cluster.Span, leaves map[string]cluster.Span) ([]steady.Stretch, error) {
	f, err := experiment.ParseFleet(fleet)
	if err != nil {
		return nil, err
	}
	s.Scheduler, s.Load, s.Fleet = by, steady.Load("users", users), f
	if s.Weights == nil {
		s.Weights = experiment.EqualWeights(experiment.Survey(s.Load))
	}
	var moments []cluster.Span
	for at := step; at <= until; at += step {
		moments = append(moments, at)
	}
	out, err := steady.Over(ctx, s, moments, leaves)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", by, err)
	}
	return out, nil
}

// line makes a curve of a number of each stretch, over its middle, in units of time.
func line(name string, over []steady.Stretch, unit cluster.Span, of func(*steady.Stretch) float64) report.Curve {
	c := report.Curve{Name: name}
	from := cluster.Span(0)
	for i := range over {
		c.X = append(c.X, float64(from+over[i].Until)/2/float64(unit))
		c.Y = append(c.Y, of(&over[i]))
		from = over[i].Until
	}
	return c
}

// mean gives the mean of a curve from one x to another.
func mean(c report.Curve, from, to float64) float64 {
	sum, n := 0.0, 0.0
	for i, x := range c.X {
		if x >= from && x < to {
			sum, n = sum+c.Y[i], n+1
		}
	}
	return sum / n
}

// speeds makes the speeds of kinds on models, as multiples of the first model's.
func speeds(models []string, of map[string][]float64) sim.Speeds {
	out := sim.Speeds{}
	for kind, row := range of {
		rates := map[string]sim.Rate{}
		for i, x := range row {
			rates[models[i]] = sim.Rate{Speed: sim.Speed(x * float64(sim.Reference))}
		}
		out[sim.Task{Kind: kind}] = rates
	}
	return out
}
