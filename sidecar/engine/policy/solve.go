package policy

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
)

// solver keeps a program over a space:
//
//	max  Σ gain_w x_w + height·t
//	     Σ throughput_m(x)/scale_m - need_m t >= floor_m   for every row m
//	     Σ x_w of row m                     <= jobs of m
//	     Σ gang x_w / GPUs of model j       <= 1          for every model, and for what is together
//
// Pairs are many and few are of use: they are columns only from when the prices of the
// last solution say that they pay.
type solver struct {
	d *division
	s *space
	p *lp.Program

	top    []float64 // of each row: the throughput of one of its jobs on its fastest model
	scale  []float64 // of each row: about what its jobs need, so that its tolerance is of that
	gains  []float64 // of each way
	column []int     // of each way; -1 = not there yet
	ways   []int     // of each column, behind t's
	duals  []float64
}

// The numbers of a program are about 1; an answer is this far from its rows at most.
const tolerance = 1e-9

// pivots end a program that goes in circles.
const pivots = 5_000_000

// solve begins a program; need is what the jobs will need about, or nil.
func (d *division) solve(s *space, need []float64) *solver {
	n, k := len(s.rows), len(d.in.p.Models)
	v := &solver{d: d, s: s, p: lp.New().Maximise(), top: make([]float64, n), scale: make([]float64, n), gains: make([]float64, len(s.ways)), column: make([]int, len(s.ways))}
	d.keep(v)
	v.p.Set(lp.Options{PrimalTolerance: tolerance, DualTolerance: tolerance, MaxIterations: pivots})
	rows := make([]lp.Row, 2*n+2*k)
	for m, jobs := range s.rows {
		v.top[m] = d.in.top[jobs[0]]
		if v.top[m] == 0 {
			v.top[m] = 1
		}
		rows[m] = lp.Row{Lower: math.Inf(-1), Upper: math.Inf(1)}
		rows[n+m] = lp.Row{Lower: math.Inf(-1), Upper: float64(len(jobs))}
	}
	for j := range 2 * k {
		rows[2*n+j] = lp.Row{Lower: math.Inf(-1), Upper: 1}
	}
	copy(v.scale, v.top)
	if need != nil {
		unit := v.unit(need)
		for m, jobs := range s.rows {
			v.scale[m] = max(1e-6*v.top[m], min(v.top[m], need[jobs[0]]*unit))
		}
	}
	v.p.AddRows(rows...)
	v.p.AddColumns(lp.Column{}) // t
	for w := range v.column {
		v.column[w] = -1
	}
	all := make([]int, s.alone)
	for w := range all {
		all[w] = w
	}
	v.add(all)
	if d.in.o.Whole {
		v.add(v.absent())
	}
	return v
}

// add makes columns of ways.
func (v *solver) add(ways []int) {
	n, k := len(v.s.rows), len(v.d.in.p.Models)
	columns := make([]lp.Column, len(ways))
	entries := make([]lp.Entry, 0, 6*len(ways))
	for i, w := range ways {
		x, from := v.s.ways[w], len(entries)
		v.column[w] = 1 + len(v.ways)
		v.ways = append(v.ways, w)
		switch x.b {
		case -1:
			entries = append(entries, lp.Entry{At: x.a, Value: x.speedA / v.scale[x.a]}, lp.Entry{At: n + x.a, Value: 1})
		case x.a:
			entries = append(entries, lp.Entry{At: x.a, Value: (x.speedA + x.speedB) / v.scale[x.a]}, lp.Entry{At: n + x.a, Value: 2})
		default:
			entries = append(entries, lp.Entry{At: x.a, Value: x.speedA / v.scale[x.a]}, lp.Entry{At: x.b, Value: x.speedB / v.scale[x.b]},
				lp.Entry{At: n + x.a, Value: 1}, lp.Entry{At: n + x.b, Value: 1})
		}
		model := v.d.in.p.Models[x.model]
		gang := v.gang(x)
		entries = append(entries, lp.Entry{At: 2*n + x.model, Value: gang / model.GPUs})
		if v.confined(x) {
			entries = append(entries, lp.Entry{At: 2*n + k + x.model, Value: gang / model.together()})
		}
		columns[i] = lp.Column{Upper: math.Inf(1), Cost: v.gains[w], Entries: entries[from:]}
	}
	v.p.AddColumns(columns...)
}

func (v *solver) gang(x way) float64 { return float64(v.d.in.p.Jobs[v.s.rows[x.a][0]].Gang) }

func (v *solver) confined(x way) bool {
	b := -1
	if x.b >= 0 {
		b = v.s.rows[x.b][0]
	}
	return v.d.in.confined(v.s.rows[x.a][0], b, x.model, x.apart)
}

// gain sets what a unit of each way adds to the objective.
func (v *solver) gain(of func(x way) float64) {
	for w, x := range v.s.ways {
		v.gains[w] = of(x)
		if c := v.column[w]; c >= 0 {
			v.p.SetCost(c, v.gains[w])
		}
	}
}

// floor demands a throughput of every job of a row.
func (v *solver) floor(m int, throughput float64) {
	v.p.SetRowBounds(m, float64(len(v.s.rows[m]))*throughput/v.scale[m], math.Inf(1))
}

// need makes a row's jobs rise by throughput each with every unit of t.
func (v *solver) need(m int, throughput float64) {
	v.p.SetCoefficient(m, 0, -float64(len(v.s.rows[m]))*throughput/v.scale[m])
}

// height sets what a unit of t is worth, and how far it may rise.
func (v *solver) height(worth, high float64) {
	v.p.SetCost(0, worth)
	v.p.SetColumnBounds(0, 0, high)
}

