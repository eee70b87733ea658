package engine

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// table lets the lease room use the place room's board.
type table struct{ *place.Board }

func (t table) Fit(a lease.Ask) (lease.Placement, bool) {
	p, ok := t.Board.Fit(place.Ask(a))
	return lease.Placement(p), ok
}

func (t table) Take(p lease.Placement) { t.Board.Take(place.Placement(p)) }

// choose gives leases to the jobs of one touch: Act (with Keep: jobs that we
// start but never reclaim) or Watch.
func (h *hall) choose(touch cluster.Touch) {
	if !h.any(touch) {
		return
	}
	h.prolongFixed(touch)
	if h.Snapshot.Cells != nil {
		h.chooseCells(touch)
		return
	}
	candidates := h.candidates(touch)
	if len(candidates) == 0 && (touch != cluster.Act || len(h.Snapshot.Claims) == 0) {
		h.dismiss(touch) // there is nothing to choose among
		return
	}
	h.board = h.fresh(h.board)
	in := lease.Input{Now: h.Now, Settings: h.Settings}
	in.Candidates, in.Tenants = h.line(candidates)
	in.Trials = h.market.Trials(in.Candidates)
	h.lanes(&in)
	h.contest(&in, h.board, touch)
	h.dismiss(touch)
}

// contest gives leases to the candidates that are furthest behind, and says why the others got none.
func (h *hall) contest(in *lease.Input, board *place.Board, touch cluster.Touch) {
	passed := &h.passed[0]
	if touch == cluster.Watch {
		passed = &h.passed[1]
	}
	in.Room = *passed
	h.occupy(board, in, touch)
	moving := []cluster.Claim(nil)
	if touch == cluster.Act {
		in.Claims, moving = h.liveClaims(in)
		in.Claims = append(in.Claims, h.gathered(in, board, moving)...)
		for k := range moving {
			board.Claim(moving[k].Nodes, moving[k].At)
		}
	}
	choice := lease.Choose(*in, table{board}, len(h.Pools))
	*passed = choice.Passed
	h.renew(in, &choice)
	h.grant(in, &choice)
	if touch == cluster.Act {
		h.Claims = h.served(h.Claims)
		h.Claims = append(append(h.Claims, choice.Kept...), moving...)
		h.recall(in, &choice)
		h.claimFor(in, choice.Due)
		h.gatherFor(in, choice.Due)
	}
	h.explain(in, &choice)
}

// served drops the gathering for gangs that found GPUs elsewhere, on another model: idle ones, or a claim of those that
// others give up.
func (h *hall) served(claims []cluster.Claim) []cluster.Claim {
	elsewhere := map[cluster.JobKey]bool{}
	for _, cl := range claims {
		if !cl.Gathers {
			elsewhere[cl.Job] = true
		}
	}
	return slices.DeleteFunc(claims, func(cl cluster.Claim) bool {
		i := h.Find(cl.Job)
		return cl.Gathers && (elsewhere[cl.Job] || i >= 0 && h.Leases[i] != nil)
	})
}

// fresh gives a board with nothing on it, in the room of an old one.
func (h *hall) fresh(old *place.Board) *place.Board {
	v := place.View{Busy: true, Reserved: true}
	if old == nil {
		old = h.field.Site.Board(v)
	} else {
		h.field.Site.Clear(old, v)
	}
	for _, node := range h.closed {
		old.Close(node)
	}
	return old
}

func (h *hall) any(touch cluster.Touch) bool {
	for i := range h.Jobs {
		if h.Jobs[i].Ours(touch) {
			return true
		}
	}
	return false
}

// prolongFixed renews the leases of jobs that are never reclaimed.
func (h *hall) prolongFixed(touch cluster.Touch) {
	for i, l := range h.Leases {
		st := &h.Jobs[i]
		if l == nil || !st.Ours(touch) || l.State == cluster.Granted || l.State == cluster.Ending || l.End.Sub(h.Now) > h.Settings.Notice {
			continue
		}
		if st.Touch == cluster.Keep || st.Ordered(cluster.Exempt) {
			h.prolong(i)
		}
	}
}

