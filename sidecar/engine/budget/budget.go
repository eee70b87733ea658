// Package budget keeps account of stops: how each job saves and starts, as far as that can be told from what it did, what its
// next stop would cost it, and what stops may cost it and all jobs of its pool together. The rules are those of package stop.
package budget

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
)

// Account is what is known of stops in a round.
type Account struct {
	*round.Books
	habits  stop.Habits
	habitOf []int32    // of cases, in habits; see habit
	stopOf  []stopBase // of cases; see stopBase
	broke   []bool     // by pool: it cannot afford any stop
}

// Open brings the account of an earlier round up to now: what jobs and nodes tell of stops, and what these may cost. good tells
// whether a node is in order.
func (a *Account) Open(b *round.Books, good func(node string) bool) {
	a.Books = b
	o := observer{a, good}
	o.observe(b.Snapshot.Progress)
	saveUp(a)
	a.broke = afford(a)
}

// Habits gives what is to be remembered of types of jobs.
func (a *Account) Habits() []cluster.Habit { return a.habits.Entries() }

// Rule gives the site's stop budget.
func (a *Account) Rule() stop.Rule {
	return stop.Rule{Allowance: a.Settings.StopAllowance, OverheadMilli: a.Settings.StopOverheadMilli}
}

// Stop gives what the stop budget needs to know of a case.
func (a *Account) Stop(i int) stop.Job {
	j, r := &a.Snapshot.Cases[i].Job, &a.Records[i]
	b := a.stopBase(i)
	return stop.Job{Saving: b.saving, Start: j.Start, Ran: r.Ran, Spent: r.Spent, Saved: r.Saved, Begin: b.begin}
}

// Extend notes which jobs may be stopped when their leases end, and puts off the ends of leases whose jobs may not be: until
// they may, or for another term where that is never. A lease whose term is over ends as soon as its job may be stopped. One
// that ran out while nobody looked ends after a notice: no job is reclaimed without.
func Extend(a *Account) {
	rule, soon := a.Rule(), a.Now.Add(a.Settings.Notice)
	for i, l := range a.Leases {
		st := &a.Jobs[i]
		switch {
		case l == nil:
			continue
		case l.State == cluster.Granted:
			st.Stoppable = !a.Binds(i, l.End)
			continue
		case l.State == cluster.Active && l.End <= a.Now && st.Runs && st.Control == cluster.FullControl && !st.Ordered(cluster.Exempt):
			l.End = soon
		}
		if st.Stoppable = rule.Off() || l.State != cluster.Active || l.Why == round.Recalled || st.Ordered(cluster.Freeze); st.Stoppable {
			continue
		}
		j := a.Stop(i)
		if l.End > soon && lease.Next(max(l.Start, l.Granted), a.Settings) <= a.Now && j.May(rule, soon, a.Settings.Notice) {
			l.End = soon
		}
		st.Stoppable = !st.Dear && j.May(rule, max(l.End, a.Now), a.Settings.Notice)
		if !st.Stoppable && l.End <= soon {
			a.Prolong(i, a.EndFor(i, max(l.End, a.Now)))
			st.Stoppable = !st.Dear && j.May(rule, l.End, a.Settings.Notice)
		}
	}
}

// EndFor gives the end of a lease that begins at t: the next boundary if its job may be stopped then, else the last
// moment before at which it may, else the first one after, else the boundary all the same.
func (a *Account) EndFor(i int, t cluster.Instant) cluster.Instant {
	end, rule := lease.Next(t, a.Settings), a.Rule()
	if rule.Off() || a.Jobs[i].Control == cluster.NoReclaim {
		return end
	}
	j := a.Attempt(i, t)
	if j.May(rule, end, a.Settings.Notice) {
		return end
	}
	least := t.Add(max(a.Settings.MinLease, a.Settings.Notice+a.Settings.Interval))
	if j.May(rule, least, a.Settings.Notice) {
		if last := j.Until(rule, least, a.Settings.Notice) - cluster.Instant(a.Settings.Interval); last >= least {
			return last - last%cluster.Instant(a.Settings.Interval)
		}
	}
	if from := j.From(rule, end, a.Settings.Notice); from > 0 {
		if at := from + (cluster.Instant(a.Settings.Term)-from%cluster.Instant(a.Settings.Term))%cluster.Instant(a.Settings.Term); j.May(rule, at, a.Settings.Notice) {
			return at
		}
		return from
	}
	return end
}

// BoundFor is from what time on a lease binds its GPUs that can be ended only then: a job that waits so long for them could
// as well wait for ever.
const BoundFor = cluster.Hour

// Binds tells whether a lease that ends at t binds its GPUs, of a job that starts or goes on now: its job may not be stopped
// then, or that is long from now.
func (a *Account) Binds(i int, t cluster.Instant) bool {
	rule := a.Rule()
	if rule.Off() || a.Jobs[i].Control == cluster.NoReclaim {
		return a.Jobs[i].Control == cluster.NoReclaim
	}
	if pools := a.Jobs[i].Pools; len(pools) > 0 && a.broke[pools[0]] {
		return true
	}
	j := a.Attempt(i, a.Now)
	return t.Sub(a.Now) > max(BoundFor, 2*a.Settings.Term) || !j.May(rule, t, a.Settings.Notice)
}

