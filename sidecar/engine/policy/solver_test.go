package policy

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
)

// needsCLP skips a test of what only COIN-OR CLP solves.
func needsCLP(t *testing.T) {
	t.Helper()
	if !lp.Available {
		t.Skip(lp.ErrNone)
	}
}
