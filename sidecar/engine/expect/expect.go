// Package expect estimates the GPU time that jobs still need, from the GPU time that jobs like them received until
// they ended.
package expect

import (
	"math"
	"math/bits"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Classes is the number of classes of GPU time. Class 0 is less than a minute of one GPU, and class k goes up to
// √2^k minutes: two classes to a doubling.
const Classes = 52

// upper and middle are the end of each class and the mean within it, in seconds of one GPU.
var upper, middle = func() (upper, middle [Classes]int64) {
	low := int64(0)
	for k := range upper {
		upper[k] = int64(60 * math.Sqrt(float64(uint64(1)<<k)))
		middle[k], low = (low+upper[k])/2, upper[k]
	}
	return upper, middle
}()

// ClassOf returns the class of a GPU time.
func ClassOf(got cluster.GPUTime) int {
	minutes := uint64(min(max(int64(got), 0)/int64(cluster.Minute), 1<<31))
	return min(bits.Len64(minutes*minutes), Classes-1)
}

// one is a job in counts, memory the number of jobs that a count remembers.
const (
	one    = 1000
	memory = 50
)

// Add returns counts of ended jobs with another one that had received so much. Older jobs count less by a fiftieth with
// each.
func Add(counts []int32, got cluster.GPUTime) []int32 {
	class := ClassOf(got)
	out := make([]int32, max(len(counts), class+1))
	for k, n := range counts {
		out[k] = n - (n+memory-1)/memory
	}
	out[class] += one
	return out
}

// Sum is the counts of several groups of jobs together.
type Sum [Classes]int64

// Add adds counts. If most > 0, they weigh as much as so many jobs at most.
func (s *Sum) Add(counts []int32, most int64) {
	all := int64(0)
	for _, n := range counts {
		all += int64(n)
	}
	for k, n := range counts[:min(len(counts), Classes)] {
		if most > 0 && all > most*one {
			s[k] += int64(n) * most * one / all
		} else {
			s[k] += int64(n)
		}
	}
}

// unknown is the least GPU time expected of jobs that outlived all jobs like them, in seconds.
const unknown = 600

// Next returns the GPU time for each job that ends, in seconds, if jobs that have received a GPU time of the given
// class get more for as long as that pays best: the reciprocal of the Gittins index (Gittins, 1979; Tiresias §3.2). If no
// job like them needed that much, they are expected to need as much again as they have received.
func (s *Sum) Next(class int) int64 {
	from, left := int64(0), int64(0)
	if class > 0 {
		from = upper[class-1]
	}
	for _, n := range s[class:] {
		left += n
	}
	least, ended, spent := max(from, unknown), int64(0), int64(0)
	if left > 0 {
		least = math.MaxInt64
	}
	for k := class; k < Classes && left > 0; k++ {
		if s[k] == 0 {
			continue
		}
		ended, left = ended+s[k], left-s[k]
		spent += s[k] * (middle[k] - from)
		least = min(least, (spent+left*(upper[k]-from))/ended)
	}
	return least
}
