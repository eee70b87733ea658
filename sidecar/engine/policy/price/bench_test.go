package price

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// splitMix is SplitMix64.
type splitMix uint64

func (s *splitMix) next() uint64 {
	*s += 0x9E3779B97F4A7C15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

func (s *splitMix) unit() float64 { return float64(s.next()>>11) / (1 << 53) }

// scarce is n jobs of gangs of 1 to 8 and weights 1 to 4 over k models with GPUs for a quarter
// of one a job. Each throughput is its own, so that no two jobs are alike and no order of
// models serves all.
func scarce(n, k int) (in Instance, weight []float64) {
	s := splitMix(9000 + n)
	in.GPUs = make([]float64, k)
	parts := make([]float64, k)
	sum := 0.0
	for j := range parts {
		parts[j] = float64(1 + s.next()%4)
		sum += parts[j]
	}
	for j := range parts {
		in.GPUs[j] = math.Ceil(.25 * float64(n) * parts[j] / sum)
	}
	row := make([]float64, k)
	for range n {
		gang := float64(1 + s.next()%8)
		weight = append(weight, float64(1+s.next()%4))
		equal := 0.0
		for j := range row {
			row[j] = 1 + 9*s.unit()
			equal += row[j] * parts[j] / sum
		}
		in.Gang = append(in.Gang, gang)
		for _, v := range row {
			in.Speed = append(in.Speed, gang*v/equal)
		}
	}
	return in, weight
}

func BenchmarkMaxMin(b *testing.B) {
	for _, k := range []int{3, 8} {
		for _, n := range []int{2048, 8192, 50_000} {
			b.Run(fmt.Sprintf("%dx%d", n, k), func(b *testing.B) {
				in := weighted(scarce(n, k))
				var got Answer
				least := time.Hour
				for b.Loop() {
					begin := time.Now()
					var err error
					if got, err = MaxMin(in); err != nil {
						b.Fatal(err)
					}
					least = min(least, time.Since(begin))
				}
				b.ReportMetric(least.Seconds()*1e3, "least-ms")
				b.ReportMetric(float64(got.Rounds), "rounds")
				b.ReportMetric((got.High-got.Low)/got.High, "gap")
			})
		}
	}
}

// teams puts jobs into 32 entities of weights 1 to 4: fair, FIFO, or one like the other.
func teams(n int, kind string) []Entity {
	s := splitMix(n)
	out := make([]Entity, 32)
	for i := range out {
		out[i].Weight = float64(1 + s.next()%4)
		out[i].FIFO = kind == "fifo" || kind == "mixed" && i%2 == 1
	}
	for m := range n {
		i := s.next() % 32
		out[i].Jobs = append(out[i].Jobs, m)
	}
	return out
}

func BenchmarkFill(b *testing.B) {
	for _, k := range []int{3, 8} {
		for _, kind := range []string{"flat", "fair", "fifo", "mixed"} {
			b.Run(fmt.Sprintf("2048x%d%s", k, kind), func(b *testing.B) {
				in, weight := scarce(2048, k)
				var entities []Entity
				if kind != "flat" {
					entities = teams(2048, kind)
				}
				var got Filling
				least := time.Hour
				for b.Loop() {
					begin := time.Now()
					var err error
					if got, err = Fill(in, weight, entities); err != nil {
						b.Fatal(err)
					}
					least = min(least, time.Since(begin))
				}
				b.ReportMetric(least.Seconds()*1e3, "least-ms")
				b.ReportMetric(float64(got.Rounds), "rounds")
				b.ReportMetric(float64(got.Phases), "phases")
				if got.Short {
					b.Error("ended early")
				}
			})
		}
	}
}

func market(n, k int) (gpus, weight, speedup []float64) {
	s := splitMix(6000 + n)
	for range k {
		gpus = append(gpus, float64(4+s.next()%29))
	}
	for range n {
		weight = append(weight, 1)
		w := 1.
		for range k {
			speedup = append(speedup, w)
			w *= 1 + .6*s.unit()
		}
	}
	return gpus, weight, speedup
}

func BenchmarkEqualThroughput(b *testing.B) {
	gpus, weight, speedup := market(1000, 10)
	var got Answer
	least := time.Hour
	for b.Loop() {
		begin := time.Now()
		var err error
		if got, err = EqualThroughput(gpus, weight, speedup); err != nil {
			b.Fatal(err)
		}
		least = min(least, time.Since(begin))
	}
	b.ReportMetric(least.Seconds()*1e3, "least-ms")
	b.ReportMetric(float64(got.Rounds), "rounds")
}
