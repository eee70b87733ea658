package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
)

// The presets of papers have the papers' defaults. The file has the last word, and the status can tell what differs.
func TestDefaultsOfPapers(t *testing.T) {
	load := func(text string) *config.Config {
		t.Helper()
		c, err := config.Parse("f.yaml", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	plain := load("preset: astraea\n").Settings()
	want := plain
	want.Preset, want.JobOrder, want.Patience, want.RecallFirst, want.Threshold, want.CompactPercent, want.ScatterWait = "astraea:paper", cluster.ByRho, 0, false, 0, 0, 0
	want.BurstMaxMilli, want.RepayFloorPercent, want.StopAllowance, want.StopOverheadMilli, want.StopTotalMilli = 0, 0, 0, 0, 0
	want.StopsPerHour = cluster.StopsPerHour{}
	got := load("preset: astraea:paper\n").Settings()
	differs := got.Differs
	got.Differs = nil
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("astraea:paper (-want +got):\n%s", d)
	}
	if plain.Differs != nil || len(differs) != 11 || !slices.Contains(differs, "jobs.order: rho (not expected)") || !slices.Contains(differs, "repay.floor: 0 (not 75)") {
		t.Errorf("what differs: %q", differs)
	}
	c := load("repay: {floor: 75}\npreset: astraea:paper\njobs: {order: expected}\nburst: {max: 3}\n")
	s := c.Settings()
	if s.RepayFloorPercent != 75 || s.JobOrder != cluster.ByExpected || s.Patience == 0 || s.BurstMaxMilli != 3000 || s.RecallFirst {
		t.Errorf("the file has not the last word: %+v", s)
	}
	if has := func(key string) bool { return strings.Contains(strings.Join(s.Differs, ","), key) }; has("repay.floor") || has("jobs.order") || !has("burst.max: 3 (not 2)") || len(s.Differs) != 9 {
		t.Errorf("what differs: %q", s.Differs)
	}
	for key, want := range map[string]string{"repay.floor": "f.yaml:1", "recall.first_lease": "preset astraea:paper", "credit.cap": "default"} {
		if got := c.Origin(key).String(); got != want {
			t.Errorf("%s comes from %s, want %s", key, got, want)
		}
	}
	s = load("preset: gandiva-fair:paper\n").Settings()
	if s.Divide != preset.GandivaFair || s.Mechanism != cluster.ByStride || s.StopAllowance != 0 || s.NewFirst || !slices.Contains(s.Differs, "models.chooser: paper (not nearest)") {
		t.Errorf("gandiva-fair:paper: %+v", s)
	}
	if s = load("preset: gandiva-fair:paper\nmodels: {chooser: nearest}\n").Settings(); s.Mechanism != cluster.Nearest {
		t.Errorf("models.chooser of the file is ignored: %s", s.Mechanism)
	}
	if _, err := config.Parse("f.yaml", []byte("preset: gavel:las:paper\n"), nil); err == nil || !strings.Contains(err.Error(), "astraea:paper") {
		t.Errorf("a preset without such defaults: %v", err)
	}
}

// A schedule that changes the preset changes the defaults with it, in both directions.
func TestSchedulesChangeDefaultsOfPapers(t *testing.T) {
	for _, x := range []struct {
		file, set string
		floor     int
		rho       bool
	}{{"preset: astraea", "{preset: \"astraea:paper\"}", 0, true}, {"preset: astraea:paper", "{preset: astraea}", 75, false},
		{"preset: astraea:paper", "{preset: astraea, repay: {floor: 20}}", 20, false}, {"repay: {floor: 30}\npreset: astraea", "{preset: \"astraea:paper\"}", 30, true},
		{"preset: astraea:paper", "{lease: {term: 1h}}", 0, true}} {
		c, err := config.Parse("f.yaml", []byte(x.file+"\nschedules: [{name: night, at: \"0 20 * * *\", for: 1h, set: "+x.set+"}]\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, with := range c.Scheduled() {
			if s := with.Settings(); s.RepayFloorPercent != x.floor || (s.JobOrder == cluster.ByRho) != x.rho {
				t.Errorf("%s, %s: repay.floor %d, order %q", x.file, x.set, s.RepayFloorPercent, s.JobOrder)
			}
		}
	}
}
