// Package store is the journal in PostgreSQL. Rounds are written to it before they are acted on,
// and people read it through views.
//
//	Store       a pool of connections to a database whose schema fits
//	Leadership  the right to write: one holder at a time, by terms that the database
//	            issues; SQL rejects writes of an older term
//	Journal     the loop's journal (loop.Journal), written by the leader
//
// A round is one transaction. The next daemon starts from the newest round's plan. Plan and
// snapshot are kept as blobs, each round as the difference to the one before. Tables hold the
// same data for people: only changes are written to them, in turn if there are thousands.
// Histories are partitioned by day. So a journal remembers what it wrote last. Whatever casts
// doubt on that, like a commit with an unknown result or a round by another daemon, is an error
// that demands Open.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fairlease/fairlease/migrate"
)

// ErrSchema is in errors about a schema that is missing, too old or too new.
var ErrSchema = errors.New("the journal's schema does not fit")

// Config says how to reach and use the database.
type Config struct {
	// DSN is the address, as a URL or as key=value. The rest comes from the standard PG*
	// environment variables and the user's password file.
	DSN string
	// Schema is where the journal is; "" = migrate.Schema.
	Schema string
	// Name is what PostgreSQL shows of the connections (application_name); "" = fairlease.
	Name string
	// Takeover is how long after its last sign of life a holder loses the lead to another daemon;
	// 0 = 15 s. Renew it at least three times as often.
	Takeover time.Duration
	// Now is the clock by which a lead is kept and taken; nil = this host's.
	Now func() time.Time
	// Sample is how often the histories for charts are sampled; 0 = once a minute.
	Sample time.Duration
	// Refresh is how often the numbers of a waiting job's status are written although the reason
	// is unchanged; 0 = every 15 minutes.
	Refresh time.Duration
}

func (c Config) withDefaults() Config {
	fill := func(d *time.Duration, otherwise time.Duration) {
		if *d <= 0 {
			*d = otherwise
		}
	}
	c.Schema, c.Name = cmp.Or(c.Schema, migrate.Schema), cmp.Or(c.Name, "fairlease")
	fill(&c.Takeover, 15*time.Second)
	fill(&c.Sample, time.Minute)
	fill(&c.Refresh, 15*time.Minute)
	return c
}

// Store is the journal's database. It is safe for concurrent use, and reconnects when PostgreSQL
// was away.
type Store struct {
	*base
	Rounds    Rounds
	Jobs      Jobs
	Tenants   Tenants
	Forecasts Forecasts
	GPUs      GPUs
	Overrides Overrides
	Terms     Terms
	// Daemons has which daemons run.
	Daemons Daemons
	// Administration has who changed what.
	Administration Administration
	Notices        Notices

	watch watch // of another's lead
}

// base is what all parts of the journal have.
type base struct {
	pool   *pgxpool.Pool
	config Config
}

// The parts of the journal, by who asks.
type (
	// Rounds has snapshots, plans, actions and events.
	Rounds struct{ *base }
	// Jobs has jobs with their leases and trades.
	Jobs struct{ *base }
	// Tenants has tenants with their users, budgets and months.
	Tenants struct{ *base }
	// Forecasts has when jobs start and end.
	Forecasts struct{ *base }
	// GPUs has what the GPUs' counters showed.
	GPUs struct{ *base }
	// Overrides has administrators' overrides.
	Overrides struct{ *base }
	// Terms has changes of the lease term.
	Terms struct{ *base }
	// Daemons has the daemons that run, whether they lead or not.
	Daemons struct{ *base }
	// Administration has the record of changed settings and of what administrators did.
	Administration struct{ *base }
	// Notices has the notices to users, and what these chose.
	Notices struct{ *base }
)

// Open connects to the database and checks that its schema is the version of this program. Errors
// say what to do; those about the schema wrap ErrSchema.
func Open(ctx context.Context, c Config) (*Store, error) { return open(ctx, c, nil) }

// open is Open over connections that dial makes; nil = default.
func open(ctx context.Context, c Config, dial pgconn.DialFunc) (*Store, error) {
	c = c.withDefaults()
	config, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		return nil, fmt.Errorf("the address of PostgreSQL cannot be read: %w: write postgres://USER@HOST/DATABASE, or host=HOST dbname=DATABASE", err)
	}
	where := fmt.Sprintf("schema %s of database %s on %s", c.Schema, config.ConnConfig.Database, config.ConnConfig.Host)
	migrate.In(config.ConnConfig, c.Schema)
	// A session of a hanging or disconnected client must not lock the lead's row for ever.
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = fmt.Sprint(c.Takeover.Milliseconds())
	config.ConnConfig.RuntimeParams["application_name"] = c.Name
	config.AfterConnect = durable
	if dial != nil {
		config.ConnConfig.DialFunc = dial
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("preparing to reach %s: %w", where, err)
	}
	b := &base{pool, c}
	s := &Store{b, Rounds{b}, Jobs{b}, Tenants{b}, Forecasts{b}, GPUs{b}, Overrides{b}, Terms{b}, Daemons{b}, Administration{b}, Notices{b}, watch{}}
	if err := s.check(ctx, where); err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

// durable makes commits survive a crash of the server, even if the server is configured
// otherwise.
func durable(ctx context.Context, db *pgx.Conn) error {
	_, err := db.Exec(ctx, "select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'")
	return err
}

func (s *Store) check(ctx context.Context, where string) error {
	db, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("%s cannot be reached: %w: check that PostgreSQL runs there and lets us in", where, err)
	}
	defer db.Release()
	return fits(ctx, db.Conn(), where)
}

// current fails with ErrSchema if the schema has changed its version since Open.
func (s *Store) current(ctx context.Context) error {
	db, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer db.Release()
	return fits(ctx, db.Conn(), "schema "+s.config.Schema)
}

// fits checks that the schema is the version of this program; where describes it.
func fits(ctx context.Context, db *pgx.Conn, where string) error {
	version, err := migrate.Version(ctx, db)
	switch latest := migrate.Latest(); {
	case err != nil:
		return fmt.Errorf("%s: %w", where, err)
	case version == 0:
		return fmt.Errorf("%w: %s has none: run `fairlease migrate`", ErrSchema, where)
	case version < latest:
		return fmt.Errorf("%w: %s has version %d, this fairlease needs %d: run `fairlease migrate`", ErrSchema, where, version, latest)
	case version > latest:
		return fmt.Errorf("%w: %s has version %d, made by a newer fairlease; this one knows %d: run the newer one", ErrSchema, where, version, latest)
	}
	return nil
}

// Close closes the connections.
func (s *Store) Close() { s.pool.Close() }
