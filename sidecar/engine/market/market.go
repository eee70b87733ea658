// Package market leases GPUs of heterogeneous models that a policy allocates between parties. It decides the
// turns within a tenant, moves of jobs to another model, and trial runs on models that have not been measured
// yet.
package market

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/entitle"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/speeds"
)

// Market is the information about parties in a round. Without a policy for heterogeneous GPUs it does
// nothing.
type Market struct {
	in     *round.Facts
	found  *eligible.Found
	due    *entitle.Due
	speeds *speeds.Speeds
	tried  []int                   // by pool: the case that runs a trial there; -1 = none
	moved  map[int]cluster.Instant // by case: it moves now
	own    []belongings            // by tenant; nil = not asked yet
	sums   []float64               // by pool: speeds of all jobs; nil = not asked yet
}

// Open reads the parties of a round, once their accounts are open and capacity is counted.
func Open(in *round.Facts, found *eligible.Found, due *entitle.Due, x *speeds.Speeds) *Market {
	m := &Market{in: in, found: found, due: due, speeds: x}
	if in.Settings.Divides() {
		m.tried = m.explore()
	}
	return m
}

// Beside returns the parts of their speed alone that two jobs of one GPU have beside each other on a model; false = it is not known.
func (m *Market) Beside(i, k int, model string) (own, other float64, known bool) {
	return m.speeds.Pairs.Beside(i, k, model)
}

// TypeOf names the type of a case's job for pairs.
func TypeOf(m *Market, i int) string { return m.speeds.Pairs.Type(i) }

// Keeps returns the part of its speed that a job keeps on nodes of a pool that are spread so; see speeds.Keeps.
func Keeps(m *Market, i, pool int, spread cluster.Kind) (part float64, known bool) {
	return speeds.Keeps(m.speeds, i, pool, spread)
}

// Spread returns how the nodes of a gang are spread; "" = it needs as many nodes and switches.
func Spread(m *Market, holds []cluster.Holding) cluster.Kind { return speeds.Spread(m.speeds, holds) }

// PutMoves writes when jobs moved in this round into records, which are by case.
func (m *Market) PutMoves(records []cluster.Record) {
	for i, at := range m.moved {
		records[i].Moved = at
	}
}
