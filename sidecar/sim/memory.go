package sim

import (
	"context"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Memory is a journal that lasts as long as the process: what the simulator
// writes to, and tests. A loop that starts again on it is a daemon that starts
// again. It is for one goroutine.
type Memory struct {
	// Trust spares the copies: whoever commits leaves what was committed alone.
	Trust bool

	last   cluster.Memory
	orders []cluster.Override
}

// NewMemory gives an empty journal.
func NewMemory() *Memory { return &Memory{} }

// Open gives back the memory of the newest round; an empty one if there is none.
func (m *Memory) Open(ctx context.Context) (cluster.Memory, error) {
	return apart(m.last), ctx.Err()
}

// Commit remembers the round's memory. It fails when the round's number is not
// above all others, or ctx is done.
func (m *Memory) Commit(ctx context.Context, _ cluster.Snapshot, plan cluster.Plan) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if plan.Round <= m.last.Round {
		return fmt.Errorf("round %d cannot be written down: round %d is", plan.Round, m.last.Round)
	}
	m.last = plan.Memory
	if !m.Trust {
		m.last = apart(plan.Memory)
	}
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

// Overrides gives the orders in force at now, sorted by id.
func (m *Memory) Overrides(ctx context.Context, now cluster.Instant) ([]cluster.Override, error) {
	var inForce []cluster.Override
	for _, o := range m.orders {
		if o.Until > now {
			inForce = append(inForce, o)
		}
	}
	return inForce, ctx.Err()
}

// Enrol keeps nothing: nobody asks who belongs to a tenant.
func (m *Memory) Enrol(ctx context.Context, _ []cluster.Member) error { return ctx.Err() }

// Order adds an override and gives its id; o.ID is not read.
func (m *Memory) Order(o cluster.Override) int64 {
	o.ID = int64(len(m.orders)) + 1
	m.orders = append(m.orders, o)
	return o.ID
}

// apart gives a memory whose lists are its own: the caller may go on with the
// other one.
func apart(m cluster.Memory) cluster.Memory {
	m.Records = slices.Clone(m.Records)
	m.Leases = slices.Clone(m.Leases)
	m.Claims = slices.Clone(m.Claims)
	m.Lost = slices.Clone(m.Lost)
	m.Lent = slices.Clone(m.Lent)
	m.Ledger.Tenants = slices.Clone(m.Ledger.Tenants)
	m.Ledger.Pools = slices.Clone(m.Ledger.Pools)
	return m
}
