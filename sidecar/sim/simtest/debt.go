package simtest

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// NewHolding makes the world of a debt: 16 GPUs and two equal tenants. Tenant a starts twelve 1-GPU jobs on the idle cluster
// that must not be requeued and run for 48 h; tenant b then submits 1-GPU jobs without end. After 48 h tenant a has had
// 576 GPU-hours and tenant b 192.
func NewHolding(t testing.TB, settings cluster.Settings) *World {
	w := New(t, settings, Nodes("n", "v100", 2, 8), "a", "b")
	for range 12 {
		w.Virtual.Submit(sim.Work{Name: "hold", User: "a_user", Account: "a", Partition: "gpu", Request: Gang(1),
			Runs: 48 * cluster.Hour, NoRequeue: true})
	}
	w.Run(settings.Interval)
	w.Submit("b", 40, 1, 1000*cluster.Hour)
	return w
}
