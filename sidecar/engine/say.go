package engine

import (
	"cmp"
	"slices"
	"sort"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/hostlist"
)

// say turns the difference between the leases and what was seen into actions,
// and gives every job its verdict.
func (h *hall) say() cluster.Plan {
	p := cluster.Plan{Round: h.s.Round, At: h.now}
	p.Tenants = h.standings()
	p.Actions = h.actionsOf()
	p.Ended, p.Losses = h.ended, h.losses()
	p.Events = h.events
	p.Next = h.next()
	p.Verdicts = h.conclude()
	profiles, paces := h.profiles()
	p.Memory = cluster.Memory{
		Round: h.s.Round, NextKey: h.s.NextKey, Ledger: h.ledger,
		Records: h.remembered(), Leases: h.lasting(), Claims: h.claims, Lost: h.lost, Lent: h.lent, Parties: h.partyAccounts(), Division: h.s.Division,
		Profiles: profiles, Paces: paces, Habits: h.habits.Entries(),
	}
	p.Cells, p.Question = h.cells, h.question
	return p
}

// keepDone is how long a finished job is remembered, so that its id coming
// round again, or a late word of the history, is not taken for it.
const keepDone = cluster.Hour

// remembered drops from the records those that are forgotten. It is the last step.
func (h *hall) remembered() []cluster.Record {
	kept := 0
	for i := range h.records {
		if h.forgotten(i) {
			continue
		}
		if kept < i {
			h.records[kept] = h.records[i]
		}
		kept++
	}
	clear(h.records[kept:])
	return h.records[:kept]
}

func (h *hall) forgotten(i int) bool {
	done := h.records[i].Done
	return done != 0 && h.now.Sub(done) >= keepDone
}

// lasting gives the leases to remember: of jobs that we only watch just what is
// really so.
func (h *hall) lasting() []cluster.Lease {
	n := 0
	for _, l := range h.leases {
		if l != nil {
			n++
		}
	}
	out := slices.Grow(h.page.leases[:0], n)
	for i, in := range h.leases {
		if in == nil {
			continue
		}
		l := *in
		if h.standing[i].touch == cluster.Watch {
			switch l.State {
			case cluster.Granted, cluster.Ending:
				continue
			case cluster.Noticed:
				l.State, l.NoticedAt = cluster.Active, 0
			}
		}
		out = append(out, l)
	}
	h.page.leases = out
	return out
}

// actionsOf lists what has to be done, in the order in which it has to be done:
// what makes room and order first, then hand-overs, each whole, then the rest.
func (h *hall) actionsOf() []cluster.Action {
	h.lock()
	h.takeBacks()
	h.putFences()
	h.handOvers()
	h.notices()
	h.gates()
	h.tidy()
	return h.actions
}

// action starts an action on a case.
func (h *hall) action(verb cluster.Verb, i int, because cluster.Reason) cluster.Action {
	j := &h.s.Cases[i].Job
	return cluster.Action{Verb: verb, Job: h.records[i].Key, ID: j.ID, Record: j.Record, Whole: j.Whole,
		Restarts: j.Restarts, SiteFactor: h.records[i].SiteFactor, Withheld: h.standing[i].touch == cluster.Watch, Because: because}
}

// takeBacks ends the pin of jobs that wait without a lease: of a grant that did
// not start, and of whatever a crash or somebody else's requeue left behind. Where
// we no longer act the job goes back to Slurm at once: a gate lapses by itself, a
// pin does not. So does an exempt one, which is never gated.
func (h *hall) takeBacks() {
	for i := range h.s.Cases {
		st, r := &h.standing[i], &h.records[i]
		j := &h.s.Cases[i].Job
		acting := st.touch == cluster.Act || st.touch == cluster.Keep
		if !st.waits || j.Whole || !r.Pinned {
			continue
		}
		if l := h.leases[i]; acting && l != nil && l.State == cluster.Granted {
			continue
		}
		if hostlist.Same(j.NodeList, r.UserNodes) && !ourReservation(j.Reservation) {
			r.Pinned = false
			continue
		}
		if !acting {
			h.openGate(i, cluster.Reason{Code: cluster.BecauseTidy, Note: h.s.Cases[i].TouchWhy})
			h.actions[len(h.actions)-1].Withheld = false
			continue
		}
		if st.ordered(cluster.Exempt) {
			h.openGate(i, cluster.Reason{Code: cluster.BecauseNoStart, Note: r.Said})
			continue
		}
		a := h.action(cluster.TakeBack, i, cluster.Reason{Code: cluster.BecauseNoStart, Note: r.Said})
		a.NodeList = r.UserNodes
		h.shut(i, &a)
		h.actions = append(h.actions, a)
	}
}

