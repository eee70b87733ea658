package cluster

import (
	compare "cmp"
	"strings"
)

// Kind names jobs that run alike: "tenant/name", for what a job of one tenant does says
// nothing certain about another's. A kind without a tenant is the site's: a reference
// that the administrator declares for everybody.
type Kind string

// KindOf names a tenant's kind, or with tenant "" the site's.
func KindOf(tenant, name string) Kind {
	if tenant == "" {
		return Kind(name)
	}
	return Kind(tenant + "/" + name)
}

// Tenant gives whose kind it is; "" = the site's.
func (k Kind) Tenant() string { return string(k[:max(strings.LastIndexByte(string(k), '/'), 0)]) }

// Name gives the kind's name without its tenant.
func (k Kind) Name() string { return string(k[strings.LastIndexByte(string(k), '/')+1:]) }

// Source says where a throughput comes from.
type Source string

// The sources of a throughput: what somebody said, what jobs reported, what was worked
// out from other kinds.
const (
	Declared  Source = "declared"
	Observed  Source = "observed"
	Estimated Source = "estimated"
)

// Profile is the throughput of a kind of job on one GPU model.
type Profile struct {
	Kind  Kind   `json:"kind"`
	With  Kind   `json:"with,omitempty"` // what shares its GPUs; "" = it has them alone
	Model string `json:"model"`
	Gang  int    `json:"gang"` // GPUs of the job
	// Rate is its steps a second, of the whole gang; 0 = it does not run there.
	Rate   float64 `json:"rate"`
	Source Source  `json:"source"`
	// Samples is what an observed Rate is the average of, Spread their standard deviation
	// as a part of Rate, At when the newest was heard, or a declaration made.
	Samples int     `json:"samples,omitempty"`
	Spread  float64 `json:"spread,omitempty"`
	At      Instant `json:"at,omitempty"`
	// Basis is who declared it, or of what an estimate was made.
	Basis string `json:"basis,omitempty"`
}

// Compare orders profiles by what they are about, then by source.
func (p *Profile) Compare(q *Profile) int {
	return compare.Or(compare.Compare(p.Kind, q.Kind), compare.Compare(p.With, q.With), compare.Compare(p.Model, q.Model),
		compare.Compare(p.Gang, q.Gang), compare.Compare(p.Source, q.Source))
}

// Progress is what a job says of itself: how many steps it has done.
type Progress struct {
	Job   JobID   `json:"job"`
	Steps float64 `json:"steps"`           // since it began
	Total float64 `json:"total,omitempty"` // that it is to do; 0 = it did not say
	At    Instant `json:"at"`              // when it was heard
	Saved Instant `json:"saved,omitempty"` // when it last said that it had saved; 0 = not since the last look
}

// Pace is what is remembered of a job that reports progress.
type Pace struct {
	Key   JobKey  `json:"key"`
	Kind  Kind    `json:"kind"`
	With  Kind    `json:"with,omitempty"`
	Model string  `json:"model"`
	Gang  int     `json:"gang"`
	Steps float64 `json:"steps"` // when last heard
	Total float64 `json:"total,omitempty"`
	At    Instant `json:"at"` // from when on the next sample counts
	// Suspended is for how long it had been suspended by then, in that attempt.
	Suspended Span `json:"suspended,omitempty"`
	// Samples, Mean and Spread are of the logarithm of its steps a second since its manner
	// last changed; Up and Down are how far it has left that since, in the same unit.
	Samples int     `json:"samples,omitempty"`
	Mean    float64 `json:"mean,omitempty"`
	Spread  float64 `json:"spread,omitempty"`
	Up      float64 `json:"up,omitempty"`
	Down    float64 `json:"down,omitempty"`
}
