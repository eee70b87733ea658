package cluster_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

func TestMannersOfSaving(t *testing.T) {
	for text, want := range map[string]cluster.Saving{
		"notice": {Manner: cluster.SavesOnNotice}, "term": {Manner: cluster.SavesOnTerm}, "never": {Manner: cluster.SavesNever},
		"30m": {Manner: cluster.SavesEvery, Every: 30 * cluster.Minute}, "90": {Manner: cluster.SavesEvery, Every: 90 * cluster.Minute},
		"1-12:00:00": {Manner: cluster.SavesEvery, Every: 36 * cluster.Hour},
	} {
		if got, err := cluster.ParseSaving(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "banana", "0s", "999ms", "-5m", "366d", "periodic", "unknown"} {
		if got, err := cluster.ParseSaving(text); err == nil || got != (cluster.Saving{}) {
			t.Errorf("%q was taken for %+v", text, got)
		}
	}
}

func FuzzParseSaving(f *testing.F) {
	for _, s := range []string{"notice", "30m", "1-12:00:00", "banana", "9223372036854775807d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := cluster.ParseSaving(text)
		if (err != nil) != (s == cluster.Saving{}) || (s.Manner == cluster.SavesEvery) != (s.Every > 0) || s.Every > 365*cluster.Day {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
	})
}
