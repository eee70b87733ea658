package store_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// BenchmarkCommit commits rounds in which a few jobs come, go and change their lease and all
// others wait. cpu-ms is the CPU time of this process, without the server's.
func BenchmarkCommit(b *testing.B) {
	for _, c := range []struct {
		waiting, nodes int
		cells          bool
	}{{1_000, 25, false}, {10_000, 250, false}, {50_000, 1_250, false}, {10_000, 2_500, false}, {10_000, 2_500, true}} {
		b.Run(fmt.Sprintf("waiting=%d/nodes=%d/cells=%t", c.waiting, c.nodes, c.cells), func(b *testing.B) {
			s := openStore(b, store.Config{DSN: storetest.Database(b)})
			j := takeLead(b, s).Journal()
			if _, err := j.Open(b.Context()); err != nil {
				b.Fatal(err)
			}
			story := journaltest.NewStory(1, c.nodes, c.waiting)
			story.Cells = c.cells
			for range 5 {
				snap, plan := story.Next()
				if err := j.Commit(b.Context(), snap, plan); err != nil {
					b.Fatal(err)
				}
			}
			var cpu time.Duration
			n := 0
			b.ResetTimer()
			for b.Loop() {
				b.StopTimer()
				snap, plan := story.Next()
				runtime.GC()
				n++
				b.StartTimer()
				before := cpuTime()
				if err := j.Commit(b.Context(), snap, plan); err != nil {
					b.Fatal(err)
				}
				cpu += cpuTime() - before
			}
			b.ReportMetric(float64(cpu.Microseconds())/1000/float64(n), "cpu-ms/op")
		})
	}
}

// cpuTime gives the processor time that this process has used.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
