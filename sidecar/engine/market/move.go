package market

import (
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// settling is how many times what a move costs a job stays at least before it moves again: so moves take a
// tenth of its time at most, however what is due swings.
const settling = 10

// moveCost gives what it costs a job to move to another model: the time to save, which is what it has notice
// for, and a minute to be requeued and to start again.
func (m *Market) moveCost() cluster.Span { return m.Settings.Notice + cluster.Minute }

// MayMove gives the pool of a lease, and after it those to which its job may move when it ends, since its party is due
// something there, and the move pays or settles what its party is owed; better are those where it pays.
func (m *Market) MayMove(i int, l *cluster.Lease) (pools []int, better []lease.Better) {
	pools, st := m.PoolOf(l), &m.Jobs[i]
	if m.Settings.Divide == "" || len(pools) == 0 || st.Control != cluster.FullControl {
		return pools, nil
	}
	if m.settling(i) {
		return pools, nil
	}
	from := pools[0]
	for _, p := range st.May {
		if p == from || m.PartyRows.At(st.Party, p).Entitlement == 0 {
			continue
		}
		gain := m.gain(i, from, p)
		if gain > 0 {
			better = append(better, lease.Better{Pool: p, Gain: gain})
		}
		if gain > 0 || m.settles(i, from, p) {
			pools = append(slices.Clip(pools), p)
		}
	}
	return pools, better
}

// settling tells whether a job has moved a short while ago, and stays.
func (m *Market) settling(i int) bool {
	moved := m.Records[i].Moved
	return moved > 0 && m.Now.Sub(moved) < settling*m.moveCost()
}

// gain gives what a job gains by a move in the coming term, or by what it has left to do, as time where it runs: what it gets
// done more, by the least that is sure, less what the move costs it, (s'/s - 1) · time - cost.
func (m *Market) gain(i, from, to int) cluster.Span {
	speeds := m.speeds.Speedups(i)
	here, there := speeds[from].High, speeds[to].Low
	if here <= 0 || there <= here {
		return 0
	}
	left := float64(m.Settings.Term)
	if m.Limit(i) > 0 || m.speeds.Total[i] > 0 {
		left = min(left, m.speeds.Steps(i)/(speeds[from].Value*float64(max(m.Wants(i), 1)))*float64(cluster.Second))
	}
	return max(cluster.Span((there/here-1)*left)-m.moveCost(), 0)
}

// settles tells whether a term of a job's GPUs brings its party nearer to what it is due: it is due nothing where the job
// runs, or has had half of that too much there; and has not had too much in the other pool. (What it is owed there does not
// tell: what all are behind in a pool is written off.)
func (m *Market) settles(i, from, to int) bool {
	party := m.Jobs[i].Party
	had := m.PartyRows.At(party, from)
	much := had.Entitlement == 0 || had.Deficit <= -cluster.Times(m.Wants(i), m.Settings.Term)/2
	return much && m.PartyRows.At(party, to).Deficit >= 0
}

// NoteMove remembers that a job whose lease is over has GPUs of another model kept for it.
func (m *Market) NoteMove(i int, l *cluster.Lease) {
	if m.Settings.Divide == "" {
		return
	}
	key := m.Records[i].Key
	if slices.ContainsFunc(m.Claims, func(c cluster.Claim) bool { return c.Job == key && c.Pool != l.Pool }) {
		m.Records[i].Moved = m.Now
	}
}

// Moves gives to which models jobs go whose leases are not renewed, and what for.
func (m *Market) Moves() map[int]round.Move {
	if m.Settings.Divide == "" {
		return nil
	}
	out := map[int]round.Move{}
	for k := range m.Claims {
		cl := &m.Claims[k]
		i := m.Find(cl.Job)
		if i < 0 || m.Leases[i] == nil {
			continue
		}
		from, to := m.Pool(m.Leases[i].Pool), m.Pool(cl.Pool)
		if from < 0 || from == to {
			continue
		}
		move := round.Move{To: cl.Pool, Trial: m.tries(i, to)}
		speeds := m.speeds.Speedups(i)
		if here, there := &speeds[from], &speeds[to]; here.Source != "" && there.Source != "" && here.Value > 0 {
			move.Speed = int64(math.Round(1000 * there.Value / here.Value))
		}
		out[i] = move
	}
	return out
}
