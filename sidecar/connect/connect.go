// Package connect opens the configured Slurm and journal. It adapts the journal to the daemon's
// interface, and words the errors of both, so that every command reports them alike.
package connect

import (
	"context"
	"errors"
	"time"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/slurm"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Limit is the timeout for connecting to PostgreSQL.
const Limit = 10 * time.Second

// Slurm gives a client, which connects at its first use.
func Slurm(c *config.Config) (*slurm.Client, error) { return Measured(c, nil) }

// Measured is Slurm, and tells called of every request; see slurm.Config.
func Measured(c *config.Config, called func(call string, took time.Duration, err error)) (*slurm.Client, error) {
	s := &c.Slurm
	client, err := slurm.New(slurm.Config{
		Address: s.Address, User: s.User, TokenFile: s.TokenFile, APIVersion: s.APIVersion, Scontrol: s.Scontrol, License: c.Gate.License,
		TLS:     slurm.TLS{CAFile: s.TLS.CAFile, CertFile: s.TLS.CertFile, KeyFile: s.TLS.KeyFile, ServerName: s.TLS.ServerName},
		Timeout: s.Timeout.Span().Duration(), ListTimeout: s.ListTimeout.Span().Duration(), Retries: orNever(s.Retries),
		FullEvery: s.FullEvery.Span().Duration(), AccountsEvery: s.AccountsEvery.Span().Duration(),
		SmallList: orNever(s.SmallList), Singles: s.Singles, ArrayCap: s.ArrayCap, SiteFactor: c.Gate.SiteFactor, Called: called,
	})
	if err != nil {
		return nil, &failure.Error{Code: failure.Misuse, What: "slurm cannot be set up", Err: err, Next: "correct the keys under slurm in the configuration"}
	}
	return client, nil
}

// orNever converts our 0 = never to the client's negative value, since its 0 means the default.
func orNever(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// Journal connects to the journal's database.
func Journal(ctx context.Context, c *config.Config) (*store.Store, error) {
	if c.Database.URL == "" {
		return nil, &failure.Error{Code: failure.Misuse, What: "no database is configured",
			Next: "set database.url in the configuration, FAIRLEASE_DATABASE_URL, or the standard PG* environment variables"}
	}
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	s, err := store.Open(ctx, store.Config{DSN: c.Database.URL, Schema: c.Database.Schema})
	if errors.Is(err, store.ErrSchema) {
		return nil, &failure.Error{Code: failure.Misuse, What: "the journal cannot be used", Err: err}
	}
	if err != nil {
		return nil, &failure.Error{Code: failure.Absent, What: "the journal cannot be reached at " + config.Mask(c.Database.URL), Err: err,
			Next: "check that PostgreSQL runs there and lets this user in, and database.url in the configuration"}
	}
	return s, nil
}
