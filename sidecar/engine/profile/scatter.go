package profile

import "github.com/fairlease/fairlease/sidecar/cluster"

// Scattering has the declared parts of their throughput that gangs keep on more nodes than they need.
type Scattering map[gangOn]float64

// gangOn is a kind with a number of GPUs of a model.
type gangOn struct {
	kind  cluster.Kind
	model string
	gang  int
}

// Scatterings takes the declared parts from declarations.
func Scatterings(declared []cluster.Profile) Scattering {
	out := Scattering{}
	for i := range declared {
		if p := &declared[i]; p.With == cluster.Scattered {
			out[gangOn{p.Kind, p.Model, p.Gang}] = p.Rate
		}
	}
	return out
}

// Of gives the part of its throughput that a gang keeps on more nodes than it needs (Gavel §3.1: unconsolidated). That is measured once it
// was seen both on its fewest nodes and on more, often enough; else it is declared, for its own kind or for the site's of the same name. b nil =
// nothing was seen. false = it is not known.
func (s Scattering) Of(b *Book, kind cluster.Kind, model string, gang int) (part float64, known bool) {
	if b != nil {
		apart, together := b.facts.look(kind, cluster.Scattered, model, gang, cluster.Observed), b.facts.look(kind, "", model, gang, cluster.Observed)
		if apart != nil && together != nil && min(apart.Samples, together.Samples) >= b.facts.settings.Trust {
			return round(apart.Rate / together.Rate), true
		}
	}
	if part, known = s[gangOn{kind, model, gang}]; !known {
		part, known = s[gangOn{cluster.Kind(kind.Name()), model, gang}]
	}
	return part, known
}
