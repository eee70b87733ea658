package score

import (
	"cmp"
	"math/bits"
	"slices"
)

// exactValues is the maximum number of values that a spread keeps exactly.
const exactValues = 1 << 16

// spread collects integers ≥ 0 and gives their mean and percentiles, independent of their order.
// Beyond exactValues it counts them in bins at most 1/1024 of their value wide.
type spread struct {
	exact    []int64
	bins     map[int]int64 // by binOf; nil while exact
	n        int64
	hi, lo   uint64 // sum of all values
	min, max int64
}

func (s *spread) add(v int64) {
	if s.n == 0 {
		s.min, s.max = v, v
	}
	s.min, s.max = min(s.min, v), max(s.max, v)
	s.n++
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, uint64(v), 0)
	s.hi += carry
	if s.bins != nil {
		s.bins[binOf(v)]++
		return
	}
	s.exact = append(s.exact, v)
	if len(s.exact) > exactValues {
		s.fold()
	}
}

// join adds all of another spread's values.
func (s *spread) join(o *spread) {
	for _, v := range o.exact {
		s.add(v)
	}
	if o.bins == nil {
		return
	}
	if s.bins == nil {
		s.fold()
	}
	for bin, c := range o.bins {
		s.bins[bin] += c
	}
	if s.n == 0 {
		s.min, s.max = o.min, o.max
	}
	s.min, s.max = min(s.min, o.min), max(s.max, o.max)
	s.n += o.n
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, o.lo, 0)
	s.hi += o.hi + carry
}

// fold changes to bins.
func (s *spread) fold() {
	s.bins = map[int]int64{}
	for _, v := range s.exact {
		s.bins[binOf(v)]++
	}
	s.exact = nil
}

// binOf keeps the first 11 bits of a number: bins are one wide below 2048, two wide below 4096,
// and so on.
func binOf(v int64) int {
	shift := max(0, bits.Len64(uint64(v))-11)
	return shift<<10 + int(v>>shift)
}

// middle gives the representative value of a bin.
func middle(bin int) int64 {
	shift := max(0, bin>>10-1)
	return int64(bin-shift<<10)<<shift + int64(1)<<shift/2
}

// at gives the values of the ranks, which rise; rank 1 is the smallest value.
func (s *spread) at(ranks []int64) []int64 {
	out := make([]int64, 0, len(ranks))
	if s.bins == nil {
		slices.Sort(s.exact)
		for _, r := range ranks {
			out = append(out, s.exact[r-1])
		}
		return out
	}
	type bin struct {
		key   int
		count int64
	}
	sorted := make([]bin, 0, len(s.bins))
	for k, c := range s.bins {
		sorted = append(sorted, bin{k, c})
	}
	slices.SortFunc(sorted, func(a, b bin) int { return cmp.Compare(a.key, b.key) })
	i, below := 0, int64(0)
	for _, r := range ranks {
		for below+sorted[i].count < r {
			below += sorted[i].count
			i++
		}
		out = append(out, min(max(middle(sorted[i].key), s.min), s.max))
	}
	return out
}

// rank gives the rank of the nearest-rank percentile: ceil(n·permille/1000), at least 1.
func (s *spread) rank(permille int64) int64 { return max(1, (s.n*permille+999)/1000) }

// Stats summarises values. With Count 0 the other fields are 0 and meaningless.
type Stats struct {
	Count  int64   `json:"count"`
	Mean   float64 `json:"mean"`
	Min    float64 `json:"min"`
	Q1     float64 `json:"q1"`
	Median float64 `json:"median"`
	Q3     float64 `json:"q3"`
	P95    float64 `json:"p95"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

// stats divides every value by unit, such as milliseconds in a second.
func (s *spread) stats(unit float64) Stats {
	if s.n == 0 {
		return Stats{}
	}
	v := s.at([]int64{s.rank(250), s.rank(500), s.rank(750), s.rank(950), s.rank(990)})
	of := func(v int64) float64 { return float64(v) / unit }
	sum := float64(s.hi)*(1<<64) + float64(s.lo)
	return Stats{Count: s.n, Mean: sum / float64(s.n) / unit, Min: of(s.min), Q1: of(v[0]), Median: of(v[1]),
		Q3: of(v[2]), P95: of(v[3]), P99: of(v[4]), Max: of(s.max)}
}

// cdfSteps is the number of equal steps of a CDF.
const cdfSteps = 200

// cdf gives the minimum and then the values that 1/200, 2/200 … of all do not
// exceed, divided by unit; nil without values.
func (s *spread) cdf(unit float64) []float64 {
	if s.n == 0 {
		return nil
	}
	ranks := make([]int64, cdfSteps+1)
	for i := range ranks {
		ranks[i] = s.rank(int64(i) * 1000 / cdfSteps)
	}
	out := make([]float64, 0, len(ranks))
	for _, v := range s.at(ranks) {
		out = append(out, float64(v)/unit)
	}
	return out
}
