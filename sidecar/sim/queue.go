package sim

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// queue is the jobs that only wait for space. A job that found none is retried after it changed
// or something was freed.
type queue struct {
	jobs  []*work
	stale bool // some jobs were not tried since they changed
	freed bool // there may be new space since the last try
}

// add queues a job that changed.
func (q *queue) add(j *work) {
	if !j.queued {
		q.jobs = append(q.jobs, j)
	}
	j.queued, j.fresh, q.stale = true, true, true
}

func (v *Virtual) ready(j *work) bool {
	return j.job.State == cluster.Waiting && j.job.Eligible <= v.now && j.job.Inactive == "" && (!j.job.Locked || !v.locked())
}

// locked tells whether all licences are reserved.
func (v *Virtual) locked() bool { return slices.ContainsFunc(v.reservations.all, isLock) }

func isLock(r cluster.Reservation) bool { return r.Name == cluster.GateReservation }

// lock reserves all licences until the given moment.
func (v *Virtual) lock(until cluster.Instant) {
	if at := slices.IndexFunc(v.reservations.all, isLock); at >= 0 {
		v.reservations.all[at].End = until
		return
	}
	v.reservations.all = append(v.reservations.all, cluster.Reservation{Name: cluster.GateReservation, Start: v.now, End: until, Ours: true})
}

// dropReservations removes reservations. Without the lock the jobs that request our licence may
// start.
func (v *Virtual) dropReservations(which func(cluster.Reservation) bool) {
	locked, before := v.locked(), len(v.reservations.all)
	v.reservations.all = slices.DeleteFunc(v.reservations.all, which)
	if len(v.reservations.all) == before {
		return
	}
	v.changed, v.queue.freed, v.reservations.byNode = true, true, nil
	if locked && !v.locked() {
		for _, j := range v.list.jobs {
			if j.job.Locked && j.job.State == cluster.Waiting {
				v.queue.add(j)
			}
		}
	}
}

// schedule starts jobs, by priority, then id.
func (v *Virtual) schedule() {
	q := &v.queue
	if !q.stale && !q.freed {
		return
	}
	freed := q.freed
	q.stale, q.freed = false, false
	v.tidy()
	slices.SortFunc(q.jobs, func(a, b *work) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), a.job.ID.Compare(b.job.ID))
	})
	for _, j := range q.jobs {
		if !freed && !j.fresh {
			continue
		}
		j.fresh = false
		why := ""
		if v.Refuse != nil {
			why = v.Refuse(&j.job)
		}
		if why == "" {
			holds := v.fit(j)
			if why = v.forbids(j, holds); why == "" && holds != nil {
				v.start(j, holds)
				continue
			} else if why == "" {
				why = "Resources"
			}
		}
		if j.job.PendingReason != why {
			j.job.PendingReason = why
			v.touch(j)
			v.changed = true
		}
	}
	v.tidy()
}

// Reconsider lets all jobs that wait be looked at again, as after a change of what Refuse says.
func (v *Virtual) Reconsider() { v.queue.freed = true }

// tidy removes from the queue jobs that are not ready, or run.
func (v *Virtual) tidy() {
	v.queue.jobs = slices.DeleteFunc(v.queue.jobs, func(j *work) bool {
		j.queued = v.ready(j)
		return !j.queued
	})
}

