package simulate

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/input"
	"github.com/fairlease/fairlease/sidecar/sim/notes"
	"github.com/fairlease/fairlease/sidecar/sim/outlet"
)

// WorldFlags adds the flags for jobs and cluster.
func WorldFlags(c *cobra.Command, w *input.World) {
	f := c.Flags()
	f.StringVar(&w.Nodes, "nodes", "", "the cluster, `NODESxGPUS[:MODEL]`: 64x8, or 20x8:v100+20x4:k80 (with --generate default 8x8)")
	f.IntVar(&w.Site.CPUs, "cpus", 0, "CPUs `N` that each node has per GPU; 0 = enough for all jobs")
	f.Int64Var(&w.Site.MemoryMB, "memory", 0, "memory `MB` that each node has per GPU; 0 = enough for all jobs")
	f.IntVar(&w.Site.PerSwitch, "per-switch", 0, "`N` nodes are under each switch, in the order of --nodes; 0 = no topology")
	f.StringVar(&w.Generate, "generate", "", "generate jobs like `gavel|philly` instead of reading a trace")
	f.StringVar(&w.Length, "length", "7d", "`TIME` during which generated jobs arrive")
	f.IntVar(&w.Tenants, "tenants", 8, "number `N` of tenants of generated jobs")
	f.Float64Var(&w.Load, "load", 1.5, "generated jobs need `X` times the cluster on average")
	f.Float64Var(&w.PerHour, "per-hour", 0, "number `N` of generated jobs per hour, instead of --load")
	f.Uint64Var(&w.Seed, "seed", 1, "seed `N` for drawing jobs, failures, and how jobs save")
	TraceFlags(c, w)
	f.StringVar(&w.Weights, "weights", "equal", "tenants' weights: `equal|demand|config|FILE` with lines like vision,64")
	f.StringVar(&w.Limits, "limits", "", "Slurm's limits: `FILE` with lines like account vision GrpTRES=gres/gpu=8 (only for fairlease's own schedulers)")
	f.StringVar(&w.Speeds, "speeds", "", "relative throughput of jobs on GPU models: `FILE` with lines like resnet*,k80,0.25, or bert*,v100,1,0.4,0.8 with the parts that gangs keep on more nodes and under more switches than they need")
	f.StringVar(&w.Throughputs, "throughputs", "", "steps per second of job types: `FILE` in the format of Gavel's authors; --generate gavel needs it and --per-hour")
	f.StringVar(&w.Until, "until", "", "simulated `TIME` at which to end (default: when all jobs are done)")
	SavingFlags(f, &w.Saving)
	costs := sim.DefaultCosts()
	f.StringVar(&w.CostSave, "cost-save", config.Duration(costs.Save).String(), "`TIME` that it takes to save a checkpoint")
	f.StringVar(&w.CostLoad, "cost-load", config.Duration(costs.Load).String(), "`TIME` that it takes to load it")
	f.StringVar(&w.ColdStart, "cost-start", config.Duration(costs.ColdStart).String(), "`TIME` of a cold start before it is loaded")
	f.StringVar(&w.Turns.Length, "slices", "", "let all jobs of one GPU take turns on one, of this `TIME` (1m; default: they take none; only fairlease's own schedulers)")
	f.IntVar(&w.Turns.Jobs, "slice-jobs", 2, "with --slices, at most `N` jobs take turns on a GPU: 2 or 3")
	f.IntVar(&w.Turns.Pairs, "pairs", 0, "with --slices, let two jobs run at the same time on a GPU where neither loses by it, each at this `PERCENT` of its pace alone (with --throughputs, as in the file)")
	f.StringVar(&w.FailEvery, "fail-every", "", "mean `TIME` until a node fails (default: no node fails)")
	f.StringVar(&w.Repair, "repair", "1h", "mean `TIME` until a failed node is back")
}

// TraceFlags adds the flags for reading a trace.
func TraceFlags(c *cobra.Command, w *input.World) {
	f := c.Flags()
	f.StringVar(&w.Format, "format", "", "`FORMAT` of the trace: plain, philly, helios, pai, sacct, slurmdb, gavel (default: detect)")
	f.StringVar(&w.Zone, "zone", "UTC", "time `ZONE` of a trace without zones")
}

// SavingFlags adds the flags for how jobs save.
func SavingFlags(f *pflag.FlagSet, s *input.Saving) {
	f.StringVar(&s.Saves, "saves", notes.AssumedSaves, "how jobs save: `MIXTURE` like never:60,periodic=1h:30,notice:10, of never, notice, term, at-end, each-term,\n"+
		"an interval, ideal; or a FILE from fairlease habits --json, for the jobs that it lists")
	f.StringVar(&s.By, "saves-by", "kind", "draw how jobs save for each `kind|job`; a kind is a user, a number of GPUs, and a name without its numbers")
	f.StringVar(&s.Every, "every", "", "`TIME` between two saves, where --saves says periodic without one")
	f.BoolVar(&s.Reported, "reported", false, "jobs that save on their own report each save, and their progress, to the scheduler")
}

// OutletFlags adds the flags for the output of scores.
func OutletFlags(c *cobra.Command, o *outlet.Outlet) {
	f := c.Flags()
	f.BoolVar(&o.CSV, "csv", false, "write every score as CSV instead of a table")
	f.BoolVar(&o.JSON, "json", false, "write every score as JSON instead of a table")
	f.StringVar(&o.HTML, "html", "", "write a report with plots into `FILE`, one page that needs no network")
	f.StringVar(&o.Dir, "out", "", "write report.html, scores.csv and scores.json into `DIR`")
}

// ShadowFlags adds the durations of a shadow.
func ShadowFlags(f *pflag.FlagSet, t *input.Times) {
	f.StringVar(&t.Interval, "interval", "", "`TIME` between two rounds of the replay; longer is faster (default: the daemon's)")
	f.StringVar(&t.Term, "term", "", "`TIME` that a lease lasts in the replay (default: the daemon's)")
	costs := sim.DefaultCosts()
	f.StringVar(&t.CostSave, "cost-save", config.Duration(costs.Save).String(), "`TIME` that it takes to save a checkpoint")
	f.StringVar(&t.CostLoad, "cost-load", config.Duration(costs.Load).String(), "`TIME` that it takes to load it")
	f.StringVar(&t.ColdStart, "cost-start", "", "`TIME` of a cold start before it is loaded (default: the daemon's start.cost, less --cost-load)")
}
