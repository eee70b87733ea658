package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/sim/report"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/study"
	"github.com/fairlease/fairlease/sidecar/view"
)

const aboutTune = `Replay a trace over lease terms, intervals and windows, show what each setting does to fairness, to
completion times and to the overhead of leases, and name the one to choose, by this rule:

`

// sweep is what tune was told.
type sweep struct {
	terms, intervals, windows []string
	scheduler                 string
	html                      string
	array, into, collect      string
	task                      int
}

func (p *program) tune() *cobra.Command {
	var w world
	var s sweep
	var l view.Form
	c := &cobra.Command{Use: "tune TRACE --nodes NxG", Short: "try lease terms on a trace, and name the one to choose", Long: aboutTune + wrapped(score.StandardRule().String()+".") + `

A window says over what time rho is reported; it changes no decision of astraea.

A large sweep runs on the cluster itself: --slurm-array writes it as a job array, a setting a task, and
"bash FILE" submits it with a last job that collects the results; options of sbatch may follow. The
program, the trace and the configuration must be where all nodes see them.`,
		Example: `  fairlease tune sacct.txt --nodes 64x8 --html tune.html
  fairlease tune cluster_log.csv --nodes 40x8 --weights quota.csv --terms 5m,15m,1h --intervals 10s,30s
  fairlease tune sacct.txt --nodes 64x8 --slurm-array sweep.sh --into sweep && bash sweep.sh -A ops -t 60`,
		RunE: func(c *cobra.Command, args []string) error {
			if s.collect != "" {
				return p.collect(&s, l)
			}
			base, err := w.setup(p, args, nil)
			if err != nil {
				return err
			}
			setups, err := s.setups(base)
			if err != nil {
				return err
			}
			switch {
			case s.array != "":
				return p.slurmArray(c, args, &s, len(setups))
			case s.task >= 0:
				return p.task(c.Context(), &w, &s, setups)
			}
			return p.sweep(c.Context(), &w, &s, setups, l)
		}}
	w.flags(c)
	f := c.Flags()
	f.StringVar(&s.scheduler, "scheduler", study.Schedulers()[0], "`NAME` of the scheduler")
	f.StringSliceVar(&s.terms, "terms", []string{"5m", "10m", "15m", "20m", "30m", "1h"}, "lease terms to try, `LIST`")
	f.StringSliceVar(&s.intervals, "intervals", nil, "intervals to try, `LIST` (default: the configuration's, 10s)")
	f.StringSliceVar(&s.windows, "windows", nil, "windows to try, `LIST` (default: the configuration's, 14d)")
	f.StringVar(&s.html, "html", "", "write the plots into `FILE`, one page that needs no network")
	f.StringVar(&s.array, "slurm-array", "", "write the sweep as a Slurm job array into `FILE`; run nothing")
	f.StringVar(&s.into, "into", "", "folder `DIR` for the results of a job array's tasks")
	f.IntVar(&s.task, "task", -1, "run setting `N` only and write its result into the folder of --into")
	f.StringVar(&s.collect, "collect", "", "show what the tasks of a job array have written into `DIR`")
	listFlags(c, &l)
	return c
}

// wrapped breaks a text into lines that fit a terminal.
func wrapped(text string) string {
	var b strings.Builder
	width := 0
	for word := range strings.FieldsSeq(text) {
		if width > 0 && width+1+len(word) > 98 {
			b.WriteString("\n")
			width = 0
		} else if width > 0 {
			b.WriteString(" ")
			width++
		}
		b.WriteString(word)
		width += len(word)
	}
	return b.String()
}

// setups gives a setup for every setting, by window, interval and term.
func (s *sweep) setups(base study.Setup) ([]study.Setup, error) {
	base.Scheduler = s.scheduler
	var err error
	if base.Prices, err = prices(base.Prices, base.Fleet, base.Scheduler); err != nil {
		return nil, err
	}
	terms, err := spans("--terms", s.terms, base.Settings.Term)
	if err != nil {
		return nil, err
	}
	intervals, err := spans("--intervals", s.intervals, base.Settings.Interval)
	if err != nil {
		return nil, err
	}
	windows, err := spans("--windows", s.windows, base.Settings.Window)
	if err != nil {
		return nil, err
	}
	var out []study.Setup
	for _, window := range windows {
		for _, interval := range intervals {
			for _, term := range terms {
				x := base
				x.Settings.Window, x.Settings.Interval, x.Settings.Term = window, interval, term
				x.Settings = study.Fit(x.Settings)
				if err := x.Check(); err != nil {
					return nil, failure.Usage("%v", err)
				}
				out = append(out, x)
			}
		}
	}
	if s.task >= len(out) {
		return nil, failure.Usage("--task %d: there are %d settings, counted from 0", s.task, len(out))
	}
	return out, nil
}

// spans reads a list of lengths of time; an empty one is what is configured.
func spans(flag string, list []string, configured cluster.Span) ([]cluster.Span, error) {
	if len(list) == 0 {
		return []cluster.Span{configured}, nil
	}
	out := make([]cluster.Span, len(list))
	for i := range list {
		if err := lengths(timeFlag{flag, strings.TrimSpace(list[i]), &out[i]}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// sweep runs all settings and shows them.
func (p *program) sweep(ctx context.Context, w *world, s *sweep, setups []study.Setup, l view.Form) error {
	if !l.JSON && !l.Parsable && !l.NoHeader {
		w.tell(p.out, &setups[0])
		p.printf("\n")
	}
	results, err := p.runAll(ctx, w, setups)
	if err != nil {
		return err
	}
	var trials []score.Trial
	for i := range results {
		if results[i].Scheduler != "" {
			trials = append(trials, score.Trial{Window: setups[i].Settings.Window, Scores: results[i].Scores})
		}
	}
	if err := p.trials(s, l, trials); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return &failure.Error{Code: failure.No, What: "interrupted", Err: fmt.Errorf("%d of %d settings had come to their end", whole(results), len(results)),
			Next: "choose among those only, or try fewer --terms"}
	}
	return nil
}

// trials shows the settings of a sweep and which to choose.
func (p *program) trials(s *sweep, l view.Form, trials []score.Trial) error {
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
	if err := p.page(l).List(t, map[string]any{"rule": rule.String(), "chosen": best, "why": why, "trials": trials}); err != nil {
		return err
	}
	quiet := l.JSON || l.Parsable || l.NoHeader
	if !quiet {
		p.printf("\n%s\n", p.chosen(rule, best, trials))
	}
	if s.html == "" {
		return nil
	}
	return p.files([]file{{s.html, func(out io.Writer) error {
		return report.Tradeoff(out, "fairlease: lease terms compared", trials, rule)
	}}}, quiet)
}

// chosen says which setting to choose and why, for the configuration.
func (p *program) chosen(rule score.Rule, best int, trials []score.Trial) string {
	if best < 0 {
		return "No setting can be chosen: none came to its end."
	}
	b := &trials[best]
	words := rule.String() + "."
	if b.Scores.Saves != "" {
		words += " Jobs are taken to save: " + b.Scores.Saves + "."
	}
	return p.paint(fmt.Sprintf("Choose lease.term: %v, interval: %v, fairness.window: %v:", config.Duration(b.Scores.Term), config.Duration(b.Scores.Interval),
		config.Duration(b.Window)), "bold") + "\n" + wrapped(words)
}
