package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/study"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/sidecar/view"
)

// world is what simulate and tune are told of jobs and clusters, and the jobs.
type world struct {
	nodes  string
	cpus   int
	memory int64

	generate      string
	length        string
	tenants       int
	perHour, load float64
	seed          uint64

	format, zone, weights, speeds string
	throughputs                   string
	table                         *trace.Throughputs // of throughputs; nil = none

	saving                   saving
	until                    string
	costSave, costLoad, cold string
	failEvery, repair        string
	workers                  int

	from   *trace.Trace // nil = made up
	census study.Census
	paced  int // jobs that have speeds
}

func (w *world) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&w.nodes, "nodes", "", "the cluster, `NODESxGPUS[:MODEL]`: 64x8, or 20x8:v100+20x4:k80 (with --generate default 8x8)")
	f.IntVar(&w.cpus, "cpus", 0, "CPUs `N` that each node has per GPU; 0 = enough for all jobs")
	f.Int64Var(&w.memory, "memory", 0, "memory `MB` that each node has per GPU; 0 = enough for all jobs")
	f.StringVar(&w.generate, "generate", "", "make jobs up like `gavel|philly`, without a trace")
	f.StringVar(&w.length, "length", "7d", "`TIME` in which made-up jobs arrive")
	f.IntVar(&w.tenants, "tenants", 8, "tenants `N` of made-up jobs")
	f.Float64Var(&w.load, "load", 1.5, "made-up jobs want `X` times the cluster on average")
	f.Float64Var(&w.perHour, "per-hour", 0, "made-up jobs `N` per hour, instead of --load")
	f.Uint64Var(&w.seed, "seed", 1, "seed `N` of what is made up: jobs, failures, how jobs save")
	w.reading(c)
	f.StringVar(&w.weights, "weights", "equal", "tenants' weights: `equal|demand|config|FILE` with lines like vision,64")
	f.StringVar(&w.speeds, "speeds", "", "how fast jobs are on GPU models: `FILE` with lines like resnet*,k80,0.25")
	f.StringVar(&w.throughputs, "throughputs", "", "how many steps a second kinds of jobs make: `FILE` as Gavel's authors publish theirs; its own jobs need it, and --per-hour")
	f.StringVar(&w.until, "until", "", "`TIME` of pretend time at which to end (default: when all jobs are done)")
	w.saving.flags(f)
	costs := sim.DefaultCosts()
	f.StringVar(&w.costSave, "cost-save", config.Duration(costs.Save).String(), "`TIME` that it takes to save a checkpoint")
	f.StringVar(&w.costLoad, "cost-load", config.Duration(costs.Load).String(), "`TIME` that it takes to load it")
	f.StringVar(&w.cold, "cost-start", config.Duration(costs.ColdStart).String(), "`TIME` of a cold start before it is loaded")
	f.StringVar(&w.failEvery, "fail-every", "", "mean `TIME` until a node fails (default: none does)")
	f.StringVar(&w.repair, "repair", "1h", "mean `TIME` until it is back")
	f.IntVar(&w.workers, "workers", 0, "runs `N` side by side; 0 = as many as there are cores")
}

// reading adds the flags that say how a trace is read.
func (w *world) reading(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&w.format, "format", "", "`FORMAT` of the trace: plain, philly, helios, pai, sacct, slurmdb, gavel (default: see what it is)")
	f.StringVar(&w.zone, "zone", "UTC", "time `ZONE` of a trace that names none")
}

// timeFlag is a flag that is a length of time; "" leaves what is there.
type timeFlag struct {
	flag, text string
	to         *cluster.Span
}

func lengths(flags ...timeFlag) error {
	for _, s := range flags {
		if s.text == "" {
			continue
		}
		d, err := config.ParseDuration(s.text)
		if err != nil {
			return failure.Usage("%s: %v", s.flag, err)
		}
		*s.to = d.Span()
	}
	return nil
}

