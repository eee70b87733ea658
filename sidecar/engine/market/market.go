// Package market leases GPUs of heterogeneous models that a policy allocates between parties. It decides the
// turns within a tenant, moves of jobs to another model, and trial runs on models that have not been measured
// yet.
package market

import (
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/speeds"
)

// Market is the information about parties in a round. Without a policy for heterogeneous GPUs it does
// nothing.
type Market struct {
	b      *round.Books
	speeds *speeds.Speeds
	tried  []int // by pool: the case that runs a trial there; -1 = none
}

// Open reads the parties of a round, once their accounts are open and capacity is counted.
func Open(b *round.Books, x *speeds.Speeds) *Market {
	m := &Market{b: b, speeds: x}
	if b.In.Settings.Divide != "" {
		m.tried = m.explore()
	}
	return m
}
