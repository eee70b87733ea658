//go:build !js

package config

import (
	"crypto/tls"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fairlease/fairlease/sidecar/slurm/certs"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
)

// unsafeDatabase names a network host to which database.url connects without verifying its
// identity; "" = none.
func (c *Config) unsafeDatabase() string {
	conn, err := pgconn.ParseConfig(c.Database.URL)
	if c.Database.URL == "" || err != nil {
		return ""
	}
	ways := append([]*pgconn.FallbackConfig{{Host: conn.Host, TLSConfig: conn.TLSConfig}}, conn.Fallbacks...)
	for _, w := range ways {
		if local := strings.HasPrefix(w.Host, "/") || strings.HasPrefix(w.Host, "@") || loopback(w.Host); !local && !verified(w.TLSConfig) {
			return w.Host
		}
	}
	return ""
}

// verified tells whether the server must present a certificate for its name, as with
// sslmode=verify-full.
func verified(c *tls.Config) bool { return c != nil && !c.InsecureSkipVerify }

// table gives the names of all counters.
func (g *GPUCounters) table() (gpu.Table, error) {
	other := map[string][]gpu.Counter{}
	for _, c := range g.Counters {
		other[c.Meaning] = append(other[c.Meaning], gpu.Counter{Name: c.Name, Unit: gpu.Unit(c.Unit)})
	}
	return gpu.DefaultTable().With(other)
}

// unknown fails if the counters name a meaning or a unit that there is not.
func (g *GPUCounters) unknown() error {
	_, err := g.table()
	return err
}

// opens fails if the source cannot be made.
func (g *GPUCounters) opens() error {
	_, err := g.Open()
	return err
}

// Open makes the source.
func (g *GPUCounters) Open() (gpu.Source, error) {
	table, err := g.table()
	if err != nil {
		return nil, err
	}
	web := gpu.Web{Files: certs.Files(g.TLS), User: g.User, PasswordFile: g.PasswordFile, TokenFile: g.TokenFile}
	if g.Prometheus != "" {
		return gpu.NewPrometheus(g.Prometheus, g.Match, table, web, gpu.PrometheusLimits, g.MaxAge.Span(), time.Now)
	}
	return gpu.NewExporters(g.Exporters, table, web, gpu.ExporterLimits)
}
