// Package preset is the registry of presets, the values of the site's setting preset. A preset is
// one row: the policy that sets entitlements, its parties, the chooser, and its requirements.
// Every list of presets is made from it.
package preset

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/answer"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
)

// Between is the kind of parties between which GPUs are divided.
type Between string

// Tenants share by weight. Types: a policy divides GPU models between each tenant's types of jobs. Jobs: between single jobs.
const (
	Tenants Between = "tenants"
	Types   Between = "types"
	Jobs    Between = "jobs"
)

// Preset is a row of the registry.
type Preset struct {
	Name string
	Doc  string // the entitlement of a tenant, in a line or two
	// Divide gives each party's entitlement to each GPU model; nil = weighted shares of every
	// model.
	Divide  answer.Policy
	Between Between
	Needs
	Cells bool // tenants have virtual clusters, whose chooser grants leases; else fair share does
	// Mechanism is the one of the policy's paper (see cluster.Settings); "" = the paper has none.
	Mechanism string
}

// Needs lists a preset's requirements.
type Needs struct {
	Solver bool // a build with COIN-OR CLP
	Prices bool // prices of GPUs
	// Weighs = tenants' weights count; else the policy knows jobs only, and jobs queue (SEMANTICS
	// §4). WeighsJobs = those of jobs count all the same.
	Weighs, WeighsJobs bool
	// Merges = job types of a tenant beyond a number count as one.
	Merges bool
}

// The presets that other packages name.
const (
	Astraea     = "astraea"
	Hived       = "hived"
	GandivaFair = "gandiva-fair"
)

var (
	weighs = Needs{Weighs: true}
	blind  = Needs{}
	priced = Needs{Prices: true}
	solved = Needs{Prices: true, Solver: true}
)

// all is the registry, in the order of lists.
var all = []Preset{
	{Name: Astraea, Between: Tenants, Needs: weighs,
		Doc: "long-term fair GPU time by leases (ASTRAEA)"},
	{Name: Hived, Between: Tenants, Needs: weighs, Cells: true,
		Doc: "each tenant has a virtual cluster: GPUs with the affinity that it was promised, at any time; idle ones are lent to others, and recalled when its jobs come back (HiveD)"},
	{Name: "drf", Divide: answer.ByDominantShare, Between: Types, Needs: weighs,
		Doc: "dominant-resource fairness: the largest part that a tenant has of any GPU model grows alike for all, by weight (DRF)"},
	{Name: GandivaFair, Divide: answer.ByTickets(true), Between: Types, Needs: weighs, Mechanism: cluster.ByStride,
		Doc: "the same share of every model by weight; then tenants trade fast GPUs for more slow ones, at the second price, and no tenant loses (Gandiva_fair)"},
	{Name: GandivaFair + ":no-trade", Divide: answer.ByTickets(false), Between: Types, Needs: weighs, Mechanism: cluster.ByStride,
		Doc: "the same share of every model by weight, without trading"},
	gavel("cost", solved, "throughput over cost, as one ratio: the cheapest steps alone, and most jobs wait"),
	gavel("cost-least-slo", solved, "the least cost at which jobs meet their deadlines (sbatch --deadline)"),
	gavel("cost-slo", solved, "throughput over cost, as one ratio, and jobs meet their deadlines"),
	gavel("cost-sum", priced, "the sum of all jobs' throughput per price, as in the authors' code: every job runs"),
	gavel("cost-sum-slo", solved, "the sum of all jobs' throughput per price, and jobs meet their deadlines"),
	gavel("fifo", blind, "first come, first served, each job on the model on which it is fastest"),
	gavel("fifo-blind", blind, "first come, first served, as if all models were alike"),
	gavel("ftf", blind, "finish-time fairness: the worst slowdown against an equal share is as low as possible"),
	gavel("ftf-blind", blind, "finish-time fairness, as if all models were alike"),
	nested("las", policy.Ways{}, "max-min between tenants by weight, then between the users of each if users is equal, then between jobs; no tenant is below its weighted share of all models"),
	nested("las-blind", policy.Ways{Blind: true}, "as gavel:las, as if all models were alike"),
	nested("las-fifo", policy.Ways{FIFO: true}, "as gavel:las, but a tenant's jobs, or a user's, are first come, first served"),
	{Name: "gavel:las-jobs", Divide: answer.ByTime("las"), Between: Jobs, Needs: Needs{WeighsJobs: true}, Mechanism: cluster.ByGavel,
		Doc: "max-min between jobs: the worst-off job's normalised throughput is as high as possible (Gavel)"},
	gavel("makespan", blind, "all jobs are done as early as possible"),
	gavel("makespan-blind", blind, "all jobs are done as early as possible, as if all models were alike"),
	gavel("sjf", Needs{Solver: true}, "the shortest job first"),
	gavel("throughput", blind, "the highest total throughput"),
	gavel("throughput-slo", Needs{Solver: true}, "the highest total throughput with which jobs meet their deadlines"),
	{Name: "oef:coop", Divide: answer.ByMarket(policy.OEFCooperative), Between: Types, Needs: Needs{Weighs: true, Merges: true, Solver: true}, Mechanism: cluster.ByOEF,
		Doc: "the highest total throughput that is envy-free: no tenant would prefer another's share (OEF)"},
	{Name: "oef:noncoop", Divide: answer.ByMarket(policy.OEFNonCooperative), Between: Types, Needs: Needs{Weighs: true, Merges: true}, Mechanism: cluster.ByOEF,
		Doc: "the same throughput for all by weight: no tenant gains by claiming that a model is faster than it is (OEF)"},
}

