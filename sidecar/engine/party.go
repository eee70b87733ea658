package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// gather finds who queues, and the parties, with their accounts in every pool.
func (h *hall) gather() {
	h.Queues, h.Parties, h.JobsQueue = h.Queues[:0], h.Parties[:0], false
	for t, name := range h.Tenants {
		h.Queues = append(h.Queues, round.Claimant{Name: name, Tenant: t})
	}
	for i := range h.Jobs {
		h.Jobs[i].Party, h.Jobs[i].Queue = -1, h.Jobs[i].Tenant
	}
	h.Rows = h.Ledger.Tenants
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
			h.Parties = append(h.Parties, round.Claimant{Name: name, Tenant: st.Tenant})
		}
	}
	slices.SortFunc(h.Parties, func(a, b round.Claimant) int { return cmp.Compare(a.Name, b.Name) })
	for k := range h.Parties {
		at[h.Parties[k].Name] = k
	}
	for i := range h.Jobs {
		if names[i] != "" {
			st := &h.Jobs[i]
			st.Party = at[names[i]]
			h.Parties[st.Party].Cases = append(h.Parties[st.Party].Cases, i)
		}
	}
	h.openAccounts(at)
	if h.JobsQueue = policy.TenantBlind(h.Settings.Divide); h.JobsQueue {
		h.Queues, h.Rows = append(h.Queues[:0], h.Parties...), h.PartyRows
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
	kind := string(h.speeds.Kinds[i])
	if m := c.Job.Request.Model; m != "" {
		return kind + "@" + m
	}
	return kind
}

// openAccounts brings the accounts of parties to now: what they were due since the last look less what
// their jobs have had.
func (h *hall) openAccounts(at map[string]int) {
	n := len(h.Pools)
	h.PartyRows = slices.Grow(h.PartyRows[:0], len(h.Parties)*n)[:len(h.Parties)*n]
	clear(h.PartyRows)
	for k := range h.Parties {
		for p, pool := range h.Pools {
			h.PartyRows[k*n+p] = cluster.TenantPool{Tenant: h.Parties[k].Name, Pool: pool, Demand: cluster.MicroGPU(h.demand(k)) * cluster.WholeGPU}
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
		row := &h.PartyRows[i*n+p]
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
			h.PartyRows[st.Party*n+p].Deficit -= h.Records[i].Alloc - h.Snapshot.Cases[i].Record.Alloc
		}
	}
}

// partyAccounts gives the accounts of parties, as they are to be remembered.
func (h *hall) partyAccounts() []cluster.PartyPool {
	if h.Settings.Divide == "" {
		return nil
	}
	out := make([]cluster.PartyPool, 0, len(h.PartyRows))
	for i := range h.PartyRows {
		r := &h.PartyRows[i]
		if r.Entitlement != 0 || r.Deficit != 0 || r.SelCarry != 0 {
			out = append(out, cluster.PartyPool{Party: r.Tenant, Pool: r.Pool, Entitlement: r.Entitlement, Deficit: r.Deficit, Carry: r.SelCarry})
		}
	}
	return out
}
