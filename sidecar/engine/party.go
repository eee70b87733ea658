package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
)

// party is who is due a part of what a policy divides: a single job (Gavel), or a tenant's jobs of one kind (OEF's
// virtual users, §4.2.4). Tenants queue for GPUs, whatever their parties: so a tenant has what its parties are due
// together, also if it has many whose jobs are short. What parties are owed says whose turn it is within
// the tenant. But where a policy knows jobs only, jobs queue.
type party struct {
	name   string
	tenant int
	cases  []int // of the active ones; not filled where it is a tenant
}

// gather finds who queues, and the parties, with their accounts in every pool.
func (h *hall) gather() {
	h.queues, h.parties = h.queues[:0], h.parties[:0]
	for t, name := range h.Tenants {
		h.queues = append(h.queues, party{name: name, tenant: t})
	}
	for i := range h.Jobs {
		h.Jobs[i].Party, h.Jobs[i].Queue = -1, h.Jobs[i].Tenant
	}
	h.rows = h.Ledger.Tenants
	if h.Settings.Divide == "" {
		return
	}
	at := map[string]int{}
	names := make([]string, len(h.Jobs))
	for i := range h.Jobs {
		st := &h.Jobs[i]
		if st.Tenant < 0 || !st.Live {
			continue
		}
		name := h.partyName(i)
		names[i] = name
		if _, ok := at[name]; !ok {
			at[name] = 0
			h.parties = append(h.parties, party{name: name, tenant: st.Tenant})
		}
	}
	slices.SortFunc(h.parties, func(a, b party) int { return cmp.Compare(a.name, b.name) })
	for k := range h.parties {
		at[h.parties[k].name] = k
	}
	for i := range h.Jobs {
		if names[i] != "" {
			st := &h.Jobs[i]
			st.Party = at[names[i]]
			h.parties[st.Party].cases = append(h.parties[st.Party].cases, i)
		}
	}
	h.openAccounts(at)
	if policy.TenantBlind(h.Settings.Divide) {
		h.queues, h.rows = append(h.queues[:0], h.parties...), h.accounts
		for i := range h.Jobs {
			h.Jobs[i].Queue = h.Jobs[i].Party
		}
	}
}

// partyName names the party of a job. Jobs that name a GPU model are a kind of their own: they
// stay there whatever the market does.
func (h *hall) partyName(i int) string {
	c := &h.Snapshot.Cases[i]
	if h.Settings.DivideJobs {
		return fmt.Sprintf("%s/%010d", h.Records[i].Tenant, h.Records[i].Key)
	}
	kind := string(h.learned.kinds[i])
	if m := c.Job.Request.Model; m != "" {
		return kind + "@" + m
	}
	return kind
}

// openAccounts brings the accounts of parties to now: what they were due since the last look less what
// their jobs have had.
func (h *hall) openAccounts(at map[string]int) {
	n := len(h.Pools)
	h.accounts = slices.Grow(h.accounts[:0], len(h.parties)*n)[:len(h.parties)*n]
	clear(h.accounts)
	for k := range h.parties {
		for p, pool := range h.Pools {
			h.accounts[k*n+p] = cluster.TenantPool{Tenant: h.parties[k].name, Pool: pool, Demand: cluster.MicroGPU(h.demand(k)) * cluster.WholeGPU}
		}
	}
	span := h.Now.Sub(h.Snapshot.Ledger.At)
	if h.Snapshot.Ledger.At == 0 {
		span = 0
	}
	for k := range h.Snapshot.Parties {
		old := &h.Snapshot.Parties[k]
		i, ok := at[old.Party]
		p := h.Pool(old.Pool)
		if !ok || p < 0 {
			continue
		}
		row := &h.accounts[i*n+p]
		var due cluster.GPUTime
		due, row.SelCarry = cluster.Accrue(old.Entitlement, span, old.Carry)
		row.Entitlement, row.Base, row.Deficit = old.Entitlement, old.Entitlement, old.Deficit+due
		if ceiling := max(ltgf.Credit(old.Entitlement, h.Settings.CreditCap), 2*cluster.Times(h.gang(i), h.Settings.Term)); row.Deficit > ceiling {
			row.Deficit = max(ceiling, old.Deficit)
		}
	}
	for i := range h.Jobs {
		st := &h.Jobs[i]
		if st.Party < 0 {
			continue
		}
		had := h.Snapshot.Cases[i].Record.Held
		if len(had) == 0 {
			had = h.Records[i].Held // it began after the last look
		}
		if s := h.Snapshot.Cases[i].Record.Stopping; len(had) == 0 && s != nil {
			had = s.GPUs // what it had and a stop destroyed is given back
		}
		if len(had) == 0 {
			continue
		}
		if p := h.Pool(had[0].Model); p >= 0 {
			h.accounts[st.Party*n+p].Deficit -= h.Records[i].Alloc - h.Snapshot.Cases[i].Record.Alloc
		}
	}
}

// partyAccounts gives the accounts of parties, as they are to be remembered.
func (h *hall) partyAccounts() []cluster.PartyPool {
	if h.Settings.Divide == "" {
		return nil
	}
	out := make([]cluster.PartyPool, 0, len(h.accounts))
	for i := range h.accounts {
		r := &h.accounts[i]
		if r.Entitlement != 0 || r.Deficit != 0 || r.SelCarry != 0 {
			out = append(out, cluster.PartyPool{Party: r.Tenant, Pool: r.Pool, Entitlement: r.Entitlement, Deficit: r.Deficit, Carry: r.SelCarry})
		}
	}
	return out
}
