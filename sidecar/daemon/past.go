package daemon

import (
	"context"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/rs/zerolog"
)

// historian is a cluster with an accounting history.
type historian interface {
	// History gives the attempts that held GPUs and ended between two moments.
	History(ctx context.Context, since, until cluster.Instant) ([]cluster.Attempt, error)
}

// past gives what the loop learns run times from where it remembers none: the last span (models.speedups.history) of the accounting history.
// nil = the cluster has none, or none is wanted.
func past(ctx context.Context, in loop.Cluster, span cluster.Span, log *zerolog.Logger) func(until cluster.Instant) []cluster.Attempt {
	from, ok := in.(historian)
	if !ok || span == 0 {
		return nil
	}
	return func(until cluster.Instant) []cluster.Attempt {
		list, err := from.History(ctx, until.Add(-span), until)
		if err != nil {
			log.Warn().Err(err).Msg("speedups are not learnt from the accounting history (models.speedups.history), only from jobs that end from now on")
			return nil
		}
		log.Info().Int("attempts", len(list)).Stringer("since", until.Add(-span)).Msg("learning speedups from the accounting history")
		return list
	}
}
