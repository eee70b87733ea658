// Package share chooses leases by fair share (ASTRAEA): the tenant furthest behind its entitlement goes
// first.
package share

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// Chooser chooses leases by fair share. It is kept from round to round to reuse its memory.
type Chooser struct {
	board, kept *place.Board    // kept: the one for claims
	likely      *place.Board    // of GPUs that will be free soonest
	ranks       []int           // by case
	mayRecall   []bool          // by case
	choices     [2]lease.Memory // of managed jobs, and of observed jobs
	exact       [2][]exactShape // by claim, of this round and the last one
	claims      []lease.Claimed // memory for liveClaims
	held        [][]lease.Held  // memory for rank, by queue
}

// exactShape is the shape that asks for exactly the nodes of a claim.
type exactShape struct {
	site  *place.Site
	job   cluster.JobKey
	asks  int // the shape of its job
	nodes []cluster.Holding
	shape int
}

// Choose implements field.Chooser.
func (c *Chooser) Choose(f *field.Field) field.Choice {
	out := field.Blank(f)
	field.Extend(f)
	if f.Limits != nil {
		f.Limits.Settle(f.Ending)
	}
	for _, touch := range field.ControlLevels {
		if !f.In.Any(touch) {
			continue
		}
		f.ExtendFixed(touch)
		candidates := f.Candidates(touch)
		if len(candidates) > 0 || touch == cluster.FullControl && len(f.In.Snapshot.Claims) > 0 {
			in := lease.Input{Now: f.In.Now, Settings: f.In.Settings, Worths: f.In.Worths(), Sharer: f.In.Sharer}
			in.Candidates, in.Tenants = f.Line(candidates)
			in.Trials = f.Market.Trials(f.Taken(), in.Candidates)
			in.Lanes = lanes(f, in.Tenants)
			c.board = c.Contest(f, &in, c.board, touch, &out)
		}
		f.Dismiss(touch)
	}
	return out
}

// contest is one contest for GPUs.
type contest struct {
	f   *field.Field
	c   *Chooser
	out *field.Choice
}

// table adapts a place.Board to lease.Board.
type table struct{ board *place.Board }

func (t table) Fit(a lease.Ask) (lease.Placement, bool) {
	p, ok := t.board.Fit(place.Ask(a))
	return lease.Placement(p), ok
}

func (t table) Free(pool int) []int { return place.Free(t.board, pool) }

func (t table) Take(p lease.Placement) { t.board.Take(place.Placement(p)) }

func (t table) Claim(nodes []cluster.Holding, at cluster.Instant) { t.board.Claim(nodes, at) }

func (t table) Idle(pool int) int { return t.board.Idle(pool) }

func (t table) Renew(who int) bool { return t.board.Renew(who) }

func (t table) Prefer(who int) { t.board.Prefer(who) }

// Contest gives leases to the candidates that are furthest behind. It records in out why the others got none. It returns its board, which has
// the memory of an old one.
func (c *Chooser) Contest(f *field.Field, in *lease.Input, board *place.Board, touch cluster.Control, out *field.Choice) *place.Board {
	x := &contest{f, c, out}
	in.Memory, in.Limits, in.Stops = &x.c.choices[0], f.Limits, stopsOf(f, touch)
	if touch == cluster.ObserveOnly {
		in.Memory = &x.c.choices[1]
	}
	board = x.occupy(board, in, touch)
	moving := []cluster.Claim(nil)
	if touch == cluster.FullControl {
		in.Claims, moving = x.liveClaims(in)
		in.Claims = append(in.Claims, x.gathered(in, board, moving)...)
		for k := range moving {
			board.Claim(moving[k].Nodes, moving[k].At)
		}
	}
	if f.In.Settings.ScatterWait > 0 {
		in.Together = func(i, pool int) (nodes, switches cluster.Instant) { return field.Together(f, i, pool) }
	}
	in.Mechanism = x.mechanism(in, -1)
	choice := lease.Choose(*in, table{board}, len(x.f.In.Pools))
	if touch == cluster.FullControl {
		compact(x, in, board, &choice)
		part(x, in, board, &choice)
	}
	x.renew(in, &choice)
	noteResting(x, in, &choice)
	x.grant(in, &choice)
	if touch == cluster.FullControl {
		x.f.Hand.Claims = slices.Concat(x.served(x.f.Hand.Claims), choice.Kept, moving)
		follow(x, in, &choice, board)
		x.recall(in, &choice)
		slice(x, in, &choice)
		x.claimFor(in, choice.Due)
		x.gatherFor(in, choice.Due)
	}
	x.explain(in, &choice)
	return board
}

