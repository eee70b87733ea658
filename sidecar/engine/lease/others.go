package lease

import (
	"cmp"
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
	x := &cluster.Requeues{Count: n, At: at, Restart: j.Restarts, Ran: r.Ran, Young: young(c, l, at, s)}
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

// firstMinute is the time after a start in which a requeue makes it a failed one: a requeue later costs its job as much as a short job costs.
func firstMinute(s *cluster.Snapshot) cluster.Span { return min(cluster.Minute, s.Settings.MinLease) }

// Lasts gives the moment from which a requeue by others does not make the start of a job a failed one; 0 = it has not begun. l is its lease. A
// renewal is no start.
func Lasts(l *cluster.Lease, j *cluster.Job, s *cluster.Snapshot) cluster.Instant {
	if l.State == cluster.Granted {
		return 0
	}
	return cmp.Or(j.Start, l.Start).Add(firstMinute(s))
}

// brief tells whether a job was requeued in the first minute of its start: by itself, its owner, an agent or an administrator, not by fairlease,
// by Slurm, or since a node or the launch of the job failed. l is its lease at the last look: a requeue before it was that of an earlier one.
func brief(l *cluster.Lease, c *cluster.Case, r *cluster.Record, s *cluster.Snapshot) bool {
	return r.RequeuedByOthers() && r.Others.Young && r.Others.At >= l.Granted && r.Others.Cause != cluster.ByNodeFailure &&
		(c.Control == cluster.FullControl || c.Control == cluster.NoReclaim) && !preempts(&c.Job, s) &&
		!strings.Contains(strings.ReplaceAll(c.Job.PendingReason, "_", " "), "launch failed")
}

// young tells whether a requeue at a moment came in the first minute of its attempt. l is the job's lease at the last look, perhaps a renewal; nil =
// none.
func young(c *cluster.Case, l *cluster.Lease, at cluster.Instant, s *cluster.Snapshot) bool {
	switch {
	case l == nil:
		return false
	case l.State == cluster.Granted: // it was not seen to run
		return at.Sub(max(l.Granted, s.Ledger.At)) < firstMinute(s)
	}
	return at.Sub(cmp.Or(c.Record.HeldSince, l.Start)) < firstMinute(s)
}

// lasts tells whether the start of a job has lasted since the last look: for its first minute, or until the job ended.
func lasts(l *cluster.Lease, c *cluster.Case, s *cluster.Snapshot) bool {
	if c.Gone || l.State == cluster.Granted || l.State == cluster.Over && c.Job.State != cluster.Done || c.Job.State == cluster.Done && c.Job.End <= c.Job.Start {
		return false
	}
	first := c.Job.Start.Add(firstMinute(s))
	return c.Job.Start > 0 && first > s.Ledger.At && (first <= s.Now || c.Job.State == cluster.Done)
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