// prolong ends a lease as renewed and puts the next term in its place.
func (h *hall) prolong(i int) {
	h.Prolong(i, h.stops.EndFor(i, max(h.Leases[i].End, h.Now)))
}

// candidates lists the jobs that could hold a lease next.
func (h *hall) candidates(touch cluster.Touch) []lease.Candidate {
	n := 0
	for i := range h.Jobs {
		if h.Jobs[i].Eligible || h.Leases[i] != nil {
			n++
		}
	}
	out := slices.Grow(h.unsorted[:0], n)
	for i := range h.Jobs {
		st, l := &h.Jobs[i], h.Leases[i]
		runs := h.Ending(i) && !st.Ordered(cluster.Freeze)
		if !st.Ours(touch) || !runs && (l != nil || !st.Eligible) {
			continue
		}
		r := &h.Records[i]
		k := lease.Candidate{Case: i, Key: r.Key, Tenant: st.Queue, Pools: st.Pools, Shape: st.Shape, GPUs: st.GPUs,
			First: r.First, Owed: r.Due - r.Alloc, Unserved: r.Terms == 0, New: h.Settings.NewFirst && r.Terms == 0, Rho: st.Rho, Running: runs,
			Urgent: st.Ordered(cluster.Boost) || slices.Contains(h.Settings.UrgentQOS, h.Snapshot.Cases[i].Job.QOS)}
		if runs {
			k.GPUs, k.Rho = l.GPUs, h.steadied(r, l)
			k.Pools, k.Better = h.market.MayMove(i, l)
			k.Binds = h.stops.Binds(i, h.stops.EndFor(i, max(l.End, h.Now)))
		} else {
			k.End = h.stops.EndFor(i, h.Now)
			if k.Binds = h.stops.Binds(i, k.End); k.Binds {
				k.End = lease.Unending
			}
			k.Aged = aged(r, k.GPUs, h.Settings.Term)
			k.Humble = eligible.IdleOnly(h.Books, i)
		}
		out = append(out, k)
	}
	h.unsorted = out
	return out
}

// steadied gives the rho by which a running job is compared with waiting ones of
// its tenant: as if it had received threshold less, so that a waiting one must
// be that much behind; jobs with many terms behind them count another term less
// (ASTRAEA §5.2.1: renewed more readily).
func (h *hall) steadied(r *cluster.Record, l *cluster.Lease) cluster.Rho {
	bonus := h.Settings.Threshold
	if h.Settings.LongTerms > 0 && r.Terms >= h.Settings.LongTerms {
		bonus += h.Settings.Term
	}
	return cluster.RhoOf(r.Alloc-cluster.Times(l.GPUs, bonus), r.Due)
}

// aged gives the rho of a new job that does not go first: as if it had received
// and been due one term, so that it rises in the queue as it waits.
func aged(r *cluster.Record, gpus int, term cluster.Span) cluster.Rho {
	one := cluster.Times(gpus, term)
	return cluster.RhoOf(r.Alloc+one, r.Due+one)
}

// line makes the tenants of a round of choosing: what each is due and has, and
// its candidates in their order. It puts the candidates in that order, too: they are
// gone through tenant by tenant.
func (h *hall) line(cs []lease.Candidate) ([]lease.Candidate, []lease.Tenant) {
	sorted := slices.Grow(h.sorted[:0], len(cs))
	tenants := make([]lease.Tenant, len(h.Queues))
	debit, holds := h.Committed(len(h.Rows), round.QueueOf)
	n := len(h.Pools)
	jobs := h.byTenant(cs)
	for t := range h.Queues {
		tenants[t] = lease.Tenant{Name: h.Queues[t].Name, Boost: h.boosted(h.Tenants[h.Queues[t].Tenant]), Shares: make([]lease.Share, n)}
		entitled := cluster.MicroGPU(0)
		for p := range h.Pools {
			row := &h.Rows[t*n+p]
			tenants[t].Shares[p] = lease.Share{
				Behind:      ltgf.Behind(row.Deficit-debit[t*n+p], row.Entitlement),
				Entitlement: row.Entitlement, Own: row.Own(), Holds: holds[t*n+p], Owed: row.Owed,
			}
			entitled += row.Entitlement
		}
		newGPUs := cluster.MulDiv(int64(entitled), int64(h.Settings.NewSharePercent), 100*int64(cluster.WholeGPU))
		lease.Order(cs, jobs[t], int(newGPUs))
		for at, i := range jobs[t] {
			jobs[t][at] = len(sorted)
			sorted = append(sorted, cs[i])
		}
		tenants[t].Jobs = jobs[t]
	}
	h.sorted = sorted
	h.market.Turns(sorted, tenants)
	return sorted, tenants
}

