package slurm

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// assemble gives all jobs that concern GPU nodes, sorted. It settles what depends on several
// records: an array's limit, and which job counts for a GPU that several jobs share.
func (s *seen) assemble(now cluster.Instant) []cluster.Job {
	if s.given && !s.changed {
		return s.keepSuspended(s.last.Jobs, now)
	}
	var out []cluster.Job
	limits := map[int64]int{}
	taken := map[gpu]bool{}
	for _, id := range slices.Sorted(maps.Keys(s.records)) {
		rec := s.records[id]
		if rec.limit > 0 {
			limits[rec.array] = rec.limit
		}
		at := len(out)
		out = append(out, rec.jobs...)
		if len(rec.shards) > 0 && len(rec.jobs) > 0 {
			out[at].Holds = s.withShared(out[at].Holds, rec.shards, taken)
		}
	}
	slices.SortFunc(out, func(a, b cluster.Job) int {
		return cmp.Or(a.ID.Compare(b.ID), cmp.Compare(a.Record, b.Record))
	})
	limitArrays(out, limits, now)
	return s.keepSuspended(out, now)
}

// keepSuspended updates the suspension of suspended jobs to now.
func (s *seen) keepSuspended(jobs []cluster.Job, now cluster.Instant) []cluster.Job {
	cloned := false
	for i := range jobs {
		if jobs[i].State != cluster.Suspended || jobs[i].Start == 0 {
			continue
		}
		if !cloned {
			jobs, cloned = slices.Clone(jobs), true
		}
		jobs[i].Suspend = max(now.Sub(jobs[i].Start)-s.records[jobs[i].Record].ran, 0)
	}
	return jobs
}

// gpu is one GPU of a node.
type gpu struct {
	node  string
	index int
}

// withShared adds the shared GPUs of a job to its holdings, unless another job counts for them
// already: each GPU is held once.
func (s *seen) withShared(held []cluster.Holding, shards map[string][]int, taken map[gpu]bool) []cluster.Holding {
	held = slices.Clone(held)
	for i := range held {
		h := &held[i]
		for _, index := range shards[h.Node] {
			g := gpu{h.Node, index}
			if taken[g] {
				continue
			}
			taken[g] = true
			h.Model = cmp.Or(h.Model, onlyModel(s.gpuNodes[h.Node]))
			h.GPUs++
			h.Index = append(slices.Clone(h.Index), index)
		}
	}
	return held
}

// limitArrays marks the waiting tasks that their array's %limit keeps from starting. Tasks with
// an open gate count first, then by number.
func limitArrays(jobs []cluster.Job, limits map[int64]int, now cluster.Instant) {
	if len(limits) == 0 {
		return
	}
	room := maps.Clone(limits)
	var waiting []*cluster.Job
	for i := range jobs {
		j := &jobs[i]
		if _, isTask := j.ID.Index(); !isTask || limits[j.ID.ID] == 0 {
			continue
		}
		switch {
		case holds(j.State):
			room[j.ID.ID]--
		case j.State == cluster.Waiting && j.Inactive == "":
			waiting = append(waiting, j)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *cluster.Job) int {
		return cmp.Compare(gated(a, now), gated(b, now))
	})
	for _, j := range waiting {
		if room[j.ID.ID]--; room[j.ID.ID] < 0 {
			j.Inactive = "array limit"
		}
	}
}

func gated(j *cluster.Job, now cluster.Instant) int {
	if j.Eligible > now {
		return 1
	}
	return 0
}
