package policy

import (
	"math"
	"slices"
)

// division is a problem on its way to its shares.
type division struct {
	p      Problem
	o      Options
	slo    bool
	top    []float64 // of each job: its throughput on its fastest model; 0 = it runs nowhere
	solver *solver

	uses      []use
	objective float64
	late      []int64
}

// use is a part of an answer: a way that a job or a pair runs, for a part of the time.
type use struct {
	a, b  int // jobs; b = -1 for one alone
	model int
	pair  int // index into Pairs, for two
	apart bool
	part  float64
}

func newDivision(p Problem, o Options, slo bool) *division {
	d := &division{p: p, o: o, slo: slo, top: make([]float64, len(p.Jobs))}
	for m, j := range p.Jobs {
		d.top[m] = slices.Max(j.Speed)
		if j.Apart != nil {
			d.top[m] = max(d.top[m], slices.Max(j.Apart))
		}
	}
	return d
}

func (d *division) close() {
	if d.solver != nil {
		d.solver.p.Close()
	}
}

// equal gives the throughput of a job with an equal share of every model (§4.1's
// throughput(m, X_equal)): its throughputs' mean by GPUs.
func (d *division) equal(m int) float64 {
	sum, gpus := 0.0, 0.0
	for j, v := range d.p.Jobs[m].Speed {
		sum += v * d.p.Models[j].GPUs
		if v > 0 || !d.o.Eligible {
			gpus += d.p.Models[j].GPUs
		}
	}
	return sum / gpus
}

// alone gives the throughput of a job with one nth of every model for itself
// (throughput(m, X_isolated)), n being the jobs that can run at all.
func (d *division) alone(m int) float64 {
	n := 0.0
	for _, v := range d.top {
		if v > 0 {
			n++
		}
	}
	j := d.p.Jobs[m]
	sum, time := 0.0, 0.0
	for i, v := range j.Speed {
		x := d.p.Models[i].GPUs / (n * float64(j.Gang))
		sum += v * x
		time += x
	}
	return sum / max(1, time)
}

// fixed gives every job its part by weight of each model that it can run on.
func (d *division) fixed() []use {
	weights := 0.0
	for m, j := range d.p.Jobs {
		if d.top[m] > 0 {
			weights += j.Weight
		}
	}
	var out []use
	for m, j := range d.p.Jobs {
		first, time := len(out), 0.0
		for i, v := range j.Speed {
			if v > 0 {
				x := d.p.Models[i].GPUs * j.Weight / weights / float64(j.Gang)
				if j.Apart != nil && d.p.Models[i].Together > 0 {
					x *= d.p.Models[i].Together / d.p.Models[i].GPUs
				}
				out = append(out, use{a: m, b: -1, model: i, part: x})
				time += x
			}
		}
		for i := range out[first:] {
			out[first+i].part /= max(1, time)
		}
	}
	return out
}

// The smallest part of the time that a share tells: a whole is a billion.
const grain = 1e9

// shares rounds the uses to whole grains, takes what is too much, and lays them out.
func (d *division) shares() Shares {
	n, k := len(d.p.Jobs), len(d.p.Models)
	grains := make([]int64, len(d.uses))
	for i, u := range d.uses {
		grains[i] = int64(math.Round(u.part * grain))
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
		if d.confined(u.a, u.b, u.model, u.apart) {
			together[u.model] = append(together[u.model], i)
		}
	}
	gang := func(i int) int64 { return int64(d.p.Jobs[d.uses[i].a].Gang) }
	for _, uses := range time {
		trim(grains, uses, func(int) int64 { return 1 }, grain)
	}
	for j, m := range d.p.Models {
		trim(grains, gpus[j], gang, int64(m.GPUs*grain))
		trim(grains, together[j], gang, int64(m.Together*grain))
	}

	s := Shares{Time: table(n, k), Late: d.late}
	if len(d.p.Pairs) > 0 {
		s.PairTime = table(len(d.p.Pairs), k)
	}
	for i, u := range d.uses {
		part := float64(grains[i]) / grain
		switch {
		case u.b >= 0:
			s.PairTime[u.pair][u.model] += part
		case u.apart:
			if s.Apart == nil {
				s.Apart = table(n, k)
			}
			s.Apart[u.a][u.model] += part
		default:
			s.Time[u.a][u.model] += part
		}
	}
	s.Objective = d.objective
	return s
}

// confined tells whether a use takes of the GPUs that are together.
func (d *division) confined(a, b, model int, apart bool) bool {
	spread := d.p.Jobs[a].Apart != nil || b >= 0 && d.p.Jobs[b].Apart != nil
	return spread && !apart && d.p.Models[model].Together > 0
}

// trim takes what is above limit from the largest of the uses, the first among equals.
func trim(grains []int64, uses []int, weight func(int) int64, limit int64) {
	sum := int64(0)
	for _, i := range uses {
		sum += weight(i) * grains[i]
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
