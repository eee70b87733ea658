package worth

import (
	"math"
	"math/rand/v2"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/backtest"
)

// The survival of jobs by their run time, as a life table: a step is half a doubling of the run time, from a minute on.
const (
	steps     = 40 // the last begins after more than a year
	stepsEach = 2  // of a doubling
	shrink    = 8  // jobs of all types that weigh as much as the type's own
	tail      = 4  // the last steps with ends, by which those without any go
)

// lengths is what the jobs of a window say about how long jobs run.
type lengths struct {
	all   table
	types map[kind]*table
}

// kind is the jobs that are taken to be alike: of one user, with as many GPUs.
type kind struct {
	tenant, user string
	gpus         int
}

func kindOf(j *backtest.Life) kind { return kind{j.Tenant, j.User, j.GPUs} }

// table counts by step the jobs that came so far, and those that ended there. A job that was there for a part of the step, in log time,
// counts in part: ended over at is the rate at which jobs end in that step.
type table struct{ at, ended [steps]float64 }

// place gives the place of a run time on the scale of steps.
func place(d cluster.Span) float64 {
	return min(max(0, stepsEach*math.Log2(float64(d)/float64(cluster.Minute))), steps-0.001)
}

func length(place float64) cluster.Span {
	return cluster.Span(math.Exp2(place/stepsEach) * float64(cluster.Minute))
}

// add counts a job that was seen from one run time to another.
func (t *table) add(from, to cluster.Span, ended bool) {
	a, b := place(from), place(to)
	if to <= 0 {
		return
	}
	for i := int(a); i <= int(b); i++ {
		t.at[i] += min(b, float64(i+1)) - max(a, float64(i))
	}
	if ended {
		t.ended[int(b)]++
	}
}

func lengthsOf(lives []backtest.Life) *lengths {
	out := &lengths{types: map[kind]*table{}}
	for i := range lives {
		j := &lives[i]
		k := kindOf(j)
		if out.types[k] == nil {
			out.types[k] = &table{}
		}
		for _, t := range []*table{&out.all, out.types[k]} {
			t.add(j.Before, j.Before+j.Runs+j.After, j.Ended)
		}
	}
	out.all.extend()
	return out
}

// extend gives steps without ends the rate of the last ones that have some.
func (t *table) extend() {
	var at, ended float64
	last := steps - 1
	for last > 0 && t.ended[last] == 0 {
		last--
	}
	for i := max(0, last-tail+1); i <= last; i++ {
		at, ended = at+t.at[i], ended+t.ended[i]
	}
	for i := last + 1; i < steps; i++ {
		at += t.at[i]
	}
	if at <= 0 || ended <= 0 {
		at, ended = 1, 1
	}
	for i := last + 1; i < steps; i++ {
		t.at[i], t.ended[i] = at, ended
	}
}

// runs gives the run time of a job from the window's begin on: known if it has ended, else drawn.
func (l *lengths) runs(j *backtest.Life, random *rand.Rand) cluster.Span {
	if j.Ended {
		return j.Runs + j.After
	}
	return l.draw(j, random) - j.Before
}

// draw gives a run time for a job that has run for so long and has not ended.
func (l *lengths) draw(j *backtest.Life, random *rand.Rand) cluster.Span {
	own, ran := l.types[kindOf(j)], j.Before+j.Runs+j.After
	left := random.ExpFloat64()
	at := place(ran)
	for i := int(at); i < steps; i++ {
		rate := 1.0
		if l.all.at[i] > 0 {
			rate = l.all.ended[i] / l.all.at[i]
		}
		if own != nil {
			rate = (own.ended[i] + shrink*rate) / (own.at[i] + shrink)
		}
		until := float64(i + 1)
		if rate*(until-at) >= left {
			return max(length(at+left/rate), ran+1)
		}
		left -= rate * (until - at)
		at = until
	}
	return max(length(steps), ran+1)
}
