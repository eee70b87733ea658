package entitle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/speeds"
)

// Open sets the queues and the parties, with their accounts in every pool, and takes the ledger of the facts over into the memory of an earlier
// one. It returns the number of GPUs in every pool that tenants can share.
func (d *Due) Open(in *round.Facts, found *eligible.Found, s *speeds.Speeds, memory cluster.Ledger) []int {
	x := &shares{in: in, found: found, speeds: s, due: d}
	d.Ledger = in.Ledger
	d.Ledger.Tenants = append(memory.Tenants[:0], in.Ledger.Tenants...)
	d.Ledger.Pools = append(memory.Pools[:0], in.Ledger.Pools...)
	d.Queued = slices.Grow(d.Queued[:0], len(in.Cases))[:len(in.Cases)]
	d.Queues, d.Parties, d.JobsQueue = d.Queues[:0], d.Parties[:0], false
	d.PartyRows, d.TenantRows = d.PartyRows.Zeroed(0, 0), d.TenantRows.Zeroed(0, 0)
	queue(x)
	return countPools(x)
}

// queue sets the queues and the parties.
func queue(x *shares) {
	for t, name := range x.in.Tenants {
		x.due.Queues = append(x.due.Queues, round.Claimant{Name: name, Tenant: round.TenantIndex(t)})
	}
	for i := range x.in.Cases {
		st := &x.in.Cases[i]
		x.due.Queued[i] = round.Queued{Tenant: st.Tenant, User: round.UserIndex(st.User), Party: -1, Queue: round.QueueIndex(st.Tenant)}
	}
	x.due.Rows = round.TableOf[round.QueueIndex](x.due.Ledger.Tenants, len(x.in.Pools))
	if !x.in.Settings.Divides() {
		return
	}
	if x.in.Settings.DivideJobs {
		jobParties(x)
	} else {
		kindParties(x)
	}
	x.due.wants = slices.Grow(x.due.wants[:0], len(x.due.Parties))[:len(x.due.Parties)]
	for k := range x.due.Parties {
		x.due.wants[k] = 0
		for _, i := range x.due.Parties[k].Cases {
			x.due.Queued[i].Party = round.PartyIndex(k)
			x.due.wants[k] += x.found.Wants(i)
		}
	}
	openAccounts(x)
	// Cells belong to tenants, so there tenants queue even if the policy knows jobs only.
	if x.due.JobsQueue = preset.TenantBlind(x.in.Settings.Divide) && x.in.Snapshot.Cells == nil; x.due.JobsQueue {
		x.due.Queues, x.due.Rows = append(x.due.Queues[:0], x.due.Parties...), round.TableOf[round.QueueIndex](x.due.PartyRows.Cells, len(x.in.Pools))
		for i := range x.in.Cases {
			x.due.Queued[i].Queue = round.QueueIndex(x.due.Queued[i].Party)
		}
	}
}

// kindParties makes a party of each kind of jobs. Jobs that name a GPU model form parties of their own, because they
// stay on it whatever the market does.
func kindParties(x *shares) {
	at := map[string]int{}
	for i := range x.in.Cases {
		st := &x.in.Cases[i]
		if st.Tenant < 0 || !st.Live {
			continue
		}
		name := string(x.speeds.Kinds[i])
		if m := x.in.Snapshot.Cases[i].Job.Request.Model; m != "" {
			name += "@" + m
		}
		k, known := at[name]
		if !known {
			k = len(x.due.Parties)
			at[name], x.due.Parties = k, append(x.due.Parties, round.Claimant{Name: name, Tenant: st.Tenant})
		}
		x.due.Parties[k].Cases = append(x.due.Parties[k].Cases, i)
	}
	slices.SortFunc(x.due.Parties, byName)
}

func byName(a, b round.Claimant) int { return cmp.Compare(a.Name, b.Name) }

// labels are the names of the last round's parties that are single jobs, by case.
type labels struct {
	keys    []cluster.JobKey
	tenants []string
	names   []string
}

// jobParties makes a party of each job. Cases are by key, so parties are by name where tenants are, and keys have at most ten digits.
func jobParties(x *shares) {
	n, was := len(x.in.Cases), x.due.labels
	now := labels{make([]cluster.JobKey, n), make([]string, n), make([]string, n)}
	order := make([]int, len(x.in.Tenants)) // of tenants, as they are in names
	for t := range order {
		order[t] = t
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x.in.Tenants[a]+"/", x.in.Tenants[b]+"/") })
	places, all, k := make([]int, len(order)), 0, 0
	for i := range x.in.Cases {
		st, r := &x.in.Cases[i], &x.in.Records[i]
		if st.Tenant < 0 || !st.Live {
			continue
		}
		for k < len(was.keys) && was.keys[k] < r.Key {
			k++
		}
		if now.keys[i], now.tenants[i] = r.Key, r.Tenant; k < len(was.keys) && was.keys[k] == r.Key && was.tenants[k] == r.Tenant {
			now.names[i] = was.names[k]
		} else {
			now.names[i] = fmt.Sprintf("%s/%010d", r.Tenant, r.Key)
		}
		places[st.Tenant]++
		all++
	}
	first := 0
	for _, t := range order {
		places[t], first = first, first+places[t]
	}
	x.due.Parties = slices.Grow(x.due.Parties, all)[:all]
	cases := make([]int, all)
	for i := range x.in.Cases {
		if st := &x.in.Cases[i]; now.names[i] != "" {
			at := places[st.Tenant]
			places[st.Tenant]++
			cases[at] = i
			x.due.Parties[at] = round.Claimant{Name: now.names[i], Tenant: st.Tenant, Cases: cases[at : at+1 : at+1]}
		}
	}
	if !slices.IsSortedFunc(x.due.Parties, byName) {
		slices.SortFunc(x.due.Parties, byName)
	}
	x.due.labels = now
}

