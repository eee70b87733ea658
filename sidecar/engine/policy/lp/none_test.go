//go:build !cgo

package lp

import (
	"errors"
	"testing"
)

func TestNothingIsSolvedWithoutCLP(t *testing.T) {
	p := New()
	p.AddRows(Row{Upper: 1})
	p.AddColumns(Column{Upper: 1, Cost: 1, Entries: []Entry{{At: 0, Value: 1}}})
	if err := p.Solve(Presolve); !errors.Is(err, ErrNone) {
		t.Errorf("got %v, want %v", err, ErrNone)
	}
	if p.Rows() != 1 || p.Columns() != 1 {
		t.Errorf("%d rows and %d columns, want 1 and 1", p.Rows(), p.Columns())
	}
}
