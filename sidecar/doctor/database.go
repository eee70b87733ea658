package doctor

import (
	"context"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/connect"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Database is the state of PostgreSQL and of the journal. After an error the later fields are
// empty.
type Database struct {
	Err     error
	Version int // as server_version_num
	User    string
	Schema  int64 // version; 0 = none
	Rights  bool  // the journal is writable
	Skew    time.Duration

	OpenErr   error             // as a journal
	Of        *cluster.Identity // nil = no cluster yet
	OfErr     error
	Leader    *store.Leader // nil = none
	LeaderErr error
	Past      *store.Past    // the last days; nil = none
	Remarks   []store.Remark // on running jobs
}

// askDatabase reads the state of the database, in part if the schema is unknown.
func askDatabase(ctx context.Context, cfg *config.Config, now time.Time) (d Database) {
	if d.Err = d.ask(ctx, cfg.Database.URL, cfg.Database.Schema); d.Err != nil {
		return d
	}
	s, err := connect.Journal(ctx, cfg)
	if err != nil {
		d.OpenErr = err
		return d
	}
	defer s.Close()
	of, known, err := s.Identity(ctx)
	if d.OfErr = err; known {
		d.Of = &of
	}
	d.Leader, d.LeaderErr = s.Leader(ctx)
	if past, err := recent(ctx, s, now); err == nil {
		d.Past = &past
	}
	d.Remarks, _ = s.Remarks(ctx, "", math.MaxInt32) // where they cannot be read, neither can what is checked above
	return d
}

// ask queries the database without a journal, whatever the schema.
func (d *Database) ask(ctx context.Context, dsn, schema string) error {
	ctx, cancel := context.WithTimeout(ctx, connect.Limit)
	defer cancel()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err
	}
	migrate.In(config, schema)
	db, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	asked := time.Now()
	var there time.Time
	err = db.QueryRow(ctx, `select current_setting('server_version_num')::int, current_user, clock_timestamp(),
		coalesce(has_table_privilege(to_regclass('rounds'), 'insert'), false)`).Scan(&d.Version, &d.User, &there, &d.Rights)
	if err != nil {
		return err
	}
	d.Skew = asked.Add(time.Since(asked) / 2).Sub(there)
	d.Schema, err = migrate.Version(ctx, db)
	return err
}
