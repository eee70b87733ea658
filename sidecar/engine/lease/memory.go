package lease

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Memory is lists that Choose reuses from choice to choice.
type Memory struct {
	passed []round.Passed
	waits  []bool // by candidate, with limits of stops: it would have GPUs of leases that may not end within this hour
	// together is, by candidate, until when it waits for its fewest nodes, if it could begin on others; 0 = it does not.
	together []cluster.Instant
	settled  []bool
	claimed  [][]cluster.MicroGPU
	rows     [][]cluster.MicroGPU
	queues   []queue
	open     []*queue
	kept     []cluster.Claim
	keeps    map[keptAsk]cluster.JobKey
	numbers  pool[int]
	gpus     pool[cluster.MicroGPU]
}

// pool is memory for lists.
type pool[V any] struct {
	all  []V
	used int
}

// list returns an empty list with capacity for n values.
func (m *pool[V]) list(n int) []V {
	if len(m.all)-m.used < n {
		m.all, m.used = make([]V, 2*len(m.all)+n), 0
	}
	m.used += n
	return m.all[m.used-n : m.used-n : m.used]
}

// zeros returns a list of n zero values.
func (m *pool[V]) zeros(n int) []V {
	out := m.list(n)[:n]
	clear(out)
	return out
}

// keeping returns an empty map of what keeps candidates off idle GPUs.
func (m *Memory) keeping() map[keptAsk]cluster.JobKey {
	if m.keeps == nil {
		m.keeps = map[keptAsk]cluster.JobKey{}
	}
	clear(m.keeps)
	return m.keeps
}

// zeroed returns a list of n zero values in the memory of an old one.
func zeroed[V any](old []V, n int) []V {
	out := slices.Grow(old[:0], n)[:n]
	clear(out)
	return out
}
