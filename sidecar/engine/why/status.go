// Package why reports why every job runs or waits, and the status of every tenant.
package why

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// writer writes the reasons of jobs.
type writer struct {
	b             *round.Books
	refused       []round.Refusal
	beneficiaries *round.Beneficiaries
	next          []cluster.Instant // by pool: the earliest end of a lease
	users         []cluster.GPUTime // by user: how far it is behind; nil = users do not matter
	firsts        []round.UserIndex // by tenant: see firstUsers
	claim         *cluster.Claim    // of the job whose reason is being written; nil = none
}

// Statuses returns the status of every live job, by key. It reuses the memory of out. refused is, by case,
// the reason why a job got nothing; nil = unknown.
func Statuses(b *round.Books, beneficiaries *round.Beneficiaries, refused []round.Refusal, out []cluster.JobStatus) []cluster.JobStatus {
	w := writer{b: b, refused: refused, beneficiaries: beneficiaries, next: nextEnds(b), users: b.UsersBehind()}
	if w.users != nil {
		w.firsts = w.firstUsers()
	}
	out = slices.Grow(out[:0], len(w.b.In.Snapshot.Cases))
	claims := w.b.Claims
	for i := range w.b.In.Snapshot.Cases {
		r, st := &w.b.Records[i], &w.b.Jobs[i]
		if r.Done != 0 && r.Done != w.b.In.Now {
			continue
		}
		for len(claims) > 0 && claims[0].Job < r.Key {
			claims = claims[1:]
		}
		if w.claim = nil; len(claims) > 0 && claims[0].Job == r.Key {
			w.claim = &claims[0]
		}
		out = out[:len(out)+1]
		status := &out[len(out)-1]
		*status = cluster.JobStatus{}
		status.Job, status.Rho = r.Key, st.Is.Rho
		because := &status.Reason
		w.reason(because, i)
		because.Rho = st.Is.Rho
		if need := w.b.In.Snapshot.Cases[i].Job.Request.GPUs; need > 0 {
			because.Need = need
		}
	}
	return out
}

// nextEnds returns, by pool, the earliest possible end of a lease; 0 = unknown. A job that its pool cannot
// afford to stop keeps its GPUs until its time limit.
func nextEnds(b *round.Books) []cluster.Instant {
	next := make([]cluster.Instant, len(b.In.Pools))
	for i, l := range b.Leases {
		if l == nil {
			continue
		}
		end := l.End
		if b.Jobs[i].Dear && l.State == cluster.Active {
			if end = 0; b.In.Snapshot.Cases[i].Job.Limit > 0 {
				end = b.In.Snapshot.Cases[i].Job.End
			}
		}
		if p := b.In.Pool(l.Pool); p >= 0 && end > 0 && (next[p] == 0 || end < next[p]) {
			next[p] = end
		}
	}
	return next
}

// firstUsers returns, by tenant, the user with waiting jobs that is furthest behind; -1 = none.
func (w *writer) firstUsers() []round.UserIndex {
	out := slices.Repeat([]round.UserIndex{-1}, len(w.b.In.Tenants))
	for i := range w.b.Jobs {
		if st := &w.b.Jobs[i]; st.Is.User >= 0 && w.waits(i) {
			if first := &out[st.Is.Tenant]; *first < 0 || w.users[st.Is.User] > w.users[*first] {
				*first = round.UserIndex(st.Is.User)
			}
		}
	}
	return out
}

// waits reports whether a job waits for its turn.
func (w *writer) waits(i int) bool { return w.b.Jobs[i].Can.Eligible && w.b.Leases[i] == nil }

// reason fills in why a job runs or waits.
func (w *writer) reason(because *cluster.Reason, i int) {
	w.reasonOf(because, i)
	if st := &w.b.Jobs[i]; w.users != nil && st.Is.User >= 0 && w.waits(i) && w.claim == nil {
		if first := w.firsts[st.Is.Tenant]; w.users[first] > w.users[st.Is.User] {
			if because.Inside == nil {
				because.Inside = &cluster.Inside{}
			}
			if because.Inside.Site {
				return
			}
			because.Inside.User = w.b.Ledger.Users[first].User
		}
	}
}

