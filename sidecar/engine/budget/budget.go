// Package budget keeps account of stops. It tracks how each job saves and starts, by the evidence of its
// runs, and the cost of its next stop. It also tracks the budget for stops of each job, and of all jobs of a
// pool together. Package stop has the rules.
package budget

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
)

// Account is the information about stops in a round.
type Account struct {
	// Brief means that the habits of a round are valid only until the round after the next one. Their memory is then reused.
	Brief bool

	// Owes is, by case, what the case's pool cannot afford.
	Owes   []Owe
	in     *round.Facts
	can    []round.Eligibility
	leases []*cluster.Lease      // by case: in force now; nil = none
	gpus   []cluster.PoolAccount // the pools
	events []cluster.Event
	young  []cluster.MicroGPU // by row of the ledger's tenants: see Youth
	habits stop.Habits
	notes  notes
	funds  funds
	kinds  kinds
	outset outset
}

// funds are the pools' budgets for stops.
type funds struct {
	pools []cluster.GPUTime                                // by pool: what all stops may cost
	pays  []cluster.GPUTime                                // by pool: what more stops may cost; nil = any
	broke []bool                                           // by pool: no stop is affordable
	held  round.Table[round.TenantIndex, cluster.MicroGPU] // GPUs of leases, for afford
	stops []payment                                        // memory for afford
}

// Owe is what a pool cannot afford for one of its jobs.
type Owe struct {
	Dear   bool // to stop it
	Unpaid bool // to have stopped it when its lease ended
}

// Open updates the account of an earlier round: reports of jobs, and the budgets for stops. It returns events.
func (a *Account) Open(in *round.Facts, found *eligible.Found) []cluster.Event {
	a.in, a.can, a.events, a.outset = in, found.Can, nil, outset{}
	a.Follow(found.Leases, in.Ledger.Pools)
	a.Owes = slices.Grow(a.Owes[:0], len(in.Cases))[:len(in.Cases)]
	clear(a.Owes)
	a.habits.Brief = a.Brief
	a.habits.Reset(in.Snapshot.Habits)
	if len(a.kinds.known) > 2*len(a.kinds.jobs) { // most of them have left
		a.kinds, a.notes.cases = kinds{}, nil
	}
	a.notes.turn(in, a.habits.Evidence)
	a.kinds.open(in.Snapshot.Habits, len(in.Cases))
	o := observer{a}
	o.observe(in.Snapshot.Progress)
	a.kinds.forget(a.kinds.old)
	saveUp(a)
	a.funds.broke, a.funds.pays = afford(a)
	return a.events
}

// Follow tells the account of the leases in force, by case, which a chooser changes as it goes, and of the pools with their present GPUs.
func (a *Account) Follow(leases []*cluster.Lease, pools []cluster.PoolAccount) {
	a.leases, a.gpus = leases, pools
}

// Habits returns the habits of job types to remember.
func (a *Account) Habits() []cluster.Habit {
	n := a.habits.Len()
	list := a.habits.Entries()
	a.kinds.close(list, len(list) < n)
	return list
}

// Rule returns the site's stop budget.
func (a *Account) Rule() stop.Rule {
	return stop.Rule{Allowance: a.in.Settings.StopAllowance, OverheadMilli: a.in.Settings.StopOverheadMilli}
}

// Stop returns the inputs of the stop budget for a case.
func (a *Account) Stop(i int) stop.Job {
	r, b := a.Of(i), a.stopBase(i)
	return stop.Job{Saving: b.saving, Start: b.start, Ran: a.in.Records[i].Ran, Spent: r.Spent, Saved: r.Saved, Begin: b.begin}
}

// Opened reports whether a job runs only because somebody opened its gate, or had it ask for more than it was granted: its turn has not
// come yet.
func (a *Account) Opened(i int) bool {
	l := a.leases[i]
	if l == nil || !l.Adopted {
		return false
	}
	basis := a.in.Records[i].Basis
	return basis != nil && basis.Forced
}

// Wished returns the time up to which a job wishes to run, within the bound of the site, if its attempt began at
// start.
func (a *Account) Wished(i int, start cluster.Instant) cluster.Instant {
	return start.Add(min(a.stopBase(i).wish, a.in.Settings.Term*cluster.Span(a.in.Settings.MinLeaseTerms)))
}

// Boundary returns the first boundary at which a lease that begins at t may end: it has its minimum length then, and its
// job has run as long as it wishes.
func (a *Account) Boundary(i int, t cluster.Instant) cluster.Instant {
	return max(lease.Next(t, a.in.Settings), lease.From(a.wishedFrom(i, t), a.in.Settings.Term))
}

