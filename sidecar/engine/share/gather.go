package share

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// Gangs whose GPUs are held by jobs that we can never stop get no claim: nobody knows when those end. GPUs are gathered
// for them instead: of the nodes that are likely to be free soonest, no more are given to jobs that cannot be stopped.
// Young jobs run there meanwhile. When all that is left there can be stopped, that goes when its term is over, and the gang
// has an ordinary claim. In each pool there is one gang at a time for which GPUs are gathered: the one furthest behind.

// gathered carries on with the gangs for which GPUs were gathered: beside the GPUs of the claims that go on, which are those of
// the candidates and of the jobs that move. It gives the claims of those that may start.
func (x *contest) gathered(in *lease.Input, board *place.Board, moving []cluster.Claim) (ready []lease.Claimed) {
	others := moving
	for k := range in.Claims {
		others = append(others, in.Claims[k].Claim)
	}
	for _, cl := range x.Snapshot.Claims {
		if !cl.Gathers {
			continue
		}
		i := x.Find(cl.Job)
		k := slices.IndexFunc(in.Candidates, func(k lease.Candidate) bool { return k.Case == i && !k.Running && !k.IdleOnly })
		p := x.Pool(cl.Pool)
		if i < 0 || k < 0 || p < 0 {
			continue
		}
		nodes, ok := x.soonest(x.likely(others), &in.Candidates[k], p)
		if ok = ok && mayGather(in, &in.Candidates[k], p, false); !ok {
			continue
		}
		cl.Nodes = nodes
		if claimed, ok := x.whole(in, k, p, cl, others); ok {
			ready = append(ready, claimed)
			continue
		}
		board.Gather(nodes)
		x.Claims = append(x.Claims, cl)
		x.bar(in, nodes)
	}
	return ready
}

// gatherFor begins to gather GPUs for the gang furthest behind that could have no claim.
func (x *contest) gatherFor(in *lease.Input, due []lease.Due) {
	if x.Stops.Rule().Off() {
		return
	}
	var board *place.Board // many gangs are asked about and few find nodes
	for _, d := range due {
		k := &in.Candidates[d.Candidate]
		busy := slices.ContainsFunc(x.Claims, func(c cluster.Claim) bool { return c.Gathers && c.Pool == x.Pools[d.Pool] })
		if busy || x.IsClaimed(k.Key) || x.Leases[k.Case] != nil || k.Running {
			continue
		}
		if !mayGather(in, k, d.Pool, true) {
			continue
		}
		if board == nil {
			board = x.likely(nil)
		}
		if nodes, ok := x.soonest(board, k, d.Pool); ok {
			board.Hold(nodes)
			x.Claims = append(x.Claims, cluster.Claim{Job: k.Key, Pool: x.Pools[d.Pool], Nodes: nodes, At: x.Now, Made: x.Now, Gathers: true})
		}
	}
}

// keep puts the claims on a board.
func (x *contest) keep(board *place.Board) {
	for k := range x.Claims {
		if cl := &x.Claims[k]; cl.Gathers {
			board.Gather(cl.Nodes)
		} else {
			board.Claim(cl.Nodes, cl.At)
		}
	}
}

// likely gives a board without the GPUs of the claims that there are and of others, on which those leases are in the way most
// that are likely to last longest.
func (x *contest) likely(others []cluster.Claim) *place.Board {
	x.kept = x.Fresh(x.kept)
	x.Lay(x.kept, func(i int) (field.Soft, bool) {
		return field.Soft{Owner: int(x.Jobs[i].Queue), Rank: -int(x.lasts(i) / cluster.Second), End: x.Now}, x.Leases[i].State != cluster.Ending
	})
	x.without(x.kept, others)
	return x.kept
}

// without takes the GPUs of the claims that there are and of others off a board.
func (x *contest) without(board *place.Board, others []cluster.Claim) {
	for _, claims := range [][]cluster.Claim{x.Claims, others} {
		for k := range claims {
			board.Hold(claims[k].Nodes)
		}
	}
}

