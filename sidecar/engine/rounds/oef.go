package rounds

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Tenant is a claimant of GPUs. Models keep one order throughout, the slowest first.
type Tenant struct {
	Ideal []float64 // its entitlement to GPUs of each model
	Dev   []float64 // carried from earlier rounds, on each model
	// Starved counts rounds without GPUs despite an entitlement.
	Starved int
	Jobs    []Job
}

// Job is a job of a tenant.
type Job struct {
	Key     cluster.JobKey
	Gang    int
	Starved int    // rounds since it last ran, or arrived
	Can     []bool // models on which it can run; nil = all
}

func (j *Job) can(model int) bool { return j.Can == nil || j.Can[model] }

// Run is a job of a tenant that runs on a model in the next round.
type Run struct{ Tenant, Job, Model int } // indices

// OEF rounds what tenants are due to whole GPUs and picks their jobs (OEF §4.3):
//
//	real(t) = round(ideal(t) + dev(t))
//	dev(t+1) = dev(t) + ideal(t) - real(t)
//
// on each model separately. If the rounded sum exceeds the GPUs, or is below the entitlements,
// the largest remainders are rounded up. A tenant below its smallest job's demand gets none
// (min_k demand_k), and is owed them; among those owed enough the longest starved has its GPUs
// first. A tenant's entitlement is at most what its jobs can use. Deviations beyond the GPUs of
// the largest model are dropped in both directions, and unusable entitlements give no credit.
//
// A job runs on one model. A tenant has GPUs only of models between the slowest and the fastest
// in its present entitlement: neighbours, if its division is of neighbours (Theorem 5.2).
//
// It returns each tenant's GPUs by model, the tenants after the round, and the running jobs,
// larger gangs first. GPUs that a tenant's jobs do not use can be borrowed.
func OEF(gpus []int, tenants []Tenant) (has [][]int, after []Tenant, runs []Run) {
	r := rounding{gpus: gpus, tenants: tenants, rest: make([]int, len(tenants)), has: make([][]int, len(tenants))}
	for _, n := range gpus {
		r.most = max(r.most, n)
	}
	for l := range tenants {
		r.has[l] = make([]int, len(gpus))
		for k := range tenants[l].Jobs {
			if g := tenants[l].Jobs[k].Gang; g > 0 && g <= r.most {
				r.rest[l] += g
			}
		}
	}
	for j := len(gpus) - 1; j >= 0; j-- { // the fastest first: demand is met there
		r.model(j)
	}
	runs = r.runs()
	return r.has, r.after(runs), runs
}

type rounding struct {
	gpus    []int
	tenants []Tenant
	most    int   // GPUs of the largest model
	rest    []int // by tenant: GPUs that its jobs can still use
	has     [][]int
}

// smallest gives the minimum GPUs with which a tenant can run anything on a model: of its smallest job; 0 if it has no job for the model.
func (r *rounding) smallest(l, j int) (least int) {
	for k := range r.tenants[l].Jobs {
		job := &r.tenants[l].Jobs[k]
		if job.Gang > 0 && job.Gang <= r.gpus[j] && job.can(j) && (least == 0 || job.Gang < least) {
			least = job.Gang
		}
	}
	return least
}

// usable gives the GPUs of a model that a tenant's jobs can use.
func (r *rounding) usable(l, j int) int {
	n := 0
	for k := range r.tenants[l].Jobs {
		if job := &r.tenants[l].Jobs[k]; job.Gang > 0 && job.Gang <= r.gpus[j] && job.can(j) {
			n += job.Gang
		}
	}
	return n
}

// want is a tenant's claim on a model.
type want struct {
	tenant  int
	gpus    float64 // ideal + dev
	most    int     // usable maximum
	least   int
	starved int
	dev     float64
}

