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

// The bounds: jobs of a kind that began and completed on the same model, that began there, entries per tenant and in all, jobs in these, and the
// age of an entry's newest job.
const (
	maxRan    = 64
	maxBegan  = 3 * maxRan
	maxTenant = 128
	maxAll    = 2000
	maxJobs   = 4000 // of a tenant
	allJobs   = 32000
	maxAge    = 90 * cluster.Day
)

// Shortest is the minimum run time that counts.
const Shortest = runtimes.Shortest

// Book is the evidence during one round. Its input stays unchanged: the first change makes a copy.
type Book struct {
	Completions []cluster.Completion // sorted
	Usages      []cluster.Usage      // sorted
	owned       struct{ completions, usages bool }
	stale       map[subject]bool // a job of it ended
}

// subject names an entry of Completions.
type subject struct {
	kind cluster.Kind
	gang int
}

// End tells how a job ended: whether it is done, and whether its user may have chosen the model.
type End struct{ Done, Chosen bool }

// jobRun gives a job by its run times in their order, and on all models; sum is of both.
func jobRun(ran []cluster.ModelTime, times []cluster.Span, sum cluster.Span, end End, at cluster.Instant) cluster.JobRun {
	j := cluster.JobRun{Ran: times, Done: end.Done, Chosen: end.Chosen, Since: at.Add(-sum)}
	if began := ran[0].Model; slices.ContainsFunc(ran, func(t cluster.ModelTime) bool { return t.Model != began && t.Ran > 0 }) {
		j.Began, j.Back = began, ran[len(ran)-1].Model == began
	}
	return j
}

// Ended takes the run times by model of a job that ended at a moment, in the order in which it used the models; of names its kind and gang. Unless it is done, its work takes longer than
// that. Shorter ones than Shortest are ignored, and jobs of no tenant. Fit then sets the rates.
func (b *Book) Ended(of cluster.Completion, ran []cluster.ModelTime, end End, at cluster.Instant) {
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
	c.Models, c.Jobs = drop(models, newest(models, append(jobs, jobRun(ran, times, sum, end, at))))
	c.At = max(c.At, at)
	if b.stale == nil {
		b.stale = map[subject]bool{}
	}
	b.stale[subject{of.Kind, of.Gang}] = true
	if !found {
		b.Completions = bounded(b.Completions, completionOf, at)
	}
}

// Fit sets the rates of the kinds that had jobs which ended. running gives the run times by model, so far, of the jobs of a kind that go on.
func (b *Book) Fit(now cluster.Instant, running func(kind cluster.Kind, gang int) [][]cluster.ModelTime) {
	for of := range b.stale { // each separately
		if i, found := cluster.FindCompletion(b.Completions, of.kind, of.gang); found {
			c := &b.Completions[i]
			c.Rates = runtimes.Fit(c.Models, c.Jobs, contemporary(c, running(of.kind, of.gang), now))
		}
	}
	if b.stale != nil {
		b.Completions = bounded(b.Completions, completionOf, now)
	}
	b.stale = nil
}

// contemporary gives the jobs that go on of those that began when the remembered jobs did, on their models. Without them the remembered jobs
// that began last would be the short ones.
func contemporary(c *cluster.Completion, running [][]cluster.ModelTime, now cluster.Instant) (out []cluster.JobRun) {
	since := make([]cluster.Instant, len(c.Models)) // of the jobs that are remembered; 0 = all are
	for m := range since {
		if x := begun(c.Models, c.Jobs, m); x.done >= maxRan || x.all >= maxBegan {
			since[m] = c.Jobs[x.oldest].Since
		}
	}
	for _, ran := range running {
		models, times := widen(c.Models, nil, ran)
		sum := cluster.Span(0)
		for _, t := range times {
			sum += t
		}
		if sum < Shortest || len(models) > len(c.Models) {
			continue
		}
		j := jobRun(ran, times, sum, End{}, now)
		if j.Since >= since[j.First(c.Models)] {
			out = append(out, j)
		}
	}
	return out
}

// Jobs returns how many jobs of a kind, at a gang size, began on a model, of those that are remembered.
func (b *Book) Jobs(kind cluster.Kind, gang int, model string) (n int) {
	i, found := cluster.FindCompletion(b.Completions, kind, gang)
	if !found {
		return 0
	}
	c := &b.Completions[i]
	m := slices.Index(c.Models, model)
	for k := range c.Jobs {
		if m >= 0 && c.Jobs[k].First(c.Models) == m {
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

// newest drops the jobs that began first of those that began on the same model as the last one, if they are too many: so what is known of
// a model stays when a kind is no longer sent there. It goes by when they began: of jobs that began together the long ones end last.
func newest(models []string, jobs []cluster.JobRun) []cluster.JobRun {
	for of := jobs[len(jobs)-1].First(models); ; {
		x := begun(models, jobs, of)
		if x.done <= maxRan && x.all <= maxBegan {
			return jobs
		}
		jobs = slices.Delete(jobs, x.oldest, x.oldest+1)
		if x.oldest == len(jobs) && !slices.ContainsFunc(jobs, func(j cluster.JobRun) bool { return j.First(models) == of }) {
			return jobs
		}
	}
}

// beginners counts the jobs that began on a model: all, and those that completed there. oldest is the one that began first.
type beginners struct{ all, done, oldest int }

func begun(models []string, jobs []cluster.JobRun, on int) (x beginners) {
	x.oldest = -1
	for k := range jobs {
		if jobs[k].First(models) != on {
			continue
		}
		if x.all++; jobs[k].Stayed() {
			x.done++
		}
		if x.oldest < 0 || jobs[k].Since < jobs[x.oldest].Since {
			x.oldest = k
		}
	}
	return x
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

// owner is the tenant of an entry, the time of its newest job, and the number of its jobs.
type owner struct {
	tenant string
	at     cluster.Instant
	jobs   int
}

func completionOf(c *cluster.Completion) owner { return owner{c.Kind.Tenant(), c.At, len(c.Jobs)} }
func usageOf(u *cluster.Usage) owner           { return owner{u.Kind.Tenant(), u.At, 0} }

// bounded drops entries that are too old, and the oldest ones of those that are too many of a tenant or in all.
func bounded[T any](list []T, of func(*T) owner, now cluster.Instant) []T {
	order := make([]int, len(list)) // newest first
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(of(&list[j]).at, of(&list[i]).at) })
	type sum struct{ entries, jobs int }
	keep, tenants, all := make([]bool, len(list)), map[string]sum{}, sum{}
	for _, i := range order {
		o := of(&list[i])
		s := tenants[o.tenant]
		if now.Sub(o.at) > maxAge || s.entries == maxTenant || all.entries == maxAll || s.jobs+o.jobs > maxJobs || all.jobs+o.jobs > allJobs {
			continue
		}
		keep[i] = true
		tenants[o.tenant] = sum{s.entries + 1, s.jobs + o.jobs}
		all = sum{all.entries + 1, all.jobs + o.jobs}
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
