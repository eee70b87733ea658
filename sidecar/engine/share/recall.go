package share

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// recallsARound limits the jobs for which leases are recalled in a round.
const recallsARound = 32

// recall gives jobs that never had a lease, and got none in this round, the GPUs of running leases before
// their terms end. Most jobs are short and would otherwise wait longer for a boundary than they run. Leases
// of tenants that remain ahead without them, by the threshold, come first. Then come leases of the job's own
// tenant, up to the share of new jobs in its entitlement. Every job keeps its GPUs for at least the minimum
// lease.
func (x *contest) recall(in *lease.Input, choice *lease.Choice) {
	if !x.f.In.Settings.RecallFirst || x.f.Hourly.Shut() {
		return
	}
	line := x.unserved(in, choice)
	if len(line) == 0 {
		return
	}
	may := x.recallables(x.c.mayRecall)
	if x.c.mayRecall = may; !slices.Contains(may, true) {
		return
	}
	r := x.openRecalls(choice, may)
	line = slices.DeleteFunc(line, func(i int) bool { return !r.mayHope(&in.Candidates[i]) })
	if len(line) == 0 {
		return
	}
	r.layOut(in)
	slices.SortStableFunc(line, func(a, b int) int {
		x, y := &in.Candidates[a], &in.Candidates[b]
		return cmp.Compare(*r.behind.At(queueOf(y), y.Pools[0]), *r.behind.At(queueOf(x), x.Pools[0]))
	})
	for _, i := range line {
		if r.served == recallsARound {
			return
		}
		for _, p := range in.Candidates[i].Pools {
			if choice.MayBind(i, p) && r.serve(&in.Candidates[i], p) {
				choice.Late(i, p)
				choice.Passed[i] = round.Passed{}
				break
			}
		}
	}
}

// unserved lists the candidates that never had a lease and have none now.
func (x *contest) unserved(in *lease.Input, choice *lease.Choice) []int {
	var line []int
	for t := range in.Tenants {
		for _, i := range in.Tenants[t].Jobs {
			k := &in.Candidates[i]
			if k.Priority.Unserved && !k.Running && !k.IdleOnly && choice.Passed[i].Code != "" && choice.Passed[i].Code != cluster.ReasonTogether && !x.f.Hand.IsClaimed(k.Key) {
				line = append(line, i)
			}
		}
	}
	return line
}

// recalls holds data for all recalls of a round.
type recalls struct {
	x       *contest
	may     []bool // by case: its lease may be recalled
	board   *place.Board
	behind  byQueue[cluster.Span]     // with every lease charged to its end
	least   []cluster.Span            // by pool: behind of the queue furthest ahead that has a lease to recall
	has     byQueue[bool]             // the queue has a lease to recall
	holds   byQueue[cluster.MicroGPU] // GPUs of leases
	lacks   byQueue[cluster.GPUTime]  // of floors at the end of a lease after a recall
	gangs   []cluster.MicroGPU        // by queue: the largest, in devices; nil = nobody repays
	firsts  byQueue[cluster.MicroGPU] // GPUs of leases that are their jobs' first, or will be soon
	most    int                       // leases that may still be ended for others; < 0 = no limit
	served  int
	refused map[refusal]bool
	places  map[place.Asked]spot // on the board as it is
	users   []lease.UserTurn     // with every lease charged to its end; nil = users do not matter
}

// byQueue is a value for each queue and pool.
type byQueue[V any] = round.Table[round.QueueIndex, V]

// account is a queue in a pool.
type account struct {
	queue round.QueueIndex
	pool  int
}

// queueOf returns the queue of a candidate.
func queueOf(k *lease.Candidate) round.QueueIndex { return round.QueueIndex(k.Tenant) }

// nobody is the value of least in a pool without a lease to recall.
const nobody cluster.Span = 1 << 62

// refusal is a shape for which a tenant may not recall leases of others in a pool.
type refusal struct{ tenant, shape, pool int }

// spot is the place for an ask, if there is one.
type spot struct {
	place.Placement
	ok bool
}

// fit returns the place for an ask on the board. Many jobs ask for the same.
func (r *recalls) fit(a place.Ask) (place.Placement, bool) {
	asked := place.AskedOf(r.board, a)
	found, known := r.places[asked]
	if !known {
		found.Placement, found.ok = r.board.Fit(a)
		r.places[asked] = found
	}
	return found.Placement, found.ok
}

