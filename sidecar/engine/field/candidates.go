package field

import (
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Candidates lists the jobs that could hold a lease next.
func (f *Field) Candidates(touch cluster.Control) []lease.Candidate {
	n := 0
	for i := range f.In.Cases {
		if f.Can[i].Eligible || f.Hand.Leases[i] != nil {
			n++
		}
	}
	out := slices.Grow(f.room.unsorted[:0], n)
	for i := range f.In.Cases {
		st, can, who, owes, l := &f.In.Cases[i], &f.Can[i], &f.Due.Queued[i], &f.Stops.Owes[i], f.Hand.Leases[i]
		runs := f.Ending(i) && !st.Ordered(cluster.Freeze)
		if !st.Ours(touch) || !runs && (l != nil || !can.Eligible) {
			continue
		}
		r := &f.In.Records[i]
		out = append(out, lease.Candidate{})
		k := &out[len(out)-1] // a candidate is large: it is filled in where it lies
		*k = lease.Candidate{Case: i, Key: r.Key, Tenant: int(who.Queue), Pools: can.Pools, Shape: can.Shape, GPUs: can.GPUs, Worths: f.In.Worths(),
			Running: runs, Priority: lease.Priority{
				First: can.First, Owed: owed(f, i), User: st.User, Unserved: f.Terms(i) == 0 && can.Probes == round.NoProbe, New: f.In.Settings.NewFirst && f.Terms(i) == 0, Rho: st.Rho,
				Urgent: st.Boosted || slices.Contains(f.In.Settings.UrgentQOS, f.In.Snapshot.Cases[i].Job.QOS)}}
		if f.In.Spent(r.Tenant) != nil {
			k.Priority.Owed = 0
		}
		if runs {
			k.GPUs, k.Priority.Rho = cluster.SizeHeld(r.Slice.Has(l.Nodes)).Amount(), steadied(f, i, l)
			k.Pools, k.Better = f.Market.MayMove(i, l)
			if together, shape := gathers(f, i, l); together != nil {
				k.Better, k.Shape = append(slices.Clip(k.Better), together...), shape
			}
			k.Priority.Resting = Resting(f.In.Snapshot, i) || f.Stops.Opened(i)
			end, binds, cost := budget.EndAndBinds(f.Stops, i, max(l.End, f.In.Now))
			k.Ends.Next = end
			if k.Binds = binding(f, i, binds); k.Binds == lease.Unbound {
				if k.Ends.Cost = cost; !owes.Unpaid {
					k.Ends.Cost -= budget.CostAt(f.Stops, i, l.End)
				}
			}
		} else {
			end, binds, cost := budget.EndAndBinds(f.Stops, i, f.In.Now)
			k.Ends.By = end
			if k.Binds = binding(f, i, binds); k.Binds != lease.Unbound {
				k.Ends.By = lease.Unending
			} else {
				k.Ends.Cost = cost
			}
			k.IdleOnly, k.Loose = f.Found.IdleOnly(i), f.In.Snapshot.Cases[i].Loose()
		}
		f.Order(k)
	}
	f.room.unsorted = out
	return out
}

// owed returns the GPU time that a job is owed: by its tenant, or by the division where jobs queue.
func owed(f *Field, i int) (sum cluster.GPUTime) {
	if !f.Due.JobsQueue {
		return f.In.Records[i].Due - f.In.Records[i].Alloc
	}
	for p := range f.In.Pools {
		sum += f.Due.Rows.At(f.Due.Queued[i].Queue, p).Deficit
	}
	return sum
}

// binding tells how a lease holds the GPUs of a job that starts or continues now, if it binds them.
func binding(f *Field, i int, binds bool) lease.Binding {
	switch {
	case !binds:
		return lease.Unbound
	case budget.EndsSoon(f.Stops, i):
		return lease.BindsShort
	}
	return lease.BindsLong
}

// steadied returns the rho by which a running job is compared with waiting jobs of its tenant. It is computed
// as if the job had received less by threshold, so that a waiting job must be behind by that much. Jobs with
// many terms get another term off (ASTRAEA §5.2.1: renewed more readily).
func steadied(f *Field, i int, l *cluster.Lease) cluster.Rho {
	bonus := f.In.Settings.Threshold
	if f.In.Settings.LongTerms > 0 && f.Terms(i) >= f.In.Settings.LongTerms {
		bonus += f.In.Settings.Term
	}
	off := l.Size.Over(bonus)
	received, due := f.In.Records[i].Work(f.In.Now)
	return cluster.RhoOf(received-work(f, i, off), due)
}

// aged returns the rho of a new job that does not go first. It is computed as if the job had received and
// been due one term, so that the job rises in the queue as it waits.
func aged(f *Field, i int, gpus cluster.MicroGPU) cluster.Rho {
	one := work(f, i, gpus.Over(f.In.Settings.Term))
	received, due := f.In.Records[i].Work(f.In.Now)
	return cluster.RhoOf(received+one, due+one)
}

// work returns the work that GPU time of a job is at its present speedup.
func work(f *Field, i int, time cluster.GPUTime) cluster.GPUTime {
	x := cluster.Extra{Faster: f.Due.Rates[i].Faster}
	return time + x.Of(time)
}

// Order replaces a candidate's rho by its rank in the order of the settings, if that is another one.
func (f *Field) Order(k *lease.Candidate) {
	rank, other := rankOf(f, k.Case)
	if !other {
		if !k.Running {
			k.Priority.Aged = aged(f, k.Case, k.Counts())
		}
		return
	}
	if k.Priority.Aged, k.Priority.New = rank, impatient(f.In.Settings, k.Priority.Owed, k.Counts()); !k.Priority.New {
		k.Priority.Rho = rank
	}
}

// rankOf returns the rank of a job among those of its tenant in the order of the settings; other = it is not by rho.
func rankOf(f *Field, i int) (rank cluster.Rho, other bool) {
	switch weight := eligible.Weight(f.In, i); f.In.Settings.JobOrder {
	case cluster.ByAttained:
		return attained(&f.In.Records[i], weight, f.In.Settings.Term), true
	case cluster.ByExpected:
		return cluster.Rho(bits.Len64(uint64(f.Stops.Needs(i) * 1000 / weight))), true
	}
	return 0, false
}

// impatient reports whether a job that is owed so much goes first in any order but by rho.
func impatient(s *cluster.Settings, owed cluster.GPUTime, gpus cluster.MicroGPU) bool {
	return s.Patience > 0 && owed >= gpus.Over(s.Patience)
}

// Turn returns the rank of a running job among those of its tenant, by the order of the settings.
func (f *Field) Turn(i int) cluster.Rho {
	r, l := &f.In.Records[i], f.Hand.Leases[i]
	switch rank, other := rankOf(f, i); {
	case !other:
		return steadied(f, i, l)
	case impatient(f.In.Settings, r.Due-r.Alloc, l.Size.Amount()):
		return 0
	default:
		return rank
	}
}

// attained returns the rank of a job by the GPU time that it has received, per weight in thousandths. Jobs of less
// than a term of one GPU come first, then those of less than two terms, less than four, and so on. Jobs in the same
// class keep their GPUs from each other, so that long jobs do not take turns all the time (a multi-level feedback queue
// of least attained service; Tiresias §3.2 has two levels).
func attained(r *cluster.Record, weight int64, term cluster.Span) cluster.Rho {
	return cluster.Rho(bits.Len64(uint64(cluster.MulDiv(int64(max(r.Alloc, 0)), 1000, weight) / int64(max(term, 1)))))
}

// Line returns the tenants with their entitlements and holdings, and each tenant's candidates in order. It
// returns the candidates in the same order, tenant by tenant.
func (f *Field) Line(cs []lease.Candidate) ([]lease.Candidate, []lease.Tenant) {
	sorted := slices.Grow(f.room.sorted[:0], len(cs))
	tenants, shares := make([]lease.Tenant, len(f.Due.Queues)), make([]lease.Share, len(f.Due.Queues)*len(f.In.Pools))
	debit, holds := round.Committed(f.In, f.Due.Queued, f.Taken(), len(f.Due.Queues), round.QueueOf)
	jobs, users := byTenant(f, cs), f.Users()
	f.room.order.open(cs)
	lacks, gangs := Lacking(f, lease.Next(f.In.Now, f.In.Settings))
	for t := range f.Due.Rows.Rows() {
		tenants[t] = lease.Tenant{Name: f.Due.Queues[t].Name, Boost: boosted(f, f.In.Tenants[f.Due.Queues[t].Tenant]), Spent: f.In.Spent(f.In.Tenants[f.Due.Queues[t].Tenant]) != nil, Shares: shares[:len(f.In.Pools):len(f.In.Pools)]}
		shares = shares[len(f.In.Pools):]
		if gangs != nil {
			tenants[t].Gang = gangs[t]
		}
		entitled := cluster.MicroGPU(0)
		for p := range f.In.Pools {
			row := f.Due.Rows.At(t, p)
			tenants[t].Shares[p] = lease.Share{
				Behind:      ltgf.Behind(row.Deficit-*debit.At(t, p), row.Entitlement),
				Entitlement: row.Entitlement, Own: row.Own(), Siblings: row.OfSiblings(), Holds: *holds.At(t, p), Owed: row.Owed,
			}
			switch {
			case tenants[t].Spent:
				tenants[t].Shares[p].Owed = 0
			case gangs != nil:
				tenants[t].Shares[p].Lacks = *lacks.At(t, p)
			}
			entitled += row.Entitlement
		}
		newGPUs := entitled * cluster.MicroGPU(f.In.Settings.NewSharePercent) / 100
		if users == nil {
			f.room.sorter.Order(cs, jobs[t], newGPUs)
		} else {
			f.room.sorter.OrderUsers(cs, jobs[t], newGPUs, users, f.In.Settings)
		}
		for at, i := range jobs[t] {
			f.room.order.next(i)
			jobs[t][at] = len(sorted)
			sorted = append(sorted, cs[i])
		}
		tenants[t].Jobs = jobs[t]
	}
	f.room.sorted = sorted
	f.Market.Turns(f.Taken(), sorted, tenants, f.Users())
	return sorted, tenants
}

// without is what a tenant lacks of its floor in a pool in which nobody repays.
const without cluster.GPUTime = -1 << 60

// Lacking returns, by queue and pool, what tenants will lack of their floors in the hour, or the four terms, that end at end, if only the
// leases in force go on until they end, and the GPUs of each queue's largest live job, in devices. Both are empty if nobody repays.
func Lacking(f *Field, end cluster.Instant) (out round.Table[round.QueueIndex, cluster.GPUTime], gangs []cluster.MicroGPU) {
	repaid := make([]bool, len(f.In.Pools))
	for p := range repaid {
		repaid[p] = f.In.Settings.RepayFloorPercent > 0 && ltgf.Repaid(f.Due.Rows.Cells, len(f.In.Pools), p)
	}
	if !slices.Contains(repaid, true) {
		return out, nil
	}
	gangs = make([]cluster.MicroGPU, len(f.Due.Queues))
	for i := range f.In.Cases {
		if st, can, who := &f.In.Cases[i], &f.Can[i], &f.Due.Queued[i]; st.Live && who.Queue >= 0 {
			gangs[who.Queue] = max(gangs[who.Queue], can.GPUs)
		}
	}
	largest := slices.Max(gangs)
	out = round.NewTable[round.QueueIndex, cluster.GPUTime](len(f.Due.Queues), len(f.In.Pools))
	for q := range out.Rows() {
		for p := range f.In.Pools {
			if *out.At(q, p) = without; repaid[p] {
				*out.At(q, p) = ltgf.Lacks(f.Due.Rows.At(q, p), f.In.Worths().In(p, largest), f.In.Now, end, f.In.Settings)
			}
		}
	}
	for i, l := range f.Hand.Leases {
		if l != nil && f.Due.Queued[i].Queue >= 0 && f.In.Pool(l.Pool) >= 0 {
			*out.At(f.Due.Queued[i].Queue, f.In.Pool(l.Pool)) -= l.Size.Over(max(min(l.End, end).Sub(f.In.Now), 0))
		}
	}
	return out, gangs
}

// Users returns how far each user is behind, before any turn; nil = users do not matter.
func (f *Field) Users() []lease.UserTurn {
	behind := f.UsersBehind()
	if behind == nil {
		return nil
	}
	out := make([]lease.UserTurn, len(behind))
	for u := range out {
		out[u].Behind = behind[u]
	}
	return out
}

// byTenant returns the indices of every tenant's candidates. Those that were candidates in the last round come in their order there, and first.
func byTenant(f *Field, cs []lease.Candidate) [][]int {
	count := make([]int, len(f.Due.Queues))
	for i := range cs {
		count[cs[i].Tenant]++
	}
	all, jobs := make([]int, len(cs)), make([][]int, len(f.Due.Queues))
	for t, n := range count {
		jobs[t], all = all[:0:n], all[n:]
	}
	for _, i := range f.room.order.of(cs) {
		jobs[cs[i].Tenant] = append(jobs[cs[i].Tenant], int(i))
	}
	return jobs
}

func boosted(f *Field, tenant string) bool {
	return slices.ContainsFunc(f.In.Snapshot.Overrides, func(o cluster.Override) bool {
		return o.Kind == cluster.Boost && o.Scope == "tenant" && o.Name == tenant && o.Until > f.In.Now
	})
}
