package profile

import "github.com/fairlease/fairlease/sidecar/cluster"

// source is a way to know the rate of a kind that has its GPUs to itself.
type source struct {
	method cluster.Method
	prices bool // its rates may price trades
	rate   func(b *Book, kind cluster.Kind, model string, gang int) (cluster.Profile, bool)
}

// ladder lists the sources, best first: the first that knows a rate tells it. All but the first estimate.
var ladder = [...]source{
	{"", true, recorded},
	{cluster.ByCompletions, true, func(b *Book, kind cluster.Kind, model string, gang int) (cluster.Profile, bool) {
		return b.shown.byCompletions(kind, model, gang)
	}},
	{cluster.ByCounters, false, func(b *Book, kind cluster.Kind, model string, gang int) (cluster.Profile, bool) {
		return b.shown.byCounters(kind, model, gang)
	}},
	{"", true, similar},
	{cluster.ByOthers, false, func(b *Book, kind cluster.Kind, model string, gang int) (cluster.Profile, bool) {
		return b.shown.byOthers(kind, model, gang)
	}},
}

// Rate gives the throughput of a kind with its GPUs to itself; false where it is not known
// and cannot be estimated. A rate of 0 says that it does not run there.
func (b *Book) Rate(kind cluster.Kind, model string, gang int) (cluster.Profile, bool) {
	return best(b, kind, model, gang, false)
}

// best gives a rate by the best source; for prices of trades, by those that may price them.
func best(b *Book, kind cluster.Kind, model string, gang int, prices bool) (cluster.Profile, bool) {
	for i := range ladder {
		if i > 0 && !b.facts.settings.Estimate {
			break
		}
		if s := &ladder[i]; !prices || s.prices && (s.method != cluster.ByCompletions || b.shown.bounded(kind, gang)) {
			if p, ok := s.rate(b, kind, model, gang); ok {
				return p, true
			}
		}
	}
	return cluster.Profile{}, false
}

// recorded gives what was observed or declared.
func recorded(b *Book, kind cluster.Kind, model string, gang int) (cluster.Profile, bool) {
	p := b.facts.known(kind, "", model, gang)
	if p == nil {
		return cluster.Profile{}, false
	}
	out := *p
	out.Kind, out.With = kind, ""
	return out, true
}

// similar estimates by what was observed and declared of similar kinds.
func similar(b *Book, kind cluster.Kind, model string, gang int) (cluster.Profile, bool) {
	if !b.facts.mentions(kind) && !b.facts.mentions(cluster.Kind(kind.Name())) { // there is nothing to go by
		return cluster.Profile{}, false
	}
	return b.guess.estimate(kind, model, gang)
}