// notices tells jobs that their lease will not be renewed.
func (h *hall) notices() {
	for i, l := range h.leases {
		if !h.standing[i].told || l == nil || l.State == cluster.Ending {
			continue
		}
		a := h.action(cluster.Notify, i, cluster.Reason{Code: cluster.BecauseNotice, Until: l.End, For: h.heir(i, l)})
		h.goes(&a.Because, i, l)
		a.Signal, a.SignalTo = h.signal(&h.s.Cases[i].Job)
		if a.Signal != "" {
			h.actions = append(h.actions, a)
		}
	}
}

// heir gives the job for which a lease's nodes are claimed, or 0.
func (h *hall) heir(i int, l *cluster.Lease) cluster.JobKey {
	if l.Parts != nil { // in cells it is known
		return h.standing[i].heir
	}
	if h.heirs == nil {
		h.heirs = make(map[gpusOn]int, len(h.claims))
		for k := len(h.claims) - 1; k >= 0; k-- {
			for _, n := range h.claims[k].Nodes {
				h.heirs[gpusOn{n.Node, n.Model}] = k
			}
		}
	}
	first := len(h.claims)
	for _, n := range l.Nodes {
		if k, ok := h.heirs[gpusOn{n.Node, n.Model}]; ok {
			first = min(first, k)
		}
	}
	if first == len(h.claims) {
		return 0
	}
	return h.claims[first].Job
}

// gpusOn is GPUs of a model on a node.
type gpusOn struct{ node, model string }

// signal gives the signal and its addressee for a job: those that it declares, else the first rule that matches.
func (h *hall) signal(j *cluster.Job) (string, string) {
	if s := &j.Declares; s.Signal != "" {
		return s.Signal, s.SignalTo
	}
	for _, r := range h.set.Signals {
		if (r.Partition == "" || slices.Contains(j.Partitions, r.Partition)) &&
			(r.QOS == "" || r.QOS == j.QOS) && (r.Account == "" || r.Account == j.Account) {
			return r.Signal, r.To
		}
	}
	return h.set.Signal, h.set.SignalTo
}

// tidy removes what a started job no longer needs, and reservations of ours
// that nobody names any more. Where we do not act we remove only what a job that
// we pinned ourselves names: the rest may be another's.
func (h *hall) tidy() {
	named, given := map[string]bool{}, map[string]bool{}
	for k := range h.actions {
		if name := h.actions[k].Reservation; name != "" {
			named[name] = true
		}
	}
	for name := range h.fences {
		named[name] = true
	}
	named[cluster.GateReservation] = h.s.License.Total > 0
	for i := range h.s.Cases {
		st, name := &h.standing[i], h.s.Cases[i].Job.Reservation
		if name == "" || !st.there || !ourReservation(name) {
			continue
		}
		ours := st.touch == cluster.Watch && h.records[i].Pinned
		if ours && st.waits { // its pin was taken back above
			given[name] = true
			continue
		}
		named[name] = true
		if _, fence := h.fences[name]; fence { // it asked for that itself
			continue
		}
		if l := h.leases[i]; st.runs && !st.told && (l == nil || l.State != cluster.Ending) { // else in the next round
			a := h.action(cluster.Release, i, cluster.Reason{Code: cluster.BecauseTidy})
			a.Reservation, a.Withheld = name, a.Withheld && !ours
			h.actions = append(h.actions, a)
		}
	}
	for i := range h.s.Reservations {
		r := &h.s.Reservations[i]
		if r.Ours && !named[r.Name] && r.End > h.now {
			h.actions = append(h.actions, cluster.Action{Verb: cluster.Unreserve, Reservation: r.Name,
				Withheld: !h.any(cluster.Act) && !given[r.Name], Because: cluster.Reason{Code: cluster.BecauseTidy}})
		}
	}
}