// byTenant gives the indices of every tenant's candidates.
func (h *hall) byTenant(cs []lease.Candidate) [][]int {
	count := make([]int, len(h.Queues))
	for i := range cs {
		count[cs[i].Tenant]++
	}
	all, jobs := make([]int, len(cs)), make([][]int, len(h.Queues))
	for t, n := range count {
		jobs[t], all = all[:0:n], all[n:]
	}
	for i := range cs {
		jobs[cs[i].Tenant] = append(jobs[cs[i].Tenant], i)
	}
	return jobs
}

func (h *hall) boosted(tenant string) bool {
	return slices.ContainsFunc(h.Snapshot.Overrides, func(o cluster.Override) bool {
		return o.Kind == cluster.Boost && o.Scope == "tenant" && o.Name == tenant && o.Until > h.Now
	})
}

// occupy puts everything that is held on the board: leases that end now as soft,
// the rest as fixed.
func (h *hall) occupy(board *place.Board, in *lease.Input, touch cluster.Touch) {
	line := lease.LastFirst(in)
	h.ranks = slices.Grow(h.ranks[:0], len(h.Jobs))[:len(h.Jobs)]
	rank := h.ranks
	for i := range rank {
		rank[i] = len(line) // of those that are not in the line: frozen ones go first
	}
	for at, k := range line {
		rank[in.Candidates[k].Case] = at
	}
	h.lay(board, func(i int) (soft, bool) {
		if !h.Ending(i) || !h.Jobs[i].Ours(touch) {
			return soft{}, false
		}
		owner := h.Jobs[i].Queue
		if rank[i] == len(line) {
			owner = -1 // nobody counts on it any more
		}
		return soft{owner, rank[i], h.Leases[i].End}, true
	})
}

// soft is a lease on a board that may end: whose it is, -1 = nobody counts on it, its rank among those that may, and when.
type soft struct {
	owner, rank int
	end         cluster.Instant
}

// lay puts on a board what is held: leases of running jobs that may end as soft, the rest as fixed.
func (h *hall) lay(board *place.Board, may func(i int) (soft, bool)) {
	board.Await(len(h.Jobs))
	for i := range h.Jobs {
		st, l := &h.Jobs[i], h.Leases[i]
		switch {
		case !st.Live:
			continue
		case l != nil && l.State == cluster.Granted:
			board.Hold(l.Nodes)
			continue
		case st.Waits:
			continue
		case l != nil && st.Runs:
			if s, ok := may(i); ok {
				board.Soften(i, s.owner, s.rank, s.end, h.Snapshot.Cases[i].Job.Holds)
				continue
			}
		}
		board.Hold(h.Snapshot.Cases[i].Job.Holds)
	}
}