// setup makes what all runs have in common; sizes, if given, stand for --nodes.
func (w *world) setup(p *program, args []string, sizes *string) (study.Setup, error) {
	s := study.Default()
	cfg, err := p.config()
	if err != nil {
		return s, err
	}
	s.Settings, s.Prices = cfg.Settings(), cfg.Models.Prices
	if err := lengths(timeFlag{"--until", w.until, &s.Until}, timeFlag{"--cost-save", w.costSave, &s.Costs.Save},
		timeFlag{"--cost-load", w.costLoad, &s.Costs.Load}, timeFlag{"--cost-start", w.cold, &s.Costs.ColdStart},
		timeFlag{"--fail-every", w.failEvery, &s.Between}, timeFlag{"--repair", w.repair, &s.Repair}); err != nil {
		return s, err
	}
	s.Settings.StartCost = s.Costs.Start()
	s.Seed = w.seed
	if err := w.saving.into(&s); err != nil {
		return s, err
	}
	if s.Fleet, err = w.fleet(sizes); err != nil {
		return s, err
	}
	if w.throughputs != "" {
		if w.table, err = trace.OpenThroughputs(w.throughputs); err != nil {
			return s, &failure.Error{Code: failure.Misuse, What: "the throughputs cannot be used", Err: err}
		}
	}
	if s.Load, err = w.jobs(args, s.Fleet); err != nil {
		return s, err
	}
	if w.census = study.Survey(s.Load); w.census.Jobs == 0 {
		return s, &failure.Error{Code: failure.No, What: s.Load.Name + " has no job with GPUs and a run time", Next: "see what its rows are: " + w.counts()}
	}
	if s.Weights, err = w.weigh(cfg); err != nil {
		return s, err
	}
	return s, w.pace(&s)
}

// fleet gives the cluster, or the first of several sizes.
func (w *world) fleet(sizes *string) (study.Fleet, error) {
	text := w.nodes
	if sizes != nil && *sizes != "" {
		if text != "" {
			return study.Fleet{}, failure.Usage("--nodes and --sizes exclude each other")
		}
		text, _, _ = strings.Cut(*sizes, ",")
	}
	if text == "" && w.generate != "" {
		text = "8x8"
	}
	if text == "" {
		return study.Fleet{}, failure.Usage("--nodes is missing: how large is the cluster? As in --nodes 64x8")
	}
	f, err := study.ParseFleet(text)
	if err != nil {
		return f, failure.Usage("--nodes: %v", err)
	}
	if w.cpus < 0 || w.memory < 0 {
		return f, failure.Usage("--cpus and --memory cannot be less than 0")
	}
	f.CPUs, f.MemoryMB = w.cpus, w.memory
	return f, nil
}

// jobs reads the trace, or makes jobs up.
func (w *world) jobs(args []string, fleet study.Fleet) (study.Load, error) {
	switch {
	case len(args) > 1:
		return study.Load{}, failure.Usage("one trace at a time, but there are %q", args)
	case len(args) == 1 && w.generate != "":
		return study.Load{}, failure.Usage("a trace and --generate exclude each other")
	case len(args) == 1:
		return w.read(args[0])
	case w.generate == "":
		return study.Load{}, failure.Usage("what is to be simulated? Name a trace, or make jobs up with --generate philly")
	}
	return w.makeUp(fleet)
}

func (w *world) read(path string) (study.Load, error) {
	zone, err := time.LoadLocation(w.zone)
	if err != nil {
		return study.Load{}, failure.Usage("--zone %s is not known; write one like Europe/Berlin", w.zone)
	}
	known := []trace.Format{"", trace.FormatPlain, trace.FormatPhilly, trace.FormatHelios, trace.FormatPAI, trace.FormatSacct, trace.FormatSlurmdb, trace.FormatGavel}
	if !slices.Contains(known, trace.Format(w.format)) {
		return study.Load{}, failure.Usage("--format %s is not known; write plain, philly, helios, pai, sacct, slurmdb or gavel", w.format)
	}
	w.from, err = trace.Open(path, trace.Options{Format: trace.Format(w.format), Zone: zone, Throughputs: w.table, PerHour: w.perHour})
	if err != nil {
		return study.Load{}, &failure.Error{Code: failure.No, What: "the trace cannot be used", Err: err}
	}
	return study.Of(w.from), nil
}

