// Package market leases the GPUs of models that a policy divides between parties: whose turn it is within a tenant, which
// jobs move to another model, and which are tried on models on which nobody has seen them.
package market

import (
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/speeds"
)

// Market is what is known of parties in a round. Where no policy divides GPU models it does nothing.
type Market struct {
	*round.Books
	speeds *speeds.Speeds
	tried  []int // by pool: the case that is to show how fast its kind is there; -1 = none
}

// Open looks at the parties of a round, once their accounts are open and capacity is counted.
func Open(b *round.Books, x *speeds.Speeds) *Market {
	m := &Market{Books: b, speeds: x}
	if b.Settings.Divide != "" {
		m.tried = m.explore()
	}
	return m
}
