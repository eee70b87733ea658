package slurm

import (
	"cmp"
	"maps"
	"slices"
	"strings"

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
	var apart []int // of out: jobs whose nodes are closed to other users
	for _, id := range slices.Sorted(maps.Keys(s.records)) {
		rec := s.records[id]
		if rec.limit > 0 {
			limits[rec.array] = rec.limit
		}
		at := len(out)
		out = append(out, rec.jobs...)
		if len(rec.shares) > 0 && len(rec.jobs) > 0 {
			out[at].Holds = s.withShared(out[at].Holds, rec.shares, taken)
		}
		if rec.apart && len(rec.jobs) == 1 && len(out[at].Holds) > 0 {
			apart = append(apart, at)
		}
	}
	s.keepWhole(out, apart)
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
func (s *seen) withShared(held []cluster.Holding, shares map[string][]int, taken map[gpu]bool) []cluster.Holding {
	held = slices.Clone(held)
	for i := range held {
		h := &held[i]
		for _, index := range shares[h.Node] {
			g := gpu{h.Node, index}
			if taken[g] {
				continue
			}
			taken[g] = true
			h.Model = cmp.Or(h.Model, onlyModel(s.gpuNodes[h.Node]))
			h.Size = h.Size.And(cluster.Whole(1))
			h.Index = append(slices.Clone(h.Index), index)
		}
	}
	return held
}

// keepWhole adds to the holdings of jobs whose nodes are closed to other users (apart) the GPUs there that no job holds, since
// nobody else can have them. Of several such jobs on a node the first has them.
func (s *seen) keepWhole(jobs []cluster.Job, apart []int) {
	if len(apart) == 0 {
		return
	}
	here := map[string][]cluster.Holding{} // holdings, by node that is closed
	for _, at := range apart {
		for _, h := range jobs[at].Holds {
			here[h.Node] = nil
		}
	}
	for i := range jobs {
		for _, h := range jobs[i].Holds {
			if list, ok := here[h.Node]; ok && h.Size.Devices > 0 {
				here[h.Node] = append(list, h)
			}
		}
	}
	for _, at := range apart {
		var held []cluster.Holding
		for rest := jobs[at].Holds; len(rest) > 0; {
			node := rest[0].Node
			end := slices.IndexFunc(rest, func(h cluster.Holding) bool { return h.Node != node })
			if end < 0 {
				end = len(rest)
			}
			own := rest[:end]
			if others, first := here[node]; first {
				delete(here, node)
				own = filled(own, s.gpuNodes[node], others)
			}
			held, rest = append(held, own...), rest[end:]
		}
		jobs[at].Holds = held
	}
}

// filled adds the GPUs of a node that nobody holds to what a job holds there. here is all that jobs hold on the node.
func filled(own []cluster.Holding, node cluster.Node, here []cluster.Holding) []cluster.Holding {
	cpus, memory := own[0].CPUs, own[0].MemoryMB
	own = slices.Clone(own)
	own[0].CPUs, own[0].MemoryMB = 0, 0
	for _, g := range node.GPUs {
		held := map[cluster.Device]bool{}
		for i := range here {
			if here[i].Model == g.Model {
				for at := range here[i].Devices() {
					held[at] = true
				}
			}
		}
		rest := g.Count - len(held)
		if rest <= 0 {
			continue
		}
		at := slices.IndexFunc(own, func(h cluster.Holding) bool { return h.Model == g.Model || h.Size.Devices == 0 })
		if at < 0 {
			at, own = len(own), append(own, cluster.Holding{Node: node.Name})
		}
		h := &own[at]
		h.Model, h.Size = g.Model, h.Size.And(cluster.Whole(rest))
		if len(node.GPUs) == 1 { // else the numbers of its GPUs are unknown
			h.Index = append(slices.Clone(h.Index), unheld(g.Count, here)...)
			slices.Sort(h.Index)
		}
	}
	slices.SortFunc(own, func(a, b cluster.Holding) int { return strings.Compare(a.Model, b.Model) })
	own[0].CPUs, own[0].MemoryMB = cpus, memory // they go with the first
	return own
}

// unheld gives the numbers of a node's GPUs that nobody holds; nil if Slurm does not report all numbers.
func unheld(count int, here []cluster.Holding) (free []int) {
	if count > mostNumbers {
		return nil
	}
	held := map[int]bool{}
	for i := range here {
		if len(here[i].Index) < here[i].Size.Devices {
			return nil
		}
		for _, index := range here[i].Index {
			held[index] = true
		}
	}
	for index := range count {
		if !held[index] {
			free = append(free, index)
		}
	}
	return free
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
