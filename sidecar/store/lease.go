package store

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// boundary is the end of a lease. The GPU time that the job had received by then is known once it
// has passed, and is marked in the lease and in the following one.
type boundary struct {
	leaseKey
	next    int // the following term; 0 = none yet
	renewed bool
	at      cluster.Instant
}

// leaseEntry gives the leases that changed or ended, the marks, and the future boundaries. A
// lease that is neither in force nor ended was dropped.
func (w *written) leaseEntry(plan cluster.Plan) (c change[leaseKey, leaseRow], marks []markRow, pending []boundary) {
	terms := map[cluster.JobKey][]int{}
	for _, leases := range [][]cluster.Lease{plan.Ended, plan.State.Leases} {
		for _, l := range leases {
			terms[l.Job] = append(terms[l.Job], l.Term)
		}
	}
	ends := slices.Clone(w.boundaries)
	over := map[leaseKey]bool{}
	follows := map[leaseKey]bool{}
	var ended []leaseRow
	for _, l := range plan.Ended {
		row := w.leaseRowOf(l, plan)
		row.EndedIn = optional(plan.Round)
		if row.Ended == 0 {
			row.Ended = stamp(plan.At)
		}
		over[row.leaseKey] = true
		at := cluster.Instant(row.Ended)
		for i, b := range ends { // it had not begun
			if b.Job == l.Job && b.next == l.Term && at < b.at {
				ends[i].at, row.Start = at, 0
			}
		}
		ended = append(ended, row)
		b := boundary{leaseKey: row.leaseKey, next: after(l.Term, terms[l.Job]), renewed: l.Why == "renewed", at: at}
		ends = append(ends, b)
		follows[leaseKey{l.Job, b.next}] = true
	}
	var inForce []leaseRow
	for _, l := range plan.State.Leases {
		inForce = append(inForce, w.leaseRowOf(l, plan))
	}
	c = w.leases.diff(inForce)
	for _, row := range c.gone {
		if !over[row.leaseKey] {
			row.State, row.Ended, row.EndedIn, row.Why = cluster.Over, stamp(plan.At), optional(plan.Round), "dropped"
			ends = append(ends, boundary{leaseKey: row.leaseKey, at: plan.At})
			ended = append(ended, row)
		}
	}
	c.put = append(c.put, ended...)
	for i := range c.put {
		c.put[i].AllocFrom.ok = !follows[c.put[i].leaseKey]
	}
	for _, b := range ends {
		alloc, ok := w.receivedBy(b, plan.State)
		switch {
		case ok && b.at > plan.State.Ledger.At:
			pending = append(pending, b)
		case ok:
			marks = append(marks, markRow{b.leaseKey, b.next, stamp(b.at), alloc})
		}
	}
	return c, marks, pending
}

// after gives the least of terms above term; 0 = there is none.
func after(term int, terms []int) int {
	next := 0
	for _, t := range terms {
		if t > term && (next == 0 || t < next) {
			next = t
		}
	}
	return next
}

func (w *written) leaseRowOf(l cluster.Lease, plan cluster.Plan) leaseRow {
	r, _ := recordOf(plan.State, l.Job)
	return leaseRow{
		leaseKey: leaseKey{l.Job, l.Term},
		SlurmID:  r.ID.String(), Tenant: r.Tenant, User: r.User,
		State: l.State, Class: l.Class, Pool: l.Pool, GPUs: l.Size.Count(), Nodes: nodesOf(l.Nodes), Holdings: holdingsOf(l),
		Granted: stamp(l.Granted), Start: stamp(l.Start), End: stamp(l.End), Noticed: stamp(l.NoticedAt), Ended: stamp(l.Ended),
		Adopted: l.Adopted, Behind: l.Behind, Why: l.Why, GrantedIn: plan.Round, AllocFrom: known{time: w.holders[l.Job].alloc},
	}
}

// holdingsOf gives a lease's holdings if its other columns do not determine them: most leases
// hold GPUs of one model on one node.
func holdingsOf(l cluster.Lease) document {
	if len(l.Nodes) == 1 && l.Nodes[0].Model == l.Pool && l.Nodes[0].Size == l.Size && len(l.Nodes[0].Index) == 0 {
		return ""
	}
	return documentOf(l.Nodes)
}

func nodesOf(holdings []cluster.Holding) list {
	names := make([]string, 0, len(holdings))
	for _, h := range holdings {
		names = append(names, h.Node)
	}
	return listOf(slices.Compact(names))
}

// receivedBy gives what a job had received at a boundary: its present total, unless it continued
// under the next lease; then the GPU time since the last round is split at the boundary. False =
// the job is no longer known.
func (w *written) receivedBy(b boundary, m cluster.State) (cluster.GPUTime, bool) {
	was, known := w.holders[b.Job]
	now, ok := recordOf(m, b.Job)
	switch {
	case !ok:
		return was.alloc, known
	case !b.renewed:
		return now.Alloc, true
	}
	return was.alloc + received(was, now, known || b.Job < w.nextKey, w.charged, m.Ledger.At).until(now.Alloc-was.alloc, b.at), true
}
