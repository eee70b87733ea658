package baseline

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// halfLife is PriorityDecayHalfLife in the sample of Slurm's guide.
const halfLife = 14 * cluster.Day

// fairTree is Slurm's fair tree over two levels, tenants and their users: usage that halves every
// half-life. Its state is that of the last committed round, so that a preview leaves no trace.
// Users have numbers in the order in which they were first seen. Lists by user may be shorter than that: the rest is 0.
type fairTree struct {
	was, is used
	period  cluster.Span // of priorities; 0 = they are updated in every round
	numbers map[user]int
	names   []user    // by number
	order   []int     // all numbers, in the order of names
	of      []int     // buffer: the user of each job of the round
	has     []bool    // buffer, by user: it has usage or a job
	rank    []ranked  // buffer
	factor  []float64 // buffer, by user
}

// used is GPU time by user, up to at. seen is what priorities go by.
type used struct {
	at       cluster.Instant
	by, seen []float64
}

type user struct{ tenant, name string }

func (u user) compare(b user) int {
	return cmp.Or(strings.Compare(u.tenant, b.tenant), strings.Compare(u.name, b.name))
}

// number gives the number of a user, a new one to a new user.
func (f *fairTree) number(rec *cluster.Record) int {
	u := user{rec.Tenant, rec.User}
	n, ok := f.numbers[u]
	if !ok {
		if f.numbers == nil {
			f.numbers = map[user]int{}
		}
		n = len(f.names)
		f.numbers[u], f.names = n, append(f.names, u)
		at, _ := slices.BinarySearchFunc(f.order, u, func(n int, u user) int { return f.names[n].compare(u) })
		f.order = slices.Insert(f.order, at, n)
	}
	return n
}

// charge brings the usage up to now.
func (f *fairTree) charge(r *Round) {
	if f.is.at == r.Snapshot.Ledger.At {
		f.was = f.is
	}
	f.is = used{at: r.Now, by: make([]float64, len(f.was.by), len(f.names))}
	decay := math.Exp2(-float64(r.Now.Sub(f.was.at)) / float64(halfLife))
	for n, gpus := range f.was.by {
		f.is.by[n] = gpus * decay
	}
	for i := range r.Field.In.Records {
		if got := r.Field.In.Records[i].Alloc - r.Snapshot.Cases[i].Record.Alloc; got > 0 {
			n := f.number(&r.Field.In.Records[i])
			for len(f.is.by) <= n {
				f.is.by = append(f.is.by, 0)
			}
			f.is.by[n] += float64(got)
		}
	}
	if f.is.seen = f.is.by; f.period > 0 && f.was.seen != nil && f.was.at/cluster.Instant(f.period) == r.Now/cluster.Instant(f.period) {
		f.is.seen = f.was.seen
	}
}

// usage gives the usage of a user that priorities go by.
func (f *fairTree) usage(n int) float64 {
	if n < len(f.is.seen) {
		return f.is.seen[n]
	}
	return 0
}

// ranked is a user in the order of the walk: by the tenant's level fair share (share / usage,
// both among siblings), then by its own.
type ranked struct {
	tenant, own float64
	number      int
}

func (a ranked) compare(b ranked) int {
	return cmp.Or(cmp.Compare(b.tenant, a.tenant), cmp.Compare(b.own, a.own))
}

// factors gives the user of each job, and the fair-share factor of every user with usage or a job (0 = it has neither). The walk starts at the
// root and visits the child with the highest level fair share first; the position is the rank,
// and rank / number of users the factor. Users of tenants with equal level fair shares are ranked
// together.
func (f *fairTree) factors(r *Round) (of []int, factor []float64) {
	f.of = f.of[:0]
	for k := range r.Jobs {
		f.of = append(f.of, f.number(&r.Field.In.Records[r.Jobs[k].Case]))
	}
	f.has, f.factor = append(f.has[:0], make([]bool, len(f.names))...), append(f.factor[:0], make([]float64, len(f.names))...)
	for n, gpus := range f.is.by {
		f.has[n] = gpus > 0
	}
	for k := range r.Jobs {
		f.has[f.of[k]] = f.has[f.of[k]] || r.Jobs[k].Tenant >= 0
	}
	weights, all := 0.0, 0.0
	for i := range r.Snapshot.Tenants {
		weights += float64(r.Snapshot.Tenants[i].Weight)
	}
	users := make([]int, 0, len(f.order))
	for _, n := range f.order {
		if f.has[n] {
			users = append(users, n)
			all += f.usage(n)
		}
	}
	f.rank = f.rank[:0]
	for from := 0; from < len(users); {
		tenant, to, usage, weight := f.names[users[from]].tenant, from, 0.0, 0.0
		for ; to < len(users) && f.names[users[to]].tenant == tenant; to++ {
			usage += f.usage(users[to])
		}
		for i := range r.Snapshot.Tenants { // one that has left weighs nothing
			if r.Snapshot.Tenants[i].Name == tenant {
				weight = float64(r.Snapshot.Tenants[i].Weight)
			}
		}
		share := level(weight/weights, usage, all)
		for _, n := range users[from:to] {
			f.rank = append(f.rank, ranked{share, level(1/float64(to-from), f.usage(n), usage), n})
		}
		from = to
	}
	slices.SortFunc(f.rank, ranked.compare) // users that are equal have one rank, in any order
	rank := len(f.rank)
	for i, e := range f.rank {
		if i > 0 && f.rank[i-1].compare(e) != 0 {
			rank = len(f.rank) - i
		}
		f.factor[e.number] = float64(rank) / float64(len(f.rank))
	}
	return f.of, f.factor
}

// level gives a level fair share: maximal without usage, 0 without a share.
func level(share, usage, all float64) float64 {
	switch {
	case !(share > 0): // also if all shares are 0
		return 0
	case usage == 0:
		return math.Inf(1)
	}
	return share * all / usage
}
