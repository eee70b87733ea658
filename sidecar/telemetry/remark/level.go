package remark

import (
	"math"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// The rules of what is usual. Differences are in the logarithm.
const (
	leastSpread = 0.03
	farSpreads  = 5    // a value is far from a baseline beyond so many standard deviations,
	farAtLeast  = 0.26 // and beyond 30 %
)

// level is what is usual: mean and spread of the logarithm over jobs, or over the blocks of one (then counted in Jobs).
type level struct {
	cluster.Level
	apart int // newest samples in a row that were far off
}

// settling says how many samples settle a level, how many far ones in a row begin it anew, and how many it looks back on.
type settling struct{ least, patience, most int }

// far tells whether a value is unusual. With n samples the mean is itself uncertain by spread/√n.
func (l *level) far(x float64) bool {
	return math.Abs(x-l.Mean) > max(farAtLeast, farSpreads*max(l.Spread, leastSpread)*math.Sqrt(1+1/float64(l.Jobs)))
}

// add takes one more sample. Once it has settled, samples that are far off do not count, so that a fault never becomes
// usual; but a lasting change does.
func (l *level) add(x float64, s settling) {
	if l.Jobs >= s.least && l.far(x) {
		if l.apart++; l.apart < s.patience {
			return
		}
		l.Level = cluster.Level{}
	}
	l.apart = 0
	l.Jobs = min(l.Jobs+1, s.most)
	n, off := float64(l.Jobs), x-l.Mean
	if n == 1 {
		l.Mean = x
		return
	}
	l.Spread = math.Sqrt((n - 1) / n * (l.Spread*l.Spread + off*off/n))
	l.Mean += off / n
}

// mean is a running mean.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(x float64) {
	if !math.IsNaN(x) {
		m.sum += x
		m.n++
	}
}

// value gives the mean; NaN = no sample.
func (m *mean) value() float64 { return m.sum / float64(m.n) }
