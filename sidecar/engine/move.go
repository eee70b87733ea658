package engine

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
func (h *hall) moveCost() cluster.Span { return h.Settings.Notice + cluster.Minute }

// mayMove gives the pool of a lease, and after it those to which its job may move when it ends, since its party is due
// something there, and the move pays or settles what its party is owed; better are those where it pays.
func (h *hall) mayMove(i int, l *cluster.Lease) (pools []int, better []lease.Better) {
	pools, st := h.PoolOf(l), &h.Jobs[i]
	if h.Settings.Divide == "" || len(pools) == 0 || st.Touch != cluster.Act {
		return pools, nil
	}
	if h.settling(i) {
		return pools, nil
	}
	from := pools[0]
	for _, p := range st.May {
		if p == from || h.PartyRows[st.Party*len(h.Pools)+p].Entitlement == 0 {
			continue
		}
		gain := h.gain(i, from, p)
		if gain > 0 {
			better = append(better, lease.Better{Pool: p, Gain: gain})
		}
		if gain > 0 || h.settles(i, from, p) {
			pools = append(slices.Clip(pools), p)
		}
	}
	return pools, better
}

// settling tells whether a job has moved a short while ago, and stays.
func (h *hall) settling(i int) bool {
	moved := h.Records[i].Moved
	return moved > 0 && h.Now.Sub(moved) < settling*h.moveCost()
}

// gain gives what a job gains by a move in the coming term, or by what it has left to do, as time where it runs: what it gets
// done more, by the least that is sure, less what the move costs it, (s'/s - 1) · time - cost.
func (h *hall) gain(i, from, to int) cluster.Span {
	speeds := h.speeds.Speedups(i)
	here, there := speeds[from].High, speeds[to].Low
	if here <= 0 || there <= here {
		return 0
	}
	left := float64(h.Settings.Term)
	if h.Limit(i) > 0 || h.speeds.Total[i] > 0 {
		left = min(left, h.steps(i)/(speeds[from].Value*float64(max(h.wants(i), 1)))*float64(cluster.Second))
	}
	return max(cluster.Span((there/here-1)*left)-h.moveCost(), 0)
}

// settles tells whether a term of a job's GPUs brings its party nearer to what it is due: it is due nothing where the job
// runs, or has had half of that too much there; and has not had too much in the other pool. (What it is owed there does not
// tell: what all are behind in a pool is written off.)
func (h *hall) settles(i, from, to int) bool {
	at := h.Jobs[i].Party * len(h.Pools)
	had := &h.PartyRows[at+from]
	much := had.Entitlement == 0 || had.Deficit <= -cluster.Times(h.wants(i), h.Settings.Term)/2
	return much && h.PartyRows[at+to].Deficit >= 0
}

// noteMove remembers that a job whose lease is over has GPUs of another model kept for it.
func (h *hall) noteMove(i int, l *cluster.Lease) {
	if h.Settings.Divide == "" {
		return
	}
	key := h.Records[i].Key
	if slices.ContainsFunc(h.Claims, func(c cluster.Claim) bool { return c.Job == key && c.Pool != l.Pool }) {
		h.Records[i].Moved = h.Now
	}
}

// moves gives to which models jobs go whose leases are not renewed, and what for.
func (h *hall) moves() map[int]round.Move {
	if h.Settings.Divide == "" {
		return nil
	}
	out := map[int]round.Move{}
	for k := range h.Claims {
		cl := &h.Claims[k]
		i := h.Find(cl.Job)
		if i < 0 || h.Leases[i] == nil {
			continue
		}
		from, to := h.Pool(h.Leases[i].Pool), h.Pool(cl.Pool)
		if from < 0 || from == to {
			continue
		}
		m := round.Move{To: cl.Pool, Trial: h.tries(i, to)}
		speeds := h.speeds.Speedups(i)
		if here, there := &speeds[from], &speeds[to]; here.Source != "" && there.Source != "" && here.Value > 0 {
			m.Speed = int64(math.Round(1000 * there.Value / here.Value))
		}
		out[i] = m
	}
	return out
}
