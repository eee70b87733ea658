package profile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// entries is what was declared and observed, in the order of Profile.Compare, each once. A tenant has at most so many
// of a source, and so has none the room of another.
type entries []cluster.Profile

// sorted gives entries that have been in a book in this order: of two about the same the later one
// counts, and of a tenant's that are too many the oldest do not. Those that make no sense are left out.
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

// shelf is what is bounded together: a tenant's entries of a source. The administrator's are on none.
type shelf struct {
	tenant string
	source cluster.Source
}

func shelfOf(e *cluster.Profile) (on shelf, bounded bool) {
	on = shelf{e.Kind.Tenant(), e.Source}
	return on, on.tenant != "" && e.Basis != File
}

// bounded takes out what is too much on each shelf: the oldest entries, by place those that are fresh only after all
// others.
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

// find gives where an entry about the same is, or would be.
func (x entries) find(p *cluster.Profile) (int, bool) {
	return slices.BinarySearchFunc(x, p, func(e cluster.Profile, p *cluster.Profile) int { return e.Compare(p) })
}

// oldest gives the oldest entry on the shelf of that at but, other than that one, and how many are there.
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

// begin gives where the entries of a kind, and of all kinds behind it, begin.
func (x entries) begin(kind cluster.Kind) int {
	at, _ := slices.BinarySearchFunc(x, kind, func(e cluster.Profile, kind cluster.Kind) int { return cmp.Compare(e.Kind, kind) })
	return at
}

// of gives where the entries of a kind begin and end.
func (x entries) of(kind cluster.Kind) (from, to int) {
	from = x.begin(kind)
	for to = from; to < len(x) && x[to].Kind == kind; to++ {
	}
	return from, to
}

// tenant gives between where all entries of a tenant's kinds are. There may be others; the site's are anywhere.
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

// company gives as what a kind counts that shares GPUs: the site's kind of its name where
// there is one, so that what is known beside one tenant's holds beside another's.
func (x entries) company(with cluster.Kind) cluster.Kind {
	if site := cluster.Kind(with.Name()); x.mentions(site) {
		return site
	}
	return with
}

// mentions tells whether there is any entry of a kind.
func (x entries) mentions(kind cluster.Kind) bool {
	at := x.begin(kind)
	return at < len(x) && x[at].Kind == kind
}

// look finds an entry.
func (x entries) look(kind, with cluster.Kind, model string, gang int, source cluster.Source) *cluster.Profile {
	at, there := x.find(&cluster.Profile{Kind: kind, With: with, Model: model, Gang: gang, Source: source})
	if !there {
		return nil
	}
	return &x[at]
}

// models gives the models that are spoken of, sorted.
func (x entries) models() []string {
	var out []string
	for i := range x {
		if at, there := slices.BinarySearch(out, x[i].Model); !there {
			out = slices.Insert(out, at, x[i].Model)
		}
	}
	return out
}
