package engine

import (
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/actions"
	"github.com/fairlease/fairlease/sidecar/engine/breaker"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/why"
)

// buffer holds the lists of a plan.
type buffer struct {
	books    ltgf.Buffer
	ledger   cluster.Ledger
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
	if on := p.ledger.Pools; len(on) > 0 && len(s.Ledger.Pools) > 0 && &on[0] == &s.Ledger.Pools[0] {
		p = d.buffers[1]
	}
	return p
}

// plan derives actions from the leases and the snapshot, and a reason for every job.
func (d *Decider) plan(x opened, choice *field.Choice) cluster.Plan {
	in, hand, buf := &d.facts, &d.field.Hand, x.buffer
	moves, beneficiaries := x.market.Moves(hand.Leases, hand.Claims), round.BeneficiariesOf(hand.Leases, hand.Claims, hand.Marks)
	reasons := &why.Input{In: in, Found: x.found, Due: &d.due, Owes: d.stops.Owes, Leases: hand.Leases, Claims: hand.Claims, Marks: hand.Marks,
		Refused: choice.Refused, Moves: moves, Users: d.field.UsersBehind()}
	buf.standing = why.Tenants(reasons, buf.standing)
	ends, endings := endOverrides(in)
	var gates []actions.Gate
	var acted []cluster.Event
	buf.actions, gates, acted = d.actions.List(&actions.Input{In: in, Found: x.found, Leases: hand.Leases, Claims: hand.Claims, Marks: hand.Marks, Moves: moves,
		Fences: choice.Fences}, beneficiaries, buf.actions)
	reasons.Slices = d.actions.Slices()
	losses := budget.Losses(&d.stops)
	harm, tripped := breaker.Next(in.Snapshot, d.site(), breaker.Find(in, losses), in.Any(cluster.ObserveOnly) && !in.Any(cluster.FullControl) && !in.Any(cluster.NoReclaim))
	if tripped != "" {
		acted = append(acted, cluster.Event{Kind: cluster.EventBreaker, Text: tripped})
	}
	p := cluster.Plan{Round: in.Snapshot.Round, At: in.Now, Tenants: buf.standing, Actions: buf.actions, Ended: hand.Ended, EndedOverrides: ends,
		Losses: losses, Cells: choice.Cells, AllocationRequest: d.due.Request}
	events, noise := round.Quiet(in.Now, in.Snapshot.Noise, slices.Concat(x.events, hand.Events, endings, acted), in.Records)
	p.Events = events
	causes := d.nodes.Causes()
	buf.statuses = why.Statuses(reasons, beneficiaries, buf.statuses)
	d.write(x, gates)
	p.Next = next(in, x.found, hand, choice.Next, causes)
	buf.leases = lasting(in, hand.Leases, buf.leases)
	buf.bound = budget.BoundJobs(&d.stops, hand.Marks, buf.bound)
	p.Statuses, p.Bound = buf.statuses, buf.bound
	profiles, paces := x.speeds.Profiles()
	completions, usages := x.speeds.Evidence()
	records, former := d.former.keep(in, in.Records)
	stops, shadow := field.Stopped(&d.field, beneficiaries.Of)
	p.State = cluster.State{
		Round: in.Snapshot.Round, NextKey: in.Snapshot.NextKey, Ledger: d.due.Ledger, Records: records, Former: former, Leases: buf.leases, Claims: hand.Claims,
		Lost: choice.Lost, Lent: choice.Lent, CellTrades: choice.CellTrades, Parties: d.due.Remembered(), Allocation: in.Snapshot.Allocation,
		Profiles: profiles, Paces: paces, Completions: completions, Usages: usages, Habits: d.stops.Habits(), Causes: causes, Preempted: in.Snapshot.Preempted, Unpreempted: in.Snapshot.Unpreempted, Noise: noise,
		Stops: stops, Shadow: shadow, Breaker: harm, NodeSpeeds: x.nodes,
	}
	return p
}

// site returns what the breaker's bounds follow from.
func (d *Decider) site() *breaker.Site {
	s := d.facts.Snapshot
	out := &breaker.Site{Tenants: len(s.Tenants), Shadow: s.Shadow, Allowance: s.Settings.StopAllowance}
	for p := range d.due.Ledger.Pools {
		out.GPUs += d.due.Ledger.Pools[p].GPUs
	}
	return out
}

// write makes the records and accounts to remember from the results of all steps. The plan takes over the records of the facts, which are of no use
// afterwards.
func (d *Decider) write(x opened, gates []actions.Gate) {
	hand, records := &d.field.Hand, d.facts.Records
	for i := range records {
		r, rate := &records[i], &d.due.Rates[i]
		r.DueRate, r.Extra.Faster, r.First = rate.Due, rate.Faster, x.found.Can[i].First
		r.Terms += hand.Marks[i].Terms
		switch {
		case hand.Leases[i] != nil:
			r.Together = 0
		case hand.Marks[i].Together && r.Together == 0:
			r.Together = d.facts.Now
		}
		if hand.Passes != nil {
			r.Pass = hand.Passes[i]
		}
	}
	x.found.Put(records)
	s := d.facts.Snapshot
	for i := range records {
		if hand.Marks[i].Forgiven {
			records[i].AvoidNodes = nil
		}
		cluster.Rest(&records[i], &s.Cases[i].Record, s.Ledger.At, s.Now)
	}
	x.speeds.Put(records, hand.Leases)
	d.stops.Put(records)
	x.market.PutMoves(records)
	for k := range gates {
		gates[k].Put(records)
	}
	d.stops.PutPools(d.due.Ledger.Pools)
	for at, young := range hand.Young {
		d.due.Ledger.Tenants[at].Young = young
	}
}

