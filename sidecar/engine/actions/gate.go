package actions

import (
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// A waiting job stands behind a gate, so that Slurm does not start it before it has a lease. There are two
// kinds of gate.
//
// The first kind is a licence, if the site has one for this purpose. The job asks for the licence, and a
// reservation, the lock, holds all licences. The lock ends by itself, and one change keeps all gates shut
// without touching any job.
//
// The second kind is a begin time, which is postponed again and again. It serves other sites, and jobs that
// ask for one of several licences.
//
// Both kinds expire within GateTTL unless prolonged, begin times of very many jobs later.

// lock prolongs the lock in time.
func (w *writer) lock(out []cluster.Action) []cluster.Action {
	l := w.in.In.Snapshot.License
	if l.Total == 0 {
		return out
	}
	at := slices.IndexFunc(w.in.In.Snapshot.Reservations, func(r cluster.Reservation) bool { return r.Name == cluster.GateReservation })
	if l.Reserved < l.Total {
		relied := func(r cluster.Record) bool { return r.Locked && r.State == cluster.Waiting }
		if at >= 0 || slices.ContainsFunc(w.in.In.Records, relied) { // else this is the first lock
			w.report(cluster.Event{Kind: cluster.EventGatesOpen, Text: fmt.Sprintf(
				"%d of the %d licences %s were not reserved: waiting jobs could start without a lease", l.Total-l.Reserved, l.Total, l.Name)})
		}
	} else if at >= 0 && w.in.In.Snapshot.Reservations[at].End >= lockUntil(w.in.In) {
		return out
	}
	return append(out, cluster.Action{Verb: cluster.Lock, Reservation: cluster.GateReservation,
		Licenses: fmt.Sprintf("%s:%d", l.Name, l.Total), Until: w.in.In.Now.Add(w.in.In.Settings.GateTTL), Reason: cluster.Reason{Code: cluster.ReasonGate}})
}

// lockUntil returns the earliest end of a lock that need not be prolonged now.
func lockUntil(b *round.Facts) cluster.Instant { return b.Now.Add(b.Settings.GateTTL / 2) }

// lockable reports whether a job's gate can be the licence. Of a heterogeneous job, only the first component can ask for one.
func (w *writer) lockable(j *cluster.Job) bool {
	return w.in.In.Snapshot.License.Total > 0 && !j.Either && (j.Het == 0 || j.Het == j.Record)
}

// shut makes an action on a waiting job shut its gate.
func (w *writer) shut(i int, a *cluster.Action) {
	j, r := &w.in.In.Snapshot.Cases[i].Job, &w.in.In.Records[i]
	a.Licenses = j.Licenses
	if w.lockable(j) {
		if a.Lock = true; w.in.In.Settings.SiteFactor != 0 {
			a.SiteFactor = cluster.LastInQueue
		}
		if !a.Suppressed {
			if w.in.In.Snapshot.Cases[i].Record.Locked && !j.Locked { // somebody opened it; it may have started before this action is carried out
				w.gate.shut(i, w.gateOf(r))
			}
			w.gate.lock(i, true) // its owner may take it off again before it is seen
		}
		return
	}
	a.Unlock, a.Until = j.Locked, w.gateOf(r)
	if !a.Suppressed {
		w.gate.shut(i, a.Until)
	}
}

// longestGate is the longest that a gate lasts, however many jobs wait.
const longestGate = cluster.Day

// lasts returns how long gates by begin times last that are shut now. Each is a change in Slurm when it is prolonged. So where more jobs wait than
// the settings keep such gates for, they last longer, and the rate of changes stays: nobody opens all gates by submitting very many jobs.
func lasts(w *writer) cluster.Span {
	s := w.in.In.Settings
	if w.length > 0 {
		return w.length
	}
	if w.length = s.GateTTL; s.MaxBeginTimes > 0 {
		waiting, arrays := 0, map[int64]bool{} // an array that is not split has one gate
		for _, i := range w.of.gating {
			j := &w.in.In.Snapshot.Cases[i].Job
			if !w.in.In.Cases[i].Waits || !w.in.In.Cases[i].Ours(cluster.FullControl) || w.lockable(j) || arrays[j.Record] {
				continue
			}
			if waiting++; j.UnsplitArray {
				arrays[j.Record] = true
			}
		}
		w.length = max(s.GateTTL, min(cluster.Span(cluster.MulDiv(int64(s.GateTTL), int64(waiting), int64(s.MaxBeginTimes))), longestGate))
	}
	return w.length
}

// gateOf returns the begin time of a job's gate if it is set now. It is never before the user's own begin
// time. Gates end at different times, so that they are not all postponed in one round.
func (w *writer) gateOf(r *cluster.Record) cluster.Instant {
	length := lasts(w)
	spread := cluster.Span(uint64(r.Key)*0x9e3779b97f4a7c15>>32%uint64(max(length/4/cluster.Second, 1))) * cluster.Second
	return max(w.in.In.Now.Add(length-spread), r.UserBegin)
}

// gates shuts the gates of waiting jobs before they expire.
func (w *writer) gates(out []cluster.Action) []cluster.Action {
	done := make(map[int64]bool, len(out))
	shut := map[int64]cluster.Instant{} // gates of arrays, for all waiting tasks together
	for k := range out {
		if a := &out[k]; !a.UnsplitArray {
			done[a.Record] = true
		}
	}
	for _, i := range w.of.gating {
		c, r, st := &w.in.In.Snapshot.Cases[i], &w.in.In.Records[i], &w.in.In.Cases[i]
		j := &c.Job
		if c.Changed != 0 {
			w.changed(i)
		}
		w.gate.lock(i, w.opened(i))
		if st.Waits && w.stays(i) {
			continue
		}
		if !st.Waits || done[j.Record] {
			if until, ok := shut[j.Record]; ok && j.UnsplitArray {
				w.gate.shut(i, until)
			}
			continue
		}
		gated := j.Eligible > max(w.in.In.Now, r.UserBegin) || j.Locked
		// The submit plugin cannot see everything that takes a job out of our hands.
		if c.Control == cluster.Unmanaged && (j.Marked || j.Locked) && gated {
			done[j.Record] = true
			out = w.open(out, i, cluster.Reason{Code: cluster.ReasonUntouched, Note: c.ControlWhy})
		}
		if c.Control == cluster.ObserveOnly && gated && w.outlasts(i) {
			done[j.Record] = true
			out = w.open(out, i, cluster.Reason{Code: cluster.ReasonUntouched, Note: c.ControlWhy})
			out[len(out)-1].Suppressed = false
		}
		if c.Control != cluster.FullControl && c.Control != cluster.NoReclaim {
			continue
		}
		if l := w.in.Leases[i]; l != nil && l.State == cluster.Granted {
			continue
		}
		if st.Ordered(cluster.Exempt) {
			if gated {
				done[j.Record] = !j.UnsplitArray || !w.in.In.Orders.Parts(r)
				out = w.open(out, i, cluster.Reason{Code: cluster.ReasonExempt, Note: st.Order.Reason})
			}
			continue
		}
		if w.shuts(j, r) {
			continue
		}
		done[j.Record] = true
		var a *cluster.Action
		out, a = w.add(out, cluster.Gate, i)
		a.Reason.Code, a.Array = cluster.ReasonGate, j.UnsplitArray
		if w.shut(i, a); j.UnsplitArray && !a.Lock {
			shut[j.Record] = a.Until
		}
	}
	return out
}

// shuts reports whether the gate of a waiting job is shut, and need not be prolonged yet.
func (w *writer) shuts(j *cluster.Job, r *cluster.Record) bool {
	if w.lockable(j) {
		return j.Locked && !j.Stranded
	}
	return j.Eligible > w.in.In.Now.Add(w.in.In.Settings.GateTTL/2) && j.Eligible >= r.UserBegin && !j.Stranded
}

// stays reports whether a waiting job's gate is left as it is, whatever has been done for other jobs: most are.
func (w *writer) stays(i int) bool {
	j, st := &w.in.In.Snapshot.Cases[i].Job, &w.in.In.Cases[i]
	return st.Ours(cluster.FullControl) && !st.Ordered(cluster.Exempt) && !j.UnsplitArray && w.shuts(j, &w.in.In.Records[i])
}

// outlasts reports whether the gate of a job that is only observed is opened: the lock, which lasts while another partition is
// acted on, or any gate of ours where Slurm preempts. Other gates end by themselves.
func (w *writer) outlasts(i int) bool {
	j := &w.in.In.Snapshot.Cases[i].Job
	return j.Locked && w.in.In.Snapshot.License.Total > 0 || (j.Marked || j.Locked || w.gate.of(i).Until > 0) && w.preempted(j)
}

// preempted reports whether a job that is only observed names a partition in which Slurm may stop jobs by itself. In an acting mode
// it then names no other that is acted on.
func (w *writer) preempted(j *cluster.Job) bool {
	return slices.ContainsFunc(w.in.In.Snapshot.Preempted, func(p cluster.Preempted) bool { return slices.Contains(j.Partitions, p.Partition) })
}

// A running job gets the licence back, so that it comes back behind its gate whoever requeues it. An attempt
// to put it back is repeated for a while after the start, and then once an hour.
const (
	lockFirst = 2 * cluster.Minute
	lockEvery = cluster.Hour
)

// lockRunning puts the licence on jobs that have started, and takes it off jobs that we no longer act on. A job that has
// an action in this round already gets the licence with that if it leaves its reservation, else in the next round.
func (w *writer) lockRunning(out []cluster.Action) []cluster.Action {
	var acted map[cluster.JobKey]int // made for the first job that may get an action: mostly, there is none
	late, lacked := 0, cluster.JobID{}
	for _, i := range w.of.gating {
		st := &w.in.In.Cases[i]
		if st.Waits {
			continue
		}
		j, r := &w.in.In.Snapshot.Cases[i].Job, &w.in.In.Records[i]
		if j.State != cluster.Running && j.State != cluster.Configuring || j.Locked && st.Control == cluster.FullControl || j.Paused {
			continue // Slurm changes no licences of suspended jobs
		}
		acting := (st.Control == cluster.FullControl || st.Control == cluster.NoReclaim) && !st.Ordered(cluster.Exempt)
		g := w.gate.of(i)
		ran, last := w.in.In.Now.Sub(j.Start), w.in.In.Snapshot.Ledger.At.Sub(j.Start)
		due := ran < lockFirst || ran/lockEvery != last/lockEvery || r.Slice != nil && w.in.In.Now.Sub(r.Slice.At) < lockFirst
		if !j.Locked && (!acting || !due || !w.lockable(j)) || j.Locked && (acting || !g.Pinned && !g.Locked) {
			continue
		}
		if acted == nil {
			acted = actionOf(out)
		}
		k, busy := acted[r.Key]
		switch {
		case j.Locked && st.Live && !busy:
			var a *cluster.Action
			out, a = w.add(out, cluster.Gate, i)
			a.Reason.Code, a.Unlock, a.Licenses, a.SiteFactor, a.Suppressed = cluster.ReasonTidy, true, j.Licenses, 0, false
		case !j.Locked && w.in.Leases[i] != nil && w.in.Leases[i].State != cluster.Ending:
			if busy && out[k].Verb != cluster.Release {
				continue
			}
			if !busy {
				k = len(out)
				out, _ = w.add(out, cluster.Gate, i)
				out[k].Reason.Code, out[k].SiteFactor = cluster.ReasonGate, 0
			}
			out[k].Lock, out[k].Licenses = true, j.Licenses
			w.gate.lock(i, true)
			if ran >= lockFirst {
				if late++; late == 1 {
					lacked = j.ID
				}
			}
		}
	}
	if late > 0 {
		w.report(cluster.Event{Kind: cluster.EventGateOpened, Text: fmt.Sprintf(
			"%d running jobs, the first of them %s, lacked the licence %s, so that a requeue could start them without a lease; they get it back",
			late, lacked, w.in.In.Snapshot.License.Name)})
	}
	return out
}

// actionOf gives the index of each job's last action.
func actionOf(out []cluster.Action) map[cluster.JobKey]int {
	acted := make(map[cluster.JobKey]int, len(out))
	for k := range out {
		if out[k].Job != 0 {
			acted[out[k].Job] = k
		}
	}
	return acted
}

// opened reports an event for a job without a lease that asked for our licence in the last round and no
// longer does. It returns whether the job asks for it now; of a job that runs, only since we have acted on it.
func (w *writer) opened(i int) bool {
	c, r, st := &w.in.In.Snapshot.Cases[i], &w.in.In.Records[i], &w.in.In.Cases[i]
	g := w.gate.of(i)
	if !g.Locked || !c.Record.Locked { // the latter: a take-back locks it in this round only
		return st.Waits && c.Job.Locked
	}
	l := w.in.Leases[i]
	alone := l != nil && l.Granted == w.in.In.Now && (l.Adopted || g.Basis != nil && g.Basis.Forced) // its turn may have come at once
	alone = alone && c.Record.State != cluster.Running
	starts := st.Runs || w.in.In.Configures(i)
	free := st.Waits && !c.Job.Locked && l == nil || starts && alone
	acting := c.Control == cluster.FullControl || c.Control == cluster.NoReclaim
	if free && acting {
		what := "waits without a gate"
		if starts {
			what = "started without a lease, and is charged to its tenant"
		}
		w.report(cluster.Event{Kind: cluster.EventGateOpened, Job: r.Key, Text: fmt.Sprintf(
			"job %s of %s %s: somebody took its licence %s off, or the lock had lapsed", r.ID, r.Tenant, what, w.in.In.Snapshot.License.Name)})
	}
	return c.Job.Locked && (st.Waits || starts && (acting || c.Record.State == cluster.Running))
}

// changed reports an event for facts of a job that its owner has changed since the job was granted its lease, once each.
func (w *writer) changed(i int) {
	c, r := &w.in.In.Snapshot.Cases[i], &w.in.In.Records[i]
	g := w.gate.of(i)
	if g.Basis == nil || c.Changed&^g.Basis.Told == 0 || c.Control == cluster.ObserveOnly {
		return
	}
	w.report(cluster.Event{Kind: cluster.EventChangedInLease, Job: r.Key, Text: fmt.Sprintf(
		"job %s of %s: its owner changed %s since its lease was granted; that counts from its next start", r.ID, r.Tenant, c.Changed&^g.Basis.Told)})
	told := *g.Basis
	told.Told |= c.Changed
	g.Basis = &told
	w.gate.set(g)
}

// open releases a waiting job to Slurm, as its user submitted it.
func (w *writer) open(out []cluster.Action, i int, because cluster.Reason) []cluster.Action {
	j, r := &w.in.In.Snapshot.Cases[i].Job, &w.in.In.Records[i]
	g := w.gate.of(i)
	out, a := w.add(out, cluster.Open, i)
	a.Reason = because
	a.NodeList, a.MaxNodes, a.Until, a.Array = r.UserNodes, g.UserMaxNodes, r.UserBegin, j.UnsplitArray && !w.in.In.Orders.Parts(r)
	a.Partitions = narrowed(j, &g)
	if g.Slice != nil {
		a.Ask, a.Unhold = g.Slice.Ask, g.Slice.Held
	}
	a.Unlock, a.Licenses = j.Locked, j.Licenses
	if !a.Suppressed {
		g.Until, g.Locked = 0, false
		w.gate.set(g)
	}
	return out
}
