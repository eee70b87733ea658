// Package runtimes estimates how fast a kind of job runs on each GPU model from the run times of its jobs alone.
//
// A job that has done all its work after t_m seconds on each model m says that Σ t_m r_m is its work, with the rates r. In units of the
// kind's usual job, the work of a job is 1 times e^x, and x is the difference between jobs. Rates are found such that x is no
// larger or smaller where more of the work was done on some model: Σ_j c_jm ψ(x_j) = 0 for every m, where c_jm is the part of job j's work
// that was done on m, and ψ cuts off outliers (Huber, 1964). For jobs that each ran on one model that is the ratio of robust means of
// their completion times. Jobs that moved between models count as well, which matters where a policy moves jobs.
//
// A job that was cut off by its time limit, failed or was cancelled has more work than it did. Left out, such jobs would make slow models look
// fast. It counts with the usual work of the completed jobs that had more than it did (as in Buckley and James, 1979).
package runtimes

import (
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

const (
	// Shortest is the minimum run time of the jobs that are fitted: in less, starting is most of the time.
	Shortest = 2 * cluster.Minute
	// Least is the minimum number of completed jobs, and of those with a fair part of their work on a model.
	Least = 5
	// fair is a fair part of a job's work.
	fair = 0.2
	// widest bounds the standard error of a rate that is told.
	widest = 0.4
	// prior is how far apart rates are expected to be without any run times, in the logarithm. It keeps rates together that run times do not tell apart.
	prior = 1.5
	// cut is where outliers are cut off, in standard deviations; leastSpread is the minimum of these.
	cut         = 1.5
	leastSpread = 0.05
	rounds      = 40
)

// Fit returns the rates of jobs, in jobs per second, by model; a rate of 0 is unknown. running are jobs that still run: they count in Least. The
// order of jobs does not matter.
func Fit(models []string, jobs, running []cluster.JobRun) []cluster.RunRate {
	n := len(models)
	out := make([]cluster.RunRate, n)
	f := fit{n: n, jobs: sorted(jobs, n)}
	done := 0
	for i := range f.jobs {
		if f.jobs[i].Done {
			done++
		}
	}
	if done < Least || !f.run() {
		return out
	}
	spread := f.errors()
	for m := range out {
		for i := range f.jobs {
			if f.jobs[i].Done && f.part(i, m) >= fair {
				out[m].Jobs++
			}
		}
		if out[m].Jobs >= Least && spread[m] <= widest {
			out[m].Rate, out[m].Spread = short(math.Exp(f.rates[m])), short(spread[m])
		}
	}
	compare(models, out, f.jobs, sorted(running, n))
	return out
}

// short keeps six digits: more are noise, and take room in the journal.
func short(x float64) float64 {
	if x == 0 {
		return 0
	}
	e := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*e) / e
}

// sorted gives the jobs with run times, in an order of their own.
func sorted(jobs []cluster.JobRun, n int) []cluster.JobRun {
	out := make([]cluster.JobRun, 0, len(jobs))
	for _, j := range jobs {
		if len(j.Ran) == n && slices.Max(j.Ran) > 0 && slices.Min(j.Ran) >= 0 {
			out = append(out, j)
		}
	}
	slices.SortFunc(out, func(a, b cluster.JobRun) int {
		if a.Done != b.Done {
			if a.Done {
				return -1
			}
			return 1
		}
		return slices.Compare(a.Ran, b.Ran)
	})
	return out
}

// fit is the state of the search.
type fit struct {
	n     int
	jobs  []cluster.JobRun // the completed first
	rates []float64        // ln
	work  []float64        // ln of the work of each job, with those rates
	scale float64          // standard deviation of the work
	info  [][]float64      // by model and model: what run times say, in units of their variance
	used  []bool           // models with run times
}

// part is the part of a job's work that was done on a model.
func (f *fit) part(i, m int) float64 {
	return math.Exp(f.rates[m] + math.Log(f.jobs[i].Ran[m].Duration().Seconds()) - f.work[i])
}

// weigh sets the work of all jobs with the rates, and returns its standard deviation.
func (f *fit) weigh() float64 {
	var off []float64
	for i := range f.jobs {
		sum := 0.0
		for m, t := range f.jobs[i].Ran {
			sum += t.Duration().Seconds() * math.Exp(f.rates[m])
		}
		f.work[i] = math.Log(sum)
		if f.jobs[i].Done {
			off = append(off, math.Abs(f.work[i]))
		}
	}
	slices.Sort(off)
	return max(1.4826*off[len(off)/2], leastSpread)
}