// liveClaims gives the claims whose job still waits on nodes that are still
// good, oldest first; and those whose job is on its way there from other GPUs.
func (h *hall) liveClaims(in *lease.Input) (out []lease.Claimed, moving []cluster.Claim) {
	if len(h.Snapshot.Claims) == 0 {
		return nil, nil
	}
	h.ranks = slices.Grow(h.ranks[:0], len(h.Jobs))[:len(h.Jobs)]
	at := h.ranks // by case: 1 + the candidate
	clear(at)
	for i := range in.Candidates {
		at[in.Candidates[i].Case] = 1 + i
	}
	for _, cl := range h.Snapshot.Claims {
		c, p := h.Find(cl.Job), h.Pool(cl.Pool)
		if cl.Gathers || cl.Parts != nil || c < 0 || p < 0 {
			continue
		}
		if at[c] == 0 {
			if h.leaves(c) && h.Now.Sub(cl.At) <= h.Settings.Term {
				moving = append(moving, cl)
			}
			continue
		}
		i, ok := at[c]-1, true
		if in.Candidates[i].Running || in.Candidates[i].Humble || h.Now.Sub(cl.At) > h.Settings.Term {
			continue
		}
		spec := eligible.Spec(h.Books, in.Candidates[i].Case)
		spec.Require = nil
		for _, n := range cl.Nodes {
			ok = ok && h.field.Site.Good(n.Node)
			spec.Require = append(spec.Require, n.Node)
		}
		if ok {
			out = append(out, lease.Claimed{Claim: cl, Candidate: i, InPool: p, Shape: h.field.Site.Shape(spec)})
		}
	}
	slices.SortStableFunc(out, func(a, b lease.Claimed) int { return cmp.Compare(a.Made, b.Made) })
	return out, moving
}

// leaves tells whether a job is giving up GPUs, and will wait then.
func (h *hall) leaves(i int) bool {
	j, l := &h.Snapshot.Cases[i].Job, h.Leases[i]
	return h.Jobs[i].Live && (l != nil && l.State == cluster.Ending || j.State == cluster.Completing || h.Now < eligible.Settled(j))
}

func (h *hall) renew(in *lease.Input, choice *lease.Choice) {
	h.Ended = slices.Grow(h.Ended, len(choice.Renewed))
	for _, i := range choice.Renewed {
		h.prolong(in.Candidates[i].Case)
		h.Jobs[in.Candidates[i].Case].Began = true
	}
}

// grant makes leases of what can start now, and claims of what has to wait until
// those that it displaces have had their notice.
func (h *hall) grant(in *lease.Input, choice *lease.Choice) {
	for _, g := range choice.Grants {
		k := &in.Candidates[g.Candidate]
		if k.Running { // it moves when its lease ends
			g.At = max(g.At, h.Leases[k.Case].End)
		}
		if g.At > h.Now || k.Running {
			h.Claims = append(h.Claims, h.claim(k.Key, h.Pools[g.Pool], g.Nodes, g.At))
			continue
		}
		h.lend(k.Case, h.Pools[g.Pool], g.Nodes, h.stops.EndFor(k.Case, h.Now))
	}
}

// lend makes a lease from now on.
func (h *hall) lend(i int, pool string, nodes []cluster.Holding, end cluster.Instant) {
	r := &h.Records[i]
	term := r.Terms + 1
	if h.Jobs[i].Touch != cluster.Watch { // else it will not have it
		r.Terms = term
	}
	h.Jobs[i].Began, h.Jobs[i].Stoppable = true, !h.stops.Binds(i, end)
	h.Leases[i] = &cluster.Lease{
		Job: r.Key, Term: term, State: cluster.Granted, Class: cluster.Shared, Pool: pool,
		GPUs: round.GPUs(nodes), Nodes: nodes, Granted: h.Now, End: end,
	}
}

// claim makes a claim; one that was there already keeps its age.
func (h *hall) claim(key cluster.JobKey, pool string, nodes []cluster.Holding, at cluster.Instant) cluster.Claim {
	cl := cluster.Claim{Job: key, Pool: pool, Nodes: nodes, At: at, Made: h.Now}
	for _, old := range h.Snapshot.Claims {
		if old.Job == key {
			cl.Made = old.Made
		}
	}
	return cl
}

// dismiss ends the leases that were up for renewal and were not renewed: notice
// first, requeue when the term is over. A lease is up for renewal still if it
// was not prolonged above.
func (h *hall) dismiss(touch cluster.Touch) {
	for i, l := range h.Leases {
		if !h.Jobs[i].Ours(touch) || !h.Ending(i) {
			continue
		}
		if l.State == cluster.Active {
			l.State, l.NoticedAt = cluster.Noticed, h.Now
			// That a job is only watched with notice is not remembered: it is said in
			// the first round of the notice.
			h.Jobs[i].Noticed = touch == cluster.Act || h.Snapshot.Ledger.At < l.End-cluster.Instant(h.Settings.Notice)
		}
		if l.End <= h.Now {
			l.State = cluster.Ending
			h.stops.Stopped(i, h.Now.Sub(l.NoticedAt))
			h.market.NoteMove(i, l)
		}
	}
}

