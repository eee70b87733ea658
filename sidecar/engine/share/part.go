package share

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// part gives idle GPUs to jobs that share theirs, where nobody waits: of the jobs on a GPU, one whose lease was just renewed moves when its term ends.
// All gain what they lose beside it: in the coming term more than the move costs, and the one that moves more than that until its expected end.
func part(x *contest, in *lease.Input, board *place.Board, choice *lease.Choice) {
	f := x.f
	if f.In.Settings.Slices == nil || !compacts(f.In.Settings) || len(choice.Renewed) == 0 {
		return
	}
	shared, wanted, turns := sharedWith(x), waited(in, choice), turnsOf(x)
	cost := func(i int) cluster.Span {
		j := f.Stops.Stop(in.Candidates[i].Case)
		return j.Cost(f.Hand.Leases[in.Candidates[i].Case].End, f.In.Settings.Notice)
	}
	renewed := slices.Clone(choice.Renewed)
	slices.SortStableFunc(renewed, func(a, b int) int { return cmp.Compare(cost(a), cost(b)) })
	moved := map[int]bool{} // by case
	for _, i := range renewed {
		k := &in.Candidates[i]
		others := shared[k.Case]
		if len(others) == 0 || slices.ContainsFunc(others, func(o int) bool { return moved[o] }) || wanted[k.Pools[0]] {
			continue
		}
		own, soon := loses(x, &turns, k.Case, others, nil)
		for _, o := range others {
			rest := slices.DeleteFunc(slices.Clone(others), func(other int) bool { return other == o })
			_, gains := loses(x, &turns, o, append(slices.Clone(rest), k.Case), rest)
			soon += gains
		}
		if c := cost(i); c >= own || c >= soon || in.Stops != nil && !in.Stops.May(k.Case, []int{k.Case}) {
			continue
		}
		spec := f.Spec(k.Case)
		spec.Request = f.In.Records[k.Case].Slice.Request
		p, ok := board.Fit(place.Ask{Shape: f.Site.Shape(spec), Pool: k.Pools[0], Now: f.In.Now, End: lease.Next(f.Hand.Leases[k.Case].End, f.In.Settings),
			Displace: place.Nobodys, Stops: k.Binds == lease.Unbound, Max: -1})
		if !ok {
			continue
		}
		board.Take(p)
		if in.Stops != nil {
			in.Stops.Count(k.Case, []int{k.Case})
		}
		choice.Grants = append(choice.Grants, lease.Grant{Candidate: i, Pool: k.Pools[0], Placement: lease.Placement(p)})
		moved[k.Case] = true
	}
	choice.Renewed = slices.DeleteFunc(choice.Renewed, func(i int) bool { return moved[in.Candidates[i].Case] })
}

// sharedWith returns by case the other jobs on its GPU that take turns there, or run at the same time.
func sharedWith(x *contest) map[int][]int {
	return round.Mates(func(yield func(int, cluster.Device) bool) {
		for i, l := range x.f.Hand.Leases {
			if l == nil || l.State != cluster.Active || x.f.In.Records[i].Slice == nil || len(l.Nodes) != 1 {
				continue
			}
			for d := range l.Nodes[0].Devices() {
				if !yield(i, d) {
					return
				}
			}
		}
	})
}

// waited returns by pool whether a job waits that could use a GPU there.
func waited(in *lease.Input, choice *lease.Choice) map[int]bool {
	served, pools := map[int]bool{}, map[int]bool{}
	for _, g := range choice.Grants {
		served[g.Candidate] = true
	}
	for i := range in.Candidates {
		if k := &in.Candidates[i]; !k.Running && !served[i] {
			for _, p := range k.Pools {
				pools[p] = true
			}
		}
	}
	return pools
}

// loses returns the time that a job loses beside others on its GPU until its expected end, and in the coming term: more than beside fewer of them.
func loses(x *contest, turns *turns, i int, others, fewer []int) (all, soon cluster.Span) {
	loses := turns.time(append([]int{i}, fewer...)...) - turns.time(append([]int{i}, others...)...)
	if p := x.f.In.Records[i].Slice.Pair; len(others) == 1 && p != nil && p.Beside && p.Alone > 0 && p.Both > 0 {
		loses = 1 - min(p.Both/p.Alone, 1)
	}
	rest := cluster.Span(x.f.Stops.Needs(i)) * cluster.Second
	part := func(of cluster.Span) cluster.Span { return cluster.Span(float64(of) * loses) }
	return part(rest), part(min(rest, x.f.In.Settings.Term))
}
