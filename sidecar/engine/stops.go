package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
)

// rule gives the site's stop budget.
func (h *hall) rule() stop.Rule {
	return stop.Rule{Allowance: h.Settings.StopAllowance, OverheadMilli: h.Settings.StopOverheadMilli}
}

// stopJob gives what the stop budget needs to know of a case.
func (h *hall) stopJob(i int) stop.Job {
	j, r := &h.Snapshot.Cases[i].Job, &h.Records[i]
	b := h.stopBase(i)
	return stop.Job{Saving: b.saving, Start: j.Start, Ran: r.Ran, Spent: r.Spent, Saved: r.Saved, Begin: b.begin}
}

// extend notes which jobs may be stopped when their leases end, and puts off the ends of leases whose jobs may not be: until
// they may, or for another term where that is never. A lease whose term is over ends as soon as its job may be stopped. One
// that ran out while nobody looked ends after a notice: no job is reclaimed without.
func (h *hall) extend() {
	rule, soon := h.rule(), h.Now.Add(h.Settings.Notice)
	for i, l := range h.Leases {
		st := &h.Jobs[i]
		switch {
		case l == nil:
			continue
		case l.State == cluster.Granted:
			st.Stoppable = !h.bound(i, l.End)
			continue
		case l.State == cluster.Active && l.End <= h.Now && st.Runs && st.Touch == cluster.Act && !st.Ordered(cluster.Exempt):
			l.End = soon
		}
		if st.Stoppable = rule.Off() || l.State != cluster.Active || l.Why == round.Recalled || st.Ordered(cluster.Freeze); st.Stoppable {
			continue
		}
		j := h.stopJob(i)
		if l.End > soon && lease.Next(max(l.Start, l.Granted), h.Settings) <= h.Now && j.May(rule, soon, h.Settings.Notice) {
			l.End = soon
		}
		st.Stoppable = !st.Dear && j.May(rule, max(l.End, h.Now), h.Settings.Notice)
		if !st.Stoppable && l.End <= soon {
			h.prolongTo(i, h.endFor(i, max(l.End, h.Now)))
			st.Stoppable = !st.Dear && j.May(rule, l.End, h.Settings.Notice)
		}
	}
}

// endFor gives the end of a lease that begins at t: the next boundary if its job may be stopped then, else the last
// moment before at which it may, else the first one after, else the boundary all the same.
func (h *hall) endFor(i int, t cluster.Instant) cluster.Instant {
	end, rule := lease.Next(t, h.Settings), h.rule()
	if rule.Off() || h.Jobs[i].Touch == cluster.Keep {
		return end
	}
	j := h.attempt(i, t)
	if j.May(rule, end, h.Settings.Notice) {
		return end
	}
	least := t.Add(max(h.Settings.MinLease, h.Settings.Notice+h.Settings.Interval))
	if j.May(rule, least, h.Settings.Notice) {
		if last := j.Until(rule, least, h.Settings.Notice) - cluster.Instant(h.Settings.Interval); last >= least {
			return last - last%cluster.Instant(h.Settings.Interval)
		}
	}
	if from := j.From(rule, end, h.Settings.Notice); from > 0 {
		if at := from + (cluster.Instant(h.Settings.Term)-from%cluster.Instant(h.Settings.Term))%cluster.Instant(h.Settings.Term); j.May(rule, at, h.Settings.Notice) {
			return at
		}
		return from
	}
	return end
}

// boundFor is from what time on a lease binds its GPUs that can be ended only then: a job that waits so long for them could
// as well wait for ever.
const boundFor = cluster.Hour

// bound tells whether a lease that ends at t binds its GPUs, of a job that starts or goes on now: its job may not be stopped
// then, or that is long from now.
func (h *hall) bound(i int, t cluster.Instant) bool {
	rule := h.rule()
	if rule.Off() || h.Jobs[i].Touch == cluster.Keep {
		return h.Jobs[i].Touch == cluster.Keep
	}
	if pools := h.Jobs[i].Pools; len(pools) > 0 && h.broke[pools[0]] {
		return true
	}
	j := h.attempt(i, h.Now)
	return t.Sub(h.Now) > max(boundFor, 2*h.Settings.Term) || !j.May(rule, t, h.Settings.Notice)
}

