package experiment

import (
	"cmp"
	"fmt"
	"iter"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// Start is when every run begins: on a boundary of every term that divides an hour.
const Start cluster.Instant = 1_800_000_000_000

// Forever is how long a run may last that nobody ends.
const Forever = 100 * 365 * cluster.Day

// Setup is one run: who decides, what arrives, and on what. Default gives all but Load,
// Weights and Fleet.
type Setup struct {
	Scheduler string
	Load      Load
	Weights   map[string]int64 // of the tenants; those that have no jobs have a share all the same
	Fleet     Fleet
	// Cells is the tenants' virtual clusters. With them, every scheduler's audit compares with
	// the VCs. nil = of Cellular schedulers those of CellsByWeight, the others have none.
	Cells *cluster.Cells

	Settings cluster.Settings
	Costs    sim.Costs
	Saves    Mixture // how jobs save, drawn by Seed
	Reported bool    // jobs that save on their own report each save to the scheduler
	Speeds   sim.Speeds
	Declared sim.Speeds // what is declared of them, to the presets that divide unlike models; nil = Speeds, the truth
	// Beside is how fast jobs are that share GPUs, Expected what a scheduler takes it to be before it has seen it;
	// nil = what it is.
	Beside, Expected sim.Beside
	// Within tells by when after it came a job is to be done (its SLO), by its id in the trace; 0 = whenever.
	Within map[string]cluster.Span
	Prices map[string]float64 // of a GPU and hour, by model; for the policies that mind
	Mixed  bool               // gangs may span models; not with every scheduler
	// Between and Repair are the mean times of a node until it fails and until it is back;
	// Between 0 = nothing fails. Seed is what failures and manners of saving are drawn from.
	Between, Repair cluster.Span
	Seed            uint64
	Until           cluster.Span // since the start; 0 = until all jobs are done
	Enough          bool         // end before Until when all have come, and none is left that runs for less than that
	Measures        score.Options
	Audit           bool
	Keep            bool // the jobs, in Result.Kept
}

// Default gives a setup with the product's settings, astraea, the costs of
// sim.DefaultCosts, jobs that save when their lease ends, and no failures.
func Default() Setup {
	s := Setup{Scheduler: Schedulers()[0], Settings: config.Default().Settings(), Costs: sim.DefaultCosts(), Saves: Only(sim.AtEnd),
		Repair: cluster.Hour, Measures: score.Standard()}
	s.Settings.StartCost = s.Costs.Start()
	return s
}

// Check says what is wrong with a setup.
func (s *Setup) Check() error {
	set := &s.Settings
	switch {
	case s.Load.Jobs == nil:
		return fmt.Errorf("nothing to run: a load is missing")
	case len(s.Fleet.Racks) == 0:
		return fmt.Errorf("nowhere to run: a fleet is missing")
	case set.Interval < cluster.Second || set.Term < set.Interval:
		return fmt.Errorf("an interval of %v and a term of %v: rounds are a second apart or more, and a term is no shorter than that", set.Interval, set.Term)
	case set.MinLease > set.Term || set.Notice > set.MinLease && set.Notice > set.Term:
		return fmt.Errorf("a shortest lease of %v and a notice of %v do not go with a term of %v: neither may be longer", set.MinLease, set.Notice, set.Term)
	case s.Between < 0 || s.Between > 0 && s.Repair <= 0:
		return fmt.Errorf("nodes that fail need a time until they do and one until they are repaired, both above 0")
	case s.Until < 0:
		return fmt.Errorf("a run cannot end before it begins")
	}
	if err := s.Saves.check(); err != nil {
		return err
	}
	if _, err := s.scheduler(nil, nil); err != nil {
		return err
	}
	_, err := s.cells()
	return err
}

// account names a tenant's account: Slurm's root is the tree's own.
func account(tenant string) string {
	if tenant == "root" {
		return "root (tenant)"
	}
	return tenant
}

func (s *Setup) accounts() []cluster.Account {
	out := []cluster.Account{{Name: "root"}}
	for tenant, weight := range s.Weights {
		out = append(out, cluster.Account{Name: account(tenant), Parent: "root", Shares: weight})
	}
	return out // the cluster sorts them
}

// arrivals makes the load's jobs the cluster's, and tells which are refused.
func (s *Setup) arrivals(refused *Refused) iter.Seq[sim.Arrival] {
	return func(yield func(sim.Arrival) bool) {
		for j := range s.Load.Jobs {
			request, why := s.Fleet.gang(&j, s.Mixed)
			if _, ok := s.Weights[j.Tenant]; !ok {
				why = "has no weight: its tenant is not listed"
			}
			if why != "" {
				refused.add(&j, why)
				continue
			}
			if !yield(sim.Arrival{At: Start.Add(j.Submit), Work: s.work(&j, request)}) {
				return
			}
		}
	}
}

// work makes a job of a trace one of the cluster. It goes by its id in the trace.
func (s *Setup) work(j *trace.Job, request cluster.Request) sim.Work {
	m := s.Saves.Of(j, s.Seed)
	w := sim.Work{Name: j.ID, Command: cmp.Or(j.Command, j.Name, cluster.Untyped), User: userOf(j), Account: account(j.Tenant), Partition: partition, Request: request,
		Comment: kindOf(j.Kind), Runs: j.Runs, Outcome: j.Outcome, Kind: j.Kind, Limit: j.Limit, Saves: m.Saves, Every: m.Every}
	if m.Takes > 0 {
		own := s.Costs
		own.Save = m.Takes
		w.Costs = &own
	}
	return w
}

// assumption says how jobs are taken to save.
func (s *Setup) assumption() string {
	if s.Reported {
		return s.Saves.String() + ", saves reported"
	}
	return s.Saves.String()
}

// setting says what the scores are of.
func (s *Setup) setting(leases bool) score.Setting {
	nodes, gpus := s.Fleet.Count()
	out := score.Setting{Scheduler: s.Scheduler, Trace: s.Load.Name, Nodes: nodes, GPUs: gpus,
		Interval: s.Settings.Interval, From: Start, Saves: s.assumption()}
	if models := s.Fleet.Models(); len(models) > 1 {
		for _, m := range models {
			out.Models = append(out.Models, score.Model{Model: m.Model, GPUs: m.Count})
		}
	}
	if leases {
		out.Term = s.Settings.Term
	}
	return out
}

// Fit makes settings go together after the interval or the term was changed: a lease is
// never shorter than an interval or longer than a term, a notice, where there is one, falls
// on a round and is no longer than the shortest lease, and a grant is not taken back before the next round.
func Fit(s cluster.Settings) cluster.Settings {
	s.MinLease = min(max(s.MinLease, s.Interval), s.Term)
	if s.Notice > 0 {
		s.Notice = min(max(s.Notice, s.Interval), s.MinLease)
	}
	s.GrantTimeout = max(s.GrantTimeout, s.Interval)
	s.Window = max(s.Window, s.Term)
	return s
}
