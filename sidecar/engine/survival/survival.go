// Package survival estimates how long the work of jobs takes, from run times of which some were cut off.
//
// A job that was stopped after an hour says that its work takes longer than an hour. Left out, it would make a GPU
// model look fast on which many jobs reach their time limit. So the median is that of the product-limit estimate
// (Kaplan and Meier, 1958). Its standard error is that of a bootstrap (Efron, 1981) whose draws are fixed: equal run times,
// in any order, give equal results.
package survival

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

const (
	// Completed is the minimum number of completed jobs.
	Completed = 5
	// resamples are the draws of the bootstrap. At most one in tolerated of them may have no median.
	resamples = 64
	tolerated = 8
)

// Median returns the median of the time that the work takes, and its standard error in the logarithm. A negative run time is that of a
// job that was cut off. done counts the completed jobs. The median is 0 if it is unknown: fewer than Completed jobs
// completed, or too many of the longest were cut off.
func Median(ran []cluster.Span) (median cluster.Span, spread float64, done int) {
	sorted := slices.Clone(ran)
	slices.SortFunc(sorted, earlier)
	for _, t := range sorted {
		if t > 0 {
			done++
		}
	}
	if done < Completed {
		return 0, 0, done
	}
	of := limit(sorted)
	if of == 0 {
		return 0, 0, done
	}
	sum, n, draw := 0.0, 0, make([]cluster.Span, len(sorted))
	for r := range resamples {
		for i := range draw {
			draw[i] = sorted[mix(uint64(r*len(draw)+i))%uint64(len(sorted))]
		}
		slices.SortFunc(draw, earlier)
		if m := limit(draw); m > 0 {
			off := math.Log(m / of)
			sum, n = sum+off*off, n+1
		}
	}
	if n < resamples-resamples/tolerated {
		return 0, 0, done
	}
	return cluster.Span(math.Round(of)), math.Sqrt(sum / float64(n)), done
}

// earlier orders run times. Of equal ones those of completed jobs come first.
func earlier(a, b cluster.Span) int {
	return cmp.Or(cmp.Compare(max(a, -a), max(b, -b)), cmp.Compare(b, a))
}

// limit returns the median of the product-limit estimate of sorted run times; 0 = it does not fall to a half.
func limit(sorted []cluster.Span) float64 {
	const half, close = 0.5, 1e-9
	left, at := 1.0, 0.0 // the part of jobs that take longer; the time since it is a half exactly
	for i, t := range sorted {
		if t <= 0 {
			continue
		}
		if at > 0 {
			return (at + float64(t)) / 2
		}
		left *= 1 - 1/float64(len(sorted)-i)
		if left < half-close {
			return float64(t)
		}
		if left < half+close {
			at = float64(t)
		}
	}
	return at
}

// mix is a fixed sequence without pattern (splitmix64, Steele et al. 2014).
func mix(x uint64) uint64 {
	x = (x + 1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