// attempt gives the present attempt of a case that runs, and of one that waits the one that would begin at t.
func (h *hall) attempt(i int, t cluster.Instant) stop.Job {
	j := h.stopJob(i)
	if h.Jobs[i].Waits || j.Start == 0 {
		j.Start, j.Saved = t, 0
	}
	return j
}

// gone tells whether stops have spent the budget of a job that waits, or had when its present attempt began.
func (h *hall) gone(i int) bool {
	j := h.attempt(i, h.Now)
	return j.Gone(h.rule())
}

// forced gives why a stop could not wait until it is within the budget, in words; "" = it could.
func (h *hall) forced(i int) string {
	switch l := h.Leases[i]; {
	case h.Jobs[i].Ordered(cluster.Freeze):
		return "an administrator ordered it (freeze)"
	case l.Why == round.Recalled && l.Class == cluster.Opportunistic:
		return "its GPUs were lent, and their owner needs them"
	}
	return ""
}

// stopped books what a stop costs the job, and notes what it destroys, to be booked when it has been carried out. One
// that could not wait may be beyond the budget: that is counted and told.
func (h *hall) stopped(i int, notice cluster.Span) {
	if h.rule().Off() || h.Jobs[i].Touch == cluster.Watch || !h.Jobs[i].Runs {
		return
	}
	j := h.stopJob(i)
	since, sure := j.Destroys(h.Now, notice)
	h.Records[i].Stopping = &cluster.PendingStop{Since: since, Certainty: sure, Restarts: h.Snapshot.Cases[i].Job.Restarts}
	h.pay(h.Leases[i], j.Cost(h.Now, notice))
	h.book(i, &j, h.Now, notice, h.forced(i))
}

// book books a stop at t, after a notice of the given length. Why says why it could not wait; "" = it could.
func (h *hall) book(i int, j *stop.Job, t cluster.Instant, notice cluster.Span, why string) {
	r, cost := &h.Records[i], j.Cost(t, notice)
	if why != "" && !j.May(h.rule(), t, notice) {
		r.Beyond++
		h.Events = append(h.Events, cluster.Event{Kind: "stop_beyond_budget", Job: r.Key, Text: fmt.Sprintf(
			"job %s of %s was stopped beyond its stop budget: the stop cost it %s, its budget was %s; %s",
			r.ID, r.Tenant, cost, max(j.Budget(h.rule(), t), 0), why)})
	}
	r.Spent += cost
	r.Stops++
	r.Saved = 0
}

// losses tells what stops destroyed whose end was seen in this round.
func (h *hall) losses() []cluster.Loss {
	var out []cluster.Loss
	for i := range h.Records {
		was, r := &h.Snapshot.Cases[i].Record, &h.Records[i]
		if r.Lost <= was.Lost {
			continue
		}
		x := cluster.Loss{Job: r.Key, Time: r.Lost - was.Lost, Certainty: cluster.BoundedLoss}
		switch {
		case r.KnownLost > was.KnownLost:
			x.Certainty = cluster.KnownLoss
		case r.UnknownLost > was.UnknownLost:
			x.Certainty = cluster.UnknownLoss
		}
		var typed bool
		if x.Type, typed = cluster.TypeOf(&h.Snapshot.Cases[i].Job); !typed {
			x.Type.Command = cluster.Untyped
		}
		if k, ok := slices.BinarySearchFunc(h.Snapshot.Leases, r.Key, func(l cluster.Lease, key cluster.JobKey) int { return cmp.Compare(l.Job, key) }); ok {
			x.Term, x.Pool = h.Snapshot.Leases[k].Term, h.Snapshot.Leases[k].Pool
		}
		out = append(out, x)
	}
	return out
}
