package cells_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// atSizes measures at 8,192, 65,536 and 1,048,576 GPUs: 8 racks of nodes of 8 GPUs.
func atSizes(b *testing.B, f func(*testing.B, int)) {
	for _, nodes := range []int{128, 1024, 16384} {
		b.Run(fmt.Sprint(nodes*64), func(b *testing.B) { f(b, nodes) })
	}
}

// HiveD §5.3: 10,000 requests at random levels 1 to 4. Cells are bound and given back
// (allocate, free), or whole requests are met and leases released, without and with 30 %
// of the GPUs under opportunistic leases.
func BenchmarkCells(b *testing.B) {
	for _, lent := range []int{0, 30} {
		b.Run(fmt.Sprintf("lent%d", lent), func(b *testing.B) {
			atSizes(b, func(b *testing.B, nodes int) {
				m, err := simtest.NewMix(nodes, lent)
				if err != nil {
					b.Fatal(err)
				}
				var sum simtest.Laps
				for b.Loop() {
					l, err := m.Fill()
					if err != nil {
						b.Fatal(err)
					}
					sum.Allocate += l.Allocate
					sum.Free += l.Free
					sum.Request += l.Request
					sum.Release += l.Release
				}
				for name, spent := range map[string]time.Duration{"allocate": sum.Allocate, "free": sum.Free, "request": sum.Request, "release": sum.Release} {
					b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*m.N), "ns/"+name)
				}
			})
		})
	}
}

func BenchmarkBuild(b *testing.B) {
	atSizes(b, func(b *testing.B, nodes int) {
		d := simtest.Racks(nodes)
		for b.Loop() {
			if _, err := cells.New(d); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Requests of gangs that one node in ten admits.
func BenchmarkConstrained(b *testing.B) {
	for _, nodes := range []int{1, 64} {
		b.Run(fmt.Sprintf("%dnodes", nodes), func(b *testing.B) {
			atSizes(b, func(b *testing.B, size int) {
				s, err := cells.New(simtest.Racks(size))
				if err != nil {
					b.Fatal(err)
				}
				q := cells.Request{Job: 1, VC: s.Cells.Views()[0].VC, Nodes: nodes, GPUs: 8, Apart: true,
					Admits: func(node string, _ int) bool { return node[len(node)-1] == '7' }}
				for b.Loop() {
					if _, err := s.Request(q); err == nil {
						s.Release(1)
					}
				}
			})
		})
	}
}
