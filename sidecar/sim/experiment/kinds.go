package experiment

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// kindOf is the comment of a job of a kind.
func kindOf(kind string) string {
	if kind == "" {
		return ""
	}
	return "kind=" + profile.KindOf(nil, "", "", "", kind, "").Name()
}

// profiles declares every task; rates for any gang are declared for the gangs in the load.
func (s *Setup) profiles() []cluster.Profile {
	var out []cluster.Profile
	speeds := s.Declared
	if speeds == nil {
		speeds = s.Speeds
	}
	all := map[int]bool{1: true}
	for j := range s.Load.Jobs {
		all[j.GPUs] = true
	}
	for task, rates := range speeds {
		gangs := []int{task.GPUs}
		if task.GPUs == 0 {
			gangs = slices.DeleteFunc(slices.Collect(maps.Keys(all)), func(gang int) bool {
				_, own := speeds[sim.Task{Kind: task.Kind, GPUs: gang}]
				return own
			})
		}
		for model, rate := range rates {
			if task.Kind == "" || rate.Speed <= 0 {
				continue
			}
			for _, gang := range gangs {
				out = append(out, cluster.Profile{Kind: profile.KindOf(nil, "", "", "", task.Kind, ""), Model: model,
					Gang: gang, Rate: float64(rate.Speed) / 1e6, Source: cluster.Declared})
				for with, speed := range map[cluster.Kind]sim.Speed{cluster.Scattered: rate.Apart, cluster.AcrossSwitches: rate.Across} { // sorted below
					if s.Settings.ScatterWait > 0 && gang > 1 && speed > 0 {
						out = append(out, cluster.Profile{Kind: profile.KindOf(nil, "", "", "", task.Kind, ""), With: with, Model: model,
							Gang: gang, Rate: min(float64(speed)/float64(rate.Speed), 1), Relative: true, Source: cluster.Declared})
					}
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b cluster.Profile) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.With, b.With), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Gang, b.Gang))
	})
	return out
}
