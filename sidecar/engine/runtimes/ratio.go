package runtimes

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// The standard errors of Fit forget that jobs which still run have more work than those that ended: as a kind starts, the slow model has only short
// jobs to show, and looks fast. The seller of a fast GPU would ask too little. So ratios of rates have bounds of their own, by a rank test for run
// times that may be cut off (Gehan, 1965). It assumes only that jobs have the same work wherever they begin, not how work is distributed.
//
// Let a fast GPU do e^g times as much. Then run times are work on one scale. A job completed on the model where it was, or had more work when it ended,
// moved or was last seen. Each time one completes, any that was at that much work could have been it. If g is right, those that were on the fast model
// then are it as often as they are among these. Bounds are where that is off by sure standard errors.
const (
	sure    = 2.0
	farther = 5.0 // no ratio is sought that is further than e^farther from the fitted one
	stride  = 0.2
	fine    = 1e-3
	most    = 400 // running jobs that are compared
)

// compare sets the bounds of ratios between the models whose rates are known.
func compare(models []string, rates []cluster.RunRate, jobs, running []cluster.JobRun) {
	every := max((len(running)+most-1)/most, 1)
	for a := range rates {
		for b := range a {
			if rates[a].Rate == 0 || rates[b].Rate == 0 {
				continue
			}
			var runs []run
			for i := range jobs {
				runs = add(runs, models, &jobs[i], 1, a, b)
			}
			for i := every / 2; i < len(running); i += every {
				runs = add(runs, models, &running[i], float64(every), a, b)
			}
			for _, m := range []int{a, b} {
				if rates[m].Least == nil {
					rates[m].Least = make([]float64, len(rates))
				}
			}
			gain := math.Log(rates[a].Rate / rates[b].Rate)
			rates[a].Least[b], rates[b].Least[a] = short(math.Exp(crossing(runs, gain, sure))), short(math.Exp(-crossing(runs, gain, -sure)))
		}
	}
}

// run is a stretch of a job on one model. It is seen from its begin on.
type run struct {
	first       bool    // it is on the first of two models
	begin, ran  float64 // seconds on its model
	before      float64 // and before on the other one
	done        bool    // the job completed at its end
	counts      float64
	enter, work float64 // of the job, at its begin and its end
}

// add adds the stretches of a job that began on model a or b: that there, and if it then moved to the other one for good that there. Shorter jobs than
// Shortest are not seen.
func add(runs []run, models []string, j *cluster.JobRun, counts float64, a, b int) []run {
	if j.Chosen {
		return runs
	}
	began, other := j.First(models), a
	if began == a {
		other = b
	} else if began != b {
		return runs
	}
	least, ran := Shortest.Duration().Seconds(), j.Ran[began].Duration().Seconds()
	if ran > least {
		runs = append(runs, run{first: began == a, begin: least, ran: ran, done: j.Stayed(), counts: counts})
	}
	sum := cluster.Span(0)
	for _, t := range j.Ran {
		sum += t
	}
	if j.Began == "" || j.Back || sum != j.Ran[began]+j.Ran[other] || sum <= Shortest {
		return runs
	}
	return append(runs, run{first: other == a, before: ran, begin: max(least-ran, 0), ran: j.Ran[other].Duration().Seconds(), done: j.Done, counts: counts})
}

// crossing gives the gain nearest to from at which the test has a value. Beyond it the test can return to 0: there no job is long enough to tell.
func crossing(runs []run, from, value float64) float64 {
	low, high := from, from // the test is above the value at low, and not at high
	for step := stride; test(runs, low) <= value; low -= step {
		if high = low; low < from-farther {
			return low
		}
	}
	for step := stride; test(runs, high) > value; high += step {
		if low = high; high > from+farther {
			return high
		}
	}
	for high-low > fine {
		if mid := (low + high) / 2; test(runs, mid) > value {
			low = mid
		} else {
			high = mid
		}
	}
	if value > 0 {
		return low
	}
	return high
}

// test gives by how many standard errors jobs complete more often on the first model than they should if it is e^gain times as fast as the second.
// It falls with the gain.
func test(runs []run, gain float64) float64 {
	faster := math.Exp(gain)
	enter := make([]*run, len(runs))
	for i := range runs {
		r := &runs[i]
		here, there := 1.0, faster
		if r.first {
			here, there = faster, 1
		}
		r.enter, r.work = r.before*there+r.begin*here, r.before*there+r.ran*here
	}
	slices.SortFunc(runs, func(x, y run) int { // the most work first; of equal work those that go on
		return cmp.Or(cmp.Compare(y.work, x.work), order(x.done, y.done), order(x.first, y.first))
	})
	for i := range runs {
		enter[i] = &runs[i]
	}
	slices.SortFunc(enter, func(x, y *run) int { return cmp.Compare(y.enter, x.enter) })
	sum, variance := 0.0, 0.0
	var all, first float64 // that could complete
	for i := range runs {
		r := &runs[i]
		for ; len(enter) > 0 && enter[0].enter >= r.work; enter = enter[1:] {
			if all -= enter[0].counts; enter[0].first {
				first -= enter[0].counts
			}
		}
		if all += r.counts; r.first {
			first += r.counts
		}
		if !r.done {
			continue
		}
		if sum -= first; r.first {
			sum += all
		}
		variance += first * (all - first)
	}
	return sum / math.Sqrt(max(variance, 1))
}

// order puts false before true.
func order(x, y bool) int {
	switch {
	case x == y:
		return 0
	case y:
		return -1
	}
	return 1
}
