package profile

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// evidence is what jobs show that report nothing.
type evidence struct {
	known       *facts
	completions []cluster.Completion // sorted
	usages      []cluster.Usage      // sorted
	works       *works               // of both and of what is known; nil = not compared yet
}

// Consider lets estimates go by what jobs show that report nothing. Rate and Speedups use it all, Priced run times alone.
func (b *Book) Consider(completions []cluster.Completion, usages []cluster.Usage) {
	forget(b)
	b.shown = evidence{b.facts, completions, usages, nil}
}

// completionOf gives the entry of a kind at a gang size, by model; nil = none.
func (s *evidence) completionOf(kind cluster.Kind, gang int) *cluster.Completion {
	i, found := cluster.FindCompletion(s.completions, kind, gang)
	if !found {
		return nil
	}
	return merged(&s.completions[i])
}

// usagesOf gives the entries of a kind at a gang size.
func (s *evidence) usagesOf(kind cluster.Kind, gang int) []cluster.Usage {
	from, _ := cluster.FindUsage(s.usages, kind, gang, "")
	to := from
	for to < len(s.usages) && s.usages[to].Kind == kind && s.usages[to].Gang == gang {
		to++
	}
	return s.usages[from:to]
}

// byCompletions estimates by the ratio of completion times: work that takes half the time runs twice as fast. Where
// the rate is known on a model with completion times, it is scaled from there; else it is relative, in jobs per
// second.
func (s *evidence) byCompletions(kind cluster.Kind, model string, gang int) (cluster.Profile, bool) {
	out := cluster.Profile{Kind: kind, Model: model, Gang: gang, Source: cluster.Estimated, Method: cluster.ByCompletions, Relative: true}
	c := s.completionOf(kind, gang)
	if c == nil {
		return out, false
	}
	at := slices.Index(c.Models, model)
	if at < 0 {
		return out, false
	}
	var own *cluster.RunRate
	others, anchors, level, off := 0, 0.0, 0.0, 0.0
	for m, name := range c.Models {
		r := &c.Rates[m]
		if r.Rate == 0 {
			continue
		}
		if others++; name == model {
			own = r
		}
		if p := s.known.known(kind, "", name, gang); p != nil && p.Rate > 0 {
			anchors++
			level += math.Log(p.Rate / r.Rate)
			off = max(off, math.Hypot(c.Apart(at, m), standardError(p, s.known.settings.Recent)))
		}
	}
	if own == nil || others < 2 || anchors == 0 && s.known.knows(kind, gang) {
		return out, false
	}
	if anchors > 0 {
		level, out.Relative = level/anchors, false
	} else {
		off = own.Spread
		for m := range c.Models { // the errors of two models add up to that of their ratio at least
			if _, _, ok := c.Ratio(at, m); ok {
				off = max(off, c.Apart(at, m)/2)
			}
		}
	}
	out.Rate = believable(math.Exp(level) * own.Rate)
	out.Samples, out.Spread, out.At = own.Jobs, round(off), c.At
	out.Basis = fmt.Sprintf("run times of %d jobs that completed", own.Jobs)
	return out, true
}

// ratio gives the bounds of the ratio of a kind's rates by completion times on two models; false = they are not known.
func (s *evidence) ratio(kind cluster.Kind, x, y string, gang int) (low, high float64, ok bool) {
	c := s.completionOf(kind, gang)
	return c.Ratio(slices.Index(c.Models, x), slices.Index(c.Models, y))
}

// bounded tells whether the bounds of the ratios of all rates by completion times of a kind are known.
func (s *evidence) bounded(kind cluster.Kind, gang int) bool {
	c := s.completionOf(kind, gang)
	return c != nil && !slices.ContainsFunc(c.Rates, func(r cluster.RunRate) bool { return r.Rate > 0 && r.Least == nil })
}

