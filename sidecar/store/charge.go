package store

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// stretch is a piece of time, from before to.
type stretch struct{ from, to cluster.Instant }

// until gives how much of total, spread evenly over the stretch, lies before t.
// The pieces between successive cuts sum to total exactly.
func (s stretch) until(total cluster.GPUTime, t cluster.Instant) cluster.GPUTime {
	switch {
	case t >= s.to:
		return total
	case t <= s.from:
		return 0
	case total < 0:
		return -s.until(-total, t)
	}
	return cluster.GPUTime(cluster.MulDiv(int64(total), int64(t-s.from), int64(s.to-s.from)))
}

// days splits total by the days, UTC, that the stretch touches. A stretch without length belongs
// to the day of its end.
func (s stretch) days(total cluster.GPUTime, add func(date, cluster.GPUTime)) {
	day := dateOf(min(s.from, s.to))
	for done := cluster.GPUTime(0); done != total; day += date(cluster.Day) {
		next := cluster.Instant(day) + cluster.Instant(cluster.Day)
		upTo := s.until(total, next)
		if upTo != done {
			add(day, upTo-done)
		}
		done = upTo
	}
}

// dateOf gives the day of t.
func dateOf(t cluster.Instant) date {
	day := cluster.Instant(cluster.Day)
	return date(t - ((t%day)+day)%day)
}

// holder is the journal's state of a job that has had a lease or GPUs, for computing what it received since.
type holder struct {
	alloc   cluster.GPUTime
	held    []cluster.ModelSize
	stopped []cluster.ModelSize // of an attempt whose stop is not booked yet
}

func holderOf(r *cluster.Record) holder {
	h := holder{alloc: r.Alloc, held: slices.Clone(r.Held)}
	if r.Stopping != nil {
		h.stopped = r.Stopping.GPUs
	}
	return h
}

// hold records what the jobs of a round have received.
func (w *written) hold(m cluster.State) {
	w.holders = make(map[cluster.JobKey]holder, len(w.holders))
	for r := range m.All() {
		if r.Alloc != 0 || r.Terms > 0 || len(r.Held) > 0 || r.Stopping != nil {
			w.holders[r.Key] = holderOf(r)
		}
	}
}

// received gives the time in which the job received its latest GPU time: from the last charge, or
// the start of its run if that was later, for as long as its GPUs take to produce that amount.
// last and at, when the ledger was charged before and now, are the fallback. known means that the last round had the job.
func received(was holder, now cluster.Record, known bool, last, at cluster.Instant) stretch {
	if last == 0 {
		last = at
	}
	from, held := last, now.Held
	if !known {
		from = 0
	}
	if len(was.held) == 0 {
		from = max(from, now.HeldSince)
	}
	if len(held) == 0 {
		held = was.held
	}
	n := gpus(held)
	if from == 0 || from >= at || n == 0 {
		return stretch{from: last, to: at}
	}
	ran := cluster.Instant(cluster.MulDiv(max(int64(now.Alloc-was.alloc), 0), int64(cluster.WholeGPU), int64(n)))
	return stretch{from: from, to: min(from+max(ran, 1), at)}
}

func gpus(held []cluster.ModelSize) cluster.MicroGPU {
	n := cluster.MicroGPU(0)
	for _, g := range held {
		n += g.Size.Amount()
	}
	return n
}

// byPool splits what a job received by the models of its GPUs, in proportion to their number;
// nothing if that is unknown.
func byPool(total cluster.GPUTime, held []cluster.ModelSize, add func(pool string, t cluster.GPUTime)) {
	n := gpus(held)
	if n == 0 {
		return
	}
	whole := stretch{to: cluster.Instant(n)}
	sum, done := cluster.MicroGPU(0), cluster.GPUTime(0)
	for _, g := range held {
		sum += g.Size.Amount()
		upTo := whole.until(total, cluster.Instant(sum))
		add(g.Model, upTo-done)
		done = upTo
	}
}