func ourReservation(name string) bool {
	return len(name) > len(cluster.ReservationPrefix) && name[:len(cluster.ReservationPrefix)] == cluster.ReservationPrefix
}

// explain gives every candidate of a round of choosing its verdict.
func (h *hall) explain(in *lease.Input, choice *lease.Choice) {
	for t := range in.Tenants {
		tenant := &in.Tenants[t]
		for at, i := range tenant.Jobs {
			if p := &choice.Passed[i]; p.Code != "" {
				st := &h.standing[in.Candidates[i].Case]
				if st.passed, st.rank = p, at+1; tenant.Turns != nil {
					st.rank = 1 + slices.Index(tenant.Turns[p.Pool], i)
				}
			}
		}
	}
}

// conclude gives every live job its verdict, by key.
func (h *hall) conclude() []cluster.Verdict {
	next := h.nextEnds()
	out := slices.Grow(h.page.verdicts[:0], len(h.s.Cases))
	for i := range h.s.Cases {
		r, st := &h.records[i], &h.standing[i]
		if r.Done != 0 && r.Done != h.now {
			continue
		}
		out = append(out, cluster.Verdict{Job: r.Key, Rho: st.rho})
		because := &out[len(out)-1].Reason
		h.reason(because, i, next)
		because.Rho = st.rho
		if need := h.s.Cases[i].Job.Request.GPUs; need > 0 {
			because.Need = need
		}
	}
	h.page.verdicts = out
	return out
}

// nextEnds gives, by pool, when the next lease there ends.
func (h *hall) nextEnds() []cluster.Instant {
	next := make([]cluster.Instant, len(h.pools))
	for _, l := range h.leases {
		if l == nil {
			continue
		}
		if p := h.pool(l.Pool); p >= 0 && (next[p] == 0 || l.End < next[p]) {
			next[p] = l.End
		}
	}
	return next
}

// reason says why a job runs or waits.
func (h *hall) reason(because *cluster.Reason, i int, next []cluster.Instant) {
	st := &h.standing[i]
	if l := h.leases[i]; l != nil {
		h.reasonOfLease(because, i, l)
		return
	}
	if cl := h.claimOf(h.records[i].Key); cl != nil && st.waiting {
		if because.Code, because.Pool, because.Until = cluster.BecauseClaim, cl.Pool, cl.At; cl.Gathers {
			because.Code, because.Until = cluster.BecauseGather, 0
		}
		return
	}
	if st.cell != nil && st.waiting {
		*because = *st.cell
		return
	}
	if !st.waiting {
		because.Code, because.Note, because.Until = st.why, st.note, st.until
		if st.touch == cluster.Leave {
			because.Code, because.Note = cluster.BecauseUntouched, h.s.Cases[i].TouchWhy
		}
		return
	}
	because.Code, because.Rank = cluster.BecauseBehind, st.rank
	for _, p := range st.pools {
		if because.Until == 0 || next[p] > 0 && next[p] < because.Until {
			because.Until = next[p]
		}
	}
	if p := st.passed; p != nil {
		because.Code, because.Pool, because.Free = p.Code, h.pools[p.Pool], p.Free
		because.Behind, because.OtherBehind, because.For = p.Behind, p.OtherBehind, p.For
		h.queue(because, p.Other)
		if p.Code == cluster.BecauseFailed {
			because.Note, because.Until = h.records[i].Said, lease.MayDisplace(&h.records[i], h.set.Term)
			if because.Until <= h.now {
				because.Code, because.Note, because.Until = cluster.BecauseIdleOnly, "", 0
			}
		}
	}
}

