package testcluster

import (
	"fmt"
	"os"
	"sync"
)

// lifeline is a pipe's end that closes when this process ends, whatever ends it, and not before somebody closes it:
// a file that nobody refers to any longer would be closed by the garbage collector, with a cluster behind it that
// others still use.
type lifeline struct{ end *os.File }

var lifelines sync.Map // of files, so that they are referred to

// newLifeline gives a lifeline, and what its other end reads from.
func newLifeline() (l *lifeline, reader *os.File, err error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("making a lifeline: %w", err)
	}
	lifelines.Store(writer, true)
	return &lifeline{writer}, reader, nil
}

// close lets go of what hangs on the lifeline; nil is none.
func (l *lifeline) close() {
	if l != nil {
		l.end.Close()
		lifelines.Delete(l.end)
	}
}
