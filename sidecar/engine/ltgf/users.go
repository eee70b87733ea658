package ltgf

import (
	"cmp"
	"iter"
	"slices"
	"sort"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// userBook is the accounts of users during an update.
type userBook struct {
	asked [512]int32        // cache: accounts of recently queried users, + 1, by spot
	at    []int             // by case: its user's account in the ledger; -1 = none
	now   int               // the account of the user whose job is being charged; -1 = none
	used  []cluster.GPUTime // by account, then pool
	kept  []cluster.GPUTime // likewise: kept from others without use, as in usage: granted, gathered and stranded
}

// openUsers copies the accounts of users, without those of users that had no job in the window. on is reused.
func (b *books) openUsers(s *cluster.Snapshot, on []cluster.UserAccount) {
	if b.users.now = -1; len(s.Ledger.Users) > 0 || s.Settings.Users != cluster.UsersByJob {
		b.ledger.Users = withoutIdle(copyUsers(s.Ledger.Users, on), b.now, b.settings.Window)
	}
}

// userRow gives the account of a user, which it opens if there is none; -1 = its tenant has none. The first known accounts are sorted. As
// with tenants, comparing a cached name is faster than a search.
func userRow(b *books, known int, tenant, user string) int {
	spot := uint32(len(tenant))
	for i := range len(user) {
		spot = 31*spot + uint32(user[i])
	}
	users := b.ledger.Users
	is := func(row int) bool { return row < len(users) && users[row].User == user && users[row].Tenant == tenant }
	asked := &b.users.asked[spot%uint32(len(b.users.asked))]
	if *asked > 0 && is(int(*asked-1)) {
		return int(*asked - 1)
	}
	row, ok := sort.Find(known, func(k int) int {
		return cmp.Or(strings.Compare(tenant, users[k].Tenant), strings.Compare(user, users[k].User))
	})
	for k := known; !ok && k < len(users); k++ {
		row, ok = k, is(k)
	}
	if !ok {
		if b.row(tenant) < 0 {
			return -1
		}
		row = len(users)
		b.ledger.Users = append(users, cluster.UserAccount{Tenant: tenant, User: user, Since: b.now})
	}
	*asked = int32(row + 1)
	return row
}

// copyUsers copies accounts into the buffers of unused ones.
func copyUsers(from, on []cluster.UserAccount) []cluster.UserAccount {
	out := slices.Grow(on[:0], len(from))
	for i := range from {
		var wants []cluster.UserDemand
		if i < len(on) {
			wants = on[:cap(on)][i].Wants[:0]
		}
		out = append(out, from[i])
		out[i].Wants = append(wants, from[i].Wants...)
	}
	return out
}

// sliceOf gives the moment to note for a user with a job: the start of a 56th of the window, so that few
// accounts change in a round.
func sliceOf(now cluster.Instant, window cluster.Span) cluster.Instant {
	return now - now%max(cluster.Instant(window)/cuts, 1)
}

// withoutIdle drops the accounts of users without jobs in the window. The credit of such a user is taken off the
// debtors of its tenant, and its debt off the creditors, in proportion, so that the accounts still sum to 0.
func withoutIdle(users []cluster.UserAccount, now cluster.Instant, window cluster.Span) []cluster.UserAccount {
	over := func(u cluster.UserAccount) bool { return window > 0 && now.Sub(u.Seen) > window }
	idle := false
	for i := range users { // they are large: no copies
		idle = idle || window > 0 && now.Sub(users[i].Seen) > window
	}
	if !idle {
		return users
	}
	for lo, hi := range byTenant(users) {
		rows := users[lo:hi]
		own, off := make([]cluster.GPUTime, len(rows)), make([]cluster.GPUTime, len(rows))
		var gone, sum cluster.GPUTime
		for i := range rows {
			if over(rows[i]) {
				gone += rows[i].Owed
			}
		}
		for i := range rows {
			if !over(rows[i]) && (rows[i].Owed < 0) == (gone > 0) {
				own[i] = max(rows[i].Owed, -rows[i].Owed)
				sum += own[i]
			}
		}
		share(off, own, 1, sum, gone)
		for i := range rows {
			rows[i].Owed += off[i]
		}
	}
	return slices.DeleteFunc(users, over)
}

// sortUsers sorts accounts by tenant and user, and renumbers at, the cases' accounts.
func sortUsers(users []cluster.UserAccount, at []int) []cluster.UserAccount {
	compare := func(i, j int) int {
		x, y := &users[i], &users[j]
		return cmp.Or(strings.Compare(x.Tenant, y.Tenant), strings.Compare(x.User, y.User))
	}
	order := make([]int, len(users))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, compare)
	out, now := make([]cluster.UserAccount, len(order)), make([]int, len(order))
	for to, from := range order {
		out[to], now[from] = users[from], to
	}
	for i, row := range at {
		if row >= 0 {
			at[i] = now[row]
		}
	}
	return out
}

// byTenant gives the first account of each tenant, and the one after its last.
func byTenant(users []cluster.UserAccount) iter.Seq2[int, int] {
	return func(yield func(lo, hi int) bool) {
		for lo := 0; lo < len(users); {
			hi := lo + 1
			for hi < len(users) && users[hi].Tenant == users[lo].Tenant {
				hi++
			}
			if !yield(lo, hi) {
				return
			}
			lo = hi
		}
	}
}

// usedBy books GPU time of the job that is being charged to its user.
func (b *books) usedBy(pool int, used cluster.GPUTime) {
	if b.users.now >= 0 {
		b.users.used[b.users.now*len(b.ledger.Pools)+pool] += used
	}
}

// keptBy books GPU time that jobs of a user kept from others without using it.
func (b *books) keptBy(user, pool int, kept cluster.GPUTime) {
	if user >= 0 {
		b.users.kept[user*len(b.ledger.Pools)+pool] += kept
	}
}

