package engine

import (
	"cmp"
	"slices"
	"sort"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/actions"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// say turns the difference between the leases and what was seen into actions,
// and gives every job its verdict.
func (h *hall) say() cluster.Plan {
	p := cluster.Plan{Round: h.Snapshot.Round, At: h.Now}
	p.Tenants = h.standings()
	h.Moves = h.moves()
	p.Actions = actions.List(h.Books)
	p.Ended, p.Losses = h.Ended, h.losses()
	p.Events = h.Events
	p.Next = h.next()
	h.heirs = h.Heirs()
	p.Verdicts = h.conclude()
	profiles, paces := h.profiles()
	p.Memory = cluster.Memory{
		Round: h.Snapshot.Round, NextKey: h.Snapshot.NextKey, Ledger: h.Ledger,
		Records: h.remembered(), Leases: h.lasting(), Claims: h.Claims, Lost: h.lost, Lent: h.lent, Parties: h.partyAccounts(), Division: h.Snapshot.Division,
		Profiles: profiles, Paces: paces, Habits: h.habits.Entries(),
	}
	p.Cells, p.Question = h.cells, h.question
	return p
}

// keepDone is how long a finished job is remembered, so that its id coming
// round again, or a late word of the history, is not taken for it.
const keepDone = cluster.Hour

// remembered drops from the records those that are forgotten. It is the last step.
func (h *hall) remembered() []cluster.Record {
	kept := 0
	for i := range h.Records {
		if h.forgotten(i) {
			continue
		}
		if kept < i {
			h.Records[kept] = h.Records[i]
		}
		kept++
	}
	clear(h.Records[kept:])
	return h.Records[:kept]
}

func (h *hall) forgotten(i int) bool {
	done := h.Records[i].Done
	return done != 0 && h.Now.Sub(done) >= keepDone
}

// lasting gives the leases to remember: of jobs that we only watch just what is
// really so.
func (h *hall) lasting() []cluster.Lease {
	n := 0
	for _, l := range h.Leases {
		if l != nil {
			n++
		}
	}
	out := slices.Grow(h.page.leases[:0], n)
	for i, in := range h.Leases {
		if in == nil {
			continue
		}
		l := *in
		if h.Jobs[i].Touch == cluster.Watch {
			switch l.State {
			case cluster.Granted, cluster.Ending:
				continue
			case cluster.Noticed:
				l.State, l.NoticedAt = cluster.Active, 0
			}
		}
		out = append(out, l)
	}
	h.page.leases = out
	return out
}

// explain gives every candidate of a round of choosing its verdict.
func (h *hall) explain(in *lease.Input, choice *lease.Choice) {
	for t := range in.Tenants {
		tenant := &in.Tenants[t]
		for at, i := range tenant.Jobs {
			if p := &choice.Passed[i]; p.Code != "" {
				st := &h.Jobs[in.Candidates[i].Case]
				if h.passedOver[in.Candidates[i].Case], st.Rank = p, at+1; tenant.Turns != nil {
					st.Rank = 1 + slices.Index(tenant.Turns[p.Pool], i)
				}
			}
		}
	}
}

// conclude gives every live job its verdict, by key.
func (h *hall) conclude() []cluster.Verdict {
	next := h.nextEnds()
	out := slices.Grow(h.page.verdicts[:0], len(h.Snapshot.Cases))
	for i := range h.Snapshot.Cases {
		r, st := &h.Records[i], &h.Jobs[i]
		if r.Done != 0 && r.Done != h.Now {
			continue
		}
		out = append(out, cluster.Verdict{Job: r.Key, Rho: st.Rho})
		because := &out[len(out)-1].Reason
		h.reason(because, i, next)
		because.Rho = st.Rho
		if need := h.Snapshot.Cases[i].Job.Request.GPUs; need > 0 {
			because.Need = need
		}
	}
	h.page.verdicts = out
	return out
}

// nextEnds gives, by pool, when the next lease there ends.
func (h *hall) nextEnds() []cluster.Instant {
	next := make([]cluster.Instant, len(h.Pools))
	for _, l := range h.Leases {
		if l == nil {
			continue
		}
		if p := h.Pool(l.Pool); p >= 0 && (next[p] == 0 || l.End < next[p]) {
			next[p] = l.End
		}
	}
	return next
}

// reason says why a job runs or waits.
func (h *hall) reason(because *cluster.Reason, i int, next []cluster.Instant) {
	st := &h.Jobs[i]
	if l := h.Leases[i]; l != nil {
		h.reasonOfLease(because, i, l)
		return
	}
	if cl := h.claimOf(h.Records[i].Key); cl != nil && st.Eligible {
		if because.Code, because.Pool, because.Until = cluster.BecauseClaim, cl.Pool, cl.At; cl.Gathers {
			because.Code, because.Until = cluster.BecauseGather, 0
		}
		return
	}
	if st.Cell != nil && st.Eligible {
		*because = *st.Cell
		return
	}
	if !st.Eligible {
		because.Code, because.Note, because.Until = st.Why, st.Note, st.Until
		if st.Touch == cluster.Leave {
			because.Code, because.Note = cluster.BecauseUntouched, h.Snapshot.Cases[i].TouchWhy
		}
		return
	}
	because.Code, because.Rank = cluster.BecauseBehind, st.Rank
	for _, p := range st.Pools {
		if because.Until == 0 || next[p] > 0 && next[p] < because.Until {
			because.Until = next[p]
		}
	}
	if p := h.passedOver[i]; p != nil {
		because.Code, because.Pool, because.Free = p.Code, h.Pools[p.Pool], p.Free
		because.Behind, because.OtherBehind, because.For = p.Behind, p.OtherBehind, p.For
		h.queue(because, p.Other)
		if p.Code == cluster.BecauseFailed {
			because.Note, because.Until = h.Records[i].Said, lease.MayDisplace(&h.Records[i], h.Settings.Term)
			if because.Until <= h.Now {
				because.Code, because.Note, because.Until = cluster.BecauseIdleOnly, "", 0
			}
		}
	}
}

func (h *hall) reasonOfLease(because *cluster.Reason, i int, l *cluster.Lease) {
	c, st := &h.Snapshot.Cases[i], &h.Jobs[i]
	because.Pool, because.Until = l.Pool, l.End
	if h.Snapshot.Cells != nil {
		because.Right = l.Class
	}
	switch {
	case st.Ordered(cluster.Exempt):
		because.Code, because.Note = cluster.BecauseExempt, st.Order.Reason
	case l.State == cluster.Ending && l.Why == round.Recalled:
		because.Code, because.For = cluster.BecauseRecalled, st.Heir
	case l.State == cluster.Ending:
		because.Code, because.For = cluster.BecauseEnding, h.heirs.Of(i)
		h.goes(because, i)
	case l.State == cluster.Noticed:
		because.Code, because.For = cluster.BecauseNotice, h.heirs.Of(i)
		h.goes(because, i)
	case l.State == cluster.Granted && !st.Began:
		because.Code, because.Note = cluster.BecauseStarting, c.Job.Because
	case l.State == cluster.Granted:
		because.Code = cluster.BecauseGranted
	case st.Began:
		because.Code = cluster.BecauseRenewed
	case c.Touch == cluster.Keep:
		because.Code, because.Note = cluster.BecauseKept, c.TouchWhy
	case l.Adopted:
		because.Code = cluster.BecauseAdopted
	default:
		because.Code = cluster.BecauseHolding
	}
	if t := st.Queue; t >= 0 {
		if p := h.Pool(l.Pool); p >= 0 {
			row := &h.rows[t*len(h.Pools)+p]
			because.Behind = ltgf.Behind(row.Deficit, row.Entitlement)
			h.queue(because, "")
		}
	}
}

// queue says who queues, and which party went before the job's own; "" = none did.
func (h *hall) queue(because *cluster.Reason, other string) {
	if !policy.TenantBlind(h.Settings.Divide) {
		because.Other = other
		return
	}
	because.Queue, because.Rank = cluster.JobQueues, 0
	k, ok := slices.BinarySearchFunc(h.queues, other, func(p party, name string) int { return cmp.Compare(p.name, name) })
	if !ok {
		return
	}
	went := &h.queues[k]
	because.Other, because.OtherJob = h.Tenants[went.tenant], h.Records[went.cases[0]].Key
}

func (h *hall) claimOf(key cluster.JobKey) *cluster.Claim {
	k, ok := sort.Find(len(h.Claims), func(k int) int { return cmp.Compare(key, h.Claims[k].Job) })
	if !ok {
		return nil
	}
	return &h.Claims[k]
}

// standings reports how every tenant stands in every pool.
func (h *hall) standings() []cluster.Standing {
	out := slices.Grow(h.page.standing[:0], len(h.Ledger.Tenants))[:len(h.Ledger.Tenants)]
	for i := range h.Ledger.Tenants {
		t := &h.Ledger.Tenants[i]
		out[i] = cluster.Standing{Tenant: t.Tenant, Pool: t.Pool, Weight: h.Weight(t.Tenant),
			Base: t.Base, Entitlement: t.Entitlement, Demand: t.Demand, Deficit: t.Deficit,
			Behind: ltgf.Behind(t.Deficit, t.Entitlement), Owed: t.Owed, Repays: t.Repays,
			Rho: ltgf.Rho(t, h.Now, h.Settings.HalfLife), RhoAll: cluster.RhoOf(t.Alloc, t.Due)}
	}
	n := len(h.Pools)
	for i := range h.Snapshot.Cases {
		st := &h.Jobs[i]
		if st.Tenant < 0 || !st.Live {
			continue
		}
		for _, p := range st.Pools {
			if row := &out[st.Tenant*n+p]; st.Runs {
				row.Holds += st.Held
			} else if st.Eligible && h.Leases[i] == nil {
				row.Waiting++
			}
		}
	}
	for i := range out {
		st := &out[i]
		holds := cluster.MicroGPU(st.Holds) * cluster.WholeGPU
		st.Borrowed = max(holds-st.Entitlement, 0)
		st.Lent = max(st.Entitlement-max(holds, min(st.Demand, st.Entitlement)), 0)
	}
	h.page.standing = out
	return out
}
