package loop

import (
	"context"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Cluster is where jobs run: a real Slurm, or a virtual one.
type Cluster interface {
	// Observe looks at the cluster. since is the moment up to which everything is
	// known; if jobs may have come and gone unseen after it, Attempts is filled
	// from the history. It fails rather than guess: an error means that nothing
	// may be concluded and nothing done.
	Observe(ctx context.Context, since cluster.Instant) (cluster.Sighting, error)
	// Apply carries out the actions in order and gives one outcome each. It never
	// repeats a write whose fate is unknown, and changes no action.
	Apply(ctx context.Context, actions []cluster.Action) []cluster.Outcome
}

// Journal is where rounds are written down before they are acted on.
type Journal interface {
	// Open gives back what was last committed; an empty Memory if nothing was.
	Open(ctx context.Context) (cluster.Memory, error)
	// Commit writes a round down. When it returns nil the round survives a crash;
	// when it fails nothing of it does, and nothing may be acted on. A Refusal names the
	// jobs without which it would not have failed.
	Commit(ctx context.Context, snap cluster.Snapshot, plan cluster.Plan) error
	// Settle adds what became of the plan's actions, one outcome each.
	Settle(ctx context.Context, plan cluster.Plan, outcomes []cluster.Outcome) error
	// Overrides gives the orders in force at now, sorted by id.
	Overrides(ctx context.Context, now cluster.Instant) ([]cluster.Override, error)
	// Enrol keeps the users of all tenants, in the place of those of before, for people who may see no more than
	// their own tenants' rows.
	Enrol(ctx context.Context, members []cluster.Member) error
}
