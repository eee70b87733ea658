// Package input makes an experiment from a command line: jobs, from a trace or generated, a
// cluster, and weights, speeds and manners of saving. It refuses incompatible flags by name.
package input

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/notes"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// Site is what holds for all nodes.
type Site struct {
	CPUs      int   // for each GPU; 0 = enough for all jobs
	MemoryMB  int64 // for each GPU; 0 = enough for all jobs
	PerSwitch int   // nodes under each switch; 0 = no topology is known
}

// World holds the flags for jobs and clusters, as text, and the jobs.
type World struct {
	Nodes string // the cluster, in the form of experiment.ParseFleet
	Site  Site

	Generate      string // jobs like gavel or philly; "" = from a trace
	Length        string
	Tenants       int
	PerHour, Load float64
	Seed          uint64

	Format, Zone                 string // of the trace
	Weights, Speeds, Throughputs string

	Saving                        Saving
	Until                         string
	CostSave, CostLoad, ColdStart string
	FailEvery, Repair             string
	Turns                         Turns
	Limits                        string // a file; "" = none

	table  *trace.Throughputs // nil = none
	from   *trace.Trace       // nil = generated
	counts counts
}

// Turns says how jobs share GPUs.
type Turns struct {
	Length string // of a turn; "" = they do not
	Jobs   int    // on a GPU, at most; 0 = two
	Pairs  int    // pace of two jobs at the same time on a GPU, percent of that alone; 0 = they only take turns
}

// counts are those of the jobs.
type counts struct {
	experiment.Census
	paced int // jobs with speeds
}

// Length reads a flag that is a duration; an empty one changes nothing.
func Length(flag, text string, to *cluster.Span) error {
	if text == "" {
		return nil
	}
	d, err := config.ParseDuration(text)
	if err != nil {
		return failure.Usage("%s: %v", flag, err)
	}
	*to = d.Span()
	return nil
}

// Setup makes the common part of all runs; sizes, if given, replaces --nodes.
func (w *World) Setup(cfg *config.Config, args []string, sizes string) (experiment.Setup, error) {
	s := experiment.Default()
	s.Settings, s.Chooser, s.Prices = cfg.Settings(), cfg.Models.Chooser, cfg.Models.Prices
	turn := cluster.Span(0)
	err := cmp.Or(Length("--until", w.Until, &s.Until), Length("--cost-save", w.CostSave, &s.Costs.Save),
		Length("--cost-load", w.CostLoad, &s.Costs.Load), Length("--cost-start", w.ColdStart, &s.Costs.ColdStart),
		Length("--fail-every", w.FailEvery, &s.Between), Length("--repair", w.Repair, &s.Repair), Length("--slices", w.Turns.Length, &turn))
	if err != nil {
		return s, err
	}
	if s.Settings.Slices = nil; turn > 0 {
		s.Settings.Slices = &cluster.Slices{Quantum: turn, Pairs: w.Turns.Pairs > 0, Jobs: w.Turns.Jobs}
	} else if w.Turns.Pairs != 0 {
		return s, failure.Usage("--pairs needs --slices: turns show whether two jobs do more at the same time; write --slices 1m")
	}
	if w.Turns.Pairs < 0 || w.Turns.Pairs > 100 {
		return s, failure.Usage("--pairs must be 1 to 100 percent, got %d", w.Turns.Pairs)
	}
	if n := w.Turns.Jobs; n != 0 && n != 2 && (n != 3 || turn == 0 || w.Turns.Pairs > 0) {
		return s, failure.Usage("--slice-jobs must be 2, or 3 with --slices and without --pairs, got %d", n)
	}
	s.Settings.StartCost = s.Costs.Start()
	s.Seed = w.Seed
	if err := w.Saving.Into(&s); err != nil {
		return s, err
	}
	if s.Fleet, err = w.fleet(sizes); err != nil {
		return s, err
	}
	if w.Throughputs != "" {
		if w.table, err = trace.OpenThroughputs(w.Throughputs); err != nil {
			return s, &failure.Error{Code: failure.Misuse, What: "the throughputs cannot be used", Err: err}
		}
	}
	if s.Load, err = w.jobs(args, s.Fleet); err != nil {
		return s, err
	}
	if w.counts.Census = experiment.Survey(s.Load); w.counts.Jobs == 0 {
		return s, w.none(s.Load.Name)
	}
	if s.Weights, err = w.weigh(cfg); err != nil {
		return s, err
	}
	if s.Limits, err = w.limits(); err != nil {
		return s, err
	}
	if err := w.pace(&s); err != nil {
		return s, err
	}
	if w.Turns.Pairs > 0 {
		s.Beside = experiment.BesideOthers(s.Beside, w.Turns.Pairs)
	}
	return s, nil
}

// ofSlurm tells whether the jobs are the history of a Slurm.
func (w *World) ofSlurm() bool {
	return w.from != nil && (w.from.Format == trace.FormatSacct || w.from.Format == trace.FormatSlurmdb)
}