func (x *contest) openRecalls(choice *lease.Choice, may []bool) *recalls {
	n, queues := len(x.f.In.Pools), len(x.f.Due.Queues)
	r := &recalls{x: x, may: may, most: reclaimsLeft(x.f.In.Settings, choice), users: x.f.Users(), refused: map[refusal]bool{}, places: map[place.Asked]spot{}, least: slices.Repeat([]cluster.Span{nobody}, n),
		behind: round.NewTable[round.QueueIndex, cluster.Span](queues, n), has: round.NewTable[round.QueueIndex, bool](queues, n),
		firsts: round.NewTable[round.QueueIndex, cluster.MicroGPU](queues, n), holds: round.NewTable[round.QueueIndex, cluster.MicroGPU](queues, n)}
	r.lacks, r.gangs = field.Lacking(x.f, r.ends())
	debit, _ := round.Committed(x.f.In, x.f.Due.Queued, x.f.Taken(), queues, round.QueueOf)
	for at := range r.behind.Cells {
		row := &x.f.Due.Rows.Cells[at]
		r.behind.Cells[at] = ltgf.Behind(row.Deficit-debit.Cells[at], row.Entitlement)
	}
	for i, l := range x.f.Hand.Leases {
		if l == nil || x.f.Due.Queued[i].Queue < 0 || x.f.In.Pool(l.Pool) < 0 {
			continue
		}
		at := r.accountOf(i)
		*r.holds.At(at.queue, at.pool) += l.Size.Amount()
		if l.Term == 1 {
			*r.firsts.At(at.queue, at.pool) += l.Size.Amount()
		}
		if may[i] {
			*r.has.At(at.queue, at.pool) = true
			r.least[at.pool] = min(r.least[at.pool], *r.behind.At(at.queue, at.pool))
		}
	}
	for k := range x.f.Hand.Claims {
		cl := &x.f.Hand.Claims[k]
		i, p := x.f.In.Find(cl.Job), x.f.In.Pool(cl.Pool)
		if i >= 0 && p >= 0 && x.f.Terms(i) == 0 && cl.At <= x.f.In.Now.Add(x.f.In.Settings.RecallNotice) {
			*r.firsts.At(x.f.Due.Queued[i].Queue, p) += x.f.In.Settings.Counted(cl.Nodes).Amount()
		}
	}
	return r
}

// reclaimsLeft returns how many more leases may end for others in this round; < 0 = no limit.
func reclaimsLeft(s *cluster.Settings, choice *lease.Choice) int {
	if s.MaxReclaims <= 0 {
		return -1
	}
	left := s.MaxReclaims
	for i := range choice.Grants {
		left = max(left-len(choice.Grants[i].Displaced), 0)
	}
	return left
}

// mayHope reports whether any lease might be recalled for a job, on any nodes.
func (r *recalls) mayHope(k *lease.Candidate) bool {
	found := false
	for _, p := range k.Pools {
		if q := queueOf(k); r.x.f.Due.Rows.At(q, p).Entitlement > 0 && !slices.Contains(k.Idle, p) {
			found = r.ahead(k, p) || r.lacking(k, p) || *r.has.At(q, p) && r.mayOwn(k, p) || found
		}
	}
	return found
}

// ahead reports whether the queue furthest ahead in a pool may have to give way to a job. If not yet, it
// notes the time from which it may.
func (r *recalls) ahead(k *lease.Candidate, pool int) bool {
	gap := r.least[pool] + r.x.f.In.Settings.Threshold - r.behindWith(k, pool)
	if gap > 0 {
		r.x.ripens(gap, lease.Cost(r.x.f.Due.Rows.At(queueOf(k), pool).Entitlement, k.In(pool), r.x.f.In.Settings.Term))
	}
	return gap <= 0
}

// behindWith returns how far a tenant is behind after its job gets its first lease.
func (r *recalls) behindWith(k *lease.Candidate, pool int) cluster.Span {
	q := queueOf(k)
	return *r.behind.At(q, pool) - lease.Cost(r.x.f.Due.Rows.At(q, pool).Entitlement, k.In(pool), r.ends().Sub(r.x.f.In.Now))
}