// endOverrides ends the overrides whose jobs have ended: those that Slurm has forgotten for as long as finished jobs are remembered,
// and at once those whose id another job has now. Slurm reuses ids, and an override must not pass to a job that nobody meant.
func endOverrides(b *round.Facts) (out []cluster.OverrideEnd, events []cluster.Event) {
	if !b.Orders.ForJobs() {
		return nil, nil
	}
	known, lives, heir := map[*cluster.Override]bool{}, map[*cluster.Override]bool{}, map[*cluster.Override]int{}
	for i := range b.Cases {
		b.Orders.Meets(&b.Records[i], func(o *cluster.Override, means bool) {
			live := b.Cases[i].Live
			switch {
			case means:
				known[o], lives[o] = true, lives[o] || live
			case live:
				heir[o] = i
			}
		})
	}
	for i := range b.Snapshot.Former {
		if r := &b.Snapshot.Former[i]; !expired(r, b.Now) {
			b.Orders.Meets(r, func(o *cluster.Override, means bool) { known[o] = known[o] || means })
		}
	}
	for k := range b.Snapshot.Overrides {
		o := &b.Snapshot.Overrides[k]
		i, passes := heir[o]
		if o.Scope != "job" || o.Job == 0 || o.Until <= b.Now || lives[o] || known[o] && !passes {
			continue
		}
		e := cluster.OverrideEnd{ID: o.ID, Why: "job " + o.Name + " of " + o.User + " has ended"}
		if passes {
			e.Why += fmt.Sprintf(", and Slurm gave its id to a job of %s", b.Records[i].User)
		}
		out = append(out, e)
		events = append(events, cluster.Event{Kind: cluster.EventOverrideEnded, Job: o.Job, Text: fmt.Sprintf("override %d (%s) has ended: %s", o.ID, o.Kind, e.Why)})
	}
	return out, events
}

// lasting returns the leases to remember. For observed jobs it keeps only their real state. It reuses the
// memory of out.
func lasting(b *round.Facts, leases []*cluster.Lease, out []cluster.Lease) []cluster.Lease {
	n := 0
	for _, l := range leases {
		if l != nil {
			n++
		}
	}
	out = slices.Grow(out[:0], n)
	for i, in := range leases {
		if in == nil {
			continue
		}
		watched := b.Cases[i].Control == cluster.ObserveOnly
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
func next(b *round.Facts, found *eligible.Found, hand *field.Hand, choosing cluster.Instant, causes []cluster.Cause) cluster.Instant {
	var first cluster.Instant
	at := func(t cluster.Instant) {
		if t > b.Now && (first == 0 || t < first) {
			first = t
		}
	}
	again := slices.ContainsFunc(causes, func(x cluster.Cause) bool { return x.Reason == cluster.RequeuedAtStart })
	for i, l := range hand.Leases {
		if l == nil {
			continue
		}
		if b.Configures(i) {
			at(b.Now + 1) // each look tells that it has not begun yet
		}
		if again || found.Said(i) == cluster.RequeuedAtStart {
			at(lease.Lasts(l, &b.Snapshot.Cases[i].Job, b.Snapshot))
		}
		at(l.End)
		at(l.End - cluster.Instant(l.NoticeIn(b.Settings)))
		if l.Behind != 0 {
			at(eligible.Patience(b, l))
		} else if l.State == cluster.Granted && !b.Configures(i) {
			at(l.Granted.Add(b.Settings.GrantTimeout))
			at(l.Granted.Add(lease.Told(b.Settings)))
			at(l.Granted.Add(2 * lease.Told(b.Settings)))
		}
	}
	for i := range b.Cases {
		r, st := &b.Records[i], &b.Cases[i]
		at(r.AvoidUntil)
		at(lease.MayDisplace(r, b.Settings.Term))
		at(r.UserBegin)
		if st.Runs && r.Slice != nil && b.Settings.Slices != nil {
			at(r.Slice.At.Add(actions.BetweenSwitches))
			at(r.Slice.At.Add(b.Settings.Slices.Lasts(r.Slice)))
			if r.Slice.Pair != nil && r.Slice.Pair.Beside {
				at(b.Now.Add(b.Settings.Slices.Quantum)) // their reports are heard
			}
		}
		if !st.Waits {
			continue
		}
		j := &b.Snapshot.Cases[i].Job
		at(eligible.Settled(j))
		if st.Ours(cluster.FullControl) && !j.Locked {
			at(max(j.Eligible, r.Gate) - cluster.Instant(b.Settings.GateTTL/2))
		}
	}
	at(choosing)
	for k := range causes {
		at(causes[k].Until)
		if causes[k].Admits > 0 {
			at(lease.MayDisplaceFor(&causes[k], b.Settings.Term))
		}
	}
	for i := range hand.Claims {
		at(hand.Claims[i].At)
		at(actions.Overdue(b, &hand.Claims[i]))
	}
	for i := range b.Snapshot.Overrides {
		at(b.Snapshot.Overrides[i].Until)
	}
	for i := range b.Snapshot.Reservations {
		at(b.Snapshot.Reservations[i].Start)
		at(b.Snapshot.Reservations[i].End)
		if t, ok := actions.Prolong(b, &b.Snapshot.Reservations[i]); ok {
			at(t)
		}
	}
	return first
}
