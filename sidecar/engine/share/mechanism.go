package share

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/market"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/rounds"
)

// A mechanism turns the entitlements of parties, which are fractions of GPUs, into jobs that run in the coming term. It chooses the
// jobs; their nodes, notices, claims and recalls are fair share's, which also gives the GPUs that the mechanism
// leaves to the tenants furthest behind. All mechanisms read the same accounts, so a change of mechanism
// neither forgives nor doubles a debt.

// mechanism returns the mechanism of the settings; nil = there is none, since no policy divides GPU models, or the order of jobs decides: by
// debt unless a job is overdue, and where users share equally, since parties are not users. alone is the only tenant with candidates; -1 = all have some.
func (x *contest) mechanism(in *lease.Input, alone round.TenantIndex) lease.Mechanism {
	if !x.f.In.Settings.Divides() || haveUsers(x) || x.f.In.Settings.Mechanism == cluster.ByDebt && !anyOverdue(x, in) {
		return nil
	}
	for i := range in.Candidates {
		in.Parties = append(in.Parties, int(x.f.Due.Queued[in.Candidates[i].Case].Party))
	}
	return func(free [][]int, taken []int) []lease.Pick {
		if !anyFree(free) {
			return nil
		}
		term := cluster.Instant(x.f.In.Settings.Term)
		boundary := (x.f.In.Now + term - 1) / term * term
		m := &hand{x: x, in: in, taken: x.f.Taken(), last: round.PartyIndex(len(x.f.Due.Parties))}
		if alone >= 0 && x.f.In.Settings.Mechanism != cluster.ByOEF {
			m.taken.Cases, m.first, m.last = x.f.Market.Of(alone)
		}
		m.debts = x.f.Market.Debts(m.taken, boundary+term, m.first, m.last)
		for p := range free {
			m.pools = append(m.pools, rounds.Pool{Free: free[p], Node: x.f.Site.MostOnANode(p)})
		}
		m.gather(taken)
		limit(m)
		overdue := m.overdue()
		return m.picks(append(overdue, m.choose()...))
	}
}

// Picks chooses jobs of one tenant by the mechanism of the settings, for GPUs of its own; see vc.Picks.
func (c *Chooser) Picks(f *field.Field, in *lease.Input, tenant int, free [][]int, taken []int) []lease.Pick {
	jobs := in.Tenants[tenant].Jobs
	if len(jobs) == 0 {
		return nil
	}
	first := slices.Min(jobs) // a tenant's candidates follow each other
	own := *in
	own.Candidates, own.Parties, own.Tenants = in.Candidates[first:first+len(jobs)], nil, make([]lease.Tenant, len(in.Tenants))
	for t := range own.Tenants {
		own.Tenants[t] = lease.Tenant{Name: in.Tenants[t].Name}
	}
	mine := in.Tenants[tenant]
	mine.Jobs, mine.Turns = less(mine.Jobs, first), make([][]int, len(mine.Turns))
	for p, turns := range in.Tenants[tenant].Turns {
		mine.Turns[p] = less(turns, first)
	}
	own.Tenants[tenant] = mine
	x := &contest{f, c, nil}
	mechanism := x.mechanism(&own, round.TenantIndex(tenant))
	if mechanism == nil {
		return nil
	}
	picks := mechanism(free, taken)
	for i := range picks {
		picks[i].Candidate += first
	}
	return picks
}

// less subtracts a number from all.
func less(list []int, by int) []int {
	out := make([]int, len(list))
	for i, x := range list {
		out[i] = x - by
	}
	return out
}

// choose chooses jobs by the mechanism of the settings.
func (m *hand) choose() []rounds.Grant {
	switch m.x.f.In.Settings.Mechanism {
	case cluster.ByStride:
		return m.stride(nil)
	case cluster.ByGavel:
		return m.gavel()
	case cluster.ByOEF:
		return m.stride(m.oef())
	case cluster.ByDebt:
		return nil
	}
	return m.nearest()
}