// stopsOf returns the limit of stops for a control level; nil for observed jobs, which are not stopped.
func stopsOf(f *field.Field, touch cluster.Control) lease.Stops {
	if touch != cluster.FullControl {
		return nil
	}
	return &f.Hourly
}

// served drops the gathering for gangs that found GPUs elsewhere: idle GPUs or a claim, perhaps on another
// model.
func (x *contest) served(claims []cluster.Claim) []cluster.Claim {
	if !slices.ContainsFunc(claims, func(cl cluster.Claim) bool { return cl.Gathers }) {
		return claims
	}
	elsewhere := map[cluster.JobKey]bool{}
	for _, cl := range claims {
		if !cl.Gathers {
			elsewhere[cl.Job] = true
		}
	}
	return slices.DeleteFunc(claims, func(cl cluster.Claim) bool {
		i := x.f.In.Find(cl.Job)
		return cl.Gathers && (elsewhere[cl.Job] || i >= 0 && x.f.Hand.Leases[i] != nil)
	})
}

// occupy returns the board, in the memory of an old one: leases that end now are soft, all other holdings are fixed.
func (x *contest) occupy(old *place.Board, in *lease.Input, touch cluster.Control) *place.Board {
	line := lease.LastFirst(in)
	x.c.ranks = slices.Grow(x.c.ranks[:0], len(x.f.In.Cases))[:len(x.f.In.Cases)]
	rank := x.c.ranks
	for i := range rank {
		rank[i] = len(line) // of jobs that are not candidates: frozen ones go first
	}
	for at, k := range line {
		if rank[in.Candidates[k].Case] = at; in.Candidates[k].Priority.Resting {
			rank[in.Candidates[k].Case] = len(line) // like frozen ones
		}
	}
	return x.f.Lay(old, func(i int) (field.Soft, bool) {
		if !x.f.Ending(i) || !x.f.In.Cases[i].Ours(touch) {
			return field.Soft{}, false
		}
		owner := int(x.f.Due.Queued[i].Queue)
		if rank[i] == len(line) || in.Tenants[owner].Spent {
			owner = -1 // no tenant relies on it any more
		}
		return field.Soft{Owner: owner, Rank: rank[i], End: x.f.Hand.Leases[i].End}, true
	})
}

// liveClaims returns the claims whose jobs still wait and whose nodes are still good, oldest first. moving
// are the claims of jobs that are leaving other GPUs.
func (x *contest) liveClaims(in *lease.Input) (out []lease.Claimed, moving []cluster.Claim) {
	if len(x.f.In.Snapshot.Claims) == 0 {
		return nil, nil
	}
	x.c.ranks = slices.Grow(x.c.ranks[:0], len(x.f.In.Cases))[:len(x.f.In.Cases)]
	at := x.c.ranks // by case: 1 + the candidate
	clear(at)
	out = x.c.claims[:0]
	for i := range in.Candidates {
		at[in.Candidates[i].Case] = 1 + i
	}
	for _, cl := range x.f.In.Snapshot.Claims {
		c, p := x.f.In.Find(cl.Job), x.f.In.Pool(cl.Pool)
		if cl.Gathers || cl.Parts != nil || c < 0 || p < 0 {
			continue
		}
		if at[c] == 0 {
			if field.Leaves(x.f, c) && x.f.In.Now.Sub(cl.At) <= x.f.In.Settings.Term {
				moving = append(moving, cl)
			}
			continue
		}
		i, ok := at[c]-1, true
		if in.Candidates[i].Running && !compacts(x.f.In.Settings) || in.Candidates[i].IdleOnly || x.f.In.Spent(x.f.In.Records[c].Tenant) != nil || x.f.In.Now.Sub(cl.At) > x.f.In.Settings.Term {
			continue
		}
		for k := range cl.Nodes {
			ok = ok && x.f.Site.Good(cl.Nodes[k].Node)
		}
		if ok {
			out = append(out, lease.Claimed{Claim: cl, Candidate: i, InPool: p, Shape: exactly(x, &in.Candidates[i], &cl)})
		}
	}
	x.c.exact[0], x.c.exact[1] = x.c.exact[1][:0], x.c.exact[0]
	x.c.claims = out
	slices.SortStableFunc(out, func(a, b lease.Claimed) int { // of equally old ones small ones would take what large ones wait for
		if x.f.In.Settings.Divides() { // the order of turns carries out a division
			return cmp.Compare(a.Made, b.Made)
		}
		return cmp.Or(cmp.Compare(a.Made, b.Made), cmp.Compare(in.Candidates[b.Candidate].GPUs, in.Candidates[a.Candidate].GPUs))
	})
	return out, moving
}

