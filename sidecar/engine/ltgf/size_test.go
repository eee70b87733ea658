package ltgf

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// TestPartsOfGPUsCountAsTheirPart: a job with half a GPU is charged half of what one with a GPU is, and its
// demand is half.
func TestPartsOfGPUsCountAsTheirPart(t *testing.T) {
	t.Parallel()
	half := cluster.Size{Devices: 1, Part: cluster.WholeGPU / 2}
	sized := func(c cluster.Case, size cluster.Size) cluster.Case {
		c.Job.Request.Size = size
		for i := range c.Job.Holds {
			c.Job.Holds[i].Size = size
		}
		return c
	}
	for _, x := range []struct {
		size cluster.Size
		part cluster.GPUTime // of 1000
	}{{cluster.Whole(1), 1000}, {half, 500}, {cluster.Size{Devices: 2, Part: cluster.WholeGPU / 4}, 500}, {cluster.Size{Devices: 1, Part: 1000}, 1}} {
		b := open(t, 8)
		run := sized(running(1, 1, begin), x.size)
		b.look(0, run)
		b.pass(10*second, run)
		b.charged(1, 10*x.part)
		b.due(8*gpu, run)
		if got, want := b.row("t").Demand, cluster.MicroGPU(x.part)*1000; got != want {
			t.Errorf("a job that asks for %v has a demand of %d, want %d", x.size, got, want)
		}
		b.pass(10*second, run)
		b.charged(1, 20*x.part)
		if got := b.record(1).Due; got != 10*x.part {
			t.Errorf("a job that asks for %v is due %d in 10 s, want %d", x.size, got, 10*x.part)
		}
		b.balanced()
	}
}
