package budget

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// BoundJobs lists the running jobs whose GPUs cannot be taken back soon, and those without GPUs that keep others' idle, by key. It
// reuses the memory of out. marks are by case.
func BoundJobs(a *Account, marks []round.Mark, out []cluster.BoundJob) []cluster.BoundJob {
	out = out[:0]
	idle := idleGPUs{left: a.in.Stranded, kept: make([]cluster.MicroGPU, len(a.in.Pools))}
	for i := range a.in.Cases {
		st, can := &a.in.Cases[i], &a.can[i]
		if st.Held == 0 && len(idle.left) > 0 {
			if x := idle.by(a, i); x.GPUs > 0 {
				x.Since, x.Until = boundFrom(a, i, x.Way), boundUntil(a, i, x.Way)
				out = append(out, x)
			}
		}
		if !st.Runs || st.Held == 0 || len(can.Pools) == 0 {
			continue
		}
		way := wayOf(a, i, marks[i].Stoppable)
		if way == "" {
			continue
		}
		x := cluster.BoundJob{Job: a.in.Records[i].Key, Way: way, Pool: a.in.Pools[can.Pools[0]], GPUs: cluster.GPUCount(a.in.HeldIn(can.Pools[0], i))}
		if l := a.leases[i]; l != nil {
			x.Pool = l.Pool
		}
		x.Since, x.Until = boundFrom(a, i, way), boundUntil(a, i, way)
		out = append(out, x)
	}
	return out
}

// idleGPUs counts the GPUs that idle since jobs hold their CPUs or memory.
type idleGPUs struct {
	left []cluster.Stranding // of cases that were not counted, in their order
	kept []cluster.MicroGPU  // by pool: of jobs that were
}

// by returns the GPUs that a job without GPUs, the next in order, keeps idle in one pool: that where it keeps most. Several jobs keep parts
// of a GPU: rows have whole ones, and together as many as idle, rounded down.
func (x *idleGPUs) by(a *Account, i int) cluster.BoundJob {
	for len(x.left) > 0 && x.left[0].Case < i {
		x.left = x.left[1:]
	}
	out := cluster.BoundJob{Job: a.in.Records[i].Key, Way: cluster.WayNoGPUs}
	for ; len(x.left) > 0 && x.left[0].Case == i; x.left = x.left[1:] {
		s := &x.left[0]
		p := slices.Index(a.in.Pools, s.Pool)
		if p < 0 {
			continue
		}
		before := x.kept[p]
		x.kept[p] += s.GPUs
		one := a.in.Worths().Of(p)
		n := cluster.GPUCount((x.kept[p]/one - before/one) * one)
		if out.Pool == "" || out.Pool == s.Pool {
			out.Pool, out.GPUs = s.Pool, out.GPUs+n
		} else if n > out.GPUs {
			out.Pool, out.GPUs = s.Pool, n
		}
	}
	return out
}

// Soon is the time within which GPUs that can be taken back are not bound.
func Soon(b *round.Facts) cluster.Span { return max(BoundFor, 2*b.Settings.Term) }

// wayOf returns the way in which a running job keeps its GPUs; "" = they can be taken back soon.
func wayOf(a *Account, i int, stoppable bool) cluster.Way {
	c, st, owes, l := &a.in.Snapshot.Cases[i], &a.in.Cases[i], &a.Owes[i], a.leases[i]
	switch {
	case (st.Control == cluster.Unmanaged || st.Control == cluster.NoReclaim) && c.Way != "":
		return c.Way
	case st.Control == cluster.Unmanaged:
		return cluster.Way(c.Left)
	case l == nil || l.State != cluster.Active || l.Why == round.Recalled || st.Ordered(cluster.Freeze):
		return ""
	case st.Ordered(cluster.Exempt):
		return cluster.WayExempt
	case owes.Dear:
		return cluster.WayPool
	case stoppable && l.End.Sub(a.in.Now) <= Soon(a.in):
		return ""
	case a.Wished(i, c.Job.Start).Sub(a.in.Now) > Soon(a.in):
		return cluster.WayMinLease
	}
	switch a.stopBase(i).saving.Manner {
	case cluster.UnknownManner, cluster.SavesNever:
		return cluster.WayAge
	}
	return cluster.WaySaves
}

// boundFrom returns the moment since which a running job keeps its GPUs in a way.
func boundFrom(a *Account, i int, way cluster.Way) cluster.Instant {
	start := a.in.Snapshot.Cases[i].Job.Start
	if way != cluster.WayAge && way != cluster.WaySaves {
		return min(start, a.in.Now)
	}
	j, rule, notice := a.Stop(i), a.Rule(), a.Notice(i)
	saved := max(j.Start, j.Saved)
	if last := j.Until(rule, saved, notice); last > saved {
		saved = last
	}
	return min(saved, a.in.Now)
}

// boundUntil returns the moment at which a running job ends by its time limit, or can be stopped; 0 = unknown.
func boundUntil(a *Account, i int, way cluster.Way) (end cluster.Instant) {
	j, st, owes := &a.in.Snapshot.Cases[i].Job, &a.in.Cases[i], &a.Owes[i]
	if j.Limit > 0 {
		end = j.Start.Add(j.Limit + j.Suspend)
	}
	var free cluster.Instant
	switch l := a.leases[i]; way {
	case cluster.WayExempt:
		free = st.Order.Until
	case cluster.WayMinLease:
		free = l.End
	case cluster.WaySaves:
		if j := a.Stop(i); !owes.Dear && j.May(a.Rule(), l.End, a.Notice(i)) {
			free = l.End
		}
	}
	if free > 0 && (end == 0 || free < end) {
		return free
	}
	return end
}
