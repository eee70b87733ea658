package lease

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Memory is lists that Choose reuses from choice to choice.
type Memory struct {
	passed  []round.Passed
	waits   []bool // by candidate, with limits of stops: it would have GPUs of leases that may not end within this hour
	settled []bool
	claimed [][]int
	rows    [][]int
	queues  []queue
	open    []*queue
	kept    []cluster.Claim
	keeps   map[keptAsk]cluster.JobKey
	numbers []int // for lists of numbers
	used    int   // of numbers
}

// list returns an empty list with capacity for n numbers.
func (m *Memory) list(n int) []int {
	if len(m.numbers)-m.used < n {
		m.numbers, m.used = make([]int, 2*len(m.numbers)+n), 0
	}
	m.used += n
	return m.numbers[m.used-n : m.used-n : m.used]
}

// zeros returns a list of n zeros.
func (m *Memory) zeros(n int) []int {
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
