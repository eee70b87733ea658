package connect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/store"
)

// leaders is the daemon's view of a store.
type leaders struct {
	*store.Store
	holder string
}

// Daemon opens the daemon's store.
func Daemon(c *config.Config) func(context.Context) (daemon.Store, error) {
	return func(ctx context.Context) (daemon.Store, error) {
		s, err := JournalOf(ctx, c, Serve)
		if errors.Is(err, store.ErrSchema) || c.Database.URL == "" {
			return nil, fmt.Errorf("%w: %w", daemon.ErrSchema, err)
		}
		if err != nil {
			return nil, err
		}
		return leaders{s, Holder()}, nil
	}
}

// Holder names this process, for people and for other hosts.
func Holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

func (s leaders) Acquire(ctx context.Context, above int64) (*daemon.Leadership, error) {
	lead, err := s.AcquireAbove(ctx, s.holder, above)
	var taken *store.TakenError
	if errors.As(err, &taken) {
		return nil, fmt.Errorf("%w: %s, in its term %d", daemon.ErrTaken, taken.Holder, taken.Term)
	}
	if err != nil {
		return nil, err
	}
	return Leadership(lead, s.Store), nil
}

func (s leaders) Attend(ctx context.Context, silence time.Duration) error {
	return s.Daemons.Attend(ctx, s.holder, silence)
}

func (s leaders) Claim(ctx context.Context, is cluster.Identity) error {
	err := s.Store.Claim(ctx, is)
	var other *store.AnotherError
	if errors.As(err, &other) {
		return fmt.Errorf("%w: %w", daemon.ErrCluster, other)
	}
	return err
}

func (s leaders) Known(ctx context.Context) (of cluster.Identity, records []cluster.Record, at cluster.Instant, err error) {
	if of, _, err = s.Identity(ctx); err != nil {
		return of, nil, 0, err
	}
	_, plan, err := s.Rounds.Last(ctx)
	return of, plan.State.Records, plan.At, err
}

func (s leaders) Prune(ctx context.Context, rounds, history time.Duration) (int, int64, error) {
	return s.Store.Prune(ctx, store.Keep{Blobs: rounds, History: history})
}

// Leadership adapts a store's lead to the daemon's.
func Leadership(lead *store.Leadership, s *store.Store) *daemon.Leadership {
	return &daemon.Leadership{Lead: lead, Term: lead.Term, Clock: s.Clock, Journal: lead.Journal(), GPUs: lead,
		Terms: struct {
			store.Terms
			*store.Leadership
		}{s.Terms, lead},
		Budgets: struct {
			store.Tenants
			*store.Leadership
		}{s.Tenants, lead},
		Objectives: store.Counter{Lead: lead}, Records: lead, Syslog: store.Syslog{Lead: lead}, Notices: struct {
			store.Notices
			*store.Outbox
		}{s.Notices, lead.Notices}, Audit: lead.Audit, Forecast: lead.Forecast}
}

// ReadOnlyJournal gives a journal that can be read but not written, for previews without a lead.
// Without a store (nil) it is empty.
func ReadOnlyJournal(s *store.Store) loop.Journal { return readOnly{s} }

type readOnly struct{ store *store.Store }

func (o readOnly) Open(ctx context.Context) (cluster.State, error) {
	if o.store == nil {
		return cluster.State{}, nil
	}
	snap, plan, err := o.store.Rounds.Last(ctx)
	plan.State.Limits = snap.Limits()
	return plan.State, err
}

func (o readOnly) Overrides(ctx context.Context, now cluster.Instant) ([]cluster.Override, error) {
	if o.store == nil {
		return nil, nil
	}
	return o.store.Overrides.At(ctx, now)
}

var errReadOnly = errors.New("this journal is for looking only")

func (readOnly) Commit(context.Context, cluster.Snapshot, cluster.Plan) error {
	return errReadOnly
}

func (readOnly) Enrol(context.Context, []cluster.Member) error { return errReadOnly }

func (readOnly) Settle(context.Context, cluster.Plan, []cluster.Outcome) error {
	return errReadOnly
}
