package config

import (
	"fmt"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// ParseSaving reads how a job saves: notice, term, never, or the interval between two saves, like 30m.
func ParseSaving(text string) (cluster.Saving, error) {
	switch m := cluster.Manner(text); m {
	case cluster.SavesOnNotice, cluster.SavesOnTerm, cluster.SavesNever:
		return cluster.Saving{Manner: m}, nil
	}
	every, err := ParseDuration(text)
	if err != nil || every.Span() < cluster.Second {
		return cluster.Saving{}, fmt.Errorf("%q says nothing of when a job saves; write notice, term, never, or an interval like 30m", text)
	}
	return cluster.Saving{Manner: cluster.SavesEvery, Every: every.Span()}, nil
}
