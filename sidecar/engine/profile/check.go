package profile

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Quality is how much a source tells, and how well.
type Quality struct {
	Source cluster.Source `json:"source"` // "" = unknown
	Method cluster.Method `json:"method,omitempty"`
	// Known counts the job types and models whose throughput this source gives, Of all there are.
	Known int `json:"known"`
	Of    int `json:"of"`
	// Tested counts the estimates that were compared with what is known better, while that was hidden from them. Error is the median of
	// their errors, in the logarithm, Worst the largest of nine in ten.
	Tested int     `json:"tested"`
	Error  float64 `json:"error"`
	Worst  float64 `json:"worst"`
}

// Test tests the sources on some models: for each model on which a kind is known from observations, it leaves these
// out, and estimates the rate by what is left. Where nothing is observed, counters are compared with run times. The best
// source comes first.
func Test(b *Book, models []string) []Quality {
	out := []Quality{{Source: cluster.Observed}, {Source: cluster.Declared}, {Source: cluster.Estimated, Method: cluster.ByCompletions},
		{Source: cluster.Estimated, Method: cluster.ByCounters}, {Source: cluster.Estimated}, {}}
	errs := make([][]float64, len(out))
	at := func(p *cluster.Profile) int {
		return slices.IndexFunc(out, func(c Quality) bool { return c.Source == p.Source && c.Method == p.Method })
	}
	for _, of := range subjects(b) {
		for _, m := range models {
			p, _ := b.Rate(of.kind, m, of.gang)
			out[at(&p)].Known++
			for i := range out {
				out[i].Of++
			}
			for _, e := range hidden(b, of, m) {
				k := at(&cluster.Profile{Source: cluster.Estimated, Method: e.method})
				errs[k] = append(errs[k], e.off)
			}
		}
		for _, off := range against(b, of) {
			k := at(&cluster.Profile{Source: cluster.Estimated, Method: cluster.ByCounters})
			errs[k] = append(errs[k], off)
		}
	}
	for i := range out {
		if n := len(errs[i]); n > 0 {
			slices.Sort(errs[i])
			out[i].Tested, out[i].Error, out[i].Worst = n, round(errs[i][n/2]), round(errs[i][n*9/10])
		}
	}
	return out
}

// subjects gives all kinds with gang sizes that anything is known about, in order; not the site's.
func subjects(b *Book) []runs {
	var out []runs
	for i := range b.entries {
		if e := &b.entries[i]; e.With == "" {
			out = append(out, runs{e.Kind, e.Gang})
		}
	}
	for i := range b.shown.completions {
		out = append(out, runs{b.shown.completions[i].Kind, b.shown.completions[i].Gang})
	}
	for i := range b.shown.usages {
		out = append(out, runs{b.shown.usages[i].Kind, b.shown.usages[i].Gang})
	}
	out = slices.DeleteFunc(out, func(r runs) bool { return r.kind.Tenant() == "" })
	slices.SortFunc(out, func(x, y runs) int { return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.gang, y.gang)) })
	return slices.Compact(out)
}

// tested is the error of an estimate.
type tested struct {
	method cluster.Method
	off    float64
}

// hidden estimates an observed rate by each method without it.
func hidden(b *Book, of runs, model string) (out []tested) {
	seen := b.look(of.kind, "", model, of.gang, cluster.Observed)
	if seen == nil || seen.Samples < b.settings.Trust {
		return nil
	}
	rest := New(b.settings, slices.DeleteFunc(b.Entries(), func(e cluster.Profile) bool {
		return e.Kind == of.kind && e.Gang == of.gang && e.Model == model && e.With == ""
	}), nil)
	rest.Consider(b.shown.completions, b.shown.usages)
	if !rest.knows(of.kind, of.gang) || rest.known(of.kind, "", model, of.gang) != nil {
		return nil
	}
	for _, try := range []func(cluster.Kind, string, int) (cluster.Profile, bool){rest.shown.byCompletions, rest.shown.byCounters, rest.guess.estimate} {
		if p, ok := try(of.kind, model, of.gang); ok && p.Rate > 0 {
			out = append(out, tested{p.Method, math.Abs(math.Log(p.Rate / seen.Rate))})
		}
	}
	return out
}

// against compares the counters of a kind that reports nothing with its run times.
func against(b *Book, of runs) (out []float64) {
	c := b.shown.completionOf(of.kind, of.gang)
	if c == nil || b.knows(of.kind, of.gang) {
		return nil
	}
	rest := New(b.settings, b.entries, nil)
	rest.Consider(slices.DeleteFunc(slices.Clone(b.shown.completions), func(o cluster.Completion) bool { return o.CompareSubject(c) == 0 }), b.shown.usages)
	first := -1
	for m := range c.Models {
		if c.Rates[m].Rate == 0 {
			continue
		}
		if first < 0 {
			first = m
			continue
		}
		x, ok := rest.shown.byCounters(of.kind, c.Models[first], of.gang)
		y, known := rest.shown.byCounters(of.kind, c.Models[m], of.gang)
		if ok && known {
			out = append(out, math.Abs(math.Log(y.Rate/x.Rate)-math.Log(c.Rates[m].Rate/c.Rates[first].Rate)))
		}
	}
	return out
}
