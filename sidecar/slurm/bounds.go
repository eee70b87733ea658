package slurm

import "math/bits"

// Users write numbers that no cluster has: sbatch -N 300000000 --gres=gpu:8. Every number of a record is bounded
// where it is read: high enough that what is asked for is told as it is, low enough that nothing that is
// reckoned from it overflows 64 bits.
const (
	mostThings  = 1 << 40 // GPUs, CPUs, nodes, tasks, restarts
	mostMemory  = 1 << 50 // MB
	lastSecond  = 1 << 36 // of the calendar, in the year 4147: what is later is as far away
	mostMinutes = 1 << 31 // of a time limit: 4083 years
	mostTask    = 1<<31 - 2
)

// bounded gives n, not below 0 and not above most.
func bounded[N int | int64](n, most N) N { return max(min(n, most), 0) }

// product gives a·b for a, b ≥ 0, and no more than most.
func product(a, b, most int64) int64 {
	if hi, lo := bits.Mul64(uint64(a), uint64(b)); hi == 0 && lo < uint64(most) {
		return int64(lo)
	}
	return most
}
