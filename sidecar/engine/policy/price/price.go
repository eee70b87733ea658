package price

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Instance is n jobs over k models.
type Instance struct {
	GPUs []float64 // of each model, > 0
	Gang []float64 // GPUs that each job takes at once, > 0
	// Speed is the level of job m if it runs all the time on model j, at m·k+j; 0 = it
	// cannot run there.
	Speed []float64
}

// Answer is the division of an instance.
type Answer struct {
	X      []float64 // the part of the time of job m on model j, at m·k+j
	Level  []float64 // of each job, as X gives it
	Low    float64   // the objective, as X gives it
	High   float64   // upper bound for every X
	Rounds int       // looks at prices
}

// Errors of an instance. Numbers must be within Smallest to Largest.
var (
	ErrShape   = errors.New("price: the parts of the instance do not fit together")
	ErrNumber  = errors.New("price: a number is out of range")
	ErrNowhere = errors.New("price: a job can run on no model")
	// ErrGap is about the answer: it is not proven to be the best.
	ErrGap = errors.New("price: the answer is below its bound")
)

// The range of numbers other than 0.
const (
	Smallest = 1e-30
	Largest  = 1e30
)

// MaxMin gives the division with the largest smallest level (Gavel §4.1): maximise
// min_m Σ_j speed_mj·x_mj subject to Σ_j x_mj <= 1 and Σ_m gang_m·x_mj <= gpus_j. Weights,
// the throughputs of equal shares and gang sizes belong into speed. Low and High are
// bounds of that level, 1e-9 apart at most, relative. The error is one of this package's, with
// the number of the job or model.
func MaxMin(in Instance) (Answer, error) {
	if err := in.check(); err != nil {
		return Answer{}, err
	}
	k := len(in.GPUs)
	like, gang, speed := group(k, in.Gang, in.Speed)
	c := newCrowd(k, gang, speed)
	top := math.Inf(1)
	for m := range gang {
		top = min(top, highest(speed[m*k:(m+1)*k]))
	}
	var edges [][]uint8 // of each column
	jobs := newSteady(c)
	near := sample(in.GPUs, gang, speed, top, func(gang, speed []float64) ([]float64, look) {
		some := newSteady(newCrowd(k, gang, speed))
		return some.use, some.ask
	})
	s := search(in.GPUs, top, certified, near, c.use, jobs.ask, func() { edges = append(edges, slices.Clone(c.edge)) })
	x := make([]float64, len(speed))
	s.mixed(func(i int, share float64) {
		for m := range gang {
			c.mix(x, m, share, s.at[i], edges[i])
		}
	})
	out := Answer{X: make([]float64, len(in.Speed)), High: s.high, Rounds: s.rounds}
	for m, g := range like {
		copy(out.X[m*k:], x[g*k:(g+1)*k])
	}
	out.finish(in)
	return out, out.proves()
}

// exact is how far Low may be below High, relatively. Searches end closer than that, unless rounding stops them.
const exact = 1e-9

// proves tells if an answer might be worse than the best.
func (a *Answer) proves() error {
	if !(a.High-a.Low <= exact*a.High) {
		return fmt.Errorf("%w: it is %v, and might be %v", ErrGap, a.Low, a.High)
	}
	return nil
}

// Every sampled-th job tells about where prices will be, where there are many jobs a model: the
// prices that the search of those looked at last, within nearby of where it ended.
const (
	sampled = 16
	many    = 400
	nearby  = 0.02
)

// sample gives prices near the best ones for a part of the jobs on as large a part of the
// GPUs, the last first; none where jobs are few. How those answer, and where their use is, answer says.
func sample(gpus, gang, speed []float64, top float64, answer func(gang, speed []float64) (use []float64, ask look)) (near start) {
	k := len(gpus)
	if len(gang) < many*k {
		return near
	}
	var some, rows []float64
	all, part := 0.0, 0.0
	for m, s := range gang {
		all += s
		if m%sampled == 0 {
			part += s
			some, rows = append(some, s), append(rows, speed[m*k:(m+1)*k]...)
		}
	}
	fewer := make([]float64, k)
	for j, n := range gpus {
		fewer[j] = n * part / all
	}
	use, ask := answer(some, rows)
	s := search(fewer, top, 1e-5, start{}, use, ask, func() {})
	last := s.prices[len(s.prices)-1]
	for _, p := range slices.Backward(s.prices) {
		if far(p, last) > nearby {
			continue
		}
		scaled := slices.Clone(p)
		for j := range scaled {
			scaled[j] *= part / all
		}
		near.prices = append(near.prices, scaled)
	}
	near.level = s.high
	return near
}

// finish takes what rounding put above the GPUs or a job's time out of X, and reads the
// levels off it.
func (a *Answer) finish(in Instance) {
	k := len(in.GPUs)
	use := make([]float64, k)
	most := 1.0
	for m, s := range in.Gang {
		time := 0.0
		for j, v := range a.X[m*k : (m+1)*k] {
			time += v
			use[j] += s * v
		}
		most = max(most, time)
	}
	a.fit(in, use, most)
	a.Low = math.Inf(1)
	for _, l := range a.Level {
		a.Low = min(a.Low, l)
	}
	a.High = max(a.High, a.Low)
}

// fit divides X by most, or by what makes the use of the models no more than there is, and gives the levels.
func (a *Answer) fit(in Instance, use []float64, most float64) {
	for j, n := range in.GPUs {
		most = max(most, use[j]/n)
	}
	for i := range a.X {
		a.X[i] /= most
	}
	a.Level = levels(len(in.GPUs), a.X, in.Speed)
}

// levels gives Σ_j speed_mj·x_mj of each job.
func levels(k int, x, speed []float64) []float64 {
	out := make([]float64, len(x)/k)
	for m := range out {
		for j, v := range x[m*k : (m+1)*k] {
			out[m] += v * speed[m*k+j]
		}
	}
	return out
}

func highest(v []float64) float64 {
	top := 0.0
	for _, x := range v {
		top = max(top, x)
	}
	return top
}

// check looks for what no division can be made of.
func (in Instance) check() error {
	k, n := len(in.GPUs), len(in.Gang)
	if k == 0 || k > 254 || n == 0 || len(in.Speed) != n*k {
		return fmt.Errorf("%w: %d models, %d gangs, %d speeds", ErrShape, k, n, len(in.Speed))
	}
	for j, v := range in.GPUs {
		if !usable(v) {
			return fmt.Errorf("%w: model %d has %v GPUs", ErrNumber, j, v)
		}
	}
	for m, v := range in.Gang {
		if !usable(v) {
			return fmt.Errorf("%w: job %d has a gang of %v", ErrNumber, m, v)
		}
		if err := runs(in.Speed[m*k : (m+1)*k]); err != nil {
			return fmt.Errorf("%w: job %d", err, m)
		}
	}
	return nil
}

// runs checks the speeds of a job.
func runs(speed []float64) error {
	able := false
	for _, v := range speed {
		if v != 0 && !usable(v) {
			return ErrNumber
		}
		able = able || v > 0
	}
	if !able {
		return ErrNowhere
	}
	return nil
}

func usable(v float64) bool { return v >= Smallest && v <= Largest }