// gavel gives the row of one of Gavel's policies (Table 1), which divide the time of jobs.
func gavel(objective string, needs Needs, doc string) Preset {
	return Preset{Name: "gavel:" + objective, Doc: doc + " (Gavel)", Divide: answer.ByTime(objective), Between: Jobs, Needs: needs, Mechanism: cluster.ByGavel}
}

// nested gives the row of one of Gavel's policies that divide between tenants first (§4.3).
func nested(name string, ways policy.Ways, doc string) Preset {
	return Preset{Name: "gavel:" + name, Doc: doc + " (Gavel)", Divide: answer.ByTenants(ways), Between: Jobs, Needs: weighs, Mechanism: cluster.ByGavel}
}

// All gives the registry. Do not modify it.
func All() []Preset { return all }

// Names lists all presets, Dividing those whose policy divides GPU models.
func Names() []string { return names(func(*Preset) bool { return true }) }

// Dividing is described at Names.
func Dividing() []string { return names(func(p *Preset) bool { return p.Divide != nil }) }

// Kinds names one dividing preset of each kind: by its parties, and by whether tenants' weights count.
func Kinds() []string {
	type kind struct {
		between Between
		weighs  bool
	}
	seen := map[kind]bool{}
	return names(func(p *Preset) bool {
		k := kind{p.Between, p.Weighs}
		again := seen[k]
		seen[k] = again || p.Divide != nil
		return p.Divide != nil && !again
	})
}

func names(which func(*Preset) bool) []string {
	var out []string
	for i := range all {
		if which(&all[i]) {
			out = append(out, all[i].Name)
		}
	}
	return out
}

// Of gives the row of a preset, with or without the defaults of its paper; false = there is none of that name.
func Of(name string) (Preset, bool) {
	name = Base(name)
	i := slices.IndexFunc(all, func(p Preset) bool { return p.Name == name })
	if i < 0 {
		return Preset{}, false
	}
	return all[i], true
}

// OfJobs tells whether a preset divides GPU models between single jobs.
func OfJobs(name string) bool {
	p, _ := Of(name)
	return p.Between == Jobs
}

// Paper is the value of models.chooser that names the mechanism of a preset's own paper.
const Paper = "paper"

// Mechanism gives the mechanism by which a preset's divisions are carried out. chooser is the value of models.chooser.
func Mechanism(name, chooser string) string {
	if chooser != Paper {
		return chooser
	}
	p, _ := Of(name)
	return cmp.Or(p.Mechanism, cluster.Nearest)
}

// TenantBlind tells whether a preset knows jobs only: its division ignores tenants' weights.
func TenantBlind(name string) bool {
	p, ok := Of(name)
	return ok && !p.Weighs
}

// Divide answers a question with the preset that it names: the entitlements of all parties to
// each pool (SEMANTICS §4). It is a pure function, and may take long: it runs beside the rounds.
// It never fails: without an answer of the policy all parties get weighted shares, and Why says
// why.
func Divide(q cluster.AllocationRequest) cluster.Allocation {
	return answer.Divide(q, PolicyOf(q.Policy))
}

// PolicyOf gives the policy of a preset; without one, a policy that fails.
func PolicyOf(name string) answer.Policy {
	if p, ok := Of(name); ok && p.Divide != nil {
		return p.Divide
	}
	return func(*cluster.AllocationRequest, *cluster.Allocation) error { return fmt.Errorf("no policy %q", name) }
}
