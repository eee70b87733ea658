package eligible

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// RevokeOvertaken ends grants whose GPUs, CPUs or memory went to jobs that started first: ungated jobs, or
// jobs that fairlease does not manage. The granted job and its nodes are not at fault. So the job has no
// grant timeout and no back-off, and may be granted other GPUs in this round.
func RevokeOvertaken(b *round.Books, site *place.Site) {
	var waiting []int // cases with a grant, oldest grant first
	for i, l := range b.Leases {
		if l != nil && l.State == cluster.Granted && l.Behind == 0 && b.Jobs[i].Is.Waits {
			waiting = append(waiting, i)
		}
	}
	if len(waiting) == 0 {
		return
	}
	starter := starters(b)
	overtaken := func(i int) bool {
		return slices.ContainsFunc(b.Leases[i].Nodes, func(h cluster.Holding) bool { return starter[h.Node] != 0 })
	}
	if !slices.ContainsFunc(waiting, overtaken) {
		return
	}
	slices.SortStableFunc(waiting, func(i, k int) int { return cmp.Compare(b.Leases[i].Granted, b.Leases[k].Granted) })
	board := site.Board(place.View{})
	for i := range b.Jobs {
		if l := b.Leases[i]; b.Jobs[i].Is.Runs && (l == nil || l.State == cluster.Active) || b.Configures(i) { // the others are leaving
			board.Hold(b.In.Snapshot.Cases[i].Job.Holds)
		}
	}
	for _, i := range waiting {
		l := b.Leases[i]
		spec := Spec(b, i)
		spec.Require = nil
		for _, h := range l.Nodes {
			spec.Require = append(spec.Require, h.Node)
		}
		found, fits := board.Fit(place.Ask{Shape: site.Shape(spec), Pool: max(b.In.Pool(l.Pool), 0), Now: b.In.Now, End: b.In.Now, Max: -1})
		if fits {
			board.Take(found)
			continue
		}
		for _, h := range l.Nodes {
			if k := starter[h.Node]; k != 0 {
				b.Records[i].SlurmSaid = fmt.Sprintf("job %s started on %s first", b.Records[k-1].ID, h.Node)
				b.RevokeGrant(i, "taken back: "+b.Records[i].SlurmSaid)
				break
			}
		}
	}
}

// starters returns, by node, 1 + the case of a job that started there without a grant of its own GPUs since the last round.
func starters(b *round.Books) map[string]int {
	out := map[string]int{}
	for i := range b.Jobs {
		was := b.In.Snapshot.Cases[i].Record.State
		if !b.Jobs[i].Is.Runs && !b.Configures(i) || was == cluster.Running || was == cluster.Configuring || b.Leases[i] != nil && !b.Leases[i].Adopted && !behind(b, i) {
			continue
		}
		for _, h := range b.In.Snapshot.Cases[i].Job.Holds {
			out[h.Node] = 1 + i
		}
	}
	return out
}
