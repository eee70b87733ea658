package daemon

import (
	"context"
	"net"
	"time"

	"github.com/fairlease/fairlease/sidecar/daemon/metrics"
)

// weighEvery is how often the size of the journal is measured.
const weighEvery = time.Minute

// expose answers questions for metrics and health until ctx ends. If it cannot, rounds are made all the same.
func (d *Daemon) expose(ctx context.Context) {
	m := &d.Config.Metrics
	if d.Meter == nil || m.Listen == "" {
		return
	}
	go func() {
		err := metrics.Serve(ctx, m.Listen, m.WebConfig, d.Meter.Handler(d.Alive), func(on net.Addr) {
			d.Log.Info().Stringer("address", on).Msg("metrics can be read")
		})
		if err != nil {
			d.Log.Error().Err(err).Msg("metrics and health cannot be read; rounds go on")
		}
	}()
}

// weigh measures the size of the journal.
func (d *Daemon) weigh(ctx context.Context) {
	d.turns.enter()
	store, leading := d.store, d.lead != nil
	d.turns.leave()
	if d.Meter == nil || !leading {
		return
	}
	bytes, err := store.Size(ctx)
	if err != nil {
		d.once("size", err)
		return
	}
	d.said.clear("size")
	d.Meter.Journal(bytes)
}
