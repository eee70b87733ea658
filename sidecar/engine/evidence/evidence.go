// Package evidence keeps what jobs that report nothing show of the speed of their kinds: run times of ended
// jobs, and GPU counters.
package evidence

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/runtimes"
)

// The bounds: jobs of a kind that ran mostly on the same model, entries per tenant and in all, and the age of an entry's newest job.
const (
	maxRan    = 16
	maxTenant = 128
	maxAll    = 2000
	maxAge    = 90 * cluster.Day
)

// Shortest is the minimum run time that counts: in less, starting is most of the time.
const Shortest = 2 * cluster.Minute

// Book is the evidence during one round. Its input stays unchanged: the first change makes a copy.
type Book struct {
	Completions []cluster.Completion // sorted
	Usages      []cluster.Usage      // sorted
	owned       struct{ completions, usages bool }
}

// Ended takes the run times by model of a job that ended at a moment; of names its kind and gang. Unless it is done, its work takes longer than
// that. Shorter ones than Shortest are ignored, and jobs of no tenant.
func (b *Book) Ended(of cluster.Completion, ran []cluster.ModelTime, done bool, at cluster.Instant) {
	sum := cluster.Span(0)
	for _, t := range ran {
		sum += t.Ran
		if t.Model == "" || t.Ran < 0 {
			return
		}
	}
	if sum < Shortest || of.Kind.Tenant() == "" || of.Gang < 1 {
		return
	}
	i, found := cluster.FindCompletion(b.Completions, of.Kind, of.Gang)
	if !b.owned.completions {
		b.Completions, b.owned.completions = slices.Clone(b.Completions), true
	}
	if !found {
		b.Completions = slices.Insert(b.Completions, i, cluster.Completion{Kind: of.Kind, Gang: of.Gang})
	}
	c := &b.Completions[i]
	jobs := slices.Clone(c.Jobs)
	models, times := widen(c.Models, jobs, ran)
	c.Models, c.Jobs = drop(models, newest(append(jobs, cluster.JobRun{Ran: times, Done: done})))
	c.Rates = runtimes.Fit(c.Models, c.Jobs)
	c.At = max(c.At, at)
	if !found {
		b.Completions = bounded(b.Completions, completionOf, at)
	}
}

// Jobs returns how many jobs of a kind, at a gang size, ran mostly on a model, of those that are remembered.
func (b *Book) Jobs(kind cluster.Kind, gang int, model string) (n int) {
	i, found := cluster.FindCompletion(b.Completions, kind, gang)
	if !found {
		return 0
	}
	c := &b.Completions[i]
	m := slices.Index(c.Models, model)
	for k := range c.Jobs {
		if m >= 0 && mostly(&c.Jobs[k]) == m {
			n++
		}
	}
	return n
}

// Fastest returns the highest rate of a kind by run times, in jobs per second; 0 = none is known.
func (b *Book) Fastest(kind cluster.Kind, gang int) (rate float64) {
	if i, found := cluster.FindCompletion(b.Completions, kind, gang); found {
		for _, r := range b.Completions[i].Rates {
			rate = max(rate, r.Rate)
		}
	}
	return rate
}

// mostly gives the model on which a job ran longest.
func mostly(j *cluster.JobRun) int { return slices.Index(j.Ran, slices.Max(j.Ran)) }

// newest drops the oldest job of those that ran mostly on the same model as the newest one, if they are too many: so what is known of a
// model stays when a kind is no longer sent there.
func newest(jobs []cluster.JobRun) []cluster.JobRun {
	of, n, oldest := mostly(&jobs[len(jobs)-1]), 0, -1
	for k := len(jobs) - 1; k >= 0; k-- {
		if mostly(&jobs[k]) == of {
			n, oldest = n+1, k
		}
	}
	if n > maxRan {
		return slices.Delete(jobs, oldest, oldest+1)
	}
	return jobs
}

// widen adds the models of run times to those of jobs, and gives the times by model.
func widen(models []string, jobs []cluster.JobRun, ran []cluster.ModelTime) ([]string, []cluster.Span) {
	for _, t := range ran {
		at, found := slices.BinarySearch(models, t.Model)
		if found {
			continue
		}
		models = slices.Insert(slices.Clone(models), at, t.Model)
		for i := range jobs {
			jobs[i].Ran = slices.Insert(slices.Clone(jobs[i].Ran), at, 0)
		}
	}
	times := make([]cluster.Span, len(models))
	for _, t := range ran {
		at, _ := slices.BinarySearch(models, t.Model)
		times[at] += t.Ran
	}
	return models, times
}

