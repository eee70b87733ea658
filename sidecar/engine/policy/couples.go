package policy

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy/price"
)

// fewest is how many GPUs of a model a program counts with; fewer make no difference.
const fewest = 1e-6

// pair lets jobs run in pairs on the GPUs that they have: those of one user, or of one entity where jobs of two of its users pair.
func (d *division) pair(entities []price.Entity) {
	if d.in.plain() {
		return
	}
	alone, throughput := d.uses, d.throughputs()
	of := d.in.grouped(entities)
	uses, pairs := map[int][]use{}, map[int][]int{} // by group
	for _, u := range alone {
		uses[of[u.a]] = append(uses[of[u.a]], u)
	}
	for q, x := range d.in.p.Pairs {
		if of[x.A] == of[x.B] {
			pairs[of[x.A]] = append(pairs[of[x.A]], q)
		}
	}
	var out []use
	for m, g := range of {
		if g == m {
			out = append(out, d.beside(uses[g], pairs[g], throughput)...)
		}
	}
	d.take(out)
}

// grouped gives the group of each job, numbered by one of its jobs; -1 = the job runs nowhere.
func (g *given) grouped(entities []price.Entity) []int {
	of, entity := make([]int, len(g.p.Jobs)), make([]int, len(g.p.Jobs))
	for m := range of {
		of[m], entity[m] = -1, -1
	}
	number := func(jobs []int) {
		for _, m := range jobs {
			of[m] = jobs[0]
		}
	}
	for i, e := range entities {
		for _, m := range jobsOf(entities[i : i+1]) {
			entity[m] = i
		}
		for _, user := range e.Of {
			number(user.Jobs)
		}
		number(e.Jobs)
	}
	for _, q := range g.p.Pairs {
		if e := entity[q.A]; e >= 0 && e == entity[q.B] && of[q.A] != of[q.B] {
			number(jobsOf(entities[e : e+1]))
		}
	}
	return of
}

// beside gives uses of the GPUs of other uses by which all jobs do more, in some pairs. Where there is no answer, the uses stay.
func (d *division) beside(uses []use, pairs []int, throughput []float64) []use {
	if len(pairs) == 0 {
		return uses
	}
	gpus := make([]float64, len(d.in.p.Models))
	for _, u := range uses {
		gpus[u.model] += u.part * float64(d.in.p.Jobs[u.a].Gang)
	}
	var p Problem
	var models, jobs []int // of the whole problem, in order
	for i, n := range gpus {
		if n >= fewest {
			p.Models, models = append(p.Models, Model{GPUs: n}), append(models, i)
		}
	}
	if len(models) == 0 {
		return uses
	}
	some := func(of []float64) (out []float64) {
		for _, i := range models {
			out = append(out, of[i])
		}
		return out
	}
	for _, u := range uses {
		jobs = append(jobs, u.a)
	}
	for _, q := range pairs {
		jobs = append(jobs, d.in.p.Pairs[q].A, d.in.p.Pairs[q].B)
	}
	slices.Sort(jobs)
	jobs = slices.Compact(jobs)
	at, need := map[int]int{}, []float64(nil)
	for row, m := range jobs {
		j := &d.in.p.Jobs[m]
		at[m], need = row, append(need, throughput[m])
		p.Jobs = append(p.Jobs, Job{Gang: j.Gang, Weight: j.Weight, Speed: some(j.Speed)})
	}
	for _, q := range pairs {
		x := &d.in.p.Pairs[q]
		p.Pairs = append(p.Pairs, Pair{A: at[x.A], B: at[x.B], SpeedA: some(x.SpeedA), SpeedB: some(x.SpeedB)})
	}
	own := newDivision(p, d.in.o, false)
	defer own.keep(nil)
	if _, err := own.maxMin(need); err != nil {
		return uses
	}
	var out []use
	for _, u := range own.uses {
		u.a, u.model = jobs[u.a], models[u.model]
		if u.b >= 0 {
			u.b, u.pair = jobs[u.b], pairs[u.pair]
		}
		out = append(out, u)
	}
	return out
}
