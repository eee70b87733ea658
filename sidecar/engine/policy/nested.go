package policy

import (
	"fmt"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy/price"
)

// Ways are the choices of Nested.
type Ways struct {
	Blind bool // every job is as fast on each model as on its fastest
	FIFO  bool // inside of an entity, or of its users: the first job by ID first; else fair by weight
}

// Nested divides the time of the jobs over the models between entities, then between the users of each, then
// between the jobs of each: max-min at every step of the levels gang_m·throughput(m, X)/throughput(m, X_equal), whose sum is
// the level of a user and of an entity. Entities and jobs count by weight, users alike; jobs without a user are as those of
// one. A job's siblings have what it cannot use, then its entity's others, then all (Gavel §4.3, with users).
//
// Nobody is below its share: a job has at least the level that it has where every entity has its weighted part of each
// model to itself, every user an equal part of that, and, unless jobs are in turn, every job its weighted part of that. The levels above are filled until none can rise without
// lowering another. Pairs of one user's jobs, or of one entity's where two of its users may pair, raise all throughputs there by the largest factor
// that all can have on the same GPUs, and then their sum: false throughputs of pairs gain nobody GPUs. The objective is the smallest level of an
// entity by its weight. Throughputs of gangs apart are left out. Errors, jobs that run nowhere, and programs without an answer are as for Gavel.
func Nested(p Problem, w Ways) (Shares, error) {
	p.Models = slices.Clone(p.Models)
	for i := range p.Models {
		p.Models[i].Together = nil
	}
	p.Jobs = slices.Clone(p.Jobs)
	for m := range p.Jobs {
		p.Jobs[m].Apart = nil
	}
	if err := p.check(needs{entities: true}, false); err != nil {
		return Shares{}, err
	}
	if w.Blind {
		p = blind(p)
	}
	if p.Entities = slices.Clone(p.Entities); w.FIFO {
		for i := range p.Entities {
			p.Entities[i].FIFO = true
		}
	}
	d := newDivision(p, Options{Eligible: true}, false)
	err := d.nested()
	d.keep(nil)
	if err != nil {
		d.take(d.in.fixed(d.in.users()))
		d.objective = 0
	}
	s := d.shares()
	if err != nil {
		s.Why = fmt.Sprintf("fixed shares: the program has no answer: %v", err)
	}
	return s, nil
}

// users gives the entities with a job that can run: each of its users, or of its jobs.
func (g *given) users() []price.Entity {
	of := make([]price.Entity, len(g.p.Entities))
	type user struct {
		entity int
		name   string
	}
	at := map[user]int{}
	for m, j := range g.p.Jobs {
		e := &of[j.Entity]
		if e.Weight, e.FIFO = g.p.Entities[j.Entity].Weight, g.p.Entities[j.Entity].FIFO; g.top[m] == 0 {
			continue
		}
		key := user{j.Entity, j.User}
		if _, ok := at[key]; !ok {
			at[key] = len(e.Of)
			e.Of = append(e.Of, price.Entity{Weight: 1, FIFO: e.FIFO})
		}
		u := &e.Of[at[key]]
		u.Jobs = append(u.Jobs, m)
	}
	of = slices.DeleteFunc(of, func(e price.Entity) bool { return len(e.Of) == 0 })
	for i := range of {
		if e := &of[i]; len(e.Of) == 1 {
			e.Of, e.Jobs = nil, e.Of[0].Jobs
		} else {
			e.FIFO = false // its users are alike, and their jobs are in turn
		}
	}
	return of
}

// nested takes the answer of Nested.
func (d *division) nested() error {
	entities := d.in.users()
	if len(entities) == 0 {
		return nil
	}
	n := nest{whole: d, one: d.in.ones(false)}
	x, err := n.divide(entities, 1)
	if err != nil {
		return err
	}
	d.takeX(x, jobsOf(entities))
	d.pair(entities)
	throughput := d.throughputs()
	d.objective = math.Inf(1)
	for _, e := range entities {
		level := 0.0
		for _, m := range jobsOf([]price.Entity{e}) {
			level += throughput[m] / n.one[m]
		}
		d.objective = min(d.objective, level/e.Weight)
	}
	return nil
}

// nest is a nested division: throughputs of level 1 by job.
type nest struct {
	whole *division
	one   []float64
}

// divide gives the parts of the time of the entities' jobs, which have this part of all GPUs, in the order of jobsOf.
func (n *nest) divide(entities []price.Entity, part float64) ([]float64, error) {
	if len(entities) == 1 && len(entities[0].Of) > 0 {
		return n.divide(entities[0].Of, part)
	}
	var base []float64
	if e := &entities[0]; len(entities) == 1 && !e.FIFO {
		base = n.evenly(e.Jobs, part)
	} else if len(entities) > 1 {
		weights := 0.0
		for _, e := range entities {
			weights += e.Weight
		}
		for i, e := range entities {
			own, err := n.divide(entities[i:i+1], part*e.Weight/weights)
			if err != nil {
				return nil, err
			}
			base = append(base, own...)
		}
	}
	in, weight := n.instance(entities, part)
	f, err := price.FillAbove(in, weight, numbered(entities, new(int)), base)
	return f.X, err
}

// evenly gives each of some jobs its part by weight of a part of each model.
func (n *nest) evenly(jobs []int, part float64) []float64 {
	at := make(map[int]int, len(jobs))
	for i, m := range jobs {
		at[m] = i
	}
	k := len(n.whole.in.p.Models)
	x := make([]float64, len(jobs)*k)
	for _, u := range n.whole.in.even([]price.Entity{{Weight: 1, Jobs: jobs}}, part) {
		x[at[u.a]*k+u.model] = u.part
	}
	return x
}

// instance is the entities' jobs as the price solver has them.
func (n *nest) instance(entities []price.Entity, part float64) (in price.Instance, weight []float64) {
	for _, m := range n.whole.in.p.Models {
		in.GPUs = append(in.GPUs, m.GPUs*part)
	}
	for _, m := range jobsOf(entities) {
		j := &n.whole.in.p.Jobs[m]
		in.Gang, weight = append(in.Gang, float64(j.Gang)), append(weight, j.Weight)
		for _, v := range j.Speed {
			in.Speed = append(in.Speed, v/n.one[m])
		}
	}
	return in, weight
}

// jobsOf lists the jobs of entities.
func jobsOf(entities []price.Entity) (out []int) {
	for _, e := range entities {
		out = append(append(out, e.Jobs...), jobsOf(e.Of)...)
	}
	return out
}

// numbered is the entities with jobs numbered in the order of jobsOf.
func numbered(entities []price.Entity, next *int) []price.Entity {
	out := slices.Clone(entities)
	for i := range out {
		e := &out[i]
		e.Jobs = slices.Clone(e.Jobs)
		for k := range e.Jobs {
			e.Jobs[k] = *next
			*next++
		}
		e.Of = numbered(e.Of, next)
	}
	return out
}
