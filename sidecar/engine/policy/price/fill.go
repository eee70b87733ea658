package price

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Filling is what water filling comes to.
type Filling struct {
	X      []float64 // the part of the time of job m on model j, at m·k+j
	Level  []float64 // of each job, as X gives it
	Short  bool      // rounding ended it early: the rest was given out job by job
	Phases int       // bottlenecks, one after the other; models at most
	Rounds int       // looks at prices
}

// Fill raises all levels together, each entity's sum by its weight and within an entity by
// the jobs' weights or first come first, until no job's level can rise without lowering
// another's (Gavel §4.3). No entities = one fair one of all jobs: weighted, flat water
// filling; no weights = all 1. Each job is in one entity. The levels are unique, but late
// ones are ill-conditioned: GPUs that an early bottleneck has prices for trade against
// others at thousands to one. Errors are as for MaxMin.
//
// Phase by phase: the highest water has prices that prove it, at which the jobs pay for
// all there is. So a model with a price can serve no job that rises on: a job that stands
// as high as any other model can carry it is bottlenecked, and the rest never use that
// model. A bottlenecked job with one cheapest way keeps it; one with several stays in the
// program at its level, with those ways only.
func Fill(in Instance, weight []float64, entities []Entity) (Filling, error) {
	return FillAbove(in, weight, entities, nil)
}

// FillAbove is Fill where each job has at least the level that it has in base, a division as Filling.X gives it, whatever
// the weights; nil = nobody has anything. So an entity has no less than in base, and the levels above that are raised
// in the order of Fill.
func FillAbove(in Instance, weight []float64, entities []Entity, base []float64) (Filling, error) {
	n := len(in.Gang)
	if weight == nil {
		weight = slices.Repeat([]float64{1}, n)
	}
	if entities == nil {
		all := Entity{Weight: 1, Jobs: make([]int, n)}
		for m := range all.Jobs {
			all.Jobs[m] = m
		}
		entities = []Entity{all}
	}
	if err := in.checkFill(weight, entities); err != nil {
		return Filling{}, err
	}
	var floor []float64
	if base != nil {
		if len(base) != n*len(in.GPUs) {
			return Filling{}, fmt.Errorf("%w: %d parts of time for %d jobs on %d models", ErrShape, len(base), n, len(in.GPUs))
		}
		for _, l := range levels(len(in.GPUs), base, in.Speed) {
			floor = append(floor, l*(1-reserve))
		}
	}
	few := merge(in, weight, floor, entities)
	f := newFilling(few.in, few.weight, few.entities, few.floor)
	var out Filling
	for tau := 0.0; len(f.jobs) > 0; out.Phases++ {
		p, next, ok := f.phase(tau)
		if !ok {
			out.Short = true
			break
		}
		if tau, ok = f.close(p, next); !ok {
			out.Short = true
			break
		}
	}
	a := Answer{X: few.split(f.x)}
	a.finish(in)
	if out.Short && a.below(floor) {
		a = Answer{X: slices.Clone(base)}
		a.finish(in)
	}
	if out.Short {
		a.top(in, weight)
	}
	out.X, out.Level, out.Rounds = a.X, a.Level, f.rounds
	return out, nil
}

// below tells whether a job stands lower than its floor.
func (a *Answer) below(floor []float64) bool {
	for m, l := range floor {
		if a.Level[m] < l*(1-amiss) {
			return true
		}
	}
	return false
}

// top gives out what is idle, where rounding hid the next phase: those who stand lowest by weight have
// the first turn, and use GPUs of the fastest model that has some, in their idle time first and
// then in place of slower ones. Nobody's level falls, and in the end no GPU is idle on which any job
// by itself would be faster.
func (a *Answer) top(in Instance, weight []float64) {
	k := len(in.GPUs)
	left, order := slices.Clone(in.GPUs), make([]int, len(in.Gang))
	for m, s := range in.Gang {
		order[m] = m
		for j, v := range a.X[m*k : (m+1)*k] {
			left[j] -= s * v
		}
	}
	slices.SortStableFunc(order, func(m, o int) int { return cmp.Compare(a.Level[m]/weight[m], a.Level[o]/weight[o]) })
	for range 2 * k { // GPUs that one job frees may serve another
		moved := false
		for _, m := range order {
			moved = a.rise(in, m, left) || moved
		}
		if !moved {
			break
		}
	}
	a.Level = levels(k, a.X, in.Speed)
}

