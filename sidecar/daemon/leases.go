package daemon

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/telemetry"
)

// leased gives the leases of running jobs as these learn them. Jobs on which fairlease does not act have none.
func leased(s *cluster.Snapshot, leases []cluster.Lease) map[cluster.JobID]telemetry.Term {
	out := make(map[cluster.JobID]telemetry.Term, len(leases))
	for k := range leases {
		l := &leases[k]
		i, ok := slices.BinarySearchFunc(s.Cases, l.Job, func(c cluster.Case, key cluster.JobKey) int { return cmp.Compare(c.Record.Key, key) })
		if !ok || s.Cases[i].Control != cluster.FullControl && s.Cases[i].Control != cluster.NoReclaim {
			continue
		}
		t := telemetry.Term{End: l.End, Notice: l.NoticeIn(&s.Settings), GPUs: l.Size.Count(), Model: l.Pool, Renewed: telemetry.Undecided}
		switch {
		case l.State == cluster.Granted:
			continue
		case l.State == cluster.Noticed || l.State == cluster.Ending:
			t.Renewed = telemetry.RenewedNo
		case s.Cases[i].Control == cluster.NoReclaim:
			t.Renewed = telemetry.RenewedYes
		}
		out[s.Cases[i].Job.ID] = t
	}
	return out
}

// lease implements the inbox's Lease.
func (e *progress) lease(job cluster.JobID) (telemetry.Term, bool) {
	leases := e.leases.Load()
	if leases == nil {
		return telemetry.Term{}, false
	}
	t, ok := (*leases)[job]
	return t, ok
}

// publish makes the leases of a round known to their jobs. s is the last snapshot. It does not wait for the folder's file system: leases that
// change meanwhile are written after the next round.
func (e *progress) publish(s *cluster.Snapshot, r *loop.Report) {
	if e.inbox == nil && e.notices == nil {
		return
	}
	if !r.Quiet {
		leases := leased(s, r.Plan.State.Leases)
		e.leases.Store(&leases)
	}
	leases := e.leases.Load()
	if e.notices == nil || leases == nil || !e.writing.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer e.writing.Store(false)
		if e.wrote == leases {
			return
		}
		err := e.notices.Write(*leases)
		if e.report.about("leases", err); err == nil {
			e.wrote = leases
		}
	}()
}