// drop removes the models on which no job ran.
func drop(models []string, jobs []cluster.JobRun) ([]string, []cluster.JobRun) {
	for m := len(models) - 1; m >= 0; m-- {
		if slices.ContainsFunc(jobs, func(j cluster.JobRun) bool { return j.Ran[m] > 0 }) {
			continue
		}
		models = slices.Delete(slices.Clone(models), m, m+1)
		for i := range jobs {
			jobs[i].Ran = slices.Delete(slices.Clone(jobs[i].Ran), m, m+1)
		}
	}
	return models, jobs
}

// The least samples and time that make a job's counters count, and the least values that count:
// activities, and bytes per second.
const (
	samples = 10
	span    = 10 * cluster.Minute
	active  = 0.005
	bytes   = 1e5
)

// Telling reports whether there are enough samples of a job's counters.
func Telling(u *cluster.GPUUse) bool {
	return u.At.Sub(u.From) >= span && max(u.PCIeRX.Count, u.DRAM.Count, u.Tensor.Count) >= samples
}

// Used takes the counters of a job; of names its kind, gang and model.
func (b *Book) Used(of cluster.Usage, u *cluster.GPUUse) {
	if of.Kind.Tenant() == "" || of.Model == "" || of.Gang < 1 {
		return
	}
	i, found := cluster.FindUsage(b.Usages, of.Kind, of.Gang, of.Model)
	if !b.owned.usages {
		b.Usages, b.owned.usages = slices.Clone(b.Usages), true
	}
	if !found {
		b.Usages = slices.Insert(b.Usages, i, cluster.Usage{Kind: of.Kind, Model: of.Model, Gang: of.Gang})
	}
	x := &b.Usages[i]
	x.At = max(x.At, u.At)
	add(&x.PCIeRX, u.PCIeRX, bytes)
	add(&x.DRAM, u.DRAM, active)
	add(&x.Tensor, u.Tensor, active)
	if !found {
		b.Usages = bounded(b.Usages, usageOf, u.At)
	}
}

// add takes a counter of one more job; of the last maxRan jobs, older ones fading.
func add(l *cluster.Level, m cluster.Mean, least float64) {
	if m.Count < samples || !(m.Value >= least) || math.IsInf(m.Value, 0) {
		return
	}
	if l.Jobs == 0 {
		l.Jobs, l.Mean = 1, math.Log(m.Value)
		return
	}
	off := math.Log(m.Value) - l.Mean
	if l.Jobs > 2 { // one far off is no news yet
		far := max(3*l.Spread, math.Ln2)
		off = min(max(off, -far), far)
	}
	l.Jobs = min(l.Jobs+1, maxRan)
	l.Mean, l.Spread = cluster.Fade(l.Mean, l.Spread, off, float64(l.Jobs))
}

// owner is the tenant of an entry, and the time of its newest job.
type owner struct {
	tenant string
	at     cluster.Instant
}

func completionOf(c *cluster.Completion) owner { return owner{c.Kind.Tenant(), c.At} }
func usageOf(u *cluster.Usage) owner           { return owner{u.Kind.Tenant(), u.At} }

// bounded drops entries that are too old, and the oldest ones of those that are too many of a tenant or in all.
func bounded[T any](list []T, of func(*T) owner, now cluster.Instant) []T {
	order := make([]int, len(list)) // newest first
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(of(&list[j]).at, of(&list[i]).at) })
	keep, tenants, all := make([]bool, len(list)), map[string]int{}, 0
	for _, i := range order {
		o := of(&list[i])
		if now.Sub(o.at) > maxAge || tenants[o.tenant] == maxTenant || all == maxAll {
			continue
		}
		keep[i] = true
		tenants[o.tenant]++
		all++
	}
	kept := list[:0]
	for i := range list {
		if keep[i] {
			kept = append(kept, list[i])
		}
	}
	clear(list[len(kept):])
	return kept
}
