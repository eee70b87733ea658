package policy

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy/price"
)

// given is the constant input of a division.
type given struct {
	p   Problem
	o   Options
	slo bool
	top []float64 // of each job: its throughput on its fastest model; 0 = it runs on none
}

// division is a problem during its solution.
type division struct {
	in     given
	solver *solver

	uses      []use   // the answer
	laid      *Shares // of uses
	objective float64
	late      []int64
}

// use is a part of an answer: a way of a job or a pair, for a fraction of the time.
type use struct {
	a, b  int // jobs; b = -1 for one alone
	model int
	pair  int // index into Pairs, for two
	apart bool
	part  float64
}

func newDivision(p Problem, o Options, slo bool) *division {
	d := &division{in: given{p: p, o: o, slo: slo, top: make([]float64, len(p.Jobs))}}
	for m, j := range p.Jobs {
		d.in.top[m] = slices.Max(j.Speed)
		if j.Apart != nil {
			d.in.top[m] = max(d.in.top[m], slices.Max(j.Apart))
		}
	}
	return d
}

// keep gives a solver to the division, and frees the previous one; nil = none.
func (d *division) keep(v *solver) {
	if d.solver != nil {
		d.solver.p.Close()
	}
	d.solver = v
}

// equal gives the throughput of a job with an equal share of every model (§4.1's throughput(m,
// X_equal)): the mean of its throughputs by GPUs.
func (g *given) equal(m int) float64 {
	sum, gpus := 0.0, 0.0
	for j, v := range g.p.Jobs[m].Speed {
		sum += v * g.p.Models[j].GPUs
		if v > 0 || !g.o.Eligible {
			gpus += g.p.Models[j].GPUs
		}
	}
	return sum / gpus
}

// alone gives the throughput of a job with one nth of every model (throughput(m, X_isolated)), n
// being the number of jobs that can run at all.
func (g *given) alone(m int) float64 {
	n := 0.0
	for _, v := range g.top {
		if v > 0 {
			n++
		}
	}
	j := g.p.Jobs[m]
	sum, time := 0.0, 0.0
	for i, v := range j.Speed {
		x := g.p.Models[i].GPUs / (n * float64(j.Gang))
		sum += v * x
		time += x
	}
	return sum / max(1, time)
}

// fixed gives every job its part of each model on which it can run: that of its entity by weight, then its own
// by weight. A job has no more than all the time, and what that leaves goes to the others of its entity. No entities = each job
// is one.
func (g *given) fixed(entities []price.Entity) []use {
	if entities == nil {
		for m, j := range g.p.Jobs {
			if g.top[m] > 0 {
				entities = append(entities, price.Entity{Weight: j.Weight, Jobs: []int{m}})
			}
		}
	}
	return g.even(entities, 1)
}

