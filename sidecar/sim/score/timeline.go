package score

import "github.com/fairlease/fairlease/sidecar/cluster"

const (
	firstStep = cluster.Minute
	maxSteps  = 512
)

// timeline holds sums per step of time, for several lines. Beyond maxSteps, steps are joined in
// pairs: memory stays constant, and the order of additions does not matter.
type timeline struct {
	from  cluster.Instant
	step  cluster.Span
	lines [][]int64
}

func newTimeline(from cluster.Instant) *timeline { return &timeline{from: from, step: firstStep} }

// line adds an empty line and gives its number.
func (t *timeline) line() int {
	t.lines = append(t.lines, nil)
	return len(t.lines) - 1
}

// cell gives the sum of a line's step that contains the moment at ≥ from.
func (t *timeline) cell(line int, at cluster.Instant) *int64 {
	for at.Sub(t.from)/t.step >= maxSteps {
		t.join()
	}
	i := int(at.Sub(t.from) / t.step)
	for len(t.lines[line]) <= i {
		t.lines[line] = append(t.lines[line], 0)
	}
	return &t.lines[line][i]
}

func (t *timeline) join() {
	t.step *= 2
	for n, old := range t.lines {
		half := make([]int64, (len(old)+1)/2, maxSteps)
		for i, v := range old {
			half[i/2] += v
		}
		t.lines[n] = half
	}
}

// fill adds rate times time to each step from a until b.
func (t *timeline) fill(line int, a, b cluster.Instant, rate cluster.MicroGPU) {
	if rate == 0 {
		return
	}
	for a < b {
		cell := t.cell(line, a)
		next := min(b, t.from.Add((a.Sub(t.from)/t.step+1)*t.step))
		*cell += int64(rate.Over(next.Sub(a)))
		a = next
	}
}

// steps gives the number of steps until to, after widening them if needed.
func (t *timeline) steps(to cluster.Instant) int {
	length := max(0, to.Sub(t.from))
	for length > maxSteps*t.step {
		t.join()
	}
	return int((length + t.step - 1) / t.step)
}

// means divides each of a line's n sums by its step's length; the last step may end early at to.
// Results are rounded to thousandths.
func (t *timeline) means(line, n int, to cluster.Instant) []float64 {
	out := make([]float64, n)
	for i, sum := range t.lines[line] {
		start := t.from.Add(cluster.Span(i) * t.step)
		length := min(t.step, to.Sub(start))
		out[i] = float64((2000*sum+int64(length))/(2*int64(length))) / 1000
	}
	return out
}
