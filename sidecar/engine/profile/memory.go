package profile

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Memory keeps speedups from one book to the next, as long as all that they come from is the same: what is known of the kind, of the others of its tenant
// and of the site's, the evidence, and where a kind was not measured on the reference model the comparison of models.
type Memory struct {
	settings    Settings
	models      []string
	entries     entries
	completions []cluster.Completion
	usages      []cluster.Usage
	fleet       *fleet
	now, old    map[runs]*kept // asked of this book, and of the last one
	changes     changes        // since the last one
}

// kept is the speedups of a kind on the models of a memory.
type kept struct {
	list   []Speedup
	rates  []rate // by model
	models int    // on which a rate is known; -1 = not counted yet
	means  bool   // they rest on the comparison of models in fleet
}

// rate is a rate by the best source; 0 = it does not run there, or it is not known.
type rate struct {
	steps float64
	known bool
}

// changes is what differs between two books.
type changes struct {
	all     bool
	tenants map[string]bool
	fleet   bool
}

// drop reports whether what was kept of a kind no longer holds.
func (c *changes) drop(kind cluster.Kind, k *kept) bool {
	return c.all || c.fleet && k.means || c.tenants[kind.Tenant()]
}

// Keep makes the book remember speedups on some models in m, and takes over those that hold still of the book that used m last. The book is complete: a change of
// what is known empties the memory.
func (b *Book) Keep(m *Memory, models []string) {
	was := *m
	*m = Memory{settings: b.facts.settings, models: slices.Clone(models), entries: b.facts.entries, now: map[runs]*kept{}, old: was.now, changes: changes{tenants: map[string]bool{}}}
	m.completions, m.usages = slices.Clone(b.shown.completions), slices.Clone(b.shown.usages)
	for i := range m.completions {
		m.completions[i].Rates = cloneRates(m.completions[i].Rates)
	}
	c := &m.changes
	shown := len(m.completions)+len(m.usages) > 0
	c.all = was.fleet == nil || m.settings != was.settings || !slices.Equal(m.models, was.models) || !slices.Equal(m.usages, was.usages) ||
		!slices.EqualFunc(m.completions, was.completions, sameCompletion)
	was.entries.differ(m.entries, func(tenant string) { c.tenants[tenant] = true })
	if c.all = c.all || c.tenants[""] || shown && len(c.tenants) > 0; c.all {
		clear(m.old)
	}
	b.memory = m
	switch {
	case c.all:
		b.fleetOf(models)
	case len(c.tenants) == 0:
		b.fleet = was.fleet
	default:
		b.fleet = compareModels(b.facts, models, func(tenant string) *rates {
			k := slices.IndexFunc(was.fleet.tenants, func(r rates) bool { return r.tenant == tenant })
			if c.tenants[tenant] || k < 0 {
				return nil
			}
			return &was.fleet.tenants[k]
		})
		c.fleet = !b.fleet.same(was.fleet)
		c.all = b.fleet.reference != was.fleet.reference
	}
	m.fleet = b.fleet
}

// kept gives what is remembered of a kind, and remembers it for the next book; nil = nothing.
func (m *Memory) kept(of runs) *kept {
	if m == nil {
		return nil
	}
	k := m.now[of]
	if k != nil {
		return k
	}
	if k = m.old[of]; k == nil || m.changes.drop(of.kind, k) {
		return nil
	}
	m.now[of] = k
	return k
}

// forget empties the memory of a book.
func forget(b *Book) {
	if b.memory != nil {
		*b.memory = Memory{}
		b.memory = nil
	}
}

// differ tells the tenants of entries that are in one list only.
func (x entries) differ(y entries, tell func(tenant string)) {
	for len(x) > 0 || len(y) > 0 {
		if len(x) > 0 && len(y) > 0 && x[0] == y[0] {
			x, y = x[1:], y[1:]
			continue
		}
		order := -1
		if len(x) == 0 {
			order = 1
		} else if len(y) > 0 {
			order = x[0].Compare(&y[0])
		}
		if order <= 0 {
			tell(x[0].Kind.Tenant())
			x = x[1:]
		}
		if order >= 0 {
			tell(y[0].Kind.Tenant())
			y = y[1:]
		}
	}
}

// cloneRates copies rates with their lists.
func cloneRates(list []cluster.RunRate) []cluster.RunRate {
	out := slices.Clone(list)
	for i := range out {
		out[i].Least = slices.Clone(out[i].Least)
	}
	return out
}

// sameCompletion reports whether estimates from two entries are the same.
func sameCompletion(x, y cluster.Completion) bool {
	return x.Kind == y.Kind && x.Gang == y.Gang && x.At == y.At && slices.Equal(x.Models, y.Models) && slices.EqualFunc(x.Rates, y.Rates, func(a, b cluster.RunRate) bool {
		return a.Rate == b.Rate && a.Spread == b.Spread && a.Jobs == b.Jobs && slices.Equal(a.Least, b.Least)
	})
}