// haveUsers reports whether users share equally in a tenant that has several.
func haveUsers(x *contest) bool {
	if x.f.UsersBehind() == nil {
		return false
	}
	one := make([]int32, len(x.f.Due.Queues)) // by queue: 1 + its user
	for i := range x.f.In.Cases {
		st, who := &x.f.In.Cases[i], &x.f.Due.Queued[i]
		if who.Queue < 0 || st.User < 0 || !st.Live {
			continue
		}
		if was := one[who.Queue]; was != 0 && was != st.User+1 {
			return true
		}
		one[who.Queue] = st.User + 1
	}
	return false
}

func anyFree(free [][]int) bool {
	for _, nodes := range free {
		if len(nodes) > 0 {
			return true
		}
	}
	return false
}

// hand is the input of a mechanism in a round.
type hand struct {
	x     *contest
	in    *lease.Input
	taken round.Taken
	first round.PartyIndex // debts are those of this party and the next ones, up to the one before last
	last  round.PartyIndex
	debts market.Debts
	wants []rounds.Want // Party counts from first
	who   []int         // by want: the candidate
	twos  map[int]two   // by candidate
	gang  float64       // the largest
	pools []rounds.Pool // in line: the wants that have a part of their tenant's share there, in their tenant's order
}

// gather lists the candidates without a lease or a claim; those of the others are charged. In each pool, jobs that run in another
// one come last.
func (m *hand) gather(taken []int) {
	cs := m.in.Candidates
	at := make([]int, len(cs)) // 1 + the want
	m.couple(taken)
	for i := range cs {
		k := &cs[i]
		party := m.x.f.Due.Queued[k.Case].Party - m.first
		together, coupled := m.twos[i]
		switch {
		case taken[i] >= 0:
			*m.debts.Next.At(party, taken[i]) -= k.GPUs.Float()
			*m.debts.Tenants.At(m.x.f.Due.Parties[m.first+party].Tenant, taken[i]) -= k.GPUs.Float()
		case coupled && !together.first: // another one stands for it
		case !k.IdleOnly && !k.Priority.Resting:
			w := rounds.Want{Party: int(party), Tenant: int(m.x.f.Due.Parties[m.first+party].Tenant), Gang: k.GPUs.Devices(), On: -1}
			if k.Running {
				w.On = k.Pools[0]
			}
			m.gang = max(m.gang, k.GPUs.Float())
			m.wants, m.who = append(m.wants, w), append(m.who, i)
			at[i] = len(m.wants)
		}
	}
	movers := make([][]int, len(m.pools))
	for t := range m.in.Tenants {
		m.in.Tenants[t].Each(cs, func(i, p, in int) {
			w := at[i] - 1
			x, coupled := m.twos[i]
			switch {
			case w < 0 || coupled && x.pool != p || *m.debts.Due.At(m.x.f.Due.Queued[cs[i].Case].Party-m.first, p) <= 0:
			case cs[i].Running && in > 0:
				movers[p] = append(movers[p], w)
			default:
				m.pools[p].Line = append(m.pools[p].Line, w)
			}
		})
	}
	for p := range m.pools {
		m.pools[p].Line = append(m.pools[p].Line, movers[p]...)
	}
}

// limit keeps debts within burst.max and one gang, so that larger ones are repaid in several terms. Then it puts first what administrators
// put first: boosted tenants before all, and urgent jobs before others of their tenant, whose debts in the pool they use.
func limit(m *hand) {
	free := m.gpus()
	for p := range m.x.f.In.Pools {
		for k := range m.debts.Next.Rows() {
			next := m.debts.Next.At(k, p)
			m.burst(next, m.x.f.Due.PartyRows.At(m.first+k, p))
			if m.in.Tenants[m.queue(m.first+k)].Boost {
				*next += float64(8 * free[p])
			}
		}
		for t := range m.debts.Tenants.Rows() {
			m.burst(m.debts.Tenants.At(t, p), m.x.f.Due.TenantRows.At(t, p))
		}
	}
	for p := range m.pools {
		line := m.pools[p].Line
		for _, w := range line {
			if k := &m.in.Candidates[m.who[w]]; k.Priority.Urgent {
				m.urge(line, w, p)
			}
		}
	}
}