// wishedFrom is Wished for the attempt to which a lease that begins at t belongs.
func (a *Account) wishedFrom(i int, t cluster.Instant) cluster.Instant {
	if a.in.Cases[i].Runs {
		t = a.stopBase(i).start
	}
	return a.Wished(i, t)
}

// EndFor returns the end of a lease that begins at t. It is the next boundary if the job may be stopped then.
// Otherwise it is the last moment before the boundary at which the job may be stopped, else the first one
// after, else the boundary.
func (a *Account) EndFor(i int, t cluster.Instant) cluster.Instant {
	rule := a.Rule()
	if rule.Off() || a.in.Cases[i].Control == cluster.NoReclaim {
		return a.Boundary(i, t)
	}
	j := a.Attempt(i, t)
	return endOf(a, i, &j, t, rule)
}

// EndAndBinds returns the end of a lease that begins at t for a job that starts or continues now, whether it binds its
// GPUs, and the cost of its stop then: see EndFor, Binds and CostAt. The job's attempt is computed once for all.
func EndAndBinds(a *Account, i int, t cluster.Instant) (end cluster.Instant, binds bool, cost cluster.Span) {
	rule, st := a.Rule(), &a.in.Cases[i]
	if rule.Off() || st.Control == cluster.NoReclaim {
		end = a.Boundary(i, t)
		return end, st.Control == cluster.NoReclaim, CostAt(a, i, end)
	}
	if t == a.in.Now && st.Waits {
		x := outsetOf(a, i)
		if j := (stop.Job{Start: t, Ran: a.in.Records[i].Ran, Spent: a.Of(i).Spent}); x.cost <= j.Budget(rule, x.end) {
			if counts(a, i) {
				cost = x.late
			}
			return x.end, tooDear(a, i) || tooLong(a, x.end), cost
		}
	}
	j := a.Attempt(i, t)
	end = endOf(a, i, &j, t, rule)
	if t != a.in.Now && j.Start == t {
		j = a.Attempt(i, a.in.Now)
	}
	return end, bindsTo(a, i, &j, end, rule), costAt(a, i, &j, end)
}

// outset is what is the same for all jobs that start now, and save and start alike.
type outset struct {
	saving              *cluster.Saving
	begin, wish, notice cluster.Span
	end                 cluster.Instant // of their leases, if their budgets let them be stopped then
	cost                cluster.Span    // of a stop then
	late                cluster.Span    // of a stop a round later
}

// outsetOf returns the outset of a waiting job. It keeps the last one.
func outsetOf(a *Account, i int) *outset {
	x, b, notice := &a.outset, a.stopBase(i), a.Notice(i)
	if x.saving != b.saving || x.begin != b.begin || x.wish != b.wish || x.notice != notice {
		j, end := stop.Job{Saving: b.saving, Start: a.in.Now, Begin: b.begin}, a.Boundary(i, a.in.Now)
		*x = outset{b.saving, b.begin, b.wish, notice, end, j.Cost(end, notice), j.Cost(late(a, end), notice)}
	}
	return x
}

// endOf is EndFor for an attempt that may be stopped.
func endOf(a *Account, i int, j *stop.Job, t cluster.Instant, rule stop.Rule) cluster.Instant {
	end, notice := a.Boundary(i, t), a.Notice(i)
	if j.May(rule, end, notice) {
		return end
	}
	least := max(t.Add(max(a.in.Settings.MinLease, notice+a.in.Settings.Interval)), a.wishedFrom(i, t))
	if j.May(rule, least, notice) {
		if last := j.Until(rule, least, notice) - cluster.Instant(a.in.Settings.Interval); last >= least {
			return last - last%cluster.Instant(a.in.Settings.Interval)
		}
	}
	if from := j.From(rule, end, notice); from > 0 {
		if at := from + (cluster.Instant(a.in.Settings.Term)-from%cluster.Instant(a.in.Settings.Term))%cluster.Instant(a.in.Settings.Term); j.May(rule, at, notice) {
			return at
		}
		return from
	}
	return end
}

// BoundFor is the time from which a lease binds its GPUs. A job that must wait this long for them might as
// well wait for ever.
const BoundFor = cluster.Hour

// Binds reports whether a lease that ends at t binds its GPUs, for a job that starts or continues now. It
// does if the job may not be stopped at t, or if t is long from now.
func (a *Account) Binds(i int, t cluster.Instant) bool {
	rule := a.Rule()
	if rule.Off() || a.in.Cases[i].Control == cluster.NoReclaim {
		return a.in.Cases[i].Control == cluster.NoReclaim
	}
	j := a.Attempt(i, a.in.Now)
	return bindsTo(a, i, &j, t, rule)
}

