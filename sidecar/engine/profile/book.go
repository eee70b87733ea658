package profile

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Settings are what an administrator may want otherwise.
type Settings struct {
	Recent int          // samples that an average looks back on
	Trust  int          // number of samples from which observations replace declarations
	Least  cluster.Span // between two reports that make a sample
	// Entries is how many entries a tenant may have in the book of what was observed, and as many of what its
	// jobs declared; the oldest ones go.
	Entries int
	// Estimate is whether single jobs' unknown rates are estimated. Pairs' always are.
	Estimate bool
	// Reference is the model relative to which speedups are; "" = the slowest that most tenants can use, by what was measured.
	Reference string
	// Fastest is by how much one model is believed to be faster than another, at most.
	Fastest float64
}

// Default gives the settings of a site that has no wishes.
func Default() Settings {
	return Settings{Recent: 16, Trust: 3, Least: 10 * cluster.Second, Entries: 512, Estimate: true, Fastest: 100}
}

// Book is what is known. It is filled from values and gives values back; equal calls in
// equal order make equal books.
type Book struct {
	facts  *facts
	paces  []cluster.Pace // sorted by key
	guess  *estimates     // of facts as they are
	fleet  *fleet         // of facts as they are; nil = not compared yet
	shown  evidence
	memory *Memory // of speedups; nil = none is used
}

// facts is what was declared and observed.
type facts struct {
	settings Settings
	entries
	places map[cluster.Kind]place // of entries; nil = not listed yet
}

// New opens a book with what was remembered. Entries that make no sense are left out.
func New(s Settings, entries []cluster.Profile, paces []cluster.Pace) *Book {
	b := &Book{facts: &facts{settings: s, entries: sorted(entries, s.Entries)}}
	b.guess, b.paces = newEstimates(b.facts), make([]cluster.Pace, 0, len(paces))
	for i := range paces {
		at, there := b.pace(paces[i].Key)
		if !there {
			b.paces = slices.Insert(b.paces, at, paces[i])
		}
	}
	return b
}

// Entries gives what was declared and observed, sorted.
func (b *Book) Entries() []cluster.Profile { return slices.Clone(b.facts.entries) }

// Paces gives what is remembered of jobs that report, by key.
func (b *Book) Paces() []cluster.Pace { return slices.Clone(b.paces) }

// File is the basis of what an administrator declares. No job's own word replaces it.
const File = "file"

// Declare takes the word of somebody, named in p.Basis. A later word of a job replaces
// an earlier one, the administrator's replaces both.
func (b *Book) Declare(p cluster.Profile) error {
	p.Source, p.Samples, p.Spread = cluster.Declared, 0, 0
	p.With = b.facts.company(p.With)
	if err := check(&p); err != nil {
		return err
	}
	if p.Kind.Tenant() == "" && p.Basis != File {
		return fmt.Errorf("kind %s: only the administrator declares what holds for every tenant", p.Kind)
	}
	at, there := b.facts.find(&p)
	if there && b.facts.entries[at].Basis == File && p.Basis != File {
		return nil
	}
	b.put(&p)
	return nil
}

// Hear takes what jobs declare of their kinds on GPUs that they have to themselves, all at once, as Declare takes each
// of it in its order. Of what is more than a tenant may have it keeps what is declared now, and of what was
// before the newest.
func (b *Book) Hear(rates []cluster.Profile) {
	said := make([]cluster.Profile, 0, len(rates))
	for _, p := range rates {
		p.Source, p.Samples, p.Spread, p.With = cluster.Declared, 0, 0, ""
		if p.Kind.Tenant() != "" && check(&p) == nil {
			said = append(said, p)
		}
	}
	if len(said) == 0 {
		return
	}
	slices.SortStableFunc(said, func(x, y cluster.Profile) int { return x.Compare(&y) })
	merged := make([]cluster.Profile, 0, len(b.facts.entries)+len(said))
	fresh := make([]bool, 0, cap(merged))
	for old := b.facts.entries; len(old) > 0 || len(said) > 0; {
		order := 1
		if len(said) == 0 {
			order = -1
		} else if len(old) > 0 {
			order = old[0].Compare(&said[0])
		}
		switch n := len(merged); {
		case order < 0:
			merged, fresh, old = append(merged, old[0]), append(fresh, false), old[1:]
		case order == 0 && old[0].Basis == File:
			said = said[1:]
		case order == 0:
			old = old[1:]
		case n > 0 && merged[n-1].Compare(&said[0]) == 0:
			merged[n-1], said = said[0], said[1:]
		default:
			merged, fresh, said = append(merged, said[0]), append(fresh, true), said[1:]
		}
	}
	b.set(entries(merged).bounded(b.facts.settings.Entries, fresh))
}

