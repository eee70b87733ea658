package policy

import (
	"cmp"
	"math"
	"slices"
)

// small is how many rows a program may have that is solved at once.
const small = 64

// likely gives pairs that the answer of a max-min program over a space will probably use, by job: those of the answer of a smaller program,
// in which jobs of equal throughputs share a row if their needs are within a factor of √2. nil = that would hardly be smaller. It takes a
// tenth of the time, and saves the larger program half of its pivots.
func (d *division) likely(s *space, need []float64) []use {
	if d.in.o.Whole || len(s.rows) < small {
		return nil
	}
	coarse := d.in.space(func(m int) []float64 { return []float64{math.Floor(2 * math.Log2(need[m]))} })
	if 2*len(coarse.rows) > len(s.rows) {
		return nil
	}
	mean := make([]float64, len(need))
	for _, jobs := range coarse.rows {
		sum := 0.0
		for _, m := range jobs {
			sum += need[m]
		}
		for _, m := range jobs {
			mean[m] = sum / float64(len(jobs))
		}
		slices.SortStableFunc(jobs, func(a, b int) int { return cmp.Compare(need[b], need[a]) }) // those with the largest needs pair with each other
	}
	v := d.solve(coarse, mean)
	if _, err := v.rise(mean); err != nil {
		return nil // the larger program may have an answer
	}
	return v.uses()
}

// begin makes columns of the pairs of an answer.
func begin(v *solver, likely []use) {
	if likely == nil {
		return
	}
	row := make([]int, len(v.d.in.p.Jobs))
	for r, jobs := range v.s.rows {
		for _, m := range jobs {
			row[m] = r
		}
	}
	of := func(a, b, model int) [3]int { return [3]int{min(a, b), max(a, b), model} }
	used := map[[3]int]bool{}
	for _, u := range likely {
		if u.b >= 0 {
			used[of(row[u.a], row[u.b], u.model)] = true
		}
	}
	var ways []int
	for w := v.s.alone; w < len(v.s.ways); w++ {
		if x := &v.s.ways[w]; used[of(x.a, x.b, x.model)] {
			ways = append(ways, w)
		}
	}
	v.add(ways)
}
