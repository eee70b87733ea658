// Package why reports why every job runs or waits, and the status of every tenant.
package why

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/entitle"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Input is what the reasons of a round follow from.
type Input struct {
	In      *round.Facts
	Found   *eligible.Found
	Due     *entitle.Due
	Owes    []budget.Owe       // by case
	Leases  []*cluster.Lease   // in force after the choice, by case; nil = none
	Claims  []cluster.Claim    // by job
	Marks   []round.Mark       // by case
	Refused []round.Refusal    // by case: the reason why a job got nothing; nil = unknown
	Moves   map[int]round.Move // by case: of jobs whose leases are not renewed
	Slices  []int              // cases that run and take turns on a GPU
	Users   []cluster.GPUTime  // by user: how far it is behind; nil = users do not matter
}

// writer writes the reasons of jobs.
type writer struct {
	in            *Input
	beneficiaries *round.Beneficiaries
	next          []cluster.Instant // by pool: the earliest end of a lease
	firsts        []round.UserIndex // by tenant: see firstUsers
	claim         *cluster.Claim    // of the job whose reason is being written; nil = none
	partners      map[int][]int     // by case, of those that take turns on a GPU
}

// Statuses returns the status of every live job, by key. It reuses the memory of out.
func Statuses(in *Input, beneficiaries *round.Beneficiaries, out []cluster.JobStatus) []cluster.JobStatus {
	w := writer{in: in, beneficiaries: beneficiaries, next: nextEnds(in), partners: partnersOf(in)}
	if w.in.Users != nil {
		w.firsts = w.firstUsers()
	}
	out = slices.Grow(out[:0], len(w.in.In.Snapshot.Cases))
	claims := w.in.Claims
	for i := range w.in.In.Snapshot.Cases {
		r, st := &w.in.In.Records[i], &w.in.In.Cases[i]
		if r.Done != 0 && r.Done != w.in.In.Now {
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
		status.Job, status.Rho = r.Key, st.Rho
		because := &status.Reason
		w.reason(because, i)
		because.Rho = st.Rho
		if need := w.in.In.Snapshot.Cases[i].Job.Request.Size.Count(); need > 0 {
			because.Need = need
		}
	}
	return out
}

// partnersOf returns the other jobs that run in turn on a GPU, by case.
func partnersOf(in *Input) map[int][]int {
	return round.Mates(func(yield func(int, cluster.Device) bool) {
		for _, i := range in.Slices {
			for h := range in.In.Snapshot.Cases[i].Job.Holds {
				for d := range in.In.Snapshot.Cases[i].Job.Holds[h].Devices() {
					if !yield(i, d) {
						return
					}
				}
			}
		}
	})
}

// nextEnds returns, by pool, the earliest possible end of a lease; 0 = unknown. A job that its pool cannot
// afford to stop keeps its GPUs until its time limit.
func nextEnds(in *Input) []cluster.Instant {
	next := make([]cluster.Instant, len(in.In.Pools))
	for i, l := range in.Leases {
		if l == nil {
			continue
		}
		end := l.End
		if in.Owes[i].Dear && l.State == cluster.Active {
			if end = 0; in.In.Snapshot.Cases[i].Job.Limit > 0 {
				end = in.In.Snapshot.Cases[i].Job.End
			}
		}
		if p := in.In.Pool(l.Pool); p >= 0 && end > 0 && (next[p] == 0 || end < next[p]) {
			next[p] = end
		}
	}
	return next
}

// firstUsers returns, by tenant, the user with waiting jobs that is furthest behind; -1 = none.
func (w *writer) firstUsers() []round.UserIndex {
	out := slices.Repeat([]round.UserIndex{-1}, len(w.in.In.Tenants))
	for i := range w.in.In.Cases {
		if st := &w.in.In.Cases[i]; st.User >= 0 && w.waits(i) {
			if first := &out[st.Tenant]; *first < 0 || w.in.Users[st.User] > w.in.Users[*first] {
				*first = round.UserIndex(st.User)
			}
		}
	}
	return out
}

// waits reports whether a job waits for its turn.
func (w *writer) waits(i int) bool { return w.in.Found.Can[i].Eligible && w.in.Leases[i] == nil }

// reason fills in why a job runs or waits.
func (w *writer) reason(because *cluster.Reason, i int) {
	w.reasonOf(because, i)
	if others := w.partners[i]; len(others) > 0 && w.in.Leases[i] != nil && w.in.Leases[i].State == cluster.Active {
		slice := w.in.In.Records[i].Slice
		key := func(k int) cluster.JobKey { return w.in.In.Records[others[k]].Key }
		first := max(slices.IndexFunc(others, func(k int) bool { return !w.in.In.Snapshot.Cases[k].Job.Paused }), 0) // it has its turn
		because.Code, because.For = cluster.ReasonTurn, key(first)
		if len(others) > 1 {
			because.OtherJob = key(1 - first)
		}
		if slice.Turn.Part > 0 {
			because.Time = slice.Turn.Time(1 + len(others))
		}
		switch {
		case w.in.In.Snapshot.Cases[i].Job.Paused:
			because.Code = cluster.ReasonPaused
		case slice.Pair != nil && slice.Pair.Beside:
			because.Code = cluster.ReasonBeside
		}
	}
	if st := &w.in.In.Cases[i]; w.in.Users != nil && st.User >= 0 && w.waits(i) && w.claim == nil {
		if first := w.firsts[st.Tenant]; w.in.Users[first] > w.in.Users[st.User] {
			if because.Inside == nil {
				because.Inside = &cluster.Inside{}
			}
			if because.Inside.Site {
				return
			}
			because.Inside.User = w.in.Due.Ledger.Users[first].User
		}
	}
}

// reasonOf fills in why a job runs or waits, as between tenants and jobs.
func (w *writer) reasonOf(because *cluster.Reason, i int) {
	st, can := &w.in.In.Cases[i], &w.in.Found.Can[i]
	if l := w.in.Leases[i]; l != nil {
		w.reasonOfLease(because, i, l)
		return
	}
	if cl := w.claim; cl != nil && can.Eligible {
		if because.Code, because.Pool, because.Until = cluster.ReasonClaim, cl.Pool, cl.At; cl.Gathers {
			because.Code, because.Until = cluster.ReasonGather, 0
		}
		return
	}
	var no round.Refusal
	if w.in.Refused != nil {
		no = w.in.Refused[i]
	}
	if no.Cell != nil && can.Eligible {
		*because = *no.Cell
		return
	}
	if !can.Eligible {
		because.Code, because.Note, because.Until, because.For = can.Why, can.Note, can.Until, can.For
		if st.Control == cluster.Unmanaged {
			because.Code, because.Note = cluster.ReasonUntouched, w.in.In.Snapshot.Cases[i].ControlWhy
		}
		return
	}
	because.Code, because.Rank = cluster.ReasonBehind, no.Rank
	for _, p := range can.Pools {
		if because.Until == 0 || w.next[p] > 0 && w.next[p] < because.Until {
			because.Until = w.next[p]
		}
	}
	if p := no.Passed; p != nil {
		because.Code, because.Pool, because.Free = p.Code, w.in.In.Pools[p.Pool], cluster.CountOf(p.Free)
		because.Behind, because.OtherBehind, because.For = p.Behind, p.OtherBehind, p.For
		w.queue(because, p.Other)
		if because.Bound = p.Bound; p.Bound != nil {
			because.Until = p.Bound.Until
		}
		if p.Code == cluster.ReasonStops || p.Code == cluster.ReasonTogether {
			because.Until = p.Until
		}
		if p.Code == cluster.ReasonFailed && can.Probes == round.IdleProbe {
			because.Note, because.Until = w.in.Found.Said(i), 0
		} else if p.Code == cluster.ReasonFailed {
			because.Note, because.Until = w.in.Found.Said(i), lease.MayDisplace(&w.in.In.Records[i], w.in.In.Settings.Term)
			if because.Until <= w.in.In.Now {
				because.Code, because.Note, because.Until = cluster.ReasonIdleOnly, "", 0
			}
		}
	}
	if budget := w.in.In.Spent(w.in.In.Records[i].Tenant); budget != nil && because.Code == cluster.ReasonBehind {
		because.Code, because.Budget, because.Until = cluster.ReasonSpent, budget, budget.Until
	}
}

// reasonOfLease fills in why a job has its lease.
func (w *writer) reasonOfLease(because *cluster.Reason, i int, l *cluster.Lease) {
	c, st, who, mark := &w.in.In.Snapshot.Cases[i], &w.in.In.Cases[i], &w.in.Due.Queued[i], &w.in.Marks[i]
	because.Pool, because.Until = l.Pool, l.End
	if w.in.In.Snapshot.Cells != nil {
		because.Right = l.Class
	}
	switch {
	case st.Ordered(cluster.Exempt):
		because.Code, because.Note = cluster.ReasonExempt, st.Order.Reason
	case l.State == cluster.Ending && l.Why == round.Recalled:
		because.Code, because.For = cluster.ReasonRecalled, mark.Beneficiary
	case l.State == cluster.Ending:
		because.Code, because.For = cluster.ReasonEnding, w.beneficiaries.Of(i)
		w.goes(because, i)
	case l.State == cluster.Noticed:
		because.Code, because.For = cluster.ReasonNotice, w.beneficiaries.Of(i)
		w.goes(because, i)
	case l.Behind != 0:
		because.Code, because.For, because.Note = cluster.ReasonFollows, l.Behind, l.Nodes[0].Node
	case w.in.In.Configures(i) && l.State == cluster.Granted:
		because.Code, because.Note, because.Until = cluster.ReasonStarting, "CONFIGURING, its nodes boot or are prepared; the term begins when the job does", 0
	case l.State == cluster.Granted && !mark.Began:
		because.Code, because.Note = cluster.ReasonStarting, c.Job.PendingReason
	case l.State == cluster.Granted:
		because.Code = cluster.ReasonGranted
	case mark.Began:
		because.Code = cluster.ReasonRenewed
	case c.Control == cluster.NoReclaim:
		because.Code, because.Note = cluster.ReasonKept, c.ControlWhy
	case l.Adopted:
		because.Code = cluster.ReasonAdopted
	default:
		because.Code = cluster.ReasonHolding
	}
	if t := who.Queue; t >= 0 {
		if p := w.in.In.Pool(l.Pool); p >= 0 {
			row := w.in.Due.Rows.At(t, p)
			because.Behind = ltgf.Behind(row.Deficit, row.Entitlement)
			w.queue(because, "")
		}
	}
}

// queue fills in the kind of queue, and the party served before the job's own; "" = none.
func (w *writer) queue(because *cluster.Reason, other string) {
	if !w.in.Due.JobsQueue {
		because.Other = other
		return
	}
	because.Queue, because.Rank = cluster.JobQueues, 0
	k, ok := slices.BinarySearchFunc(w.in.Due.Queues, other, func(p round.Claimant, name string) int { return cmp.Compare(p.Name, name) })
	if !ok {
		return
	}
	went := &w.in.Due.Queues[k]
	because.Other, because.OtherJob = w.in.In.Tenants[went.Tenant], w.in.In.Records[went.Cases[0]].Key
}

// goes fills in the model to which a job moves when its lease is not renewed.
func (w *writer) goes(because *cluster.Reason, i int) {
	if m, ok := w.in.Moves[i]; ok {
		because.To, because.Trial, because.Speed = m.To, m.Trial, m.Speed
	}
}
