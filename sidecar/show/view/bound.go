package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/store"
)

// BoundGPUs are the GPUs of a model that jobs of a user keep in a way, so that they cannot be taken back soon.
type BoundGPUs struct {
	Tenant string           `json:"tenant"` // "" = none
	User   string           `json:"user"`
	Way    cluster.Way      `json:"way"`
	Pool   string           `json:"pool"`
	Jobs   int              `json:"jobs"`
	GPUs   cluster.GPUCount `json:"gpus"`
	Longer cluster.GPUCount `json:"longer_gpus"`       // GPUs bound for longer than the span
	Span   time.Duration    `json:"longer_than_ns"`    // the span
	Beyond cluster.MicroGPU `json:"beyond_micro_gpus"` // GPUs beyond what the tenant is due of the model
	// Since is when the job that is bound the longest could last have been stopped. Until is when that job ends at the latest, or can
	// be stopped; nil = unknown.
	Since   time.Time  `json:"since,omitzero"`
	Until   *time.Time `json:"until"`
	SlurmID string     `json:"longest_job"`
}

// BoundOf sums bound jobs by tenant, user, way and pool: tenants by name, then the most GPUs bound for longer than a span before now.
func BoundOf(jobs []store.Bound, span cluster.Span, now cluster.Instant) []BoundGPUs {
	type key struct {
		tenant, user, pool string
		way                cluster.Way
	}
	out, at := []BoundGPUs{}, map[key]int{}
	for i := range jobs {
		b := &jobs[i]
		k := key{b.Tenant, b.User, b.Pool, b.Way}
		n, ok := at[k]
		if !ok {
			n = len(out)
			at[k] = n
			out = append(out, BoundGPUs{Tenant: b.Tenant, User: b.User, Way: b.Way, Pool: b.Pool, Span: span.Duration(), Since: b.Since, Until: b.Until, SlurmID: b.SlurmID})
		}
		x := &out[n]
		x.Jobs, x.GPUs, x.Beyond = x.Jobs+1, x.GPUs+b.GPUs, x.Beyond+b.Beyond
		if !b.Since.IsZero() && now.Sub(cluster.InstantOf(b.Since)) > span {
			x.Longer += b.GPUs
		}
		if !b.Since.IsZero() && (x.Since.IsZero() || b.Since.Before(x.Since)) {
			x.Since, x.Until, x.SlurmID = b.Since, b.Until, b.SlurmID
		}
	}
	slices.SortFunc(out, func(a, b BoundGPUs) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), cmp.Compare(b.Longer, a.Longer), cmp.Compare(b.GPUs, a.GPUs),
			strings.Compare(a.User, b.User), cmp.Compare(a.Way, b.Way), strings.Compare(a.Pool, b.Pool))
	})
	return out
}

// BoundTable lists bound GPUs.
func (p *Page) BoundTable(list []BoundGPUs) *Table {
	t := &Table{Head: []string{"TENANT", "USER", "WAY", "POOL", ">JOBS", ">GPUS", ">LONGER", ">BEYOND", "SINCE", "UNTIL", "JOB"},
		None: "No GPUs are bound: every running job can be stopped soon."}
	for i := range list {
		x := &list[i]
		until := "-"
		if x.Until != nil {
			until = p.moment(*x.Until)
		}
		t.Add(cmp.Or(x.Tenant, "-"), x.User, string(x.Way), x.Pool, fmt.Sprint(x.Jobs), fmt.Sprint(x.GPUs), fmt.Sprint(x.Longer), gpuCount(x.Beyond),
			p.moment(x.Since), until, x.SlurmID)
	}
	t.Tint = func(row, column int) string {
		if t.Head[column] == ">BEYOND" && list[row].Beyond > 0 {
			return "yellow"
		}
		return ""
	}
	return t
}

// BoundNote sums bound GPUs up, for people.
func BoundNote(list []BoundGPUs, span cluster.Span) string {
	var gpus, longer cluster.GPUCount
	jobs := 0
	var beyond cluster.MicroGPU
	for i := range list {
		x := &list[i]
		gpus, longer, jobs, beyond = gpus+x.GPUs, longer+x.Longer, jobs+x.Jobs, beyond+x.Beyond
	}
	if jobs == 0 {
		return "no GPUs are bound: every running job can be stopped soon"
	}
	return fmt.Sprintf("%s of %s cannot be taken back soon, %s of them for more than %s; %s are beyond the tenants' due",
		gpuWords(gpus, ""), Plural(jobs, "job"), longer, span, gpuCount(beyond))
}
