package field

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Ending reports whether a lease is up for renewal: it ends within the notice, and its job may be reclaimed.
func (f *Field) Ending(i int) bool {
	return f.Hand.Marks[i].Stoppable && f.In.Expiring(i, f.Hand.Leases[i])
}

// Prolong ends the lease of a case as renewed, and replaces it with a term that ends at end.
func (f *Field) Prolong(i int, end cluster.Instant) {
	h := &f.Hand
	l := h.Leases[i]
	h.Ended = append(h.Ended, *l)
	old := &h.Ended[len(h.Ended)-1]
	old.State, old.Ended, old.Why = cluster.Over, l.End, "renewed"
	h.Marks[i].Terms++
	l.Term, l.State, l.Granted, l.Start = f.Terms(i), cluster.Active, f.In.Now, max(l.End, f.In.Now)
	l.NoticedAt, l.Adopted, l.Why = 0, false, ""
	l.End = end
}

// RevokeGrant ends a lease that has not begun.
func (f *Field) RevokeGrant(i int, why string) {
	l := *f.Hand.Leases[i]
	l.State, l.Ended, l.Why = cluster.Over, f.In.Now, why
	f.Hand.Ended = append(f.Hand.Ended, l)
	f.Hand.Leases[i] = nil
}

// ExtendFixed renews the leases of jobs that are never reclaimed.
func (f *Field) ExtendFixed(touch cluster.Control) {
	for i, l := range f.Hand.Leases {
		st := &f.In.Cases[i]
		if l == nil || !st.Ours(touch) || l.State == cluster.Granted || l.State == cluster.Ending || l.End.Sub(f.In.Now) > l.NoticeIn(f.In.Settings) {
			continue
		}
		if st.Control == cluster.NoReclaim || st.Ordered(cluster.Exempt) {
			f.Prolong(i, f.NextEnd(i))
		}
	}
}

// NextEnd returns the end of the term that follows the present one of a lease.
func (f *Field) NextEnd(i int) cluster.Instant {
	return f.Stops.EndFor(i, max(f.Hand.Leases[i].End, f.In.Now))
}

// Renew replaces the present term of a lease with one that ends at end.
func (f *Field) Renew(i int, end cluster.Instant) {
	f.Prolong(i, end)
	f.Hand.Marks[i].Began = true
}

// Grant makes a lease from now until end; 0 = as long as its job runs.
func (f *Field) Grant(i int, pool string, nodes []cluster.Holding, end cluster.Instant) {
	r := &f.In.Records[i]
	term := f.Terms(i) + 1
	if f.In.Cases[i].Control != cluster.ObserveOnly { // an observed job does not get the lease
		f.Hand.Marks[i].Terms++
	}
	f.Hand.Marks[i].Began, f.Hand.Marks[i].Stoppable = true, !f.Stops.Binds(i, end)
	f.Hand.Leases[i] = &cluster.Lease{
		Job: r.Key, Term: term, State: cluster.Granted, Class: cluster.Shared, Pool: pool,
		Size: f.In.Settings.Counted(nodes), Nodes: nodes, Granted: f.In.Now, End: end,
	}
}

// Follow makes a lease for a job behind that of another case, whose GPUs it takes over when the other job has ended.
func Follow(f *Field, i, holder int) {
	l := f.Hand.Leases[holder]
	f.Grant(i, l.Pool, nil, l.End)
	*f.Hand.Leases[i] = lease.Behind(*f.Hand.Leases[i], l)
}