// reasonOf fills in why a job runs or waits, as between tenants and jobs.
func (w *writer) reasonOf(because *cluster.Reason, i int) {
	st := &w.b.Jobs[i]
	if l := w.b.Leases[i]; l != nil {
		w.reasonOfLease(because, i, l)
		return
	}
	if cl := w.claim; cl != nil && st.Can.Eligible {
		if because.Code, because.Pool, because.Until = cluster.ReasonClaim, cl.Pool, cl.At; cl.Gathers {
			because.Code, because.Until = cluster.ReasonGather, 0
		}
		return
	}
	var no round.Refusal
	if w.refused != nil {
		no = w.refused[i]
	}
	if no.Cell != nil && st.Can.Eligible {
		*because = *no.Cell
		return
	}
	if !st.Can.Eligible {
		because.Code, because.Note, because.Until, because.For = st.Can.Why, st.Can.Note, st.Can.Until, st.Can.For
		if st.Is.Control == cluster.Unmanaged {
			because.Code, because.Note = cluster.ReasonUntouched, w.b.In.Snapshot.Cases[i].ControlWhy
		}
		return
	}
	because.Code, because.Rank = cluster.ReasonBehind, no.Rank
	for _, p := range st.Can.Pools {
		if because.Until == 0 || w.next[p] > 0 && w.next[p] < because.Until {
			because.Until = w.next[p]
		}
	}
	if p := no.Passed; p != nil {
		because.Code, because.Pool, because.Free = p.Code, w.b.In.Pools[p.Pool], p.Free
		because.Behind, because.OtherBehind, because.For = p.Behind, p.OtherBehind, p.For
		w.queue(because, p.Other)
		if because.Bound = p.Bound; p.Bound != nil {
			because.Until = p.Bound.Until
		}
		if p.Code == cluster.ReasonFailed && st.Can.Probes == round.IdleProbe {
			because.Note, because.Until = w.b.Records[i].SlurmSaid, 0
		} else if p.Code == cluster.ReasonFailed {
			because.Note, because.Until = w.b.Records[i].SlurmSaid, lease.MayDisplace(&w.b.Records[i], w.b.In.Settings.Term)
			if because.Until <= w.b.In.Now {
				because.Code, because.Note, because.Until = cluster.ReasonIdleOnly, "", 0
			}
		}
	}
	if budget := w.b.In.Spent(w.b.Records[i].Tenant); budget != nil && because.Code == cluster.ReasonBehind {
		because.Code, because.Budget, because.Until = cluster.ReasonSpent, budget, budget.Until
	}
}

// reasonOfLease fills in why a job has its lease.
func (w *writer) reasonOfLease(because *cluster.Reason, i int, l *cluster.Lease) {
	c, st := &w.b.In.Snapshot.Cases[i], &w.b.Jobs[i]
	because.Pool, because.Until = l.Pool, l.End
	if w.b.In.Snapshot.Cells != nil {
		because.Right = l.Class
	}
	switch {
	case st.Ordered(cluster.Exempt):
		because.Code, because.Note = cluster.ReasonExempt, st.Is.Order.Reason
	case l.State == cluster.Ending && l.Why == round.Recalled:
		because.Code, because.For = cluster.ReasonRecalled, st.Got.Beneficiary
	case l.State == cluster.Ending:
		because.Code, because.For = cluster.ReasonEnding, w.beneficiaries.Of(i)
		w.goes(because, i)
	case l.State == cluster.Noticed:
		because.Code, because.For = cluster.ReasonNotice, w.beneficiaries.Of(i)
		w.goes(because, i)
	case l.Behind != 0:
		because.Code, because.For, because.Note = cluster.ReasonFollows, l.Behind, l.Nodes[0].Node
	case w.b.Configures(i) && l.State == cluster.Granted:
		because.Code, because.Note, because.Until = cluster.ReasonStarting, "CONFIGURING, its nodes boot or are prepared; the term begins when the job does", 0
	case l.State == cluster.Granted && !st.Mark.Began:
		because.Code, because.Note = cluster.ReasonStarting, c.Job.PendingReason
	case l.State == cluster.Granted:
		because.Code = cluster.ReasonGranted
	case st.Mark.Began:
		because.Code = cluster.ReasonRenewed
	case c.Control == cluster.NoReclaim:
		because.Code, because.Note = cluster.ReasonKept, c.ControlWhy
	case l.Adopted:
		because.Code = cluster.ReasonAdopted
	default:
		because.Code = cluster.ReasonHolding
	}
	if t := st.Queue; t >= 0 {
		if p := w.b.In.Pool(l.Pool); p >= 0 {
			row := w.b.Rows.At(t, p)
			because.Behind = ltgf.Behind(row.Deficit, row.Entitlement)
			w.queue(because, "")
		}
	}
}

// queue fills in the kind of queue, and the party served before the job's own; "" = none.
func (w *writer) queue(because *cluster.Reason, other string) {
	if !w.b.JobsQueue {
		because.Other = other
		return
	}
	because.Queue, because.Rank = cluster.JobQueues, 0
	k, ok := slices.BinarySearchFunc(w.b.Queues, other, func(p round.Claimant, name string) int { return cmp.Compare(p.Name, name) })
	if !ok {
		return
	}
	went := &w.b.Queues[k]
	because.Other, because.OtherJob = w.b.In.Tenants[went.Tenant], w.b.Records[went.Cases[0]].Key
}

// goes fills in the model to which a job moves when its lease is not renewed.
func (w *writer) goes(because *cluster.Reason, i int) {
	if m, ok := w.b.Moves[i]; ok {
		because.To, because.Trial, because.Speed = m.To, m.Trial, m.Speed
	}
}