// rise gives a job remaining GPUs of a faster model, and tells whether there were some.
func (a *Answer) rise(in Instance, m int, left []float64) (rose bool) {
	k := len(left)
	x, speed, gang := a.X[m*k:(m+1)*k], in.Speed[m*k:(m+1)*k], in.Gang[m]
	models := make([]int, k)
	idle := 1.0
	for j := range models {
		models[j] = j
		idle -= x[j]
	}
	slices.SortStableFunc(models, func(i, j int) int { return cmp.Compare(speed[j], speed[i]) })
	for at, j := range models {
		if speed[j] == 0 || left[j] <= scrap*in.GPUs[j] {
			continue
		}
		for _, i := range append([]int{-1}, models[at+1:]...) {
			has := max(idle, 0)
			if i >= 0 {
				if has = x[i]; speed[i] >= speed[j] {
					continue
				}
			}
			part := min(has, left[j]/gang)
			if part <= scrap {
				continue
			}
			rose = true
			x[j] += part
			left[j] -= gang * part
			if i >= 0 {
				x[i] -= part
				left[i] += gang * part
			} else {
				idle -= part
			}
		}
	}
	return rose
}

func (in Instance) checkFill(weight []float64, entities []Entity) error {
	if err := in.check(); err != nil {
		return err
	}
	n := len(in.Gang)
	if len(weight) != n {
		return fmt.Errorf("%w: %d jobs, %d weights", ErrShape, n, len(weight))
	}
	for m, w := range weight {
		if !usable(w) {
			return fmt.Errorf("%w: job %d has weight %v", ErrNumber, m, w)
		}
	}
	seen := make([]bool, n)
	members, err := count(entities, seen)
	if err == nil && members != n {
		err = fmt.Errorf("%w: %d of %d jobs are of an entity", ErrShape, members, n)
	}
	return err
}

// count counts the jobs of entities, and marks them.
func count(entities []Entity, seen []bool) (jobs int, err error) {
	for i, e := range entities {
		if !usable(e.Weight) {
			return 0, fmt.Errorf("%w: entity %d has weight %v", ErrNumber, i, e.Weight)
		}
		if len(e.Jobs) > 0 && len(e.Of) > 0 {
			return 0, fmt.Errorf("%w: entity %d has jobs and entities", ErrShape, i)
		}
		for _, m := range e.Jobs {
			if m < 0 || m >= len(seen) || seen[m] {
				return 0, fmt.Errorf("%w: entity %d has a job %d that is not one or is another's", ErrShape, i, m)
			}
			seen[m] = true
			jobs++
		}
		inside, err := count(e.Of, seen)
		if err != nil {
			return 0, err
		}
		jobs += inside
	}
	return jobs, nil
}

// filling is the state of Fill between phases.
type filling struct {
	in     Instance
	crowd  *crowd
	water  *water
	jobs   []int     // not yet settled on a way: they rise, or are bottlenecked with several
	left   []float64 // GPUs for those
	gpus   []float64 // the same and slack
	slack  float64   // relative excess of gpus over left: a reserve for rounding errors of the kept ways
	closed []bool    // models that have had a price
	x      []float64 // of the last phase for jobs, else for good
	rounds int
}

// Less than scrap of a model, relative, is nothing: in a phase it is the unit, and its rounding would not be small.
const scrap = 1e-11

// amiss is how far, relative, levels and GPUs of a phase may be from where they should.
const amiss = 1e-7

// reserve is the part of a floor that a job may lack: division and floors are rounded.
const reserve = 1e-9

func newFilling(in Instance, weight []float64, entities []Entity, floor []float64) *filling {
	k, n := len(in.GPUs), len(in.Gang)
	caps := make([]float64, n)
	f := &filling{in: in, crowd: newCrowd(k, in.Gang, even(in.Speed, k)), left: slices.Clone(in.GPUs), gpus: slices.Clone(in.GPUs), closed: make([]bool, k), x: make([]float64, n*k), slack: 1e-13}
	for m := range n {
		caps[m] = highest(in.Speed[m*k : (m+1)*k])
		f.jobs = append(f.jobs, m)
	}
	f.water = newWater(entities, weight, caps, floor)
	return f
}

// even makes a job's nearly equal speeds equal: a difference by rounding only could cost any
// number of GPUs.
func even(speed []float64, k int) []float64 {
	out := slices.Clone(speed)
	row := make([]int, k) // models, slowest first
	for from := 0; from < len(out); from += k {
		a := out[from : from+k]
		for j := range row {
			row[j] = j
		}
		slices.SortFunc(row, func(i, j int) int { return cmp.Compare(a[i], a[j]) })
		for i, j := range row[1:] {
			if below := a[row[i]]; a[j] <= below*(1+1e-10) {
				a[j] = below
			}
		}
	}
	return out
}