// heldBy gives a job's latest allocation; c is its case, or nil.
func heldBy(r cluster.Record, was holder, c *cluster.Case) []cluster.ModelSize {
	switch {
	case len(r.Held) > 0:
		return r.Held
	case len(was.held) > 0 || c == nil && len(was.stopped) == 0:
		return was.held
	case len(was.stopped) > 0:
		return was.stopped
	}
	var held []cluster.ModelSize // it came and went between two looks
	for _, h := range c.Job.Holds {
		i := slices.IndexFunc(held, func(g cluster.ModelSize) bool { return g.Model == h.Model })
		if i < 0 {
			i, held = len(held), append(held, cluster.ModelSize{Model: h.Model})
		}
		held[i].Size = held[i].Size.And(h.Size)
	}
	return held
}

// charges gives the GPU time charged since w was written, by day, tenant, user and pool. The ledger's
// charges to a tenant beyond those of its jobs go to no user, so that the rows always sum to the
// ledger.
func (w *written) charges(snap cluster.Snapshot, m cluster.State) []chargeRow {
	sums := map[chargeKey]cluster.GPUTime{}
	open := map[accountKey]cluster.GPUTime{}
	for _, t := range m.Ledger.Tenants {
		key := accountKey{t.Tenant, t.Pool}
		open[key] = t.Alloc - w.accounts[key]
	}
	for r := range m.All() {
		was := w.holders[r.Key]
		if r.Alloc == was.alloc || r.Payer() == "" {
			continue
		}
		time := received(was, *r, r.Key < w.nextKey, w.charged, m.Ledger.At)
		byPool(r.Alloc-was.alloc, heldBy(*r, was, caseOf(snap, r.Key)), func(pool string, part cluster.GPUTime) {
			open[accountKey{r.Tenant, pool}] -= part
			time.days(part, func(day date, t cluster.GPUTime) {
				sums[chargeKey{day, r.Tenant, r.User, pool}] += t
			})
		})
	}
	since := received(holder{}, cluster.Record{}, false, w.charged, m.Ledger.At)
	for key, rest := range open {
		since.days(rest, func(day date, t cluster.GPUTime) {
			sums[chargeKey{day, key.Tenant, "", key.Pool}] += t
		})
	}
	var rows []chargeRow
	for key, sum := range sums {
		if sum != 0 {
			rows = append(rows, chargeRow{key, sum})
		}
	}
	return rows
}

// lendings gives lenders and borrowers: what the borrowers of a pool hold above their entitlement
// is spread over its lenders in proportion to what they lend. If the totals differ, the smaller
// counts.
func lendings(standings []cluster.TenantStatus, at cluster.Instant) []lendingRow {
	var pools []string
	for _, s := range standings {
		pools = append(pools, s.Pool)
	}
	slices.Sort(pools)
	var rows []lendingRow
	for _, pool := range slices.Compact(pools) {
		var lent, borrowed []side
		for _, s := range standings {
			if s.Pool == pool && s.Lent > 0 {
				lent = append(lent, side{s.Tenant, int64(s.Lent)})
			}
			if s.Pool == pool && s.Borrowed > 0 {
				borrowed = append(borrowed, side{s.Tenant, int64(s.Borrowed)})
			}
		}
		total := min(sum(lent), sum(borrowed))
		left := spread(total, borrowed)
		for i, share := range spread(total, lent) {
			for j, part := range spread(share.amount, left) {
				left[j].amount -= part.amount
				if part.amount > 0 {
					key := lendingKey{pool, lent[i].tenant, borrowed[j].tenant}
					rows = append(rows, lendingRow{key, millionths(part.amount), stamp(at)})
				}
			}
		}
	}
	return rows
}

// side is one lender's or one borrower's part.
type side struct {
	tenant string
	amount int64
}

func sum(sides []side) int64 {
	var total int64
	for _, s := range sides {
		total += s.amount
	}
	return total
}

// spread divides amount over the sides in proportion, in whole units that sum to amount; without
// sides it divides nothing.
func spread(amount int64, sides []side) []side {
	parts := slices.Clone(sides)
	whole := sum(sides)
	var sofar, done int64
	for i, s := range sides {
		parts[i].amount = 0
		if whole > 0 {
			sofar += s.amount
			upTo := cluster.MulDiv(amount, sofar, whole)
			parts[i].amount = upTo - done
			done = upTo
		}
	}
	return parts
}
