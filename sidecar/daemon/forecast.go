package daemon

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// foresight is the state of forecasts.
type foresight struct {
	busy  atomic.Bool  // one is being made
	began atomic.Int64 // when the last one began, unix ms
}

// foresee estimates when jobs start and end, beside the rounds, if forecast.every has passed since the last time and this daemon
// leads. No round waits for it.
func (d *Daemon) foresee(ctx context.Context) {
	every, lead := d.config.Load().Forecast.Every.Span().Duration(), d.leads.Load()
	now := time.Now()
	if d.Foresee == nil || every == 0 || lead == nil || now.Sub(time.UnixMilli(d.ahead.began.Load())) < every-time.Second || !d.ahead.busy.CompareAndSwap(false, true) {
		return
	}
	defer d.ahead.busy.Store(false)
	d.ahead.began.Store(now.UnixMilli())
	leading, cancel := acting(ctx, lead)
	defer cancel()
	f, err := d.foreseen(leading, lead)
	if err != nil {
		if ctx.Err() == nil {
			d.once("forecast", err)
		}
		return
	}
	d.said.clear("forecast")
	d.Meter.Forecast(f.Kept)
	d.Log.Debug().Int64("round", f.Round).Int("jobs", len(f.Jobs)).Dur("took_ms", time.Since(now)).Msg("forecast made")
}

// foreseen makes a forecast and writes it down. A panic is an error.
func (d *Daemon) foreseen(ctx context.Context, lead *Leadership) (f *forecast.Forecast, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			f, err = nil, loop.BreakdownOf(cause)
		}
	}()
	if f, err = d.Foresee(ctx); err != nil {
		return nil, err
	}
	return f, lead.Forecast(ctx, f)
}
