package engine

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// recallsARound bounds the jobs that leases are recalled for in a round.
const recallsARound = 32

// recall gives jobs that never had a lease and got nothing in this round the GPUs of
// leases that run, before their terms are over: most jobs are short, and would else wait
// longer for a boundary than they run. First of tenants that are further ahead
// even without them, by the threshold; else of the job's own tenant, for at most the new
// jobs' share of what that is due. A job keeps its GPUs for the shortest lease in any case.
func (h *hall) recall(in *lease.Input, choice *lease.Choice) {
	if !h.Settings.RecallFirst {
		return
	}
	line := h.unserved(in, choice)
	if len(line) == 0 || !h.anyRecallable() {
		return
	}
	r, n := h.openRecalls(choice), len(h.Pools)
	line = slices.DeleteFunc(line, func(i int) bool { return !r.mayHope(&in.Candidates[i]) })
	if len(line) == 0 {
		return
	}
	r.layOut(in)
	slices.SortStableFunc(line, func(a, b int) int {
		x, y := &in.Candidates[a], &in.Candidates[b]
		return cmp.Compare(r.behind[y.Tenant*n+y.Pools[0]], r.behind[x.Tenant*n+x.Pools[0]])
	})
	for _, i := range line {
		if r.served == recallsARound {
			return
		}
		for _, p := range in.Candidates[i].Pools {
			if r.serve(&in.Candidates[i], p) {
				choice.Passed[i] = round.Passed{}
				break
			}
		}
	}
}

// unserved lists the candidates that never had a lease, and have none now.
func (h *hall) unserved(in *lease.Input, choice *lease.Choice) []int {
	var line []int
	claimed := make(map[cluster.JobKey]bool, len(h.Claims))
	for k := range h.Claims {
		claimed[h.Claims[k].Job] = true
	}
	for t := range in.Tenants {
		for _, i := range in.Tenants[t].Jobs {
			k := &in.Candidates[i]
			if k.Unserved && !k.Running && !k.Humble && choice.Passed[i].Code != "" && !claimed[k.Key] {
				line = append(line, i)
			}
		}
	}
	return line
}

// recalls is what is worked out once for all recalls of a round.
type recalls struct {
	h       *hall
	board   *place.Board
	behind  []cluster.Span // by row of the ledger, with every lease charged to its end
	least   []cluster.Span // by pool: behind of the tenant furthest ahead that has a lease to recall
	has     []bool         // by row: the tenant has a lease to recall
	firsts  []int          // by row: GPUs of leases that are their jobs' first, or will be at once
	most    int            // leases that may still be ended for others; < 0 = any number
	served  int
	refused map[refusal]bool
}

// nobody is the least of a pool in which there is no lease to recall.
const nobody cluster.Span = 1 << 62

// refusal is a shape that a tenant may not have others' leases for.
type refusal struct{ tenant, shape, pool int }

func (h *hall) openRecalls(choice *lease.Choice) *recalls {
	n, rows := len(h.Pools), len(h.Rows)
	r := &recalls{h: h, most: -1, refused: map[refusal]bool{},
		behind: make([]cluster.Span, rows), least: slices.Repeat([]cluster.Span{nobody}, n), has: make([]bool, rows), firsts: make([]int, rows)}
	if h.Settings.MaxReclaims > 0 {
		r.most = h.Settings.MaxReclaims
		for i := range choice.Grants {
			r.most = max(r.most-len(choice.Grants[i].Displaced), 0)
		}
	}
	debit, _ := h.Committed(rows, round.QueueOf)
	for at := range r.behind {
		row := &h.Rows[at]
		r.behind[at] = ltgf.Behind(row.Deficit-debit[at], row.Entitlement)
	}
	for i, l := range h.Leases {
		if l == nil || h.Jobs[i].Queue < 0 || h.Pool(l.Pool) < 0 {
			continue
		}
		row := r.row(i)
		if l.Term == 1 {
			r.firsts[row] += l.GPUs
		}
		if h.recallable(i) {
			r.has[row] = true
			r.least[row%n] = min(r.least[row%n], r.behind[row])
		}
	}
	for k := range h.Claims {
		cl := &h.Claims[k]
		i, p := h.Find(cl.Job), h.Pool(cl.Pool)
		if i >= 0 && p >= 0 && h.Records[i].Terms == 0 && cl.At <= h.Now.Add(h.Settings.RecallNotice) {
			r.firsts[h.Jobs[i].Queue*n+p] += round.GPUs(cl.Nodes)
		}
	}
	return r
}

