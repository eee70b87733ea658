package config_test

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
)

// A build without COIN-OR CLP refuses the presets that need it, and no others.
func TestPresetsThatNeedTheSolver(t *testing.T) {
	for _, preset := range policy.Presets() {
		_, err := config.Parse("f.yaml", []byte("preset: "+preset+"\nmodels: {prices: {v100: 2}}\n"), nil)
		if !policy.NeedsSolver(preset) || lp.Available {
			if err != nil {
				t.Errorf("%s: %v", preset, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), "f.yaml:1: preset: "+preset+" needs the solver COIN-OR CLP") {
			t.Errorf("%s: got %v", preset, err)
		}
	}
}
