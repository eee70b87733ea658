package stride

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Pass measures how much of its entitlement a job has received, in billionths of One; only
// differences and order matter.
type Pass int64

const (
	// One is the advance of a job that runs for a quantum with one ticket per GPU.
	One Pass = 1_000_000_000
	// Never is the pass of a job without one yet.
	Never Pass = math.MinInt64
	// slowest is the stride of jobs without tickets; far is the maximum pass.
	slowest Pass = 1_000_000 * One
	far     Pass = 1 << 61
)

// Job is a job that runs when its turn comes.
type Job struct {
	Key    cluster.JobKey `json:"key"` // breaks ties
	GPUs   int            `json:"gpus"`
	Pass   Pass           `json:"pass"`
	Stride Pass           `json:"stride"`
}

// Stride is the advance per quantum of a user's jobs, which want so many GPUs in all: the inverse
// of the user's tickets per GPU (eq. 1). It is equal for all jobs of a user, since a job's
// tickets are proportional to its GPUs (eq. 3).
func Stride(wanted int, tickets cluster.MicroGPU) Pass {
	if tickets <= 0 {
		return slowest
	}
	wants := int64(max(wanted, 1)) * int64(cluster.WholeGPU)
	return min(Pass(cluster.MulDiv(int64(One), wants, int64(tickets))), slowest)
}

// PerGPU is the tickets per GPU of a user's demand (eq. 1).
func PerGPU(wanted int, tickets cluster.MicroGPU) cluster.MicroGPU {
	return max(tickets, 0) / cluster.MicroGPU(max(wanted, 1))
}

// After gives the job after it has run for a part of a quantum.
func (j Job) After(ran, quantum cluster.Span) Job {
	on := Pass(cluster.MulDiv(int64(max(j.Stride, 0)), int64(max(ran, 0)), int64(max(quantum, 1))))
	j.Pass = min(min(j.Pass, far)+min(on, far), far)
	return j
}

// Join is the pass of a job that joins others. A new job gets their minimum, so that it neither
// waits for their past nor makes up for it. A returning job keeps its own if that is larger.
func Join(own Pass, others []Job) Pass {
	if len(others) == 0 {
		return max(own, 0)
	}
	least := far
	for i := range others {
		least = min(least, others[i].Pass)
	}
	return max(own, least)
}

// Next gives the jobs, as indices in the order of their passes, that run in the next quantum on
// so many GPUs (Algorithm 1). Passes change after the run.
func Next(jobs []Job, free int) []int {
	var run []int
	for _, i := range byPass(jobs) {
		if free == 0 {
			break
		}
		if g := jobs[i].GPUs; g > 0 && g <= free {
			free -= g
			run = append(run, i)
		}
	}
	return run
}

// byPass gives the order of jobs: the smallest pass first, then by key.
func byPass(jobs []Job) []int {
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(jobs[a].Pass, jobs[b].Pass), cmp.Compare(jobs[a].Key, jobs[b].Key))
	})
	return order
}