// trials says how long a party without an entitlement in a pool waits before its jobs of another gang size are tried there, in
// multiples of the length of a trial. A party that its first trial did not measure waits for an entitlement: perhaps its jobs
// cannot run there.
const trials = 10

// openAccounts updates the accounts of parties and of tenants: it adds their entitlement since the last round and subtracts
// what their jobs received. A tenant's account goes on when its parties leave, with what jobs received that are over.
func openAccounts(x *shares) {
	x.due.PartyRows = x.due.PartyRows.Zeroed(len(x.due.Parties), len(x.in.Pools))
	x.due.TenantRows = x.due.TenantRows.Zeroed(len(x.in.Tenants), len(x.in.Pools))
	for t, name := range x.in.Tenants {
		for p, pool := range x.in.Pools {
			*x.due.TenantRows.At(round.TenantIndex(t), p) = cluster.TenantPool{Tenant: ofTenant(name), Pool: pool}
		}
	}
	for k := range x.due.PartyRows.Rows() {
		demand := x.demand(k)
		for p, pool := range x.in.Pools {
			*x.due.PartyRows.At(k, p) = cluster.TenantPool{Tenant: x.due.Parties[k].Name, Pool: pool, Demand: demand}
			x.due.TenantRows.At(x.due.Parties[k].Tenant, p).Demand += demand
		}
	}
	span := x.in.Now.Sub(x.in.Snapshot.Ledger.At)
	if x.in.Snapshot.Ledger.At == 0 {
		span = 0
	}
	tenants := map[string]round.TenantIndex{}
	for t, name := range x.in.Tenants {
		tenants[ofTenant(name)] = round.TenantIndex(t)
	}
	largest, at := x.largestGang(), round.PartyIndex(0) // accounts are by party, as they were remembered
	for k := range x.in.Snapshot.Parties {
		old := &x.in.Snapshot.Parties[k]
		p := x.in.Pool(old.Pool)
		if p < 0 {
			continue
		}
		var row *cluster.TenantPool
		party, ok := x.partyAt(old.Party, at)
		if ok {
			at = party
			row = x.due.PartyRows.At(party, p)
		} else if t, ok := tenants[old.Party]; ok {
			row = x.due.TenantRows.At(t, p)
		} else {
			continue
		}
		var due cluster.GPUTime
		due, row.SelCarry = cluster.Accrue(old.Entitlement, span, old.Carry)
		row.Entitlement, row.Base, row.Deficit = old.Entitlement, old.Entitlement, old.Deficit+due
		if ok && old.Entitlement < round.Negligible && x.speeds.Book.Observed(x.speeds.Kinds[x.due.Parties[party].Cases[0]], old.Pool) {
			row.Deficit = min(row.Deficit+x.gang(int(party)).Over(span)/trials, max(row.Deficit, 0))
		}
		if ceiling := max(ltgf.Credit(old.Entitlement, x.in.Settings.CreditCap), 2*largest.Over(x.in.Settings.Term)); row.Deficit > ceiling {
			row.Deficit = max(ceiling, old.Deficit)
		}
	}
	for i := range x.in.Cases {
		st, who := &x.in.Cases[i], &x.due.Queued[i]
		if st.Tenant < 0 {
			continue
		}
		had := x.in.Snapshot.Cases[i].Record.Held
		if len(had) == 0 {
			had = x.in.Records[i].Held // it began after the last round
		}
		if s := x.in.Snapshot.Cases[i].Record.Stopping; len(had) == 0 && s != nil {
			had = s.GPUs // the time that a stop destroyed is given back
		}
		if len(had) == 0 {
			continue
		}
		if p := x.in.Pool(had[0].Model); p >= 0 {
			used := x.in.Records[i].Alloc - x.in.Snapshot.Cases[i].Record.Alloc
			if x.due.TenantRows.At(st.Tenant, p).Deficit -= used; who.Party >= 0 {
				x.due.PartyRows.At(who.Party, p).Deficit -= used
			}
		}
	}
}

// partyAt finds a party by its name. It looks at one place, and at the next one, first.
func (x *shares) partyAt(name string, place round.PartyIndex) (round.PartyIndex, bool) {
	for at := place; at < min(place+2, round.PartyIndex(len(x.due.Parties))); at++ {
		if x.due.Parties[at].Name == name {
			return at, true
		}
	}
	k, ok := slices.BinarySearchFunc(x.due.Parties, name, func(p round.Claimant, name string) int { return cmp.Compare(p.Name, name) })
	return round.PartyIndex(k), ok
}

// ofTenant names a tenant's account among those of parties. No party has such a name.
func ofTenant(name string) string { return "/" + name }

// Remembered returns the accounts of parties to remember.
func (d *Due) Remembered() []cluster.PartyPool {
	if len(d.TenantRows.Cells) == 0 {
		return nil
	}
	out := make([]cluster.PartyPool, 0, len(d.TenantRows.Cells)+len(d.PartyRows.Cells))
	for _, rows := range [][]cluster.TenantPool{d.TenantRows.Cells, d.PartyRows.Cells} {
		for i := range rows {
			r := &rows[i]
			if r.Entitlement != 0 || r.Deficit != 0 || r.SelCarry != 0 {
				out = append(out, cluster.PartyPool{Party: r.Tenant, Pool: r.Pool, Entitlement: r.Entitlement, Deficit: r.Deficit, Carry: r.SelCarry})
			}
		}
	}
	return out
}
