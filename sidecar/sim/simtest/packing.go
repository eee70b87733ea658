package simtest

import (
	"fmt"

	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// splitMix is SplitMix64, which gives equal numbers in every language.
type splitMix uint64

func (s *splitMix) next() uint64 {
	*s += 0x9E3779B97F4A7C15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// unit gives a number in [0, 1).
func (s *splitMix) unit() float64 { return float64(s.next()>>11) / (1 << 53) }

// Packing is n one-GPU jobs of the 26 kinds that Gavel's authors measured, with a GPU of each
// model for every eight jobs, and every pair that can share a GPU. Alike jobs have weight 1; else
// each has its own weight in [0.5, 2), so that no two are equal.
func Packing(t *trace.Throughputs, n int, alike bool) (policy.Problem, error) {
	var p policy.Problem
	for _, m := range t.Models {
		p.Models = append(p.Models, policy.Model{Name: m, GPUs: float64((n + 7) / 8)})
	}
	var kinds []trace.Task
	for _, task := range t.Tasks() {
		if task.GPUs == 1 {
			kinds = append(kinds, task)
		}
	}
	if len(kinds) == 0 {
		return p, fmt.Errorf("no kind of work with one GPU in the table")
	}
	random := splitMix(40 + n)
	kind := make([]trace.Task, n)
	for m := range kind {
		kind[m] = kinds[random.next()%uint64(len(kinds))]
		j := policy.Job{ID: int64(1 + m), Gang: 1, Weight: 1}
		if !alike {
			j.Weight = .5 + 1.5*random.unit()
		}
		for _, model := range t.Models {
			j.Speed = append(j.Speed, t.Alone(model, kind[m], false))
		}
		p.Jobs = append(p.Jobs, j)
	}
	k := len(t.Models)
	for b := range kind {
		for a := range b {
			q := policy.Pair{A: a, B: b, SpeedA: make([]float64, k), SpeedB: make([]float64, k)}
			runs := false
			for i, model := range t.Models {
				q.SpeedA[i], q.SpeedB[i] = t.Beside(model, kind[a], kind[b])
				if p.Jobs[a].Speed[i] == 0 || p.Jobs[b].Speed[i] == 0 {
					q.SpeedA[i], q.SpeedB[i] = 0, 0
				}
				runs = runs || q.SpeedA[i] > 0 && q.SpeedB[i] > 0
			}
			if runs {
				p.Pairs = append(p.Pairs, q)
			}
		}
	}
	return p, nil
}