// lacking reports whether a job's tenant lacks more of its floor in a pool than its largest gang for one term.
func (r *recalls) lacking(k *lease.Candidate, pool int) bool {
	return r.gangs != nil && *r.lacks.At(queueOf(k), pool) > r.x.f.In.Worths().In(pool, r.gangs[k.Tenant]).Over(r.x.f.In.Settings.Term)
}

// holdsFor counts GPUs that a tenant gets, or gives up if negative, from now until an end.
func (r *recalls) holdsFor(at account, gpus cluster.MicroGPU, end cluster.Instant) {
	*r.holds.At(at.queue, at.pool) += gpus
	if r.gangs != nil {
		*r.lacks.At(at.queue, at.pool) -= gpus.Over(max(min(end, r.ends()).Sub(r.x.f.In.Now), 0))
	}
}

// keeps reports whether a tenant keeps its floor, if debts are repaid, and at least so many GPUs without leases of gpus.
func (r *recalls) keeps(at account, gpus, least cluster.MicroGPU) bool {
	return *r.holds.At(at.queue, at.pool)-gpus >= least && (r.gangs == nil || *r.lacks.At(at.queue, at.pool)+gpus.Over(r.ends().Sub(r.x.f.In.Now)) <= 0)
}

// ends returns the end of a lease that starts after a recall now.
func (r *recalls) ends() cluster.Instant {
	return lease.Next(r.x.f.In.Now.Add(r.x.f.In.Settings.RecallNotice), r.x.f.In.Settings)
}

// layOut fills the board.
func (r *recalls) layOut(in *lease.Input) {
	x := r.x
	now := lease.Input{Settings: x.f.In.Settings, Worths: x.f.In.Worths(), Tenants: make([]lease.Tenant, len(in.Tenants))}
	for t := range r.behind.Rows() {
		now.Tenants[t].Shares = slices.Clone(in.Tenants[t].Shares)
		for p := range x.f.In.Pools {
			now.Tenants[t].Shares[p].Behind = *r.behind.At(t, p)
		}
	}
	ranks := x.rank(&now)
	x.c.kept = x.f.Lay(x.c.kept, func(i int) (field.Soft, bool) {
		return field.Soft{Owner: int(x.f.Due.Queued[i].Queue), Rank: ranks[i], End: x.f.In.Now.Add(x.f.In.Settings.RecallNotice)}, r.may[i]
	})
	r.board = x.c.kept
	x.keep(r.board)
}

// recallables returns, by case, whether a lease may be recalled, and notes when the next may be. It reuses
// the memory of out.
func (x *contest) recallables(out []bool) []bool {
	out = slices.Grow(out[:0], len(x.f.Hand.Leases))
	for i := range x.f.Hand.Leases {
		out = append(out, x.recallable(i))
	}
	return out
}

// recallable reports whether a lease may be recalled. It must be in the middle of its term, and its job must
// have had its GPUs for the minimum lease. A lease renewed at this very moment, in this round or a repeated
// one, has been weighed against all waiting jobs already.
func (x *contest) recallable(i int) bool {
	if x.f.Hand.Leases[i] == nil || x.f.In.Cases[i].Control != cluster.FullControl || x.f.In.Cases[i].Ordered(cluster.Exempt) || !x.f.In.Cases[i].Runs || x.f.Due.Queued[i].Queue < 0 || x.f.Hand.Leases[i].State != cluster.Active || x.f.Ending(i) ||
		x.f.In.Pool(x.f.Hand.Leases[i].Pool) < 0 {
		return false
	}
	if l := x.f.Hand.Leases[i]; l.Granted == x.f.In.Now && !l.Adopted {
		return !x.out.Later(x.f.In.Now, x.f.In.Now.Add(x.f.In.Settings.Interval))
	}
	if x.out.Later(x.f.In.Now, x.f.In.Snapshot.Cases[i].Job.Start.Add(x.f.In.Settings.MinLease)) {
		return false
	}
	if x.f.Hourly.Spent(i) {
		return false
	}
	rule := x.f.Stops.Rule()
	if rule.Off() {
		return true
	}
	if x.f.Stops.Owes[i].Dear {
		return false
	}
	j := x.f.Stops.Stop(i)
	return j.May(rule, x.f.In.Now.Add(x.f.In.Settings.RecallNotice), x.f.In.Settings.RecallNotice)
}