// ask pours tau and gives what the jobs pay at prices p (of k models, then 0), and how fast
// that rises with tau.
func (f *filling) ask(tau float64, p []float64) (cost, slope float64) {
	c := f.crowd
	clear(c.use)
	f.water.pour(tau)
	for _, m := range f.jobs {
		t := f.water.level[m]
		if t <= 0 {
			c.edge[2*m], c.edge[2*m+1] = uint8(c.k), uint8(c.k)
			continue
		}
		c.choose(m, t, p)
		l, r := int(c.edge[2*m]), int(c.edge[2*m+1])
		a := c.speed[m*(c.k+1) : (m+1)*(c.k+1)]
		s := c.gang[m]
		per := s / (a[r] - a[l])
		right := min(s, (t-a[l])*per)
		c.use[l] += s - right
		c.use[r] += right
		slope += f.water.rate[m] * per * (p[r] - p[l])
	}
	for j, v := range p {
		cost += v * c.use[j]
	}
	return cost, slope
}

// phase finds the highest water, from one that can be had, with prices that prove it, and
// writes a way to it for all jobs to x; not ok, and x as it was, where rounding hides it.
func (f *filling) phase(from float64) (best []float64, tau float64, ok bool) {
	k := len(f.gpus)
	tau = f.water.settle()
	p := make([]float64, k+1)
	for j, n := range f.gpus {
		p[j] = 1 / (float64(k) * n)
	}
	best = slices.Clone(p)
	proved := false // else nothing is in the way of the caps
	m := newMaster(k)
	var at []float64
	var edges [][]uint8
	beta := damping
	for range maxRounds {
		f.rounds++
		cost, slope := f.ask(tau, p)
		fell := false
		if cost > 1+1e-13 {
			high := f.root(from, tau, cost, slope, p)
			fell, proved, tau = high < tau*(1-1e-15), true, high
			copy(best, p)
		}
		gain := m.add(1, f.crowd.use, f.gpus)
		at, edges = append(at, tau), append(edges, slices.Clone(f.crowd.edge))
		if m.solve() >= 1-1e-11 {
			break
		}
		var more bool
		if beta, more = heldBack(beta, damping, gain > noise || fell); !more {
			break
		}
		m.prices(p, best, beta, f.gpus)
	}
	sum := 0.0
	for i, b := range m.basis {
		if b >= m.rows {
			sum += m.theta[i]
		}
	}
	if sum < 1-1e-4 {
		return best, from, false
	}
	// The duals prove it as well, if the prices have converged, and are exactly 0 where
	// damping leaves a trace.
	m.prices(p, best, 0, f.gpus)
	if cost, _ := f.ask(tau, p); math.Abs(cost-1) <= 1e-10 {
		copy(best, p)
	}
	for _, j := range f.jobs {
		clear(f.x[j*k : (j+1)*k])
	}
	for i, b := range m.basis {
		if b >= m.rows && m.theta[i] > 0 {
			f.water.pour(at[b-m.rows])
			for _, j := range f.jobs {
				f.crowd.mix(f.x, j, m.theta[i]/sum, f.water.level[j], edges[b-m.rows])
			}
		}
	}
	f.water.pour(tau)
	if !proved {
		clear(best)
	}
	return best, tau, true
}

// root gives the tau in (from, tau] at which the jobs pay 1, if at tau they pay more, and leaves
// the crowd there. Their payment is piecewise smooth in tau, not convex: it uses Newton's method,
// and halving outside the bracket.
func (f *filling) root(from, tau, cost, slope float64, p []float64) float64 {
	low, high := from, tau
	for range 100 {
		next := tau - (cost-1)/slope
		if !(next > low && next < high) {
			next = (low + high) / 2
		}
		if next <= low || next >= high {
			break
		}
		tau = next
		cost, slope = f.ask(tau, p)
		if math.Abs(cost-1) <= 1e-13 {
			return tau
		}
		if cost > 1 {
			high = tau
		} else {
			low = tau
		}
	}
	f.ask(high, p)
	return high
}

