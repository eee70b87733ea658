package trade

import (
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// BenchmarkDecide trades between 100 tenants on 10 models, whose speedups are all different.
func BenchmarkDecide(b *testing.B) {
	var models []string
	for m := range 10 {
		models = append(models, fmt.Sprint(m))
	}
	var parties []Party
	x := uint64(1)
	uniform := func() float64 {
		x = x*6364136223846793005 + 1442695040888963407
		return float64(x>>11) / (1 << 53)
	}
	for i := range 100 {
		p := Party{Name: Name{Tenant: fmt.Sprint(i)}, Demand: 1000 * gpu}
		v := 1.0
		for range models {
			p.Speed = append([]Speed{exactly(v)}, p.Speed...)
			p.GPUs = append(p.GPUs, cluster.MicroGPU(1+uniform()*float64(8*gpu)))
			v *= 1 + uniform()*0.6
		}
		parties = append(parties, p)
	}
	for b.Loop() {
		o := Decide(models, parties, nil, rules55)
		b.ReportMetric(float64(len(o.New)), "trades")
	}
}
