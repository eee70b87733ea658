package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cmd/simulate"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/input"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/session"
	"github.com/fairlease/fairlease/sidecar/sim/terms"
	"github.com/fairlease/fairlease/sidecar/store"
)

const aboutTune = `Replay a trace with several lease terms, intervals and windows. Show the effect of each setting on
fairness, completion times and the overhead of leases, and recommend one by this rule:

`

func tuneCommand(p *program) *cobra.Command {
	var w input.World
	var s session.Tuning
	var l view.Form
	var workers int
	c := &cobra.Command{Use: "tune TRACE --nodes NxG", Short: "replay a trace with several lease terms, and recommend one", Long: aboutTune + view.Wrapped(score.StandardRule().String()+".") + `

The window is the time over which rho is reported; it changes no decision of astraea.

A large sweep can run on the cluster itself. --slurm-array writes it as a job array, one task per setting.
"bash FILE" submits it, with a last job that collects the results; options of sbatch may follow. All nodes
must see the program, the trace and the configuration.`,
		Example: `  fairlease tune sacct.txt --nodes 64x8 --html tune.html
  fairlease tune cluster_log.csv --nodes 40x8 --weights quota.csv --terms 5m,15m,1h --intervals 10s,30s
  fairlease tune sacct.txt --nodes 64x8 --slurm-array sweep.sh --into sweep && bash sweep.sh -A ops -t 60`,
		RunE: func(c *cobra.Command, args []string) error {
			s.Again.Args, s.Again.Flags = args, c.Flags()
			if !c.Flags().Changed("config") {
				s.Again.Config = p.configFile()
			}
			return p.session(workers).Tune(c.Context(), &w, p.config, &s, p.page(l))
		}}
	simulate.WorldFlags(c, &w)
	simulate.WorkersFlag(c, &workers)
	f := c.Flags()
	f.StringVar(&s.Scheduler, "scheduler", experiment.Schedulers()[0], "`NAME` of the scheduler")
	f.StringSliceVar(&s.Terms, "terms", []string{"5m", "10m", "15m", "20m", "30m", "1h"}, "`LIST` of lease terms to try")
	f.StringSliceVar(&s.Intervals, "intervals", nil, "`LIST` of intervals to try (default: the configuration's, 10s)")
	f.StringSliceVar(&s.Windows, "windows", nil, "`LIST` of windows to try (default: the configuration's, 14d)")
	f.StringVar(&s.HTML, "html", "", "write the plots into `FILE`, one page that needs no network")
	f.StringVar(&s.Array, "slurm-array", "", "write the sweep as a Slurm job array into `FILE`, and run nothing")
	f.StringVar(&s.Into, "into", "", "folder `DIR` for the results of a job array's tasks")
	f.IntVar(&s.Task, "task", -1, "run setting `N` only and write its result into the folder of --into")
	f.StringVar(&s.Collect, "collect", "", "show the results that a job array has written into `DIR`")
	listFlags(c, &l)
	c.AddCommand(tuneJournalCommand(p), tuneListCommand(p), tuneUndoCommand(p))
	return c
}

const aboutTuneJournal = `Replay the jobs of the journal's last days with each term of tune.terms. Show what each would have done, and what
happened, and propose a term by the rule of fairlease tune: the next candidate, if it is better than the term in force
(ASTRAEA 5.1.3). The replay is that of fairlease shadow, with its assumptions; the overhead of what happened is the
work that was lost.

The daemon does the same at the times of tune.at. With --apply the proposal is taken over, in place of lease.term: as
if tune.apply were set, the nights that follow watch it, and undo it if it is worse.`

func tuneJournalCommand(p *program) *cobra.Command {
	var l view.Form
	var o terms.Order
	var workers int
	c := &cobra.Command{Use: "journal [--last TIME] [--apply]", Short: "replay the journal's last days with several lease terms, and propose one",
		Long: aboutTuneJournal, Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			o.Now, o.By, o.Run = p.clock(), operate.Author(p.getenv("SUDO_USER")), p.session(workers).All
			return p.computing(c.Context(), func(cfg *config.Config, s *store.Store) error {
				report, err := terms.Look(c.Context(), s, cfg, &o)
				if err != nil {
					return err
				}
				return report.Write(p.page(l))
			})
		}}
	c.Flags().StringVar(&o.Last, "last", "", "`TIME` to replay (default: tune.last, 7d)")
	c.Flags().BoolVar(&o.Apply, "apply", false, "take the proposal over, or undo a takeover that is worse")
	simulate.WorkersFlag(c, &workers)
	listFlags(c, &l)
	return c
}

func tuneListCommand(p *program) *cobra.Command {
	var l view.Form
	c := &cobra.Command{Use: "list", Short: "list what was decided about the lease term, and why", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				record, err := s.Terms.Tunings(c.Context(), time.Unix(0, 0), 1000)
				if err != nil {
					return err
				}
				return terms.List(p.page(l), record)
			})
		}}
	listFlags(c, &l)
	return c
}

func tuneUndoCommand(p *program) *cobra.Command {
	var reason string
	c := &cobra.Command{Use: "undo --reason TEXT", Short: "put lease.term of the configuration back in force", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.computing(c.Context(), func(cfg *config.Config, s *store.Store) error {
				return terms.Undo(c.Context(), p.page(view.Form{}), s, cfg, operate.Author(p.getenv("SUDO_USER")), reason)
			})
		}}
	c.Flags().StringVar(&reason, "reason", "", "`TEXT` that tune list shows")
	return c
}