// knows tells whether a rate above 0 of a kind is known on any model, at a gang size.
func (f *facts) knows(kind cluster.Kind, gang int) bool {
	for _, of := range []cluster.Kind{kind, cluster.Kind(kind.Name())} { // the tenant's, and the site's of its name
		from, to := f.of(of)
		if slices.ContainsFunc(f.entries[from:to], func(e cluster.Profile) bool { return e.With == "" && e.Gang == gang && e.Rate > 0 }) {
			return true
		}
	}
	return false
}

// The quality that a counter must have between two models: kinds that show it, and the median of the errors with which each
// of them is foretold by the others, in the logarithm.
const (
	leastKinds = 5
	worstError = 0.15
	mostKinds  = 64 // that are compared: the newest
)

// counter is a counter that may stand for work.
type counter int

// The counters, in the order in which they are taken if they are equally good. Activity of the SMs, utilisation and power
// are none: a slower GPU is busier with the same work.
const (
	pcieRX counter = iota
	dram
	tensor
	counters
	usual = counters // no counter: all kinds are taken to gain the same
)

func (c counter) String() string {
	return [...]string{"PCIe reads", "memory activity", "tensor activity"}[c]
}

func (c counter) of(u *cluster.Usage) *cluster.Level {
	if c == usual || u == nil {
		return &cluster.Level{Jobs: 1}
	}
	return [...]*cluster.Level{&u.PCIeRX, &u.DRAM, &u.Tensor}[c]
}

// medianToSD makes a standard deviation of a median of errors, if these are normally distributed.
const medianToSD = 1.4826

// works is how counters compare with work, by pair of models in the order of their names, and how kinds usually do.
type works struct {
	counters, usual map[[2]string]measure
	hub             string // the model with which most others are compared
}

// measure is the best counter between two models. A kind whose counter is e^x times as high on the second model as on the first runs
// e^(x-factor) times as fast there.
type measure struct {
	counter counter
	factor  float64
	error   float64 // median, of kinds foretold by the others
	kinds   int
}

// measures compares counters with rates over all kinds that have both on both models, and keeps the answer until
// facts change. Each tenant weighs the same, so that none changes the factors by many kinds.
func (s *evidence) measures() *works {
	if s.works != nil {
		return s.works
	}
	rows := map[[2]string]*[counters + 1][]row{}
	for _, of := range s.subjects() {
		usages := s.usagesOf(of.kind, of.gang)
		on := func(model string) *cluster.Usage {
			if k := slices.IndexFunc(usages, func(u cluster.Usage) bool { return u.Model == model }); k >= 0 {
				return &usages[k]
			}
			return nil
		}
		models := s.modelsOf(of)
		for i, from := range models {
			for _, to := range models[i+1:] {
				gain, at, ok := s.measured(of.kind, from, to, of.gang)
				if !ok {
					continue
				}
				pair := [2]string{from, to}
				if rows[pair] == nil {
					rows[pair] = &[counters + 1][]row{}
				}
				add := func(c counter, off float64, at cluster.Instant) {
					rows[pair][c] = append(rows[pair][c], row{of.kind.Tenant(), at, off})
				}
				add(usual, -gain, at)
				x, y := on(from), on(to)
				if x == nil || y == nil {
					continue
				}
				for c := range counters {
					if a, b := c.of(x), c.of(y); a.Jobs > 0 && b.Jobs > 0 {
						add(c, b.Mean-a.Mean-gain, min(x.At, y.At))
					}
				}
			}
		}
	}
	s.works = &works{counters: map[[2]string]measure{}, usual: map[[2]string]measure{}}
	compared := map[string]int{}
	for pair, of := range rows { // each separately
		for c := range counters {
			m, ok := foretell(c, of[c])
			if best, found := s.works.counters[pair]; ok && m.error <= worstError && (!found || m.error < best.error) {
				s.works.counters[pair] = m
			}
		}
		if m, ok := foretell(usual, of[usual]); ok {
			s.works.usual[pair] = m
			compared[pair[0]]++
			compared[pair[1]]++
		}
	}
	for _, m := range slices.Sorted(maps.Keys(compared)) {
		if compared[m] > compared[s.works.hub] {
			s.works.hub = m
		}
	}
	return s.works
}

