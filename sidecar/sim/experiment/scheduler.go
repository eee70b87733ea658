package experiment

import (
	"cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
)

// Schedulers lists the schedulers without virtual clusters, in the order of tables; Cellular
// those with them.
func Schedulers() []string { return baseline.Names() }

// Cellular lists the schedulers with virtual clusters.
func Cellular() []string { return baseline.Cellular() }

// Untold lists the baselines that are not told how long jobs run.
func Untold() []string { return baseline.Untold() }

// Heterogeneous lists the schedulers for heterogeneous GPUs.
func Heterogeneous() []string { return baseline.Heterogeneous() }

// scheduler makes the setup's scheduler for one run on a virtual cluster. It provides what only a
// simulator knows: jobs' run times, and their speeds by model.
func (s *Setup) scheduler(v *sim.Virtual, runs func(*cluster.Job) cluster.Span) (baseline.Scheduler, error) {
	o := baseline.Options{Mixed: s.Mixed, Brief: true, Runs: runs, Prices: s.Prices,
		Within: func(j *cluster.Job) cluster.Span { return s.Within[j.Name] },
		Left:   func(j *cluster.Job) cluster.Span { return v.Left(j.ID) },
		Speed:  func(j *cluster.Job, model string) float64 { return times(v.Speed(j.ID, model)) },
	}
	if s.Weighs != nil {
		o.Weight = func(j *cluster.Job) float64 { return cmp.Or(s.Weighs[j.Name], 1) }
	}
	if s.Beside != nil {
		o.Share = v.Share
		o.Beside = func(j, other *cluster.Job, model string, met bool) (float64, float64) {
			of := s.Beside
			if s.Expected != nil && !met {
				of = s.Expected
			}
			own, its := v.Together(of, j.ID, other.ID, model)
			return times(own), times(its)
		}
	}
	return baseline.New(s.Scheduler, o)
}

// times gives a speed relative to the reference model; 0 = the work does not run.
func times(s sim.Speed) float64 {
	if s == sim.Halt {
		return 0
	}
	return float64(s) / float64(sim.Reference)
}

// Dividing lists the product's presets for heterogeneous GPUs.
func Dividing() []string { return baseline.Dividing() }
