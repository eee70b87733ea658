package share

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// A gang gets no claim if its GPUs are held by jobs that can never be stopped, because the end of such jobs
// is unknown. GPUs are gathered for it instead. fairlease picks the nodes that are likely to be free soonest,
// and gives no more of their GPUs to jobs that cannot be stopped. Young jobs run there meanwhile. When all
// jobs left there can be stopped, their leases end with their terms, and the gang gets an ordinary claim. In
// each pool GPUs are gathered for one gang at a time, the one furthest behind.

// gathered continues to gather GPUs, beside the GPUs of all claims that continue: those of candidates, and
// moving. It returns the claims of the gangs that may start.
func (x *contest) gathered(in *lease.Input, board *place.Board, moving []cluster.Claim) (ready []lease.Claimed) {
	if !slices.ContainsFunc(x.f.In.Snapshot.Claims, func(c cluster.Claim) bool { return c.Gathers }) {
		return nil
	}
	others := moving
	for k := range in.Claims {
		others = append(others, in.Claims[k].Claim)
	}
	var soon *place.Board // nil = it has to be laid out
	for _, cl := range x.f.In.Snapshot.Claims {
		if !cl.Gathers {
			continue
		}
		i := x.f.In.Find(cl.Job)
		k := slices.IndexFunc(in.Candidates, func(k lease.Candidate) bool { return k.Case == i && !k.Running && !k.IdleOnly })
		p := x.f.In.Pool(cl.Pool)
		if i < 0 || k < 0 || p < 0 {
			continue
		}
		if soon == nil {
			soon = x.likely(others)
		}
		nodes, ok := x.soonest(soon, in, &in.Candidates[k], p)
		if ok = ok && mayGather(in, &in.Candidates[k], p, false); !ok {
			continue
		}
		cl.Nodes = nodes
		if claimed, ok := x.whole(in, k, p, cl, others); ok {
			ready, soon = append(ready, claimed), nil
			continue
		}
		board.Gather(nodes)
		hold(x.f, soon, &cl)
		x.f.Hand.Claims = append(x.f.Hand.Claims, cl)
		x.bar(in, nodes)
	}
	return ready
}

// gatherFor begins to gather GPUs for the gang furthest behind that could have no claim.
func (x *contest) gatherFor(in *lease.Input, due []lease.Due) {
	if x.f.Stops.Rule().Off() {
		return
	}
	busy := make([]bool, len(x.f.In.Pools)) // GPUs are gathered there
	for k := range x.f.Hand.Claims {
		if cl := &x.f.Hand.Claims[k]; cl.Gathers {
			if p := x.f.In.Pool(cl.Pool); p >= 0 {
				busy[p] = true
			}
		}
	}
	var board *place.Board // made late: many gangs are tried, and few find nodes
	for _, d := range due {
		k := &in.Candidates[d.Candidate]
		if busy[d.Pool] || x.f.Hand.IsClaimed(k.Key) || x.f.Hand.Leases[k.Case] != nil || k.Running {
			continue
		}
		if !mayGather(in, k, d.Pool, true) {
			continue
		}
		if board == nil {
			board = x.likely(nil)
		}
		if nodes, ok := x.soonest(board, in, k, d.Pool); ok {
			board.Hold(nodes, 0)
			busy[d.Pool] = true
			x.f.Hand.Claims = append(x.f.Hand.Claims, cluster.Claim{Job: k.Key, Pool: x.f.In.Pools[d.Pool], Nodes: nodes, At: x.f.In.Now, Made: x.f.In.Now, Gathers: true})
		}
	}
}

// keep puts the claims on a board.
func (x *contest) keep(board *place.Board) {
	for k := range x.f.Hand.Claims {
		if cl := &x.f.Hand.Claims[k]; cl.Gathers {
			board.Gather(cl.Nodes)
		} else {
			board.Claim(cl.Nodes, cl.At)
		}
	}
}