// exactly returns the shape that asks for exactly the nodes of a claim. Claims go on from round to round with the same nodes.
func exactly(x *contest, k *lease.Candidate, cl *cluster.Claim) int {
	known := func(e exactShape) bool {
		return e.site == x.f.Site && e.job == cl.Job && e.asks == k.Shape && len(e.nodes) == len(cl.Nodes) && &e.nodes[0] == &cl.Nodes[0]
	}
	if at := slices.IndexFunc(x.c.exact[1], known); at >= 0 && !k.Running {
		x.c.exact[0] = append(x.c.exact[0], x.c.exact[1][at])
		return x.c.exact[1][at].shape
	}
	spec := x.f.Spec(k.Case)
	spec.Require, spec.Others = make([]string, len(cl.Nodes)), false
	for n := range cl.Nodes {
		spec.Require[n] = cl.Nodes[n].Node
	}
	shape := x.f.Site.Shape(spec)
	x.c.exact[0] = append(x.c.exact[0], exactShape{x.f.Site, cl.Job, k.Shape, cl.Nodes, shape})
	return shape
}

func (x *contest) renew(in *lease.Input, choice *lease.Choice) {
	x.f.Hand.Ended = slices.Grow(x.f.Hand.Ended, len(choice.Renewed))
	for _, i := range choice.Renewed {
		k := &in.Candidates[i]
		x.f.Renew(k.Case, k.Ends.Next)
	}
}

// noteResting reports idle jobs whose leases are not renewed since others wait.
func noteResting(x *contest, in *lease.Input, choice *lease.Choice) {
	for i := range in.Candidates {
		k := &in.Candidates[i]
		if k.Priority.Resting && choice.Passed[i].Code == cluster.ReasonNotice && field.Resting(x.f.In.Snapshot, k.Case) && x.f.Hand.Leases[k.Case].State == cluster.Active && x.f.Ending(k.Case) {
			idle, since := field.Idle(x.f.In.Snapshot, k.Case)
			x.f.Hand.Report(cluster.Event{Kind: cluster.EventIdleReclaim, Job: k.Key,
				Text: fmt.Sprintf("its lease is not renewed, since others wait and its %d GPUs have been idle for %s (idle.reclaim_after)", idle, x.f.In.Now.Sub(since))})
		}
	}
}

// grant makes leases for jobs that can start now, and claims for jobs that must wait for the notice of
// displaced jobs.
func (x *contest) grant(in *lease.Input, choice *lease.Choice) {
	for _, g := range choice.Grants {
		k := &in.Candidates[g.Candidate]
		if k.Running { // it moves when its lease ends
			g.At = max(g.At, x.f.Hand.Leases[k.Case].End)
		}
		if g.At > x.f.In.Now || k.Running {
			cl := x.f.Claim(k.Key, x.f.In.Pools[g.Pool], g.Nodes, g.At)
			if !lease.Promises(&cl, x.f.In.Settings) { // GPUs were kept for the job before: from now on, that is a promise
				cl.Made = x.f.In.Now
			}
			x.f.Hand.Claims = append(x.f.Hand.Claims, cl)
			continue
		}
		x.f.Grant(k.Case, x.f.In.Pools[g.Pool], g.Nodes, x.f.Stops.EndFor(k.Case, x.f.In.Now))
	}
}

// claimsARound limits the new claims of a round. A term has many rounds, and the gangs furthest behind come
// first.
const claimsARound = 32

// hold puts what is claimed for a job on a board.
func hold(f *field.Field, board *place.Board, cl *cluster.Claim) {
	sharer := 0
	if i := f.In.Find(cl.Job); i >= 0 {
		sharer = f.In.Sharer(i)
	}
	board.Hold(cl.Nodes, sharer)
}

