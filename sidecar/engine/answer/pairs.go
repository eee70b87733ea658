package answer

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
)

// A division may give a GPU to two jobs at once (Gavel §3.1, space sharing): its program has columns for pairs of jobs whose types do more beside
// each other than in turns. Jobs of two types are alike, so not all of their pairs are needed.
const (
	// mostPaired is the maximum number of jobs of a program with pairs: its time grows with the square of it.
	mostPaired = 1000
	// mostCouples is the maximum number of pairs of jobs of two types for which all are in the program. Of more, each job has as many as it takes so
	// that all jobs of both types can run in pairs all the time.
	mostCouples = 1024
)

// couples returns the pairs of jobs that may share a GPU. at is the pools of the problem's models, and order the bids of its jobs.
func couples(q *cluster.AllocationRequest, at, order []int, jobs []policy.Job) (out []policy.Pair) {
	if len(q.Pairs) == 0 || len(jobs) > mostPaired {
		return nil
	}
	of := map[string][]int{} // jobs by type
	for row, i := range order {
		if t := q.Bids[i].Type; t != "" {
			of[t] = append(of[t], row)
		}
	}
	for k := range q.Pairs {
		t := &q.Pairs[k]
		for _, c := range matched(of[t.A], of[t.B], t.A == t.B) {
			x := policy.Pair{A: min(c[0], c[1]), B: max(c[0], c[1]), SpeedA: keeps(&jobs[c[0]], t.PartA, at), SpeedB: keeps(&jobs[c[1]], t.PartB, at)}
			if c[0] > c[1] {
				x.SpeedA, x.SpeedB = x.SpeedB, x.SpeedA
			}
			out = append(out, x)
		}
	}
	slices.SortStableFunc(out, func(a, b policy.Pair) int { return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B)) })
	return out
}

// matched returns pairs of jobs of two types, or of one: all of them if they are few, else along a stair from the first of both to the last, or
// round a ring.
func matched(as, bs []int, same bool) (out [][2]int) {
	switch {
	case same && len(as)*(len(as)-1)/2 <= mostCouples:
		for k, a := range as {
			for _, b := range as[k+1:] {
				out = append(out, [2]int{a, b})
			}
		}
	case same:
		for k, a := range as {
			out = append(out, [2]int{a, as[(k+1)%len(as)]})
		}
	case len(as)*len(bs) <= mostCouples:
		for _, a := range as {
			for _, b := range bs {
				out = append(out, [2]int{a, b})
			}
		}
	default:
		for i, j := 0, 0; i < len(as) && j < len(bs); {
			out = append(out, [2]int{as[i], bs[j]})
			if (i+1)*len(bs) <= (j+1)*len(as) {
				i++
			} else {
				j++
			}
		}
	}
	return out
}

// keeps returns the speeds of a job that keeps parts of its speed alone.
func keeps(j *policy.Job, parts []float64, at []int) []float64 {
	out := make([]float64, len(at))
	for m, pool := range at {
		out[m] = j.Speed[m] * parts[pool]
	}
	return out
}

// beside returns, by job and model, half of the GPUs that jobs have as pairs; nil = there are no pairs. It sums these up by types.
func beside(q *cluster.AllocationRequest, d *cluster.Allocation, at, order []int, pairs []policy.Pair, time [][]float64) [][]float64 {
	if len(pairs) == 0 {
		return nil
	}
	known, sums := map[[2]string]int{}, make([][]float64, len(q.Pairs))
	for k := range q.Pairs {
		known[[2]string{q.Pairs[k].A, q.Pairs[k].B}] = k
		sums[k] = make([]float64, len(at))
	}
	out := make([][]float64, len(order))
	for row := range out {
		out[row] = make([]float64, len(at))
	}
	for k := range pairs {
		a, b := q.Bids[order[pairs[k].A]].Type, q.Bids[order[pairs[k].B]].Type
		types := known[[2]string{min(a, b), max(a, b)}]
		for m, part := range time[k] {
			sums[types][m] += part
			out[pairs[k].A][m] += part / 2
			out[pairs[k].B][m] += part / 2
		}
	}
	for k := range sums {
		gpus := make([]cluster.MicroGPU, len(q.Pools))
		for m, pool := range at {
			gpus[pool] = micro(sums[k][m])
		}
		d.Pairs = append(d.Pairs, cluster.PairGPUs{A: q.Pairs[k].A, B: q.Pairs[k].B, GPUs: gpus})
	}
	return out
}
