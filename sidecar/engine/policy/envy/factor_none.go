//go:build !cgo

package envy

const block = 64

// factor gives false: without C there is no simplex to prepare for.
func (c *cholesky) factor(float64) bool { return false }
