package baseline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
)

// Scheduler decides rounds; see the package for those that there are.
type Scheduler struct {
	Name string
	// Decide makes the plan of a round. It may remember what it saw in earlier rounds, so
	// that one scheduler serves one run.
	Decide func(cluster.Snapshot) cluster.Plan
	// Chooser is set where the engine decides with virtual clusters: Settings.Chooser is to be
	// that, and the snapshot is to have cells.
	Chooser string
	// Divide is set where the engine has a policy divide unlike GPU models: Settings.Divide is to be that.
	Divide string
	// Leases tells whether it hands out leases of Settings.Term; else jobs run to their end, or
	// until they are preempted.
	Leases bool
}

// Options is what a scheduler may be given beyond its paper's rules.
type Options struct {
	// Mixed lets gangs that name no model span models and run at the pace of the slowest
	// (it needs a virtual cluster that is Mixed). A gang that is too big for every single
	// model waits all the same. "astraea" has no such switch.
	Mixed bool
	// Grid makes leases end together, at multiples of the term, as the product's do. Else each
	// ends a term after it began: gangs then wait longer and small jobs hardly at all.
	Grid bool
	// Brief tells that plans are good for a while only; see engine.Decider.
	Brief bool
	// Runs tells how long a job runs in all, for the schedulers whose papers assume that
	// somebody can tell (themis, allox); 0 = not known. nil = nobody can tell.
	Runs func(*cluster.Job) cluster.Span
	// Speed tells how fast a job is on a GPU model, as a multiple of what it is on the one on which
	// Runs is; 0 = it does not run there. nil = equally fast on all.
	Speed func(j *cluster.Job, model string) float64
	// Beside tells how fast two jobs are on the same GPUs of a model, as Speed: as was measured where they have met there, else
	// as is expected; 0 = they cannot share them. nil = nobody can.
	Beside func(j, other *cluster.Job, model string, met bool) (float64, float64)
	// Share is called when a round begins: a job, and the one that shares its GPUs from now on (ID 0 = nobody does).
	Share func(host, guest cluster.JobID)
	// Left tells how much of Runs is left to do.
	Left func(*cluster.Job) cluster.Span
	// Within tells how long after it came a job is to be done (its SLO); 0 = whenever. nil = all whenever.
	Within func(*cluster.Job) cluster.Span
	// Prices is what a GPU of each model costs an hour.
	Prices map[string]float64
}

// product is the name of what the others are compared with.
const product = "astraea"

// rival is a scheduler of this package.
type rival struct {
	name   string
	leases bool
	make   func(Options) rule
}

// known lists the schedulers in the order of tables.
var known = []rival{
	{"fifo", false, newFIFO},
	{"slurm-multifactor", false, newMultifactor},
	{"quota-static", false, newQuotaStatic},
	{"quota-lend", false, newQuotaLend},
	{"tiresias-l", true, newTiresias},
	{"themis", true, newThemis},
	{"allox", true, newAlloX},
	{"gandiva-fair", true, newGandivaFair},
}

// unlike lists the schedulers for unlike GPU models, which tables show only where asked to.
var unlike = []rival{
	{"fifo:random", false, newAtRandom},
	{"fifo:settled", true, newSettled},
	{"fifo:fastest", true, newMechanism(greedy, nil)},
	{"gandiva:packing", true, newMechanism(packed, newPacking)},
	{"gandiva-fair:split", true, newGandivaSplit},
	{"oef:coop", true, newOEF("oef:coop")},
	{"oef:noncoop", true, newOEF("oef:noncoop")},
}

// rule gives out the GPUs of a round.
type rule func(*round)

// Names lists the schedulers, in the order in which tables show them.
func Names() []string {
	names := []string{product}
	for i := range known {
		names = append(names, known[i].name)
	}
	return names
}

// cellular is the name of the product with virtual clusters. After it and a colon stands who
// chooses within a VC, where that is not the product.
const cellular = "hived"

// Cellular lists the schedulers with virtual clusters: the engine with each of its choosers.
func Cellular() []string {
	return []string{cellular, "hived:fifo", "hived:tiresias-l", "hived:gandiva-fair"}
}

// dividing begins the names of the product with a preset that divides unlike GPU models.
const dividing = "fairlease:"

// Dividing lists the product's presets that divide unlike GPU models, by the names that they have here.
func Dividing() []string {
	var names []string
	for _, by := range preset.Dividing() {
		names = append(names, dividing+by)
	}
	return names
}

// Unlike lists the schedulers for GPU models that are not alike: Gavel's policies among them, by its
// mechanism, with -blind also as they are where all models count as one, with +ss where jobs may share GPUs.
func Unlike() []string {
	var names []string
	for i := range unlike {
		names = append(names, unlike[i].name)
	}
	for _, name := range policy.Names() {
		if names = append(names, gavelPrefix+name); !strings.HasSuffix(name, unmodelled) {
			names = append(names, gavelPrefix+name+unmodelled, gavelPrefix+name+spaceSharing)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func errMixed(name string) error {
	return fmt.Errorf("%s keeps every gang on one GPU model; only %s can be told to mix", name, strings.Join(Names()[1:], ", "))
}

// New gives a scheduler by name. An unknown name is an error, and an option that the
// scheduler does not have.
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
	rivals := known
	if slices.Contains(Unlike(), name) {
		if o.Mixed {
			return Scheduler{}, errMixed(name)
		}
		rivals = slices.Concat(unlike, gavel(name))
	}
	for _, k := range rivals {
		if k.name != name {
			continue
		}
		r := &round{rule: k.make(o), mixed: o.Mixed, grid: o.Grid}
		return Scheduler{Name: name, Leases: k.leases, Decide: func(s cluster.Snapshot) cluster.Plan { return decider.DecideBy(s, r) }}, nil
	}
	names := slices.Sorted(slices.Values(slices.Concat(Names(), Cellular(), Dividing(), Unlike())))
	return Scheduler{}, fmt.Errorf("there is no scheduler %q; there are %s", name, strings.Join(names, ", "))
}