// ripens notes when a gap between two tenants will have closed, unless a term ends before. Charges for leases
// shrink over time, by closing in a whole term.
func (x *contest) ripens(gap, closing cluster.Span) {
	if gap < closing {
		x.out.Later(x.f.In.Now, x.f.In.Now.Add(cluster.Span(cluster.MulDiv(int64(gap), int64(x.f.In.Settings.Term), int64(closing)))+1))
	}
}

// serve recalls leases for a job, and reports whether it got GPUs.
func (r *recalls) serve(k *lease.Candidate, pool int) bool {
	x := r.x
	q := queueOf(k)
	if x.f.Limits != nil && x.f.Limits.Room(k.Case) != lease.Now || x.f.Due.Rows.At(q, pool).Entitlement == 0 || r.most == 0 || slices.Contains(k.Idle, pool) {
		return false
	}
	end := r.ends()
	ask := place.Ask{Shape: k.Shape, Pool: pool, Now: x.f.In.Now, End: max(k.Ends.By, end), Displace: place.Anybodys, Stops: k.Binds == lease.Unbound, Max: r.most, Sharer: x.f.In.Sharer(k.Case)}
	behind := r.behindWith(k, pool)
	own := r.mayOwn(k, pool)
	found, ok := place.Placement{}, false
	if no := (refusal{k.Tenant, k.Shape, pool}); (r.lacking(k, pool) || r.ahead(k, pool)) && !r.refused[no] {
		if found, ok = r.fit(ask); ok && !r.yield(found.Displaced, k, pool, behind, own) {
			r.refused[no], ok = true, false
		}
	}
	if !ok && own {
		ask.Displace = place.Own + k.Tenant
		if found, ok = r.fit(ask); ok && !r.ownYield(found.Displaced, k) {
			return false
		}
	}
	if !ok {
		return false
	}
	if !x.f.Hourly.May(k.Case, found.Displaced) {
		x.out.Later(x.f.In.Now, x.f.Hourly.Until())
		return false
	}
	x.f.Hourly.Count(k.Case, found.Displaced)
	r.board.Take(found)
	clear(r.places)
	if x.f.Limits != nil {
		x.f.Limits.Take(k.Case, true)
	}
	r.served++
	*r.behind.At(q, pool) = behind
	r.charge(int(k.Priority.User), k.In(pool), end)
	*r.firsts.At(q, pool) += k.In(pool)
	r.holdsFor(account{q, pool}, k.In(pool), end)
	for _, i := range found.Displaced {
		r.end(i, k.Key)
	}
	if found.At > x.f.In.Now {
		x.f.Hand.Claims = append(x.f.Hand.Claims, x.f.Claim(k.Key, x.f.In.Pools[pool], found.Nodes, found.At))
	} else {
		x.f.Grant(k.Case, x.f.In.Pools[pool], found.Nodes, x.f.Stops.EndFor(k.Case, x.f.In.Now))
	}
	return true
}

// mayOwn reports whether a job may recall leases of its own tenant. The first leases of the tenant's jobs
// must stay within the share of new jobs in its entitlement. A single first lease may use the whole
// entitlement.
func (r *recalls) mayOwn(k *lease.Candidate, pool int) bool {
	share, firsts := int64(r.x.f.In.Settings.NewSharePercent), *r.firsts.At(queueOf(k), pool)
	if firsts == 0 {
		share = 100
	}
	return int64(firsts+k.In(pool))*100 <= share*int64(r.x.f.Due.Rows.At(queueOf(k), pool).Entitlement)
}

