package share

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// compactionsARound limits the gangs for which other jobs move in a round.
const compactionsARound = 32

// compacts reports whether jobs move for gangs. Policies for GPU models move jobs themselves.
func compacts(s *cluster.Settings) bool { return s.CompactPercent > 0 && !s.Divides() }

// compact gives idle GPUs to gangs that they fit in number but not on their nodes, in the order of turns: jobs whose
// leases were just renewed move to idle GPUs of other nodes when their terms end. They keep their number of GPUs, so all
// that other tenants lose is the cost of the moves: at most CompactPercent of the GPU time that the gang can use in a term, and no more than
// the gang loses by beginning on other nodes if it could. The stop budget holds as for all leases that end.
func compact(x *contest, in *lease.Input, board *place.Board, choice *lease.Choice) {
	if !compacts(x.f.In.Settings) || len(choice.Renewed) == 0 || len(choice.Scattered) == 0 {
		return
	}
	at := make(map[int]int, len(choice.Renewed)) // candidates by case
	for _, i := range choice.Renewed {
		c := in.Candidates[i].Case
		at[c] = i
		place.Release(board, x.f.In.Snapshot.Cases[c].Job.Holds, x.f.In.Sharer(c))
		board.Soften(c, int(x.f.Due.Queued[c].Queue), 0, x.f.Hand.Leases[c].End, x.f.In.Snapshot.Cases[c].Job.Holds, x.f.In.Sharer(c))
	}
	mover := func(c int) (place.Ask, cluster.GPUTime) {
		k, l, j := &in.Candidates[at[c]], x.f.Hand.Leases[c], x.f.Stops.Stop(c)
		return place.Ask{Shape: x.f.Site.Shape(x.f.Spec(c)), Pool: k.Pools[0], Now: x.f.In.Now, End: lease.Next(l.End, x.f.In.Settings), Stops: k.Binds == lease.Unbound, Max: -1, Sharer: x.f.In.Sharer(c)},
			k.Counts().Over(j.Cost(l.End, x.f.In.Settings.Notice))
	}
	type kind struct{ shape, pool int }
	refused, left := map[kind]bool{}, reclaimsLeft(x.f.In.Settings, choice)
	for _, d := range choice.Scattered[:min(len(choice.Scattered), compactionsARound)] {
		k := &in.Candidates[d.Candidate]
		if in.Limits != nil && in.Limits.Room(k.Case) != lease.Now {
			continue
		}
		if refused[kind{k.Shape, d.Pool}] || left == 0 || x.f.Hand.IsClaimed(k.Key) || slices.Contains([]cluster.Code{"", cluster.ReasonClaim}, choice.Passed[d.Candidate].Code) {
			continue
		}
		ask := place.Ask{Shape: k.Shape, Pool: d.Pool, Now: x.f.In.Now, End: max(k.Ends.By, lease.Next(x.f.In.Now, x.f.In.Settings)), Displace: place.Anybodys, Stops: true, Max: left}
		uses := x.f.In.Settings.Term
		if limit := x.f.In.Limit(k.Case); limit > 0 {
			uses = min(uses, limit)
		}
		most := cluster.GPUTime(cluster.MulDiv(int64(k.In(d.Pool).Over(uses)), int64(x.f.In.Settings.CompactPercent), 100))
		if p := &choice.Passed[d.Candidate]; p.Code == cluster.ReasonTogether {
			_, switches := field.Together(x.f, k.Case, d.Pool)
			ask.Together, ask.Near, most = true, switches > x.f.In.Now, min(most, k.In(d.Pool).Over(p.Until.Sub(x.f.In.Now)))
		}
		gang, moves, ok := place.Compact(board, ask, most, mover)
		if !ok || in.Stops != nil && !in.Stops.May(k.Case, gang.Displaced) {
			refused[kind{k.Shape, d.Pool}] = true
			continue
		}
		if in.Stops != nil {
			in.Stops.Count(k.Case, gang.Displaced)
		}
		if in.Limits != nil {
			in.Limits.Take(k.Case, true)
		}
		for n, c := range gang.Displaced {
			choice.Grants = append(choice.Grants, lease.Grant{Candidate: at[c], Pool: in.Candidates[at[c]].Pools[0], Placement: lease.Placement(moves[n])})
		}
		choice.Grants = append(choice.Grants, lease.Grant{Candidate: d.Candidate, Pool: d.Pool, Placement: lease.Placement(gang)})
		choice.Renewed = slices.DeleteFunc(choice.Renewed, func(i int) bool { return slices.Contains(gang.Displaced, in.Candidates[i].Case) })
		choice.Passed[d.Candidate] = round.Passed{}
		if left > 0 {
			left -= len(gang.Displaced)
		}
	}
}
