package profile

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// entries is the declarations and observations, in the order of Profile.Compare, each once. Each
// tenant has a maximum number per source, so that none displaces another's.
type entries []cluster.Profile

// sorted orders entries that were added in this order: of two about the same subject the later
// counts, and a tenant's oldest excess entries are dropped. So are invalid ones.
func sorted(list []cluster.Profile, most int) entries {
	x := make(entries, 0, len(list))
	for i := range list {
		if p := &list[i]; p.Source != cluster.Estimated && check(p) == nil {
			x = append(x, *p)
		}
	}
	slices.SortStableFunc(x, func(a, b cluster.Profile) int { return a.Compare(&b) })
	kept := x[:0]
	for _, e := range x {
		if n := len(kept); n > 0 && kept[n-1].Compare(&e) == 0 {
			kept[n-1] = e
			continue
		}
		kept = append(kept, e)
	}
	return kept.bounded(most, make([]bool, len(kept)))
}

// shelf is a bounded set: a tenant's entries of a source. The administrator's are on none.
type shelf struct {
	tenant string
	source cluster.Source
}

func shelfOf(e *cluster.Profile) (on shelf, bounded bool) {
	on = shelf{e.Kind.Tenant(), e.Source}
	return on, on.tenant != "" && e.Basis != File
}

// bounded drops the excess of each shelf: the oldest entries, and those marked fresh only after
// all others.
func (x entries) bounded(most int, fresh []bool) entries {
	most = max(most, 1)
	on := map[shelf][]int{}
	for i := range x {
		if s, bounded := shelfOf(&x[i]); bounded {
			on[s] = append(on[s], i)
		}
	}
	out := make([]bool, len(x))
	surplus := false
	for _, all := range on { // each separately
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
			return cmp.Compare(x[i].At, x[j].At)
		})
		for _, i := range all[:len(all)-most] {
			out[i], surplus = true, true
		}
	}
	if !surplus {
		return x
	}
	kept := x[:0]
	for i := range x {
		if !out[i] {
			kept = append(kept, x[i])
		}
	}
	return kept
}

// find gives the index of an entry about the same subject, or the place for it.
func (x entries) find(p *cluster.Profile) (int, bool) {
	at := sort.Search(len(x), func(i int) bool { return x[i].Compare(p) >= 0 }) // entries are large: none is copied
	return at, at < len(x) && x[at].Compare(p) == 0
}

// oldest gives the oldest entry on the shelf of the one at but, except that one, and the number
// of entries there.
func (x entries) oldest(but int) (oldest, n int) {
	oldest = -1
	mine, bounded := shelfOf(&x[but])
	if !bounded {
		return -1, 0
	}
	from, to := x.tenant(mine.tenant)
	for i := from; i < to; i++ {
		e := &x[i]
		if s, bounded := shelfOf(e); !bounded || s != mine {
			continue
		}
		if n++; i != but && (oldest < 0 || e.At < x[oldest].At) {
			oldest = i
		}
	}
	return oldest, n
}

// begin gives the start of the entries of a kind, and of all later kinds.
func (x entries) begin(kind cluster.Kind) int {
	at, _ := slices.BinarySearchFunc(x, kind, func(e cluster.Profile, kind cluster.Kind) int { return cmp.Compare(e.Kind, kind) })
	return at
}

// tenant gives a range with all entries of a tenant's kinds. It may contain others; the site's
// are anywhere.
func (x entries) tenant(tenant string) (from, to int) {
	if tenant == "" {
		return 0, len(x)
	}
	first := cluster.KindOf(tenant, "")
	from = x.begin(first)
	for to = from; to < len(x) && strings.HasPrefix(string(x[to].Kind), string(first)); to++ {
	}
	return from, to
}

// company gives the kind under which a job that shares GPUs counts: the site's kind of its name
// if there is one, so that measurements beside one tenant's job apply to another's.
func (x entries) company(with cluster.Kind) cluster.Kind {
	site := cluster.Kind(with.Name())
	if at := x.begin(site); at < len(x) && x[at].Kind == site {
		return site
	}
	return with
}

// place is where the entries of a kind are.
type place struct{ from, to int }

// of gives the range of a kind's entries.
func (f *facts) of(kind cluster.Kind) (from, to int) {
	if f.places == nil {
		f.places = map[cluster.Kind]place{}
		for i := 0; i < len(f.entries); {
			k := f.entries[i].Kind
			p := place{from: i}
			for i < len(f.entries) && f.entries[i].Kind == k {
				i++
			}
			p.to = i
			f.places[k] = p
		}
	}
	p := f.places[kind]
	return p.from, p.to
}

// mentions tells whether a kind has any entry.
func (f *facts) mentions(kind cluster.Kind) bool {
	from, to := f.of(kind)
	return from < to
}

// look finds an entry.
func (f *facts) look(kind, with cluster.Kind, model string, gang int, source cluster.Source) *cluster.Profile {
	from, to := f.of(kind)
	at, there := f.entries[from:to].find(&cluster.Profile{Kind: kind, With: with, Model: model, Gang: gang, Source: source})
	if !there {
		return nil
	}
	return &f.entries[from+at]
}

// models gives the models of all entries, sorted.
func (x entries) models() []string {
	var out []string
	for i := range x {
		if at, there := slices.BinarySearch(out, x[i].Model); !there {
			out = slices.Insert(out, at, x[i].Model)
		}
	}
	return out
}
