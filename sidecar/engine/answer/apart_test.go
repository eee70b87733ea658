package answer

import (
	"math"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Three gangs of three GPUs share eight on two nodes of four, on which two of them fit together at a time (Gavel §3.1, with placement sensitivity). Each has two
// thirds of its time together; the two GPUs that are left serve scattered gangs for another two thirds of a gang's time in all. Gangs that keep
// half of their speed there have 2/3 + 1/2 · 2/9 of it each.
func TestGangsApart(t *testing.T) {
	for _, c := range []struct {
		name     string
		apart    []float64 // by job; 0 = as fast
		together []int
		want     float64 // the least throughput, as a part of that all the time
	}{
		{"nothing is known", []float64{0, 0, 0}, nil, 8.0 / 9},
		{"all fit together", []float64{0.5, 0.5, 0.5}, []int{1000}, 8.0 / 9},
		{"half as fast", []float64{0.5, 0.5, 0.5}, []int{750}, 2.0/3 + 0.5*2.0/9},
		{"none fits together", []float64{0.5, 0.5, 0.5}, []int{0}, 0.5 * 8.0 / 9},
		{"one is nearly as fast", []float64{0.999, 0.001, 0.001}, []int{750}, 8.0 / 9},
	} {
		q := cluster.AllocationRequest{Pools: []cluster.GPUs{{Model: "v100", Count: 8}}, Together: c.together}
		for i, part := range c.apart {
			b := job("a", "", i+1, 3, 1)
			if part > 0 {
				b.Apart = []float64{part}
			}
			q.Bids = append(q.Bids, b)
		}
		d := Divide(q, ByTime("las"))
		if d.Why != "" {
			t.Fatalf("%s: %s", c.name, d.Why)
		}
		all := cluster.MicroGPU(0)
		for i := range d.Parts {
			all += d.Parts[i].GPUs[0]
		}
		if math.Abs(d.Objective-3*c.want) > 2e-3 { // times the gang
			t.Errorf("%s: the least throughput is %v of a gang's, want %v", c.name, d.Objective/3, c.want)
		}
		if all > 8*cluster.WholeGPU+2 || all < 8*cluster.WholeGPU-2 {
			t.Errorf("%s: %d millionths of 8 GPUs are divided", c.name, all)
		}
	}
}
