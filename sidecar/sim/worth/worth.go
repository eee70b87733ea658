package worth

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/backtest"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// Slurm is the scheduler that a period is compared with.
const Slurm = "slurm-multifactor"

// Jitter is how much later than recorded jobs arrive in a replay, at most.
const Jitter = 30 * cluster.Second

// Replays gives n runs of a window's jobs under plain Slurm. It knows no limits of accounts: they are left out.
func Replays(w *backtest.Window, n int, seed uint64) []experiment.Setup {
	known := lengthsOf(w.Lives)
	out := make([]experiment.Setup, n)
	for i := range out {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		out[i] = w.Setup
		out[i].Scheduler, out[i].Limits, out[i].Keep = Slurm, experiment.Admission{}, true
		out[i].Load.Jobs = slices.Values(Stir(jobs(w, known, random), random))
	}
	return out
}

// Stir lets jobs, by time, arrive up to Jitter later, in the same order. Those at 0 stay there.
func Stir(jobs []trace.Job, random *rand.Rand) []trace.Job {
	var last cluster.Span
	for i := range jobs {
		if j := &jobs[i]; j.Submit > 0 {
			last = max(last, j.Submit+cluster.Span(random.Int64N(int64(Jitter))))
			j.Submit = last
		}
	}
	return jobs
}

// jobs gives the jobs of a replay, by arrival: those that had GPUs, those that waited, the others.
func jobs(w *backtest.Window, known *lengths, random *rand.Rand) []trace.Job {
	held, others := []trace.Job(nil), make([]trace.Job, 0, len(w.Lives))
	for i := range w.Lives {
		l := &w.Lives[i]
		j := l.Job
		j.Runs = max(known.runs(l, random)-starts(l, &w.Setup.Settings), cluster.Second)
		if j.Limit > 0 {
			j.Limit = limit(l)
			j.Runs = min(j.Runs, j.Limit)
		}
		if j.Submit == 0 && l.Held {
			held = append(held, j)
			continue
		}
		j.Submit = max(j.Submit, 1) // after those
		others = append(others, j)
	}
	return append(held, others...)
}

// limit gives the time limit of a job with one, from the window's begin on. It is no shorter than the job has run since.
func limit(l *backtest.Life) cluster.Span {
	ran := l.Runs + l.After
	if l.Stops > 0 {
		return l.Limit + ran
	}
	return max(l.Limit-l.Before, ran, cluster.Second)
}

// starts gives the time for which a job that goes on from its saves was not at work after its stops: half of its run time at most.
func starts(l *backtest.Life, set *cluster.Settings) cluster.Span {
	if l.Lost {
		return 0
	}
	return min(cluster.Span(l.Stops)*set.StartCost, (l.Runs+l.After)/2)
}

// Outcome is what a period gave. Times are GPU hours, but for Wait.
type Outcome struct {
	Below   float64            // share, hour by hour
	Tenants map[string]float64 // the same by tenant
	Wait    float64            // hours in which jobs had no GPUs
	Queued  float64            // the same times the jobs' GPUs
	Work    float64            // of jobs, less what stops destroyed and starts took
	Lost    float64            // destroyed by stops
}

func outcome(s *score.Scores, jobs []score.Job) Outcome {
	out := Outcome{Below: below(s.Periods), Tenants: map[string]float64{}}
	for i := range s.Tenants {
		out.Tenants[s.Tenants[i].Tenant] = below(s.Tenants[i].Periods)
	}
	for _, j := range jobs {
		end := j.End
		if end == 0 {
			end = s.To
		}
		wait := j.Wait(end)
		out.Wait += float64(wait) / float64(cluster.Hour)
		out.Queued += cluster.Times(j.GPUs, wait).Hours()
		out.Work += cluster.Times(j.GPUs, j.Held-j.Overhead).Hours()
		out.Lost += cluster.Times(j.GPUs, j.Lost).Hours()
	}
	return out
}

func below(periods []score.Period) float64 {
	for _, p := range periods {
		if p.Hours == 1 {
			return p.Lacking
		}
	}
	return 0
}

// Was gives the outcome as recorded. The error is about tenants' accounts that cannot be read.
func Was(w *backtest.Window) (Outcome, error) {
	s, err := w.Score()
	if err != nil {
		return Outcome{}, err
	}
	out := outcome(&s, w.Was.Jobs)
	for i := range w.Lives {
		l := &w.Lives[i]
		within := float64(l.Runs) / float64(max(1, l.Runs+l.After))
		out.Work -= within * cluster.Times(l.GPUs, starts(l, &w.Setup.Settings)).Hours()
	}
	return out, nil
}

// Would gives the outcome of a replay.
func Would(r *experiment.Result) Outcome { return outcome(&r.Scores, r.Kept) }

// Range is an estimate: the mean, and bounds between which a further replay would be with 90 % probability.
type Range struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// z is the 95th percentile of the normal distribution.
const z = 1.6449

// RangeOf gives the range of at least two values.
func RangeOf(values []float64) Range {
	n := float64(len(values))
	sum, square := 0.0, 0.0
	for _, v := range values {
		sum += v
	}
	mean := sum / n
	for _, v := range values {
		square += (v - mean) * (v - mean)
	}
	t := z + (z*z*z+z)/(4*(n-1)) // Student's, nearly
	half := t * math.Sqrt(square/(n-1)*(1+1/n))
	return Range{mean, mean - half, mean + half}
}