// likely returns a board without the GPUs of existing claims and of others. Leases that are likely to last
// longest are displaced last.
func (x *contest) likely(others []cluster.Claim) *place.Board {
	ends := drains(x)
	x.c.likely = x.f.Lay(x.c.likely, func(i int) (field.Soft, bool) {
		return field.Soft{Owner: int(x.f.Due.Queued[i].Queue), Rank: -int(ends[i] / cluster.Second), End: x.f.In.Now}, x.f.Hand.Leases[i].State != cluster.Ending
	})
	x.without(x.c.likely, others)
	return x.c.likely
}

// drains returns, by case, how long it is likely to take until a lease and all leases of its nodes that are likely to
// end before it have ended by themselves. Of run times with long tails, a job that has run for a time a still runs after
// another h with probability a/(a+h). So until several jobs have ended it takes about as long as all of them together
// have run: eight jobs are likely to hold a node for longer than one job that has run twice as long.
func drains(x *contest) []cluster.Span {
	out := make([]cluster.Span, len(x.f.Hand.Leases))
	var line []int
	for i, l := range x.f.Hand.Leases {
		if l == nil || !x.f.In.Cases[i].Runs {
			continue
		}
		if out[i] = x.lasts(i); out[i] > 0 {
			line = append(line, i)
		}
	}
	slices.SortStableFunc(line, func(a, b int) int { return cmp.Compare(out[a], out[b]) })
	on := map[string]cluster.Span{}
	for _, i := range line {
		for lasts, k := out[i], 0; k < len(x.f.Hand.Leases[i].Nodes); k++ {
			node := x.f.Hand.Leases[i].Nodes[k].Node
			on[node] += lasts
			out[i] = max(out[i], on[node])
		}
	}
	return out
}

// without takes the GPUs of existing claims and of others off a board.
func (x *contest) without(board *place.Board, others []cluster.Claim) {
	for _, claims := range [][]cluster.Claim{x.f.Hand.Claims, others} {
		for k := range claims {
			hold(x.f, board, &claims[k])
		}
	}
}

// soonest returns nodes of a likely board for a gang: those that will probably be free soonest, if every
// lease of ours there ended by itself. For a gang beyond its tenant's share it returns none if that is likely to
// take longer than GPUs may idle for the gang.
func (x *contest) soonest(board *place.Board, in *lease.Input, k *lease.Candidate, pool int) ([]cluster.Holding, bool) {
	found, ok := board.Fit(place.Ask{Shape: k.Shape, Pool: pool, Now: x.f.In.Now, End: x.f.In.Now, Displace: place.Anybodys, Stops: true, Max: -1})
	takes := cluster.Span(0)
	for _, i := range found.Displaced {
		takes = max(takes, x.lasts(i))
	}
	return found.Nodes, ok && (beyond(in, k, pool) == 0 || takes <= x.patience(k.Case))
}

// patience returns how long GPUs may idle for a waiting gang beyond its tenant's share: a twentieth of its wait, at least
// 30 minutes. So gathering costs others little, and no gang waits for ever.
func (x *contest) patience(i int) cluster.Span {
	return max(30*cluster.Minute, x.f.In.Now.Sub(x.f.In.Snapshot.Cases[i].Job.Submit)/20)
}

// lasts returns how long a lease is likely to last: 0 if it can be ended. Otherwise it is as long as the job
// has run so far, because run times have long tails, but at most what its limit leaves.
func (x *contest) lasts(i int) cluster.Span {
	if x.f.Hand.Marks[i].Stoppable {
		return 0
	}
	j := &x.f.In.Snapshot.Cases[i].Job
	age := x.f.In.Now.Sub(j.Start)
	if j.Limit > 0 {
		age = min(age, max(j.Limit-age, 0))
	}
	return age + cluster.Second
}

