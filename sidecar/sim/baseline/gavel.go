package baseline

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
)

// gavelPrefix begins the names of the schedulers that run a policy of Gavel's by its mechanism.
const gavelPrefix = "gavel:"

// unmodelled ends the names of those for which all models are alike.
const unmodelled = "-blind"

// spaceSharing ends the names of those under which pairs of jobs may share GPUs.
const spaceSharing = "+ss"

// gavel gives the scheduler that runs a policy by Gavel's mechanism, by its name.
func gavel(name string) []rival {
	objective, sharing := strings.CutSuffix(strings.TrimPrefix(name, gavelPrefix), spaceSharing)
	seeing, blind := strings.CutSuffix(objective, unmodelled)
	var pairs func() pairer
	if sharing {
		pairs = func() pairer { return everyPair }
	}
	return []rival{{name, true, newMechanism(func(p policy.Problem) (policy.Shares, error) {
		if blind {
			return alike(seeing, p)
		}
		return policy.Gavel(objective, p, policy.Options{})
	}, pairs)}}
}

// alike divides with a policy for which all GPUs are of one model (§4.1: X_m a scalar). A job has its
// part of the time on every model on which it runs, as that has GPUs.
func alike(name string, p policy.Problem) (policy.Shares, error) {
	one := policy.Problem{Models: []policy.Model{{Name: anyModel, Price: 1}}, Jobs: slices.Clone(p.Jobs), Entities: p.Entities}
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

// greedy is first come, first served on unlike models: the first has the model on which it is fastest, each
// after it the one on which it is fastest of those that have enough GPUs left. Nobody overtakes one who finds
// none. Jobs move up as faster GPUs become free.
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

// newSettled makes first come, first served where a job keeps the GPUs with which it starts to its end: those of one of
// the models that have enough idle then, as pick chooses by how fast the jobs that are there are on each, taken together. Nobody
// minds how fast the job itself is, and nobody overtakes.
func newSettled(pick func(key cluster.JobKey, speed []float64) int) func(Options) chooser {
	return func(o Options) chooser {
		m := &mechanism{told: o}
		return func(r *round) {
			r.hold()
			all := make([]float64, r.pools)
			for k := range r.jobs {
				for p := range all {
					all[p] += m.speed(r, &r.jobs[k], p)
				}
			}
			for k := range r.jobs {
				j := &r.jobs[k]
				if j.lease != nil {
					continue
				}
				var pools []int
				var speed []float64
				for _, p := range j.Pools {
					if r.board.Idle(p) >= j.GPUs && m.speed(r, j, p) > 0 {
						pools, speed = append(pools, p), append(speed, all[p])
					}
				}
				if len(pools) == 0 {
					return
				}
				at := pools[pick(r.Records[j.at].Key, speed)]
				if r.start(j, 0, func(p int) bool { return p == at }) < 0 {
					return
				}
			}
		}
	}
}

// atRandom draws by lot.
func atRandom(key cluster.JobKey, speed []float64) int {
	return rand.New(rand.NewPCG(uint64(key), 0)).IntN(len(speed))
}

// fastest takes the fastest.
func fastest(_ cluster.JobKey, speed []float64) int { return slices.Index(speed, slices.Max(speed)) }