// bindsTo is Binds for an attempt that may be stopped.
func bindsTo(a *Account, i int, j *stop.Job, t cluster.Instant, rule stop.Rule) bool {
	return tooDear(a, i) || tooLong(a, t) || !j.May(rule, t, a.Notice(i))
}

// tooDear reports whether the pool of a job can afford no stop.
func tooDear(a *Account, i int) bool {
	pools := a.can[i].Pools
	return len(pools) > 0 && a.funds.broke[pools[0]]
}

// tooLong reports whether a lease that ends at t binds its GPUs, whatever its job.
func tooLong(a *Account, t cluster.Instant) bool {
	return t.Sub(a.in.Now) > max(BoundFor, 2*a.in.Settings.Term)
}

// Pays returns what stops of jobs that start now may cost in a pool.
func Pays(a *Account, pool int) cluster.GPUTime {
	if a.funds.pays == nil {
		return math.MaxInt64
	}
	return a.funds.pays[pool]
}

// CostAt returns what the stop of a job that starts or continues now will cost at t, for each of its GPUs; 0 if stops have no
// total, or if its time limit ends it within bind.horizon.
func CostAt(a *Account, i int, t cluster.Instant) cluster.Span {
	j := a.Attempt(i, a.in.Now)
	return costAt(a, i, &j, t)
}

// costAt is CostAt for an attempt.
func costAt(a *Account, i int, j *stop.Job, t cluster.Instant) cluster.Span {
	if !counts(a, i) {
		return 0
	}
	return j.Cost(late(a, t), a.Notice(i))
}

// counts reports whether a pool may have to pay for the stop of a job that starts or continues now.
func counts(a *Account, i int) bool { return a.funds.pays != nil && !EndsSoon(a, i) }

// EndsSoon reports whether the time limit of a job that starts or continues now ends it within the horizon of binding
// (bind.horizon). The run times of jobs like it do not count: a user could run many short ones first.
func EndsSoon(a *Account, i int) bool {
	var left cluster.Span
	if !a.in.Cases[i].Runs {
		left = a.in.Limit(i)
	} else if ends := a.stopBase(i).ends; ends > 0 {
		left = max(ends.Sub(a.in.Now), 1)
	}
	return left > 0 && left <= a.in.Settings.Term*cluster.Span(a.in.Settings.BindHorizon)
}

// Attempt returns the present attempt of a running case, or the attempt of a waiting case that would begin at
// t.
func (a *Account) Attempt(i int, t cluster.Instant) stop.Job {
	j := a.Stop(i)
	if a.in.Cases[i].Waits || j.Start == 0 {
		j.Start, j.Saved = t, 0
	}
	return j
}

// Gone reports whether stops have used up a job's budget. For a running job it is the budget at the start of
// the present attempt.
func (a *Account) Gone(i int) bool {
	j := a.Attempt(i, a.in.Now)
	return j.Gone(a.Rule())
}

// forced returns the reason why a stop could not wait for the budget; "" = it could.
func forced(a *Account, i int) string {
	switch l := a.leases[i]; {
	case a.in.Cases[i].Ordered(cluster.Freeze):
		return "an administrator ordered it (freeze)"
	case l.Why == round.Recalled && l.Class == cluster.Opportunistic:
		return "its GPUs were lent, and their owner needs them"
	}
	return ""
}

// Stopped charges a stop to the job and its pool, and records the work that it destroys, which is booked when the stop has
// happened. A stop that could not wait may exceed the budget, which is counted. It returns events of that.
func (a *Account) Stopped(i int, notice cluster.Span) []cluster.Event {
	if a.Rule().Off() || a.in.Cases[i].Control == cluster.ObserveOnly || !a.in.Cases[i].Runs {
		return nil
	}
	j, told := a.Stop(i), len(a.events)
	since, sure := j.Destroys(a.in.Now, notice)
	change(a, i).Stopping = &cluster.PendingStop{Since: since, Certainty: sure, Restarts: a.in.Snapshot.Cases[i].Job.Restarts, Saved: j.Saved}
	pay(a, a.leases[i], costOf(&j, a.in.Now, notice, a.Opened(i)))
	a.book(i, &j, a.in.Now, notice, forced(a, i))
	return a.events[told:]
}

