package simtest

import (
	"math"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
	"github.com/fairlease/fairlease/sidecar/engine/policy/price"
)

// Scarce is n jobs with gangs of 1 to 8 and weights 1 to 4 over k models, with a GPU for every
// four jobs. Each throughput is random in [1, 10), so that no two jobs are equal and no order of
// models serves all. Levels are Gavel's without weights (§4.1).
func Scarce(n, k int) (in price.Instance, weight []float64) {
	s := splitMix(9000 + n)
	in.GPUs = make([]float64, k)
	parts := make([]float64, k)
	sum := 0.0
	for j := range parts {
		parts[j] = float64(1 + s.next()%4)
		sum += parts[j]
	}
	for j := range parts {
		in.GPUs[j] = math.Ceil(.25 * float64(n) * parts[j] / sum)
	}
	row := make([]float64, k)
	for range n {
		gang := float64(1 + s.next()%8)
		weight = append(weight, float64(1+s.next()%4))
		equal := 0.0
		for j := range row {
			row[j] = 1 + 9*s.unit()
			equal += row[j] * parts[j] / sum
		}
		in.Gang = append(in.Gang, gang)
		for _, v := range row {
			in.Speed = append(in.Speed, gang*v/equal)
		}
	}
	return in, weight
}

// Weighted divides the speeds of each job by its weight.
func Weighted(in price.Instance, weight []float64) price.Instance {
	k := len(in.GPUs)
	speed := make([]float64, len(in.Speed))
	for i, v := range in.Speed {
		speed[i] = v / weight[i/k]
	}
	in.Speed = speed
	return in
}

// Teams puts n jobs into 32 entities of weights 1 to 4, the first fifo of them FIFO.
func Teams(n, fifo int) []price.Entity {
	s := splitMix(n)
	out := make([]price.Entity, 32)
	for i := range out {
		out[i].Weight = float64(1 + s.next()%4)
		out[i].FIFO = i < fifo
	}
	for m := range n {
		i := s.next() % 32
		out[i].Jobs = append(out[i].Jobs, m)
	}
	return out
}

// Tenants is n tenants with unordered speedups over k models of 4 to 32 GPUs: each model up to
// 1.6 times as fast as the previous one. With 10 models these are the instances with known
// optima.
func Tenants(n, k int) (gpus, speedup []float64) {
	s := splitMix(6000 + n)
	for range n {
		w := 1.
		for j := range k {
			if j > 0 {
				w *= 1 + .6*s.unit()
			}
			speedup = append(speedup, w)
		}
	}
	for range k {
		gpus = append(gpus, float64(4+s.next()%29))
	}
	return gpus, speedup
}

// MaxMinProgram is price.MaxMin as a linear program for CLP: the level is the last column, in
// multiples of unit.
func MaxMinProgram(in price.Instance, unit float64) *lp.Program {
	k, n := len(in.GPUs), len(in.Gang)
	p := lp.New()
	p.Maximise()
	p.Set(lp.Options{PrimalTolerance: 1e-9, DualTolerance: 1e-9})
	rows := make([]lp.Row, 2*n+k) // levels, times, models
	for m := range n {
		rows[m] = lp.Row{Lower: 0, Upper: math.Inf(1)}
		rows[n+m] = lp.Row{Lower: math.Inf(-1), Upper: 1}
	}
	for j := range k {
		rows[2*n+j] = lp.Row{Lower: math.Inf(-1), Upper: 1}
	}
	p.AddRows(rows...)
	columns := make([]lp.Column, 0, n*k+1)
	level := lp.Column{Upper: math.Inf(1), Cost: 1}
	for m := range n {
		for j := range k {
			columns = append(columns, lp.Column{Upper: math.Inf(1), Entries: []lp.Entry{
				{At: m, Value: in.Speed[m*k+j] / unit}, {At: n + m, Value: 1}, {At: 2*n + j, Value: in.Gang[m] / in.GPUs[j]}}})
		}
		level.Entries = append(level.Entries, lp.Entry{At: m, Value: -1})
	}
	p.AddColumns(append(columns, level)...)
	return p
}

// EqualProgram is price.EqualThroughput with weights of 1 as a linear program for CLP, in
// multiples of unit.
func EqualProgram(gpus, speedup []float64, unit float64) *lp.Program {
	k := len(gpus)
	n := len(speedup) / k
	p := lp.New()
	p.Maximise()
	p.Set(lp.Options{PrimalTolerance: 1e-9, DualTolerance: 1e-9})
	rows := make([]lp.Row, n+k) // throughputs, models
	for j, have := range gpus {
		rows[n+j] = lp.Row{Lower: math.Inf(-1), Upper: have}
	}
	p.AddRows(rows...)
	columns := make([]lp.Column, 0, n*k+1)
	common := lp.Column{Upper: math.Inf(1), Cost: 1}
	for l := range n {
		for j := range k {
			columns = append(columns, lp.Column{Upper: math.Inf(1), Entries: []lp.Entry{{At: l, Value: speedup[l*k+j] / unit}, {At: n + j, Value: 1}}})
		}
		common.Entries = append(common.Entries, lp.Entry{At: l, Value: -1})
	}
	p.AddColumns(append(columns, common)...)
	return p
}

// EnvyProgram is the cooperative program of such tenants with all its rows as a linear program
// for CLP.
func EnvyProgram(gpus, speedup []float64) *lp.Program {
	k := len(gpus)
	n := len(speedup) / k
	p := lp.New()
	p.Maximise()
	p.Set(lp.Options{PrimalTolerance: 1e-9, DualTolerance: 1e-9})
	columns := make([]lp.Column, n*k)
	for at, w := range speedup {
		columns[at] = lp.Column{Upper: math.Inf(1), Cost: w}
	}
	p.AddColumns(columns...)
	for j, m := range gpus {
		row := lp.Row{Lower: math.Inf(-1), Upper: m}
		for l := range n {
			row.Entries = append(row.Entries, lp.Entry{At: l*k + j, Value: 1})
		}
		p.AddRows(row)
	}
	for i := range n {
		var rows []lp.Row
		for l := range n {
			row := lp.Row{Upper: math.Inf(1)}
			for j, w := range speedup[i*k : i*k+k] {
				row.Entries = append(row.Entries, lp.Entry{At: i*k + j, Value: w}, lp.Entry{At: l*k + j, Value: -w})
			}
			if l != i {
				rows = append(rows, row)
			}
		}
		p.AddRows(rows...)
	}
	return p
}
