package papers

import "github.com/fairlease/fairlease/sidecar/sim/baseline"

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// horizon is the time that Shockwave plans ahead: half an hour to an hour (§6).
const horizon = cluster.Hour

// urgency is the exponent of finish-time fairness in the weights of jobs (§6; lambda in the authors' configurations).
const urgency = 5

// newShockwave makes Shockwave (Zheng et al., NSDI'23). Jobs have equal budgets in a market of GPU time over a window of
// rounds. Its equilibrium maximises the Nash social welfare over time (§4); a job's utility is the part of its work that is
// done at the end of the window. The plan of a window maximises (§6)
//
//	sum over jobs of rho^5 log(utility) - penalty * (longest remaining time after the window)
//
// with the piecewise linear logarithm of the authors' code. The penalty comes first, as with their settings. rho is the
// finish-time fairness that a job is expected to have (§3), where n is the GPUs that all jobs want, per GPU, at least 1:
//
//	rho = (age + n * remaining time) / (mean n since it came * whole run time)
//
// Rounds are terms on a grid. The plan is made anew whenever GPUs are free: at the ends of leases and of jobs, and when jobs
// come. Jobs that need all rounds of the plan go first, then its other jobs by rho, then the rest by remaining time, longest
// first (the authors' work conservation). The authors' code also demands rho <= 1 where that can be had; where GPUs are short,
// it falls back to the weights, as here.
//
// The authors solve a mixed-integer program for each window. Here rounds go one by one to the job with the largest increase
// of the objective per GPU, which is optimal for gangs of equal size, since the logarithm is concave.
//
// Dynamic batch sizes, which the paper predicts by a prior over a job's epochs that observed ones restate (§5), are not in
// traces. Here the prior is what jobs of the user took, and the time that a job has run restates it: see lengths. It knows
// no tenants.
func newShockwave(baseline.Options) rule {
	var over ended
	past, crowd := lengths{}, crowd{}
	return func(r *round) {
		r.Grid = true
		over.learn(r, past.add)
		crowd.count(r)
		r.UpForRenewal()
		line := r.Contenders()
		bids := make([]bid, len(line))
		for i, k := range line {
			j := &r.Jobs[k]
			ran := r.ran(j)
			b := bid{gpus: j.GPUs, ran: float64(ran), left: float64(past.left(&r.Snapshot.Cases[j.Case].Job, ran))}
			b.rho = (float64(r.Now.Sub(r.Field.Can[j.Case].First)) + b.left*crowd.now) / ((b.ran + b.left) * crowd.since(r, j))
			bids[i] = b
		}
		order := plan(bids, r.open(), int(max(horizon/r.Settings.Term, 1)), float64(r.Settings.Term))
		for i, at := range order {
			order[i] = line[at]
		}
		r.Contest(order)
	}
}

// open gives the GPUs that are idle, or whose leases may end.
func (r *round) open() int {
	n := r.capacity()
	for k := range r.Jobs {
		if j := &r.Jobs[k]; j.Lease != nil && !j.Soft {
			n -= j.GPUs
		}
	}
	return n
}

// capacity gives the healthy GPUs.
func (r *round) capacity() int {
	n := 0
	for p := range r.Field.Due.Ledger.Pools {
		all, bad := r.Field.Site.Count(p)
		n += all - bad
	}
	return n
}

// crowd is the GPUs that all jobs want, per GPU, at least 1: now, and summed over time.
type crowd struct {
	at   cluster.Instant
	now  float64
	sum  float64
	came map[cluster.JobKey]crowd // of each job, when it was first seen
}

// count adds the time since the last round.
func (c *crowd) count(r *round) {
	gpus := 0
	for k := range r.Jobs {
		gpus += r.Jobs[k].GPUs
	}
	if c.came == nil {
		c.at, c.came = r.Now, map[cluster.JobKey]crowd{}
	}
	if len(c.came) > 2*len(r.Jobs)+1000 { // most are gone
		there := map[cluster.JobKey]crowd{}
		for k := range r.Jobs {
			key := r.Field.In.Records[r.Jobs[k].Case].Key
			if was, ok := c.came[key]; ok {
				there[key] = was
			}
		}
		c.came = there
	}
	c.sum += c.now * float64(r.Now.Sub(c.at))
	c.at, c.now = r.Now, max(1, float64(gpus)/float64(max(r.capacity(), 1)))
}

