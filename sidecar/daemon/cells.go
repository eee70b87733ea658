package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon/metrics"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// ErrCells marks an error of the cells file: it does not match the cluster that Slurm reports.
var ErrCells = errors.New("the file of cells does not fit Slurm")

// sight is the daemon's last observation.
type sight struct {
	last   atomic.Pointer[cluster.Observation]
	fitted atomic.Pointer[config.Config] // the configuration that was checked against a sighting
}

// watched is the cluster of the daemon's rounds. The first look under a configuration checks its
// cells.
type watched struct {
	loop.Cluster
	d *Daemon
}

func (w watched) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	began := time.Now()
	seen, err := w.Cluster.Observe(ctx, since)
	w.d.Meter.Phase(metrics.Observe, time.Since(began))
	if err != nil {
		return seen, err
	}
	if w.d.lead != nil {
		if err := w.d.claim(ctx, seen.Identity()); err != nil {
			return seen, err
		}
		if err := w.d.recognise(ctx, &seen); err != nil {
			return seen, err
		}
		if err := w.d.agree(ctx, &seen, began); err != nil {
			return seen, err
		}
	}
	w.d.hear(&seen)
	w.d.measure(&seen)
	w.d.sight.last.Store(&cluster.Observation{Nodes: seen.Nodes, Accounts: seen.Accounts})
	if c := w.d.config.Load(); w.d.sight.fitted.Load() != c {
		if err = w.d.fits(c); err == nil {
			w.d.sight.fitted.Store(c)
		}
	}
	return seen, err
}

func (w watched) Apply(ctx context.Context, actions []cluster.Action) []cluster.Outcome {
	began := time.Now()
	defer func() { w.d.Meter.Phase(metrics.Act, time.Since(began)) }()
	return w.Cluster.Apply(ctx, actions)
}

// Watch gives the cluster for rounds beside a daemon. A look fails if it contradicts the
// configuration's cells.
func Watch(c loop.Cluster, cfg *config.Config) loop.Cluster {
	d := &Daemon{Log: zerolog.Nop()}
	d.config.Store(cfg)
	return watched{c, d}
}

// fits checks the cells of a configuration against the last observation. Without one, the first
// look does that.
func (d *Daemon) fits(c *config.Config) error {
	seen := d.sight.last.Load()
	if f := c.VCs(); f != nil && seen != nil {
		rules := c.Rules()
		wrong, remarks := f.Against(seen, &rules)
		if len(wrong) > 0 {
			return fmt.Errorf("%w\n%w", ErrCells, wrong)
		}
		if d.said.is("cells", strings.Join(remarks, "\n")) {
			for _, r := range remarks {
				d.Log.Warn().Msg("cells: " + r)
			}
		}
	}
	return nil
}
