package sim

import (
	"context"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Memory is a journal in memory, for the simulator and tests. A new loop on it is a restarted
// daemon. It is for one goroutine.
type Memory struct {
	// Trust avoids copies: the caller must not modify what it committed.
	Trust bool

	last   cluster.State
	orders []cluster.Override
	given  int64 // overrides
}

// NewMemory gives an empty journal.
func NewMemory() *Memory { return &Memory{} }

// Open gives back the memory of the newest round; an empty one if there is none.
func (m *Memory) Open(ctx context.Context) (cluster.State, error) {
	return apart(m.last), ctx.Err()
}

// Commit stores the round's memory. It fails unless the round's number is above all others, or if
// ctx is done.
func (m *Memory) Commit(ctx context.Context, snap cluster.Snapshot, plan cluster.Plan) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if plan.Round <= m.last.Round {
		return fmt.Errorf("round %d cannot be written down: round %d is", plan.Round, m.last.Round)
	}
	m.last = plan.State
	if !m.Trust {
		m.last = apart(plan.State)
	}
	m.last.Limits = snap.Limits()
	m.orders = slices.DeleteFunc(m.orders, func(o cluster.Override) bool {
		return slices.ContainsFunc(plan.EndedOverrides, func(e cluster.OverrideEnd) bool { return e.ID == o.ID })
	})
	return nil
}

// Settle checks that there is one outcome for each action of the newest round.
func (m *Memory) Settle(ctx context.Context, plan cluster.Plan, outcomes []cluster.Outcome) error {
	if len(outcomes) != len(plan.Actions) {
		return fmt.Errorf("round %d: %d outcomes for %d actions", plan.Round, len(outcomes), len(plan.Actions))
	}
	if plan.Round > m.last.Round {
		return fmt.Errorf("round %d was not written down", plan.Round)
	}
	return ctx.Err()
}

// Overrides gives the overrides in force at now, sorted by id.
func (m *Memory) Overrides(ctx context.Context, now cluster.Instant) ([]cluster.Override, error) {
	var inForce []cluster.Override
	for _, o := range m.orders {
		if o.Until > now {
			inForce = append(inForce, o)
		}
	}
	return inForce, ctx.Err()
}

// Enrol stores nothing, since nothing reads it.
func (m *Memory) Enrol(ctx context.Context, _ []cluster.Member) error { return ctx.Err() }

// Override adds an override and gives its id; o.ID is ignored.
func (m *Memory) Override(o cluster.Override) int64 {
	m.given++
	o.ID = m.given
	m.orders = append(m.orders, o)
	return o.ID
}

// apart gives a copy of a memory with its own lists: the caller may modify the other one.
func apart(m cluster.State) cluster.State {
	m.Records, m.Former = slices.Clone(m.Records), slices.Clone(m.Former)
	m.Leases = slices.Clone(m.Leases)
	m.Claims = slices.Clone(m.Claims)
	m.Lost = slices.Clone(m.Lost)
	m.Lent = slices.Clone(m.Lent)
	m.CellTrades = slices.Clone(m.CellTrades)
	m.Ledger.Tenants = slices.Clone(m.Ledger.Tenants)
	m.Ledger.Pools = slices.Clone(m.Ledger.Pools)
	m.Ledger.Users = slices.Clone(m.Ledger.Users)
	return m
}