// soonest gives nodes of a likely board for a gang: those that are likely to be free soonest, if every lease of ours there ended
// by itself. It gives none where that is likely to take longer than GPUs may idle for the gang.
func (x *contest) soonest(board *place.Board, k *lease.Candidate, pool int) ([]cluster.Holding, bool) {
	found, ok := board.Fit(place.Ask{Shape: k.Shape, Pool: pool, Now: x.Now, End: x.Now, Displace: place.Anybodys, Stops: true, Max: -1})
	takes := cluster.Span(0)
	for _, i := range found.Displaced {
		takes = max(takes, x.lasts(i))
	}
	return found.Nodes, ok && takes <= x.patience(k.Case)
}

// patience gives how long GPUs may idle for a gang that waits: a twentieth of its wait, at least half an hour. So gathering
// costs others little, and no gang waits for ever.
func (x *contest) patience(i int) cluster.Span {
	return max(30*cluster.Minute, x.Now.Sub(x.Snapshot.Cases[i].Job.Submit)/20)
}

// lasts gives how long a lease is likely to last: nothing where it can be ended, else as long as it has lasted so far, for run times
// have long tails, or what its limit leaves.
func (x *contest) lasts(i int) cluster.Span {
	if x.Jobs[i].Stoppable {
		return 0
	}
	j := &x.Snapshot.Cases[i].Job
	age := x.Now.Sub(j.Start)
	if j.Limit > 0 {
		age = min(age, max(j.Limit-age, 0))
	}
	return age + cluster.Second
}

// whole gives the claim of a gang if all that is left on its nodes can be stopped, which then ends with its term.
func (x *contest) whole(in *lease.Input, candidate, pool int, cl cluster.Claim, others []cluster.Claim) (lease.Claimed, bool) {
	k := &in.Candidates[candidate]
	spec := x.Spec(k.Case)
	spec.Require = nil
	for _, n := range cl.Nodes {
		spec.Require = append(spec.Require, n.Node)
	}
	shape := x.Site.Shape(spec)
	x.kept = x.Fresh(x.kept)
	board := x.kept
	ends := func(l *cluster.Lease) cluster.Instant { // as soon as may be, but not in its term
		return min(l.End, max(x.Now.Add(x.Settings.Notice), lease.Next(max(l.Start, l.Granted), x.Settings)))
	}
	x.Lay(board, func(i int) (field.Soft, bool) {
		st, l := &x.Jobs[i], x.Leases[i]
		if st.Control != cluster.FullControl || st.Ordered(cluster.Exempt) || l.State != cluster.Active {
			return field.Soft{}, false
		}
		at, j := ends(l), x.Stops.Stop(i)
		return field.Soft{Owner: int(st.Queue), Rank: 0, End: at}, !st.Dear && j.May(x.Stops.Rule(), at, x.Settings.Notice)
	})
	x.without(board, others)
	found, ok := board.Fit(place.Ask{Shape: shape, Pool: pool, Now: x.Now, End: x.Now, Displace: place.Anybodys, Stops: true, Max: -1})
	if !ok {
		return lease.Claimed{}, false
	}
	for _, i := range found.Displaced {
		x.Leases[i].End, x.Jobs[i].Stoppable = ends(x.Leases[i]), true
	}
	cl.Gathers, cl.Nodes, cl.At, cl.Made = false, found.Nodes, found.At, x.Now
	return lease.Claimed{Claim: cl, Candidate: candidate, InPool: pool, Shape: shape}, true
}

// bar keeps jobs that run on gathered nodes from being bound there.
func (x *contest) bar(in *lease.Input, nodes []cluster.Holding) {
	on := map[string]bool{}
	for i := range nodes {
		on[nodes[i].Node] = true
	}
	for i := range in.Candidates {
		if k := &in.Candidates[i]; k.Running {
			for _, o := range x.Leases[k.Case].Nodes {
				k.Barred = k.Barred || on[o.Node]
			}
		}
	}
}

// mayGather tells whether GPUs may be gathered for a gang: within its tenant's due, and beyond it where the tenant is owed
// something and the gang is young, for then it runs for the stop budget's allowance only. One that has run already must be
// owed what goes beyond the due for a day. What is being gathered counts against what its tenant is owed.
func mayGather(in *lease.Input, k *lease.Candidate, pool int, anew bool) bool {
	sh := &in.Tenants[k.Tenant].Shares[pool]
	beyond := lease.Beyond(sh.Entitlement, sh.Bound+k.GPUs)
	if beyond == 0 || !anew || k.Unserved {
		return beyond == 0 || sh.Owed > 0
	}
	return sh.Owed >= lease.Worth(beyond, cluster.Day)
}
