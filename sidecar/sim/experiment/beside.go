package experiment

import (
	"maps"
	"math"

	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// BesideOf converts a table to the speeds of tasks that share GPUs, in units of SpeedsOf.
func BesideOf(t *trace.Throughputs, reference string) sim.Beside {
	return BesideBy(t, reference, func(model string, own, other trace.Task) (float64, bool) {
		rate, _ := t.Beside(model, own, other)
		return rate, own.GPUs == other.GPUs
	})
}

// BesideOthers adds the pace of two jobs on one GPU that the table does not know, in percent of that alone.
func BesideOthers(b sim.Beside, percent int) sim.Beside {
	if b = maps.Clone(b); b == nil {
		b = sim.Beside{}
	}
	b[sim.Task{}] = sim.Speeds{sim.Task{}: {"": {Speed: sim.Reference * sim.Speed(percent) / 100}}}
	return b
}

// BesideBy is BesideOf with throughputs of own beside other from rate; false = unknown.
func BesideBy(t *trace.Throughputs, reference string, rate func(model string, own, other trace.Task) (float64, bool)) sim.Beside {
	out, tasks := sim.Beside{}, t.Tasks()
	for _, own := range tasks {
		for _, other := range tasks {
			for _, model := range t.Models {
				if x, ok := rate(model, own, other); ok {
					share(out, own, other, model, x/t.Alone(reference, own, false))
				}
			}
		}
	}
	return out
}

// share sets the relative speed of a task beside another.
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
