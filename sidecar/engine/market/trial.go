package market

import (
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// explore chooses a trial job for each pool. Its job type has not been measured on the model and reports
// progress, and its lease costs least up to the measurement. A party that owes time in the pool gets no
// trial, unless it has sold its share there. So types that never get measured pay for it themselves, and others run their trials meanwhile.
func (m *Market) explore() []int {
	tried := slices.Repeat([]int{-1}, len(m.in.Pools))
	for p, trials := range m.trials() {
		costs := m.speeds.Book.Explore(trials)
		for _, may := range []func(i, p int) bool{m.evenIn, m.soldOut} {
			for _, cost := range costs {
				i := m.in.Find(trials[cost.Trial].Key)
				if tried[p] < 0 && may(i, p) && !m.settling(i) && !m.found.IdleOnly(i) {
					tried[p] = i
				}
			}
		}
	}
	return tried
}

// evenIn reports whether a job's party owes no time in a pool.
func (m *Market) evenIn(i, p int) bool {
	return m.due.PartyRows.At(m.due.Queued[i].Party, p).Deficit >= 0
}

// soldOut reports whether a job's party has sold its share of a pool. It cannot repay there what it owes, so it gets trials up to
// several terms of the job, after those who owe nothing.
func (m *Market) soldOut(i, p int) bool {
	const terms = 8
	row := m.due.PartyRows.At(m.due.Queued[i].Party, p)
	return row.Entitlement < round.Negligible && row.Deficit >= -terms*m.found.Can[i].GPUs.Over(m.in.Settings.Term)
}

// Tried returns the case that runs a trial in a pool; -1 = none.
func (m *Market) Tried(p int) int { return m.tried[p] }

// tries reports whether a job runs the trial in a pool.
func (m *Market) tries(i, p int) bool { return m.tried[p] == i }

// Trials returns the trials among candidates. Their tenants pay for the leases as for any other. A running
// job that is only observed stays where it is.
func (m *Market) Trials(taken round.Taken, cs []lease.Candidate) (out []lease.Trial) {
	if !m.in.Settings.Divides() {
		return nil
	}
	debit, _ := round.Committed(m.in, m.due.Queued, taken, len(m.due.Queues), round.QueueOf)
	own, _ := round.Committed(m.in, m.due.Queued, taken, len(m.due.Parties), round.PartyOf)
	left := m.in.Settings.Term - cluster.Span(m.in.Now%cluster.Instant(m.in.Settings.Term)) // of the leases that end now
	for p, i := range m.tried {
		k := slices.IndexFunc(cs, func(k lease.Candidate) bool { return k.Case == i })
		if k < 0 || cs[k].Running && m.in.Cases[i].Control == cluster.ObserveOnly {
			continue
		}
		queue, party := m.due.Queued[i].Queue, m.due.Queued[i].Party
		if row := m.due.PartyRows.At(party, p); m.soldOut(i, p) || row.Deficit+ltgf.Credit(row.Entitlement, left) >= *own.At(party, p) {
			tenant := m.due.Rows.At(queue, p)
			out = append(out, lease.Trial{Candidate: k, Pool: p, Even: tenant.Entitlement < round.Negligible || tenant.Deficit >= *debit.At(queue, p),
				Idle: m.in.Weight(m.in.Cases[i].Tenant) == 0})
		}
	}
	return out
}

// trials returns, by pool, the jobs that could run a trial there: the first of each reporting job type, gang
// size and present pool. Measured models need no trial.
func (m *Market) trials() [][]profile.Trial {
	out := make([][]profile.Trial, len(m.in.Pools))
	idle := make([]cluster.MicroGPU, len(m.in.Pools))
	for p := range idle {
		idle[p] = cluster.MicroGPU(m.due.Ledger.Pools[p].GPUs - m.due.Ledger.Pools[p].BadGPUs)
	}
	for i := range m.in.Cases {
		if st, can := &m.in.Cases[i], &m.found.Can[i]; st.Live && !st.Waits && len(can.Pools) > 0 {
			idle[can.Pools[0]] -= st.Held
		}
	}
	n := len(m.in.Pools)
	least := slices.Repeat([]cluster.GPUTime{math.MaxInt64}, n) // by pool: what the cheapest trial of a waiting job costs
	var tried [][]bool                                          // by type, pool from which a job comes (n = it waits) and pool that it tries
	for i := range m.in.Cases {
		st, can, who := &m.in.Cases[i], &m.found.Can[i], &m.due.Queued[i]
		if who.Party < 0 || len(can.May) == 0 {
			continue
		}
		idler := m.in.Weight(st.Tenant) == 0
		if !m.speeds.Types.Reports(i) {
			continue
		}
		gang, from := m.found.Wants(i).Devices(), n
		if st.Runs && len(can.Pools) > 0 {
			from = can.Pools[0]
		}
		number := m.speeds.Types.At(i, gang)
		for number >= len(tried) {
			tried = append(tried, nil)
		}
		if tried[number] == nil {
			tried[number] = make([]bool, (n+1)*n)
		}
		for _, p := range can.May {
			was := &tried[number][from*n+p]
			if p == from || *was {
				continue // it measures its own pool without a trial
			}
			*was = true
			t := profile.Trial{Key: m.in.Records[i].Key, Kind: m.speeds.Kinds[i], Model: m.in.Pools[p], Gang: gang, Idle: idle[p] >= cluster.Micro(gang), Move: m.moveCost(), Term: m.in.Settings.Term}
			if cost := t.Least(); (t.Idle || !idler) && cost <= least[p] && !m.seen(i, p, gang) {
				if from == n {
					least[p] = cost
				} else {
					t.From = m.in.Pools[from]
				}
				out[p] = append(out[p], t)
			}
		}
	}
	for p := range out { // trials that surely cost more than another are dropped
		out[p] = slices.DeleteFunc(out[p], func(t profile.Trial) bool { return t.Least() > least[p] })
	}
	return out
}

// seen reports whether a job's type needs no trial in a pool.
func (m *Market) seen(i, p, gang int) bool {
	if source := m.speeds.Speedups(i)[p].Source; gang == m.found.Can[i].GPUs.Devices() && source != cluster.Declared { // a declared speed depends on the user
		return source == cluster.Observed
	}
	return m.speeds.Book.Seen(m.speeds.Kinds[i], m.in.Pools[p], gang)
}
