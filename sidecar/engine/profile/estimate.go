package profile

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// likeness is how far apart, in the logarithm, the speedups of two kinds are that have
// little to say of each other.
const likeness = 0.35

// estimates are the results computed from facts, on demand.
type estimates struct {
	known  *facts
	tables map[int]*table  // by gang size
	pairs  map[int]*prints // by gang size
}

func newEstimates(f *facts) *estimates { return &estimates{f, map[int]*table{}, map[int]*prints{}} }

// changed drops the results from a kind's entries.
func (s *estimates) changed(kind cluster.Kind) {
	if kind.Tenant() == "" {
		*s = *newEstimates(s.known)
	}
	for _, t := range s.tables {
		delete(t.of, kind.Tenant())
	}
	for _, f := range s.pairs {
		delete(f.like, kind)
	}
}

// table is the data of single jobs at a gang size, built on demand.
type table struct {
	models []string           // sorted
	of     map[string]*family // by tenant; "" = the site's
}

// family is a tenant's kinds and, by model, the logarithms of their rates; NaN if a rate is
// unknown or the kind does not run.
type family struct {
	kinds []cluster.Kind
	rows  [][]float64
}

// table gives the table of a gang size.
func (s *estimates) table(gang int) *table {
	t := s.tables[gang]
	if t == nil {
		t = &table{models: s.known.models(), of: map[string]*family{}}
		s.tables[gang] = t
	}
	return t
}

// family gives the data of a tenant's kinds.
func (s *estimates) family(t *table, tenant string, gang int) *family {
	f := t.of[tenant]
	if f != nil {
		return f
	}
	f = &family{}
	from, to := s.known.tenant(tenant)
	for i := from; i < to; i++ {
		k := s.known.entries[i].Kind
		if k.Tenant() == tenant && (len(f.kinds) == 0 || f.kinds[len(f.kinds)-1] != k) {
			f.kinds = append(f.kinds, k)
			f.rows = append(f.rows, s.logs(t, k, gang))
		}
	}
	t.of[tenant] = f
	return f
}

// logs gives a row of a family.
func (s *estimates) logs(t *table, kind cluster.Kind, gang int) []float64 {
	row := make([]float64, len(t.models))
	for j, m := range t.models {
		row[j] = math.NaN()
		if p := s.known.known(kind, "", m, gang); p != nil && p.Rate > 0 {
			row[j] = math.Log(p.Rate)
		}
	}
	return row
}

// own is logs from an existing table, if there is one.
func (s *estimates) own(t *table, kind cluster.Kind, gang int) []float64 {
	f := s.family(t, kind.Tenant(), gang)
	if i, ok := slices.BinarySearch(f.kinds, kind); ok {
		return f.rows[i]
	}
	return s.logs(t, kind, gang)
}

// estimate estimates a single job's rate. It uses the speedups of other kinds, the site's and the
// tenant's own, between the models where this rate is known and the requested one; similar kinds
// count more. Otherwise it scales, per GPU, from another gang size on that model.
func (s *estimates) estimate(kind cluster.Kind, model string, gang int) (cluster.Profile, bool) {
	out := cluster.Profile{Kind: kind, Model: model, Gang: gang, Source: cluster.Estimated}
	t := s.table(gang)
	own := s.own(t, kind, gang)
	var logs, weights []float64
	var names []string
	families := []*family{s.family(t, "", gang)}
	if kind.Tenant() != "" {
		families = append(families, s.family(t, kind.Tenant(), gang))
	}
	target, there := slices.BinarySearch(t.models, model)
	for _, f := range families {
		for i, ref := range f.kinds {
			if !there || math.IsNaN(f.rows[i][target]) || ref == kind || string(ref) == kind.Name() {
				continue // itself, and the site's kind for it
			}
			if gain, unlike, ok := compare(own, f.rows[i]); ok {
				logs = append(logs, f.rows[i][target]+gain)
				weights = append(weights, math.Exp(-unlike/(2*likeness*likeness)))
				names = append(names, ref.Name())
			}
		}
	}
	if len(logs) > 0 {
		mean, spread := weighed(logs, weights)
		out.Rate, out.Spread, out.Basis = believable(math.Exp(mean)), round(spread), "gains of "+few(names)
		return out, true
	}
	if p := s.otherGang(kind, model, gang); p != nil {
		out.Rate, out.Spread = believable(p.Rate/float64(p.Gang)*float64(gang)), p.Spread
		out.Basis = fmt.Sprintf("its rate on %d of them, per GPU", p.Gang)
		return out, true
	}
	return out, false
}

// compare gives the mean difference of two rows where both are known, and its variance; false
// without common entries.
func compare(a, b []float64) (mean, variance float64, ok bool) {
	n := 0.0
	for j := range a {
		if d := a[j] - b[j]; !math.IsNaN(d) {
			n++
			off := d - mean
			mean += off / n
			variance += off * (d - mean)
		}
	}
	return mean, variance / max(n, 1), n > 0
}

// otherGang gives the entry of a kind on a model with the nearest gang size, of two equally near
// the smaller; nil if there is none.
func (s *estimates) otherGang(kind cluster.Kind, model string, gang int) *cluster.Profile {
	var best *cluster.Profile
	least := math.Inf(1)
	for _, of := range []cluster.Kind{kind, cluster.Kind(kind.Name())} { // the tenant's, and the site's of its name
		from, to := s.known.of(of)
		for i := from; i < to; i++ {
			e := &s.known.entries[i]
			if e.With != "" || e.Model != model || e.Gang == gang {
				continue
			}
			p := s.known.known(kind, "", model, e.Gang)
			apart := math.Abs(math.Log(float64(e.Gang) / float64(gang)))
			if p.Rate > 0 && (apart < least || apart == least && p.Gang < best.Gang) {
				best, least = p, apart
			}
		}
	}
	return best
}

// weighed gives a weighted mean and standard deviation.
func weighed(xs, weights []float64) (mean, spread float64) {
	sum := 0.0
	for i, x := range xs {
		mean, sum = mean+weights[i]*x, sum+weights[i]
	}
	if sum == 0 { // all are dissimilar, equally so
		for i := range weights {
			weights[i] = 1
		}
		return weighed(xs, weights)
	}
	mean /= sum
	for i, x := range xs {
		spread += weights[i] * (x - mean) * (x - mean) / sum
	}
	return mean, math.Sqrt(spread)
}

// few names the first of several, and their number.
func few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func believable(rate float64) float64 {
	return round(min(max(rate, cluster.SlowestRate), cluster.FastestRate))
}
