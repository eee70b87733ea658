package profile

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Two cumulative sums (Page 1954) over the logarithm of a job's own steps/s detect a change of
// speed. Its first samples give its mean and spread, and later ones update them (a self-starting
// sum). Deviations beyond an allowance are summed, upwards and downwards; a sum beyond a
// threshold is a change. One sample counts for at most a quarter of the threshold, so a single
// stall or a wrong report is no change.
const (
	learning  = 30   // samples before the sums begin
	lasting   = 200  // samples in the running mean
	allowance = 1    // in spreads; and
	leastPart = 0.05 // as a fraction of the rate: smaller changes are ignored
	threshold = 12   // in spreads
	leastOff  = 0.02 // minimum spread
)

// notice adds a sample (ln steps/s) to a job's pace and tells whether its speed changed; it then
// restarts learning.
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
	p.Mean, p.Spread = cluster.Fade(p.Mean, p.Spread, off, float64(p.Samples))
	return false
}
