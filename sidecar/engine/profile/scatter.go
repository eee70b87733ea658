package profile

import (
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Scattering has the declared parts of their throughput that gangs keep on more nodes, or under more switches, than they need.
type Scattering map[gangOn]float64

// gangOn is a kind with a number of GPUs of a model, on nodes that are spread as with says.
type gangOn struct {
	kind  cluster.Kind
	with  cluster.Kind
	model string
	gang  int
}

// Scatterings takes the declared parts from declarations.
func Scatterings(declared []cluster.Profile) Scattering {
	out := Scattering{}
	for i := range declared {
		if p := &declared[i]; p.With.OfNodes() {
			out[gangOn{p.Kind, p.With, p.Model, p.Gang}] = p.Rate
		}
	}
	return out
}

// Of gives the part of its throughput that a gang keeps on more nodes than it needs (Gavel §3.1: unconsolidated), or under more switches, as spread
// says. That is measured once it was seen both together and so, often enough; else it is declared, for its own kind or for the site's of the same name; else run times
// of ended jobs tell. b nil = nothing was seen. false = it is not known.
func (s Scattering) Of(b *Book, ended []cluster.Completion, spread, kind cluster.Kind, model string, gang int) (part float64, known bool) {
	if b != nil {
		apart, together := b.facts.look(kind, spread, model, gang, cluster.Observed), b.facts.look(kind, "", model, gang, cluster.Observed)
		if apart != nil && together != nil && min(apart.Samples, together.Samples) >= b.facts.settings.Trust {
			return round(surely(apart, together)), true
		}
	}
	if part, known = s[gangOn{kind, spread, model, gang}]; !known {
		part, known = s[gangOn{cluster.Kind(kind.Name()), spread, model, gang}]
	}
	if i, found := cluster.FindCompletion(ended, kind, gang); found && !known {
		part, known = ByRunTimes(&ended[i], spread, model)
	}
	return part, known
}

// surely gives the ratio of two rates by reports. One below 1 is raised by two standard errors, to 1 at most: chance alone makes no gang slow.
func surely(rate, than *cluster.Profile) float64 {
	ratio := rate.Rate / than.Rate
	if ratio >= 1 {
		return ratio
	}
	err := math.Hypot(rate.Spread/math.Sqrt(float64(rate.Samples)), than.Spread/math.Sqrt(float64(than.Samples)))
	return min(ratio*(1+2*err), 1)
}

// ByRunTimes gives the part of its throughput that a gang keeps on nodes that are spread so, by the run times of its jobs: the upper bound of the ratio
// of both rates, if it is below 1, so that chance alone makes none look slow. false = they do not show that it is slower.
func ByRunTimes(c *cluster.Completion, spread cluster.Kind, model string) (part float64, known bool) {
	apart, together := slices.Index(c.Models, cluster.Spread(model, spread)), slices.Index(c.Models, model)
	if min(apart, together) < 0 || max(apart, together) >= len(c.Rates) {
		return 0, false
	}
	_, part, known = c.Ratio(apart, together)
	return round(part), known && part < 1
}

// merged gives an entry with one rate for each model: that of gangs together; of those that are not known so, that across switches, else
// that of scattered ones, as their names are sorted.
func merged(c *cluster.Completion) *cluster.Completion {
	if !slices.ContainsFunc(c.Models, func(m string) bool { return cluster.ModelOf(m) != m }) {
		return c
	}
	out := &cluster.Completion{Kind: c.Kind, Gang: c.Gang, At: c.At}
	var from []int // by model
	for m, name := range c.Models {
		model := cluster.ModelOf(name)
		if k := slices.Index(out.Models, model); k < 0 {
			out.Models, from = append(out.Models, model), append(from, m)
		} else if c.Rates[from[k]].Rate == 0 {
			from[k] = m
		}
	}
	for _, m := range from {
		r := c.Rates[m]
		if r.Least != nil {
			least := make([]float64, len(from))
			for k, o := range from {
				least[k] = r.Least[o]
			}
			r.Least = least
		}
		out.Rates = append(out.Rates, r)
	}
	return out
}
