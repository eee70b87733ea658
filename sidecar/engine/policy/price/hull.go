package price

import "math"

// crowd is jobs that answer prices: each takes the cheapest way to its level. Job m has
// k+1 points (speed, price); the last is idleness, (0, 0).
type crowd struct {
	k     int
	gang  []float64
	speed []float64 // k+1 a job
	edge  []uint8   // two a job: the points of the hull's edge at its level, from the last look
	use   []float64 // GPUs of each model that the last look asked for
	rise  []float64 // how fast that rises with the level
}

func newCrowd(k int, gang, speed []float64) *crowd {
	n, w := len(gang), k+1
	c := &crowd{k: k, gang: gang, speed: make([]float64, n*w), edge: make([]uint8, 2*n), use: make([]float64, w), rise: make([]float64, w)}
	for m := range n {
		copy(c.speed[m*w:], speed[m*k:(m+1)*k])
	}
	for i := range c.edge {
		c.edge[i] = uint8(k)
	}
	return c
}

// ask finds the hull's edge of job m at level t > 0 and prices p (of k models, then 0), and
// adds what the job asks for.
func (c *crowd) ask(m int, t float64, p []float64) {
	c.choose(m, t, p)
	c.add(m, t)
}

// choose finds the hull's edge of job m at level t > 0 and prices p (of k models, then 0).
func (c *crowd) choose(m int, t float64, p []float64) {
	w := c.k + 1
	a := c.speed[m*w : m*w+w : m*w+w]
	p = p[:len(a)]
	l, r := int(c.edge[2*m]), int(c.edge[2*m+1])
	if a[l] < t && t <= a[r] {
		// The old edge holds where no point lies under its line (times its length).
		up, on := p[r]-p[l], a[r]-a[l]
		base := p[l]*on - up*a[l] - 1e-14*p[r]*on
		fits := true
		for j, v := range a {
			if p[j]*on < base+up*v {
				fits = false
				break
			}
		}
		if fits {
			return
		}
	}
	l, r = lowerEdge(a, p, t, l, r)
	c.edge[2*m], c.edge[2*m+1] = uint8(l), uint8(r)
}

// add adds what job m asks for at level t to use, by the edge that was chosen, and how
// fast that rises with t to rise.
func (c *crowd) add(m int, t float64) {
	l, r := int(c.edge[2*m]), int(c.edge[2*m+1])
	a := c.speed[m*(c.k+1) : (m+1)*(c.k+1)]
	s := c.gang[m]
	steep := s / (a[r] - a[l])
	right := min(s, (t-a[l])*steep)
	c.use[l] += s - right
	c.use[r] += right
	c.rise[l] -= steep
	c.rise[r] += steep
}

// paid gives what the jobs pay for use, and how fast that rises.
func (c *crowd) paid(p []float64) (cost, slope float64) {
	for j, v := range p {
		cost += v * c.use[j]
		slope += v * c.rise[j]
	}
	return cost, slope
}

// reach gives how far, relative, each price and the level t may go, at most, without
// another edge being the hull's. An edge with points at the same place reaches nowhere.
func (c *crowd) reach(m int, t float64, p []float64) float64 {
	w := c.k + 1
	a := c.speed[m*w : m*w+w]
	l, r := int(c.edge[2*m]), int(c.edge[2*m+1])
	far := (t - a[l]) / t
	per := 1 / (a[r] - a[l])
	for j, v := range a {
		if j == l || j == r {
			continue
		}
		right := (v - a[l]) * per
		left, right := (1-right)*p[l], right*p[r]
		slack, all := p[j]-left-right, p[j]+math.Abs(left)+math.Abs(right)
		if !(slack > far*all) {
			far = slack / all
		}
	}
	return far
}

// lowerEdge gives the two points between which the lower hull of (a_j, p_j) passes t > 0,
// starting from points l and r if they are on either side of t. The last point is the
// origin. A t above all points, by rounding, is taken for the highest. Ties go to the
// points at hand, then to the first. Where a job cannot run it is never sent, not even
// where that is free.
func lowerEdge(a, p []float64, t float64, l, r int) (int, int) {
	if !(a[l] < t && t <= a[r]) {
		l, r = len(a)-1, 0
		for j, v := range a {
			if v > a[r] {
				r = j
			}
		}
		t = min(t, a[r])
	}
	// The best left point for the right one, and so on: each turn lowers the line at t, so
	// it ends at the hull; the bound is for rounding.
	for turn := range 2 * len(a) {
		moved := false
		up, on := p[r]-p[l], a[r]-a[l]
		for j, v := range a {
			if turn&1 == 0 && v >= t {
				if u, o := p[j]-p[l], v-a[l]; u*on < up*o-1e-14*math.Abs(up*o) {
					r, up, on, moved = j, u, o, true
				}
			} else if turn&1 == 1 && v < t && (v > 0 || j == len(a)-1) {
				if u, o := p[r]-p[j], a[r]-v; u*on > up*o+1e-14*math.Abs(up*o) {
					l, up, on, moved = j, u, o, true
				}
			}
		}
		if !moved && turn > 0 {
			break
		}
	}
	return l, r
}

// steep gives the slope of the edge of job m.
func (c *crowd) steep(m int, p []float64) float64 {
	l, r := int(c.edge[2*m]), int(c.edge[2*m+1])
	a := c.speed[m*(c.k+1) : (m+1)*(c.k+1)]
	return (p[r] - p[l]) / (a[r] - a[l])
}

// mix adds to x, job by job k parts of its time, share times what the edge of job m in a
// look stands for at level t.
func (c *crowd) mix(x []float64, m int, share, t float64, edge []uint8) {
	l, r := int(edge[2*m]), int(edge[2*m+1])
	if l == r {
		return // idle
	}
	a := c.speed[m*(c.k+1) : (m+1)*(c.k+1)]
	right := min(1, (t-a[l])/(a[r]-a[l]))
	x[m*c.k+r] += share * right
	if l < c.k {
		x[m*c.k+l] += share * (1 - right)
	}
}