// mayHope tells whether there is any lease that might be recalled for a job, wherever it is.
func (r *recalls) mayHope(k *lease.Candidate) bool {
	found := false
	for _, p := range k.Pools {
		row := k.Tenant*len(r.h.Pools) + p
		if r.h.Rows[row].Entitlement > 0 && !slices.Contains(k.Idle, p) {
			found = r.ahead(k, p) || r.has[row] && r.mayOwn(k, row) || found
		}
	}
	return found
}

// ahead tells whether the tenant furthest ahead in a pool may have to give way to a job. If not
// yet, it notes from when on.
func (r *recalls) ahead(k *lease.Candidate, pool int) bool {
	gap := r.least[pool] + r.h.Settings.Threshold - r.behindWith(k, pool)
	if gap > 0 {
		r.h.ripens(gap, lease.Cost(r.h.Rows[k.Tenant*len(r.h.Pools)+pool].Entitlement, k.GPUs, r.h.Settings.Term))
	}
	return gap <= 0
}

// behindWith gives how far a tenant is behind when a job of its own has its first lease.
func (r *recalls) behindWith(k *lease.Candidate, pool int) cluster.Span {
	row := k.Tenant*len(r.h.Pools) + pool
	return r.behind[row] - lease.Cost(r.h.Rows[row].Entitlement, k.GPUs, r.ends().Sub(r.h.Now))
}

// ends gives the end of a lease that is made room for now.
func (r *recalls) ends() cluster.Instant {
	return lease.Next(r.h.Now.Add(r.h.Settings.RecallNotice), r.h.Settings)
}

// layOut makes the board.
func (r *recalls) layOut(in *lease.Input) {
	h, n := r.h, len(r.h.Pools)
	now := lease.Input{Settings: h.Settings, Tenants: make([]lease.Tenant, len(in.Tenants))}
	for t := range now.Tenants {
		now.Tenants[t].Shares = slices.Clone(in.Tenants[t].Shares)
		for p := range h.Pools {
			now.Tenants[t].Shares[p].Behind = r.behind[t*n+p]
		}
	}
	ranks := h.rank(&now)
	h.kept = h.fresh(h.kept)
	r.board = h.kept
	h.lay(r.board, func(i int) (soft, bool) {
		return soft{h.Jobs[i].Queue, ranks[i], h.Now.Add(h.Settings.RecallNotice)}, h.recallable(i)
	})
	h.keep(r.board)
}

// anyRecallable tells whether any lease may be recalled, and notes when the next may be.
func (h *hall) anyRecallable() bool {
	found := false
	for i := range h.Leases {
		found = h.recallable(i) || found
	}
	return found
}

// recallable tells whether a lease may be recalled: it is in the middle of its term, and its
// job has had its GPUs for the shortest lease. One that was renewed at this very moment, in this
// round or in one that is made again, was weighed against all who wait.
func (h *hall) recallable(i int) bool {
	if h.Leases[i] == nil || h.Jobs[i].Touch != cluster.Act || h.Jobs[i].Ordered(cluster.Exempt) || !h.Jobs[i].Runs || h.Jobs[i].Queue < 0 || h.Leases[i].State != cluster.Active || h.Ending(i) ||
		h.Pool(h.Leases[i].Pool) < 0 {
		return false
	}
	if l := h.Leases[i]; l.Granted == h.Now && !l.Adopted {
		return !h.later(h.Now.Add(h.Settings.Interval))
	}
	if h.later(h.Snapshot.Cases[i].Job.Start.Add(h.Settings.MinLease)) {
		return false
	}
	rule := h.stops.Rule()
	if rule.Off() {
		return true
	}
	if h.Jobs[i].Dear {
		return false
	}
	j := h.stops.Stop(i)
	return j.May(rule, h.Now.Add(h.Settings.RecallNotice), h.Settings.RecallNotice)
}

// later tells whether a moment is still to come; if so, recalls are looked at again then.
func (h *hall) later(at cluster.Instant) bool {
	if at > h.Now && (h.recallAt == 0 || at < h.recallAt) {
		h.recallAt = at
	}
	return at > h.Now
}

// ripens notes when a gap between two tenants will have closed, unless a term ends before: what
// they are charged for leases shrinks as time goes by, by closing in a whole term.
func (h *hall) ripens(gap, closing cluster.Span) {
	if gap < closing {
		h.later(h.Now.Add(cluster.Span(cluster.MulDiv(int64(gap), int64(h.Settings.Term), int64(closing))) + 1))
	}
}

