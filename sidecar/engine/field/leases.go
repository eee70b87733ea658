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
	for i, l := range f.Books.Leases {
		st := &f.Books.Jobs[i]
		if l == nil || !st.Ours(touch) || l.State == cluster.Granted || l.State == cluster.Ending || l.End.Sub(f.Books.In.Now) > l.NoticeIn(f.Books.In.Settings) {
			continue
		}
		if st.Is.Control == cluster.NoReclaim || st.Ordered(cluster.Exempt) {
			f.Books.Prolong(i, f.NextEnd(i))
		}
	}
}

// NextEnd returns the end of the term that follows the present one of a lease.
func (f *Field) NextEnd(i int) cluster.Instant {
	return f.Stops.EndFor(i, max(f.Books.Leases[i].End, f.Books.In.Now))
}

// Renew replaces the present term of a lease with one that ends at end.
func (f *Field) Renew(i int, end cluster.Instant) {
	f.Books.Prolong(i, end)
	f.Books.Jobs[i].Mark.Began = true
}

// Grant makes a lease from now until end; 0 = as long as its job runs.
func (f *Field) Grant(i int, pool string, nodes []cluster.Holding, end cluster.Instant) {
	r := &f.Books.Records[i]
	term := r.Terms + 1
	if f.Books.Jobs[i].Is.Control != cluster.ObserveOnly { // an observed job does not get the lease
		r.Terms = term
	}
	f.Books.Jobs[i].Mark.Began, f.Books.Jobs[i].Stoppable = true, !f.Stops.Binds(i, end)
	f.Books.Leases[i] = &cluster.Lease{
		Job: r.Key, Term: term, State: cluster.Granted, Class: cluster.Shared, Pool: pool,
		GPUs: round.GPUs(nodes), Nodes: nodes, Granted: f.Books.In.Now, End: end,
	}
}

// Follow makes a lease for a job behind that of another case, whose GPUs it takes over when the other job has ended.
func Follow(f *Field, i, holder int) {
	l := f.Books.Leases[holder]
	f.Grant(i, l.Pool, nil, l.End)
	*f.Books.Leases[i] = lease.Behind(*f.Books.Leases[i], l)
}

// Claim returns a claim. A repeated claim keeps its age.
func (f *Field) Claim(key cluster.JobKey, pool string, nodes []cluster.Holding, at cluster.Instant) cluster.Claim {
	cl := cluster.Claim{Job: key, Pool: pool, Nodes: nodes, At: at, Made: f.Books.In.Now}
	for _, old := range f.Books.In.Snapshot.Claims {
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
	for i, l := range f.Books.Leases {
		if !f.Books.Jobs[i].Ours(touch) || !f.Books.Ending(i) {
			continue
		}
		if l.State == cluster.Active {
			end := l.End
			if f.Books.In.Settings.NoticeConcurrent > 0 && f.Stops.SavesAtEnd(i) {
				if slots--; slots < 0 {
					continue
				}
				end = max(end, f.Books.In.Now.Add(l.NoticeIn(f.Books.In.Settings)-f.Books.In.Settings.Interval)) // it may have waited
			}
			f.Notify(i, end)
			// A notice to an observed job is not stored, so it is reported in the first round of the notice.
			f.Books.Jobs[i].Mark.Noticed = touch == cluster.FullControl || f.Books.In.Snapshot.Ledger.At < l.End-cluster.Instant(l.NoticeIn(f.Books.In.Settings))
		}
		if l.End <= f.Books.In.Now {
			f.Reclaim(i)
			f.Stops.Stopped(i, f.Books.In.Now.Sub(l.NoticedAt))
			f.Market.NoteMove(i, l)
		}
	}
}

// saveSlots returns how many more jobs may save at the end of their leases now.
func (f *Field) saveSlots() int {
	slots := f.Books.In.Settings.NoticeConcurrent
	if slots == 0 {
		return 0
	}
	for i, l := range f.Books.Leases {
		if l != nil && (l.State == cluster.Noticed || l.State == cluster.Ending) && f.Books.Jobs[i].Is.Control == cluster.FullControl && f.Stops.SavesAtEnd(i) {
			slots--
		}
	}
	return slots
}

// Notify gives a job notice that its lease ends at end.
func (f *Field) Notify(i int, end cluster.Instant) {
	l := f.Books.Leases[i]
	l.State, l.NoticedAt, l.End = cluster.Noticed, f.Books.In.Now, end
	f.Books.Jobs[i].Mark.Noticed = true
	f.Books.Jobs[i].Got.Signal, f.Books.Jobs[i].Got.SignalTo = f.Stops.Signal(i)
}

// Reclaim ends the lease of a job, which is then requeued. Choosers that keep stop budgets charge them; see
// Dismiss.
func (f *Field) Reclaim(i int) { f.Books.Leases[i].State = cluster.Ending }

// Fixed reports whether a job's GPUs stay taken whatever is decided.
func (f *Field) Fixed(i int) bool {
	st := &f.Books.Jobs[i]
	return f.Books.Leases[i] == nil || f.Books.Leases[i].Behind != 0 || st.Is.Control != cluster.FullControl || !st.Stoppable || st.Ordered(cluster.Exempt)
}

// IsClaimed reports whether GPUs are claimed for a job.
func (f *Field) IsClaimed(key cluster.JobKey) bool {
	return slices.ContainsFunc(f.Books.Claims, func(c cluster.Claim) bool { return c.Job == key })
}

// Leaves reports whether a job is giving up GPUs and will wait afterwards.
func (f *Field) Leaves(i int) bool {
	j, l := &f.Books.In.Snapshot.Cases[i].Job, f.Books.Leases[i]
	return f.Books.Jobs[i].Is.Live && (l != nil && l.State == cluster.Ending || j.State == cluster.Completing || f.Books.In.Now < eligible.Settled(j))
}