// whole returns the claim of a gang if all jobs left on its nodes can be stopped. Their leases then end with
// their terms.
func (x *contest) whole(in *lease.Input, candidate, pool int, cl cluster.Claim, others []cluster.Claim) (lease.Claimed, bool) {
	k := &in.Candidates[candidate]
	spec := x.f.Spec(k.Case)
	spec.Require, spec.Others = nil, false
	for _, n := range cl.Nodes {
		spec.Require = append(spec.Require, n.Node)
	}
	shape := x.f.Site.Shape(spec)
	near := func(h cluster.Holding) bool { return slices.Contains(spec.Require, h.Node) }
	ends := func(i int) cluster.Instant { // as soon as possible, but not in its term
		l := x.f.Hand.Leases[i]
		return min(l.End, max(x.f.In.Now.Add(l.NoticeIn(x.f.In.Settings)), x.f.Stops.Boundary(i, max(l.Start, l.Granted))))
	}
	x.c.kept = x.f.Lay(x.c.kept, func(i int) (field.Soft, bool) {
		st, who, owes, l := &x.f.In.Cases[i], &x.f.Due.Queued[i], &x.f.Stops.Owes[i], x.f.Hand.Leases[i]
		if st.Control != cluster.FullControl || st.Ordered(cluster.Exempt) || l.State != cluster.Active || !slices.ContainsFunc(l.Nodes, near) {
			return field.Soft{}, false
		}
		at, j := ends(i), x.f.Stops.Stop(i)
		return field.Soft{Owner: int(who.Queue), Rank: 0, End: at}, !owes.Dear && j.May(x.f.Stops.Rule(), at, l.NoticeIn(x.f.In.Settings))
	})
	x.without(x.c.kept, others)
	found, ok := x.c.kept.Fit(place.Ask{Shape: shape, Pool: pool, Now: x.f.In.Now, End: x.f.In.Now, Displace: place.Anybodys, Stops: true, Max: -1})
	if !ok {
		return lease.Claimed{}, false
	}
	for _, i := range found.Displaced {
		x.f.Hand.Leases[i].End, x.f.Hand.Marks[i].Stoppable = ends(i), true
	}
	cl.Gathers, cl.Nodes, cl.At, cl.Made = false, found.Nodes, found.At, x.f.In.Now
	return lease.Claimed{Claim: cl, Candidate: candidate, InPool: pool, Shape: shape}, true
}

// bar keeps jobs that run on gathered nodes from binding GPUs there.
func (x *contest) bar(in *lease.Input, nodes []cluster.Holding) {
	on := map[string]bool{}
	for i := range nodes {
		on[nodes[i].Node] = true
	}
	for i := range in.Candidates {
		if k := &in.Candidates[i]; k.Running {
			for _, o := range x.f.Hand.Leases[k.Case].Nodes {
				k.Barred = k.Barred || on[o.Node]
			}
		}
	}
}

// mayGather reports whether GPUs may be gathered for a gang. The gang may be within its tenant's share.
// Beyond the share, the tenant must be owed GPU time, and the gang must be young: it then runs for the stop
// allowance only. A gang that has run already needs a tenant that is owed at least the excess for a day. anew
// is true for a new gathering; one that continues needs only some time owed. Gathered GPUs reduce what the tenant is owed.
func mayGather(in *lease.Input, k *lease.Candidate, pool int, anew bool) bool {
	owed, excess := in.Tenants[k.Tenant].Shares[pool].Owed, beyond(in, k, pool)
	if excess == 0 || !anew || k.Priority.Unserved {
		return excess == 0 || owed > 0
	}
	return owed >= lease.Worth(excess, cluster.Day)
}

// beyond returns the part of a gang that its tenant would bind beyond its share.
func beyond(in *lease.Input, k *lease.Candidate, pool int) cluster.MicroGPU {
	sh := &in.Tenants[k.Tenant].Shares[pool]
	return lease.Beyond(sh.Entitlement-sh.Siblings, sh.Bound+k.In(pool))
}
