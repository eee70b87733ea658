package price

import "math"

// master is the linear program over columns: max Σ value_i·θ_i subject to
// Σ θ_i·column_i <= 1 in each row, θ >= 0. The rows are the models, each in parts of its
// GPUs, and the sum of θ. It is solved by the primal simplex method from the last basis;
// the inverse of the basis is computed anew where it ends.
type master struct {
	rows   int
	column []float64 // of rows entries each; the first are the slacks
	value  []float64
	basis  []int     // the column of each row
	theta  []float64 // of the basic columns
	dual   []float64
	inv    []float64 // of the basis, rows×rows
	work   []float64
	over   []float64 // rest of each row after theta
	short  []float64 // rest of each basic value after dual
	enter  []float64 // the entering column in terms of the basis
}

// noise is the threshold below which reduced costs and pivots count as zero. Values and rows are
// scaled to about 1.
const noise = 2e-12

func newMaster(models int) *master {
	r := models + 1
	m := &master{rows: r, column: make([]float64, r*r, 64*r), value: make([]float64, r, 64), basis: make([]int, r),
		theta: make([]float64, r), dual: make([]float64, r), inv: make([]float64, r*r), work: make([]float64, 2*r*r),
		over: make([]float64, r), short: make([]float64, r), enter: make([]float64, r)}
	for i := range r {
		m.column[i*r+i] = 1
		m.inv[i*r+i] = 1
		m.basis[i] = i
		m.theta[i] = 1
	}
	return m
}

// add appends a column that uses so many of the GPUs of each model, and gives its reduced
// cost: whether it can better the value.
func (m *master) add(value float64, use, gpus []float64) float64 {
	for j, n := range gpus {
		m.column = append(m.column, use[j]/n)
	}
	m.column = append(m.column, 1)
	m.value = append(m.value, value)
	return m.reduced(len(m.value) - 1)
}

func (m *master) reduced(i int) float64 {
	c := m.value[i]
	for j, v := range m.column[i*m.rows : (i+1)*m.rows] {
		c -= m.dual[j] * v
	}
	return c
}

// solve gives the best value, with its theta and dual.
func (m *master) solve() float64 {
	r := m.rows
	fresh := true // the inverse has not been updated
	for range 100 * r {
		enter, best := -1, noise
		for i := range m.value {
			if c := m.reduced(i); c > best {
				enter, best = i, c
			}
		}
		if enter < 0 {
			if fresh || !m.invert() {
				break
			}
			m.refine(2) // once for the theta and dual of the old inverse, and once more
			fresh = true
			continue
		}
		leave, step, pivot := -1, math.Inf(1), 0.0
		for i := range r {
			u := 0.0
			for j, v := range m.column[enter*r : (enter+1)*r] {
				u += m.inv[i*r+j] * v
			}
			m.enter[i] = u
			if u <= 1e-11 {
				continue
			}
			if q := m.theta[i] / u; q < step-1e-13 || q <= step+1e-13 && u > pivot {
				leave, step, pivot = i, q, u
			}
		}
		if leave < 0 {
			break
		}
		m.basis[leave] = enter
		m.exchange(leave)
		for i, u := range m.enter {
			m.theta[i] = max(m.theta[i]-step*u, 0)
		}
		m.theta[leave] = step
		for j := range r {
			m.dual[j] += best * m.inv[leave*r+j]
		}
		m.refine(1)
		fresh = false
	}
	// Remove the excess of theta over a row, which is due to rounding.
	sum, most := 0.0, 1.0
	clear(m.over)
	for i, b := range m.basis {
		sum += m.theta[i] * m.value[b]
		for j, v := range m.column[b*r : (b+1)*r] {
			m.over[j] += m.theta[i] * v
		}
	}
	for _, v := range m.over {
		most = max(most, v)
	}
	return sum / most
}

// invert computes the inverse of the basis; false where it is singular.
func (m *master) invert() bool {
	r := m.rows
	w := m.work // [basis | unit], row by row
	clear(w)
	for i := range r {
		for c, b := range m.basis {
			w[i*2*r+c] = m.column[b*r+i]
		}
		w[i*2*r+r+i] = 1
	}
	for c := range r {
		top := c
		for i := c + 1; i < r; i++ {
			if math.Abs(w[i*2*r+c]) > math.Abs(w[top*2*r+c]) {
				top = i
			}
		}
		p := w[top*2*r+c]
		if math.Abs(p) < 1e-13 {
			return false
		}
		from, to := w[top*2*r:(top+1)*2*r], w[c*2*r:(c+1)*2*r]
		for j := range from {
			from[j], to[j] = to[j], from[j]/p
		}
		for i := range r {
			if f := w[i*2*r+c]; i != c && f != 0 {
				row := w[i*2*r : (i+1)*2*r]
				for j := c; j < 2*r; j++ {
					row[j] -= f * to[j]
				}
			}
		}
	}
	for i := range r {
		copy(m.inv[i*r:(i+1)*r], w[i*2*r+r:(i+1)*2*r])
	}
	return true
}

// exchange makes inv that of the basis with the entering column in this row.
func (m *master) exchange(row int) {
	r := m.rows
	from := m.inv[row*r : (row+1)*r]
	for j := range from {
		from[j] /= m.enter[row]
	}
	for i, u := range m.enter {
		if i != row && u != 0 {
			for j, v := range from {
				m.inv[i*r+j] -= u * v
			}
		}
	}
}

// refine makes theta and dual those of the basis, up to what the inverse's own errors leave over of what
// they missed: columns of the same crowd at almost the same prices are almost parallel. Each time brings them nearer.
func (m *master) refine(times int) {
	r := m.rows
	for range times {
		for i := range r {
			m.over[i] = 1
			m.short[i] = m.value[m.basis[i]]
		}
		for c, b := range m.basis {
			theta, short := m.theta[c], m.short[c]
			for i, v := range m.column[b*r : (b+1)*r] {
				m.over[i] -= theta * v
				short -= m.dual[i] * v
			}
			m.short[c] = short
		}
		for i, short := range m.short {
			sum := 0.0
			for j, v := range m.inv[i*r : (i+1)*r] {
				sum += v * m.over[j]
				m.dual[j] += v * short
			}
			m.theta[i] = max(m.theta[i]+sum, 0)
		}
	}
}
