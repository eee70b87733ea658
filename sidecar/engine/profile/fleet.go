package profile

import (
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// fleet compares models by what the administrator declared and what was measured. The declarations of jobs have no part in
// it, so that no tenant's change what is believed of another's jobs.
type fleet struct {
	models    []string
	reference int // index of the model relative to which speedups are; -1 = models were not compared
	tenants   []rates
}

// rates is the rates of a tenant's kinds.
type rates struct {
	tenant string
	first  runs        // of the rows
	rows   [][]float64 // by kind and gang size, then model; NaN = unknown
	ratios []float64   // by model: see ratio, with the reference
}

// fleetOf compares models, and keeps the answer until facts change.
func (b *Book) fleetOf(models []string) *fleet {
	if b.fleet != nil && slices.Equal(b.fleet.models, models) {
		return b.fleet
	}
	b.fleet = compareModels(b.facts, models, func(string) *rates { return nil })
	return b.fleet
}

// compareModels compares models. was gives the rates of a tenant whose entries are as they were when models were compared last; nil = they are not.
func compareModels(f *facts, models []string, was func(tenant string) *rates) *fleet {
	x := &fleet{models: slices.Clone(models), tenants: f.rates(models, was)}
	if x.reference = slices.Index(models, f.settings.Reference); x.reference < 0 {
		x.reference = x.slowest()
	}
	for t := range x.tenants {
		x.tenants[t].ratios = nil
		for m := range models {
			x.tenants[t].ratios = append(x.tenants[t].ratios, x.tenants[t].ratio(m, max(x.reference, 0)))
		}
	}
	return x
}

// same reports whether two comparisons give the same base for every kind.
func (x *fleet) same(y *fleet) bool {
	return x.reference == y.reference && slices.EqualFunc(x.tenants, y.tenants, func(a, b rates) bool {
		return a.tenant == b.tenant && slices.EqualFunc(a.ratios, b.ratios, func(p, q float64) bool { return p == q || math.IsNaN(p) && math.IsNaN(q) })
	})
}

// rates lists what was measured or declared by the administrator, by tenant.
func (f *facts) rates(models []string, was func(tenant string) *rates) (out []rates) {
	seen, at, before := map[runs]bool{}, map[string]int{}, map[string]*rates{}
	for i := range f.entries {
		e := &f.entries[i]
		of := runs{e.Kind, e.Gang}
		if e.With != "" {
			continue
		}
		tenant := e.Kind.Tenant()
		old, asked := before[tenant]
		if !asked {
			old = was(tenant)
			before[tenant] = old
		}
		if old != nil {
			if of == old.first {
				out = append(out, *old)
				before[tenant] = &rates{} // it is listed
			}
			continue
		}
		if seen[of] {
			continue
		}
		seen[of] = true
		row, sure := slices.Repeat([]float64{math.NaN()}, len(models)), false
		for m, model := range models {
			if p := f.sure(e.Kind, model, e.Gang); p != nil {
				row[m], sure = p.Rate, true
			}
		}
		if !sure {
			continue
		}
		t, known := at[tenant]
		if !known {
			t = len(out)
			at[tenant], out = t, append(out, rates{tenant: tenant, first: of})
		}
		out[t].rows = append(out[t].rows, row)
	}
	return out
}

// sure gives what was observed often enough, else what the administrator declared for this kind; nil = neither.
func (f *facts) sure(kind cluster.Kind, model string, gang int) *cluster.Profile {
	if seen := f.look(kind, "", model, gang, cluster.Observed); seen != nil && seen.Samples >= f.settings.Trust {
		return seen
	}
	if said := f.look(kind, "", model, gang, cluster.Declared); said != nil && said.Basis == File {
		return said
	}
	return nil
}

// ratio gives the mean of ln rates on model m less those on model n; NaN = no kind is known to run on both.
func (r *rates) ratio(m, n int) float64 {
	sum, count := 0.0, 0.0
	for _, row := range r.rows {
		if row[m] > 0 && row[n] > 0 {
			sum, count = sum+math.Log(row[m]/row[n]), count+1
		}
	}
	return sum / count
}

// slowest gives the model that is slowest by the mean over tenants, among those that at least half of the tenants can use
// and that were compared with another; -1 = none was. Every tenant counts once, so that none changes the reference by declaring many kinds.
func (x *fleet) slowest() int {
	best, fewest := -1, 0
	for m := range x.models {
		users, slower := 0, 0
		for t := range x.tenants {
			if slices.ContainsFunc(x.tenants[t].rows, func(row []float64) bool { return row[m] != 0 }) {
				users++
			}
		}
		compared := false
		for n := range x.models {
			sum := 0.0
			for t := range x.tenants {
				if d := x.tenants[t].ratio(n, m); n != m && !math.IsNaN(d) {
					sum, compared = sum+d, true
				}
			}
			if sum < 0 {
				slower++
			}
		}
		if compared && 2*users >= len(x.tenants) && (best < 0 || slower < fewest) {
			best, fewest = m, slower
		}
	}
	return best
}

// mean gives the mean ratio between a model and the reference of all tenants but one, else of that one; NaN = unknown.
func (x *fleet) mean(m int, but string) float64 {
	sum, count, own := 0.0, 0.0, math.NaN()
	for t := range x.tenants {
		switch r := x.tenants[t].ratios[m]; {
		case x.tenants[t].tenant == but:
			own = r
		case !math.IsNaN(r):
			sum, count = sum+r, count+1
		}
	}
	if count == 0 {
		return own
	}
	return sum / count
}

// base gives the rate of a kind on the reference model, from its rates, with the index of the rate that it was taken
// from; -1 = from several. A kind whose rate there is 0 or unknown is taken to run as much slower there as those of the
// other tenants do. Without such a comparison the base is its lowest rate. With a declared 0 on the reference, or on any
// model if there is no reference, it is lower by the geometric mean of 1 and fastest, so that the 0 does not pay.
func (x *fleet) base(kind cluster.Kind, rates []Speedup, fastest float64) (base float64, at int) {
	r := x.reference
	if r >= 0 && rates[r].Source != "" && rates[r].Value > 0 {
		return rates[r].Value, r
	}
	sum, count, least, zero := 0.0, 0.0, -1, false
	for m := range rates {
		s := &rates[m]
		if s.Source == "" {
			continue
		}
		if s.Value == 0 {
			zero = zero || r < 0 || m == r
			continue
		}
		if least < 0 || s.Value < rates[least].Value {
			least = m
		}
		if d := x.mean(m, kind.Tenant()); !math.IsNaN(d) {
			sum, count = sum+math.Log(s.Value)-d, count+1
		}
	}
	switch {
	case count > 0:
		return math.Exp(sum / count), -1
	case least < 0:
		return 1, -1
	case zero:
		return rates[least].Value / math.Sqrt(fastest), -1
	}
	return rates[least].Value, least
}
