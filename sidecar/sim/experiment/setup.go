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

// Start is the start of every run, on a boundary of every term that divides an hour.
const Start cluster.Instant = 1_800_000_000_000

// Forever is the maximum duration of a run without another limit.
const Forever = 100 * 365 * cluster.Day

// Setup is one run: its scheduler, load and fleet. Default gives everything except Load, Weights
// and Fleet.
type Setup struct {
	Scheduler string
	Load      Load
	Weights   map[string]int64 // of the tenants; those without jobs have a share, too
	Fleet     Fleet
	// Cells is the tenants' virtual clusters. If set, every scheduler's audit compares with the
	// VCs. nil = CellsByWeight for Cellular schedulers, none for the others.
	Cells *cluster.Cells

	// Limits are rules of Slurm's to which it holds all jobs. Only the product's schedulers know them.
	Limits Admission

	Settings cluster.Settings // with Slices, all jobs of one GPU may take turns on one
	Chooser  string           // models.chooser, for presets that divide GPU models; "" = that of Settings
	Costs    sim.Costs
	Saves    Mixture // how jobs save, drawn by Seed
	Reported bool    // jobs that save on their own report each save to the scheduler
	Speeds   sim.Speeds
	Declared sim.Speeds // declared to presets for heterogeneous GPUs; nil = Speeds, the truth
	// Beside is the speed of jobs that share GPUs. Expected is a scheduler's assumption before it
	// has measured that; nil = Beside.
	Beside, Expected sim.Beside
	// Within is the deadline of a job after its arrival (its SLO), by its id in the trace; 0 =
	// none.
	Within map[string]cluster.Span
	// Weighs is the weight of a job in Gavel's policies (its priority), by its id in the trace; not
	// listed = 1.
	Weighs map[string]float64
	Prices map[string]float64 // per GPU and hour, by model; for cost policies
	Mixed  bool               // gangs may span models; not with every scheduler
	// Between and Repair are a node's mean times to failure and to repair; Between 0 = no
	// failures. Seed determines failures and manners of saving.
	Between, Repair cluster.Span
	Seed            uint64
	Until           cluster.Span // since the start; 0 = until all jobs are done
	Enough          bool         // end before Until when all jobs have arrived and no remaining one can end before it
	Measures        score.Options
	Audit           bool
	Keep            bool // jobs in Result.Kept
}

// Default gives a setup with the product's settings, astraea, the costs of
// sim.DefaultCosts, jobs that save when their lease ends, and no failures.
func Default() Setup {
	s := Setup{Scheduler: Schedulers()[0], Settings: config.Default().Settings(), Costs: sim.DefaultCosts(), Saves: Only(sim.AtEnd),
		Repair: cluster.Hour, Measures: score.Standard()}
	s.Settings.StartCost = s.Costs.Start()
	return s
}

// Check reports errors in a setup.
func (s *Setup) Check() error {
	set := &s.Settings
	switch {
	case s.Load.Jobs == nil:
		return fmt.Errorf("nothing to run: a load is missing")
	case len(s.Fleet.Racks) == 0:
		return fmt.Errorf("nowhere to run: a fleet is missing")
	case set.Interval < cluster.Second || set.Term < set.Interval:
		return fmt.Errorf("an interval of %v and a term of %v: rounds are a second apart or more, and a term is no shorter than that", set.Interval.Exact(), set.Term.Exact())
	case set.MinLease > set.Term || set.Notice > set.MinLease && set.Notice > set.Term:
		return fmt.Errorf("a shortest lease of %v and a notice of %v do not go with a term of %v: neither may be longer", set.MinLease.Exact(), set.Notice.Exact(), set.Term.Exact())
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
	if !s.Limits.Empty() && !s.knowsLimits() {
		return fmt.Errorf("%s does not know Slurm's limits: leave them out, or compare fairlease's own schedulers", s.Scheduler)
	}
	if _, err := s.Limits.of(s.Weights); err != nil {
		return err
	}
	_, err := s.cells()
	return err
}

// account gives a tenant's account; root is the root of Slurm's tree.
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

// arrivals converts the load's jobs for the cluster, and records refused ones.
func (s *Setup) arrivals(refused *Refused) iter.Seq[sim.Arrival] {
	return func(yield func(sim.Arrival) bool) {
		idle := s.ruled()
		for j := range s.Load.Jobs {
			request, why := s.Fleet.gang(&j, s.Mixed)
			if s.Load.Anywhere {
				request.Nodes, request.MaxNodes, request.PerNode = 0, 0, 0
			}
			w := s.work(&j, request)
			if idle != nil && why == "" {
				if rule := idle.Never(&w); rule != "" {
					why = "could never start, by Slurm's limits: " + rule
				}
			}
			if _, ok := s.Weights[j.Tenant]; !ok {
				why = "has no weight: its tenant is not listed"
			}
			if why != "" {
				refused.add(&j, why)
				continue
			}
			if !yield(sim.Arrival{At: Start.Add(j.Submit), Work: w}) {
				return
			}
		}
	}
}

// work converts a job of a trace for the cluster. Its name is its id in the trace.
func (s *Setup) work(j *trace.Job, request cluster.Request) sim.Work {
	m := s.Saves.Of(j, s.Seed)
	w := sim.Work{Name: j.ID, Command: cmp.Or(j.Command, j.Name, cluster.Untyped), User: userOf(j), Account: account(j.Tenant), Partition: partition, Request: request,
		Comment: kindOf(j.Kind), Runs: j.Runs, Outcome: j.Outcome, Kind: j.Kind, Limit: j.Limit, Saves: m.Saves, Every: m.Every}
	if s.Load.Steps {
		w.Comment += fmt.Sprintf(",steps=%d", max(j.Runs/cluster.Second, 1))
	}
	if s.Settings.Slices != nil {
		w.Comment += ",share=yes"
		for _, g := range s.Fleet.Models() {
			w.Comment += ",mem." + cmp.Or(g.Model, unnamed) + "=1g"
		}
	}
	if m.Takes > 0 {
		own := s.Costs
		own.Save = m.Takes
		w.Costs = &own
	}
	return w
}

// assumption says how jobs are assumed to save.
func (s *Setup) assumption() string {
	if s.Reported {
		return s.Saves.String() + ", saves reported"
	}
	return s.Saves.String()
}

// setting describes the run for the scores.
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

// Fit makes settings consistent after a change of the interval or the term. A lease is at least
// an interval and at most a term, a notice falls on a round and is at most the minimum lease, and
// a grant expires no earlier than the next round.
func Fit(s cluster.Settings) cluster.Settings {
	s.MinLease = min(max(s.MinLease, s.Interval), s.Term)
	if s.Notice > 0 {
		s.Notice = min(max(s.Notice, s.Interval), s.MinLease)
	}
	s.GrantTimeout = max(s.GrantTimeout, s.Interval)
	s.Window = max(s.Window, s.Term)
	return s
}