func (w *world) makeUp(fleet study.Fleet) (study.Load, error) {
	var r trace.Recipe
	switch w.generate {
	case "gavel":
		r = trace.LikeGavel(w.seed, 1)
		r.Table = w.table
	case "philly":
		r = trace.LikePhilly(w.seed, 1)
	default:
		return study.Load{}, failure.Usage("--generate %s is not known; write gavel or philly", w.generate)
	}
	if err := lengths(timeFlag{"--length", w.length, &r.Length}); err != nil {
		return study.Load{}, err
	}
	if w.tenants < 1 || w.tenants > 100_000 {
		return study.Load{}, failure.Usage("--tenants: one or more")
	}
	r.Tenants = trace.Shifts(w.tenants, 0.8)
	_, gpus := fleet.Count()
	r.PerHour = w.load * float64(gpus) / r.MeanDemand()
	if w.perHour != 0 {
		r.PerHour = w.perHour
	}
	jobs, err := trace.Generate(r)
	if err != nil {
		return study.Load{}, failure.Usage("--generate: %v", err)
	}
	return study.Load{Name: "like " + w.generate, Jobs: jobs}, nil
}

// pace tells how fast jobs are on the models of the cluster.
func (w *world) pace(s *study.Setup) error {
	flag := "--speeds"
	if w.table != nil {
		flag = "--throughputs"
	}
	switch {
	case w.speeds == "" && w.table == nil:
		return nil
	case w.speeds != "" && w.table != nil:
		return failure.Usage("--speeds and --throughputs exclude each other")
	case s.Fleet.Racks[0].Model == "":
		return failure.Usage("%s needs a cluster that names its models, as in --nodes 20x8:v100+20x4:k80", flag)
	case w.table != nil:
		s.Speeds, s.Beside = study.SpeedsOf(w.table, trace.GavelReference), study.BesideOf(w.table, trace.GavelReference)
		return nil
	}
	f, err := os.Open(w.speeds)
	if err != nil {
		return &failure.Error{Code: failure.Misuse, What: "--speeds " + w.speeds + " cannot be read", Err: err}
	}
	defer func() { _ = f.Close() }()
	book, err := study.ReadSpeeds(f, w.speeds)
	if err != nil {
		return &failure.Error{Code: failure.Misuse, What: "the speeds cannot be used", Err: err}
	}
	s.Speeds = book.Speeds
	if s.Load, w.paced = book.Sort(s.Load); w.paced == 0 {
		return failure.Usage("%s fits no job: its patterns are of kinds or names, which the trace must tell, and jobs that name a GPU model are as fast as they were there", w.speeds)
	}
	return nil
}

// weigh gives the tenants' weights.
func (w *world) weigh(cfg *config.Config) (map[string]int64, error) {
	switch w.weights {
	case "equal":
		return study.EqualWeights(w.census), nil
	case "demand":
		return study.DemandWeights(w.census), nil
	case "config":
		if len(cfg.Tenants.Weights) == 0 {
			return nil, failure.Usage("--weights config: the configuration names no weights (tenants.weights), which leaves them to Slurm's shares: write these into a file")
		}
		weights := maps.Clone(cfg.Tenants.Weights)
		for _, tenant := range study.Missing(w.census, weights) {
			weights[tenant] = 0 // as for the daemon
		}
		return weights, nil
	}
	f, err := os.Open(w.weights)
	if err != nil {
		return nil, &failure.Error{Code: failure.Misuse, What: "--weights " + w.weights + " is neither equal, demand nor config, and no file that can be read", Err: err}
	}
	defer func() { _ = f.Close() }()
	weights, err := study.ReadWeights(f, w.weights)
	if err != nil {
		return nil, &failure.Error{Code: failure.Misuse, What: "the weights cannot be used", Err: err}
	}
	if missing := study.Missing(w.census, weights); len(missing) > 0 {
		return nil, &failure.Error{Code: failure.Misuse, What: fmt.Sprintf("%s has no weight for %d tenants of the trace: %s", w.weights, len(missing), view.Some(missing, 10)),
			Next: "add a line for each, with 0 for one that is due nothing"}
	}
	return weights, nil
}

