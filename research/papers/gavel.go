package papers

import "github.com/fairlease/fairlease/sidecar/sim/baseline"

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy"
)

// gavelPrefix starts the names of schedulers with a policy and the mechanism of Gavel.
const gavelPrefix = "gavel:"

// unmodelled ends the names of policies that treat all models alike.
const unmodelled = "-blind"

// spaceSharing ends the names of policies under which pairs of jobs may share GPUs.
const spaceSharing = "+ss"

// seeing is a policy of Gavel's.
func seeing(name string) divider {
	return func(p policy.Problem) (policy.Shares, error) { return policy.Gavel(name, p, policy.Options{}) }
}

// blind is a policy that treats all models alike.
func blind(name string) divider {
	return func(p policy.Problem) (policy.Shares, error) { return alike(name, p) }
}

// alike divides with a policy as if all GPUs were of one model (§4.1: X_m a scalar). A job
// spreads its time over all its models in proportion to their GPUs.
func alike(name string, p policy.Problem) (policy.Shares, error) {
	one := policy.Problem{Models: []policy.Model{{Name: baseline.AnyModel, Price: 1}}, Jobs: slices.Clone(p.Jobs), Entities: p.Entities}
	for _, m := range p.Models {
		one.Models[0].GPUs += m.GPUs
	}
	for k := range one.Jobs {
		one.Jobs[k].Speed = []float64{slices.Max(p.Jobs[k].Speed)}
	}
	out, err := policy.Gavel(name, one, policy.Options{})
	if err != nil {
		return out, err
	}
	for k, t := range out.Time {
		gpus := 0.0
		for i, m := range p.Models {
			if p.Jobs[k].Speed[i] > 0 {
				gpus += m.GPUs
			}
		}
		out.Time[k] = make([]float64, len(p.Models))
		for i, m := range p.Models {
			if p.Jobs[k].Speed[i] > 0 {
				out.Time[k][i] = t[0] * m.GPUs / gpus
			}
		}
	}
	return out, nil
}

// greedy is first come, first served on heterogeneous GPUs: the first job gets its fastest model,
// each later one its fastest model with enough GPUs left. A job that finds none blocks all later
// ones. Jobs move up as faster GPUs become free.
func greedy(p policy.Problem) (policy.Shares, error) {
	out := policy.Shares{Time: make([][]float64, len(p.Jobs))}
	left := make([]float64, len(p.Models))
	for i := range p.Models {
		left[i] = p.Models[i].GPUs
	}
	blocked := false
	for k := range p.Jobs {
		j := &p.Jobs[k]
		out.Time[k] = make([]float64, len(p.Models))
		best := -1
		for i, v := range j.Speed {
			if v > 0 && left[i] >= float64(j.Gang) && (best < 0 || v > j.Speed[best]) {
				best = i
			}
		}
		if blocked = blocked || best < 0; !blocked {
			out.Time[k][best] = 1
			left[best] -= float64(j.Gang)
		}
	}
	return out, nil
}

// newAtRandom makes first come, first served where a job keeps its first GPUs until it ends:
// those of a random model with enough idle ones. No job overtakes.
func newAtRandom(o baseline.Options) rule {
	m := &mechanism{told: o}
	return func(r *round) {
		r.Hold()
		for k := range r.Jobs {
			j := &r.Jobs[k]
			if j.Lease != nil {
				continue
			}
			var pools []int
			for _, p := range j.Pools {
				if r.Board.Idle(p) >= j.GPUs && m.speed(r, j, p) > 0 {
					pools = append(pools, p)
				}
			}
			if len(pools) == 0 {
				return
			}
			at := pools[rand.New(rand.NewPCG(uint64(r.Field.In.Records[j.Case].Key), 0)).IntN(len(pools))]
			if r.Start(j, 0, func(p int) bool { return p == at }) < 0 {
				return
			}
		}
	}
}

// settled is the FIFO without models as Gavel's evaluation ran it: the behaviour of the authors'
// code (policies/fifo.py of their repository), which differs from its description. A job keeps
// its first model until it ends. The first waiting job takes the place of an ended one. Otherwise
// the code draws a random model with enough idle GPUs, but then ignores it: the job gets the open
// model with the last name, even without enough GPUs. When a model's last GPU is taken, the drawn
// model counts as closed until the next look. So sometimes more jobs have a model than it has
// GPUs and alternate by Gavel's rounds, while GPUs of other models stay idle.
type settled struct {
	on  map[int64]int // models of jobs that have one
	lot *rand.Rand
}

func newSettled(o baseline.Options) rule {
	s := &settled{on: map[int64]int{}, lot: rand.New(rand.NewPCG(1, 0))}
	return newMechanism(s.divide, nil)(o)
}

func (s *settled) divide(p policy.Problem) (policy.Shares, error) {
	left, at := make([]int, len(p.Models)), map[int64]int{}
	for m := range left {
		left[m] = int(p.Models[m].GPUs)
	}
	var queue []*policy.Job
	for k := range p.Jobs {
		at[p.Jobs[k].ID] = k
		if _, ok := s.on[p.Jobs[k].ID]; !ok {
			queue = append(queue, &p.Jobs[k])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.on)) {
		m := s.on[id]
		if k, ok := at[id]; ok {
			left[m] -= p.Jobs[k].Gang
			continue
		}
		if delete(s.on, id); len(queue) > 0 && queue[0].Gang <= left[m] && queue[0].Speed[m] > 0 {
			s.on[queue[0].ID], left[m], queue = m, left[m]-queue[0].Gang, queue[1:]
		}
	}
	s.start(p.Models, left, queue)
	out := policy.Shares{Time: make([][]float64, len(p.Jobs))}
	for k := range p.Jobs {
		out.Time[k] = make([]float64, len(p.Models))
		if m, ok := s.on[p.Jobs[k].ID]; ok {
			out.Time[k][m] = 1
		}
	}
	return out, nil
}

// start assigns models to waiting jobs, in order: the last by name among the open ones on which
// they run. Jobs that run on none are skipped.
func (s *settled) start(models []policy.Model, left []int, queue []*policy.Job) {
	var open []int
	for m := range models {
		if left[m] > 0 {
			open = append(open, m)
		}
	}
	slices.SortFunc(open, func(a, b int) int { return cmp.Compare(models[a].Name, models[b].Name) })
	for _, j := range queue {
		var enough []int // subset of open
		for i, m := range open {
			if left[m] >= j.Gang {
				enough = append(enough, i)
			}
		}
		if len(enough) == 0 {
			return
		}
		drawn, m := enough[s.lot.IntN(len(enough))], -1
		for _, o := range open {
			if j.Speed[o] > 0 {
				m = o
			}
		}
		if m < 0 {
			continue
		}
		s.on[j.ID] = m
		if left[m] -= j.Gang; left[m] == 0 {
			open = slices.Delete(open, drawn, drawn+1)
		}
	}
}