// more gives the usual work of the completed jobs that had more than a job that was cut off; its own if there are none.
func (f *fit) more(than float64) float64 {
	var beyond []float64
	for i := range f.jobs {
		if f.jobs[i].Done && f.work[i] > than {
			beyond = append(beyond, f.work[i])
		}
	}
	if len(beyond) == 0 {
		return than
	}
	slices.Sort(beyond)
	return beyond[len(beyond)/2]
}

// run searches the rates by Newton's method on Σ c ψ(x) = 0.
func (f *fit) run() bool {
	f.rates, f.work, f.used = make([]float64, f.n), make([]float64, len(f.jobs)), make([]bool, f.n)
	var totals []float64
	for i := range f.jobs {
		sum := cluster.Span(0)
		for m, t := range f.jobs[i].Ran {
			sum += t
			f.used[m] = f.used[m] || t > 0
		}
		if f.jobs[i].Done {
			totals = append(totals, sum.Duration().Seconds())
		}
	}
	slices.Sort(totals)
	for m := range f.rates {
		f.rates[m] = -math.Log(totals[len(totals)/2])
	}
	for range rounds {
		f.scale = f.weigh()
		push := make([]float64, f.n)
		f.info = make([][]float64, f.n)
		for m := range f.info {
			f.info[m] = make([]float64, f.n)
		}
		for i := range f.jobs {
			x, told := f.work[i], 1.0
			if !f.jobs[i].Done {
				if x = f.more(x); x == f.work[i] && x < 0 {
					continue
				}
				told = 0.25 // it says less than a job that completed
			}
			bound := cut * f.scale
			for m := range f.rates {
				if f.jobs[i].Ran[m] == 0 {
					continue
				}
				c := f.part(i, m)
				push[m] -= c * min(max(x, -bound), bound) * told
				if math.Abs(x) > bound {
					continue // where it is cut off it tells only the direction
				}
				for k := range f.rates {
					if f.jobs[i].Ran[k] > 0 {
						f.info[m][k] += c * f.part(i, k) * told
					}
				}
			}
		}
		f.expect(push)
		step, ok := solve(f.info, push)
		if !ok {
			return false
		}
		largest := 0.0
		for m := range step {
			step[m] = min(max(step[m], -0.7), 0.7)
			f.rates[m] += step[m]
			largest = max(largest, math.Abs(step[m]))
		}
		if largest < 1e-7 {
			break
		}
	}
	f.scale = f.weigh()
	return true
}

// expect adds the expectation that the rates are equal, up to prior.
func (f *fit) expect(push []float64) {
	sum, n := 0.0, 0.0
	for m := range f.rates {
		if f.used[m] {
			sum, n = sum+f.rates[m], n+1
		}
	}
	weight := f.scale * f.scale / (prior * prior)
	for m := range f.rates {
		if !f.used[m] {
			f.info[m][m] = 1
			continue
		}
		push[m] -= weight * (f.rates[m] - sum/n)
		f.info[m][m] += weight
		for k := range f.rates {
			if f.used[k] {
				f.info[m][k] -= weight / n
			}
		}
	}
}

// errors gives the standard errors of the rates: of each relative to the others.
func (f *fit) errors() []float64 {
	out := make([]float64, f.n)
	for m := range out {
		unit := make([]float64, f.n)
		unit[m] = 1
		column, ok := solve(f.info, unit)
		out[m] = math.Inf(1)
		if ok && f.used[m] && column[m] > 0 {
			out[m] = f.scale * math.Sqrt(column[m])
		}
	}
	return out
}

// solve solves linear equations by elimination; false = they have no single solution.
func solve(a [][]float64, b []float64) ([]float64, bool) {
	n := len(b)
	m := make([][]float64, n)
	for i := range m {
		m[i] = append(slices.Clone(a[i]), b[i])
	}
	for p := range n {
		best := p
		for i := p + 1; i < n; i++ {
			if math.Abs(m[i][p]) > math.Abs(m[best][p]) {
				best = i
			}
		}
		if m[p], m[best] = m[best], m[p]; math.Abs(m[p][p]) < 1e-12 {
			return nil, false
		}
		for i := range m {
			if i == p {
				continue
			}
			k := m[i][p] / m[p][p]
			for c := p; c <= n; c++ {
				m[i][c] -= k * m[p][c]
			}
		}
	}
	x := make([]float64, n)
	for i := range x {
		x[i] = m[i][n] / m[i][i]
	}
	return x, true
}
