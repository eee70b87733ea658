package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/exporter-toolkit/web"
)

// Handler answers /metrics, /livez (200 unless alive says that a round hangs) and /readyz (200 while rounds succeed or another
// daemon leads, else 503; the text says what is wrong).
func (m *Meter) Handler(alive func() bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 8, Timeout: 10 * time.Second}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		if !alive() {
			say(w, http.StatusServiceUnavailable, "a round hangs")
			return
		}
		say(w, http.StatusOK, "alive")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		text, ready := m.Ready()
		if !ready {
			say(w, http.StatusServiceUnavailable, text)
			return
		}
		say(w, http.StatusOK, text)
	})
	return mux
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}

// Serve answers on an address with a handler until ctx ends. webConfig is a file in the format of exporter-toolkit, with TLS and
// users; "" = neither. listening is called with the address once it is open. The error says which setting is wrong.
func Serve(ctx context.Context, address, webConfig string, h http.Handler, listening func(net.Addr)) error {
	if err := web.Validate(webConfig); err != nil {
		return fmt.Errorf("metrics.web_config: %w", err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("metrics.listen: %w", err)
	}
	listening(l.Addr())
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
	unwatch := context.AfterFunc(ctx, func() { server.Close() })
	defer unwatch()
	err = web.Serve(l, server, &web.FlagConfig{WebConfigFile: &webConfig}, slog.New(slog.DiscardHandler))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
