package profile

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Settings are what an administrator may want otherwise.
type Settings struct {
	Recent int          // samples that an average looks back on
	Trust  int          // samples from which on what is observed replaces what is declared
	Least  cluster.Span // between two reports that make a sample
	// Entries is how many entries a tenant may have in the book of what was observed, and as many of what its
	// jobs declared; the oldest ones go.
	Entries int
	// Estimate is whether single jobs' unknown rates are estimated. Pairs' always are.
	Estimate bool
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
	settings Settings
	entries  []cluster.Profile // sorted; declared and observed ones
	paces    []cluster.Pace    // sorted by key
	tables   map[int]*table    // by gang size, as pairs: made when asked for,
	pairs    map[int]*prints   // dropped when entries change
}

// New opens a book with what was remembered. Entries that make no sense are left out.
func New(s Settings, entries []cluster.Profile, paces []cluster.Pace) *Book {
	b := &Book{settings: s}
	b.drop()
	b.open(entries)
	for i := range paces {
		at, there := b.pace(paces[i].Key)
		if !there {
			b.paces = slices.Insert(b.paces, at, paces[i])
		}
	}
	return b
}

// open fills the book with entries, which have been in one in this order: of two about the same the later one
// counts, and of a tenant's that are too many the oldest do not.
func (b *Book) open(entries []cluster.Profile) {
	b.entries = make([]cluster.Profile, 0, len(entries))
	for i := range entries {
		if p := &entries[i]; p.Source != cluster.Estimated && check(p) == nil {
			b.entries = append(b.entries, *p)
		}
	}
	slices.SortStableFunc(b.entries, func(x, y cluster.Profile) int { return x.Compare(&y) })
	kept := b.entries[:0]
	for _, e := range b.entries {
		if n := len(kept); n > 0 && kept[n-1].Compare(&e) == 0 {
			kept[n-1] = e
			continue
		}
		kept = append(kept, e)
	}
	b.entries = kept
	b.bound(make([]bool, len(b.entries)))
}

// shelf is what is bounded together: a tenant's entries of a source. The administrator's are on none.
type shelf struct {
	tenant string
	source cluster.Source
}

func shelfOf(e *cluster.Profile) (on shelf, bounded bool) {
	on = shelf{e.Kind.Tenant(), e.Source}
	return on, on.tenant != "" && e.Basis != File
}

// bound takes out what is too much on each shelf: the oldest entries, by place those that are new only after all
// others.
func (b *Book) bound(fresh []bool) {
	most := max(b.settings.Entries, 1)
	on := map[shelf][]int{}
	for i := range b.entries {
		if s, bounded := shelfOf(&b.entries[i]); bounded {
			on[s] = append(on[s], i)
		}
	}
	out := make([]bool, len(b.entries))
	surplus := false
	for _, all := range on { // each by itself
		if len(all) <= most {
			continue
		}
		slices.SortStableFunc(all, func(i, j int) int {
			if fresh[i] != fresh[j] {
				if fresh[j] {
					return -1
				}
				return 1
			}
			return cmp.Compare(b.entries[i].At, b.entries[j].At)
		})
		for _, i := range all[:len(all)-most] {
			out[i], surplus = true, true
		}
	}
	if !surplus {
		return
	}
	kept := b.entries[:0]
	for i := range b.entries {
		if !out[i] {
			kept = append(kept, b.entries[i])
		}
	}
	b.entries = kept
}

// Entries gives what was declared and observed, sorted.
func (b *Book) Entries() []cluster.Profile { return slices.Clone(b.entries) }

// Paces gives what is remembered of jobs that report, by key.
func (b *Book) Paces() []cluster.Pace { return slices.Clone(b.paces) }

// File is the basis of what an administrator declares. No job's own word replaces it.
const File = "file"