// since gives the mean since a job was first seen.
func (c *crowd) since(r *round, j *job) float64 {
	key := r.Field.In.Records[j.Case].Key
	was, ok := c.came[key]
	if !ok {
		c.came[key] = crowd{at: c.at, sum: c.sum}
	}
	if !ok || was.at == c.at {
		return c.now
	}
	return (c.sum - was.sum) / float64(c.at.Sub(was.at))
}

// bid is a job in the market. Times are in milliseconds.
type bid struct {
	gpus      int
	ran, left float64
	rho       float64
	rounds    int // of the window, in the plan
}

// logarithm is the authors' approximation for parts of 0 to 1: linear between 0 (taken for 1e-6), 0.2, 0.4, 0.6, 0.8 and 1.
func logarithm(x float64) float64 {
	const steps = 5
	i := min(math.Floor(x*steps), steps-1)
	from, to := math.Log(max(i/steps, 1e-6)), math.Log((i+1)/steps)
	return from + (x*steps-i)*(to-from)
}

// window is the rounds that are planned ahead.
type window struct {
	bids   []bid
	gpus   int
	rounds int
	round  float64 // length
	room   int     // GPUs left, of all rounds together
}

// plan divides the rounds of a window between jobs, and gives the order in which they run in the first.
func plan(bids []bid, gpus, rounds int, round float64) []int {
	w := &window{bids, gpus, rounds, round, max(gpus, 0) * rounds}
	order := make([]int, len(bids))
	for i := range order {
		order[i] = i
	}
	w.shorten(order)
	w.trade()
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &bids[a], &bids[b]
		switch {
		case (x.rounds == rounds) != (y.rounds == rounds), (x.rounds == 0) != (y.rounds == 0):
			return y.rounds - x.rounds
		case x.rounds == 0:
			return cmp.Compare(y.left, x.left)
		}
		return cmp.Compare(y.rho, x.rho)
	})
	return order
}

// give gives a job another round, if there is room.
func (w *window) give(b *bid) bool {
	if b.rounds == w.rounds || b.gpus > w.gpus || b.gpus > w.room {
		return false
	}
	b.rounds++
	w.room -= b.gpus
	return true
}

// shorten gives rounds to the jobs with the longest remaining time after the window, while that makes it shorter.
func (w *window) shorten(jobs []int) {
	after := func(i int) float64 { return w.bids[i].left - float64(w.bids[i].rounds)*w.round }
	level := math.Inf(1)
	var vain []int // given since it was last made shorter
	for len(jobs) > 0 {
		longest := slices.MaxFunc(jobs, func(a, b int) int { return cmp.Compare(after(a), after(b)) })
		if after(longest) < level {
			level, vain = after(longest), vain[:0]
		}
		if level <= 0 || !w.give(&w.bids[longest]) {
			break
		}
		vain = append(vain, longest)
	}
	for _, i := range vain {
		w.bids[i].rounds--
		w.room += w.bids[i].gpus
	}
}

// trade gives the other rounds to the jobs that gain most by them.
func (w *window) trade() {
	best := make(offers, len(w.bids))
	for i := range w.bids {
		best[i] = offer{i, w.gain(&w.bids[i])}
	}
	heap.Init(&best)
	for len(best) > 0 && w.room > 0 {
		if first := &best[0]; first.gain > 0 && w.give(&w.bids[first.at]) {
			first.gain = w.gain(&w.bids[first.at])
			heap.Fix(&best, 0)
		} else {
			heap.Pop(&best)
		}
	}
}

// gain gives the increase of a job's weighted logarithm of utility by another round, per GPU.
func (w *window) gain(b *bid) float64 {
	utility := func(rounds int) float64 { return min(1, (b.ran+float64(rounds)*w.round)/(b.ran+b.left)) }
	return math.Pow(b.rho, urgency) * (logarithm(utility(b.rounds+1)) - logarithm(utility(b.rounds))) / float64(b.gpus)
}

// offer is a job's gain by another round.
type offer struct {
	at   int
	gain float64
}

// offers is a heap, the best first.
type offers []offer

func (o offers) Len() int { return len(o) }
func (o offers) Less(a, b int) bool {
	return cmp.Or(cmp.Compare(o[b].gain, o[a].gain), o[a].at-o[b].at) < 0
}
func (o offers) Swap(a, b int) { o[a], o[b] = o[b], o[a] }
func (o *offers) Push(x any)   { *o = append(*o, x.(offer)) }
func (o *offers) Pop() any {
	last := len(*o) - 1
	x := (*o)[last]
	*o = (*o)[:last]
	return x
}
