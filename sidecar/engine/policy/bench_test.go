package policy_test

import (
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

func BenchmarkPacking(b *testing.B) {
	table, err := trace.OpenThroughputs("../../sim/trace/testdata/gavel/simulation_throughputs.json.gz")
	if err != nil {
		b.Fatal(err)
	}
	for name, alike := range map[string]bool{"alike": true, "different": false} {
		p, err := simtest.Packing(table, 512, alike)
		if err != nil {
			b.Fatal(err)
		}
		for _, whole := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/whole=%v", name, whole), func(b *testing.B) {
				for b.Loop() {
					s, err := policy.Gavel("las", p, policy.Options{Whole: whole})
					if err != nil || s.Why != "" {
						b.Fatal(err, s.Why)
					}
					b.ReportMetric(s.Objective, "level")
				}
				b.ReportMetric(float64(len(p.Pairs)), "pairs")
			})
		}
	}
}