// claimsARound bounds the new claims of a round: there are many rounds to a term,
// and those furthest behind come first.
const claimsARound = 32

// claimFor keeps GPUs for gangs that are due but fit nowhere: where they would
// fit in the pool that owes them if every lease that can end had ended, disturbing
// least.
func (h *hall) claimFor(in *lease.Input, due []lease.Due) {
	due = due[:min(len(due), claimsARound)]
	if !slices.ContainsFunc(due, func(d lease.Due) bool { return !h.claimed(in.Candidates[d.Candidate].Key) }) {
		return
	}
	h.kept = h.fresh(h.kept)
	board := h.kept
	board.Await(len(h.Jobs))
	ranks := h.rank(in)
	for i, l := range h.Leases {
		st := &h.Jobs[i]
		switch {
		case !h.fixed(i):
			board.Soften(i, st.Queue, ranks[i], l.End, l.Nodes)
		case st.Live && !st.Waits:
			board.Hold(h.Snapshot.Cases[i].Job.Holds)
		}
	}
	for k := range h.Claims {
		board.Hold(h.Claims[k].Nodes)
	}
	for _, d := range due {
		k := &in.Candidates[d.Candidate]
		if h.claimed(k.Key) || h.Leases[k.Case] != nil {
			continue
		}
		ask := place.Ask{Shape: k.Shape, Pool: d.Pool, Now: h.Now, End: h.Now, Displace: place.Anybodys, Most: -1}
		if in.Keeps(k.Tenant, d.Pool) {
			ask.Spares = 1 + k.Tenant
		}
		if found, ok := board.Fit(ask); ok {
			board.Take(found)
			h.Claims = append(h.Claims, h.claim(k.Key, h.Pools[d.Pool], found.Nodes, found.At))
		}
	}
}

// rank gives, by case, how far ahead the tenants of the leases that can end are: who
// is furthest ahead is to go first.
func (h *hall) rank(in *lease.Input) []int {
	held := make([][]lease.Held, len(h.Queues))
	for i, l := range h.Leases {
		if l != nil && !h.fixed(i) {
			t := h.Jobs[i].Queue
			held[t] = append(held[t], lease.Held{Case: i, Pool: h.PoolOf(l)[0], GPUs: l.GPUs, Rho: h.steadied(&h.Records[i], l)})
		}
	}
	ranks := slices.Grow(h.ranks[:0], len(h.Leases))[:len(h.Leases)]
	clear(ranks)
	for t := range held {
		lease.Rank(ranks, held[t], &in.Tenants[t], h.Settings.Term)
	}
	return ranks
}

// fixed tells whether a job's GPUs stay taken whatever we decide.
func (h *hall) fixed(i int) bool {
	st := &h.Jobs[i]
	return h.Leases[i] == nil || st.Touch != cluster.Act || !st.Stoppable || st.Ordered(cluster.Exempt)
}

func (h *hall) claimed(key cluster.JobKey) bool {
	return slices.ContainsFunc(h.Claims, func(c cluster.Claim) bool { return c.Job == key })
}

// explain gives every candidate of a round of choosing its verdict.
func (h *hall) explain(in *lease.Input, choice *lease.Choice) {
	for t := range in.Tenants {
		tenant := &in.Tenants[t]
		for at, i := range tenant.Jobs {
			if p := &choice.Passed[i]; p.Code != "" {
				st := &h.Jobs[in.Candidates[i].Case]
				if st.Passed, st.Rank = p, at+1; tenant.Turns != nil {
					st.Rank = 1 + slices.Index(tenant.Turns[p.Pool], i)
				}
			}
		}
	}
}