// none says why no job is left to be simulated.
func (w *World) none(name string) error {
	e := &failure.Error{Code: failure.No, What: name + " has no job with GPUs and a run time: " + cmp.Or(w.told(), "it is empty")}
	switch {
	case w.from == nil: // generated
		e.Next = "let more jobs arrive: --length, --load"
	case w.from.Counts.Bad > 0:
		b := &w.from.Bad[0]
		e.Next = fmt.Sprintf("look at line %d of %s: %s", b.Line, b.File, b.What)
	case !w.ofSlurm():
		e.Next = "name a trace of jobs that had GPUs"
	case w.from.Counts.CPUOnly > 0:
		e.Next = "if jobs had GPUs, Slurm's accounting does not record them: AccountingStorageTRES in slurm.conf has to name gres/gpu"
	default:
		e.Next = "ask for more: sacct -S for a longer time, and -a for all users' jobs"
	}
	return e
}

// fleet gives the cluster, or the first of several sizes.
func (w *World) fleet(sizes string) (experiment.Fleet, error) {
	text := w.Nodes
	if sizes != "" {
		if text != "" {
			return experiment.Fleet{}, failure.Usage("--nodes and --sizes exclude each other")
		}
		text, _, _ = strings.Cut(sizes, ",")
	}
	if text == "" && w.Generate != "" {
		text = "8x8"
	}
	if text == "" {
		return experiment.Fleet{}, failure.Usage("--nodes is missing: how large is the cluster? As in --nodes 64x8, for 64 nodes of 8 GPUs; sinfo -h -e -o '%%D nodes: %%G' lists yours")
	}
	f, err := experiment.ParseFleet(text)
	if err != nil {
		return f, failure.Usage("--nodes: %v", err)
	}
	if w.Site.CPUs < 0 || w.Site.MemoryMB < 0 {
		return f, failure.Usage("--cpus and --memory cannot be less than 0")
	}
	if w.Site.PerSwitch < 0 {
		return f, failure.Usage("--per-switch cannot be less than 0: write the number of nodes under each switch, as in --per-switch 16")
	}
	f.CPUs, f.MemoryMB, f.PerSwitch = w.Site.CPUs, w.Site.MemoryMB, w.Site.PerSwitch
	return f, nil
}

// jobs reads the trace, or generates jobs.
func (w *World) jobs(args []string, fleet experiment.Fleet) (experiment.Load, error) {
	switch {
	case len(args) > 1:
		return experiment.Load{}, failure.Usage("one trace at a time, but there are %q", args)
	case len(args) == 1 && w.Generate != "":
		return experiment.Load{}, failure.Usage("a trace and --generate exclude each other")
	case len(args) == 1:
		return w.Read(args[0])
	case w.Generate == "":
		return experiment.Load{}, failure.Usage("what is to be simulated? Name a trace, or make jobs up with --generate philly")
	}
	return w.makeUp(fleet)
}

// Read reads a trace.
func (w *World) Read(path string) (experiment.Load, error) {
	zone, err := time.LoadLocation(w.Zone)
	if err != nil {
		return experiment.Load{}, failure.Usage("--zone %s is not known; write one like Europe/Berlin", w.Zone)
	}
	known := []trace.Format{"", trace.FormatPlain, trace.FormatPhilly, trace.FormatHelios, trace.FormatPAI, trace.FormatSacct, trace.FormatSlurmdb, trace.FormatGavel}
	if !slices.Contains(known, trace.Format(w.Format)) {
		return experiment.Load{}, failure.Usage("--format %s is not known; write plain, philly, helios, pai, sacct, slurmdb or gavel", w.Format)
	}
	w.from, err = trace.Open(path, trace.Options{Format: trace.Format(w.Format), Zone: zone, Throughputs: w.table, PerHour: w.PerHour})
	if err != nil {
		return experiment.Load{}, &failure.Error{Code: failure.No, What: "the trace cannot be used", Err: err}
	}
	return experiment.Of(w.from), nil
}

func (w *World) makeUp(fleet experiment.Fleet) (experiment.Load, error) {
	var r trace.Recipe
	switch w.Generate {
	case "gavel":
		r = trace.LikeGavel(w.Seed, 1)
		r.Table = w.table
	case "philly":
		r = trace.LikePhilly(w.Seed, 1)
	default:
		return experiment.Load{}, failure.Usage("--generate %s is not known; write gavel or philly", w.Generate)
	}
	if err := Length("--length", w.Length, &r.Length); err != nil {
		return experiment.Load{}, err
	}
	if w.Tenants < 1 || w.Tenants > 100_000 {
		return experiment.Load{}, failure.Usage("--tenants: one or more")
	}
	r.Tenants = trace.Shifts(w.Tenants, 0.8)
	_, gpus := fleet.Count()
	r.PerHour = w.Load * float64(gpus) / r.MeanDemand()
	if w.PerHour != 0 {
		r.PerHour = w.PerHour
	}
	jobs, err := trace.Generate(r)
	if err != nil {
		return experiment.Load{}, failure.Usage("--generate: %v", err)
	}
	return experiment.Load{Name: "like " + w.Generate, Jobs: jobs}, nil
}

