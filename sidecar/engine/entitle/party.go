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
	x := &shares{b: b, speeds: s}
	x.b.Queues, x.b.Divided.Parties, x.b.JobsQueue = x.b.Queues[:0], x.b.Divided.Parties[:0], false
	for t, name := range x.b.In.Tenants {
		x.b.Queues = append(x.b.Queues, round.Claimant{Name: name, Tenant: round.TenantIndex(t)})
	}
	for i := range x.b.Jobs {
		x.b.Jobs[i].Party, x.b.Jobs[i].Queue = -1, round.QueueIndex(x.b.Jobs[i].Is.Tenant)
	}
	x.b.Rows = round.TableOf[round.QueueIndex](x.b.Ledger.Tenants, len(x.b.In.Pools))
	if x.b.In.Settings.Divide == "" {
		return
	}
	at := map[string]round.PartyIndex{}
	names := make([]string, len(x.b.Jobs))
	for i := range x.b.Jobs {
		st := &x.b.Jobs[i]
		if st.Is.Tenant < 0 || !st.Is.Live {
			continue
		}
		name := x.partyName(i)
		names[i] = name
		if _, ok := at[name]; !ok {
			at[name] = 0
			x.b.Divided.Parties = append(x.b.Divided.Parties, round.Claimant{Name: name, Tenant: st.Is.Tenant})
		}
	}
	slices.SortFunc(x.b.Divided.Parties, func(a, b round.Claimant) int { return cmp.Compare(a.Name, b.Name) })
	for k := range x.b.Divided.Parties {
		at[x.b.Divided.Parties[k].Name] = round.PartyIndex(k)
	}
	for i := range x.b.Jobs {
		if names[i] != "" {
			st := &x.b.Jobs[i]
			st.Party = at[names[i]]
			x.b.Divided.Parties[st.Party].Cases = append(x.b.Divided.Parties[st.Party].Cases, i)
		}
	}
	x.openAccounts(at)
	// Cells belong to tenants, so there tenants queue even if the policy knows jobs only.
	if x.b.JobsQueue = preset.TenantBlind(x.b.In.Settings.Divide) && x.b.In.Snapshot.Cells == nil; x.b.JobsQueue {
		x.b.Queues, x.b.Rows = append(x.b.Queues[:0], x.b.Divided.Parties...), round.TableOf[round.QueueIndex](x.b.Divided.PartyRows.Cells, len(x.b.In.Pools))
		for i := range x.b.Jobs {
			x.b.Jobs[i].Queue = round.QueueIndex(x.b.Jobs[i].Party)
		}
	}
}

// partyName returns the party of a job. Jobs that name a GPU model form parties of their own, because they
// stay on it whatever the market does.
func (x *shares) partyName(i int) string {
	c := &x.b.In.Snapshot.Cases[i]
	if x.b.In.Settings.DivideJobs {
		return fmt.Sprintf("%s/%010d", x.b.Records[i].Tenant, x.b.Records[i].Key)
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
	x.b.Divided.PartyRows = x.b.Divided.PartyRows.Zeroed(len(x.b.Divided.Parties), len(x.b.In.Pools))
	x.b.Divided.TenantRows = x.b.Divided.TenantRows.Zeroed(len(x.b.In.Tenants), len(x.b.In.Pools))
	for t, name := range x.b.In.Tenants {
		for p, pool := range x.b.In.Pools {
			*x.b.Divided.TenantRows.At(round.TenantIndex(t), p) = cluster.TenantPool{Tenant: ofTenant(name), Pool: pool}
		}
	}
	for k := range x.b.Divided.PartyRows.Rows() {
		for p, pool := range x.b.In.Pools {
			demand := cluster.MicroGPU(x.demand(k)) * cluster.WholeGPU
			*x.b.Divided.PartyRows.At(k, p) = cluster.TenantPool{Tenant: x.b.Divided.Parties[k].Name, Pool: pool, Demand: demand}
			x.b.Divided.TenantRows.At(x.b.Divided.Parties[k].Tenant, p).Demand += demand
		}
	}
	span := x.b.In.Now.Sub(x.b.In.Snapshot.Ledger.At)
	if x.b.In.Snapshot.Ledger.At == 0 {
		span = 0
	}
	tenants := map[string]round.TenantIndex{}
	for t, name := range x.b.In.Tenants {
		tenants[ofTenant(name)] = round.TenantIndex(t)
	}
	largest := x.largestGang()
	for k := range x.b.In.Snapshot.Parties {
		old := &x.b.In.Snapshot.Parties[k]
		p := x.b.In.Pool(old.Pool)
		if p < 0 {
			continue
		}
		var row *cluster.TenantPool
		party, ok := at[old.Party]
		if ok {
			row = x.b.Divided.PartyRows.At(party, p)
		} else if t, ok := tenants[old.Party]; ok {
			row = x.b.Divided.TenantRows.At(t, p)
		} else {
			continue
		}
		var due cluster.GPUTime
		due, row.SelCarry = cluster.Accrue(old.Entitlement, span, old.Carry)
		row.Entitlement, row.Base, row.Deficit = old.Entitlement, old.Entitlement, old.Deficit+due
		if ok && old.Entitlement < round.Crumb && x.speeds.Book.Observed(x.speeds.Kinds[x.b.Divided.Parties[party].Cases[0]], old.Pool) {
			row.Deficit = min(row.Deficit+cluster.Times(x.gang(int(party)), span)/trials, max(row.Deficit, 0))
		}
		if ceiling := max(ltgf.Credit(old.Entitlement, x.b.In.Settings.CreditCap), 2*cluster.Times(largest, x.b.In.Settings.Term)); row.Deficit > ceiling {
			row.Deficit = max(ceiling, old.Deficit)
		}
	}
	for i := range x.b.Jobs {
		st := &x.b.Jobs[i]
		if st.Is.Tenant < 0 {
			continue
		}
		had := x.b.In.Snapshot.Cases[i].Record.Held
		if len(had) == 0 {
			had = x.b.Records[i].Held // it began after the last round
		}
		if s := x.b.In.Snapshot.Cases[i].Record.Stopping; len(had) == 0 && s != nil {
			had = s.GPUs // the time that a stop destroyed is given back
		}
		if len(had) == 0 {
			continue
		}
		if p := x.b.In.Pool(had[0].Model); p >= 0 {
			used := x.b.Records[i].Alloc - x.b.In.Snapshot.Cases[i].Record.Alloc
			if x.b.Divided.TenantRows.At(st.Is.Tenant, p).Deficit -= used; st.Party >= 0 {
				x.b.Divided.PartyRows.At(st.Party, p).Deficit -= used
			}
		}
	}
}

// ofTenant names a tenant's account among those of parties. No party has such a name.
func ofTenant(name string) string { return "/" + name }

// Accounts returns the accounts of parties to remember.
func Accounts(b *round.Books) []cluster.PartyPool {
	if b.In.Settings.Divide == "" {
		return nil
	}
	out := make([]cluster.PartyPool, 0, len(b.Divided.TenantRows.Cells)+len(b.Divided.PartyRows.Cells))
	for _, rows := range [][]cluster.TenantPool{b.Divided.TenantRows.Cells, b.Divided.PartyRows.Cells} {
		for i := range rows {
			r := &rows[i]
			if r.Entitlement != 0 || r.Deficit != 0 || r.SelCarry != 0 {
				out = append(out, cluster.PartyPool{Party: r.Tenant, Pool: r.Pool, Entitlement: r.Entitlement, Deficit: r.Deficit, Carry: r.SelCarry})
			}
		}
	}
	return out
}
