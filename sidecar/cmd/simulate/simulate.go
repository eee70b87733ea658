// Package simulate has the command that replays a job trace, for the programs that offer it: fairlease, and fairlease-lab with more schedulers.
package simulate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/input"
	"github.com/fairlease/fairlease/sidecar/sim/outlet"
	"github.com/fairlease/fairlease/sidecar/sim/session"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// Program is the environment of a command.
type Program struct {
	Config  func() (*config.Config, error)
	Session func(workers int) *session.Session
}

// About is the help of the command. It names the schedulers that the program has.
func About() string {
	return `Replay a job trace on a virtual cluster, in simulated time, under one or more schedulers, and compare them.
"astraea" is fairlease itself: the daemon's loop and engine, with the settings of the configuration in force. Slurm
and PostgreSQL are not needed. Without --schedulers it is compared with "slurm", Slurm without preemption, which is
slurm-multifactor; slurm-preempt is Slurm's own fair preemption. "all" runs all of

` + listed(experiment.Schedulers()) + `

"hived" is fairlease with virtual clusters (preset hived); hived:fifo, hived:tiresias-l and hived:gandiva-fair
use another cells.chooser. --cells describes the virtual clusters: by a cells.yaml for nodes named
n000001, n000002, … in the order of --nodes, or as whole nodes by the tenants' weights. With --cells, --audit
compares all schedulers with the virtual clusters as private ones.

For heterogeneous GPU models, --speeds or the trace gives the throughput of jobs on each. fairlease with a preset that
divides them takes these as declared:

` + listed(experiment.Dividing()) + `

` + mechanisms() + `Cost policies use models.prices of the configuration.

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
}

// mechanisms names the papers' own mechanisms for heterogeneous GPUs, in programs that have them.
func mechanisms() string {
	names := slices.DeleteFunc(experiment.Heterogeneous(), varied)
	if len(names) == 0 {
		return ""
	}
	return `The papers' own mechanisms are baselines. Gavel's also run with -blind behind the name (all GPUs count as one model),
and with --throughputs as +ss (two jobs may share GPUs):

` + listed(names) + `

`
}

// varied tells whether a suffix makes another scheduler of this one.
func varied(name string) bool {
	return strings.HasSuffix(name, "-blind") || strings.HasSuffix(name, "+ss")
}

// listed writes names in lines of help.
func listed(names []string) string {
	return "  " + strings.ReplaceAll(view.Wrapped(strings.Join(names, " ")), "\n", "\n  ")
}

// Command makes the command.
func Command(p Program) *cobra.Command {
	var w input.World
	var workers int
	var schedulers []string
	var sizes, interval, term, cells string
	var audit, mixed, anywhere bool
	o := outlet.Outlet{Title: "fairlease: schedulers compared"}
	c := &cobra.Command{Use: "simulate [TRACE] --nodes NxG", Short: "replay a job trace under one or more schedulers", Long: About(),
		Example: `  fairlease simulate --generate philly --nodes 8x8 --html report.html
  fairlease simulate sacct.txt --nodes 20x8:v100+20x4:k80 --weights demand --audit
  fairlease simulate cluster_log.csv --sizes 40x8,48x8,60x8 --weights quota.csv --schedulers all --out results
  fairlease simulate history.txt --nodes 64x8 --schedulers quota-lend,hived --cells weights --audit
  fairlease simulate history.txt --nodes 64x8 -c /etc/fairlease/fairlease.yaml --weights config`,
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := p.Config()
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
			base.Audit, base.Mixed, base.Load.Anywhere = audit, mixed, anywhere
			setups, err := input.Cross(base, sizes, schedulers, cells)
			if err != nil {
				return err
			}
			if err := o.Check(); err != nil {
				return err
			}
			return p.Session(workers).Compare(c.Context(), &w, setups, &o)
		}}
	WorldFlags(c, &w)
	f := c.Flags()
	f.StringSliceVar(&schedulers, "schedulers", nil, "`NAMES` of the schedulers to compare, separated by commas, or all (default: astraea,slurm; with --limits astraea)")
	f.StringVar(&cells, "cells", "", "virtual clusters: `FILE|weights` (default for hived: weights)")
	f.StringVar(&sizes, "sizes", "", "`LIST` of clusters to try instead of --nodes: 40x8,48x8,60x8")
	f.StringVar(&interval, "interval", "", "`TIME` between two rounds (default: the configuration's, 10s)")
	f.StringVar(&term, "term", "", "`TIME` that a lease lasts (default: the configuration's, 15m)")
	f.BoolVar(&audit, "audit", false, "compare with a private cluster for each tenant, and name tenants that wait longer")
	f.BoolVar(&mixed, "mixed", false, "let gangs span GPU models, at the pace of the slowest (not with astraea)")
	f.BoolVar(&anywhere, "anywhere", false, "let gangs be on any number of nodes, as with sbatch --gpus=8 (default: on their fewest); with --throughputs, at their speed there")
	WorkersFlag(c, &workers)
	OutletFlags(c, &o)
	return c
}

// WorkersFlag adds the flag for parallel runs.
func WorkersFlag(c *cobra.Command, workers *int) {
	c.Flags().IntVar(workers, "workers", 0, "number `N` of parallel runs; 0 = the number of cores")
}