// pace sets the speeds of jobs on the cluster's models.
func (w *World) pace(s *experiment.Setup) error {
	flag := "--speeds"
	if w.table != nil {
		flag = "--throughputs"
	}
	switch {
	case w.Speeds == "" && w.table == nil:
		return nil
	case w.Speeds != "" && w.table != nil:
		return failure.Usage("--speeds and --throughputs exclude each other")
	case s.Fleet.Racks[0].Model == "":
		return failure.Usage("%s needs a cluster that names its models, as in --nodes 20x8:v100+20x4:k80", flag)
	case w.table != nil:
		s.Speeds, s.Beside = experiment.SpeedsOf(w.table, trace.GavelReference), experiment.BesideOf(w.table, trace.GavelReference)
		return nil
	}
	f, err := os.Open(w.Speeds)
	if err != nil {
		return &failure.Error{Code: failure.Misuse, What: "--speeds " + w.Speeds + " cannot be read", Err: err}
	}
	defer func() { _ = f.Close() }()
	book, err := experiment.ReadSpeeds(f, w.Speeds)
	if err != nil {
		return &failure.Error{Code: failure.Misuse, What: "the speeds cannot be used", Err: err}
	}
	s.Speeds = book.Speeds
	if s.Load, w.counts.paced = book.Sort(s.Load); w.counts.paced == 0 {
		return failure.Usage("%s fits no job: its patterns are of kinds or names, which the trace must tell, and jobs that name a GPU model are as fast as they were there", w.Speeds)
	}
	return nil
}

// limits reads Slurm's limits.
func (w *World) limits() (experiment.Admission, error) {
	if w.Limits == "" {
		return experiment.Admission{}, nil
	}
	f, err := os.Open(w.Limits)
	if err != nil {
		return experiment.Admission{}, &failure.Error{Code: failure.Misuse, What: "--limits " + w.Limits + " cannot be read", Err: err}
	}
	defer func() { _ = f.Close() }()
	limits, err := experiment.ReadLimits(f, w.Limits)
	if err != nil {
		return limits, &failure.Error{Code: failure.Misuse, What: "the limits cannot be used", Err: err}
	}
	return limits, nil
}

// weigh gives the tenants' weights.
func (w *World) weigh(cfg *config.Config) (map[string]int64, error) {
	switch w.Weights {
	case "equal":
		return experiment.EqualWeights(w.counts.Census), nil
	case "demand":
		return experiment.DemandWeights(w.counts.Census), nil
	case "config":
		if len(cfg.Tenants.Weights) == 0 {
			return nil, failure.Usage("--weights config: the configuration names no weights (tenants.weights), which leaves them to Slurm's shares: write these into a file")
		}
		weights := maps.Clone(cfg.Tenants.Weights)
		for _, tenant := range experiment.Missing(w.counts.Census, weights) {
			weights[tenant] = 0 // as for the daemon
		}
		return weights, nil
	}
	f, err := os.Open(w.Weights)
	if err != nil {
		return nil, &failure.Error{Code: failure.Misuse, What: "--weights " + w.Weights + " is neither equal, demand nor config, and no file that can be read", Err: err}
	}
	defer func() { _ = f.Close() }()
	weights, err := experiment.ReadWeights(f, w.Weights)
	if err != nil {
		return nil, &failure.Error{Code: failure.Misuse, What: "the weights cannot be used", Err: err}
	}
	if missing := experiment.Missing(w.counts.Census, weights); len(missing) > 0 {
		return nil, &failure.Error{Code: failure.Misuse, What: fmt.Sprintf("%s has no weight for %d tenants of the trace: %s", w.Weights, len(missing), view.Some(missing, 10)),
			Next: "add a line for each, with 0 for one that is due nothing"}
	}
	return weights, nil
}

// Tell describes the simulation, and what was omitted from it.
func (w *World) Tell(out io.Writer, s *experiment.Setup) {
	c := &w.counts.Census
	fmt.Fprintf(out, "%s: %d jobs of %d tenants, submitted over %s; they want %.0f GPUs on average\n", s.Load.Name, c.Jobs, len(c.Tenants),
		c.Last, float64(c.Demand())/float64(max(c.Last, cluster.Hour)))
	w.LeftOut(out)
	if w.ofSlurm() && len(c.Tenants) == 1 {
		fmt.Fprintln(out, "  there is nobody to share with: where Slurm hides others' jobs (PrivateData), an operator has to write the history")
	}
	if w.Speeds != "" {
		fmt.Fprintf(out, "  %s says how fast %d of them are on which model\n", w.Speeds, w.counts.paced)
	}
	notes.Saves(out, s)
}

// LeftOut describes rows of the trace that became no job, and incomplete jobs.
func (w *World) LeftOut(out io.Writer) {
	if counts := w.told(); counts != "" {
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

// counts describes rows of the trace that became no job.
func (w *World) told() string {
	if w.from == nil {
		return ""
	}
	return w.from.Counts.LeftOut()
}
