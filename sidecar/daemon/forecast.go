package daemon

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// foresight makes forecasts of when jobs start and end.
type foresight struct {
	make   func(context.Context) (*forecast.Forecast, error) // nil = no forecasts
	report *reporter

	busy  atomic.Bool  // one is being made
	began atomic.Int64 // when the last one began, unix ms
}

// foresee makes a forecast beside the rounds, if every (forecast.every) has passed since the last time and this daemon leads. No
// round waits for it.
func (x *foresight) foresee(ctx context.Context, every time.Duration, lead *Leadership) {
	now := time.Now()
	if x.make == nil || every == 0 || lead == nil || now.Sub(time.UnixMilli(x.began.Load())) < every-time.Second || !x.busy.CompareAndSwap(false, true) {
		return
	}
	defer x.busy.Store(false)
	x.began.Store(now.UnixMilli())
	leading, cancel := acting(ctx, lead)
	defer cancel()
	f, err := x.foreseen(leading, lead)
	if err == nil || ctx.Err() == nil {
		x.report.about("forecast", err)
	}
	if err != nil {
		return
	}
	x.report.meter.Forecast(f.Kept)
	x.report.log.Debug().Int64("round", f.Round).Int("jobs", len(f.Jobs)).Dur("took_ms", time.Since(now)).Msg("forecast made")
}

// foreseen makes a forecast and writes it down. A panic is an error.
func (x *foresight) foreseen(ctx context.Context, lead *Leadership) (f *forecast.Forecast, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			f, err = nil, loop.BreakdownOf(cause)
		}
	}()
	if f, err = x.make(ctx); err != nil {
		return nil, err
	}
	return f, lead.Forecast(ctx, f)
}
