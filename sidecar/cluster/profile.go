package cluster

import (
	compare "cmp"
	"strings"
)

// Kind names jobs with equal performance: "tenant/name". Measurements of one tenant's job prove
// nothing about another's. A kind without a tenant is the site's: a reference that the
// administrator declares for every tenant.
type Kind string

// KindOf gives the kind of a tenant; with tenant "", the site's.
func KindOf(tenant, name string) Kind {
	if tenant == "" {
		return Kind(name)
	}
	return Kind(tenant + "/" + name)
}

// Tenant gives the tenant of the kind; "" = the site's.
func (k Kind) Tenant() string { return string(k[:max(strings.LastIndexByte(string(k), '/'), 0)]) }

// Name gives the kind's name without its tenant.
func (k Kind) Name() string { return string(k[strings.LastIndexByte(string(k), '/')+1:]) }

// Scattered and AcrossSwitches stand in Profile.With for the nodes of a gang instead of a kind: it is on more nodes than the fewest on which its GPUs fit,
// or on these, but under more switches than so many nodes need. No kind has such a name.
const (
	Scattered      Kind = "(scattered)"
	AcrossSwitches Kind = "(across switches)"
)

// OfNodes reports whether it stands for the nodes of a gang.
func (k Kind) OfNodes() bool { return k == Scattered || k == AcrossSwitches }

// Spread is the name in run times of GPUs of a model that a gang had on such nodes; "" = on others. No model has such a name.
func Spread(model string, with Kind) string {
	if with == "" {
		return model
	}
	return model + " " + string(with)
}

// ModelOf gives the model of a name in run times.
func ModelOf(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, " "+string(Scattered)), " "+string(AcrossSwitches))
}

// Source is the origin of a throughput.
type Source string

// The sources of a throughput: declared, reported by jobs, or estimated from other kinds.
const (
	Declared  Source = "declared"
	Observed  Source = "observed"
	Estimated Source = "estimated"
)

// Method is the way of an estimate, best first. Without one, it goes by the gains of similar kinds.
type Method string

// The methods: ratios of completion times of the kind's own jobs, and of their GPU counters.
const (
	ByCompletions Method = "completions"
	ByCounters    Method = "counters"
	ByOthers      Method = "others" // by what other kinds gain
)

// Profile is the throughput of a kind of job on one GPU model.
type Profile struct {
	Kind  Kind   `json:"kind"`
	With  Kind   `json:"with,omitempty"` // shares its GPUs with this kind; "" = alone; or Scattered or AcrossSwitches
	Model string `json:"model"`
	Gang  int    `json:"gang"` // GPUs of the job
	// Rate is the throughput of the whole gang, in steps/s; 0 = it does not run there. A declared one of a scattered gang is the part
	// of its throughput on the fewest nodes.
	Rate   float64 `json:"rate"`
	Source Source  `json:"source"`
	// Method is the way of an estimate. If Relative, Rate says nothing of steps: it compares with the kind's other rates
	// of that gang size only.
	Method   Method `json:"method,omitempty"`
	Relative bool   `json:"relative,omitempty"`
	// Samples is the number of observations, and Rate their mean. Spread is their standard
	// deviation as a fraction of Rate. At is the time of the newest observation, or of the
	// declaration.
	Samples int     `json:"samples,omitempty"`
	Spread  float64 `json:"spread,omitempty"`
	At      Instant `json:"at,omitempty"`
	// Basis names the author of a declaration, or the data of an estimate.
	Basis string `json:"basis,omitempty"`
}

// Compare orders profiles by subject, then by source.
func (p *Profile) Compare(q *Profile) int {
	return compare.Or(compare.Compare(p.Kind, q.Kind), compare.Compare(p.With, q.With), compare.Compare(p.Model, q.Model),
		compare.Compare(p.Gang, q.Gang), compare.Compare(p.Source, q.Source))
}

// Progress is a job's own report of the steps that it has completed.
type Progress struct {
	Job   JobID   `json:"job"`
	Steps float64 `json:"steps"`           // since the job began
	Total float64 `json:"total,omitempty"` // of the whole job; 0 = not reported
	At    Instant `json:"at,omitzero"`     // when the report arrived
	Saved Instant `json:"saved,omitempty"` // when it last reported a save; 0 = not since the last look
	Took  Span    `json:"took,omitempty"`  // how long that save took; 0 = not reported
}

// Pace is the state kept of a job that reports progress.
type Pace struct {
	Key   JobKey  `json:"key"`
	Kind  Kind    `json:"kind"`
	With  Kind    `json:"with,omitempty"`
	Model string  `json:"model"`
	Gang  int     `json:"gang"`
	Steps float64 `json:"steps"` // of the last report
	Total float64 `json:"total,omitempty"`
	At    Instant `json:"at,omitzero"` // start of the next sample
	// Suspended is the time that the attempt had been suspended by At.
	Suspended Span `json:"suspended,omitempty"`
	// Samples, Mean and Spread are statistics of log(steps/s) since the speed last changed. Up
	// and Down are the cumulative deviations since then, in the same unit.
	Samples int     `json:"samples,omitempty"`
	Mean    float64 `json:"mean,omitempty"`
	Spread  float64 `json:"spread,omitempty"`
	Up      float64 `json:"up,omitempty"`
	Down    float64 `json:"down,omitempty"`
}