// tell says what is about to be simulated, and what was left out of it.
func (w *world) tell(out io.Writer, s *study.Setup) {
	c := &w.census
	fmt.Fprintf(out, "%s: %d jobs of %d tenants, submitted over %s; they want %.0f GPUs on average\n", s.Load.Name, c.Jobs, len(c.Tenants),
		c.Last, float64(c.Demand())/float64(max(c.Last, cluster.Hour)))
	w.leftOut(out)
	if w.speeds != "" {
		fmt.Fprintf(out, "  %s says how fast %d of them are on which model\n", w.speeds, w.paced)
	}
	tellSaves(out, s)
}

// leftOut says which rows of the trace are no jobs, and which jobs are not whole.
func (w *world) leftOut(out io.Writer) {
	if counts := w.counts(); counts != "" {
		fmt.Fprintf(out, "  left out: %s\n", counts)
	}
	if w.from != nil {
		for _, b := range w.from.Bad {
			fmt.Fprintf(out, "  %s: line %d: %s\n", b.File, b.Line, b.What)
		}
		if more := w.from.Counts.Bad - len(w.from.Bad); more > 0 {
			fmt.Fprintf(out, "  … and %d more\n", more)
		}
		if n := w.from.Counts.Unfinished; n > 0 {
			fmt.Fprintf(out, "  %d jobs still ran when it was written down: they end here when that was\n", n)
		}
	}
}

// counts says which rows of the trace became no job.
func (w *world) counts() string {
	if w.from == nil {
		return ""
	}
	var parts []string
	for _, x := range []struct {
		n    int
		what string
	}{{w.from.Counts.Bad, "rows that make no sense"}, {w.from.Counts.CPUOnly, "jobs without GPUs"}, {w.from.Counts.NoRun, "jobs that never ran"}} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	return strings.Join(parts, ", ")
}

// tellResult says what is no score of a run but must be known.
func tellResult(out io.Writer, s *study.Setup, r *study.Result) {
	if r.Refused.Jobs > 0 {
		all := study.Survey(s.Load).Demand()
		fmt.Fprintf(out, "  %s on %s: %d jobs were not submitted (%.1f %% of the GPU time wanted)\n", s.Scheduler, s.Fleet, r.Refused.Jobs, 100*float64(r.Refused.Demand)/float64(all))
		for _, x := range r.Refused.Named[:min(3, len(r.Refused.Named))] {
			fmt.Fprintf(out, "    %s\n", x)
		}
		if more := r.Refused.Jobs - 3; more > 0 {
			fmt.Fprintf(out, "    … and %d more\n", more)
		}
	}
	if len(r.Levels) > 0 {
		var parts []string
		for _, l := range r.Levels {
			parts = append(parts, fmt.Sprintf("%.1f %% of %s", 100*l.Broken/float64(max(l.Cells, 1)), l.Type))
		}
		fmt.Fprintf(out, "  %s on %s: cells that could not be given whole to a guaranteed lease: %s\n", s.Scheduler, s.Fleet, strings.Join(parts, ", "))
	}
	if r.Endless > 0 {
		fmt.Fprintf(out, "  %s on %s: the run ends after %s: %d jobs would never end, for they are requeued again and again and begin anew each time\n",
			s.Scheduler, s.Fleet, r.To.Sub(r.From), r.Endless)
	}
	if r.TimedOut > 0 {
		fmt.Fprintf(out, "  %s on %s: %d jobs reached their time limit here, but not in the trace\n", s.Scheduler, s.Fleet, r.TimedOut)
	}
}