// even divides a part of all GPUs as fixed does.
func (g *given) even(entities []price.Entity, part float64) []use {
	gpus, weights := 0.0, 0.0
	for _, m := range g.p.Models {
		gpus += m.GPUs
	}
	for _, e := range entities {
		weights += e.Weight
	}
	jobs := jobsOf(entities)
	weight, most := make([]float64, len(jobs)), make([]float64, len(jobs))
	for k, m := range jobs {
		j := &g.p.Jobs[m]
		if weight[k] = j.Weight; g.top[m] > 0 {
			usable := 0.0
			for i := range g.p.Models {
				usable += g.usable(m, i)
			}
			most[k] = float64(j.Gang) * gpus / usable
		}
	}
	var out []use
	for k, has := range price.Pour(numbered(entities, new(int)), weight, most, part*gpus/max(weights, 1e-300)) {
		for i := range g.p.Models {
			if x := g.usable(jobs[k], i) * has / gpus / float64(g.p.Jobs[jobs[k]].Gang); x > 0 {
				out = append(out, use{a: jobs[k], b: -1, model: i, part: x})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b use) int { return cmp.Compare(a.a, b.a) })
	return out
}

// usable gives the GPUs of a model that a job can use by itself, with all its GPUs together.
func (g *given) usable(m, model int) float64 {
	switch j := g.p.Jobs[m]; {
	case j.Speed[model] == 0:
		return 0
	case j.Apart != nil:
		return g.p.Models[model].together()
	}
	return g.p.Models[model].GPUs
}

// The number of grains in the whole time: the resolution of a share.
const grain = 1e9

// large is a part, in grains, for which one grain does not matter.
const large = 1e7

// take sets the answer.
func (d *division) take(uses []use) { d.uses, d.laid = uses, nil }

// shares gives the answer: the result of Gavel.
func (d *division) shares() Shares {
	if d.laid == nil {
		s := d.lay()
		d.laid = &s
	}
	s := *d.laid
	s.Objective, s.Late = d.objective, d.late
	return s
}

// lay rounds the uses to whole grains, removes the excess, and lays them out.
func (d *division) lay() Shares {
	n, k := len(d.in.p.Jobs), len(d.in.p.Models)
	grains := make([]int64, len(d.uses))
	for i, u := range d.uses {
		grains[i] = int64(math.Round(u.part * grain))
		if grains[i] > 10 && grains[i] < large { // one grain is a large part of it, and it is no noise
			grains[i] = int64(math.Ceil(u.part*grain - 1e-3))
		}
	}
	time, gpus, together := make([][]int, n), make([][]int, k), make([][]int, k)
	for i, u := range d.uses {
		if grains[i] <= 0 {
			grains[i] = 0
			continue
		}
		time[u.a] = append(time[u.a], i)
		if u.b >= 0 {
			time[u.b] = append(time[u.b], i)
		}
		gpus[u.model] = append(gpus[u.model], i)
		if d.in.confined(u.a, u.b, u.model, u.apart) {
			together[u.model] = append(together[u.model], i)
		}
	}
	gang := func(i int) int64 { return int64(d.in.p.Jobs[d.uses[i].a].Gang) }
	for _, uses := range time {
		trim(grains, uses, func(int) int64 { return 1 }, grain)
	}
	for j, m := range d.in.p.Models {
		trim(grains, gpus[j], gang, int64(m.GPUs*grain))
		trim(grains, together[j], gang, int64(m.together()*grain))
	}

	for i := range d.uses {
		d.uses[i].part = float64(grains[i]) / grain
	}
	s := Shares{Time: table(n, k)}
	var none []float64 // of all pairs that do not run
	if len(d.in.p.Pairs) > 0 {
		s.PairTime, none = make([][]float64, len(d.in.p.Pairs)), make([]float64, k)
		for i := range s.PairTime {
			s.PairTime[i] = none
		}
	}
	for _, u := range d.uses {
		switch {
		case u.b >= 0:
			if row := &s.PairTime[u.pair]; &(*row)[0] == &none[0] {
				*row = make([]float64, k)
			}
			s.PairTime[u.pair][u.model] += u.part
		case u.apart:
			if s.Apart == nil {
				s.Apart = table(n, k)
			}
			s.Apart[u.a][u.model] += u.part
		default:
			s.Time[u.a][u.model] += u.part
		}
	}
	return s
}

// throughputs gives the effective throughput of every job, as the shares have it.
func (d *division) throughputs() []float64 {
	d.shares()
	out := make([]float64, len(d.in.p.Jobs))
	for _, u := range d.uses {
		a, b := d.in.speeds(u)
		out[u.a] += u.part * a
		if u.b >= 0 {
			out[u.b] += u.part * b
		}
	}
	return out
}

// speeds gives the throughputs of a use, of its one job or of both.
func (g *given) speeds(u use) (a, b float64) {
	switch {
	case u.b >= 0:
		q := &g.p.Pairs[u.pair]
		return q.SpeedA[u.model], q.SpeedB[u.model]
	case u.apart:
		return g.p.Jobs[u.a].Apart[u.model], 0
	}
	return g.p.Jobs[u.a].Speed[u.model], 0
}

// confined tells whether a use needs GPUs that are together.
func (g *given) confined(a, b, model int, apart bool) bool {
	spread := g.p.Jobs[a].Apart != nil || b >= 0 && g.p.Jobs[b].Apart != nil
	return spread && !apart && g.p.Models[model].Together != nil
}

// trim removes the excess over limit from the large uses, in proportion to their size, and the
// rest from the largest, the first among equals.
func trim(grains []int64, uses []int, weight func(int) int64, limit int64) {
	sum, many := int64(0), int64(0)
	for _, i := range uses {
		sum += weight(i) * grains[i]
		if grains[i] >= large {
			many += weight(i) * grains[i]
		}
	}
	part := float64(sum-limit) / float64(many)
	for _, i := range uses {
		if sum > limit && grains[i] >= large {
			less := min(grains[i], int64(math.Ceil(float64(grains[i])*part)))
			grains[i] -= less
			sum -= weight(i) * less
		}
	}
	for sum > limit {
		largest := uses[0]
		for _, i := range uses {
			if grains[i] > grains[largest] {
				largest = i
			}
		}
		w := weight(largest)
		less := min(grains[largest], (sum-limit+w-1)/w)
		grains[largest] -= less
		sum -= w * less
	}
}

func table(n, k int) [][]float64 {
	all := make([]float64, n*k)
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = all[i*k : (i+1)*k : (i+1)*k]
	}
	return rows
}
