// Package evidence keeps what jobs that report nothing show of the speed of their kinds: run times of ended
// jobs, and GPU counters.
package evidence

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/survival"
)

// The bounds: run times of a kind on a model, kinds' entries per tenant and in all, and the age of an entry's newest job.
const (
	maxRan    = 32
	maxTenant = 256
	maxAll    = 4096
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

// Ended takes the run time of a job that ended at a moment. of names its kind, gang and model; completed is false if its work takes longer than
// that. Shorter ones than Shortest are ignored, and jobs of no tenant.
func (b *Book) Ended(of cluster.Completion, ran cluster.Span, completed bool, at cluster.Instant) {
	if ran < Shortest || of.Kind.Tenant() == "" || of.Model == "" || of.Gang < 1 {
		return
	}
	if !completed {
		ran = -ran
	}
	i, found := slices.BinarySearchFunc(b.Completions, &of, func(c cluster.Completion, of *cluster.Completion) int { return c.CompareSubject(of) })
	switch {
	case !found:
		of = cluster.Completion{Kind: of.Kind, Model: of.Model, Gang: of.Gang, Ran: []cluster.Span{ran}, At: at}
		b.Completions = bounded(slices.Insert(slices.Clone(b.Completions), i, of), completionOf, at)
		b.owned.completions = true
		return
	case !b.owned.completions:
		b.Completions, b.owned.completions = slices.Clone(b.Completions), true
	}
	c := &b.Completions[i]
	c.Ran = append(slices.Clone(c.Ran[max(len(c.Ran)+1-maxRan, 0):]), ran)
	c.Median, c.Spread, c.Done = survival.Median(c.Ran)
	c.At = max(c.At, at)
}

// The least samples and time that make a job's counters count, and the least values of which a logarithm is taken:
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
	i, found := slices.BinarySearchFunc(b.Usages, &of, func(x cluster.Usage, of *cluster.Usage) int { return x.CompareSubject(of) })
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
	l.Jobs = min(l.Jobs+1, maxRan)
	n, off := float64(l.Jobs), math.Log(m.Value)-l.Mean
	if l.Jobs == 1 {
		l.Mean, l.Spread = math.Log(m.Value), 0
		return
	}
	l.Spread = math.Sqrt((n - 1) / n * (l.Spread*l.Spread + off*off/n))
	l.Mean += off / n
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
