package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlease/fairlease/sidecar/daemon/metrics"
	"github.com/fairlease/fairlease/sidecar/forecast"
)

// Every ten minutes the leader makes a forecast beside its rounds, and writes it down. One at a time: a slow one leaves out others.
// One that fails is logged once, and the next one is made all the same. The metrics say how many statements kept their word by the newest one.
func TestForesee(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		toMidnight()
		on, live := newShared(), newLive()
		live.submit("nlp", 3, 4)
		var made, takes atomic.Int64
		var broken atomic.Bool
		r := startAhead(t, on, live, dir, "mode: act\nforecast: {every: 10m}\nmetrics: {listen: ''}\n", func(ctx context.Context) (*forecast.Forecast, error) {
			made.Add(1)
			select {
			case <-time.After(time.Duration(takes.Load())):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			if broken.Load() {
				panic("the forecast broke down")
			}
			return &forecast.Forecast{Round: made.Load(), Kept: []forecast.Coverage{{Kind: "running_end", Statements: 1000 + int(made.Load()), Percent: 78.5}}}, nil
		}, metrics.New("test", time.Now))
		kept := func() int {
			on.mu.Lock()
			defer on.mu.Unlock()
			return len(on.forecasts)
		}
		pass(time.Hour + time.Minute)
		if n := kept(); n < 6 || n > 7 {
			t.Errorf("%d forecasts in an hour", n)
		}
		w := httptest.NewRecorder()
		r.Meter.Handler(r.service.alive).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for _, want := range []string{`fairlease_forecast_kept_ratio{statement="running_end"} 0.785`, fmt.Sprintf(`fairlease_forecast_statements{statement="running_end"} %d`, 1000+made.Load())} {
			if !strings.Contains(w.Body.String(), want+"\n") {
				t.Errorf("the metrics lack %s", want)
			}
		}
		takes.Store(int64(25 * time.Minute))
		was := made.Load()
		pass(time.Hour)
		if n := made.Load() - was; n < 2 || n > 3 {
			t.Errorf("%d slow forecasts in an hour", n)
		}
		takes.Store(0)
		pass(30 * time.Minute)
		broken.Store(true)
		pass(time.Hour)
		lines := slices.DeleteFunc(r.log.with("forecast"), func(line map[string]any) bool { return line["level"] != "warn" })
		if len(lines) != 1 || !strings.Contains(fmt.Sprint(lines[0]["error"]), "the forecast broke down") {
			t.Errorf("%v", lines)
		}
		broken.Store(false)
		was = int64(kept())
		pass(30 * time.Minute)
		if int64(kept()) == was {
			t.Error("no forecast after a failure")
		}
		r.end(t)
	})
}

// With forecast.every 0s no forecast is made.
func TestNoForecasts(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on, live := newShared(), newLive()
		r := startAhead(t, on, live, dir, "mode: act\nforecast: {every: 0s}\n", func(context.Context) (*forecast.Forecast, error) {
			return nil, errors.New("it was asked for")
		}, nil)
		pass(time.Hour)
		if lines := r.log.with("forecast"); len(lines) != 0 {
			t.Errorf("a forecast that nobody wants: %v", lines)
		}
		r.end(t)
	})
}
