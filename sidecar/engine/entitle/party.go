package entitle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/speeds"
)

// Parties sets the queues and the parties, with their accounts in every pool.
func Parties(b *round.Books, s *speeds.Speeds) {
	x := &shares{Books: b, speeds: s}
	x.Queues, x.Parties, x.JobsQueue = x.Queues[:0], x.Parties[:0], false
	for t, name := range x.Tenants {
		x.Queues = append(x.Queues, round.Claimant{Name: name, Tenant: round.TenantIndex(t)})
	}
	for i := range x.Jobs {
		x.Jobs[i].Party, x.Jobs[i].Queue = -1, round.QueueIndex(x.Jobs[i].Tenant)
	}
	x.Rows = round.TableOf[round.QueueIndex](x.Ledger.Tenants, len(x.Pools))
	if x.Settings.Divide == "" {
		return
	}
	at := map[string]round.PartyIndex{}
	names := make([]string, len(x.Jobs))
	for i := range x.Jobs {
		st := &x.Jobs[i]
		if st.Tenant < 0 || !st.Live {
			continue
		}
		name := x.partyName(i)
		names[i] = name
		if _, ok := at[name]; !ok {
			at[name] = 0
			x.Parties = append(x.Parties, round.Claimant{Name: name, Tenant: st.Tenant})
		}
	}
	slices.SortFunc(x.Parties, func(a, b round.Claimant) int { return cmp.Compare(a.Name, b.Name) })
	for k := range x.Parties {
		at[x.Parties[k].Name] = round.PartyIndex(k)
	}
	for i := range x.Jobs {
		if names[i] != "" {
			st := &x.Jobs[i]
			st.Party = at[names[i]]
			x.Parties[st.Party].Cases = append(x.Parties[st.Party].Cases, i)
		}
	}
	x.openAccounts(at)
	// Cells belong to tenants, so there tenants queue even if the policy knows jobs only.
	if x.JobsQueue = preset.TenantBlind(x.Settings.Divide) && x.Snapshot.Cells == nil; x.JobsQueue {
		x.Queues, x.Rows = append(x.Queues[:0], x.Parties...), round.TableOf[round.QueueIndex](x.PartyRows.Cells, len(x.Pools))
		for i := range x.Jobs {
			x.Jobs[i].Queue = round.QueueIndex(x.Jobs[i].Party)
		}
	}
}

// partyName returns the party of a job. Jobs that name a GPU model form parties of their own, because they
// stay on it whatever the market does.
func (x *shares) partyName(i int) string {
	c := &x.Snapshot.Cases[i]
	if x.Settings.DivideJobs {
		return fmt.Sprintf("%s/%010d", x.Records[i].Tenant, x.Records[i].Key)
	}
	kind := string(x.speeds.Kinds[i])
	if m := c.Job.Request.Model; m != "" {
		return kind + "@" + m
	}
	return kind
}

// trials says how long a party without an entitlement in a pool waits before its jobs of another gang size are tried there, in
// multiples of the length of a trial. A party that its first trial did not measure waits for an entitlement: perhaps its jobs
// cannot run there.
const trials = 10

// openAccounts updates the accounts of parties and of tenants: it adds their entitlement since the last round and subtracts
// what their jobs received. A tenant's account goes on when its parties leave, with what jobs received that are over.
func (x *shares) openAccounts(at map[string]round.PartyIndex) {
	x.PartyRows = x.PartyRows.Zeroed(len(x.Parties), len(x.Pools))
	x.TenantRows = x.TenantRows.Zeroed(len(x.Tenants), len(x.Pools))
	for t, name := range x.Tenants {
		for p, pool := range x.Pools {
			*x.TenantRows.At(round.TenantIndex(t), p) = cluster.TenantPool{Tenant: ofTenant(name), Pool: pool}
		}
	}
	for k := range x.PartyRows.Rows() {
		for p, pool := range x.Pools {
			demand := cluster.MicroGPU(x.demand(k)) * cluster.WholeGPU
			*x.PartyRows.At(k, p) = cluster.TenantPool{Tenant: x.Parties[k].Name, Pool: pool, Demand: demand}
			x.TenantRows.At(x.Parties[k].Tenant, p).Demand += demand
		}
	}
	span := x.Now.Sub(x.Snapshot.Ledger.At)
	if x.Snapshot.Ledger.At == 0 {
		span = 0
	}
	tenants := map[string]round.TenantIndex{}
	for t, name := range x.Tenants {
		tenants[ofTenant(name)] = round.TenantIndex(t)
	}
	largest := x.largestGang()
	for k := range x.Snapshot.Parties {
		old := &x.Snapshot.Parties[k]
		p := x.Pool(old.Pool)
		if p < 0 {
			continue
		}
		var row *cluster.TenantPool
		party, ok := at[old.Party]
		if ok {
			row = x.PartyRows.At(party, p)
		} else if t, ok := tenants[old.Party]; ok {
			row = x.TenantRows.At(t, p)
		} else {
			continue
		}
		var due cluster.GPUTime
		due, row.SelCarry = cluster.Accrue(old.Entitlement, span, old.Carry)
		row.Entitlement, row.Base, row.Deficit = old.Entitlement, old.Entitlement, old.Deficit+due
		if ok && old.Entitlement < round.Crumb && x.speeds.Book.Observed(x.speeds.Kinds[x.Parties[party].Cases[0]], old.Pool) {
			row.Deficit = min(row.Deficit+cluster.Times(x.gang(int(party)), span)/trials, max(row.Deficit, 0))
		}
		if ceiling := max(ltgf.Credit(old.Entitlement, x.Settings.CreditCap), 2*cluster.Times(largest, x.Settings.Term)); row.Deficit > ceiling {
			row.Deficit = max(ceiling, old.Deficit)
		}
	}
	for i := range x.Jobs {
		st := &x.Jobs[i]
		if st.Tenant < 0 {
			continue
		}
		had := x.Snapshot.Cases[i].Record.Held
		if len(had) == 0 {
			had = x.Records[i].Held // it began after the last round
		}
		if s := x.Snapshot.Cases[i].Record.Stopping; len(had) == 0 && s != nil {
			had = s.GPUs // the time that a stop destroyed is given back
		}
		if len(had) == 0 {
			continue
		}
		if p := x.Pool(had[0].Model); p >= 0 {
			used := x.Records[i].Alloc - x.Snapshot.Cases[i].Record.Alloc
			if x.TenantRows.At(st.Tenant, p).Deficit -= used; st.Party >= 0 {
				x.PartyRows.At(st.Party, p).Deficit -= used
			}
		}
	}
}

// ofTenant names a tenant's account among those of parties. No party has such a name.
func ofTenant(name string) string { return "/" + name }

// Accounts returns the accounts of parties to remember.
func Accounts(b *round.Books) []cluster.PartyPool {
	if b.Settings.Divide == "" {
		return nil
	}
	out := make([]cluster.PartyPool, 0, len(b.TenantRows.Cells)+len(b.PartyRows.Cells))
	for _, rows := range [][]cluster.TenantPool{b.TenantRows.Cells, b.PartyRows.Cells} {
		for i := range rows {
			r := &rows[i]
			if r.Entitlement != 0 || r.Deficit != 0 || r.SelCarry != 0 {
				out = append(out, cluster.PartyPool{Party: r.Tenant, Pool: r.Pool, Entitlement: r.Entitlement, Deficit: r.Deficit, Carry: r.SelCarry})
			}
		}
	}
	return out
}