// burst keeps a debt within burst.max and one gang.
func (m *hand) burst(debt *float64, of *cluster.TenantPool) {
	if m.x.f.In.Settings.BurstMaxMilli > 0 {
		*debt = min(*debt, m.gang+float64(of.Entitlement)/float64(cluster.WholeGPU)*float64(m.x.f.In.Settings.BurstMaxMilli)/1000)
	}
}

// queue returns the queue of a party.
func (m *hand) queue(k round.PartyIndex) int {
	if m.x.f.Due.JobsQueue {
		return int(k)
	}
	return int(m.x.f.Due.Parties[k].Tenant)
}

// urge moves what an urgent job lacks from the debts of its tenant's other parties, the last in line first.
func (m *hand) urge(line []int, urgent, p int) {
	k := &m.in.Candidates[m.who[urgent]]
	own := m.debts.Next.At(round.PartyIndex(m.wants[urgent].Party), p)
	for _, w := range slices.Backward(line) {
		other := &m.in.Candidates[m.who[w]]
		if party := m.wants[w].Party; other.Tenant == k.Tenant && !other.Priority.Urgent && party != m.wants[urgent].Party {
			from := m.debts.Next.At(round.PartyIndex(party), p)
			part := max(min(k.GPUs.Float()-*own, *from), 0)
			*own, *from = *own+part, *from-part
		}
	}
}

// nearest chooses by rounds.Nearest. Of equal choices in a virtual cluster it takes that of the faster model: the pools are ordered so. Between
// tenants that would give one of them the faster model again and again.
func (m *hand) nearest() []rounds.Grant {
	order := m.x.f.Market.FastestFirst()
	if m.x.f.In.Snapshot.Cells == nil {
		slices.Sort(order)
	}
	pools, place := make([]rounds.Pool, len(order)), make([]int, len(order))
	for at, p := range order {
		pools[at], place[p] = m.pools[p], at
	}
	wants := slices.Clone(m.wants)
	for w := range wants {
		if on := wants[w].On; on >= 0 {
			wants[w].On = place[on]
		}
	}
	debts := rounds.Debts{Parties: inOrder(m.debts.Next, order), Tenants: inOrder(m.debts.Tenants, order)}
	out := rounds.Nearest(pools, debts, wants, float64(m.x.f.In.Settings.Threshold)/float64(m.x.f.In.Settings.Term))
	for i := range out {
		out[i].Model = order[out[i].Model]
	}
	return out
}

// inOrder gives the columns of a table in another order.
func inOrder[Row ~int](table round.Table[Row, float64], order []int) [][]float64 {
	n, out := len(order), make([][]float64, table.Rows())
	cells := make([]float64, 0, len(table.Cells))
	for i := range out {
		for _, p := range order {
			cells = append(cells, *table.At(Row(i), p))
		}
		out[i] = cells[i*n : i*n+n : i*n+n]
	}
	return out
}

