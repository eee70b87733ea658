package study

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
)

// Schedulers lists the schedulers without virtual clusters, in the order in which tables show
// them, Cellular those with.
func Schedulers() []string { return baseline.Names() }

// Cellular lists the schedulers with virtual clusters.
func Cellular() []string { return baseline.Cellular() }

// scheduler makes the setup's scheduler, for one run. runs tells what only a simulator
// knows: how long a job will run.
func (s *Setup) scheduler(runs func(*cluster.Job) cluster.Span) (baseline.Scheduler, error) {
	return baseline.New(s.Scheduler, baseline.Options{Mixed: s.Mixed, Brief: true, Runs: runs})
}
