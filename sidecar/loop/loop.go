package loop

import (
	"context"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Cluster is where jobs run: a real Slurm, or a virtual one.
type Cluster interface {
	// Observe looks at the cluster. Everything up to since is known. If jobs may have come and
	// gone unseen after it, Attempts is filled from the history; after a start of the controller
	// only if the history can be read. Observe fails rather than
	// guesses: an error means that nothing may be concluded and nothing done.
	Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error)
	// Apply carries out the actions in order and gives one outcome each. It never repeats a write
	// whose result is unknown, and modifies no action.
	Apply(ctx context.Context, actions []cluster.Action) []cluster.Outcome
}

// Journal is where rounds are written down before they are acted on.
type Journal interface {
	// Open gives the last committed memory; an empty one if there is none.
	Open(ctx context.Context) (cluster.State, error)
	// Commit writes a round. If it returns nil the round survives a crash; if it fails none of
	// the round does, and nothing may be acted on. A Refusal names the jobs that made it fail.
	Commit(ctx context.Context, snap cluster.Snapshot, plan cluster.Plan) error
	// Settle adds the outcomes of the plan's actions, one each.
	Settle(ctx context.Context, plan cluster.Plan, outcomes []cluster.Outcome) error
	// Overrides gives the overrides in force at now, sorted by id.
	Overrides(ctx context.Context, now cluster.Instant) ([]cluster.Override, error)
	// Enrol replaces the list of the users of all tenants. It is for users who may only see their
	// own tenants' rows.
	Enrol(ctx context.Context, members []cluster.Member) error
}