// fit finds nodes for a job as Slurm would: its required nodes, else any.
func (v *Virtual) fit(j *work) []cluster.Holding {
	r := &j.job.Request
	if r.Shards > 0 {
		return fitShards(v, j)
	}
	var holds []cluster.Holding
	left, model := r.Size.Devices, r.Model
	listed := len(j.job.NodeList)
	for at, i := range v.candidates(j) {
		n := &v.nodes[i]
		if at >= listed && listed > len(holds) { // it has all nodes that it lists
			return nil
		}
		if left == 0 {
			break
		}
		if !v.admits(j, i) {
			continue
		}
		free := &v.free[i]
		for k, g := range free.gpus {
			if model != "" && g.Model != model || r.Exclusive && g.Count < n.GPUs[k].Count {
				continue
			}
			want := r.PerNode
			if want == 0 {
				want = min(left, g.Count)
				if r.MaxNodes == 1 || len(j.job.NodeList) == 0 && r.Nodes <= 1 {
					want = left
				}
			}
			if r.Exclusive {
				want = g.Count
			}
			h := cluster.Holding{Node: n.Name, Model: g.Model, Size: cluster.Whole(want),
				CPUs: r.CPUs * want / max(r.Size.Devices, 1), MemoryMB: r.MemoryMB * int64(want) / int64(max(r.Size.Devices, 1))}
			if want == 0 || g.Count < want || free.cpus < h.CPUs || free.memory < h.MemoryMB {
				continue
			}
			holds = append(holds, h)
			if left -= want; r.Exclusive {
				left = max(left, r.Nodes-len(holds), 0)
			}
			if !v.Mixed {
				model = g.Model
			}
			break
		}
	}
	if left > 0 {
		return nil
	}
	return holds
}

// fitShards finds a GPU for a job that asks for shards of one.
func fitShards(v *Virtual, j *work) []cluster.Holding {
	r := &j.job.Request
	for _, i := range v.candidates(j) {
		n, free := &v.nodes[i], &v.free[i]
		if n.Shards < r.Shards || n.MPS != r.MPS || !v.admits(j, i) || free.cpus < r.CPUs || free.memory < r.MemoryMB {
			continue
		}
		part := cluster.WholeGPU * cluster.MicroGPU(r.Shards) / cluster.MicroGPU(n.Shards)
		for _, g := range free.gpus {
			if r.Model != "" && g.Model != r.Model {
				continue
			}
			idle := g.Count
			if n.MPS && len(free.shared) > 0 { // Slurm gives MPS one GPU of a node at a time
				idle = 0
			}
			if at := free.spot(g.Model, idle, part); at >= 0 {
				return []cluster.Holding{{Node: n.Name, Model: g.Model, Size: cluster.Size{Devices: 1, Part: part}, Index: []int{at}, CPUs: r.CPUs, MemoryMB: r.MemoryMB}}
			}
		}
	}
	return nil
}

// candidates gives the nodes that a job may use by its list of nodes, by name; of one that needs more nodes all others follow.
func (v *Virtual) candidates(j *work) []int {
	if len(j.job.NodeList) == 0 {
		return v.every
	}
	var out []int
	for _, name := range j.job.NodeList {
		if i, ok := v.at[name]; ok {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if len(out) == len(j.job.NodeList) && len(out) < j.job.Request.Nodes {
		for _, i := range v.every {
			if !slices.Contains(out, i) {
				out = append(out, i)
			}
		}
	}
	return out
}

// admits tells whether a job may run on a node, by its number: its state, its partitions, and reservations.
func (v *Virtual) admits(j *work, i int) bool {
	n := &v.nodes[i]
	if n.Bad != "" || !slices.Contains(n.Partitions, j.Partition) {
		return false
	}
	there := v.reservations.on(v, i)
	inOurs := slices.ContainsFunc(there, func(k int) bool {
		return v.reservations.all[k].Ours && v.reservations.all[k].Name == j.job.Reservation
	})
	for _, k := range there {
		r := &v.reservations.all[k]
		if r.Name == j.job.Reservation || r.Ours && inOurs || // ours overlap
			slices.Contains(r.Accounts, j.job.Account) && !r.Ours {
			continue
		}
		if part, some := r.Part(n.Name); some && part.GPUs == 0 {
			continue
		}
		if r.Start <= v.now || j.job.Limit == 0 || v.now.Add(j.job.Limit) > r.Start {
			return false
		}
	}
	return true
}

// reservations are those of a virtual cluster.
type reservations struct {
	all    []cluster.Reservation
	byNode [][]int // their places; nil = they have changed
}

// on gives the places of those that have a node of a cluster.
func (r *reservations) on(v *Virtual, i int) []int {
	if r.byNode == nil {
		r.byNode = make([][]int, len(v.nodes))
		for k := range r.all {
			for _, name := range r.all[k].Nodes {
				if at, ok := v.at[name]; ok {
					r.byNode[at] = append(r.byNode[at], k)
				}
			}
		}
	}
	return r.byNode[i]
}
