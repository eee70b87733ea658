package price_test

import (
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/engine/policy/price"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

func BenchmarkMaxMin(b *testing.B) {
	for _, k := range []int{3, 8} {
		for _, n := range []int{2048, 8192, 50_000} {
			b.Run(fmt.Sprintf("%dx%d", n, k), func(b *testing.B) {
				in := simtest.Weighted(simtest.Scarce(n, k))
				for b.Loop() {
					got, err := price.MaxMin(in)
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(got.Rounds), "rounds")
				}
			})
		}
	}
}

func BenchmarkFill(b *testing.B) {
	for _, k := range []int{3, 8} {
		in, weight := simtest.Scarce(2048, k)
		for name, entities := range map[string][]price.Entity{"flat": nil, "fair": simtest.Teams(2048, 0), "fifo": simtest.Teams(2048, 32), "mixed": simtest.Teams(2048, 16)} {
			b.Run(fmt.Sprintf("2048x%d%s", k, name), func(b *testing.B) {
				for b.Loop() {
					got, err := price.Fill(in, weight, entities)
					if err != nil || got.Short {
						b.Fatal(err, got.Short)
					}
					b.ReportMetric(float64(got.Rounds), "rounds")
					b.ReportMetric(float64(got.Phases), "phases")
				}
			})
		}
	}
}

func BenchmarkEqualThroughput(b *testing.B) {
	gpus, speedup := simtest.Tenants(1000, 10)
	for b.Loop() {
		if _, err := price.EqualThroughput(gpus, ones(1000), speedup); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEqualAtSize(b *testing.B) {
	for _, n := range []int{10_000, 50_000} {
		gpus, speedup := simtest.Tenants(n, 10)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := price.EqualThroughput(gpus, ones(n), speedup); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