// subjects gives all kinds with gang sizes that anything is known about, in order; not the site's.
func (s *evidence) subjects() []runs {
	var out []runs
	for i := range s.known.entries {
		if e := &s.known.entries[i]; e.With == "" {
			out = append(out, runs{e.Kind, e.Gang})
		}
	}
	for i := range s.completions {
		out = append(out, runs{s.completions[i].Kind, s.completions[i].Gang})
	}
	for i := range s.usages {
		out = append(out, runs{s.usages[i].Kind, s.usages[i].Gang})
	}
	out = slices.DeleteFunc(out, func(r runs) bool { return r.kind.Tenant() == "" })
	slices.SortFunc(out, func(x, y runs) int { return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.gang, y.gang)) })
	return slices.Compact(out)
}

// row is how far the gain of a kind differs from that of a counter.
type row struct {
	tenant string
	at     cluster.Instant
	off    float64
}

// foretell tests how well the gain of each kind is foretold by the others; false = they are too few.
func foretell(c counter, list []row) (measure, bool) {
	slices.SortStableFunc(list, func(x, y row) int { return cmp.Compare(y.at, x.at) })
	list = list[:min(len(list), mostKinds)]
	if len(list) < leastKinds {
		return measure{}, false
	}
	offs, tenants := make([]float64, len(list)), make([]string, len(list))
	for i, r := range list {
		offs[i], tenants[i] = r.off, r.tenant
	}
	m := measure{counter: c, factor: balanced(offs, tenants, -1), kinds: len(list)}
	errs := make([]float64, len(list))
	for i := range list {
		errs[i] = math.Abs(offs[i] - balanced(offs, tenants, i))
	}
	slices.Sort(errs)
	m.error = errs[len(errs)/2]
	return m, true
}

// balanced gives the median in which each tenant weighs the same, without the value at index but.
func balanced(values []float64, tenants []string, but int) float64 {
	of := map[string]float64{}
	for i, t := range tenants {
		if i != but {
			of[t]++
		}
	}
	order := make([]int, 0, len(values))
	for i := range values {
		if i != but {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(values[i], values[j]), cmp.Compare(tenants[i], tenants[j]))
	})
	const tiny = 1e-9
	sum, half := 0.0, float64(len(of))/2
	for k, i := range order {
		switch sum += 1 / of[tenants[i]]; {
		case sum > half+tiny:
			return values[i]
		case sum > half-tiny && k+1 < len(order):
			return (values[i] + values[order[k+1]]) / 2
		}
	}
	return 0
}

// measured gives ln of how much faster a kind runs on a model than on another, by reports on both, else by completion times on both,
// and when that was last seen.
func (s *evidence) measured(kind cluster.Kind, from, to string, gang int) (gain float64, at cluster.Instant, ok bool) {
	x, y := s.known.look(kind, "", from, gang, cluster.Observed), s.known.look(kind, "", to, gang, cluster.Observed)
	if x != nil && y != nil && min(x.Samples, y.Samples) >= s.known.settings.Trust {
		return math.Log(y.Rate / x.Rate), min(x.At, y.At), true
	}
	c := s.completionOf(kind, gang)
	if c == nil {
		return 0, 0, false
	}
	var rates [2]cluster.RunRate
	for m, name := range c.Models {
		for i, of := range [...]string{from, to} {
			if name == of {
				rates[i] = c.Rates[m]
			}
		}
	}
	if rates[0].Rate == 0 || rates[1].Rate == 0 || math.Hypot(rates[0].Spread, rates[1].Spread) > 2*worstError {
		return 0, 0, false
	}
	return math.Log(rates[1].Rate / rates[0].Rate), c.At, true
}

