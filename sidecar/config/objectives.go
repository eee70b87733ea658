package config

import "github.com/fairlease/fairlease/sidecar/cluster/objective"

// Objectives are what the site promises itself: the part of events that should be good, in percent.
type Objectives struct {
	FirstLease FirstLease `yaml:"first_lease"`
	GPUs       Objective  `yaml:"gpus"`
	Rounds     Objective  `yaml:"rounds"`
}

// Objective is a promise with a target in percent.
type Objective struct {
	Target float64 `yaml:"target"`
}

// FirstLease is the promise that jobs wait at most so long for their first lease.
type FirstLease struct {
	Within Duration `yaml:"within"`
	Target float64  `yaml:"target"`
}

// Targets gives the objectives by name.
func (o *Objectives) Targets() objective.Targets {
	return objective.Targets{Within: o.FirstLease.Within.Span(),
		Percent: map[objective.Name]float64{objective.FirstLease: o.FirstLease.Target, objective.GPUs: o.GPUs.Target, objective.Rounds: o.Rounds.Target}}
}

func (k *checker) objectives() {
	o := &k.c.Objectives
	k.must(o.FirstLease.Within > 0, "objectives.first_lease.within", "must be above 0s, got %v", o.FirstLease.Within)
	targets := o.Targets()
	for _, name := range objective.Names {
		target := targets.Percent[name]
		k.must(target >= 50 && target < 100, "objectives."+string(name)+".target", "must be at least 50 and below 100 percent, got %v", target)
	}
}