func (h *hall) reasonOfLease(because *cluster.Reason, i int, l *cluster.Lease) {
	c, st := &h.s.Cases[i], &h.standing[i]
	because.Pool, because.Until = l.Pool, l.End
	if h.s.Cells != nil {
		because.Right = l.Class
	}
	switch {
	case st.ordered(cluster.Exempt):
		because.Code, because.Note = cluster.BecauseExempt, st.order.Reason
	case l.State == cluster.Ending && l.Why == recalled:
		because.Code, because.For = cluster.BecauseRecalled, st.heir
	case l.State == cluster.Ending:
		because.Code, because.For = cluster.BecauseEnding, h.heir(i, l)
		h.goes(because, i, l)
	case l.State == cluster.Noticed:
		because.Code, because.For = cluster.BecauseNotice, h.heir(i, l)
		h.goes(because, i, l)
	case l.State == cluster.Granted && !st.took:
		because.Code, because.Note = cluster.BecauseStarting, c.Job.Because
	case l.State == cluster.Granted:
		because.Code = cluster.BecauseGranted
	case st.took:
		because.Code = cluster.BecauseRenewed
	case c.Touch == cluster.Keep:
		because.Code, because.Note = cluster.BecauseKept, c.TouchWhy
	case l.Adopted:
		because.Code = cluster.BecauseAdopted
	default:
		because.Code = cluster.BecauseHolding
	}
	if t := st.queue; t >= 0 {
		if p := h.pool(l.Pool); p >= 0 {
			row := &h.rows[t*len(h.pools)+p]
			because.Behind = ltgf.Behind(row.Deficit, row.Entitlement)
			h.queue(because, "")
		}
	}
}

// queue says who queues, and which party went before the job's own; "" = none did.
func (h *hall) queue(because *cluster.Reason, other string) {
	if !policy.TenantBlind(h.set.Divide) {
		because.Other = other
		return
	}
	because.Queue, because.Rank = cluster.JobQueues, 0
	k, ok := slices.BinarySearchFunc(h.queues, other, func(p party, name string) int { return cmp.Compare(p.name, name) })
	if !ok {
		return
	}
	went := &h.queues[k]
	because.Other, because.OtherJob = h.tenants[went.tenant], h.records[went.cases[0]].Key
}

func (h *hall) claimOf(key cluster.JobKey) *cluster.Claim {
	k, ok := sort.Find(len(h.claims), func(k int) int { return cmp.Compare(key, h.claims[k].Job) })
	if !ok {
		return nil
	}
	return &h.claims[k]
}

// standings reports how every tenant stands in every pool.
func (h *hall) standings() []cluster.Standing {
	out := slices.Grow(h.page.standing[:0], len(h.ledger.Tenants))[:len(h.ledger.Tenants)]
	for i := range h.ledger.Tenants {
		t := &h.ledger.Tenants[i]
		out[i] = cluster.Standing{Tenant: t.Tenant, Pool: t.Pool, Weight: h.weights[t.Tenant],
			Base: t.Base, Entitlement: t.Entitlement, Demand: t.Demand, Deficit: t.Deficit,
			Behind: ltgf.Behind(t.Deficit, t.Entitlement), Owed: t.Owed, Repays: t.Repays,
			Rho: ltgf.Rho(t, h.now, h.set.HalfLife), RhoAll: cluster.RhoOf(t.Alloc, t.Due)}
	}
	n := len(h.pools)
	for i := range h.s.Cases {
		st := &h.standing[i]
		if st.tenant < 0 || !st.there {
			continue
		}
		for _, p := range st.pools {
			if row := &out[st.tenant*n+p]; st.runs {
				row.Holds += st.held
			} else if st.waiting && h.leases[i] == nil {
				row.Waiting++
			}
		}
	}
	for i := range out {
		st := &out[i]
		holds := cluster.MicroGPU(st.Holds) * cluster.WholeGPU
		st.Borrowed = max(holds-st.Entitlement, 0)
		st.Lent = max(st.Entitlement-max(holds, min(st.Demand, st.Entitlement)), 0)
	}
	h.page.standing = out
	return out
}
