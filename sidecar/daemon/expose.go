package daemon

import (
	"context"
	"net"
	"time"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon/metrics"
)

// weighEvery is how often the size of the journal is measured.
const weighEvery = time.Minute

// expose answers questions for metrics and health until ctx ends, and then closes over. If it cannot, rounds are made all the same.
func (d *service) expose(ctx context.Context, m *config.Metrics) (over <-chan struct{}) {
	ended := make(chan struct{})
	if d.report.meter == nil || m.Listen == "" {
		close(ended)
		return ended
	}
	go func() {
		defer close(ended)
		err := metrics.Serve(ctx, m.Listen, m.WebConfig, d.report.meter.Handler(d.alive), func(on net.Addr) {
			d.report.log.Info().Stringer("address", on).Msg("metrics can be read")
		})
		if err != nil {
			d.report.log.Error().Err(err).Msg("metrics and health cannot be read; rounds go on")
		}
	}()
	return ended
}

// alive tells whether no turn hangs. It is safe for concurrent use.
func (d *service) alive() bool { return d.rounds.turns.alive(time.Now()) }

// weigh measures the size of the journal.
func (d *service) weigh(ctx context.Context) {
	store := d.leading()
	if d.report.meter == nil || store == nil {
		return
	}
	bytes, err := store.Size(ctx)
	if d.report.about("size", err); err == nil {
		d.report.meter.Journal(bytes)
	}
}
