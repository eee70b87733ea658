package gpu

import (
	"context"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Watch looks at all GPUs, one look after the other. It is for one goroutine.
type Watch struct {
	Source  Source
	Tracker Tracker
	Book    Book
}

// Report is the result of a look.
type Report struct {
	At    cluster.Instant
	GPUs  []GPU       // by node, index and instance
	Nodes []NodeState // by name
	// Uses is what the GPUs of each running job did. Memory and Sizes are what types of jobs used, and what models have.
	Uses   []cluster.GPUUse
	Memory []cluster.MemoryUse
	Sizes  []cluster.GPUMemory
	// Incomplete says why the source could not tell all; nil = it could.
	Incomplete error
}

// Look reads the GPUs of the nodes, and joins them with the jobs that held them when the look began. now gives the time
// at its end. A look that was cut off by the end of ctx counts for nothing, and gives false.
func (w *Watch) Look(ctx context.Context, nodes []Node, holders []Holder, now func() cluster.Instant) (Report, bool) {
	readings, err := w.Source.Read(ctx, nodes)
	if ctx.Err() != nil {
		return Report{}, false
	}
	r := Report{At: now(), Incomplete: err}
	w.Tracker.Look(r.At, nodes, readings)
	r.GPUs = w.Tracker.GPUs()
	if refused := w.Book.Look(r.At, r.GPUs, holders); len(refused) > 0 {
		for node, why := range refused {
			w.Tracker.Refuse(r.At, node, why)
		}
		r.GPUs = w.Tracker.GPUs()
	}
	r.Nodes = w.Tracker.Nodes()
	r.Uses, r.Memory, r.Sizes = w.Book.Uses(), w.Book.Memory(), w.Book.Sizes()
	return r, true
}
