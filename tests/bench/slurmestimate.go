package main

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
)

// Slurm's estimate of a start is that of its backfill plan: running jobs end at their time limits, and each waiting job, first
// come first, gets the earliest time at which enough nodes are free for its whole limit. Its estimate of an end is the start and
// the limit. The traces have no limits, so they are made by two rules. Both know the job's own run time.

// usualLimits are those of queues of many sites.
var usualLimits = []cluster.Span{cluster.Hour, 4 * cluster.Hour, 12 * cluster.Hour, cluster.Day, 2 * cluster.Day, 4 * cluster.Day, 7 * cluster.Day, 14 * cluster.Day, 30 * cluster.Day}

// usual gives the shortest usual limit that covers a run time.
func usual(runs cluster.Span) cluster.Span {
	at, _ := slices.BinarySearch(usualLimits, runs)
	return usualLimits[min(at, len(usualLimits)-1)]
}

// limits are the time limits of the jobs of a trace, by name.
type limits map[string]cluster.Span

// askedLimits are limits as users ask for: a job uses a part of its limit that is uniform between 0 and 1 (Tsafrir, Etsion and Feitelson,
// Modeling User Runtime Estimates, 2005), rounded up to a usual limit.
func askedLimits(s *experiment.Setup) limits {
	out, rng := limits{}, rand.New(rand.NewPCG(1, 1))
	for j := range s.Load.Jobs {
		out[j.ID] = usual(cluster.Span(min(float64(j.Runs)/(1-rng.Float64()), float64(30*cluster.Day))))
	}
	return out
}

// tightLimits are the shortest usual limits that cover a job and the last ten of its user with as many GPUs: no user knows so well.
func tightLimits(s *experiment.Setup) limits {
	type asks struct {
		user string
		gpus int
	}
	out, last := limits{}, map[asks][]cluster.Span{}
	for j := range s.Load.Jobs {
		who := asks{cmp.Or(j.User, j.Tenant), j.GPUs}
		last[who] = append(last[who], j.Runs)
		last[who] = last[who][max(len(last[who])-11, 0):]
		out[j.ID] = usual(slices.Max(last[who]))
	}
	return out
}

// statementKey names a statement.
type statementKey struct {
	said cluster.Instant
	job  cluster.JobID
	kind forecast.Kind
}

// guess is an estimate of Slurm's.
type guess struct {
	statementKey
	at cluster.Instant
}

// resolution and window of the plan, as bf_resolution=600 and a bf_window that covers all limits.
const (
	resolution = 10 * cluster.Minute
	window     = 44 * cluster.Day
)

// estimate gives Slurm's estimates for the jobs of a snapshot.
func (l limits) estimate(snap *cluster.Snapshot) (out []guess) {
	bins := int(window / resolution)
	at := map[string]int{}
	free := make([][]int16, len(snap.Nodes)) // by node and bin
	for i := range snap.Nodes {
		at[snap.Nodes[i].Name], free[i] = i, make([]int16, bins)
		for b := range free[i] {
			free[i][b] = int16(snap.Nodes[i].GPUs[0].Count)
		}
	}
	left := func(c *cluster.Case) cluster.Span { // of its limit
		return max(l[c.Job.Name]-cluster.Span(c.Record.Alloc)/cluster.Span(max(c.Job.Request.Size.Devices, 1)), resolution)
	}
	var waiting []*cluster.Case
	for i := range snap.Cases {
		c := &snap.Cases[i]
		switch {
		case c.Gone || c.Job.State == cluster.Done:
		case c.Job.State == cluster.Running:
			end := snap.Now.Add(left(c))
			out = append(out, guess{statementKey{snap.Now, c.Record.ID, forecast.Ends}, end})
			for _, h := range c.Job.Holds {
				take(free[at[h.Node]], 0, int((left(c)+resolution-1)/resolution), int16(h.Size.Devices))
			}
		default:
			waiting = append(waiting, c)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *cluster.Case) int { return cmp.Compare(a.Record.First, b.Record.First) })
	for _, c := range waiting {
		b := plan(free, &c.Job.Request, int((left(c)+resolution-1)/resolution))
		start := snap.Now.Add(cluster.Span(b) * resolution)
		out = append(out, guess{statementKey{snap.Now, c.Record.ID, forecast.Starts}, start},
			guess{statementKey{snap.Now, c.Record.ID, forecast.Returns}, start.Add(left(c))})
	}
	return out
}

func take(free []int16, from, to int, gpus int16) {
	for b := from; b < min(to, len(free)); b++ {
		free[b] -= gpus
	}
}

// plan books the earliest time for a request, and gives its bin.
func plan(free [][]int16, r *cluster.Request, length int) int {
	nodes := max(r.Nodes, 1)
	each := int16((r.Size.Devices + nodes - 1) / nodes)
	last := len(free[0])
	since := make([]int, len(free)) // the bin from which each node has been free
	for b := range last {
		var on []int
		for n := range free {
			if free[n][b] < each {
				since[n] = b + 1
			}
			if since[n] <= b-length+1 {
				on = append(on, n)
			}
		}
		if len(on) >= nodes {
			for _, n := range on[:nodes] {
				take(free[n], b-length+1, b+1, each)
			}
			return b - length + 1
		}
	}
	return last
}
