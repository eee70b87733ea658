package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// ErrCells marks an error of the cells file: it does not match the cluster that Slurm reports.
var ErrCells = errors.New("the file of cells does not fit Slurm")

// sight is the last observation, against which the cells of configurations are checked.
type sight struct {
	remark func([]string) // takes remarks on cells that fit; nil = nobody does
	last   atomic.Pointer[cluster.Observation]
	fitted atomic.Pointer[config.Config] // the configuration that was checked against one
}

// check takes over an observation. The first one under a configuration checks its cells.
func (x *sight) check(seen *cluster.Observation, c *config.Config) error {
	x.last.Store(&cluster.Observation{Nodes: seen.Nodes, Accounts: seen.Accounts})
	if x.fitted.Load() == c {
		return nil
	}
	err := x.fits(c)
	if err == nil {
		x.fitted.Store(c)
	}
	return err
}

// fits checks the cells of a configuration against the last observation. Without one, the first look does that.
func (x *sight) fits(c *config.Config) error {
	seen, f := x.last.Load(), c.VCs()
	if f == nil || seen == nil {
		return nil
	}
	rules := c.Rules()
	wrong, remarks := f.Against(seen, &rules)
	if len(wrong) > 0 {
		return fmt.Errorf("%w\n%w", ErrCells, wrong)
	}
	if x.remark != nil {
		x.remark(remarks)
	}
	return nil
}

// sighted is a cluster whose looks fail if they contradict the cells of a configuration.
type sighted struct {
	loop.Cluster
	cells *sight
	cfg   *config.Config
}

// Observe implements loop.Cluster.
func (w sighted) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	seen, err := w.Cluster.Observe(ctx, since)
	if err == nil {
		err = w.cells.check(&seen, w.cfg)
	}
	return seen, err
}

// Watch gives the cluster for rounds beside a daemon. A look fails if it contradicts the
// configuration's cells.
func Watch(c loop.Cluster, cfg *config.Config) loop.Cluster { return sighted{c, new(sight), cfg} }
