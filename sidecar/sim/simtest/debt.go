package simtest

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// holdingTime is how long the jobs of NewHolding hold their GPUs. With a repay.floor of 50 the debt can be repaid in
// the same time, with 75 in twice as long.
const holdingTime = 48 * cluster.Hour

// HoldingDebt is the GPU time of tenant b's entitlement that tenant a uses in that time.
var HoldingDebt = cluster.Times(4, holdingTime)

// NewHolding makes a world with a debt: 16 GPUs and two equal tenants. Tenant a starts twelve
// 1-GPU jobs on the idle cluster that must not be requeued and run for holdingTime; tenant b then
// submits endless 1-GPU jobs. When NewHolding returns, those twelve have ended, tenant a has had
// 576 GPU-hours and tenant b 192, and tenant a wants all GPUs, too.
func NewHolding(t testing.TB, settings cluster.Settings) *World {
	w := New(t, settings, Nodes("n", "v100", 2, 8), "a", "b")
	for range 12 {
		w.Virtual.Submit(sim.Work{Name: "hold", User: "a_user", Account: "a", Partition: "gpu", Request: Gang(1),
			Runs: holdingTime, NoRequeue: true})
	}
	w.Run(settings.Interval)
	w.Submit("b", 40, 1, 1000*cluster.Hour)
	w.Run(holdingTime)
	w.Submit("a", 40, 1, 1000*cluster.Hour)
	return w
}

// RepaidPercent lets time pass, a number of times holdingTime, and gives the repayment to tenant b in it, in percent of
// HoldingDebt.
func (w *World) RepaidPercent(times int64) float64 {
	before, span := w.Used("b"), cluster.Span(times)*holdingTime
	w.Run(span)
	return 100 * float64(w.Used("b")-before-cluster.Times(8, span)) / float64(HoldingDebt)
}