// Claim returns a claim. A repeated claim keeps its age.
func (f *Field) Claim(key cluster.JobKey, pool string, nodes []cluster.Holding, at cluster.Instant) cluster.Claim {
	cl := cluster.Claim{Job: key, Pool: pool, Nodes: nodes, At: at, Made: f.In.Now}
	for _, old := range f.In.Snapshot.Claims {
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
	slots, over := saveSlots(f), []int(nil)
	for i, l := range f.Hand.Leases {
		if !f.In.Cases[i].Ours(touch) || !f.Ending(i) {
			continue
		}
		if l.State == cluster.Active {
			if touch == cluster.FullControl {
				if !mustEnd(f, i) && !f.Hourly.May(-1, []int{i}) {
					continue
				}
				f.Hourly.Count(-1, []int{i})
			}
			end := l.End
			if f.In.Settings.NoticeConcurrent > 0 && f.Stops.SavesAtEnd(i) {
				if slots--; slots < 0 {
					continue
				}
				end = max(end, f.In.Now.Add(l.NoticeIn(f.In.Settings)-f.In.Settings.Interval)) // it may have waited
			}
			f.Notify(i, end)
			// A notice to an observed job is not stored, so it is reported in the first round of the notice.
			f.Hand.Marks[i].Noticed = touch == cluster.FullControl || f.In.Snapshot.Ledger.At < l.End-cluster.Instant(l.NoticeIn(f.In.Settings))
		}
		if l.End <= f.In.Now {
			f.Reclaim(i)
			f.Hand.Events = append(f.Hand.Events, f.Stops.Stopped(i, f.In.Now.Sub(l.NoticedAt))...)
			over = append(over, i)
		}
	}
	f.Market.NoteMoves(over, f.Hand.Leases, f.Hand.Claims)
}

// mustEnd reports whether the end of a lease waits for no limit of stops: an administrator ordered it, its user opened its gate, it was recalled, which was
// counted or is for a guaranteed cell, or it holds cells.
func mustEnd(f *Field, i int) bool {
	l := f.Hand.Leases[i]
	return f.In.Cases[i].Ordered(cluster.Freeze) || f.Stops.Opened(i) || l.Why == round.Recalled || l.Parts != nil
}

// saveSlots returns how many more jobs may save at the end of their leases now.
func saveSlots(f *Field) int {
	slots := f.In.Settings.NoticeConcurrent
	if slots == 0 {
		return 0
	}
	for i, l := range f.Hand.Leases {
		if l != nil && (l.State == cluster.Noticed || l.State == cluster.Ending) && f.In.Cases[i].Control == cluster.FullControl && f.Stops.SavesAtEnd(i) {
			slots--
		}
	}
	return slots
}

// Notify gives a job notice that its lease ends at end.
func (f *Field) Notify(i int, end cluster.Instant) {
	l := f.Hand.Leases[i]
	l.State, l.NoticedAt, l.End = cluster.Noticed, f.In.Now, end
	f.Hand.Marks[i].Noticed = true
	f.Hand.Marks[i].Signal, f.Hand.Marks[i].SignalTo = f.Stops.Signal(i)
}

// Reclaim ends the lease of a job, which is then requeued. Choosers that keep stop budgets charge them; see
// Dismiss.
func (f *Field) Reclaim(i int) { f.Hand.Leases[i].State = cluster.Ending }

// Fixed reports whether a job's GPUs stay taken whatever is decided.
func (f *Field) Fixed(i int) bool {
	st, mark := &f.In.Cases[i], &f.Hand.Marks[i]
	return f.Hand.Leases[i] == nil || f.Hand.Leases[i].Behind != 0 || st.Control != cluster.FullControl || !mark.Stoppable || st.Ordered(cluster.Exempt)
}

// IsClaimed reports whether GPUs are claimed for a job.
func (h *Hand) IsClaimed(key cluster.JobKey) bool {
	for k := range h.Claims { // in place: there may be hundreds, and each job of a long queue asks
		if h.Claims[k].Job == key {
			return true
		}
	}
	return false
}

// Leaves reports whether a job is giving up GPUs and will wait afterwards.
func Leaves(f *Field, i int) bool {
	j, l := &f.In.Snapshot.Cases[i].Job, f.Hand.Leases[i]
	return f.In.Cases[i].Live && (l != nil && l.State == cluster.Ending || j.State == cluster.Completing || f.In.Now < eligible.Settled(j))
}
