package lease

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A chain is a lease and the granted leases behind it, of short jobs of the same tenant and shape. All have the same GPUs
// in turn: Slurm starts the next job when the one before has ended, without a round in between. Slurm chooses which of
// them is next, and may run several in one interval. So all are behind the one that holds the GPUs at a look.

// takeTurns passes the GPUs of chains on, after the leases have been updated to the present state of their jobs. A job of
// the chain that runs holds them. Where the holder has ended and none runs, the first that waits holds them from now on,
// as if it were granted now. leases are sorted by job; of has their cases.
func takeTurns(leases []cluster.Lease, of []int, s *cluster.Snapshot) {
	first := 0
	for first < len(leases) && leases[first].Behind == 0 {
		first++
	}
	if first == len(leases) {
		return
	}
	runs := map[cluster.JobKey]cluster.JobKey{} // by holder at the last look: a job of the chain that has started since
	for k := range leases {
		if l := &leases[k]; l.Behind != 0 && (l.State != cluster.Granted || l.Size.Devices > 0) { // its job has got the GPUs
			if runs[l.Behind] == 0 {
				runs[l.Behind] = l.Job
			}
			l.Behind = 0
		}
	}
	now := map[cluster.JobKey]cluster.JobKey{} // by holder at the last look: the holder now
	for k := range leases {
		l := &leases[k]
		if l.Behind == 0 {
			continue
		}
		holder, known := now[l.Behind]
		if !known {
			was := find(leases, l.Behind)
			switch {
			case was != nil && (was.State != cluster.Granted || runs[l.Behind] == 0):
				holder = l.Behind
			case was != nil: // another one started first, on its GPUs
				holder = runs[l.Behind]
				was.Size, was.Nodes, was.Behind = cluster.Size{}, hollow(was.Nodes), holder
			case runs[l.Behind] != 0:
				holder = runs[l.Behind]
			default:
				holder = l.Job
			}
			now[l.Behind] = holder
		}
		if l.Behind = holder; holder == l.Job {
			take(l, &s.Cases[of[k]].Job, s)
		}
		if h := find(leases, holder); h != nil {
			l.End = h.End
		}
	}
}

// find returns the lease of a job, or nil.
func find(leases []cluster.Lease, job cluster.JobKey) *cluster.Lease {
	k, ok := slices.BinarySearchFunc(leases, job, func(l cluster.Lease, job cluster.JobKey) int { return cmp.Compare(l.Job, job) })
	if !ok {
		return nil
	}
	return &leases[k]
}

// take makes a lease hold the GPUs of its chain from now on.
func take(l *cluster.Lease, j *cluster.Job, s *cluster.Snapshot) {
	h := l.Nodes[0]
	h.Size, h.CPUs, h.MemoryMB = j.Request.Size, j.Request.CPUs, j.Request.MemoryMB
	l.Nodes, l.Granted, l.Behind = []cluster.Holding{h}, s.Now, 0
	l.Size = s.Settings.Counted(l.Nodes)
}

// hollow returns the nodes of holdings, without their GPUs, CPUs and memory.
func hollow(nodes []cluster.Holding) []cluster.Holding {
	out := make([]cluster.Holding, len(nodes))
	for k := range nodes {
		out[k] = cluster.Holding{Node: nodes[k].Node, Model: nodes[k].Model}
	}
	return out
}

// Behind returns a lease behind another one, for a job whose GPUs it will take over. granted is the job's lease from now
// on that has no place yet.
func Behind(granted cluster.Lease, holder *cluster.Lease) cluster.Lease {
	granted.Pool, granted.Nodes, granted.Size, granted.End, granted.Behind = holder.Pool, hollow(holder.Nodes), cluster.Size{}, holder.End, holder.Job
	return granted
}