// modelsOf gives the models on which anything is known of a kind at a gang size, in order.
func (s *evidence) modelsOf(of runs) (out []string) {
	from, to := s.known.of(of.kind)
	for i := from; i < to; i++ {
		if e := &s.known.entries[i]; e.With == "" && e.Gang == of.gang {
			out = append(out, e.Model)
		}
	}
	if c := s.completionOf(of.kind, of.gang); c != nil {
		out = append(out, c.Models...)
	}
	for _, u := range s.usagesOf(of.kind, of.gang) {
		out = append(out, u.Model)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// link gives ln of how much faster a kind runs where y was seen than where x was, by the best counter between the two models,
// and the standard error of that.
func (s *evidence) link(x, y *cluster.Usage) (gain, spread float64, by measure, ok bool) {
	if x.Model > y.Model {
		gain, spread, by, ok = s.link(y, x)
		return -gain, spread, by, ok
	}
	if by, ok = s.measures().counters[[2]string{x.Model, y.Model}]; !ok {
		return 0, 0, by, false
	}
	from, to := by.counter.of(x), by.counter.of(y)
	if from.Jobs == 0 || to.Jobs == 0 {
		return 0, 0, by, false
	}
	err := func(l *cluster.Level) float64 { return l.Spread / math.Sqrt(float64(l.Jobs)) }
	return to.Mean - from.Mean - by.factor, math.Hypot(medianToSD*by.error, math.Hypot(err(from), err(to))), by, true
}

// byCounters estimates by counters: the work of a step is the same on all models, up to a factor of each pair of
// models, so a rate goes with the counter. It begins at a model where the rate is known or shown by completion
// times; else all is relative to the model from which most others can be compared.
func (s *evidence) byCounters(kind cluster.Kind, model string, gang int) (cluster.Profile, bool) {
	all := s.usagesOf(kind, gang)
	own := slices.IndexFunc(all, func(u cluster.Usage) bool { return u.Model == model })
	if own < 0 {
		return cluster.Profile{}, false
	}
	best, found, settled := cluster.Profile{}, false, s.known.knows(kind, gang)
	for i := range all {
		p, ok := s.settled(kind, all[i].Model, gang)
		if !ok {
			continue
		}
		settled = true
		if out, ok := s.carry(p, &all[i], &all[own]); ok && (!found || out.Spread < best.Spread) {
			best, found = out, true
		}
	}
	if settled {
		return best, found
	}
	hub, most := -1, 0
	for i := range all {
		links := 0
		for k := range all {
			if _, _, _, ok := s.link(&all[i], &all[k]); ok {
				links++
			}
		}
		if links > most {
			hub, most = i, links
		}
	}
	if hub < 0 {
		return best, false
	}
	unit := cluster.Profile{Kind: kind, Model: model, Gang: gang, Source: cluster.Estimated, Method: cluster.ByCounters, Rate: 1, Relative: true,
		At: all[hub].At, Basis: "the model with which others are compared"}
	if hub == own {
		return unit, true
	}
	return s.carry(unit, &all[hub], &all[own])
}

// settled gives the rate of a kind that is known, or shown by completion times, with its standard error.
func (s *evidence) settled(kind cluster.Kind, model string, gang int) (cluster.Profile, bool) {
	if k := s.known.known(kind, "", model, gang); k != nil {
		p := *k
		p.Spread = standardError(k, s.known.settings.Recent)
		return p, p.Rate > 0
	}
	return s.byCompletions(kind, model, gang)
}

// carry estimates a rate by one on another model, and the counters on both.
func (s *evidence) carry(p cluster.Profile, from, to *cluster.Usage) (cluster.Profile, bool) {
	gain, spread, by, ok := s.link(from, to)
	if !ok {
		return p, false
	}
	jobs := by.counter.of(to).Jobs
	return cluster.Profile{Kind: to.Kind, Model: to.Model, Gang: to.Gang, Source: cluster.Estimated, Method: cluster.ByCounters, Relative: p.Relative,
		Rate: believable(p.Rate * math.Exp(gain)), Samples: jobs, Spread: round(math.Hypot(p.Spread, spread)), At: to.At,
		Basis: fmt.Sprintf("%s of %d jobs, right within %.0f %% for %d job types", by.counter, jobs, 100*by.error, by.kinds)}, true
}

// Contradiction is a claimed speedup whose opposite the kind's own counters show.
type Contradiction struct {
	Kind        cluster.Kind
	Gang        int
	Model, Than string  // the kind claims to be faster on Model than on Than, by what is declared or reported,
	Claimed     float64 // so many times as fast
	Shown       float64 // the counters show this, which is below 1
	Counter     string
	Jobs        int // that showed it, on the model with fewer
}

// Contradictions gives the kinds that claim to be faster on a model on which their own counters say that they do less
// work. Only counters with a tested quality between the two models count (see Consider), and only a difference of more
// than three standard errors. It is sorted by kind, gang and model.
func Contradictions(b *Book) (out []Contradiction) {
	s := &b.shown
	for from := 0; from < len(s.usages); {
		same := s.usagesOf(s.usages[from].Kind, s.usages[from].Gang)
		from += len(same)
		for i := range same {
			for k := range same {
				x, y := &same[i], &same[k]
				slow, fast := b.facts.known(x.Kind, "", x.Model, x.Gang), b.facts.known(x.Kind, "", y.Model, x.Gang)
				if i == k || slow == nil || fast == nil || slow.Rate == 0 || !(fast.Rate > (1+tolerance)*slow.Rate) {
					continue
				}
				if gain, spread, by, ok := s.link(x, y); ok && gain < -3*spread {
					out = append(out, Contradiction{Kind: x.Kind, Gang: x.Gang, Model: y.Model, Than: x.Model, Claimed: round(fast.Rate / slow.Rate),
						Shown: round(math.Exp(gain)), Counter: by.counter.String(), Jobs: min(by.counter.of(x).Jobs, by.counter.of(y).Jobs)})
				}
			}
		}
	}
	return out
}

// byOthers estimates by what other kinds gain between a model on which this kind's own rate is shown and another one; if it is shown on none,
// relative to the model from which most others can be compared. A rate that only the job itself declares shows nothing.
func (s *evidence) byOthers(kind cluster.Kind, model string, gang int) (cluster.Profile, bool) {
	if len(s.completions)+len(s.usages) == 0 {
		return cluster.Profile{}, false
	}
	best, found, anchored := cluster.Profile{}, false, s.known.knows(kind, gang)
	for _, from := range s.modelsOf(runs{kind, gang}) {
		p, ok := s.settled(kind, from, gang)
		if !ok {
			p, ok = s.byCounters(kind, from, gang)
		}
		if !ok || p.Source == cluster.Declared && p.Basis != File {
			continue
		}
		anchored = true
		if out, ok := s.usually(p, model); ok && (!found || out.Spread < best.Spread) {
			best, found = out, true
		}
	}
	if anchored {
		return best, found
	}
	hub := s.measures().hub
	unit := cluster.Profile{Kind: kind, Model: hub, Gang: gang, Source: cluster.Estimated, Method: cluster.ByOthers, Rate: 1, Relative: true,
		Basis: "the model with which others are compared"}
	if hub == "" || hub == model {
		return unit, hub != ""
	}
	return s.usually(unit, model)
}

// usually estimates a rate by one on another model, and the gains of other kinds.
func (s *evidence) usually(p cluster.Profile, model string) (cluster.Profile, bool) {
	pair, sign := [2]string{p.Model, model}, -1.0
	if p.Model > model {
		pair, sign = [2]string{model, p.Model}, 1
	}
	m, ok := s.measures().usual[pair]
	if !ok {
		return p, false
	}
	return cluster.Profile{Kind: p.Kind, Model: model, Gang: p.Gang, Source: cluster.Estimated, Method: cluster.ByOthers, Relative: p.Relative,
		Rate: believable(p.Rate * math.Exp(sign*m.factor)), Spread: round(math.Hypot(p.Spread, medianToSD*m.error)), At: p.At,
		Basis: fmt.Sprintf("gains of %d other job types, right within %.0f %%", m.kinds, 100*m.error)}, true
}
