package policy

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
)

// space is all that the jobs of a problem can do: its ways are the columns of every
// program. A row is a job, or jobs that are alike in everything: dividing what they
// get together by their number loses nothing, as averaging over them keeps every
// constraint and every smallest level.
type space struct {
	rows  [][]int // the jobs of each
	ways  []way
	alone int   // ways[:alone] are those of single jobs,
	first []int // and ways[first[r]:first[r+1]] those of row r
}

// way is one row alone, or two rows as a pair, on a model; a = b is a pair of two of the
// same row.
type way struct {
	a, b           int // rows; b = -1 for one alone
	model          int
	pair           int // index into Pairs: the first of these rows, for two
	apart          bool
	speedA, speedB float64
}

// space takes every job for itself where key is nil. Else jobs with equal keys, gangs and
// throughputs, alone and with each other, share a row.
func (g *given) space(key func(m int) []float64) *space {
	row := make([]int, len(g.p.Jobs))
	for m := range row {
		row[m] = m
	}
	if key != nil && !g.o.Whole {
		row = g.alike(key)
	}
	s := &space{}
	for m, r := range row {
		if r == len(s.rows) {
			s.rows = append(s.rows, nil)
		}
		s.rows[r] = append(s.rows[r], m)
	}
	for r, jobs := range s.rows {
		s.first = append(s.first, len(s.ways))
		s.single(g, r, jobs[0])
	}
	s.alone = len(s.ways)
	s.first = append(s.first, s.alone)
	n := len(s.rows)
	var seen []bool // of two rows: is their pair there
	if n < len(row) {
		seen = make([]bool, n*n)
	}
	for i, q := range g.p.Pairs {
		a, b := row[q.A], row[q.B]
		if seen != nil {
			if seen[a*n+b] {
				continue
			}
			seen[a*n+b], seen[b*n+a] = true, true
		}
		s.double(g, a, b, i)
	}
	return s
}

// plain tells whether all that is of use is jobs alone, on as few nodes as they need.
func (g *given) plain() bool {
	if g.o.Whole {
		return false
	}
	for i := range g.p.Models {
		for m := range g.p.Jobs {
			if g.spread(m, i) || g.confined(m, -1, i, false) {
				return false
			}
		}
		for q := range g.p.Pairs {
			if g.paired(q, i) {
				return false
			}
		}
	}
	return true
}

// spread tells whether spreading a job over nodes is useful on a model: it is faster then, or
// GPUs together are scarce.
func (g *given) spread(m, model int) bool {
	j := &g.p.Jobs[m]
	return j.Apart != nil && j.Apart[model] > 0 && (j.Apart[model] > j.Speed[model] || g.p.Models[model].Together != nil)
}

// paired tells whether a pair is of use on a model: the two do more together than when they take
// turns, and there is a solver for pairs. Else each alone for speedA/T_a and speedB/T_b of the time does the same with less.
func (g *given) paired(pair, model int) bool {
	if !lp.Available {
		return false
	}
	q := &g.p.Pairs[pair]
	a, b := q.SpeedA[model], q.SpeedB[model]
	return a > 0 && b > 0 && a/g.p.Jobs[q.A].Speed[model]+b/g.p.Jobs[q.B].Speed[model] > 1
}

// single adds the ways of a job alone.
func (s *space) single(g *given, row, m int) {
	j := &g.p.Jobs[m]
	for i, v := range j.Speed {
		if v > 0 {
			s.ways = append(s.ways, way{a: row, b: -1, model: i, speedA: v})
		}
		if g.spread(m, i) {
			s.ways = append(s.ways, way{a: row, b: -1, model: i, apart: true, speedA: j.Apart[i]})
		}
	}
}

// double adds the ways of a pair.
func (s *space) double(g *given, a, b, pair int) {
	q := &g.p.Pairs[pair]
	for i := range g.p.Models {
		if g.paired(pair, i) {
			s.ways = append(s.ways, way{a: a, b: b, model: i, pair: pair, speedA: q.SpeedA[i], speedB: q.SpeedB[i]})
		}
	}
}

// alike numbers the rows that jobs share, in the order of their first jobs. Jobs of one row pair alike with all jobs
// of any row, and with each other; where they do not, they have rows of their own, and
// all have where there are too many rows for a table of two.
func (g *given) alike(key func(m int) []float64) []int {
	row, kinds := make([]int, len(g.p.Jobs)), map[string]int{}
	for m, j := range g.p.Jobs {
		var b []byte
		for _, v := range slices.Concat(key(m), j.Speed, j.Apart, []float64{float64(j.Gang)}) {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		if _, ok := kinds[string(b)]; !ok {
			kinds[string(b)] = len(kinds)
		}
		row[m] = kinds[string(b)]
	}
	for n := len(kinds); len(g.p.Pairs) > 0 && n < len(row); {
		if n > 2048 {
			for m := range row {
				row[m] = m
			}
			break
		}
		odd := g.odd(row, n)
		if !slices.Contains(odd, true) {
			return row
		}
		// Those of an odd row get rows of their own, and all are numbered again by first job.
		number := map[int]int{}
		for m, r := range row {
			if odd[r] {
				r = n + m
			}
			if _, ok := number[r]; !ok {
				number[r] = len(number)
			}
			row[m] = number[r]
		}
		n = len(number)
	}
	return row
}

// odd tells which of n rows have jobs that pair in different ways.
func (g *given) odd(row []int, n int) []bool {
	size := make([]int, n)
	for _, r := range row {
		size[r]++
	}
	first, count := make([]int, n*n), make([]int, n*n) // of the pairs of two rows: the first, and how many
	out := make([]bool, n)
	for i, q := range g.p.Pairs {
		a, b := row[q.A], row[q.B]
		at := min(a, b)*n + max(a, b)
		if count[at] == 0 {
			first[at] = i
		}
		count[at]++
		if f := g.p.Pairs[first[at]]; row[f.A] == a && (!slices.Equal(q.SpeedA, f.SpeedA) || !slices.Equal(q.SpeedB, f.SpeedB)) ||
			row[f.A] != a && (!slices.Equal(q.SpeedA, f.SpeedB) || !slices.Equal(q.SpeedB, f.SpeedA)) ||
			a == b && !slices.Equal(q.SpeedA, q.SpeedB) {
			out[a], out[b] = size[a] > 1, size[b] > 1
		}
	}
	for a := range n {
		for b := a; b < n; b++ {
			all := size[a] * size[b]
			if a == b {
				all = size[a] * (size[a] - 1) / 2
			}
			if c := count[a*n+b]; c > 0 && c != all {
				out[a], out[b] = size[a] > 1, size[b] > 1
			}
		}
	}
	return out
}
