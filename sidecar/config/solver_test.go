package config_test

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
)

// A build without COIN-OR CLP refuses the presets that need it, and no others.
func TestPresetsThatNeedTheSolver(t *testing.T) {
	for _, row := range preset.All() {
		if row.Cells {
			continue // it needs a file that describes them
		}
		_, err := config.Parse("f.yaml", []byte("preset: "+row.Name+"\nmodels: {prices: {v100: 2}}\n"), nil)
		if !row.Solver || lp.Available {
			if err != nil {
				t.Errorf("%s: %v", row.Name, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), "f.yaml:1: preset: "+row.Name+" needs the solver COIN-OR CLP") {
			t.Errorf("%s: got %v", row.Name, err)
		}
	}
}
