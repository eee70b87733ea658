package profile

import (
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Speedup is the speed of a kind on a model, relative to the reference model.
type Speedup struct {
	Model string
	Value float64 // 0 = it does not run there; 1 if unknown
	// Low and High bound Value by two standard errors: a trade uses one for the party that gains,
	// and the other for the one that gives.
	Low, High float64
	Rate      float64        // steps/s; 0 = unknown, or known relative to other models only
	Source    cluster.Source // "" = unknown
	Method    cluster.Method
}

// Shown tells whether the speed is known from the kind itself, not only from others.
func (s *Speedup) Shown() bool { return s.Source != "" && s.Method != cluster.ByOthers }

// Speedups gives a kind's speedups on some models, in their order. All kinds have the same reference model (OEF §3.1 takes
// the slowest): a kind with another one would gain from declaring that it does not run on the reference.
func (b *Book) Speedups(kind cluster.Kind, gang int, models []string) []Speedup {
	m := b.memory
	if m == nil || !slices.Equal(models, m.models) {
		list, _, _ := speedups(b, kind, gang, models, false)
		return list
	}
	of := runs{kind, gang}
	if k := m.kept(of); k != nil {
		return k.list
	}
	list, rates, means := speedups(b, kind, gang, models, false)
	m.now[of] = &kept{list, rates, -1, means}
	return list
}

// Priced is Speedups for prices of trades. Run times of the kind itself count as measurements; what counters say counts for nothing, as its factors
// are those of other kinds, and so do the gains of other kinds. nil = neither counts in known, which are the kind's Speedups.
func Priced(b *Book, kind cluster.Kind, gang int, models []string, known []Speedup) []Speedup {
	if !slices.ContainsFunc(known, func(s Speedup) bool { return s.Method != "" }) {
		return nil
	}
	out, _, _ := speedups(b, kind, gang, models, true)
	for i := range out {
		if out[i].Method == cluster.ByCompletions {
			out[i].Source = cluster.Observed
		}
	}
	return out
}

// speedups gives those of a kind with the rates that they come from, and whether they rest on the comparison of models.
func speedups(b *Book, kind cluster.Kind, gang int, models []string, prices bool) (out []Speedup, rates []rate, means bool) {
	out, rates = make([]Speedup, len(models)), make([]rate, len(models))
	errs := make([]float64, len(models))
	for i, m := range models {
		out[i] = Speedup{Model: m, Value: 1, Low: 1, High: 1}
		if p, known := best(b, kind, m, gang, prices); known {
			out[i].Source, out[i].Method, out[i].Value, rates[i] = p.Source, p.Method, p.Rate, rate{p.Rate, true}
			if !p.Relative {
				out[i].Rate = p.Rate
			}
			errs[i] = standardError(&p, b.facts.settings.Recent)
		}
	}
	fastest := max(b.facts.settings.Fastest, 1)
	fleet := b.fleetOf(models)
	base, at := fleet.base(kind, out, fastest)
	baseErr := 0.0
	if at >= 0 {
		baseErr = errs[at]
	}
	for i := range out {
		o := &out[i]
		if o.Source == "" {
			continue
		}
		value := round(o.Value / base)
		o.Value = min(value, fastest)
		o.Low, o.High = o.Value, value // the base can rest on what others show, so more may be cut off than should
		if i == at {
			continue
		}
		e := math.Exp(2 * math.Hypot(errs[i], baseErr))
		o.Low, o.High = round(o.Value/e), round(value*e)
		if prices && at >= 0 && o.Method == cluster.ByCompletions && out[at].Method == cluster.ByCompletions {
			if low, high, ok := b.shown.ratio(kind, o.Model, out[at].Model, gang); ok {
				o.Low, o.High, o.Value = low, high, math.Sqrt(low*high) // margins go both ways
			}
		}
	}
	return out, rates, at < 0 || at != fleet.reference
}

// standardError gives that of an entry's rate, in the logarithm. For an estimate it is its
// spread: more of the same references would not improve it.
func standardError(p *cluster.Profile, recent int) float64 {
	if p.Source == cluster.Observed {
		return p.Spread / math.Sqrt(float64(min(p.Samples, max(recent, 1))))
	}
	return p.Spread
}

// Misreport is a declared rate that observations contradict.
type Misreport struct {
	Kind    cluster.Kind
	Model   string
	Than    string // the declaration is a speedup over this model; "" = a rate
	Gang    int
	By      string // the author of the declaration
	Said    float64
	Seen    float64
	Spread  float64 // of the observations, as a fraction
	Samples int
}

// tolerance is the relative error of a declaration without suspicion.
const tolerance = 0.1

// Misreports gives declarations that differ from observations by more than tolerance and three
// spreads, after Trust samples: rates, and speedups over the kind's slowest observed model, from
// which the kind would gain. Steps of another size make the rates wrong, not the speedups.
func (b *Book) Misreports() []Misreport {
	var out []Misreport
	for i := range b.facts.entries {
		seen := &b.facts.entries[i]
		if seen.Source != cluster.Observed || seen.Samples < b.facts.settings.Trust {
			continue
		}
		said := b.facts.look(seen.Kind, seen.With, seen.Model, seen.Gang, cluster.Declared)
		if said == nil {
			continue
		}
		m := Misreport{Kind: seen.Kind, Model: seen.Model, Gang: seen.Gang, By: said.Basis,
			Said: said.Rate, Seen: seen.Rate, Spread: seen.Spread, Samples: seen.Samples}
		if beyond(&m) {
			out = append(out, m)
		}
		slow := b.facts.slowestSeen(seen)
		if slow == nil || slow.Model == m.Model || slow.Said == 0 {
			continue
		}
		m.Than, m.Said, m.Seen = slow.Model, round(said.Rate/slow.Said), round(seen.Rate/slow.Seen)
		m.Spread, m.Samples = round(math.Hypot(seen.Spread, slow.Spread)), min(seen.Samples, slow.Samples)
		if beyond(&m) {
			out = append(out, m)
		}
	}
	return out
}

func beyond(m *Misreport) bool {
	return m.Said == 0 || math.Abs(math.Log(m.Said/m.Seen)) > math.Log1p(tolerance)+3*m.Spread
}

// slowestSeen gives the slowest model on which a kind, in the same company and gang, was both
// declared and observed.
func (f *facts) slowestSeen(of *cluster.Profile) *Misreport {
	var out *Misreport
	from, to := f.of(of.Kind)
	for i := from; i < to; i++ {
		e := &f.entries[i]
		if e.With != of.With || e.Gang != of.Gang || e.Source != cluster.Observed ||
			e.Samples < f.settings.Trust || out != nil && e.Rate >= out.Seen {
			continue
		}
		if said := f.look(e.Kind, e.With, e.Model, e.Gang, cluster.Declared); said != nil {
			out = &Misreport{Model: e.Model, Said: said.Rate, Seen: e.Rate, Spread: e.Spread, Samples: e.Samples}
		}
	}
	return out
}
