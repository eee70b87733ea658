package main

import (
	"fmt"
	"time"

	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// onCells measures buddy cells as HiveD §5.3 does: 8 racks of 1,024 nodes of 8 GPUs and
// 10,000 requests at random levels 1 to 4; then at 8,192 and at a million GPUs. The
// means are of twenty such fillings.
func onCells() error {
	fmt.Printf("Cells, one core, 8 VCs, 10,000 requests at levels 1 to 4 (%s)\n", machine())
	var figures [3]laps
	for i, nodes := range []int{128, 1024, 16_384} {
		free, err := fillings(nodes, 0)
		if err != nil {
			return err
		}
		lent, err := fillings(nodes, 30)
		if err != nil {
			return err
		}
		fmt.Printf("%7d GPUs: allocate %.3f us, free %.3f us, request %.3f us, release %.3f us; 30 %% of the GPUs lent: %.3f, %.3f, %.3f, %.3f us\n",
			nodes*64, free[0], free[1], free[2], free[3], lent[0], lent[1], lent[2], lent[3])
		figures[i] = laps{free[0], max(free[1], free[3]), lent[0], max(lent[1], lent[3]), max(free[2], lent[2])}
	}
	build := time.Hour
	for range 5 {
		d := simtest.Racks(1024)
		begin := time.Now()
		if _, err := cells.New(d); err != nil {
			return err
		}
		build = min(build, time.Since(begin))
	}
	paper := figures[1]
	figure("cells_allocate_us", paper[0], "us")
	figure("cells_release_us", paper[1], "us") // a cell's, or a whole lease's, whichever is slower
	figure("cells_allocate_opportunistic_us", paper[2], "us")
	figure("cells_release_opportunistic_us", paper[3], "us")
	figure("cells_request_us", paper[4], "us") // without or with leases to recall, whichever is slower
	figure("cells_build_ms", build.Seconds()*1e3, "ms")
	figure("cells_allocate_1m_us", figures[2][0], "us")
	return nil
}

// laps is the mean time of operations in microseconds.
type laps [5]float64

// fillings fills a cluster twenty times, with cells only and with whole requests, and empties it:
// allocate, free, request, release.
func fillings(nodes, lent int) (laps, error) {
	const times = 20
	m, err := simtest.NewMix(nodes, lent)
	if err != nil {
		return laps{}, err
	}
	var mean laps
	for range times {
		l, err := m.Fill()
		if err != nil {
			return mean, err
		}
		for i, spent := range []time.Duration{l.Allocate, l.Free, l.Request, l.Release} {
			mean[i] += float64(spent.Nanoseconds()) / 1e3 / float64(times*m.N)
		}
	}
	return mean, nil
}
