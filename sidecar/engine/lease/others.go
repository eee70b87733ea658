package lease

import (
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// others notes the requeues of a job since the last look that fairlease did not order. l is the job's lease at the last look; nil = none.
func others(c *cluster.Case, r *cluster.Record, l *cluster.Lease, s *cluster.Snapshot) {
	j := &c.Job
	n, at := j.Restarts-c.Record.Restarts, s.Now
	if j.Submit > c.Record.Submit && j.State != cluster.Completing { // Slurm sets it when the job has cleaned up
		at = max(min(j.Submit, s.Now), s.Ledger.At)
	}
	broken := failed(l, s)
	if ordered(c, l, at, broken, s) {
		n--
	}
	if n <= 0 {
		return
	}
	x := &cluster.Requeues{Count: n, At: at, Restart: j.Restarts, Ran: r.Ran}
	if r.Others != nil {
		x.Count, x.Preempted = n+r.Others.Count, r.Others.Preempted
	}
	switch {
	case broken != "":
		x.Cause, x.Node = cluster.ByNodeFailure, broken
	case c.Control == cluster.ObserveOnly || c.Control == cluster.Unmanaged || preempts(j, s):
		x.Cause = cluster.BySlurm
		x.Preempted += n
	case j.Expedited:
		x.Cause = cluster.BySlurm
	}
	r.Others = x
}

// ordered tells whether fairlease has ordered a requeue that happened at a moment: its lease is being ended. A job that requeues itself
// at the notice, as some frameworks do, was told to leave. If fairlease was away when the notice ended, nobody ordered it.
func ordered(c *cluster.Case, l *cluster.Lease, at cluster.Instant, broken string, s *cluster.Snapshot) bool {
	switch {
	case l == nil || c.Control != cluster.FullControl && c.Control != cluster.NoReclaim:
		return false // no action of ours takes effect
	case l.State == cluster.Noticed:
		return broken == "" && at <= max(l.End, s.Ledger.At).Add(2*s.Settings.Interval)
	}
	return l.State == cluster.Ending
}

// failed names a node of a lease that is down, drained or gone; "" = none is.
func failed(l *cluster.Lease, s *cluster.Snapshot) string {
	if l == nil {
		return ""
	}
	for i := range l.Nodes {
		k, ok := slices.BinarySearchFunc(s.Nodes, l.Nodes[i].Node, func(n cluster.Node, name string) int { return strings.Compare(n.Name, name) })
		if !ok || s.Nodes[k].Bad != "" {
			return l.Nodes[i].Node
		}
	}
	return ""
}

// preempts tells whether Slurm may requeue jobs by itself in a partition of the job.
func preempts(j *cluster.Job, s *cluster.Snapshot) bool {
	return slices.ContainsFunc(s.Preempted, func(p cluster.Preempted) bool { return slices.Contains(j.Partitions, p.Partition) })
}