// yield reports whether all leases must give way to a tenant that is behind by the given span once it has
// their GPUs. Each other tenant must be further ahead by the threshold even without its leases, and keep its floor.
// A job of a tenant that lacks GPUs of its floor gets those that others hold beyond their dues.
func (r *recalls) yield(leases []int, k *lease.Candidate, pool int, behind cluster.Span, own bool) bool {
	x := r.x
	type sum struct {
		behind, closing cluster.Span
		gpus            cluster.MicroGPU
	}
	lacks := r.lacking(k, pool)
	without := map[account]sum{}
	own = own && r.ownYield(leases, k)
	for _, i := range leases {
		if x.f.Due.Queued[i].Queue == queueOf(k) {
			if !own {
				return false
			}
			continue
		}
		at := r.accountOf(i) // in another pool if its CPUs are in the way
		w, ok := without[at]
		if !ok {
			w = sum{*r.behind.At(at.queue, at.pool), lease.Cost(x.f.Due.Rows.At(queueOf(k), pool).Entitlement, k.In(pool), x.f.In.Settings.Term), 0}
		}
		row := x.f.Due.Rows.At(at.queue, at.pool)
		w.behind += r.rest(i)
		w.closing += lease.Cost(row.Entitlement, x.f.Hand.Leases[i].Size.Amount(), x.f.In.Settings.Term)
		w.gpus += x.f.Hand.Leases[i].Size.Amount()
		without[at] = w
		switch gap := w.behind + x.f.In.Settings.Threshold - behind; {
		case !r.keeps(at, w.gpus, 0):
			return false
		case gap > 0 && (!lacks || !r.keeps(at, w.gpus, row.Own())):
			x.ripens(gap, w.closing)
			return false
		}
	}
	return true
}

// ownYield reports whether all leases of a job's own tenant may give way to it. In orders other than by rho, their jobs go
// after it. With users that share equally, a lease of another user may give way if that user stays ahead even without it.
// A job that has not run as long as it wishes gives way to no job of its own tenant.
func (r *recalls) ownYield(leases []int, k *lease.Candidate) bool {
	behind := cluster.GPUTime(0)
	if r.users != nil {
		behind = r.users[k.Priority.User].Behind - k.Counts().Over(r.ends().Sub(r.x.f.In.Now))
	}
	for _, i := range leases {
		if r.x.f.Due.Queued[i].Queue != queueOf(k) {
			continue
		}
		if r.x.out.Later(r.x.f.In.Now, r.x.f.Stops.Wished(i, r.x.f.In.Snapshot.Cases[i].Job.Start)) {
			return false
		}
		if u := r.x.f.In.Cases[i].User; r.users != nil && u != k.Priority.User {
			if r.users[u].Behind+r.x.f.Hand.Leases[i].Size.Over(r.x.f.Hand.Leases[i].End.Sub(r.x.f.In.Now)) > behind {
				return false
			}
		} else if r.x.f.In.Settings.JobOrder != cluster.ByRho && r.x.f.Turn(i) <= k.Priority.Rho {
			return false
		}
	}
	return true
}

// accountOf returns the account that a lease is charged to.
func (r *recalls) accountOf(i int) account {
	return account{r.x.f.Due.Queued[i].Queue, r.x.f.In.Pool(r.x.f.Hand.Leases[i].Pool)}
}

// rest returns the remaining part of a lease as time at its tenant's entitlement.
func (r *recalls) rest(i int) cluster.Span {
	l, at := r.x.f.Hand.Leases[i], r.accountOf(i)
	return lease.Cost(r.x.f.Due.Rows.At(at.queue, at.pool).Entitlement, l.Size.Amount(), l.End.Sub(r.x.f.In.Now))
}

// charge books GPUs until end on a user.
func (r *recalls) charge(user int, gpus cluster.MicroGPU, end cluster.Instant) {
	if r.users != nil {
		r.users[user].Behind -= gpus.Over(end.Sub(r.x.f.In.Now))
	}
}

// end recalls one lease.
func (r *recalls) end(i int, beneficiary cluster.JobKey) {
	l, st, mark := r.x.f.Hand.Leases[i], &r.x.f.In.Cases[i], &r.x.f.Hand.Marks[i]
	at := r.accountOf(i)
	*r.behind.At(at.queue, at.pool) += r.rest(i)
	r.charge(int(st.User), -l.Size.Amount(), l.End)
	if r.holdsFor(at, -l.Size.Amount(), l.End); l.Term == 1 {
		*r.firsts.At(at.queue, at.pool) -= l.Size.Amount()
	}
	if r.most > 0 {
		r.most--
	}
	l.End, l.Why, mark.Beneficiary, mark.Stoppable = r.x.f.In.Now.Add(r.x.f.In.Settings.RecallNotice), round.Recalled, beneficiary, true
}
