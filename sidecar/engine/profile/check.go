package profile

import (
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
	// Tested counts the estimates that were compared with what is known, while that was hidden from them. Error is the median of
	// their errors, in the logarithm, Worst the largest of nine in ten.
	Tested int     `json:"tested"`
	Error  float64 `json:"error"`
	Worst  float64 `json:"worst"`
}

// mostTested is the maximum number of kinds that are hidden.
const mostTested = 64

// Test tests the sources on some models: it hides what is known of a kind on one model, and estimates that by what is left. Observations
// count as known; of kinds that report nothing, run times do. Of more than mostTested kinds some are tested, evenly
// spread over all. The best source comes first.
func Test(b *Book, models []string) []Quality {
	out := []Quality{{Source: cluster.Observed}, {Source: cluster.Declared}}
	for i := range ladder[1:] {
		out = append(out, Quality{Source: cluster.Estimated, Method: ladder[1+i].method})
	}
	out = append(out, Quality{})
	errs := make([][]float64, len(out))
	kinds := b.shown.subjects()
	every := (len(kinds) + mostTested - 1) / mostTested
	for k, of := range kinds {
		for _, m := range models {
			p, _ := b.Rate(of.kind, m, of.gang)
			for i := range out {
				if out[i].Of++; out[i].Source == p.Source && out[i].Method == p.Method {
					out[i].Known++
				}
			}
			if k%every > 0 {
				continue
			}
			hide(b, of, m, func(rung int, off float64) { errs[1+rung] = append(errs[1+rung], off) })
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

// hide estimates by each source how much faster a kind runs on a model than on another, without what is known there, and tells the error in
// the logarithm. Nothing is told where that is not known.
func hide(b *Book, of runs, model string, tell func(rung int, off float64)) {
	observed := func(m string) float64 {
		if p := b.facts.look(of.kind, "", m, of.gang, cluster.Observed); p != nil && p.Samples >= b.facts.settings.Trust {
			return p.Rate
		}
		return 0
	}
	completed := func(m string) float64 {
		p, _ := b.shown.byCompletions(of.kind, m, of.gang)
		return p.Rate
	}
	rate, completions := observed, b.shown.completions
	entries := b.Entries()
	if b.facts.knows(of.kind, of.gang) {
		entries = slices.DeleteFunc(entries, func(e cluster.Profile) bool {
			return e.Kind == of.kind && e.Gang == of.gang && e.Model == model && e.With == ""
		})
	} else if at, found := cluster.FindCompletion(completions, of.kind, of.gang); found {
		rate, completions = completed, slices.Clone(completions)
		c := &completions[at]
		c.Rates = slices.Clone(c.Rates)
		for m := range c.Rates {
			if cluster.ModelOf(c.Models[m]) == model {
				c.Rates[m] = cluster.RunRate{}
			}
		}
	}
	truth, base, level := rate(model), "", 0.0
	for _, m := range b.shown.modelsOf(of) {
		if r := rate(m); m != model && r > 0 && base == "" {
			base, level = m, r
		}
	}
	if truth == 0 || base == "" {
		return
	}
	rest := New(b.facts.settings, entries, nil)
	rest.Consider(completions, b.shown.usages)
	from, ok := rest.Rate(of.kind, base, of.gang)
	if !ok || from.Rate == 0 || rest.facts.known(of.kind, "", model, of.gang) != nil {
		return
	}
	for i := range ladder[1:] {
		if p, ok := ladder[1+i].rate(rest, of.kind, model, of.gang); ok && p.Rate > 0 {
			tell(1+i, math.Abs(math.Log(p.Rate/from.Rate)-math.Log(truth/level)))
		}
	}
}
