package market

import (
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// explore chooses a trial job for each pool. Its job type has not been measured on the model and reports
// progress, and its lease costs least up to the measurement. A party that owes time in the pool gets no
// trial, unless it has sold its share there. So types that never get measured pay for it themselves, and others run their trials meanwhile.
func (m *Market) explore() []int {
	tried := slices.Repeat([]int{-1}, len(m.b.In.Pools))
	for p, trials := range m.trials() {
		costs := m.speeds.Book.Explore(trials)
		for _, may := range []func(i, p int) bool{m.evenIn, m.soldOut} {
			for _, cost := range costs {
				i := m.b.In.Find(trials[cost.Trial].Key)
				if tried[p] < 0 && may(i, p) && !m.settling(i) && !eligible.IdleOnly(m.b, i) {
					tried[p] = i
				}
			}
		}
	}
	return tried
}

// evenIn reports whether a job's party owes no time in a pool.
func (m *Market) evenIn(i, p int) bool {
	return m.b.Divided.PartyRows.At(m.b.Jobs[i].Party, p).Deficit >= 0
}

// soldOut reports whether a job's party has sold its share of a pool. It cannot repay there what it owes, so it gets trials up to
// several terms of the job, after those who owe nothing.
func (m *Market) soldOut(i, p int) bool {
	const terms = 8
	row := m.b.Divided.PartyRows.At(m.b.Jobs[i].Party, p)
	return row.Entitlement < round.Crumb && row.Deficit >= -terms*cluster.Times(m.b.Jobs[i].Is.GPUs, m.b.In.Settings.Term)
}

// Tried returns the case that runs a trial in a pool; -1 = none.
func (m *Market) Tried(p int) int { return m.tried[p] }

// tries reports whether a job runs the trial in a pool.
func (m *Market) tries(i, p int) bool { return m.tried[p] == i }

// Trials returns the trials among candidates. Their tenants pay for the leases as for any other. A running
// job that is only observed stays where it is.
func (m *Market) Trials(cs []lease.Candidate) (out []lease.Trial) {
	if m.b.In.Settings.Divide == "" {
		return nil
	}
	debit, _ := round.Committed(m.b, len(m.b.Queues), round.QueueOf)
	own, _ := round.Committed(m.b, len(m.b.Divided.Parties), round.PartyOf)
	left := m.b.In.Settings.Term - cluster.Span(m.b.In.Now%cluster.Instant(m.b.In.Settings.Term)) // of the leases that end now
	for p, i := range m.tried {
		k := slices.IndexFunc(cs, func(k lease.Candidate) bool { return k.Case == i })
		if k < 0 || cs[k].Running && m.b.Jobs[i].Is.Control == cluster.ObserveOnly {
			continue
		}
		queue, party := m.b.Jobs[i].Queue, m.b.Jobs[i].Party
		if row := m.b.Divided.PartyRows.At(party, p); m.soldOut(i, p) || row.Deficit+ltgf.Credit(row.Entitlement, left) >= *own.At(party, p) {
			tenant := m.b.Rows.At(queue, p)
			out = append(out, lease.Trial{Candidate: k, Pool: p, Even: tenant.Entitlement < round.Crumb || tenant.Deficit >= *debit.At(queue, p),
				Idle: m.b.In.Weight(m.b.Jobs[i].Is.Tenant) == 0})
		}
	}
	return out
}

// trials returns, by pool, the jobs that could run a trial there: the first of each reporting job type, gang
// size and present pool. Measured models need no trial.
func (m *Market) trials() [][]profile.Trial {
	out := make([][]profile.Trial, len(m.b.In.Pools))
	idle := make([]int, len(m.b.In.Pools))
	for p := range idle {
		idle[p] = m.b.Ledger.Pools[p].GPUs - m.b.Ledger.Pools[p].BadGPUs
	}
	for i := range m.b.Jobs {
		if st := &m.b.Jobs[i]; st.Is.Live && !st.Is.Waits && len(st.Can.Pools) > 0 {
			idle[st.Can.Pools[0]] -= st.Is.Held
		}
	}
	type like struct {
		kind       cluster.Kind
		gang, from int
		to         int
	}
	reports, tried := map[cluster.Kind]bool{}, map[like]bool{}
	for i := range m.b.Jobs {
		st := &m.b.Jobs[i]
		if st.Party < 0 || len(st.Can.May) == 0 {
			continue
		}
		idler := m.b.In.Weight(st.Is.Tenant) == 0
		kind := m.speeds.Kinds[i]
		says, known := reports[kind]
		if !known {
			says = m.speeds.Book.Reports(kind)
			reports[kind] = says
		}
		if !says {
			continue
		}
		t := profile.Trial{Key: m.b.Records[i].Key, Kind: kind, Gang: m.b.Wants(i), Move: m.moveCost(), Term: m.b.In.Settings.Term}
		from := -1
		if st.Is.Runs && len(st.Can.Pools) > 0 {
			from = st.Can.Pools[0]
			t.From = m.b.In.Pools[from]
		}
		for _, p := range st.Can.May {
			if p == from {
				continue // it measures this pool without a trial
			}
			if key := (like{kind, t.Gang, from, p}); !tried[key] {
				tried[key] = true
				t.Model, t.Idle = m.b.In.Pools[p], idle[p] >= t.Gang
				if (t.Idle || !idler) && !m.seen(i, p, t.Gang) {
					out[p] = append(out[p], t)
				}
			}
		}
	}
	for p := range out { // trials that surely cost more than another are dropped
		least := cluster.GPUTime(math.MaxInt64)
		for i := range out[p] {
			if t := &out[p][i]; t.From == "" {
				least = min(least, t.Least())
			}
		}
		out[p] = slices.DeleteFunc(out[p], func(t profile.Trial) bool { return t.Least() > least })
	}
	return out
}

// seen reports whether a job's type needs no trial in a pool.
func (m *Market) seen(i, p, gang int) bool {
	if source := m.speeds.Speedups(i)[p].Source; gang == m.b.Jobs[i].Is.GPUs && source != cluster.Declared { // a declared speed depends on the user
		return source == cluster.Observed
	}
	return m.speeds.Book.Seen(m.speeds.Kinds[i], m.b.In.Pools[p], gang)
}
