package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/study"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

const aboutSimulate = `Run a trace of jobs on a virtual cluster, in pretend time, under one or several schedulers, and
compare them. "astraea" is fairlease itself: the loop and the engine of the daemon, with the settings of
the configuration in force. Nothing is asked of Slurm or PostgreSQL. The others, for comparison: fifo,
slurm-multifactor, quota-static, quota-lend, tiresias-l, themis, allox, gandiva-fair; or all.

TRACE is a file of your own, which root or an operator of Slurm writes by

  ` + trace.SacctCommand + ` > history.txt

or, where slurmrestd runs, as JSON (v0.0.42 is in Slurm 24.11 to 26.05), by

  ` + trace.SlurmdbCommand + ` > history.json

or one of the published ones: Philly's cluster_job_log, Helios' cluster_log.csv,
Alibaba PAI's tables, or plain CSV (job_id,tenant,user,gpus,submit_time,duration_s,state). Without a
trace, --generate makes jobs up as Gavel's or Philly's papers describe them.

Without --until it goes on until all jobs are done. An interrupt (Ctrl-C) ends it with the scores so far.`

func (p *program) simulate() *cobra.Command {
	var w world
	var schedulers []string
	var sizes, interval, term string
	var audit, mixed bool
	o := outlet{title: "fairlease: schedulers compared"}
	c := &cobra.Command{Use: "simulate [TRACE] --nodes NxG", Short: "what would become of a trace of jobs, by whom it is scheduled", Long: aboutSimulate,
		Example: `  fairlease simulate --generate philly --nodes 8x8 --html report.html
  fairlease simulate sacct.txt --nodes 20x8:v100+20x4:k80 --weights demand --audit
  fairlease simulate cluster_log.csv --sizes 40x8,48x8,60x8 --weights quota.csv --schedulers all --out results
  fairlease simulate history.txt --nodes 64x8 -c /etc/fairlease/fairlease.yaml --weights config`,
		RunE: func(c *cobra.Command, args []string) error {
			base, err := w.setup(p, args, &sizes)
			if err != nil {
				return err
			}
			if err := lengths(timeFlag{"--interval", interval, &base.Settings.Interval}, timeFlag{"--term", term, &base.Settings.Term}); err != nil {
				return err
			}
			base.Settings = study.Fit(base.Settings)
			base.Audit, base.Mixed = audit, mixed
			setups, err := cross(base, sizes, schedulers)
			if err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			return p.study(c.Context(), &w, setups, &o)
		}}
	w.flags(c)
	f := c.Flags()
	f.StringSliceVar(&schedulers, "schedulers", study.Schedulers()[:1], "`NAMES` of those to compare, divided by commas, or all")
	f.StringVar(&sizes, "sizes", "", "`LIST` of clusters to try instead of --nodes: 40x8,48x8,60x8")
	f.StringVar(&interval, "interval", "", "`TIME` between two rounds (default: the configuration's, 10s)")
	f.StringVar(&term, "term", "", "`TIME` that a lease lasts (default: the configuration's, 15m)")
	f.BoolVar(&audit, "audit", false, "compare with a private cluster for each tenant, and name who waits longer")
	f.BoolVar(&mixed, "mixed", false, "let gangs span GPU models, at the pace of the slowest (not with astraea)")
	o.flags(c)
	return c
}

// cross gives a setup for each size and scheduler.
func cross(base study.Setup, sizes string, schedulers []string) ([]study.Setup, error) {
	fleets := []study.Fleet{base.Fleet}
	if sizes != "" {
		fleets = nil
		for text := range strings.SplitSeq(sizes, ",") {
			f, err := study.ParseFleet(text)
			if err != nil {
				return nil, usage("--sizes: " + err.Error())
			}
			f.CPUs, f.MemoryMB = base.Fleet.CPUs, base.Fleet.MemoryMB
			fleets = append(fleets, f)
		}
	}
	if len(schedulers) == 1 && schedulers[0] == "all" {
		schedulers = study.Schedulers()
	}
	var out []study.Setup
	for _, f := range fleets {
		for _, name := range schedulers {
			s := base
			s.Fleet, s.Scheduler = f, strings.TrimSpace(name)
			if err := s.Check(); err != nil {
				return nil, usage(err.Error())
			}
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return nil, usage("--schedulers names none")
	}
	return out, nil
}

func usage(what string) error {
	return &failure{code: exitUsage, what: what, next: "see fairlease help"}
}

// study runs setups and shows what came of them.
func (p *program) study(ctx context.Context, w *world, setups []study.Setup, o *outlet) error {
	notes := p.out
	if o.csv || o.json {
		notes = p.err
	}
	w.tell(notes, setups[0].Load)
	fmt.Fprintf(notes, "  interval %v, term %v\n", config.Duration(setups[0].Settings.Interval), config.Duration(setups[0].Settings.Term))
	results, err := p.runAll(ctx, w, setups)
	if err != nil {
		return err
	}
	var scores []score.Scores
	for i := range results {
		if results[i].Scheduler == "" {
			continue // the interrupt came before it began
		}
		tellResult(notes, &setups[i], &results[i])
		scores = append(scores, results[i].Scores)
	}
	fmt.Fprintln(notes)
	if err := o.write(p, scores); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return &failure{code: exitNo, what: "interrupted", err: fmt.Errorf("%d of %d runs had come to their end", whole(results), len(results)),
			next: "what is shown above is how far it had come; --until ends all runs at the same time"}
	}
	return nil
}

// runAll runs setups on all cores, with a progress bar.
func (p *program) runAll(ctx context.Context, w *world, setups []study.Setup) ([]study.Result, error) {
	defer moreMemory()()
	b := p.progress()
	results, err := study.All(ctx, setups, w.workers, b.set)
	b.end()
	if err != nil && !errors.Is(err, context.Canceled) {
		return nil, &failure{code: exitNo, what: "the simulation cannot go on", err: err}
	}
	return results, err
}

// whole counts the runs that came to their end.
func whole(results []study.Result) int {
	n := 0
	for i := range results {
		if results[i].Scheduler != "" && !results[i].CutShort {
			n++
		}
	}
	return n
}
