package envy

import (
	"flag"
	"math"
)

// splitMix is the generator of the certified instances.
type splitMix uint64

func (s *splitMix) next() uint64 {
	*s += 0x9E3779B97F4A7C15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
func (s *splitMix) float() float64 { return float64(s.next()>>11) / (1 << 53) }

func seeded(n int, ordered bool) (w [][]float64, m []float64) {
	r := splitMix(6000 + n)
	return random(&r, n, 10, ordered)
}

func random(r *splitMix, n, k int, ordered bool) (w [][]float64, m []float64) {
	for range n {
		row := make([]float64, k)
		a := 0.
		if ordered {
			a = .2 + .8*r.float()
		}
		for j := range row {
			switch {
			case ordered:
				row[j] = math.Pow(1+.35*float64(j), a)
			case j == 0:
				row[j] = 1
			default:
				row[j] = row[j-1] * (1 + .6*r.float())
			}
		}
		w = append(w, row)
	}
	for range k {
		m = append(m, float64(4+r.next()%29))
	}
	return w, m
}

func scaled(w [][]float64, m []float64) *Program {
	p := &Program{}
	n := len(w)
	for _, row := range w {
		sum := 0.
		for j := range row {
			sum += row[j] * m[j] / float64(n)
		}
		p.Gain = append(p.Gain, sum)
		p.Mass = append(p.Mass, 1/float64(n))
		for j := range row {
			p.Own = append(p.Own, row[j]*m[j]/float64(n)/sum)
		}
	}
	g := sum(p.Gain) / float64(n)
	for i := range p.Gain {
		p.Gain[i] /= g
		p.Mass[i] = 1
		p.Floor = append(p.Floor, 1)
		p.Cap = append(p.Cap, math.Inf(1))
	}
	p.Unit = m
	return p
}

// limited gives two of three tenants a use for only a tenth to nine tenths of the GPUs of the
// equal division, whose best, the last models, are the unit of their values then.
func limited(w [][]float64, m []float64, r *splitMix) *Program {
	p := scaled(w, m)
	n, k := p.size()
	for i := range n {
		if r.next()%3 == 0 {
			continue
		}
		p.Cap[i] = sum(m) * (.1 + .8*r.float())
		best, left, own := 0., p.Cap[i], row(p.Own, k, i)
		for j := k - 1; j >= 0 && left > 0; j-- {
			best += own[j] * min(left/m[j], 1)
			left -= m[j]
		}
		p.Gain[i] *= best
		for j := range own {
			own[j] /= best
		}
	}
	return p
}

// A property that fails must fail again: the same seed every time, unless -rapid.seed says otherwise.
func init() { _ = flag.Set("rapid.seed", "1") }
