package market

import (
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// settling is how long a job stays after a move, in multiples of the cost of a move. Moves thus take at most
// a tenth of its time, even if entitlements swing.
const settling = 10

// moveCost returns the cost of a job's move to another model: the notice, in which it saves, and a minute to
// be requeued and start again.
func (m *Market) moveCost() cluster.Span { return m.in.Settings.Notice + cluster.Minute }

// MayMove returns the pool of a lease, followed by the pools to which its job may move when the lease ends.
// The party must be entitled to GPUs there, and the move must pay, or repay the party's deficit. better lists
// the pools in which it pays.
func (m *Market) MayMove(i int, l *cluster.Lease) (pools []int, better []lease.Better) {
	pools, st, can, who := m.in.PoolOf(l), &m.in.Cases[i], &m.found.Can[i], &m.due.Queued[i]
	if !m.in.Settings.Divides() || len(pools) == 0 || st.Control != cluster.FullControl {
		return pools, nil
	}
	if m.settling(i) {
		return pools, nil
	}
	from := pools[0]
	for _, p := range can.May {
		if p == from || m.due.PartyRows.At(who.Party, p).Entitlement == 0 {
			continue
		}
		gain := m.gain(i, from, p)
		if gain > 0 {
			better = append(better, lease.Better{Pool: p, Gain: gain})
		}
		if gain > 0 || m.settles(i, from, p) {
			pools = with(m.in, pools, p)
		}
	}
	return pools, better
}

// settling reports whether a job moved a short time ago and must stay.
func (m *Market) settling(i int) bool {
	moved := m.in.Records[i].Moved
	return moved > 0 && m.in.Now.Sub(moved) < settling*m.moveCost()
}

// gain returns a job's gain from a move in the coming term, as time at its present speed. If less than a term
// of work remains, that counts instead. It goes by the lowest sure speed there and the highest sure speed here.
func (m *Market) gain(i, from, to int) cluster.Span {
	speeds := m.speeds.Speedups(i)
	here, there := speeds[from].High, speeds[to].Low
	if here <= 0 || there <= here {
		return 0
	}
	left := float64(m.in.Settings.Term)
	if m.in.Limit(i) > 0 || m.speeds.Total[i] > 0 {
		left = min(left, m.speeds.Steps(i)/(speeds[from].Value*float64(max(m.found.Wants(i).Devices(), 1)))*float64(cluster.Second))
	}
	return lease.Gain(there/here, left, m.moveCost())
}

// settles reports whether a job should leave a pool in which its party is due nothing, for one in which it has not received too much. (A
// deficit there is not required, because deficits that all parties share in a pool are written off.)
func (m *Market) settles(i, from, to int) bool {
	party := m.due.Queued[i].Party
	return m.due.PartyRows.At(party, from).Entitlement == 0 && m.due.PartyRows.At(party, to).Deficit >= 0
}

// NoteMoves records the time of a move for jobs whose leases are over and for which GPUs of another model are claimed. over lists the cases of such
// leases in order; leases are by case.
func (m *Market) NoteMoves(over []int, leases []*cluster.Lease, claims []cluster.Claim) {
	if !m.in.Settings.Divides() || len(over) == 0 {
		return
	}
	for k := range claims {
		i := m.in.Find(claims[k].Job)
		if _, ends := slices.BinarySearch(over, i); ends && claims[k].Pool != leases[i].Pool {
			if m.moved == nil {
				m.moved = map[int]cluster.Instant{}
			}
			m.moved[i] = m.in.Now
		}
	}
}

// Moves returns the moves of jobs whose leases are not renewed, by case: to another model, or from a GPU that a job shares.
func (m *Market) Moves(leases []*cluster.Lease, claims []cluster.Claim) map[int]round.Move {
	if !m.in.Settings.Divides() && m.in.Settings.Slices == nil {
		return nil
	}
	out := map[int]round.Move{}
	for k := range claims {
		cl := &claims[k]
		i := m.in.Find(cl.Job)
		if i < 0 || leases[i] == nil {
			continue
		}
		if !m.in.Settings.Divides() {
			if m.in.Records[i].Slice != nil {
				out[i] = round.Move{To: cl.Pool}
			}
			continue
		}
		from, to := m.in.Pool(leases[i].Pool), m.in.Pool(cl.Pool)
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
