package papers

import (
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy"
)

// lasInterior divides as the code of Gavel's authors does (policies/max_min_fairness.py): the program of
// §4.1 alone, by an interior point method. Only the jobs with the smallest level bind. The others may have
// any shares that give them that level, and an interior point is in the middle of these: such jobs have
// slow models beside fast ones, while GPUs of fast models idle. X_equal is the same kind of answer, to the
// program in which all models are alike.
func lasInterior(p policy.Problem) (policy.Shares, error) {
	c := newCentre(p)
	for m, job := range p.Jobs {
		for j, v := range job.Speed {
			if v > 0 {
				c.level[m][j] = float64(job.Gang)
			}
		}
	}
	equal := c.solve()
	for m, job := range p.Jobs {
		sum := 0.0
		for j, v := range job.Speed {
			sum += v * equal[m][j]
		}
		for j, v := range job.Speed {
			c.level[m][j] = float64(job.Gang) * v / max(sum, 1e-300)
		}
	}
	return policy.Shares{Time: c.solve()}, nil
}

// centre is the program max t with level_m·x_m >= t, Σ_j x_mj <= 1, Σ_m gang_m x_mj <= GPUs_j and x >= 0. A
// way with level 0 is not there.
type centre struct {
	p     policy.Problem
	k     int
	level [][]float64
}

func newCentre(p policy.Problem) *centre {
	c := &centre{p: p, k: len(p.Models)}
	for range p.Jobs {
		c.level = append(c.level, make([]float64, c.k))
	}
	return c
}

// solve gives the centre of the optimal shares, to about 1e-8: it follows the minimum of
// -t/μ - Σ log slack to small μ, by Newton's method.
func (c *centre) solve() [][]float64 {
	x := make([][]float64, len(c.p.Jobs))
	gangs := 1.0
	for _, job := range c.p.Jobs {
		gangs += float64(job.Gang)
	}
	t := math.Inf(1)
	for m := range x {
		x[m] = make([]float64, c.k)
		level := 0.0
		for j, a := range c.level[m] {
			if a > 0 {
				x[m][j] = min(1, c.p.Models[j].GPUs/gangs) / float64(2*c.k)
				level += a * x[m][j]
			}
		}
		if level > 0 {
			t = min(t, level)
		}
	}
	if math.IsInf(t, 1) {
		return x
	}
	t /= 2
	for mu := 1.0; mu > 1e-8; mu /= 5 {
		for range 30 {
			if !c.step(x, &t, mu) {
				break
			}
		}
	}
	return x
}

// step takes a Newton step of x and t; false = it would change nothing more. Each job has a block of its
// own; the models' rows and t are a border of k+1.
func (c *centre) step(x [][]float64, t *float64, mu float64) bool {
	n, k := len(x), c.k
	used := make([]float64, k)
	for m := range x {
		for j, a := range c.level[m] {
			if a > 0 {
				used[j] += float64(c.p.Jobs[m].Gang) * x[m][j]
			}
		}
	}
	border := matrix(k+1, k+2) // of z = D·Cᵀ·dx and dt, and the right side
	border[k][k+1] = 1 / mu
	free := make([]float64, k)
	for j := range free {
		free[j] = c.p.Models[j].GPUs - used[j]
		border[j][j] = -free[j] * free[j]
	}
	solved := make([][][]float64, n) // by job: block⁻¹ times the right side, the k models' columns and t's
	for m := range x {
		slack, idle := -*t, 1.0
		for j, a := range c.level[m] {
			slack, idle = slack+a*x[m][j], idle-x[m][j]
		}
		if slices.Max(c.level[m]) == 0 {
			continue
		}
		gang := float64(c.p.Jobs[m].Gang)
		block := matrix(k, k+k+2)
		for i, a := range c.level[m] {
			if a == 0 {
				block[i][i] = 1
				continue
			}
			for j, b := range c.level[m] {
				if b > 0 {
					block[i][j] = a*b/(slack*slack) + 1/(idle*idle)
				}
			}
			block[i][i] += 1 / (x[m][i] * x[m][i])
			block[i][k] = a/slack - 1/idle + 1/x[m][i] - gang/free[i] // minus the gradient
			block[i][k+1+i] = gang
			block[i][k+1+k] = -a / (slack * slack)
		}
		eliminate(block)
		solved[m] = block
		border[k][k] += 1 / (slack * slack)
		border[k][k+1] -= 1 / slack
		for i, a := range c.level[m] {
			if a == 0 {
				continue
			}
			for j := range k + 1 { // rows of the border times block⁻¹ times its columns
				border[i][j] -= gang * block[i][k+1+j]
				border[k][j] -= -a / (slack * slack) * block[i][k+1+j]
			}
			border[i][k+1] -= gang * block[i][k]
			border[k][k+1] -= -a / (slack * slack) * block[i][k]
		}
	}
	eliminate(border)
	dx := matrix(n, k)
	for m := range x {
		for i := range solved[m] {
			dx[m][i] = solved[m][i][k]
			for j := range k + 1 {
				dx[m][i] -= solved[m][i][k+1+j] * border[j][k+1]
			}
		}
	}
	return c.move(x, t, dx, border[k][k+1], free)
}

// move goes along a step, and stays where all slacks are positive. It gives false where it would change
// nothing more.
func (c *centre) move(x [][]float64, t *float64, dx [][]float64, dt float64, free []float64) bool {
	most, largest := 1.0, 0.0
	reach := func(slack, change float64) {
		if change < 0 {
			most = min(most, -.9*slack/change)
		}
		largest = max(largest, math.Abs(change)/slack)
	}
	more := make([]float64, c.k)
	for m := range x {
		slack, dslack, idle, didle := -*t, -dt, 1.0, 0.0
		for j, a := range c.level[m] {
			if a > 0 {
				slack, dslack, idle, didle = slack+a*x[m][j], dslack+a*dx[m][j], idle-x[m][j], didle-dx[m][j]
				more[j] += float64(c.p.Jobs[m].Gang) * dx[m][j]
				reach(x[m][j], dx[m][j])
			}
		}
		if slices.Max(c.level[m]) > 0 {
			reach(slack, dslack)
			reach(idle, didle)
		}
	}
	for j := range free {
		reach(free[j], -more[j])
	}
	if sum := largest + dt; math.IsNaN(sum) || math.IsInf(sum, 0) {
		return false // nearer to the optimum than the arithmetic allows
	}
	for m := range x {
		for j := range x[m] {
			x[m][j] += most * dx[m][j]
		}
	}
	*t += most * dt
	return largest > 1e-3
}

func matrix(n, k int) [][]float64 {
	out := make([][]float64, n)
	for i := range out {
		out[i] = make([]float64, k)
	}
	return out
}

// eliminate makes the left square of a the unit matrix.
func eliminate(a [][]float64) {
	for i := range a {
		for p := i + 1; p < len(a); p++ {
			if math.Abs(a[p][i]) > math.Abs(a[i][i]) {
				a[i], a[p] = a[p], a[i]
			}
		}
		pivot := a[i][i]
		for j := i; j < len(a[i]); j++ {
			a[i][j] /= pivot
		}
		for p := range a {
			if f := a[p][i]; p != i && f != 0 {
				for j := i; j < len(a[p]); j++ {
					a[p][j] -= f * a[i][j]
				}
			}
		}
	}
}
