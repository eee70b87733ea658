package daemon

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// limited is a cluster whose limits slurmdbd gives while it is there.
type limited struct {
	*live
	limits cluster.Limits
}

func (c *limited) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	seen, err := c.live.Observe(ctx, since)
	if seen.Limits = c.limits; len(c.limits.Associations) > 0 {
		seen.Limits.Read = seen.Now
	}
	return seen, err
}

// A daemon that starts without slurmdbd logs once that the last known limits hold, and how old they are.
func TestOldLimitsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on, c := newShared(), &limited{live: newLive()}
		c.limits.Associations = []cluster.Association{{Account: "a", Caps: []cluster.Cap{{Rule: cluster.GrpJobs, Max: 3}}}}
		r := start(t, "one", on, c, t.TempDir(), short)
		pass(time.Minute)
		const old = "the last known ones of accounts, users and QOS hold"
		if said := r.log.with(old); len(said) > 0 {
			t.Errorf("it is said of limits that are new: %v", said)
		}
		r.end(t)
		c.limits = cluster.Limits{}
		r = start(t, "two", on, c, t.TempDir(), short)
		pass(10 * time.Minute)
		if said := r.log.with(old); len(said) != 1 || said[0]["read"] == nil || said[0]["age_ms"] == nil {
			t.Errorf("it is said of old limits: %v", said)
		}
		r.end(t)
	})
}
