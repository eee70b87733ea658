package baseline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
)

// Scheduler decides rounds; the package's documentation lists them.
type Scheduler struct {
	Name string
	// Decide makes the plan of a round. It may keep state between rounds, so one scheduler serves
	// one run.
	Decide func(cluster.Snapshot) cluster.Plan
	// Chooser is set if the engine decides with virtual clusters: it is the required
	// Settings.Chooser, and the snapshot must have cells.
	Chooser string
	// Divide is set if the engine has a policy for heterogeneous GPUs: it is the required
	// Settings.Divide.
	Divide string
	// Leases tells whether it grants leases of Settings.Term; else jobs run to their end, or
	// until they are preempted.
	Leases bool
}

// Options are inputs of a scheduler beyond its paper's rules.
type Options struct {
	// Mixed lets gangs that name no model span models and run at the pace of the slowest (it
	// needs a virtual cluster that is Mixed). A gang that is too big for every single model waits
	// nevertheless. "astraea" has no such option.
	Mixed bool
	// Grid makes leases end together, at multiples of the term, as the product's do. Otherwise
	// each ends a term after its start: then gangs wait longer and small jobs hardly at all.
	Grid bool
	// Brief says that plans are valid for a limited time only; see engine.Decider.
	Brief bool
	// Runs gives a job's total run time, for schedulers whose papers assume that it is known
	// (themis, allox); 0 = unknown. nil = unknown for all.
	Runs func(*cluster.Job) cluster.Span
	// Speed gives the speed of a job on a GPU model, relative to the model of Runs; 0 = it does
	// not run there. nil = equal on all.
	Speed func(j *cluster.Job, model string) float64
	// Beside gives the speeds of two jobs on the same GPUs of a model, in units of Speed:
	// measured if they have met there, else expected; 0 = they cannot share them. nil = no
	// sharing.
	Beside func(j, other *cluster.Job, model string, met bool) (float64, float64)
	// Share is called at the start of a round with a job and the one that shares its GPUs from
	// now on (ID 0 = none).
	Share func(host, guest cluster.JobID)
	// Left gives the remaining part of Runs.
	Left func(*cluster.Job) cluster.Span
	// Within gives the deadline of a job after its arrival (its SLO); 0 = none. nil = none for
	// all.
	Within func(*cluster.Job) cluster.Span
	// Weight gives the weight of a job in Gavel's policies (its priority). nil = 1 for all.
	Weight func(*cluster.Job) float64
	// Prices are per GPU and hour, by model.
	Prices map[string]float64
}

// product is the name of fairlease, which the others are compared with.
const product = "astraea"

// Entry is a scheduler that New makes by its name.
type Entry struct {
	Name   string
	Leases bool // it grants leases of Settings.Term
	Told   bool // it uses Options.Runs
	Models bool // it is for heterogeneous GPUs, and in tables only on request
	Make   func(Options) Rule
}

// Rule assigns GPUs in a round.
type Rule func(*Round)

// known lists the schedulers in the order of tables.
var known = []Entry{
	{Name: "fifo", Make: newFIFO},
	{Name: "slurm-multifactor", Make: newMultifactor},
	{Name: "slurm-preempt", Make: newPreempt},
	{Name: "quota-static", Make: newQuotaStatic},
	{Name: "quota-lend", Make: newQuotaLend},
}

// Register adds schedulers. Programs of research have those of package research/papers by it, which the installed program does not have.
func Register(entries ...Entry) { known = append(known, entries...) }

// named lists the schedulers with or without models.
func named(models bool) (names []string) {
	for i := range known {
		if known[i].Models == models {
			names = append(names, known[i].Name)
		}
	}
	return names
}

// Names lists the schedulers, in the order in which tables show them.
func Names() []string { return append([]string{product}, named(false)...) }

// Untold lists the baselines that are not told how long jobs run.
func Untold() []string {
	return slices.DeleteFunc(named(false), func(name string) bool { return known[index(name)].Told })
}

// Heterogeneous lists the schedulers for heterogeneous GPUs, sorted.
func Heterogeneous() []string { return slices.Sorted(slices.Values(named(true))) }

// index gives the place of a scheduler in known; -1 = there is none.
func index(name string) int {
	return slices.IndexFunc(known, func(e Entry) bool { return e.Name == name })
}

// cellular is the name of the product with virtual clusters. A colon and the chooser within a VC
// may follow, if that is not the product's.
const cellular = "hived"

// Cellular lists the schedulers with virtual clusters: the engine with each of its choosers.
func Cellular() []string {
	return []string{cellular, "hived:fifo", "hived:tiresias-l", "hived:gandiva-fair"}
}

// dividing starts the names of the product with a preset for heterogeneous GPUs.
const dividing = "fairlease:"

// Dividing lists the product's presets for heterogeneous GPUs, by their names here.
func Dividing() []string {
	var names []string
	for _, by := range preset.Dividing() {
		names = append(names, dividing+by)
	}
	return names
}

func errMixed(name string) error {
	return fmt.Errorf("%s keeps every gang on one GPU model; only %s can be told to mix", name, strings.Join(Names()[1:], ", "))
}

// New gives a scheduler by name. Unknown names, and options that the scheduler lacks, are errors.
func New(name string, o Options) (Scheduler, error) {
	decider := &engine.Decider{Brief: o.Brief}
	divides := slices.Contains(Dividing(), name)
	if cells := slices.Contains(Cellular(), name); cells || divides || name == product {
		if o.Mixed {
			return Scheduler{}, errMixed(name)
		}
		s := Scheduler{Name: name, Decide: decider.Decide, Leases: true}
		if _, chooser, _ := strings.Cut(name, ":"); cells {
			s.Chooser = cmp.Or(chooser, product)
		}
		if divides {
			s.Divide = strings.TrimPrefix(name, dividing)
		}
		return s, nil
	}
	if i := index(name); i >= 0 {
		if o.Mixed && known[i].Models {
			return Scheduler{}, errMixed(name)
		}
		r := &Round{rule: known[i].Make(o), Mixed: o.Mixed, Grid: o.Grid}
		return Scheduler{Name: name, Leases: known[i].Leases, Decide: func(s cluster.Snapshot) cluster.Plan { return decider.DecideBy(s, r) }}, nil
	}
	names := slices.Sorted(slices.Values(slices.Concat(Names(), Cellular(), Dividing(), Heterogeneous())))
	return Scheduler{}, fmt.Errorf("there is no scheduler %q; there are %s", name, strings.Join(names, ", "))
}