// Attempt gives the present attempt of a case that runs, and of one that waits the one that would begin at t.
func (a *Account) Attempt(i int, t cluster.Instant) stop.Job {
	j := a.Stop(i)
	if a.Jobs[i].Waits || j.Start == 0 {
		j.Start, j.Saved = t, 0
	}
	return j
}

// Gone tells whether stops have spent the budget of a job that waits, or had when its present attempt began.
func (a *Account) Gone(i int) bool {
	j := a.Attempt(i, a.Now)
	return j.Gone(a.Rule())
}

// forced gives why a stop could not wait until it is within the budget, in words; "" = it could.
func (a *Account) forced(i int) string {
	switch l := a.Leases[i]; {
	case a.Jobs[i].Ordered(cluster.Freeze):
		return "an administrator ordered it (freeze)"
	case l.Why == round.Recalled && l.Class == cluster.Opportunistic:
		return "its GPUs were lent, and their owner needs them"
	}
	return ""
}

// Stopped books what a stop costs the job, and notes what it destroys, to be booked when it has been carried out. One
// that could not wait may be beyond the budget: that is counted and told.
func (a *Account) Stopped(i int, notice cluster.Span) {
	if a.Rule().Off() || a.Jobs[i].Control == cluster.ObserveOnly || !a.Jobs[i].Runs {
		return
	}
	j := a.Stop(i)
	since, sure := j.Destroys(a.Now, notice)
	a.Records[i].Stopping = &cluster.PendingStop{Since: since, Certainty: sure, Restarts: a.Snapshot.Cases[i].Job.Restarts}
	a.Pay(a.Leases[i], j.Cost(a.Now, notice))
	a.book(i, &j, a.Now, notice, a.forced(i))
}

// book books a stop at t, after a notice of the given length. Why says why it could not wait; "" = it could.
func (a *Account) book(i int, j *stop.Job, t cluster.Instant, notice cluster.Span, why string) {
	r, cost := &a.Records[i], j.Cost(t, notice)
	if why != "" && !j.May(a.Rule(), t, notice) {
		r.Beyond++
		a.Events = append(a.Events, cluster.Event{Kind: "stop_beyond_budget", Job: r.Key, Text: fmt.Sprintf(
			"job %s of %s was stopped beyond its stop budget: the stop cost it %s, its budget was %s; %s",
			r.ID, r.Tenant, cost, max(j.Budget(a.Rule(), t), 0), why)})
	}
	r.Spent += cost
	r.Stops++
	r.Saved = 0
}

// Losses tells what stops destroyed whose end was seen in this round.
func Losses(b *round.Books) []cluster.Loss {
	var out []cluster.Loss
	for i := range b.Records {
		was, r := &b.Snapshot.Cases[i].Record, &b.Records[i]
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
		if x.Type, typed = cluster.TypeOf(&b.Snapshot.Cases[i].Job); !typed {
			x.Type.Command = cluster.Untyped
		}
		if k, ok := slices.BinarySearchFunc(b.Snapshot.Leases, r.Key, func(l cluster.Lease, key cluster.JobKey) int { return cmp.Compare(l.Job, key) }); ok {
			x.Term, x.Pool = b.Snapshot.Leases[k].Term, b.Snapshot.Leases[k].Pool
		}
		out = append(out, x)
	}
	return out
}

// saving gives how a job saves, by the best evidence that there is.
func (a *Account) saving(i int) cluster.Saving {
	j := &a.Snapshot.Cases[i].Job
	return resolve(a.Settings, j, a.Records[i].Conduct, a.habit(i))
}

// stopBase is what is known of a case that does not change once the round has observed.
type stopBase struct {
	known  bool
	saving cluster.Saving
	begin  cluster.Span
}

// stopBase gives how a job saves and what a start costs it. It is asked several times a round, and worked out once.
func (a *Account) stopBase(i int) *stopBase {
	b := &a.stopOf[i]
	if !b.known {
		*b = stopBase{true, a.saving(i), a.begin(i, modelOf(&a.Snapshot.Cases[i].Job))}
	}
	return b
}

// begin gives what a start on a GPU model costs a job: as learnt of its type, else as configured.
func (a *Account) begin(i int, model string) cluster.Span {
	return stop.Begin(a.habit(i), model, a.Settings.StartCost)
}

// habit gives the habit of a job's type; nil = nothing was observed of it.
func (a *Account) habit(i int) *cluster.Habit {
	if a.habits.Len() == 0 {
		return nil
	}
	at := a.habitOf[i]
	if at == 0 { // not looked for yet
		at = -1
		if t, ok := cluster.TypeOf(&a.Snapshot.Cases[i].Job); ok {
			if k := a.habits.Find(t); k >= 0 {
				at = k + 1
			}
		}
		a.habitOf[i] = at
	}
	if at < 0 {
		return nil
	}
	return a.habits.At(at - 1)
}
