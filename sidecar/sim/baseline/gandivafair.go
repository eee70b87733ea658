package baseline

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// newGandivaFair makes Gandiva_fair's gang-aware stride (Chaudhary et al., EuroSys'20, §3.1,
// Algorithm 1), without its trading, as in ASTRAEA's evaluation (§6.1.5, footnote 2).
// Users are tenants, with their weights as tickets:
//
//	tickets per GPU = tickets of the user / GPUs that the user's jobs want        (eq. 1)
//	tickets of a job = tickets per GPU * its GPUs                                  (eq. 3)
//
// A job has a pass. When the GPUs are given out for the next quantum, here a term, those
// with the smallest pass go first; one that does not fit keeps its pass, which is how
// it comes to be first. A job that runs for a quantum passes on by its stride, the
// inverse of its tickets by GPU; a new job begins at the smallest pass of all. Tickets are
// effective ones (§3.2, "weight readjustment"): what users with few jobs cannot use is
// the others', so that a GPU's tickets count 1 where all jobs of a user can run all the
// time, and never more.
//
// The paper splits the stride among servers because its jobs live there, and balances their
// tickets by migrating; it is then identical to one stride for the whole cluster ("but without
// the inefficiency of constant migrations"). Here a job that pauses leaves its node anyway
// and comes back wherever there is room, so there is one stride, in perfect balance. A
// job that goes on stays where it is. All leases end together, as quanta do.
func newGandivaFair(Options) chooser {
	g := &stride{by: map[cluster.JobKey]passing{}}
	return func(r *round) {
		r.grid = true
		g.advance(r)
		r.upForRenewal()
		line := r.contenders()
		slices.SortStableFunc(line, func(a, b int) int {
			return cmp.Compare(g.pass(r, a), g.pass(r, b))
		})
		r.contest(line)
	}
}

// stride keeps the pass of every job, in terms: what a job with all its tickets passes
// on by when it runs for one.
type stride struct{ by map[cluster.JobKey]passing }

// passing is a job's pass, up to which GPU time that is, and its stride since.
type passing struct {
	pass   float64
	alloc  cluster.GPUTime
	stride float64
}

func (g *stride) pass(r *round, k int) float64 { return g.by[r.Records[r.jobs[k].at].Key].pass }

// advance brings every job's pass up to now: it goes by what a job has received, so
// that a round that is only looked at leaves no trace.
func (g *stride) advance(r *round) {
	least := math.Inf(1)
	now := make(map[cluster.JobKey]passing, len(r.jobs))
	for k := range r.jobs {
		j := &r.jobs[k]
		key := r.Records[j.at].Key
		was, ok := g.by[key]
		if !ok {
			continue
		}
		ran := float64(r.alloc(j)-was.alloc) / float64(max(j.GPUs, 1)) / float64(r.set.Term)
		was.pass += ran * was.stride
		was.alloc = r.alloc(j)
		now[key] = was
		least = min(least, was.pass)
	}
	if len(now) == 0 {
		least = 0
	}
	strides := r.strides()
	for k := range r.jobs {
		j := &r.jobs[k]
		key := r.Records[j.at].Key
		p, ok := now[key]
		if !ok {
			p = passing{pass: least, alloc: r.alloc(j)}
		}
		if j.Tenant >= 0 {
			p.stride = strides[j.Tenant]
		}
		now[key] = p
	}
	g.by = now
}

// strides gives the stride of every tenant's jobs: the inverse of their effective tickets
// by GPU, where 1 is a whole GPU for every GPU wanted.
func (r *round) strides() []float64 {
	wants, tickets := make([]float64, len(r.Tenants)), make([]float64, len(r.Tenants))
	for _, t := range r.s.Tenants {
		if i, ok := slices.BinarySearch(r.Tenants, t.Name); ok {
			tickets[i] = float64(t.Weight)
		}
	}
	for k := range r.jobs {
		if j := &r.jobs[k]; j.Tenant >= 0 {
			wants[j.Tenant] += float64(j.GPUs)
		}
	}
	capacity := 0.0
	for i := range r.Ledger.Pools {
		capacity += float64(r.Ledger.Pools[i].GPUs - r.Ledger.Pools[i].BadGPUs)
	}
	shares := readjust(capacity, wants, tickets)
	for t := range shares {
		shares[t] = min(max(wants[t]/max(shares[t], 1e-9), 1), 1e6)
	}
	return shares
}

// readjust divides GPUs by tickets among users who want no more than so many each: who
// wants less than a share gets that, and the others share the rest.
func readjust(capacity float64, wants, tickets []float64) []float64 {
	share, open := make([]float64, len(wants)), make([]bool, len(wants))
	for t := range wants {
		open[t] = wants[t] > 0 && tickets[t] > 0
	}
	for {
		sum := 0.0
		for t := range wants {
			if open[t] {
				sum += tickets[t]
			}
		}
		left, settled := capacity, false
		for t := range wants {
			if open[t] && wants[t]*sum <= capacity*tickets[t] {
				share[t], open[t], settled = wants[t], false, true
				left -= wants[t]
			}
		}
		if !settled {
			for t := range wants {
				if open[t] {
					share[t] = capacity * tickets[t] / sum
				}
			}
			return share
		}
		capacity = left
	}
}
