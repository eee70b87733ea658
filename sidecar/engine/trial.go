package engine

import (
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
)

// explore chooses, for each pool, a job to be tried there: nobody has seen its kind run on the model, though its kind
// reports what it does, and it costs least (a lease at the end of which it is known). Who owes time in the pool has none,
// so that kinds that are never seen pay for it themselves, and others have their trials meanwhile.
func (h *hall) explore() {
	h.tried = slices.Repeat([]int{-1}, len(h.Pools))
	for p, trials := range h.trials() {
		for _, cost := range h.speeds.Book.Explore(trials) {
			i := h.Find(trials[cost.Trial].Key)
			if h.PartyRows[h.Jobs[i].Party*len(h.Pools)+p].Deficit >= 0 && !h.settling(i) && !h.humble(i) {
				h.tried[p] = i
				break
			}
		}
	}
}

// tries tells whether a job is the one that is to show how fast its kind is in a pool.
func (h *hall) tries(i, p int) bool { return h.tried[p] == i }

// toTry gives the trials of candidates. Their tenants pay for the leases as for any other. A job that is only watched and runs
// stays where it is.
func (h *hall) toTry(cs []lease.Candidate) (out []lease.Trial) {
	if h.Settings.Divide == "" {
		return nil
	}
	n := len(h.Pools)
	debit, own := make([]cluster.GPUTime, len(h.Rows)), make([]cluster.GPUTime, len(h.PartyRows))
	h.charged(debit, make([]int, len(debit)), queueOf)
	h.charged(own, make([]int, len(own)), partyOf)
	for p, i := range h.tried {
		k := slices.IndexFunc(cs, func(k lease.Candidate) bool { return k.Case == i })
		if k < 0 || cs[k].Running && h.Jobs[i].Touch == cluster.Watch {
			continue
		}
		queue, party := h.Jobs[i].Queue*n+p, h.Jobs[i].Party*n+p
		if h.PartyRows[party].Deficit >= own[party] {
			out = append(out, lease.Trial{Candidate: k, Pool: p, Even: h.Rows[queue].Deficit >= debit[queue],
				Idle: h.Weight(h.Tenants[h.Jobs[i].Tenant]) == 0})
		}
	}
	return out
}

// trials gives, by pool, the jobs that could be tried there: of each kind that reports, with its gang and
// from the pool on which it runs, the first. What has been seen already needs none.
func (h *hall) trials() [][]profile.Trial {
	out := make([][]profile.Trial, len(h.Pools))
	idle := make([]int, len(h.Pools))
	for p := range idle {
		idle[p] = h.Ledger.Pools[p].GPUs - h.Ledger.Pools[p].BadGPUs
	}
	for i := range h.Jobs {
		if st := &h.Jobs[i]; st.Live && !st.Waits && len(st.Pools) > 0 {
			idle[st.Pools[0]] -= st.Held
		}
	}
	type like struct {
		kind       cluster.Kind
		gang, from int
		to         int
	}
	reports, tried := map[cluster.Kind]bool{}, map[like]bool{}
	for i := range h.Jobs {
		st := &h.Jobs[i]
		if st.Party < 0 || len(st.May) == 0 {
			continue
		}
		idler := h.Weight(h.Tenants[st.Tenant]) == 0
		kind := h.speeds.Kinds[i]
		says, known := reports[kind]
		if !known {
			says = h.speeds.Book.Reports(kind)
			reports[kind] = says
		}
		if !says {
			continue
		}
		t := profile.Trial{Key: h.Records[i].Key, Kind: kind, Gang: h.wants(i), Move: h.moveCost(), Term: h.Settings.Term}
		from := -1
		if st.Runs && len(st.Pools) > 0 {
			from = st.Pools[0]
			t.From = h.Pools[from]
		}
		for _, p := range st.May {
			if p == from {
				continue // it shows that without a trial
			}
			if key := (like{kind, t.Gang, from, p}); !tried[key] {
				tried[key] = true
				t.Model, t.Idle = h.Pools[p], idle[p] >= t.Gang
				if (t.Idle || !idler) && !h.seen(i, p, t.Gang) {
					out[p] = append(out[p], t)
				}
			}
		}
	}
	for p := range out { // what surely costs more than another is none
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

// seen tells whether a job's kind needs no trial in a pool.
func (h *hall) seen(i, p, gang int) bool {
	if source := h.speeds.Speedups(i)[p].Source; gang == h.Jobs[i].GPUs && source != cluster.Declared { // else it depends on who declared it
		return source == cluster.Observed
	}
	return h.speeds.Book.Seen(h.speeds.Kinds[i], h.Pools[p], gang)
}