// gavel chooses by Gavel's Algorithm 1 with moves. A row's target is its job's part of what the party is due. The time that it
// ran is read from the party's debt: the first jobs in line are owed it.
func (m *hand) gavel() []rounds.Grant {
	n, term := len(m.x.f.In.Pools), float64(m.x.f.In.Settings.Term)
	rows := make([]rounds.Row, len(m.wants))
	for w := range rows {
		k := &m.in.Candidates[m.who[w]]
		rows[w] = rounds.Row{Job: k.Key, Gang: k.GPUs.Devices(), Share: make([]float64, n), Due: make([]cluster.Span, n), Time: make([]cluster.Span, n)}
	}
	for p := range m.pools {
		before := make([]int, m.last-m.first) // GPUs of the party's jobs that come first in line
		for at, w := range m.pools[p].Line {
			row, k := &rows[w], &m.in.Candidates[m.who[w]]
			party := round.PartyIndex(m.wants[w].Party)
			gang, age := float64(row.Gang), max(m.x.f.In.Now.Sub(k.Priority.First), m.x.f.In.Settings.Term)
			row.Share[p] = *m.debts.Due.At(party, p) / (float64(m.x.f.Due.PartyRows.At(m.first+party, p).Demand) / float64(cluster.WholeGPU))
			owed := (*m.debts.Next.At(party, p)-float64(before[party]))/gang - row.Share[p]
			row.Due[p] = cluster.Span(row.Share[p] * float64(age))
			row.Time[p] = max(row.Due[p]-cluster.Span(owed*term), 0)
			row.First = cluster.Instant(at)
			before[party] += row.Gang
		}
	}
	return rounds.Gavel(m.gpus(), rows, m.x.f.In.Settings.Term)
}

// oef chooses by OEF's rounding. Deviations are the parties' debts; the first jobs in line count as starved longest.
// GPUs that the rounding gives to nobody, or that its tenant's gangs cannot fill, go by stride: the order of tenants would give them to
// whoever is below its burst limit, however far ahead.
func (m *hand) oef() []rounds.Grant {
	order := m.x.f.Market.BySpeed()
	gpus := make([]int, len(order))
	for n, p := range order {
		gpus[n] = m.gpus()[p]
	}
	tenants, wants := make([]rounds.Tenant, len(m.x.f.Due.Parties)), make([][]int, len(m.x.f.Due.Parties)) // by party: the want of each job
	for k := range tenants {
		k, due := round.PartyIndex(k), 0.0
		for _, p := range order {
			x := *m.debts.Due.At(k, p)
			tenants[k].Ideal, tenants[k].Dev = append(tenants[k].Ideal, x), append(tenants[k].Dev, *m.debts.Next.At(k, p)-x)
			due += x
		}
		for n := range order {
			if due > 0 {
				tenants[k].Starved = max(tenants[k].Starved, int(tenants[k].Dev[n]/due))
			}
		}
	}
	at := make([]int, len(m.wants)) // by want: 1 + its place among its party's jobs
	for n, p := range order {
		for rank, w := range m.pools[p].Line {
			k := m.wants[w].Party
			t := &tenants[k]
			if at[w] == 0 {
				t.Jobs = append(t.Jobs, rounds.Job{Key: m.in.Candidates[m.who[w]].Key, Gang: m.wants[w].Gang, Starved: len(m.pools[p].Line) - rank, Can: make([]bool, len(order))})
				wants[k] = append(wants[k], w)
				at[w] = len(t.Jobs)
			}
			t.Jobs[at[w]-1].Can[n] = true
		}
	}
	_, _, runs := rounds.OEF(gpus, tenants)
	out := make([]rounds.Grant, len(runs))
	for i, r := range runs {
		out[i] = rounds.Grant{Row: wants[r.Tenant][r.Job], Model: order[r.Model]}
	}
	return out
}

// gpus returns the free GPUs by pool.
func (m *hand) gpus() []int {
	out := make([]int, len(m.pools))
	for p := range m.pools {
		for _, n := range m.pools[p].Free {
			out[p] += n
		}
	}
	return out
}

// picks returns the chosen candidates.
func (m *hand) picks(grants []rounds.Grant) []lease.Pick {
	out := make([]lease.Pick, 0, len(grants))
	for _, g := range grants {
		out = append(out, lease.Pick{Candidate: m.who[g.Row], Pool: g.Model})
		if x := m.twos[m.who[g.Row]]; x.holds {
			out = append(out, lease.Pick{Candidate: x.other, Pool: g.Model})
		}
	}
	return out
}
