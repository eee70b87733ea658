package round

import "slices"

// TenantIndex, QueueIndex and PartyIndex are indices into Facts.Tenants, Books.Queues and Books.Parties; -1 =
// none.
type (
	TenantIndex int
	QueueIndex  int
	PartyIndex  int
)

// Table holds a value for each row (a tenant, queue or party) and pool. Its cells are stored row by row, as
// in cluster.Ledger.
type Table[Row ~int, V any] struct {
	Cells []V
	pools int
}

// NewTable returns a table of zeros.
func NewTable[Row ~int, V any](rows, pools int) Table[Row, V] {
	return Table[Row, V]{make([]V, rows*pools), pools}
}

// TableOf returns a view of cells that are stored row by row.
func TableOf[Row ~int, V any](cells []V, pools int) Table[Row, V] { return Table[Row, V]{cells, pools} }

// At returns the cell of a row and a pool.
func (t Table[Row, V]) At(row Row, pool int) *V { return &t.Cells[int(row)*t.pools+pool] }

// Rows returns the number of rows.
func (t Table[Row, V]) Rows() Row {
	if t.pools == 0 {
		return 0
	}
	return Row(len(t.Cells) / t.pools)
}

// Zeroed returns a table of zeros that uses the memory of t.
func (t Table[Row, V]) Zeroed(rows, pools int) Table[Row, V] {
	cells := slices.Grow(t.Cells[:0], rows*pools)[:rows*pools]
	clear(cells)
	return Table[Row, V]{cells, pools}
}
