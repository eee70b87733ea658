package price

import "math"

// steady asks a crowd whose jobs are all at one level. Prices move less and less, so most
// jobs keep their edge of the hull: those that surely do within a small range of prices
// and levels are taken together, as one sum that is linear in the level.
type steady struct {
	*crowd
	last   []float64 // prices of the last look
	centre []float64 // prices of the sum
	level  float64   // of the sum; 0 = no sum
	width  float64   // how far, relative, prices and level may be from those
	use0   []float64 // GPUs that the jobs in the sum ask for at that level
	rise0  []float64
	moving []int32 // the other jobs
}

func newSteady(c *crowd) *steady {
	w := c.k + 1
	return &steady{crowd: c, last: make([]float64, w), centre: make([]float64, w), use0: make([]float64, w), rise0: make([]float64, w)}
}

// Sums are made once prices move less than settled in a look, and anew once they move
// less than a part of the width while many jobs are still not in the sum.
const settled = 0.2

// ask gives what all jobs pay to reach level t at prices p, and how fast that rises with
// t; use has the GPUs.
func (s *steady) ask(t float64, p []float64) (cost, slope float64) {
	clear(s.use)
	clear(s.rise)
	move := far(p, s.last)
	copy(s.last, p)
	within := t <= s.level && t >= s.level*(1-s.width) && far(p, s.centre) <= s.width
	switch {
	case within && (16*move > s.width || 32*len(s.moving) < len(s.gang)):
		for _, m := range s.moving {
			s.crowd.ask(int(m), t, p)
		}
		for j, v := range s.use0 {
			s.use[j] += v + (t-s.level)*s.rise0[j]
			s.rise[j] += s.rise0[j]
		}
	case move < settled && move > 0:
		s.sum(t, p, 4*move)
	default:
		s.level = 0 // jobs in the sum may get other edges
		for m := range s.gang {
			s.crowd.ask(m, t, p)
		}
	}
	return s.paid(p)
}

// sum looks at all jobs, and adds up those that keep their edge within width.
func (s *steady) sum(t float64, p []float64, width float64) {
	copy(s.centre, p)
	s.level, s.width = t, width
	s.moving = s.moving[:0]
	for m := range s.gang {
		s.choose(m, t, p)
		if s.reach(m, t, p) > 1.01*width {
			s.add(m, t)
		} else {
			s.moving = append(s.moving, int32(m))
		}
	}
	copy(s.use0, s.use)
	copy(s.rise0, s.rise)
	for _, m := range s.moving {
		s.add(int(m), t)
	}
}

// far gives the largest change from prices old to p, relative to old.
func far(p, old []float64) float64 {
	most := 0.0
	for j, v := range p {
		if v != old[j] {
			most = max(most, math.Abs(v-old[j])/old[j])
		}
	}
	return most
}