// claimFor claims GPUs for gangs that are due but fit nowhere. It looks for nodes in the pool where the gang
// is due, as if every lease that can end had ended. It disturbs as few leases as possible.
func (x *contest) claimFor(in *lease.Input, due []lease.Due) {
	due = due[:min(len(due), claimsARound)]
	if !slices.ContainsFunc(due, func(d lease.Due) bool { return !x.f.Hand.IsClaimed(in.Candidates[d.Candidate].Key) }) {
		return
	}
	x.c.kept = x.f.Fresh(x.c.kept)
	board := x.c.kept
	board.Await(len(x.f.In.Cases))
	ranks := x.rank(in)
	for i, l := range x.f.Hand.Leases {
		st, who := &x.f.In.Cases[i], &x.f.Due.Queued[i]
		switch {
		case !x.f.Fixed(i):
			board.Soften(i, int(who.Queue), ranks[i], l.End, l.Nodes, x.f.In.Sharer(i))
		case st.Live && !st.Waits:
			board.Hold(x.f.In.Snapshot.Cases[i].Job.Holds, x.f.In.Sharer(i))
		}
	}
	for k := range x.f.Hand.Claims {
		hold(x.f, board, &x.f.Hand.Claims[k])
	}
	for _, d := range due {
		k := &in.Candidates[d.Candidate]
		if x.f.Hand.IsClaimed(k.Key) || x.f.Hand.Leases[k.Case] != nil || in.Limits != nil && in.Limits.Room(k.Case) == lease.Never {
			continue
		}
		ask := place.Ask{Shape: k.Shape, Pool: d.Pool, Now: x.f.In.Now, End: x.f.In.Now, Displace: place.Anybodys, Max: -1}
		if in.Keeps(k.Tenant, d.Pool) {
			ask.Spares = 1 + k.Tenant
		}
		if found, ok := board.Fit(ask); ok {
			board.Take(found)
			if in.Limits != nil {
				in.Limits.Take(k.Case, false)
			}
			x.f.Hand.Claims = append(x.f.Hand.Claims, x.f.Claim(k.Key, x.f.In.Pools[d.Pool], found.Nodes, found.At))
		}
	}
}

// rank returns, by case, how far ahead the tenants of the leases that can end are. The lease whose tenant is
// furthest ahead goes first.
func (x *contest) rank(in *lease.Input) []int {
	held := slices.Grow(x.c.held, max(len(x.f.Due.Queues)-len(x.c.held), 0))[:len(x.f.Due.Queues)]
	x.c.held = held
	for t := range held {
		held[t] = held[t][:0]
	}
	for i, l := range x.f.Hand.Leases {
		if !x.f.Fixed(i) {
			t := x.f.Due.Queued[i].Queue
			held[t] = append(held[t], lease.Held{Case: i, Pool: x.f.In.PoolOf(l)[0], GPUs: l.Size.Amount(), Rho: x.f.Turn(i), User: int(x.f.In.Cases[i].User)})
		}
	}
	users := x.f.Users()
	ranks := slices.Grow(x.c.ranks[:0], len(x.f.Hand.Leases))[:len(x.f.Hand.Leases)]
	clear(ranks)
	for t := range held {
		lease.Rank(ranks, held[t], &in.Tenants[t], users, x.f.In.Settings.Term)
	}
	return ranks
}

// explain records for every candidate without a lease the reason, and its place among the jobs of its tenant that wait for the same pool.
func (x *contest) explain(in *lease.Input, choice *lease.Choice) {
	places := make([]int, len(x.f.In.Pools))
	for t := range in.Tenants {
		tenant := &in.Tenants[t]
		clear(places)
		tenant.Each(in.Candidates, func(i, pool, _ int) {
			k := &in.Candidates[i]
			if x.f.Hand.Leases[k.Case] == nil {
				places[pool]++
			}
			if p := &choice.Passed[i]; p.Code != "" && p.Pool == pool {
				x.f.Hand.Marks[k.Case].Together = p.Code == cluster.ReasonTogether
				no := &x.out.Refused[k.Case]
				no.Passed, no.Rank = p, places[pool]
				if p.Until > 0 {
					x.out.Later(x.f.In.Now, p.Until)
				}
				if p.Bound != nil { // the earlier wants of others count less as time passes
					x.out.Later(x.f.In.Now, x.f.In.Now.Add(x.f.In.Settings.Term))
				}
			}
		})
	}
}
