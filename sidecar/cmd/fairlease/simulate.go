package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/input"
	"github.com/fairlease/fairlease/sidecar/sim/outlet"
	"github.com/fairlease/fairlease/sidecar/sim/session"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

var aboutSimulate = `Replay a job trace on a virtual cluster, in simulated time, under one or more schedulers, and compare them.
"astraea" is fairlease itself: the daemon's loop and engine, with the settings of the configuration in force. Slurm
and PostgreSQL are not needed. Without --schedulers it is compared with "slurm", Slurm without preemption. The
baselines are fifo, slurm-multifactor (or slurm), slurm-preempt (Slurm's own fair preemption), quota-static, quota-lend,
tiresias-l, themis, allox, gandiva-fair, karma, qssf, lucid, shockwave and srtf; "all" runs all of these.

"hived" is fairlease with virtual clusters (preset hived); hived:fifo, hived:tiresias-l and hived:gandiva-fair
use another cells.chooser. --cells describes the virtual clusters: by a cells.yaml for nodes named
n000001, n000002, … in the order of --nodes, or as whole nodes by the tenants' weights. With --cells, --audit
compares all schedulers with the virtual clusters as private ones.

For heterogeneous GPU models, --speeds or the trace gives the throughput of jobs on each. fairlease with a preset that
divides them takes these as declared:

` + listed(experiment.Dividing()) + `

The papers' own mechanisms are baselines. Gavel's also run with -blind behind the name (all GPUs count as one model),
and with --throughputs as +ss (two jobs may share GPUs):

` + listed(slices.DeleteFunc(experiment.Heterogeneous(), varied)) + `

Cost policies use models.prices of the configuration.

--limits holds all jobs to limits and access lists, as Slurm would, in lines like

  account vision GrpTRES=gres/gpu=8 GrpJobs=20       a tenant, or root for all
  user vision/alice MaxJobs=4
  qos MaxTRESPerUser=gres/gpu=8                      of the partition, thus of all jobs
  partition AllowAccounts=vision,nlp MaxNodes=2

TRACE is a file of your own. Any user writes it (an operator of Slurm, where PrivateData hides jobs) with

  ` + trace.SacctCommand + ` > history.txt

or, where slurmrestd runs, as JSON (v0.0.42 is in Slurm 24.11 to 26.05), with

  ` + trace.SlurmdbCommand + ` > history.json

or one of the published ones: Philly's cluster_job_log, Helios' cluster_log.csv,
Alibaba PAI's tables, or plain CSV (job_id,tenant,user,gpus,submit_time,duration_s,state). Without a
trace, --generate generates jobs as Gavel's or Philly's papers describe them.

A history does not record how jobs save, so that is an assumption, which every report names. By default no job saves,
and each requeue starts a job from the beginning. --saves takes a manner (never, notice, term, at-end, each-term, ideal, or
an interval like 1h), a mixture of them with weights, or a file:

  --saves never:60,periodic=1h:30,notice:10     drawn by --seed for each job type, or with --saves-by job for each job
  --saves habits.json,never:100                 output of fairlease habits --json; never for jobs that it does not list
  --saves habits.csv                            lines user,command,gpus,manner[,interval[,save-time]]; * matches all

A job saves in the same manner under every scheduler and on every cluster. A command in a file matches jobs of that name or
command, also where only numbers differ.

Without --until the simulation ends when all jobs are done, or when no job would ever end. An interrupt (Ctrl-C) ends it
with the scores so far.`

// varied tells whether a suffix makes another scheduler of this one.
func varied(name string) bool {
	return strings.HasSuffix(name, "-blind") || strings.HasSuffix(name, "+ss")
}

// listed writes names in lines of help.
func listed(names []string) string {
	return "  " + strings.ReplaceAll(view.Wrapped(strings.Join(names, " ")), "\n", "\n  ")
}

func (p *program) simulate() *cobra.Command {
	var w input.World
	var workers int
	var schedulers []string
	var sizes, interval, term, cells string
	var audit, mixed bool
	o := outlet.Outlet{Title: "fairlease: schedulers compared"}
	c := &cobra.Command{Use: "simulate [TRACE] --nodes NxG", Short: "replay a job trace under one or more schedulers", Long: aboutSimulate,
		Example: `  fairlease simulate --generate philly --nodes 8x8 --html report.html
  fairlease simulate sacct.txt --nodes 20x8:v100+20x4:k80 --weights demand --audit
  fairlease simulate cluster_log.csv --sizes 40x8,48x8,60x8 --weights quota.csv --schedulers all --out results
  fairlease simulate history.txt --nodes 64x8 --schedulers quota-lend,hived --cells weights --audit
  fairlease simulate history.txt --nodes 64x8 -c /etc/fairlease/fairlease.yaml --weights config`,
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := p.config()
			if err != nil {
				return err
			}
			base, err := w.Setup(cfg, args, sizes)
			if err != nil {
				return err
			}
			if err := cmp.Or(input.Length("--interval", interval, &base.Settings.Interval), input.Length("--term", term, &base.Settings.Term)); err != nil {
				return err
			}
			base.Settings = experiment.Fit(base.Settings)
			base.Audit, base.Mixed = audit, mixed
			setups, err := input.Cross(base, sizes, schedulers, cells)
			if err != nil {
				return err
			}
			if err := o.Check(); err != nil {
				return err
			}
			return p.session(workers).Compare(c.Context(), &w, setups, &o)
		}}
	worldFlags(c, &w)
	f := c.Flags()
	f.StringSliceVar(&schedulers, "schedulers", nil, "`NAMES` of the schedulers to compare, separated by commas, or all (default: astraea,slurm; with --limits astraea)")
	f.StringVar(&cells, "cells", "", "virtual clusters: `FILE|weights` (default for hived: weights)")
	f.StringVar(&sizes, "sizes", "", "`LIST` of clusters to try instead of --nodes: 40x8,48x8,60x8")
	f.StringVar(&interval, "interval", "", "`TIME` between two rounds (default: the configuration's, 10s)")
	f.StringVar(&term, "term", "", "`TIME` that a lease lasts (default: the configuration's, 15m)")
	f.BoolVar(&audit, "audit", false, "compare with a private cluster for each tenant, and name tenants that wait longer")
	f.BoolVar(&mixed, "mixed", false, "let gangs span GPU models, at the pace of the slowest (not with astraea)")
	workersFlag(c, &workers)
	outletFlags(c, &o)
	return c
}

func workersFlag(c *cobra.Command, workers *int) {
	c.Flags().IntVar(workers, "workers", 0, "number `N` of parallel runs; 0 = the number of cores")
}

// session gives the environment of experiments.
func (p *program) session(workers int) *session.Session {
	return &session.Session{Out: p.out, Errors: p.err, Terminal: p.terminal(), Workers: workers}
}
