package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
	"github.com/fairlease/fairlease/sidecar/show/failure"
)

// In a build without COIN-OR CLP the check, the doctor and the daemon refuse a preset that needs it.
func TestABuildWithoutCLPRefusesPresetsThatNeedIt(t *testing.T) {
	if lp.Available {
		t.Skip("this build has COIN-OR CLP")
	}
	file := filepath.Join(t.TempDir(), "fairlease.yaml")
	write(t, file, "preset: oef:coop\n")
	for command, code := range map[string]int{"config check": failure.Misuse, "doctor": failure.No, "serve": failure.Misuse} {
		r := run(t, time.Time{}, nil, append([]string{"-c", file}, strings.Fields(command)...)...)
		if said := strings.Join(strings.Fields(r.out+r.err), " "); r.code != code || !strings.Contains(said, "needs the solver COIN-OR CLP") {
			t.Errorf("%s: exit code %d, want %d\n%s%s", command, r.code, code, r.out, r.err)
		}
	}
}
