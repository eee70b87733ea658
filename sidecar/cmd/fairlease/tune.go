package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/input"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/session"
	"github.com/fairlease/fairlease/sidecar/sim/sweep"
	"github.com/fairlease/fairlease/sidecar/view"
)

const aboutTune = `Replay a trace with several lease terms, intervals and windows. Show the effect of each setting on
fairness, completion times and the overhead of leases, and recommend one by this rule:

`

// tuning holds the options of tune besides those of the sweep.
type tuning struct {
	sweep.Sweep
	html                 string
	array, into, collect string
	task, workers        int
}

func (p *program) tune() *cobra.Command {
	var w input.World
	var s tuning
	var l view.Form
	c := &cobra.Command{Use: "tune TRACE --nodes NxG", Short: "replay a trace with several lease terms, and recommend one", Long: aboutTune + view.Wrapped(score.StandardRule().String()+".") + `

The window is the time over which rho is reported; it changes no decision of astraea.

A large sweep can run on the cluster itself. --slurm-array writes it as a job array, one task per setting.
"bash FILE" submits it, with a last job that collects the results; options of sbatch may follow. All nodes
must see the program, the trace and the configuration.`,
		Example: `  fairlease tune sacct.txt --nodes 64x8 --html tune.html
  fairlease tune cluster_log.csv --nodes 40x8 --weights quota.csv --terms 5m,15m,1h --intervals 10s,30s
  fairlease tune sacct.txt --nodes 64x8 --slurm-array sweep.sh --into sweep && bash sweep.sh -A ops -t 60`,
		RunE: func(c *cobra.Command, args []string) error {
			if s.collect != "" {
				return session.Collect(p.page(l), s.collect, s.html)
			}
			cfg, err := p.config()
			if err != nil {
				return err
			}
			base, err := w.Setup(cfg, args, "")
			if err != nil {
				return err
			}
			setups, err := s.Setups(base)
			if err != nil {
				return err
			}
			if s.task >= len(setups) {
				return failure.Usage("--task %d: there are %d settings, counted from 0", s.task, len(setups))
			}
			switch {
			case s.array != "":
				config := ""
				if !c.Flags().Changed("config") {
					config = p.configFile()
				}
				return p.session(0).Array(sweep.Array{Args: args, Flags: c.Flags(), Config: config, Into: s.into, Tasks: len(setups)}, s.array)
			case s.task >= 0:
				return p.session(s.workers).Task(c.Context(), setups, s.task, s.into)
			}
			return p.session(s.workers).Sweep(c.Context(), &w, setups, p.page(l), s.html)
		}}
	worldFlags(c, &w)
	workersFlag(c, &s.workers)
	f := c.Flags()
	f.StringVar(&s.Scheduler, "scheduler", experiment.Schedulers()[0], "`NAME` of the scheduler")
	f.StringSliceVar(&s.Terms, "terms", []string{"5m", "10m", "15m", "20m", "30m", "1h"}, "`LIST` of lease terms to try")
	f.StringSliceVar(&s.Intervals, "intervals", nil, "`LIST` of intervals to try (default: the configuration's, 10s)")
	f.StringSliceVar(&s.Windows, "windows", nil, "`LIST` of windows to try (default: the configuration's, 14d)")
	f.StringVar(&s.html, "html", "", "write the plots into `FILE`, one page that needs no network")
	f.StringVar(&s.array, "slurm-array", "", "write the sweep as a Slurm job array into `FILE`, and run nothing")
	f.StringVar(&s.into, "into", "", "folder `DIR` for the results of a job array's tasks")
	f.IntVar(&s.task, "task", -1, "run setting `N` only and write its result into the folder of --into")
	f.StringVar(&s.collect, "collect", "", "show the results that a job array has written into `DIR`")
	listFlags(c, &l)
	return c
}
