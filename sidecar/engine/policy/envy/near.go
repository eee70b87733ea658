package envy

import (
	"cmp"
	"math"
	"slices"
)

// tastes gives the logarithms of what models are worth to each tenant, centred.
func tastes(p *Program) []float64 {
	n, k := p.size()
	taste := make([]float64, n*k)
	for i := range n {
		t, mean := row(taste, k, i), 0.0
		for j, w := range row(p.Own, k, i) {
			t[j] = math.Log(max(w, 1e-6))
			mean += t[j] / float64(k)
		}
		for j := range t {
			t[j] -= mean
		}
	}
	return taste
}

// near gives the rows between every tenant and those count nearest to it in taste, both ways.
func near(p *Program, count int) []pair {
	n, k := p.size()
	taste := tastes(p)
	type other struct {
		far float64
		l   int32
	}
	others := make([]other, 0, count+1) // the nearest so far, in order
	var pairs []pair
	for i := range n {
		others = others[:0]
		for l := range n {
			if l == i {
				continue
			}
			far := 0.0
			for j, t := range row(taste, k, i) {
				d := t - taste[l*k+j]
				far += d * d
			}
			at := len(others)
			for at > 0 && far < others[at-1].far {
				at--
			}
			if at < count {
				others = slices.Insert(others, at, other{far, int32(l)})
				others = others[:min(count, len(others))]
			}
		}
		for _, o := range others {
			pairs = append(pairs, pair{int32(i), o.l}, pair{o.l, int32(i)})
		}
	}
	return tidy(pairs)
}

// tidy sorts pairs by the one who is envied, and drops what is there twice.
func tidy(pairs []pair) []pair {
	slices.SortFunc(pairs, byPart)
	return slices.Compact(pairs)
}

func byPart(a, b pair) int { return cmp.Or(cmp.Compare(a.l, b.l), cmp.Compare(a.i, b.i)) }

// broken gives up to most envy rows of each tenant that y and v break by more than slack,
// worst first; pair{i, i} is tenant i's cap.
func broken(p *Program, y, v []float64, most int, slack float64) []pair {
	n, k := p.size()
	type seen struct {
		by float64
		l  int32
	}
	var worst []seen
	var pairs []pair
	for i := range n {
		worst = worst[:0]
		limit := v[i] + slack*max(1, v[i])
		for l := range n {
			if by := p.sees(i, l, row(y, k, l)) - limit; by > 0 && l != i {
				worst = append(worst, seen{by, int32(l)})
			}
		}
		if over := dot(p.Unit, row(y, k, i)) - p.Cap[i]; over > slack*p.Cap[i] {
			worst = append(worst, seen{math.Inf(1), int32(i)})
		}
		slices.SortFunc(worst, func(a, b seen) int { return cmp.Or(cmp.Compare(b.by, a.by), cmp.Compare(a.l, b.l)) })
		for _, s := range worst[:min(most, len(worst))] {
			pairs = append(pairs, pair{int32(i), s.l})
		}
	}
	return pairs
}

// order gives the tenants so that those of like tastes are near each other: split in halves at
// the median of the coordinate that varies most, and so on.
func order(p *Program) []int {
	n, k := p.size()
	taste := tastes(p)
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	var split func(part []int)
	split = func(part []int) {
		if len(part) < 3 {
			return
		}
		widest, most := 0, -1.0
		for j := range k {
			mean, square := 0.0, 0.0
			for _, i := range part {
				t := taste[i*k+j]
				mean += t / float64(len(part))
				square += t * t / float64(len(part))
			}
			if v := square - mean*mean; v > most {
				widest, most = j, v
			}
		}
		slices.SortFunc(part, func(a, b int) int {
			return cmp.Or(cmp.Compare(taste[a*k+widest], taste[b*k+widest]), cmp.Compare(a, b))
		})
		split(part[:len(part)/2])
		split(part[len(part)/2:])
	}
	split(all)
	return all
}

// permuted gives the program with its tenants in an order.
func permuted(p *Program, order []int) *Program {
	_, k := p.size()
	q := &Program{Unit: p.Unit}
	for _, i := range order {
		q.Gain = append(q.Gain, p.Gain[i])
		q.Mass = append(q.Mass, p.Mass[i])
		q.Own = append(q.Own, row(p.Own, k, i)...)
		q.Floor = append(q.Floor, p.Floor[i])
		q.Cap = append(q.Cap, p.Cap[i])
	}
	return q
}
