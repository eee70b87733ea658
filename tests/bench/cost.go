package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// timing is what work took: milliseconds by the clock and of CPU, allocations and their MiB.
type timing struct{ wall, cpu, allocs, mib float64 }

// meter reads what the process has used so far.
func meter() timing {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return timing{float64(time.Since(began).Nanoseconds()) / 1e6, used().Seconds() * 1e3, float64(m.Mallocs), float64(m.TotalAlloc) / (1 << 20)}
}

var began = time.Now()

// over gives the difference to an earlier reading, as a mean of n runs.
func (t timing) over(o timing, n int) timing {
	k := float64(n)
	return timing{(t.wall - o.wall) / k, (t.cpu - o.cpu) / k, (t.allocs - o.allocs) / k, (t.mib - o.mib) / k}
}

// least gives the smaller of each.
func (t timing) least(o timing) timing {
	return timing{min(t.wall, o.wall), min(t.cpu, o.cpu), min(t.allocs, o.allocs), min(t.mib, o.mib)}
}

// most gives the larger of each.
func (t timing) most(o timing) timing {
	return timing{max(t.wall, o.wall), max(t.cpu, o.cpu), max(t.allocs, o.allocs), max(t.mib, o.mib)}
}

// least gives the fastest of some runs.
func least(times int, f func() error) (timing, error) {
	took := timing{math.Inf(1), math.Inf(1), math.Inf(1), math.Inf(1)}
	for range times {
		begin := meter()
		if err := f(); err != nil {
			return timing{}, err
		}
		took = took.least(meter().over(begin, 1))
	}
	return took, nil
}

// mean gives the mean of at least three runs that take a second together, with their part of garbage collection.
func mean(f func()) timing {
	runtime.GC()
	begin, n := meter(), 0
	for n < 3 || meter().cpu < begin.cpu+1000 {
		f()
		n++
	}
	return meter().over(begin, n)
}

// figure prints a figure.
func figure(name string, value float64, unit string) {
	measured = append(measured, fmt.Sprintf("figure %s %.4g %s", name, value, unit))
	fmt.Println(measured[len(measured)-1])
}

// timed prints a figure of CPU time with the allocations beside it, and the wall time under a name of its own: on a machine that is shared, that
// says little. The name ends with a unit: _us, _ms or _s.
func timed(name string, t timing) {
	cut := strings.LastIndexByte(name, '_')
	unit := name[cut+1:]
	scale := map[string]float64{"us": 1e3, "ms": 1, "s": 1e-3}[unit]
	figure(name, t.cpu*scale, fmt.Sprintf("%s allocs %.0f mib %.4g", unit, t.allocs, t.mib))
	figure(name[:cut]+wall+unit, t.wall*scale, unit)
}

// wall is in the names of figures of wall time, which are not compared.
const wall = "_wall_"

// measured has the figures so far.
var measured []string

// used gives the CPU time so far of this process and of the children that it has
// waited for: scontrol, where that is needed.
func used() time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			return 0
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

// resetPeak lets peakMiB count from here.
func resetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600) }

// peakMiB gives the most memory that this process has held since resetPeak.
func peakMiB() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if kb, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.ParseFloat(strings.Fields(kb)[0], 64)
			return n / 1024
		}
	}
	return 0
}

// machine names the processor.
func machine() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(info)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, " \t:")) + fmt.Sprintf(", %d cores", runtime.NumCPU())
		}
	}
	return runtime.GOARCH
}
