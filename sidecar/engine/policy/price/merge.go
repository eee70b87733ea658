package price

import "slices"

// merged is an instance of Fill whose jobs are groups of equal ones.
type merged struct {
	in       Instance
	weight   []float64
	floor    []float64 // nil = all 0
	entities []Entity
	like     []int // by job: its group
}

// merge makes one job of those of an entity with the same speeds, weight and floor, unless they are in turn. Its GPUs and its level are
// the sums of theirs. Nothing is lost: such jobs stand equally high, so the mean of their ways, by gang, takes each of them
// there on the same GPUs.
func merge(in Instance, weight, floor []float64, entities []Entity) *merged {
	k, n := len(in.GPUs), len(in.Gang)
	floors := floor
	if floor == nil {
		floors = make([]float64, n)
	}
	of, turn := make([]float64, n), make([]float64, n)
	apart(entities, of, turn, new(float64))
	var rows []float64
	for m := range n {
		rows = append(append(rows, in.Speed[m*k:(m+1)*k]...), weight[m], floors[m], of[m], turn[m])
	}
	like, gang, _ := group(k+4, in.Gang, rows)
	out := &merged{in: Instance{GPUs: in.GPUs, Gang: gang, Speed: make([]float64, len(gang)*k)}, like: like,
		weight: make([]float64, len(gang))}
	if floor != nil {
		out.floor = make([]float64, len(gang))
	}
	for m, g := range like {
		out.weight[g] += weight[m]
		for j, v := range in.Speed[m*k : (m+1)*k] {
			out.in.Speed[g*k+j] += v
		}
		if floor != nil {
			out.floor[g] += floor[m]
		}
	}
	out.entities = out.groups(entities, make([]bool, len(gang)))
	return out
}

// apart numbers the entities that have jobs, and the turns of jobs that are in turn.
func apart(entities []Entity, of, turn []float64, next *float64) {
	for _, e := range entities {
		*next++
		for at, m := range e.Jobs {
			if of[m] = *next; e.FIFO {
				turn[m] = float64(at)
			}
		}
		apart(e.Of, of, turn, next)
	}
}

// groups gives entities of groups for those of jobs; met are those that it has been to.
func (g *merged) groups(entities []Entity, met []bool) []Entity {
	out := slices.Clone(entities)
	for i, e := range entities {
		out[i].Jobs, out[i].Of = nil, g.groups(e.Of, met)
		for _, m := range e.Jobs {
			if at := g.like[m]; !met[at] {
				met[at] = true
				out[i].Jobs = append(out[i].Jobs, at)
			}
		}
	}
	return out
}

// split gives each job the part of the time that its group has.
func (g *merged) split(x []float64) []float64 {
	k := len(g.in.GPUs)
	out := make([]float64, 0, len(g.like)*k)
	for _, at := range g.like {
		out = append(out, x[at*k:(at+1)*k]...)
	}
	return out
}
