package engine

import (
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/actions"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/entitle"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/why"
)

// buffer holds the lists of a plan.
type buffer struct {
	books    ltgf.Buffer
	leases   []cluster.Lease
	actions  []cluster.Action
	statuses []cluster.JobStatus
	bound    []cluster.BoundJob
	standing []cluster.TenantStatus
}

func newBuffer() *buffer {
	// Empty lists are encoded as [], not null.
	return &buffer{books: ltgf.Buffer{Records: []cluster.Record{}}, leases: []cluster.Lease{}, statuses: []cluster.JobStatus{}, standing: []cluster.TenantStatus{}}
}

// buffer returns the buffer that does not hold the snapshot's data.
func (d *Decider) buffer(s *cluster.Snapshot) *buffer {
	if !d.Brief {
		return newBuffer()
	}
	if d.buffers[0] == nil {
		d.buffers = [2]*buffer{newBuffer(), newBuffer()}
	}
	p := d.buffers[0]
	if on := p.books.Ledger.Pools; len(on) > 0 && len(s.Ledger.Pools) > 0 && &on[0] == &s.Ledger.Pools[0] {
		p = d.buffers[1]
	}
	return p
}

// plan derives actions from the leases and the snapshot, and a reason for every job.
func (d *Decider) plan(x opened, choice *field.Choice) cluster.Plan {
	b, buf := &d.books, x.buffer
	buf.standing = why.Tenants(b, buf.standing)
	x.speeds.Price(b.Records)
	b.Moves = x.market.Moves()
	ends, beneficiaries := endOverrides(b), b.Beneficiaries()
	buf.actions = d.actions.List(b, beneficiaries, choice.Fences, buf.actions)
	p := cluster.Plan{Round: b.In.Snapshot.Round, At: b.In.Now, Tenants: buf.standing, Actions: buf.actions, Ended: b.Ended, EndedOverrides: ends,
		Losses: budget.Losses(&d.stops), Cells: choice.Cells, AllocationRequest: x.question}
	events, noise := round.Quiet(b.In.Now, b.In.Snapshot.Noise, b.Events, b.Records)
	p.Events = events
	causes := d.nodes.Causes()
	p.Next = next(b, choice.Next, causes)
	buf.statuses = why.Statuses(b, beneficiaries, choice.Refused, buf.statuses)
	buf.leases = lasting(b, buf.leases)
	buf.bound = budget.BoundJobs(&d.stops, buf.bound)
	p.Statuses, p.Bound = buf.statuses, buf.bound
	profiles, paces := x.speeds.Profiles()
	completions, usages := x.speeds.Evidence()
	records, former := d.former.keep(b)
	p.State = cluster.State{
		Round: b.In.Snapshot.Round, NextKey: b.In.Snapshot.NextKey, Ledger: b.Ledger, Records: records, Former: former, Leases: buf.leases, Claims: b.Claims,
		Lost: choice.Lost, Lent: choice.Lent, CellTrades: choice.CellTrades, Parties: entitle.Accounts(b), Allocation: b.In.Snapshot.Allocation,
		Profiles: profiles, Paces: paces, Completions: completions, Usages: usages, Habits: d.stops.Habits(), Causes: causes, Preempted: b.In.Snapshot.Preempted, Unpreempted: b.In.Snapshot.Unpreempted, Noise: noise,
	}
	return p
}

// endOverrides ends the overrides whose jobs have ended: those that Slurm has forgotten for as long as finished jobs are remembered,
// and at once those whose id another job has now. Slurm reuses ids, and an override must not pass to a job that nobody meant.
func endOverrides(b *round.Books) (out []cluster.OverrideEnd) {
	if !b.In.Orders.ForJobs() {
		return nil
	}
	known, lives, heir := map[*cluster.Override]bool{}, map[*cluster.Override]bool{}, map[*cluster.Override]int{}
	for i := range b.Jobs {
		b.In.Orders.Meets(&b.Records[i], func(o *cluster.Override, means bool) {
			live := b.Jobs[i].Is.Live
			switch {
			case means:
				known[o], lives[o] = true, lives[o] || live
			case live:
				heir[o] = i
			}
		})
	}
	for i := range b.In.Snapshot.Former {
		if r := &b.In.Snapshot.Former[i]; !expired(r, b.In.Now) {
			b.In.Orders.Meets(r, func(o *cluster.Override, means bool) { known[o] = known[o] || means })
		}
	}
	for k := range b.In.Snapshot.Overrides {
		o := &b.In.Snapshot.Overrides[k]
		i, passes := heir[o]
		if o.Scope != "job" || o.Job == 0 || o.Until <= b.In.Now || lives[o] || known[o] && !passes {
			continue
		}
		e := cluster.OverrideEnd{ID: o.ID, Why: "job " + o.Name + " of " + o.User + " has ended"}
		if passes {
			e.Why += fmt.Sprintf(", and Slurm gave its id to a job of %s", b.Records[i].User)
		}
		out = append(out, e)
		b.Report(cluster.Event{Kind: cluster.EventOverrideEnded, Job: o.Job, Text: fmt.Sprintf("override %d (%s) has ended: %s", o.ID, o.Kind, e.Why)})
	}
	return out
}