// Withdraw takes back all that somebody declared.
func (b *Book) Withdraw(basis string) {
	b.set(slices.DeleteFunc(b.facts.entries, func(p cluster.Profile) bool {
		return p.Source == cluster.Declared && p.Basis == basis
	}))
}

// Forget drops the paces of jobs that are gone. Their samples stay.
func (b *Book) Forget(gone func(cluster.JobKey) bool) {
	b.paces = slices.DeleteFunc(b.paces, func(p cluster.Pace) bool { return gone(p.Key) })
}

func (b *Book) pace(key cluster.JobKey) (int, bool) {
	return slices.BinarySearchFunc(b.paces, key, func(p cluster.Pace, key cluster.JobKey) int { return int(min(max(p.Key-key, -1), 1)) })
}

// put writes an entry in, in the place of one about the same. If that is one too many on its shelf, the oldest there
// goes.
func (b *Book) put(p *cluster.Profile) {
	at, there := b.facts.find(p)
	if there {
		b.facts.entries[at] = *p
		b.changed(p.Kind)
		return
	}
	more := slices.Insert(b.facts.entries, at, *p)
	if oldest, n := more.oldest(at); n > max(b.facts.settings.Entries, 1) {
		more = slices.Delete(more, oldest, oldest+1)
	}
	b.set(more)
}

// set makes these the entries, and forgets what was worked out of others.
func (b *Book) set(x entries) {
	forget(b)
	b.facts.entries, b.facts.places, b.guess, b.fleet, b.shown.works = x, nil, newEstimates(b.facts), nil, nil
}

// changed forgets what was worked out of a kind's entries.
func (b *Book) changed(kind cluster.Kind) {
	forget(b)
	b.guess.changed(kind)
	b.fleet, b.shown.works = nil, nil
}

// known gives the best that is known of a kind, without estimating: what was observed often
// enough, else what the administrator declared for this kind, else for the site's of the
// same name, else what jobs declared, else what was observed once or twice.
func (f *facts) known(kind, with cluster.Kind, model string, gang int) *cluster.Profile {
	seen := f.look(kind, with, model, gang, cluster.Observed)
	if seen != nil && seen.Samples >= f.settings.Trust {
		return seen
	}
	said := f.look(kind, with, model, gang, cluster.Declared)
	if said != nil && said.Basis == File {
		return said
	}
	if kind.Tenant() != "" {
		if site := f.look(cluster.Kind(kind.Name()), with, model, gang, cluster.Declared); site != nil {
			return site
		}
	}
	if said != nil {
		return said
	}
	if seen == nil && with == "" { // a gang that was never together
		if across := f.look(kind, cluster.AcrossSwitches, model, gang, cluster.Observed); across != nil {
			return across
		}
		return f.look(kind, cluster.Scattered, model, gang, cluster.Observed)
	}
	return seen
}

// Beside is Rate for a kind whose GPUs another one shares.
func (b *Book) Beside(kind, with cluster.Kind, model string, gang int) (cluster.Profile, bool) {
	if with == "" {
		return b.Rate(kind, model, gang)
	}
	if !b.facts.mentions(kind) && !b.facts.mentions(cluster.Kind(kind.Name())) { // there is nothing to go by
		return cluster.Profile{}, false
	}
	if p := b.facts.known(kind, b.facts.company(with), model, gang); p != nil {
		out := *p
		out.Kind, out.With = kind, with
		return out, true
	}
	return b.guess.estimatePair(kind, with, model, gang)
}

// mostGang is more GPUs than a job has.
const mostGang = 1 << 20

// CheckName tells what is wrong with a kind's name.
func CheckName(name string) error {
	if name == "" || name != cluster.CleanName(name) {
		return fmt.Errorf("%q is no kind: write up to %d letters, digits and ._-+#@: for one", name, cluster.MaxName)
	}
	return nil
}

// Check tells what is wrong with an entry.
func Check(p cluster.Profile) error { return check(&p) }

func check(p *cluster.Profile) error {
	err := cluster.CheckRate(p.Rate)
	switch {
	case err != nil:
	case CheckName(p.Kind.Name()) != nil:
		err = CheckName(p.Kind.Name())
	case p.Model == "":
		err = fmt.Errorf("kind %s: no GPU model is named", p.Kind)
	case p.Gang < 1 || p.Gang > mostGang:
		err = fmt.Errorf("kind %s on %s: a gang of %d GPUs cannot be", p.Kind, p.Model, p.Gang)
	case p.Source == cluster.Observed && (p.Samples < 1 || p.Rate == 0 || !(p.Spread >= 0)):
		err = fmt.Errorf("kind %s on %s: observed, but never", p.Kind, p.Model)
	}
	return err
}

// round cuts to twelve digits, so that what the last bits of a sum are does not matter.
func round(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	r, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 12, 64), 64)
	return r
}
