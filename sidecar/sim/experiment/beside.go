package experiment

import (
	"fmt"
	"math"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// BesideOf makes of a table how fast tasks are that share GPUs, in multiples as SpeedsOf.
func BesideOf(t *trace.Throughputs, reference string) sim.Beside {
	out, tasks := sim.Beside{}, t.Tasks()
	for _, own := range tasks {
		for _, other := range tasks {
			for _, model := range t.Models {
				if rate, _ := t.Beside(model, own, other); own.GPUs == other.GPUs {
					share(out, own, other, model, rate/t.Alone(reference, own, false))
				}
			}
		}
	}
	return out
}

// share sets how fast a task is beside another, as a multiple.
func share(b sim.Beside, own, other trace.Task, model string, times float64) {
	speed := sim.Speed(math.Round(times * float64(sim.Reference)))
	if !(times < math.MaxInt32) || speed <= sim.Halt { // it does not run on the reference model, or not at all
		return
	}
	of, by := sim.Task{Kind: own.Kind, GPUs: own.GPUs}, sim.Task{Kind: other.Kind, GPUs: other.GPUs}
	if b[by] == nil {
		b[by] = sim.Speeds{}
	}
	if b[by][of] == nil {
		b[by][of] = map[string]sim.Rate{}
	}
	b[by][of][model] = sim.Rate{Speed: speed}
}

// Estimate gives of a table what Gavel's estimator takes jobs of one GPU for that share it (§3.3, §6), as BesideOf
// gives the truth. Each task in turn is new: what the others do, alone and beside each other, is known; it itself
// ran alone on all models, and on the profiling model beside every nth of the others. All else is estimated.
func Estimate(t *trace.Throughputs, reference, profiling string, nth int) (sim.Beside, error) {
	out := sim.Beside{}
	for _, own := range t.Tasks() {
		if own.GPUs != 1 {
			continue
		}
		b, err := newcomer(t, own, profiling, nth)
		if err != nil {
			return nil, err
		}
		for _, other := range t.Tasks() {
			if other.GPUs != 1 {
				continue
			}
			with := siteKind(other)
			if other == own {
				with = stranger
			}
			for _, model := range t.Models {
				if p, ok := b.Beside(stranger, with, model, 1); ok {
					share(out, own, other, model, p.Rate/t.Alone(reference, own, false))
				}
			}
		}
	}
	return out, nil
}

// stranger is the kind of a new task.
const stranger cluster.Kind = "new/job"

func siteKind(t trace.Task) cluster.Kind { return profile.KindOf(nil, "", "", "", t.Kind) }

// newcomer gives the book of Estimate for a new task.
func newcomer(t *trace.Throughputs, own trace.Task, profiling string, nth int) (*profile.Book, error) {
	b := profile.New(profile.Default(), nil, nil)
	for _, model := range t.Models {
		met := 0
		for _, one := range t.Tasks() {
			if one.GPUs != 1 {
				continue
			}
			p := cluster.Profile{Kind: siteKind(one), Model: model, Gang: 1, Rate: t.Alone(model, one, false), Basis: profile.File}
			if one == own {
				p.Kind, p.Basis = stranger, "job"
			}
			if err := b.Declare(p); err != nil {
				return nil, fmt.Errorf("%s on %s: %w", one, model, err)
			}
			for _, other := range t.Tasks() {
				if other.GPUs != 1 || other == own {
					continue
				}
				if one == own {
					if met++; model != profiling || met%nth != 0 {
						continue
					}
				}
				p.With = siteKind(other)
				p.Rate, _ = t.Beside(model, one, other)
				if err := b.Declare(p); err != nil {
					return nil, fmt.Errorf("%s beside %s on %s: %w", one, other, model, err)
				}
			}
		}
	}
	return b, nil
}