// close takes out of the program what prices p settle: models with a price for jobs that
// rise on, and jobs that are bottlenecked and have one way. Models that such jobs leave
// nothing of are closed in turn. It gives the tau to which they rose; not ok where rounding hides that.
func (f *filling) close(p []float64, tau float64) (float64, bool) {
	k := len(f.gpus)
	top := f.shut(p)
	standing := slices.Clone(f.jobs)
	if top > 0 {
		standing = slices.DeleteFunc(standing, func(m int) bool { return f.water.level[m] < f.open(m)*(1-1e-9) })
	}
	tau, off := f.exact(standing, tau)
	if off > amiss {
		return tau, false
	}
	f.slack = max(f.slack, 4*off)
	if top == 0 { // all stand at their caps
		f.jobs = nil
		return tau, true
	}
	// Prices near zero after convergence say nothing about ways.
	for j, n := range f.in.GPUs {
		if !f.closed[j] || p[j]*n < 1e-7*top {
			p[j] = 0
		}
	}
	for again := true; again; {
		keep := f.jobs[:0]
		for _, m := range f.jobs {
			if f.rises(m) || f.water.level[m] > 0 && f.ways(m, p) {
				keep = append(keep, m)
				continue
			}
			for j, v := range f.x[m*k : (m+1)*k] {
				f.left[j] -= f.in.Gang[m] * v
			}
		}
		f.jobs = keep
		again = false
		for j, n := range f.in.GPUs {
			if !f.closed[j] && f.left[j] <= max(scrap, 100*f.slack)*n {
				f.closed[j], again = true, true
			}
		}
	}
	for j, n := range f.in.GPUs {
		f.left[j] = max(f.left[j], 0)
		f.gpus[j] = f.left[j] + f.slack*n
	}
	if !slices.ContainsFunc(f.jobs, func(m int) bool { return !f.water.full[m] }) {
		f.jobs = nil
	}
	return tau, true
}

// shut closes the models that have a price and are used up, and gives the largest price of all GPUs of one; 0 =
// nothing is in the way of anybody.
func (f *filling) shut(p []float64) (top float64) {
	k := len(f.gpus)
	use := make([]float64, k)
	for _, m := range f.jobs {
		for j, v := range f.x[m*k : (m+1)*k] {
			use[j] += f.in.Gang[m] * v
		}
	}
	first := -1
	for j, n := range f.gpus {
		if !f.closed[j] && p[j]*n > top {
			first, top = j, p[j]*n
		}
	}
	for j, n := range f.gpus {
		if j == first || !f.closed[j] && p[j]*n > 1e-6*top && use[j] >= (1-1e-6)*n {
			f.closed[j] = true
		}
	}
	return top
}

// open gives the speed of a job on the fastest model that is open.
func (f *filling) open(m int) float64 {
	open := 0.0
	for j, shut := range f.closed {
		if !shut {
			open = max(open, f.crowd.speed[m*(len(f.gpus)+1)+j])
		}
	}
	return open
}

// rises tells whether a job can stand higher on the models that are open, and leaves it
// only those. One that cannot is full.
func (f *filling) rises(m int) bool {
	if f.water.full[m] {
		return false
	}
	k := len(f.gpus)
	a := f.crowd.speed[m*(k+1) : m*(k+1)+k]
	open := f.open(m)
	if f.water.level[m] >= open*(1-1e-9) {
		f.water.full[m], f.water.cap[m] = true, f.water.level[m]
		return false
	}
	for j := range a {
		if f.closed[j] {
			a[j] = 0
		}
	}
	f.water.cap[m] = open
	return true
}

// ways tells whether a bottlenecked job has several cheapest ways to its level at prices
// p, and leaves it no other models than those are made of.
func (f *filling) ways(m int, p []float64) bool {
	k, t := len(f.gpus), f.water.level[m]
	c := f.crowd
	a := c.speed[m*(k+1) : (m+1)*(k+1)]
	c.choose(m, t, p)
	l, r := int(c.edge[2*m]), int(c.edge[2*m+1])
	rise := c.steep(m, p)
	exact := a[r] <= t*(1+1e-9) // only points as high count beside r
	several := false
	for j, v := range a[:k] {
		line := p[l] + rise*(v-a[l])
		switch {
		case j == l || j == r:
		case f.x[m*k+j] > 1e-9: // it is in use, so it is one of them, whatever is left of the search in the prices
			several = true
		case p[j]-line > 1e-7*(p[j]+math.Abs(line))+1e-8*p[r]:
			a[j] = 0
		case v > 0 && (!exact || v >= t*(1-1e-9)):
			several = true
		}
	}
	idle := p[l] - rise*a[l] // the line at 0; the origin is not below it
	if l < k && !exact && -idle <= 1e-7*(p[l]+rise*a[l])+1e-8*p[r] {
		several = true
	}
	return several
}
