package round

import "slices"

type (
	// TenantIndex is a place in Facts.Tenants; -1 = none.
	TenantIndex int
	// QueueIndex is a place in Due.Queues; -1 = none.
	QueueIndex int
	// UserIndex is a place in Facts.Ledger.Users; -1 = none, or no accounts of users are kept.
	UserIndex int
	// PartyIndex is a place in Due.Parties; -1 = none.
	PartyIndex int
)

// Table is a value for each row (a tenant, queue or party) and pool. Its cells are row by row, as in cluster.Ledger.
type Table[Row ~int, V any] struct {
	Cells []V
	pools int
}

// NewTable gives a table of zeros.
func NewTable[Row ~int, V any](rows, pools int) Table[Row, V] {
	return Table[Row, V]{make([]V, rows*pools), pools}
}

// TableOf gives a view of cells that are row by row.
func TableOf[Row ~int, V any](cells []V, pools int) Table[Row, V] { return Table[Row, V]{cells, pools} }

// At gives the cell of a row and a pool.
func (t Table[Row, V]) At(row Row, pool int) *V { return &t.Cells[int(row)*t.pools+pool] }

// Rows counts the rows: their indices are below that.
func (t Table[Row, V]) Rows() Row {
	if t.pools == 0 {
		return 0
	}
	return Row(len(t.Cells) / t.pools)
}

// Zeroed gives a table of zeros that uses the memory of t.
func (t Table[Row, V]) Zeroed(rows, pools int) Table[Row, V] {
	cells := slices.Grow(t.Cells[:0], rows*pools)[:rows*pools]
	clear(cells)
	return Table[Row, V]{cells, pools}
}
