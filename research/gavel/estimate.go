package gavel

import (
	"fmt"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// Estimate gives of a table what Gavel's estimator takes jobs of one GPU for that share it (§3.3, §6), as
// experiment.BesideOf gives the truth. Each task in turn is new: what the others do, alone and beside each other, is known; it
// itself ran alone on all models, and on the profiling model beside every nth of the others. All else is estimated.
func Estimate(t *trace.Throughputs, reference, profiling string, nth int) (sim.Beside, error) {
	books := map[trace.Task]*profile.Book{} // by the task that is new
	for _, own := range t.Tasks() {
		if own.GPUs != 1 {
			continue
		}
		b, err := newcomer(t, own, profiling, nth)
		if err != nil {
			return nil, err
		}
		books[own] = b
	}
	return experiment.BesideBy(t, reference, func(model string, own, other trace.Task) (float64, bool) {
		if own.GPUs != 1 || other.GPUs != 1 {
			return 0, false
		}
		with := siteKind(other)
		if other == own {
			with = stranger
		}
		p, ok := books[own].Beside(stranger, with, model, 1)
		return p.Rate, ok
	}), nil
}

// stranger is the kind of a new task.
const stranger cluster.Kind = "new/job"

func siteKind(t trace.Task) cluster.Kind { return profile.KindOf(nil, "", "", "", t.Kind, "") }

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