// book charges a stop at t, after a notice of the given length. why is the reason why it could not wait; "" =
// it could.
func (a *Account) book(i int, j *stop.Job, t cluster.Instant, notice cluster.Span, why string) {
	r, own, cost := &a.in.Records[i], change(a, i), j.Cost(t, notice)
	if why != "" && !j.May(a.Rule(), t, notice) {
		own.Beyond++
		had := max(j.Budget(a.Rule(), t), 0)
		a.events = append(a.events, cluster.Event{Kind: cluster.EventStopBeyondBudget, Job: r.Key, Text: fmt.Sprintf(
			"job %s of %s was stopped beyond its stop budget: the stop cost it %s, its budget was %s; %s",
			r.ID, r.Tenant, cost.Beside(had), had.Beside(cost), why)})
	}
	own.Spent += cost
	own.Stops++
	own.Saved = 0
}

// Losses returns the work that stops destroyed, or may have destroyed, whose end was seen in this round.
func Losses(b *Account) []cluster.Loss {
	var out []cluster.Loss
	for _, i := range b.notes.open {
		was, r := &b.in.Snapshot.Cases[i].Record, &b.in.Records[i]
		x := cluster.Loss{Job: r.Key, Time: r.Lost - was.Lost, Most: r.MostLost - was.MostLost, Certainty: cluster.BoundedLoss}
		if x.Time <= 0 && x.Most <= 0 {
			continue
		}
		switch {
		case r.KnownLost > was.KnownLost:
			x.Certainty = cluster.KnownLoss
		case r.UnknownLost > was.UnknownLost:
			x.Certainty = cluster.UnknownLoss
		}
		var typed bool
		if x.Type, typed = cluster.TypeOf(&b.in.Snapshot.Cases[i].Job); !typed {
			x.Type.Command = cluster.Untyped
		}
		if k, ok := slices.BinarySearchFunc(b.in.Snapshot.Leases, r.Key, func(l cluster.Lease, key cluster.JobKey) int { return cmp.Compare(l.Job, key) }); ok {
			x.Term, x.Pool = b.in.Snapshot.Leases[k].Term, b.in.Snapshot.Leases[k].Pool
		}
		out = append(out, x)
	}
	return out
}

// saving returns how a job saves, by the best evidence available.
func saving(a *Account, i int) *cluster.Saving {
	j := &a.in.Snapshot.Cases[i].Job
	return resolve(a.in.Settings, j, a.Of(i).Conduct, habit(a, i))
}

// stopBase holds facts of a case that stay fixed once the round has observed.
type stopBase struct {
	known   bool
	own     bool // saving lies in the snapshot
	saving  *cluster.Saving
	begin   cluster.Span     // cost of a start
	start   cluster.Instant  // of the present attempt
	ends    cluster.Instant  // by its time limit, if it runs; 0 = never, or its time stands still
	wish    cluster.Span     // minimum lease
	conduct *cluster.Conduct // on which these rest
}

// stopBase returns these facts. They are computed once per round because they are needed several times.
func (a *Account) stopBase(i int) *stopBase {
	n := &a.notes.cases[i]
	b := &n.stopBase
	if b.known {
		return b
	}
	j, conduct := &a.in.Snapshot.Cases[i].Job, a.Of(i).Conduct
	if n.kept && b.conduct == conduct && a.notes.lastBegan == a.habits.Evidence {
		if b.known = true; b.own {
			b.saving, b.own = a.notes.share(&j.Declares), false
		}
		return b
	}
	*b = stopBase{known: true, saving: saving(a, i), begin: a.begin(i, modelOf(j)), start: j.Start, conduct: conduct}
	b.own = b.saving == &j.Declares
	if j.Limit > 0 && j.State != cluster.Suspended {
		b.ends = j.Start.Add(j.Limit + j.Suspend)
	}
	if j.Hints != nil {
		b.wish = j.Hints.MinLease
	}
	return b
}

// begin returns the cost of a start on a GPU model: the learnt value of the job's type, else the configured
// one.
func (a *Account) begin(i int, model string) cluster.Span {
	return stop.Begin(habit(a, i), model, a.in.Settings.StartCost)
}

// habit returns the habit of a job's type; nil = nothing was observed.
func habit(a *Account, i int) *cluster.Habit {
	if a.habits.Len() == 0 {
		return nil
	}
	n := &a.notes.cases[i]
	if n.habit == 0 { // not looked up yet
		n.habit = kindOf(a, i).habitIn(&a.habits)
	}
	if n.habit < 0 {
		return nil
	}
	return a.habits.At(n.habit - 1)
}
