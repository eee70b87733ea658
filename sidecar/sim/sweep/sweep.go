// Package sweep tries settings of leases on one trace: terms, intervals and windows. It
// recommends a setting, and writes a large sweep as a Slurm job array whose tasks each save a
// result, and whose last job collects them.
package sweep

import (
	"fmt"
	"io"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/input"
	"github.com/fairlease/fairlease/sidecar/sim/outlet"
	"github.com/fairlease/fairlease/sidecar/sim/report"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// Sweep is the settings to try, as text; an empty list is the configured value.
type Sweep struct {
	Terms, Intervals, Windows []string
	Scheduler                 string
}

// Setups gives a setup for every setting, by window, interval and term.
func (s *Sweep) Setups(base experiment.Setup) ([]experiment.Setup, error) {
	base.Scheduler = s.Scheduler
	var err error
	if base.Prices, err = input.Prices(base.Prices, base.Fleet, base.Scheduler); err != nil {
		return nil, err
	}
	terms, err := spans("--terms", s.Terms, base.Settings.Term)
	if err != nil {
		return nil, err
	}
	intervals, err := spans("--intervals", s.Intervals, base.Settings.Interval)
	if err != nil {
		return nil, err
	}
	windows, err := spans("--windows", s.Windows, base.Settings.Window)
	if err != nil {
		return nil, err
	}
	var out []experiment.Setup
	for _, window := range windows {
		for _, interval := range intervals {
			for _, term := range terms {
				x := base
				x.Settings.Window, x.Settings.Interval, x.Settings.Term = window, interval, term
				x.Settings = experiment.Fit(x.Settings)
				if err := x.Check(); err != nil {
					return nil, failure.Usage("%v", err)
				}
				out = append(out, x)
			}
		}
	}
	return out, nil
}

// spans reads a list of durations; an empty one is the configured value.
func spans(flag string, list []string, configured cluster.Span) ([]cluster.Span, error) {
	if len(list) == 0 {
		return []cluster.Span{configured}, nil
	}
	out := make([]cluster.Span, len(list))
	for i := range list {
		if err := input.Length(flag, strings.TrimSpace(list[i]), &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Write writes the settings of a sweep and the recommended one; html, if not empty, names a file
// for the plots.
func Write(p *view.Page, trials []score.Trial, html string) error {
	rule := score.StandardRule()
	best, why := rule.Choose(trials)
	t := &view.Table{Head: []string{">TERM", ">INTERVAL", ">WINDOW", ">UNFAIR_%", ">LOSS_JOBS", ">LOSS_%", ">MEAN_JCT_H", ">OVERHEAD_%", ">PREEMPTIONS", "VERDICT"}}
	t.Tint = func(row, _ int) string {
		if row == best {
			return "bold"
		}
		return ""
	}
	for i := range trials {
		x := &trials[i].Scores
		unfair := 0.0
		if len(x.Periods) > 0 {
			unfair = x.Periods[0].Ratio()
		}
		t.Add(config.Duration(x.Term).String(), config.Duration(x.Interval).String(), config.Duration(trials[i].Window).String(),
			fmt.Sprintf("%.1f", 100*unfair), fmt.Sprint(x.Loss.Jobs+x.Loss.Unfinished), fmt.Sprintf("%.2f", 100*x.Loss.Share),
			fmt.Sprintf("%.3f", x.Completion.Mean/3600), fmt.Sprintf("%.2f", 100*x.Overhead.OfRun), fmt.Sprint(x.Preemptions), why[i])
	}
	if err := p.List(t, map[string]any{"rule": rule.String(), "chosen": best, "why": why, "trials": trials}); err != nil {
		return err
	}
	if p.ForPeople() {
		p.Printf("\n%s\n", chosen(p, rule, best, trials))
	}
	if html == "" {
		return nil
	}
	return outlet.Files(p.Out, []outlet.File{{Path: html, Write: func(out io.Writer) error {
		return report.Tradeoff(out, "fairlease: lease terms compared", trials, rule)
	}}}, !p.ForPeople())
}

// chosen names the recommended setting and the reason, for the configuration.
func chosen(p *view.Page, rule score.Rule, best int, trials []score.Trial) string {
	if best < 0 {
		return "No setting can be chosen: none came to its end."
	}
	b := &trials[best]
	words := rule.String() + "."
	if b.Scores.Saves != "" {
		words += " Jobs are taken to save: " + b.Scores.Saves + "."
	}
	return p.Paint(fmt.Sprintf("Choose lease.term: %v, interval: %v, fairness.window: %v:", config.Duration(b.Scores.Term), config.Duration(b.Scores.Interval),
		config.Duration(b.Window)), "bold") + "\n" + view.Wrapped(words)
}
