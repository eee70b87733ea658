package slurm

import "math/bits"

// Users write numbers that no cluster has: sbatch -N 300000000 --gres=gpu:8. Every number of a
// record is bounded when it is read: high enough that a real request stays unchanged, low enough
// that no result computed from it overflows 64 bits.
const (
	mostThings  = 1 << 40 // GPUs, CPUs, nodes, tasks, restarts
	mostMemory  = 1 << 50 // MB
	lastSecond  = 1 << 36 // of the calendar, in the year 4147; later times are set to it
	mostMinutes = 1 << 31 // of a time limit: 4083 years
	mostTask    = 1<<31 - 2
)

// bounded clamps n to 0…most.
func bounded[N int | int64](n, most N) N { return max(min(n, most), 0) }

// product gives a·b for a, b ≥ 0, at most most.
func product(a, b, most int64) int64 {
	if hi, lo := bits.Mul64(uint64(a), uint64(b)); hi == 0 && lo < uint64(most) {
		return int64(lo)
	}
	return most
}
