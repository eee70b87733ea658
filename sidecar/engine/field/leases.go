package field

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// ExtendFixed renews the leases of jobs that are never reclaimed.
func (f *Field) ExtendFixed(touch cluster.Control) {
	for i, l := range f.Leases {
		st := &f.Jobs[i]
		if l == nil || !st.Ours(touch) || l.State == cluster.Granted || l.State == cluster.Ending || l.End.Sub(f.Now) > l.NoticeIn(f.Settings) {
			continue
		}
		if st.Control == cluster.NoReclaim || st.Ordered(cluster.Exempt) {
			f.Prolong(i, f.NextEnd(i))
		}
	}
}

// NextEnd returns the end of the term that follows the present one of a lease.
func (f *Field) NextEnd(i int) cluster.Instant { return f.Stops.EndFor(i, max(f.Leases[i].End, f.Now)) }

// Renew replaces the present term of a lease with one that ends at end.
func (f *Field) Renew(i int, end cluster.Instant) {
	f.Prolong(i, end)
	f.Jobs[i].Began = true
}

// Grant makes a lease from now until end; 0 = as long as its job runs.
func (f *Field) Grant(i int, pool string, nodes []cluster.Holding, end cluster.Instant) {
	r := &f.Records[i]
	term := r.Terms + 1
	if f.Jobs[i].Control != cluster.ObserveOnly { // an observed job does not get the lease
		r.Terms = term
	}
	f.Jobs[i].Began, f.Jobs[i].Stoppable = true, !f.Stops.Binds(i, end)
	f.Leases[i] = &cluster.Lease{
		Job: r.Key, Term: term, State: cluster.Granted, Class: cluster.Shared, Pool: pool,
		GPUs: round.GPUs(nodes), Nodes: nodes, Granted: f.Now, End: end,
	}
}

// Follow makes a lease for a job behind that of another case, whose GPUs it takes over when the other job has ended.
func Follow(f *Field, i, holder int) {
	l := f.Leases[holder]
	f.Grant(i, l.Pool, nil, l.End)
	*f.Leases[i] = lease.Behind(*f.Leases[i], l)
}

// Claim returns a claim. A repeated claim keeps its age.
func (f *Field) Claim(key cluster.JobKey, pool string, nodes []cluster.Holding, at cluster.Instant) cluster.Claim {
	cl := cluster.Claim{Job: key, Pool: pool, Nodes: nodes, At: at, Made: f.Now}
	for _, old := range f.Snapshot.Claims {
		if old.Job == key {
			cl.Made = old.Made
		}
	}
	return cl
}

// Dismiss ends the leases that are up for renewal and were not renewed: notice first, requeue when the term
// is over. A lease that was not prolonged is still up for renewal. If as many jobs save as may at once
// (NoticeConcurrent), the next notice waits, and so does the end of its lease.
func (f *Field) Dismiss(touch cluster.Control) {
	slots := f.saveSlots()
	for i, l := range f.Leases {
		if !f.Jobs[i].Ours(touch) || !f.Ending(i) {
			continue
		}
		if l.State == cluster.Active {
			end := l.End
			if f.Settings.NoticeConcurrent > 0 && f.Stops.SavesAtEnd(i) {
				if slots--; slots < 0 {
					continue
				}
				end = max(end, f.Now.Add(l.NoticeIn(f.Settings)-f.Settings.Interval)) // it may have waited
			}
			f.Notify(i, end)
			// A notice to an observed job is not stored, so it is reported in the first round of the notice.
			f.Jobs[i].Noticed = touch == cluster.FullControl || f.Snapshot.Ledger.At < l.End-cluster.Instant(l.NoticeIn(f.Settings))
		}
		if l.End <= f.Now {
			f.Reclaim(i)
			f.Stops.Stopped(i, f.Now.Sub(l.NoticedAt))
			f.Market.NoteMove(i, l)
		}
	}
}

// saveSlots returns how many more jobs may save at the end of their leases now.
func (f *Field) saveSlots() int {
	slots := f.Settings.NoticeConcurrent
	if slots == 0 {
		return 0
	}
	for i, l := range f.Leases {
		if l != nil && (l.State == cluster.Noticed || l.State == cluster.Ending) && f.Jobs[i].Control == cluster.FullControl && f.Stops.SavesAtEnd(i) {
			slots--
		}
	}
	return slots
}

// Notify gives a job notice that its lease ends at end.
func (f *Field) Notify(i int, end cluster.Instant) {
	l := f.Leases[i]
	l.State, l.NoticedAt, l.End = cluster.Noticed, f.Now, end
	f.Jobs[i].Noticed = true
	f.Jobs[i].Signal, f.Jobs[i].SignalTo = f.Stops.Signal(i)
}

// Reclaim ends the lease of a job, which is then requeued. Choosers that keep stop budgets charge them; see
// Dismiss.
func (f *Field) Reclaim(i int) { f.Leases[i].State = cluster.Ending }

// Fixed reports whether a job's GPUs stay taken whatever is decided.
func (f *Field) Fixed(i int) bool {
	st := &f.Jobs[i]
	return f.Leases[i] == nil || f.Leases[i].Behind != 0 || st.Control != cluster.FullControl || !st.Stoppable || st.Ordered(cluster.Exempt)
}

// IsClaimed reports whether GPUs are claimed for a job.
func (f *Field) IsClaimed(key cluster.JobKey) bool {
	return slices.ContainsFunc(f.Claims, func(c cluster.Claim) bool { return c.Job == key })
}

// Leaves reports whether a job is giving up GPUs and will wait afterwards.
func (f *Field) Leaves(i int) bool {
	j, l := &f.Snapshot.Cases[i].Job, f.Leases[i]
	return f.Jobs[i].Live && (l != nil && l.State == cluster.Ending || j.State == cluster.Completing || f.Now < eligible.Settled(j))
}
