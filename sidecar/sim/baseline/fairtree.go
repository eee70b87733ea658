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
type fairTree struct {
	was, is used
	period  cluster.Span // of priorities; 0 = they are updated in every round
}

// used is GPU time by user, up to at. seen is what priorities go by.
type used struct {
	at       cluster.Instant
	by, seen map[user]float64
}

type user struct{ tenant, name string }

func (r *Round) userOf(j *Job) user {
	return user{r.Field.In.Records[j.Case].Tenant, r.Field.In.Records[j.Case].User}
}

// charge brings the usage up to now.
func (f *fairTree) charge(r *Round) {
	if f.is.at == r.Snapshot.Ledger.At {
		f.was = f.is
	}
	f.is = used{at: r.Now, by: make(map[user]float64, len(f.was.by)+1)}
	decay := math.Exp2(-float64(r.Now.Sub(f.was.at)) / float64(halfLife))
	for u, gpus := range f.was.by {
		f.is.by[u] = gpus * decay
	}
	for i := range r.Field.In.Records {
		if got := r.Field.In.Records[i].Alloc - r.Snapshot.Cases[i].Record.Alloc; got > 0 {
			f.is.by[user{r.Field.In.Records[i].Tenant, r.Field.In.Records[i].User}] += float64(got)
		}
	}
	if f.is.seen = f.is.by; f.period > 0 && f.was.seen != nil && f.was.at/cluster.Instant(f.period) == r.Now/cluster.Instant(f.period) {
		f.is.seen = f.was.seen
	}
}

// ranked is a user in the order of the walk: by the tenant's level fair share (share / usage,
// both among siblings), then by its own.
type ranked struct {
	user
	tenant, own float64
}

func (a ranked) compare(b ranked) int {
	return cmp.Or(cmp.Compare(b.tenant, a.tenant), cmp.Compare(b.own, a.own))
}

// sums totals a tenant's users.
type sums struct{ usage, users, weight float64 }

// factors gives the fair-share factor of every user with usage or a job. The walk starts at the
// root and visits the child with the highest level fair share first; the position is the rank,
// and rank / number of users the factor. Users of tenants with equal level fair shares are ranked
// together.
func (f *fairTree) factors(r *Round) map[user]float64 {
	users := f.users(r)
	tenants, root := make(map[string]*sums, len(r.Snapshot.Tenants)), sums{}
	for _, t := range r.Snapshot.Tenants {
		tenants[t.Name] = &sums{weight: float64(t.Weight)}
		root.weight += float64(t.Weight)
	}
	for _, u := range users {
		if tenants[u.tenant] == nil { // it has left
			tenants[u.tenant] = &sums{}
		}
		tenants[u.tenant].usage += f.is.seen[u]
		tenants[u.tenant].users++
		root.usage += f.is.seen[u]
	}
	line := make([]ranked, len(users))
	for i, u := range users {
		t := tenants[u.tenant]
		line[i] = ranked{u, level(t.weight/root.weight, t.usage, root.usage), level(1/t.users, f.is.seen[u], t.usage)}
	}
	slices.SortStableFunc(line, ranked.compare)
	factors, rank := make(map[user]float64, len(users)), len(line)
	for i, e := range line {
		if i > 0 && line[i-1].compare(e) != 0 {
			rank = len(line) - i
		}
		factors[e.user] = float64(rank) / float64(len(line))
	}
	return factors
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

// users gives all users with usage or a job, in order.
func (f *fairTree) users(r *Round) []user {
	all := make(map[user]bool, len(f.is.by))
	for u := range f.is.by {
		all[u] = true
	}
	for k := range r.Jobs {
		if j := &r.Jobs[k]; j.Tenant >= 0 {
			all[r.userOf(j)] = true
		}
	}
	users := make([]user, 0, len(all))
	for u := range all {
		users = append(users, u)
	}
	slices.SortFunc(users, func(a, b user) int {
		return cmp.Or(strings.Compare(a.tenant, b.tenant), strings.Compare(a.name, b.name))
	})
	return users
}