// lasting returns the leases to remember. For observed jobs it keeps only their real state. It reuses the
// memory of out.
func lasting(b *round.Books, out []cluster.Lease) []cluster.Lease {
	n := 0
	for _, l := range b.Leases {
		if l != nil {
			n++
		}
	}
	out = slices.Grow(out[:0], n)
	for i, in := range b.Leases {
		if in == nil {
			continue
		}
		watched := b.Jobs[i].Is.Control == cluster.ObserveOnly
		if watched && (in.State == cluster.Granted && !b.Configures(i) || in.State == cluster.Ending) {
			continue
		}
		out = append(out, *in)
		if l := &out[len(out)-1]; watched && l.State == cluster.Noticed {
			l.State, l.NoticedAt = cluster.Active, 0
		}
	}
	return out
}

// next returns the first moment after now at which time alone changes the plan. choosing is that moment for
// the choice; 0 = none.
func next(b *round.Books, choosing cluster.Instant, causes []cluster.Cause) cluster.Instant {
	var first cluster.Instant
	at := func(t cluster.Instant) {
		if t > b.In.Now && (first == 0 || t < first) {
			first = t
		}
	}
	again := slices.ContainsFunc(causes, func(x cluster.Cause) bool { return x.Reason == cluster.RequeuedAtStart })
	for i, l := range b.Leases {
		if l == nil {
			continue
		}
		if b.Configures(i) {
			at(b.In.Now + 1) // each look tells that it has not begun yet
		}
		if again || b.Records[i].SlurmSaid == cluster.RequeuedAtStart {
			at(lease.Lasts(l, b.In.Snapshot))
		}
		at(l.End)
		at(l.End - cluster.Instant(l.NoticeIn(b.In.Settings)))
		if l.Behind != 0 {
			at(eligible.Patience(b, l))
		} else if l.State == cluster.Granted && !b.Configures(i) {
			at(l.Granted.Add(b.In.Settings.GrantTimeout))
			at(l.Granted.Add(lease.Told(b.In.Settings)))
			at(l.Granted.Add(2 * lease.Told(b.In.Settings)))
		}
	}
	for i := range b.Jobs {
		r, st := &b.Records[i], &b.Jobs[i]
		at(r.AvoidUntil)
		at(lease.MayDisplace(r, b.In.Settings.Term))
		at(r.UserBegin)
		if !st.Is.Waits {
			continue
		}
		j := &b.In.Snapshot.Cases[i].Job
		at(eligible.Settled(j))
		if st.Ours(cluster.FullControl) && !j.Locked {
			at(max(j.Eligible, r.Gate) - cluster.Instant(b.In.Settings.GateTTL/2))
		}
	}
	at(choosing)
	for k := range causes {
		at(causes[k].Until)
		if causes[k].Admits > 0 {
			at(lease.MayDisplaceFor(&causes[k], b.In.Settings.Term))
		}
	}
	for i := range b.Claims {
		at(b.Claims[i].At)
		at(actions.Overdue(b, &b.Claims[i]))
	}
	for i := range b.In.Snapshot.Overrides {
		at(b.In.Snapshot.Overrides[i].Until)
	}
	for i := range b.In.Snapshot.Reservations {
		at(b.In.Snapshot.Reservations[i].Start)
		at(b.In.Snapshot.Reservations[i].End)
		if t, ok := actions.Prolong(b, &b.In.Snapshot.Reservations[i]); ok {
			at(t)
		}
	}
	return first
}