// serve recalls leases for a job, if it may have any.
func (r *recalls) serve(k *lease.Candidate, pool int) bool {
	h := r.h
	row := k.Tenant*len(h.Pools) + pool
	if h.Rows[row].Entitlement == 0 || r.most == 0 || slices.Contains(k.Idle, pool) {
		return false
	}
	end := r.ends()
	ask := place.Ask{Shape: k.Shape, Pool: pool, Now: h.Now, End: max(k.End, end), Displace: place.Anybodys, Stops: !k.Binds, Most: r.most}
	behind := r.behindWith(k, pool)
	own := r.mayOwn(k, row)
	found, ok := place.Placement{}, false
	if no := (refusal{k.Tenant, k.Shape, pool}); r.ahead(k, pool) && !r.refused[no] {
		if found, ok = r.board.Fit(ask); ok && !r.yield(found.Displaced, k, pool, behind, own) {
			r.refused[no], ok = true, false
		}
	}
	if !ok && own {
		ask.Displace = place.Own + k.Tenant
		found, ok = r.board.Fit(ask)
	}
	if !ok {
		return false
	}
	r.board.Take(found)
	r.served++
	r.behind[row] = behind
	r.firsts[row] += k.GPUs
	for _, i := range found.Displaced {
		r.end(i, k.Key)
	}
	if found.At > h.Now {
		h.Claims = append(h.Claims, h.claim(k.Key, h.Pools[pool], found.Nodes, found.At))
	} else {
		h.lend(k.Case, h.Pools[pool], found.Nodes, h.stops.EndFor(k.Case, h.Now))
	}
	return true
}

// mayOwn tells whether a job may have leases of its own tenant: the first leases of its jobs
// are then no more than new jobs' share of what it is due, or this is the only one.
func (r *recalls) mayOwn(k *lease.Candidate, row int) bool {
	share := int64(r.h.Settings.NewSharePercent)
	if r.firsts[row] == 0 {
		share = 100
	}
	return int64(r.firsts[row]+k.GPUs)*100*int64(cluster.WholeGPU) <= share*int64(r.h.Rows[row].Entitlement)
}

// yield tells whether those who hold leases must give way to a tenant that is so far behind
// when it has got them: each is as far ahead still without them, by the threshold.
func (r *recalls) yield(leases []int, k *lease.Candidate, pool int, behind cluster.Span, own bool) bool {
	h, n := r.h, len(r.h.Pools)
	entitled := func(row int) cluster.MicroGPU { return h.Rows[row].Entitlement }
	type sum struct{ behind, closing cluster.Span }
	without := map[int]sum{} // by row
	for _, i := range leases {
		t := h.Jobs[i].Queue
		if t == k.Tenant {
			if !own {
				return false
			}
			continue
		}
		row := r.row(i) // of another pool where its CPUs are in the way
		w, ok := without[row]
		if !ok {
			w = sum{r.behind[row], lease.Cost(entitled(k.Tenant*n+pool), k.GPUs, h.Settings.Term)}
		}
		w.behind += r.rest(i)
		w.closing += lease.Cost(entitled(row), h.Leases[i].GPUs, h.Settings.Term)
		if gap := w.behind + h.Settings.Threshold - behind; gap > 0 {
			h.ripens(gap, w.closing)
			return false
		}
		without[row] = w
	}
	return true
}

// row gives the row of the ledger that a lease is charged to.
func (r *recalls) row(i int) int {
	return r.h.Jobs[i].Queue*len(r.h.Pools) + r.h.Pool(r.h.Leases[i].Pool)
}

// rest gives what is left of a lease, as time at its tenant's entitlement.
func (r *recalls) rest(i int) cluster.Span {
	l := r.h.Leases[i]
	return lease.Cost(r.h.Rows[r.row(i)].Entitlement, l.GPUs, l.End.Sub(r.h.Now))
}

// end recalls one lease.
func (r *recalls) end(i int, heir cluster.JobKey) {
	l, st := r.h.Leases[i], &r.h.Jobs[i]
	row := r.row(i)
	r.behind[row] += r.rest(i)
	if l.Term == 1 {
		r.firsts[row] -= l.GPUs
	}
	if r.most > 0 {
		r.most--
	}
	l.End, l.Why, st.Heir, st.Stoppable = r.h.Now.Add(r.h.Settings.RecallNotice), round.Recalled, heir, true
}