// settleUsers books what the users of each tenant received in an interval dt against equal parts of it. GPU time
// that a user's jobs kept from others counts for its debts as received, but is not reported as received or due.
// If a policy divides the models, a job may use GPUs of several pools: then all pools are one.
func (b *books) settleUsers(dt cluster.Span) {
	if b.settings.Users == cluster.UsersByJob || dt <= 0 {
		return
	}
	for i := range b.ledger.Users {
		turnOver(&b.ledger.Users[i], b.now, b.settings.Window)
	}
	pools := len(b.ledger.Pools)
	for lo, hi := range byTenant(b.ledger.Users) {
		for first := 0; first < pools; {
			last := first + 1
			if b.settings.Divides() {
				last = pools
			}
			b.divide(lo, hi, first, last, dt)
			first = last
		}
	}
}

// divide books what the users lo to hi-1 received of the pools first to last-1. With the total G, demands d
// and receipts g of the n users that ever had demand there, user i is due min(max(d_i, g_i), L), where L is
// such that the dues sum to G. Shortfalls and surpluses are moved as between tenants (see accounts.settle);
// a surplus with which a user gets back what it lent is no debt. A user that is due less than G/n has lent the rest.
func (b *books) divide(lo, hi, first, last int, dt cluster.Span) {
	rows, n := b.ledger.Users[lo:hi], len(b.ledger.Pools)
	var all, allUsed cluster.GPUTime
	for i := lo; i < hi; i++ {
		for p := first; p < last; p++ {
			allUsed += b.users.used[i*n+p]
			all += b.users.used[i*n+p] + b.users.kept[i*n+p]
		}
	}
	if all == 0 {
		return
	}
	mark := b.lists.used
	defer func() { b.lists.used = mark }()
	zeros := func() []cluster.GPUTime { return b.lists.zeros(len(rows)) }
	got, used, wants, sorted := zeros(), zeros(), zeros(), zeros()
	members := 0
	for i := range rows {
		for p := first; p < last; p++ {
			used[i] += b.users.used[(lo+i)*n+p]
			got[i] += b.users.kept[(lo+i)*n+p]
		}
		got[i] += used[i]
		demand, member := demandIn(&rows[i], b.ledger.Pools[first:last])
		if wants[i] = max(Credit(demand, dt), got[i]); member || got[i] > 0 {
			members++
		}
	}
	copy(sorted, wants)
	slices.Sort(sorted)
	usedPart, part := level(allUsed, sorted), level(all, sorted)
	lacks, over, owed := zeros(), zeros(), zeros()
	most := cluster.GPUTime(cluster.MulDiv(int64(all), int64(b.settings.CreditCap), int64(dt))) // the tenant's for that time
	equal := all / cluster.GPUTime(members)
	var short, more cluster.GPUTime
	for i := range rows {
		u := &rows[i]
		due := min(wants[i], part)
		u.Alloc += used[i]
		u.Due += min(wants[i], usedPart)
		lacks[i] = min(max(due-got[i], 0), max(most-u.Owed, 0))
		back := min(u.Lent, max(got[i]-due, 0))
		over[i] = max(got[i]-due, 0) - back
		u.Lent -= back
		if _, member := demandIn(u, b.ledger.Pools[first:last]); member && due < equal {
			u.Lent += min(equal-due, max(most/cluster.GPUTime(members)-u.Lent, 0))
		}
		short, more = short+lacks[i], more+over[i]
	}
	moved := min(short, more)
	share(owed, lacks, 1, short, moved)
	share(owed, over, 1, more, -moved)
	for i := range rows {
		rows[i].Owed += owed[i]
	}
}

// level gives the largest due of a max-min division of an amount: demands below it are due whole. Demands
// are sorted, and must sum to at least the amount.
func level(amount cluster.GPUTime, sorted []cluster.GPUTime) cluster.GPUTime {
	for i, w := range sorted {
		left := cluster.GPUTime(len(sorted) - i)
		if w >= (amount+left-1)/left {
			return amount / left
		}
		amount -= w
	}
	return sorted[len(sorted)-1]
}

// demandIn gives a user's demand in pools, and whether it ever had some there.
func demandIn(u *cluster.UserAccount, pools []cluster.PoolAccount) (sum cluster.MicroGPU, ever bool) {
	for _, d := range u.Wants {
		for p := range pools {
			if pools[p].Pool == d.Pool {
				sum, ever = sum+d.GPUs, true
				break
			}
		}
	}
	return sum, ever
}

// turnOver begins a new half of the window in an account.
func turnOver(u *cluster.UserAccount, now cluster.Instant, window cluster.Span) {
	for half := window / 2; half > 0 && now.Sub(u.Since) >= half; {
		u.Before, u.Alloc, u.Due = cluster.UserTime{Alloc: u.Alloc, Due: u.Due}, 0, 0
		if u.Since = u.Since.Add(half); now.Sub(u.Since) >= window {
			u.Since = now
		}
	}
}

// wantBy sets the demand of users for the next interval: in is, by claimant, the pool in which its demand
// counts.
func wantBy(l *cluster.Ledger, users []int, claimants []Claimant, in []int) {
	for k, c := range claimants {
		if users[c.Case] < 0 {
			continue
		}
		u := &l.Users[users[c.Case]]
		pool := l.Pools[in[k]].Pool
		at := 0
		for at < len(u.Wants) && u.Wants[at].Pool != pool {
			at++
		}
		if at == len(u.Wants) {
			u.Wants = append(u.Wants, cluster.UserDemand{Pool: pool})
		}
		u.Wants[at].GPUs += c.In(in[k])
	}
}