// model divides the GPUs of one model.
func (r *rounding) model(j int) {
	var wants []want
	sum := 0.0
	for l := range r.tenants {
		t := &r.tenants[l]
		least := r.smallest(l, j)
		x, most := t.Ideal[j]+t.Dev[j], min(r.rest[l], r.gpus[j])
		if least == 0 || !(x > 0) || !within(t.Ideal, j) {
			continue
		}
		wants = append(wants, want{l, x, most, least, t.Starved, t.Dev[j]})
		sum += min(x, float64(most))
	}
	slices.SortStableFunc(wants, func(a, b want) int {
		return cmp.Or(cmp.Compare(b.starved, a.starved), cmp.Compare(b.dev, a.dev), cmp.Compare(a.tenant, b.tenant))
	})
	left, due := r.gpus[j], int(math.Floor(sum+0.5))
	kept := wants[:0]
	for _, w := range wants { // every tenant's smallest job first
		if w.least <= int(math.Floor(w.gpus+0.5)) && w.least <= min(w.most, left) {
			r.has[w.tenant][j] = w.least
			left, due = left-w.least, due-w.least
			kept = append(kept, w)
		}
	}
	for left > 0 { // then the rest of the entitlements: whole GPUs, and the largest remainders last
		best, lack := -1, 0.0
		for i, w := range kept {
			if x := w.gpus - float64(r.has[w.tenant][j]); x > lack && r.has[w.tenant][j] < w.most {
				best, lack = i, x
			}
		}
		if best < 0 || lack < 0.5 && due <= 0 {
			break
		}
		w := kept[best]
		had := r.has[w.tenant][j]
		n := max(min(int(w.gpus)-had-1, w.most-had, left), 1) // all but the part that competes with others
		r.has[w.tenant][j] += n
		left, due = left-n, due-n
	}
	for _, w := range kept {
		r.rest[w.tenant] -= r.has[w.tenant][j]
	}
}

// within tells whether a model is between the slowest and the fastest in a tenant's entitlement.
func within(ideal []float64, j int) bool {
	some := func(x float64) bool { return x > 0 }
	return slices.ContainsFunc(ideal[:j+1], some) && slices.ContainsFunc(ideal[j:], some)
}

// runs chooses jobs for the tenants' GPUs: from the fastest model down, the longest starved job
// that fits, each on one model.
func (r *rounding) runs() []Run {
	var out []Run
	for l := range r.tenants {
		jobs := r.tenants[l].Jobs
		line := make([]int, len(jobs))
		for k := range line {
			line[k] = k
		}
		slices.SortStableFunc(line, func(a, b int) int {
			return cmp.Or(cmp.Compare(jobs[b].Starved, jobs[a].Starved), cmp.Compare(jobs[a].Key, jobs[b].Key))
		})
		left := slices.Clone(r.has[l])
		for _, k := range line {
			for j := len(left) - 1; j >= 0; j-- {
				if jobs[k].Gang > 0 && jobs[k].Gang <= left[j] && jobs[k].can(j) {
					left[j] -= jobs[k].Gang
					out = append(out, Run{l, k, j})
					break
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Run) int {
		return cmp.Compare(r.tenants[b.Tenant].Jobs[b.Job].Gang, r.tenants[a.Tenant].Jobs[a.Job].Gang)
	})
	return out
}

// after gives the tenants after the round.
func (r *rounding) after(runs []Run) []Tenant {
	out := slices.Clone(r.tenants)
	for l := range out {
		t := &out[l]
		t.Dev, t.Jobs = slices.Clone(t.Dev), slices.Clone(t.Jobs)
		due, had := 0.0, 0
		for j := range t.Dev {
			ideal := min(t.Ideal[j], float64(r.usable(l, j)))
			due, had = due+ideal, had+r.has[l][j]
			x := t.Dev[j] + ideal - float64(r.has[l][j])
			t.Dev[j] = min(max(x, float64(-r.most)), float64(r.most))
		}
		if t.Starved++; had > 0 || !(due > 0) {
			t.Starved = 0
		}
		for k := range t.Jobs {
			t.Jobs[k].Starved++
		}
	}
	for _, x := range runs {
		out[x.Tenant].Jobs[x.Job].Starved = 0
	}
	return out
}