// Declare takes the word of somebody, named in p.Basis. A later word of a job replaces
// an earlier one, the administrator's replaces both.
func (b *Book) Declare(p cluster.Profile) error {
	p.Source, p.Samples, p.Spread = cluster.Declared, 0, 0
	p.With = b.company(p.With)
	if err := check(&p); err != nil {
		return err
	}
	if p.Kind.Tenant() == "" && p.Basis != File {
		return fmt.Errorf("kind %s: only the administrator declares what holds for every tenant", p.Kind)
	}
	at, there := b.find(&p)
	if there && b.entries[at].Basis == File && p.Basis != File {
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
	merged := make([]cluster.Profile, 0, len(b.entries)+len(said))
	fresh := make([]bool, 0, cap(merged))
	for old := b.entries; len(old) > 0 || len(said) > 0; {
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
	b.drop()
	b.entries = merged
	b.bound(fresh)
}

// Withdraw takes back all that somebody declared.
func (b *Book) Withdraw(basis string) {
	b.drop()
	b.entries = slices.DeleteFunc(b.entries, func(p cluster.Profile) bool {
		return p.Source == cluster.Declared && p.Basis == basis
	})
}

// Forget drops the paces of jobs that are gone. What they taught stays.
func (b *Book) Forget(gone func(cluster.JobKey) bool) {
	b.paces = slices.DeleteFunc(b.paces, func(p cluster.Pace) bool { return gone(p.Key) })
}

func (b *Book) find(p *cluster.Profile) (int, bool) {
	return slices.BinarySearchFunc(b.entries, p, func(e cluster.Profile, p *cluster.Profile) int { return e.Compare(p) })
}

func (b *Book) pace(key cluster.JobKey) (int, bool) {
	return slices.BinarySearchFunc(b.paces, key, func(p cluster.Pace, key cluster.JobKey) int { return int(min(max(p.Key-key, -1), 1)) })
}

// put writes an entry in, in the place of one about the same. If that is one too many on its shelf, the oldest there
// goes.
func (b *Book) put(p *cluster.Profile) {
	at, there := b.find(p)
	if there {
		b.entries[at] = *p
		b.changed(p.Kind)
		return
	}
	b.drop()
	b.entries = slices.Insert(b.entries, at, *p)
	if oldest, n := b.oldest(at); n > max(b.settings.Entries, 1) {
		b.entries = slices.Delete(b.entries, oldest, oldest+1)
	}
}

// oldest gives the oldest entry on the shelf of that at but, other than that one, and how many are there.
func (b *Book) oldest(but int) (oldest, n int) {
	oldest = -1
	mine, bounded := shelfOf(&b.entries[but])
	if !bounded {
		return -1, 0
	}
	from, to := b.tenant(mine.tenant)
	for i := from; i < to; i++ {
		e := &b.entries[i]
		if s, bounded := shelfOf(e); !bounded || s != mine {
			continue
		}
		if n++; i != but && (oldest < 0 || e.At < b.entries[oldest].At) {
			oldest = i
		}
	}
	return oldest, n
}

// of gives where the entries of a kind begin and end.
func (b *Book) of(kind cluster.Kind) (from, to int) {
	from, _ = slices.BinarySearchFunc(b.entries, kind, func(e cluster.Profile, kind cluster.Kind) int { return cmp.Compare(e.Kind, kind) })
	for to = from; to < len(b.entries) && b.entries[to].Kind == kind; to++ {
	}
	return from, to
}

// tenant gives between where all entries of a tenant's kinds are. There may be others; the site's are anywhere.
func (b *Book) tenant(tenant string) (from, to int) {
	if tenant == "" {
		return 0, len(b.entries)
	}
	first := cluster.KindOf(tenant, "")
	from, _ = slices.BinarySearchFunc(b.entries, first, func(e cluster.Profile, kind cluster.Kind) int { return cmp.Compare(e.Kind, kind) })
	for to = from; to < len(b.entries) && strings.HasPrefix(string(b.entries[to].Kind), string(first)); to++ {
	}
	return from, to
}

// drop forgets what was worked out of the entries.
func (b *Book) drop() { b.tables, b.pairs = map[int]*table{}, map[int]*prints{} }

// changed forgets what was worked out of a kind's entries.
func (b *Book) changed(kind cluster.Kind) {
	if kind.Tenant() == "" {
		b.drop()
	}
	for _, t := range b.tables {
		delete(t.of, kind.Tenant())
	}
	for _, f := range b.pairs {
		delete(f.like, kind)
	}
}

// company gives as what a kind counts that shares GPUs: the site's kind of its name where
// there is one, so that what is known beside one tenant's holds beside another's.
func (b *Book) company(with cluster.Kind) cluster.Kind {
	if site := cluster.Kind(with.Name()); b.mentions(site) {
		return site
	}
	return with
}

// mentions tells whether there is any entry of a kind.
func (b *Book) mentions(kind cluster.Kind) bool {
	at, _ := slices.BinarySearchFunc(b.entries, kind, func(e cluster.Profile, kind cluster.Kind) int { return cmp.Compare(e.Kind, kind) })
	return at < len(b.entries) && b.entries[at].Kind == kind
}

// look finds an entry.
func (b *Book) look(kind, with cluster.Kind, model string, gang int, source cluster.Source) *cluster.Profile {
	at, there := b.find(&cluster.Profile{Kind: kind, With: with, Model: model, Gang: gang, Source: source})
	if !there {
		return nil
	}
	return &b.entries[at]
}

// known gives the best that is known of a kind, without estimating: what was observed often
// enough, else what the administrator declared for this kind, else for the site's of the
// same name, else what jobs declared, else what was observed once or twice.
func (b *Book) known(kind, with cluster.Kind, model string, gang int) *cluster.Profile {
	seen := b.look(kind, with, model, gang, cluster.Observed)
	if seen != nil && seen.Samples >= b.settings.Trust {
		return seen
	}
	said := b.look(kind, with, model, gang, cluster.Declared)
	if said != nil && said.Basis == File {
		return said
	}
	if kind.Tenant() != "" {
		if site := b.look(cluster.Kind(kind.Name()), with, model, gang, cluster.Declared); site != nil {
			return site
		}
	}
	if said != nil {
		return said
	}
	return seen
}

// Rate gives the throughput of a kind with its GPUs to itself; false where it is not known
// and cannot be estimated. A rate of 0 says that it does not run there.
func (b *Book) Rate(kind cluster.Kind, model string, gang int) (cluster.Profile, bool) {
	return b.Beside(kind, "", model, gang)
}

// Beside is Rate for a kind whose GPUs another one shares.
func (b *Book) Beside(kind, with cluster.Kind, model string, gang int) (cluster.Profile, bool) {
	if !b.mentions(kind) && !b.mentions(cluster.Kind(kind.Name())) { // there is nothing to go by
		return cluster.Profile{}, false
	}
	if p := b.known(kind, b.company(with), model, gang); p != nil {
		out := *p
		out.Kind, out.With = kind, with
		return out, true
	}
	if with != "" {
		return b.estimatePair(kind, with, model, gang)
	}
	if b.settings.Estimate {
		return b.estimate(kind, model, gang)
	}
	return cluster.Profile{}, false
}

// The bounds of what is believed: a step in a thousand years, and a billion a second.
const (
	slowest = 1e-10
	fastest = 1e9
	// widest is how many times as fast a job can be on one GPU model as on another.
	widest = 10_000
	// mostSteps is up to where a float64 counts every step.
	mostSteps = 1 << 53
)

// countable tells whether n can be a number of steps.
func countable(n float64) error {
	if !(n >= 0 && n <= mostSteps) { // NaN too
		return fmt.Errorf("%v cannot be: write a number from 0 to %d", n, int64(mostSteps))
	}
	return nil
}

// usable tells whether a rate can be.
func usable(rate float64) error {
	if rate != 0 && !(rate >= slowest && rate <= fastest) {
		return fmt.Errorf("%v steps a second cannot be: write 0 where the job does not run, else a number from %g to %g", rate, slowest, fastest)
	}
	return nil
}

// mostGang is more GPUs than a job has.
const mostGang = 1 << 20

// CheckName tells what is wrong with a kind's name.
func CheckName(name string) error {
	if name == "" || name != clean(name) {
		return fmt.Errorf("%q is no kind: write up to %d letters, digits and ._-+#@: for one", name, mostLetters)
	}
	return nil
}

// Check tells what is wrong with an entry.
func Check(p cluster.Profile) error { return check(&p) }

func check(p *cluster.Profile) error {
	err := usable(p.Rate)
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
