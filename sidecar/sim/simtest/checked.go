package simtest

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
)

// Checked returns an engine such as a daemon has. Each of its plans is checked, and one that is wrong fails the test.
func Checked(t testing.TB) func(cluster.Snapshot) cluster.Plan {
	engine := &engine.Checked{Each: 1}
	return func(s cluster.Snapshot) cluster.Plan {
		p := engine.Decide(s)
		for _, e := range p.Events {
			if e.Kind == cluster.EventDecisionDiffers {
				t.Error(e.Text)
			}
		}
		return p
	}
}
