package eligible

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// revokeOvertaken ends grants whose GPUs, CPUs or memory went to jobs that started first: ungated jobs,
// jobs that fairlease does not manage, or granted ones for which Slurm chose. The granted job and its nodes are not at fault. So the job has no
// grant timeout and no back-off, and may be granted other GPUs in this round.
func revokeOvertaken(f *Found) {
	in, leases, site := f.facts, f.Leases, f.Site
	var waiting []int // cases with a grant, oldest grant first
	for i, l := range leases {
		if l != nil && l.State == cluster.Granted && l.Behind == 0 && in.Cases[i].Waits {
			waiting = append(waiting, i)
		}
	}
	if len(waiting) == 0 {
		return
	}
	starter := starters(f)
	overtaken := func(i int) bool {
		return slices.ContainsFunc(leases[i].Nodes, func(h cluster.Holding) bool { return starter[h.Node] != 0 })
	}
	if !slices.ContainsFunc(waiting, overtaken) {
		return
	}
	slices.SortStableFunc(waiting, func(i, k int) int { return cmp.Compare(leases[i].Granted, leases[k].Granted) })
	board := site.Board(place.View{})
	for i := range in.Cases {
		if l := leases[i]; in.Cases[i].Runs && (l == nil || l.State == cluster.Active) || in.Configures(i) { // the others are leaving
			board.Hold(in.Snapshot.Cases[i].Job.Holds, in.Sharer(i))
		}
	}
	for _, i := range waiting {
		l := leases[i]
		spec := f.Spec(i)
		spec.Require, spec.Others = nil, false
		for _, h := range l.Nodes {
			spec.Require = append(spec.Require, h.Node)
		}
		found, fits := board.Fit(place.Ask{Shape: site.Shape(spec), Pool: max(in.Pool(l.Pool), 0), Now: in.Now, End: in.Now, Max: -1})
		if fits {
			board.Take(found)
			continue
		}
		for _, h := range l.Nodes {
			if k := starter[h.Node]; k != 0 {
				f.revoke(i, fmt.Sprintf("job %s started on %s first", in.Records[k-1].ID, h.Node))
				break
			}
		}
	}
}

// chosen reports whether Slurm chose where a job with a grant runs: its nodes, its GPUs on each, or the GPU that it has a part of.
func chosen(j *cluster.Job) bool {
	return j.Request.Loose() || j.Request.Shards > 0 || j.Request.PerNode == 0 && len(j.Holds) > 1
}

// starters returns, by node, 1 + the case of a job that started there since the last round and may have GPUs of others' grants.
func starters(f *Found) map[string]int {
	in, leases := f.facts, f.Leases
	out := map[string]int{}
	for i := range in.Cases {
		was := in.Snapshot.Cases[i].Record.State
		if !in.Cases[i].Runs && !in.Configures(i) || was == cluster.Running || was == cluster.Configuring {
			continue
		}
		if leases[i] != nil && !leases[i].Adopted && !behind(in, i) && !chosen(&in.Snapshot.Cases[i].Job) {
			continue
		}
		for _, h := range in.Snapshot.Cases[i].Job.Holds {
			out[h.Node] = 1 + i
		}
	}
	return out
}
