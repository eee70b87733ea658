package main

import (
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/input"
	"github.com/fairlease/fairlease/sidecar/sim/notes"
	"github.com/fairlease/fairlease/sidecar/sim/outlet"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// worldFlags adds the flags for jobs and cluster.
func worldFlags(c *cobra.Command, w *input.World) {
	f := c.Flags()
	f.StringVar(&w.Nodes, "nodes", "", "the cluster, `NODESxGPUS[:MODEL]`: 64x8, or 20x8:v100+20x4:k80 (with --generate default 8x8)")
	f.IntVar(&w.CPUs, "cpus", 0, "CPUs `N` that each node has per GPU; 0 = enough for all jobs")
	f.Int64Var(&w.MemoryMB, "memory", 0, "memory `MB` that each node has per GPU; 0 = enough for all jobs")
	f.StringVar(&w.Generate, "generate", "", "make jobs up like `gavel|philly`, without a trace")
	f.StringVar(&w.Length, "length", "7d", "`TIME` in which made-up jobs arrive")
	f.IntVar(&w.Tenants, "tenants", 8, "tenants `N` of made-up jobs")
	f.Float64Var(&w.Load, "load", 1.5, "made-up jobs want `X` times the cluster on average")
	f.Float64Var(&w.PerHour, "per-hour", 0, "made-up jobs `N` per hour, instead of --load")
	f.Uint64Var(&w.Seed, "seed", 1, "seed `N` of what is made up: jobs, failures, how jobs save")
	traceFlags(c, w)
	f.StringVar(&w.Weights, "weights", "equal", "tenants' weights: `equal|demand|config|FILE` with lines like vision,64")
	f.StringVar(&w.Speeds, "speeds", "", "how fast jobs are on GPU models: `FILE` with lines like resnet*,k80,0.25")
	f.StringVar(&w.Throughputs, "throughputs", "", "how many steps a second kinds of jobs make: `FILE` as Gavel's authors publish theirs; its own jobs need it, and --per-hour")
	f.StringVar(&w.Until, "until", "", "`TIME` of pretend time at which to end (default: when all jobs are done)")
	savingFlags(f, &w.Saving)
	costs := sim.DefaultCosts()
	f.StringVar(&w.CostSave, "cost-save", config.Duration(costs.Save).String(), "`TIME` that it takes to save a checkpoint")
	f.StringVar(&w.CostLoad, "cost-load", config.Duration(costs.Load).String(), "`TIME` that it takes to load it")
	f.StringVar(&w.ColdStart, "cost-start", config.Duration(costs.ColdStart).String(), "`TIME` of a cold start before it is loaded")
	f.StringVar(&w.FailEvery, "fail-every", "", "mean `TIME` until a node fails (default: none does)")
	f.StringVar(&w.Repair, "repair", "1h", "mean `TIME` until it is back")
}

// traceFlags adds the flags for reading a trace.
func traceFlags(c *cobra.Command, w *input.World) {
	f := c.Flags()
	f.StringVar(&w.Format, "format", "", "`FORMAT` of the trace: plain, philly, helios, pai, sacct, slurmdb, gavel (default: see what it is)")
	f.StringVar(&w.Zone, "zone", "UTC", "time `ZONE` of a trace that names none")
}

// savingFlags adds the flags for how jobs save.
func savingFlags(f *pflag.FlagSet, s *input.Saving) {
	f.StringVar(&s.Saves, "saves", notes.AssumedSaves, "how jobs save: `MIXTURE` like never:60,periodic=1h:30,notice:10, of never, notice, term, at-end, each-term,\n"+
		"an interval, ideal; and a FILE of habits, as fairlease habits --json writes, for the jobs that it lists")
	f.StringVar(&s.By, "saves-by", "kind", "draw how jobs save for each `kind|job`; a kind is a user, a number of GPUs and a name, but for numbers in it")
	f.StringVar(&s.Every, "every", "", "`TIME` between two saves, where --saves says periodic without one")
	f.BoolVar(&s.Reported, "reported", false, "jobs that save on their own report each save, and their progress, to the scheduler")
}

// outletFlags adds the flags for the output of scores.
func outletFlags(c *cobra.Command, o *outlet.Outlet) {
	f := c.Flags()
	f.BoolVar(&o.CSV, "csv", false, "write every score as CSV instead of a table")
	f.BoolVar(&o.JSON, "json", false, "write every score as JSON instead of a table")
	f.StringVar(&o.HTML, "html", "", "write a report with plots into `FILE`, one page that needs no network")
	f.StringVar(&o.Dir, "out", "", "write report.html, scores.csv and scores.json into `DIR`")
}

// shadowFlags adds the durations of a shadow.
func shadowFlags(f *pflag.FlagSet, t *input.Times) {
	f.StringVar(&t.Interval, "interval", "", "`TIME` between two rounds of the shadow; longer is faster (default: as the daemon had it)")
	f.StringVar(&t.Term, "term", "", "`TIME` that a lease would have lasted (default: as the daemon had it)")
	costs := sim.DefaultCosts()
	f.StringVar(&t.CostSave, "cost-save", config.Duration(costs.Save).String(), "`TIME` that it takes to save a checkpoint")
	f.StringVar(&t.CostLoad, "cost-load", config.Duration(costs.Load).String(), "`TIME` that it takes to load it")
	f.StringVar(&t.ColdStart, "cost-start", "", "`TIME` of a cold start before it is loaded (default: start.cost as the daemon had it, less --cost-load)")
}
