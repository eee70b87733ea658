package profile

import "math"

// rank is the number of factors of a completed matrix. ridge keeps those of rows with few known
// entries small. sweeps are enough to converge.
const (
	rank   = 3
	ridge  = 0.01
	sweeps = 25
)

// complete fills the unknown entries (NaN) of a matrix of fractions from the known ones: column
// means plus a product of two low-rank matrices, fitted by alternating least squares with a
// ridge. It is deterministic. A column without known entries is 0.
func complete(m [][]float64) {
	if len(m) == 0 {
		return
	}
	columns := len(m[0])
	mean, cols, rows := make([]float64, columns), make([]factors, columns), make([]factors, len(m))
	for j := range columns {
		sum, n := 0.0, 0.0
		for i := range m {
			if !math.IsNaN(m[i][j]) {
				sum, n = sum+m[i][j], n+1
			}
		}
		mean[j] = sum / max(n, 1)
		for r := range rank {
			cols[j][r] = math.Cos(float64((j + 1) * (r + 1)))
		}
	}
	for range sweeps {
		for i := range m {
			var s system
			for j, x := range m[i] {
				if !math.IsNaN(x) {
					s.add(cols[j], x-mean[j])
				}
			}
			rows[i] = s.solve()
		}
		for j := range columns {
			var s system
			for i := range m {
				if !math.IsNaN(m[i][j]) {
					s.add(rows[i], m[i][j]-mean[j])
				}
			}
			cols[j] = s.solve()
		}
	}
	for i := range m {
		for j, x := range m[i] {
			if math.IsNaN(x) {
				m[i][j] = round(min(max(mean[j]+dot(rows[i], cols[j]), 0), 1))
			}
		}
	}
}

// factors are those of a row or a column.
type factors [rank]float64

func dot(a, b factors) float64 {
	sum := 0.0
	for r := range rank {
		sum += a[r] * b[r]
	}
	return sum
}

// system is the normal equations of a least squares problem.
type system struct {
	a [rank][rank]float64
	b factors
}

func (s *system) add(x factors, y float64) {
	for r := range rank {
		for c := range rank {
			s.a[r][c] += x[r] * x[c]
		}
		s.b[r] += x[r] * y
	}
}

// solve eliminates; the ridge makes every pivot positive.
func (s *system) solve() factors {
	for r := range rank {
		s.a[r][r] += ridge
	}
	for p := range rank {
		for r := p + 1; r < rank; r++ {
			k := s.a[r][p] / s.a[p][p]
			for c := p; c < rank; c++ {
				s.a[r][c] -= k * s.a[p][c]
			}
			s.b[r] -= k * s.b[p]
		}
	}
	var x factors
	for r := rank - 1; r >= 0; r-- {
		sum := s.b[r]
		for c := r + 1; c < rank; c++ {
			sum -= s.a[r][c] * x[c]
		}
		x[r] = sum / s.a[r][r]
	}
	return x
}
