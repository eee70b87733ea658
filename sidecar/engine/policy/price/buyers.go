package price

// buyers are tenants that answer prices: each takes the model that gives the most for its price, and as
// much of it as its level takes. As with steady, those that surely keep their model within a small
// range of prices are taken together.
type buyers struct {
	k      int
	need   []float64 // GPUs of each model for level 1; 0 = of no use
	good   []uint8   // the model that each takes, from the last look
	use    []float64 // GPUs of each model that the last look asked for
	last   []float64 // prices of the last look
	centre []float64 // prices of the sum
	width  float64   // how far, relative, prices may be from those; 0 = no sum
	use0   []float64 // GPUs that the tenants in the sum take for level 1
	moving []int32   // the other tenants
}

func newBuyers(k int, weight, speedup []float64) *buyers {
	b := &buyers{k: k, need: make([]float64, len(speedup)), good: make([]uint8, len(weight)), use: make([]float64, k),
		last: make([]float64, k), centre: make([]float64, k), use0: make([]float64, k)}
	for i, v := range speedup {
		if v > 0 {
			b.need[i], b.good[i/k] = weight[i/k]/v, uint8(i%k)
		}
	}
	return b
}

// ask gives what all pay for level t at prices p, and how fast that rises with t.
func (b *buyers) ask(t float64, p []float64) (cost, slope float64) {
	p = p[:b.k]
	clear(b.use)
	move := far(p, b.last)
	copy(b.last, p)
	within := b.width > 0 && far(p, b.centre) <= b.width
	switch {
	case within && (16*move > b.width || 32*len(b.moving) < len(b.good)):
		copy(b.use, b.use0)
		for _, l := range b.moving {
			b.take(int(l), p)
		}
	case move < settled && move > 0:
		b.sum(p, 4*move)
	default:
		b.width = 0 // tenants in the sum may take other models
		for l := range b.good {
			b.take(l, p)
		}
	}
	for j, v := range b.use {
		slope += v * p[j]
		b.use[j] *= t
	}
	return t * slope, slope
}

// sum looks at all tenants, and adds up those that keep their model within width.
func (b *buyers) sum(p []float64, width float64) {
	copy(b.centre, p)
	b.width = width
	b.moving = b.moving[:0]
	for l := range b.good {
		b.choose(l, p)
		if b.reach(l, p) > 1.01*width {
			b.add(l)
		} else {
			b.moving = append(b.moving, int32(l))
		}
	}
	copy(b.use0, b.use)
	for _, l := range b.moving {
		b.add(int(l))
	}
}

func (b *buyers) take(l int, p []float64) {
	b.choose(l, p)
	b.add(l)
}

func (b *buyers) add(l int) {
	good := b.good[l]
	b.use[good] += b.need[l*b.k+int(good)]
}

// choose finds the model that is the cheapest way to a level for tenant l. Ties go to the last one, then to the
// first.
func (b *buyers) choose(l int, p []float64) {
	need := b.need[l*b.k : (l+1)*b.k]
	p = p[:len(need)]
	good := int(b.good[l])
	least := need[good] * p[good]
	for j, v := range need {
		if pay := v * p[j]; pay < least && v > 0 {
			good, least = j, pay
		}
	}
	b.good[l] = uint8(good)
}

// reach gives how far, relative, each price may go without another model being cheaper.
func (b *buyers) reach(l int, p []float64) float64 {
	need, good := b.need[l*b.k:(l+1)*b.k], int(b.good[l])
	least, far := need[good]*p[good], 1.
	for j, v := range need {
		if pay := v * p[j]; j != good && v > 0 && !(pay-least >= far*(pay+least)) {
			far = (pay - least) / (pay + least)
		}
	}
	return far
}
