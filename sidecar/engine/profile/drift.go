package profile

import (
	"math"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A change of manner is noticed by two cumulative sums (Page 1954) over the logarithm of
// a job's own steps a second. Its first samples say how it runs and how much that
// varies, and the later ones go on to say it (a self-starting sum); what each departs from
// that by more than an allowance is summed up, upwards and downwards, and a sum beyond a
// threshold is a change. One sample counts for a quarter of the threshold at most, so a
// single stall or a wrong report is none.
const (
	learning  = 30   // samples before the sums begin
	lasting   = 200  // samples that what is learned looks back on
	allowance = 1    // in spreads; and
	leastPart = 0.05 // as a part of the rate: smaller changes are none to us
	threshold = 12   // in spreads
	leastOff  = 0.02 // the smallest spread that is believed
)

// notice adds a sample (ln steps a second) to a job's pace and tells whether its
// manner changed; it then begins to learn anew.
func notice(p *cluster.Pace, x float64) bool {
	off := x - p.Mean
	if p.Samples == 0 {
		off, p.Mean = 0, x
	}
	if p.Samples >= learning {
		spread := max(p.Spread, leastOff)
		allow, limit := max(allowance*spread, leastPart), threshold*spread
		p.Up = max(p.Up+min(off-allow, limit/4), 0)
		p.Down = max(p.Down+min(-off-allow, limit/4), 0)
		if p.Up >= limit || p.Down >= limit {
			p.Samples, p.Mean, p.Spread, p.Up, p.Down = 1, x, 0, 0, 0
			return true
		}
		off = min(max(off, -allow-limit/4), allow+limit/4)
	}
	p.Samples = min(p.Samples+1, lasting)
	n := float64(p.Samples)
	p.Mean = p.Mean + off/n
	p.Spread = math.Sqrt((n - 1) / n * (p.Spread*p.Spread + off*off/n))
	return false
}
