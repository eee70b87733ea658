package profile

import (
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// prints is the fraction of its rate that each of the site's kinds keeps beside each other one on
// each model, at a gang size: its fingerprint (Gavel Figure 8). Unmeasured entries are completed.
type prints struct {
	kinds  []cluster.Kind // the site's kinds that were profiled in pairs: rows
	models []string       // with a column for each of the kinds
	parts  [][]float64
	like   map[cluster.Kind][]float64 // by queried kind: similarity to each of kinds
}

// alike is how far apart, in the part of their rate that they keep, two kinds are on average
// that have little to say of each other.
const alike = 0.1

// estimatePair estimates the rate of a kind that shares its GPUs (Gavel §3.3). The paper uses the
// rate of its closest reference beside the other's closest. Here references count by their
// similarity, which on the authors' own table is more accurate than the closest alone. Another
// tenant's statements about its kind are ignored: it counts as the site's kind of its name, or
// not at all.
func (s *estimates) estimatePair(kind, with cluster.Kind, model string, gang int) (cluster.Profile, bool) {
	out := cluster.Profile{Kind: kind, With: with, Model: model, Gang: gang, Source: cluster.Estimated}
	if with = s.known.company(with); with.Tenant() != "" && with.Tenant() != kind.Tenant() {
		return out, false
	}
	f := s.prints(gang)
	alone := s.known.known(kind, "", model, gang)
	like, other := s.like(f, kind, gang), closest(s.like(f, with, gang))
	m, there := slices.BinarySearch(f.models, model)
	if alone == nil || like == nil || other < 0 || !there {
		return out, false
	}
	column := m*len(f.kinds) + other
	parts := make([]float64, len(f.kinds))
	for i := range parts {
		parts[i] = f.parts[i][column]
	}
	part, spread := weighed(parts, like)
	if rate := alone.Rate * part; rate > 0 {
		out.Rate, out.Spread = believable(rate), round(spread/part)
	}
	out.Basis = string(f.kinds[closest(like)]) + " beside " + string(f.kinds[other])
	return out, true
}

// part gives the fraction of its rate that a kind keeps beside another; NaN = unknown.
func (s *estimates) part(kind, with cluster.Kind, model string, gang int) float64 {
	alone, beside := s.known.known(kind, "", model, gang), s.known.known(kind, with, model, gang)
	if alone == nil || beside == nil || alone.Rate == 0 {
		return math.NaN()
	}
	return min(beside.Rate/alone.Rate, 1)
}

// like gives the similarity of a kind to each reference, by its known pairs; a reference is
// similar to itself only. nil = unknown.
func (s *estimates) like(f *prints, kind cluster.Kind, gang int) []float64 {
	like, there := f.like[kind]
	if there {
		return like
	}
	known := s.row(f, kind, gang)
	if i := slices.Index(f.kinds, cluster.Kind(kind.Name())); i >= 0 {
		like = make([]float64, len(f.kinds))
		like[i] = 1
	} else if slices.ContainsFunc(known, func(x float64) bool { return !math.IsNaN(x) }) {
		like = make([]float64, len(f.kinds))
		for i := range like {
			sum, n := 0.0, 0.0
			for j, x := range known {
				if !math.IsNaN(x) {
					sum, n = sum+(x-f.parts[i][j])*(x-f.parts[i][j]), n+1
				}
			}
			like[i] = round(math.Exp(-sum / n / (2 * alike * alike)))
		}
	}
	f.like[kind] = like
	return like
}

// closest gives the index of the largest; -1 where there is none.
func closest(like []float64) int {
	best := -1
	for i, x := range like {
		if best < 0 || x > like[best] {
			best = i
		}
	}
	return best
}

// row gives the known fractions of its rate that a kind keeps beside each reference on each
// model.
func (s *estimates) row(f *prints, kind cluster.Kind, gang int) []float64 {
	var out []float64
	for _, m := range f.models {
		for _, r := range f.kinds {
			out = append(out, s.part(kind, r, m, gang))
		}
	}
	return out
}

// prints gives the fingerprints at a gang size, cached until the book changes.
func (s *estimates) prints(gang int) *prints {
	if f := s.pairs[gang]; f != nil {
		return f
	}
	f := &prints{models: s.known.models(), like: map[cluster.Kind][]float64{}}
	for i := range s.known.entries {
		e := &s.known.entries[i]
		profiled := e.Kind.Tenant() == "" && e.With != "" && e.Gang == gang
		if profiled && !slices.Contains(f.kinds, e.Kind) {
			f.kinds = append(f.kinds, e.Kind)
		}
	}
	for _, k := range f.kinds {
		f.parts = append(f.parts, s.row(f, k, gang))
	}
	complete(f.parts)
	s.pairs[gang] = f
	return f
}
