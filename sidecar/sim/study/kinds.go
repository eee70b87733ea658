package study

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
)

// kindOf is what a job of a kind says of itself.
func kindOf(kind string) string {
	if kind == "" {
		return ""
	}
	return "kind=" + profile.KindOf(nil, "", "", "", kind).Name()
}

// profiles is what is declared of every task.
func (s *Setup) profiles() []cluster.Profile {
	var out []cluster.Profile
	speeds := s.Declared
	if speeds == nil {
		speeds = s.Speeds
	}
	for task, rates := range speeds {
		for model, rate := range rates {
			if task.Kind == "" || rate.Speed <= 0 {
				continue
			}
			out = append(out, cluster.Profile{Kind: profile.KindOf(nil, "", "", "", task.Kind), Model: model,
				Gang: max(task.GPUs, 1), Rate: float64(rate.Speed) / 1e6, Source: cluster.Declared})
		}
	}
	slices.SortFunc(out, func(a, b cluster.Profile) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Gang, b.Gang))
	})
	return out
}
