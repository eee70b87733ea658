package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/slurm"
	"github.com/fairlease/fairlease/sidecar/store"
)

// connectLimit is how long it may take to reach PostgreSQL.
const connectLimit = 10 * time.Second

// openSlurm gives a client; it connects when it is first asked.
func openSlurm(c *config.Config) (*slurm.Client, error) {
	s := &c.Slurm
	client, err := slurm.New(slurm.Config{
		Address: s.Address, User: s.User, TokenFile: s.TokenFile, APIVersion: s.APIVersion, Scontrol: s.Scontrol, License: c.Gate.License,
		TLS:     slurm.TLS{CAFile: s.TLS.CAFile, CertFile: s.TLS.CertFile, KeyFile: s.TLS.KeyFile, ServerName: s.TLS.ServerName},
		Timeout: s.Timeout.Span().Duration(), ListTimeout: s.ListTimeout.Span().Duration(), Retries: orNever(s.Retries),
		FullEvery: s.FullEvery.Span().Duration(), AccountsEvery: s.AccountsEvery.Span().Duration(),
		SmallList: orNever(s.SmallList), Singles: s.Singles, ArrayCap: s.ArrayCap, SiteFactor: c.Gate.SiteFactor,
	})
	if err != nil {
		return nil, &failure.Error{Code: failure.Misuse, What: "slurm cannot be set up", Err: err, Next: "correct the keys under slurm in the configuration"}
	}
	return client, nil
}

// orNever turns our 0 = never into the client's, to whom 0 means its default.
func orNever(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// noSlurm says that Slurm cannot be reached.
func noSlurm(c *config.Config, err error) error {
	return &failure.Error{Code: failure.Absent, What: "Slurm does not answer at " + c.Slurm.Address, Err: err,
		Next: "check that slurmrestd and slurmctld run, and slurm.address in the configuration; `fairlease doctor` looks closer"}
}

// openStore connects to the journal's database.
func openStore(ctx context.Context, c *config.Config) (*store.Store, error) {
	if c.Database.URL == "" {
		return nil, &failure.Error{Code: failure.Misuse, What: "no database is configured",
			Next: "set database.url in the configuration, or FAIRLEASE_DATABASE_URL, or PGHOST and its kind"}
	}
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
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

// withStore runs work with the configuration and the journal's database.
func (p *program) withStore(ctx context.Context, work func(*config.Config, *store.Store) error) error {
	c, err := p.config()
	if err != nil {
		return err
	}
	s, err := openStore(ctx, c)
	if err != nil {
		return err
	}
	defer s.Close()
	return journalFailed(work(c, s))
}

// journalFailed words an error of the journal, unless it is worded already.
func journalFailed(err error) error {
	if err == nil || failure.Worded(err) || errors.Is(err, context.Canceled) {
		return err
	}
	return &failure.Error{Code: failure.No, What: "the journal could not be read or written", Err: err, Next: orRole(err, "")}
}

// orRole says what to do about an error: where this database user lacks the right, to get a role that has it.
func orRole(err error, otherwise string) string {
	if errors.Is(err, store.ErrDenied) {
		return "ask an administrator for a role that may do that (see ROLES in fairlease(1))"
	}
	return otherwise
}

// seats lets the daemon take the seat that the store keeps.
type seats struct {
	*store.Store
	holder string
}

// connect opens the daemon's store.
func connect(c *config.Config) func(context.Context) (daemon.Store, error) {
	return func(ctx context.Context) (daemon.Store, error) {
		s, err := openStore(ctx, c)
		if errors.Is(err, store.ErrSchema) || c.Database.URL == "" {
			return nil, fmt.Errorf("%w: %w", daemon.ErrSchema, err)
		}
		if err != nil {
			return nil, err
		}
		return seats{s, holder()}, nil
	}
}

// holder names this process, for people and for other machines.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

func (s seats) Acquire(ctx context.Context) (daemon.Seat, error) {
	seat, err := s.Store.Acquire(ctx, s.holder)
	var taken *store.TakenError
	if errors.As(err, &taken) {
		return nil, fmt.Errorf("%w: %s, in its term %d", daemon.ErrTaken, taken.Holder, taken.Term)
	}
	if err != nil {
		return nil, err
	}
	return chair{seat, s.Store}, nil
}

func (s seats) Claim(ctx context.Context, is cluster.Identity) error {
	err := s.Store.Claim(ctx, is)
	var other *store.AnotherError
	if errors.As(err, &other) {
		return fmt.Errorf("%w: %w", daemon.ErrCluster, other)
	}
	return err
}

func (s seats) Prune(ctx context.Context, rounds, history time.Duration) (int, int64, error) {
	return s.Store.Prune(ctx, store.Keep{Blobs: rounds, History: history})
}

// chair is a seat as the daemon knows it.
type chair struct {
	*store.Seat
	store *store.Store
}

func (c chair) Clock(ctx context.Context) (time.Time, error) { return c.store.Clock(ctx) }

func (c chair) Term() int64 { return c.Seat.Term }

func (c chair) Journal() loop.Journal { return c.Seat.Journal() }

// onlooker is a journal that can be looked into but not written to: for looking
// ahead without a seat. Without a store it is empty.
type onlooker struct{ *store.Store }

func (o onlooker) Open(ctx context.Context) (cluster.Memory, error) {
	if o.Store == nil {
		return cluster.Memory{}, nil
	}
	_, plan, err := o.Last(ctx)
	return plan.Memory, err
}

func (o onlooker) Overrides(ctx context.Context, now cluster.Instant) ([]cluster.Override, error) {
	if o.Store == nil {
		return nil, nil
	}
	return o.OverridesAt(ctx, now)
}

var errOnlooker = errors.New("this journal is for looking only")

func (onlooker) Commit(context.Context, cluster.Snapshot, cluster.Plan) error { return errOnlooker }

func (onlooker) Enrol(context.Context, []cluster.Member) error { return errOnlooker }

func (onlooker) Settle(context.Context, cluster.Plan, []cluster.Outcome) error { return errOnlooker }