// run solves, and adds pairs until none pays.
func (v *solver) run() error {
	for {
		if v.d.in.o.Whole {
			_ = v.p.Solve(lp.Presolve) // its result is a start, to 1e-6 or so
		}
		err := v.p.Solve(lp.Primal)
		if errors.Is(err, lp.ErrNumerical) {
			err = v.p.Solve(lp.Dual)
		}
		if err != nil {
			return err
		}
		v.duals = v.p.Duals(v.duals[:0])
		more := v.paying()
		if len(more) == 0 {
			return nil
		}
		v.add(more)
	}
}

// absent gives the ways that are not there.
func (v *solver) absent() []int {
	var rest []int
	for w, c := range v.column {
		if c < 0 {
			rest = append(rest, w)
		}
	}
	return rest
}

// In a round a row offers its best pairs, and takes part in few of those that are added: else all rows would
// add pairs with the same partners, which have time for few of them.
const (
	best = 16
	few  = 2
)

// offer is a pair that would raise the objective.
type offer struct {
	profit float64
	way    int
}

// paying gives pairs that are not there and would raise the objective most, by the prices of the last solution.
func (v *solver) paying() []int {
	n, k := len(v.s.rows), len(v.d.in.p.Models)
	worth := make([]float64, n) // of a step a second of a row
	for m := range worth {
		worth[m] = -v.duals[m] / v.scale[m]
	}
	time := v.duals[n:]
	offers := make([][best]offer, n)
	for w := v.s.alone; w < len(v.s.ways); w++ {
		if v.column[w] >= 0 {
			continue
		}
		x := &v.s.ways[w]
		profit := v.gains[w] + worth[x.a]*x.speedA + worth[x.b]*x.speedB - time[x.a] - time[x.b]
		if profit <= tolerance {
			continue
		}
		gang := v.gang(*x)
		profit -= gang / v.d.in.p.Models[x.model].GPUs * v.duals[2*n+x.model]
		if v.confined(*x) {
			profit -= gang / v.d.in.p.Models[x.model].together() * v.duals[2*n+k+x.model]
		}
		if profit > tolerance {
			hold(&offers[x.a], offer{profit, w})
			hold(&offers[x.b], offer{profit, w})
		}
	}
	var all []offer
	for m := range offers {
		for _, o := range offers[m] {
			if o.profit > 0 {
				all = append(all, o)
			}
		}
	}
	slices.SortFunc(all, func(a, b offer) int { return cmp.Or(cmp.Compare(b.profit, a.profit), cmp.Compare(a.way, b.way)) })
	takes := make([]int, n)
	var out []int
	for _, o := range slices.Compact(all) {
		if x := &v.s.ways[o.way]; takes[x.a] < few && takes[x.b] < few {
			takes[x.a]++
			takes[x.b]++
			out = append(out, o.way)
		}
	}
	return out
}

// hold puts an offer among the best of a row, in order.
func hold(offers *[best]offer, o offer) {
	if o.profit <= offers[best-1].profit {
		return
	}
	for i := range offers {
		if o.profit > offers[i].profit {
			o, offers[i] = offers[i], o
		}
	}
}

// uses gives the last solution, by jobs.
func (v *solver) uses() []use {
	var out []use
	x := v.p.Values(nil)
	for i, w := range v.ways {
		if x[1+i] <= 0 {
			continue
		}
		y := v.s.ways[w]
		if y.b < 0 {
			for _, m := range v.s.rows[y.a] {
				out = append(out, use{a: m, b: -1, model: y.model, apart: y.apart, part: x[1+i] / float64(len(v.s.rows[y.a]))})
			}
			continue
		}
		for _, t := range matched(v.s.rows[y.a], v.s.rows[y.b], y.a == y.b) {
			out = append(out, use{a: min(t.a, t.b), b: max(t.a, t.b), model: y.model, pair: y.pair, part: t.part * x[1+i]})
		}
	}
	if len(v.s.rows) < len(v.d.in.p.Jobs) {
		v.find(out)
	}
	return out
}

// find sets the pair of every use by two jobs, where way.pair is one of many of the same rows.
func (v *solver) find(uses []use) {
	n := len(v.s.rows)
	row := make([]int, len(v.d.in.p.Jobs))
	for r, jobs := range v.s.rows {
		for _, m := range jobs {
			row[m] = r
		}
	}
	of, some := map[[2]int][]int{}, make([]bool, n*n)
	for i, u := range uses {
		if u.b >= 0 {
			of[[2]int{u.a, u.b}] = append(of[[2]int{u.a, u.b}], i)
			some[row[u.a]*n+row[u.b]] = true
		}
	}
	for p, q := range v.d.in.p.Pairs {
		if some[row[q.A]*n+row[q.B]] {
			for _, i := range of[[2]int{q.A, q.B}] {
				uses[i].pair = p
			}
		}
	}
}

// match is a part of the time that two jobs run together.
type match struct {
	a, b int
	part float64
}

// matched shares one unit of time of two rows, or within one, so that all jobs of a row have as
// much of it: along a stair from the first of both to the last, or round a ring.
func matched(as, bs []int, same bool) []match {
	var out []match
	if same {
		if len(as) == 2 {
			return []match{{as[0], as[1], 1}}
		}
		for i, a := range as {
			out = append(out, match{a, as[(i+1)%len(as)], 1 / float64(len(as))})
		}
		return out
	}
	// In units of 1/(|as|·|bs|) all is whole.
	i, j, left, right := 0, 0, len(bs), len(as)
	for i < len(as) && j < len(bs) {
		step := min(left, right)
		out = append(out, match{as[i], bs[j], float64(step) / float64(len(as)*len(bs))})
		left, right = left-step, right-step
		if left == 0 {
			i, left = i+1, len(bs)
		}
		if right == 0 {
			j, right = j+1, len(as)
		}
	}
	return out
}
