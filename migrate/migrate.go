// Package migrate brings the journal's schema in PostgreSQL up to date:
// numbered migrations, each applied once, then the views, which keep their grants.
//
// There is no way back: a newer schema is used by a newer fairlease.
package migrate

import (
	"context"
	dbsql "database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var files embed.FS

// Schema is where the journal is kept unless the configuration says otherwise.
const Schema = "fairlease"

// In lets a connection work in a schema: no text of ours names one. A temporary table never stands before a table of the journal.
func In(config *pgx.ConnConfig, schema string) {
	config.RuntimeParams["search_path"] = pgx.Identifier{schema}.Sanitize() + ", pg_temp"
}

// oldest is the first PostgreSQL whose numeric knows Infinity, which rho may be.
const oldest = 140000

// one is the advisory lock under which at most one migration runs.
const one = 0x6661_6972_6c65_6173

// Progress is told each step as it is taken.
type Progress func(step string)

// Latest gives the version of the schema that this program was built for.
func Latest() int64 { return latest(files) }

func latest(files fs.FS) int64 {
	all, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		panic(err) // the pattern is wrong
	}
	version, err := goose.NumericComponent(all[len(all)-1])
	if err != nil {
		panic(err) // the name is wrong
	}
	return version
}

// Version gives the version of the schema that the connection works in; 0 = there is none.
func Version(ctx context.Context, db *pgx.Conn) (int64, error) {
	var version int64
	err := db.QueryRow(ctx, "select coalesce(max(version_id), 0) from schema_version").Scan(&version)
	if missing(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the version of the schema: %w", err)
	}
	return version, nil
}

func missing(err error) bool {
	var refused *pgconn.PgError
	const noTable, noSchema = "42P01", "3F000"
	return errors.As(err, &refused) && (refused.Code == noTable || refused.Code == noSchema)
}

// Up brings the schema in the database at dsn and its views up to date, and makes a schema that is missing. It changes
// nothing that is up to date. It gives the versions before and after. Concurrent calls wait for each other. A schema newer
// than this program is an error, and Up leaves it alone.
func Up(ctx context.Context, dsn, schema string, say Progress) (from, to int64, err error) {
	return up(ctx, dsn, schema, "", files, say)
}

// UpBy is Up by an author, for the record of administration. For Up that is the database user.
func UpBy(ctx context.Context, dsn, schema, by string, say Progress) (from, to int64, err error) {
	return up(ctx, dsn, schema, by, files, say)
}

// up is UpBy with the folder of migrations in files.
func up(ctx context.Context, dsn, schema, by string, files fs.FS, say Progress) (from, to int64, err error) {
	to = latest(files)
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the address of PostgreSQL: %w", err)
	}
	In(config, schema)
	db, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return 0, 0, fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer db.Close(context.WithoutCancel(ctx)) // gives the lock back, too
	if _, err := db.Exec(ctx, "select pg_advisory_lock($1)", one); err != nil {
		return 0, 0, fmt.Errorf("waiting for another migration to end: %w", err)
	}
	if from, err = prepare(ctx, db, schema, to); err != nil {
		return 0, 0, err
	}
	if from < to {
		if from > 0 {
			if err := takeLead(ctx, db, say); err != nil {
				return from, from, err
			}
		}
		if err := step(ctx, db, keepRights, dropViews); err != nil { // they may stand in a migration's way
			return from, from, err
		}
		pool := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(func(ctx context.Context, db *pgx.Conn) error {
			_, err := db.Exec(ctx, "select set_config('fairlease.by', $1, false)", by)
			return err
		}))
		defer pool.Close()
		if err := apply(ctx, pool, schema, files, say); err != nil {
			return from, from, err
		}
	}
	changed, err := refresh(ctx, db, schema)
	if err != nil {
		return from, from, err
	}
	if changed > 0 {
		say(fmt.Sprintf("views and their functions: %d new, changed or dropped", changed))
	}
	return from, to, nil
}

// commitLimit is how long a migration waits for a leader to end its commit.
const commitLimit = "60s"

// takeLead ends the term of a leader, whose program was made for the older schema, and lets nobody lead for as long as
// the connection lives. It waits for a commit that is under way. The leader notices at its next sign of life and stops
// acting; the newer schema does not let it lead again.
func takeLead(ctx context.Context, db *pgx.Conn, say Progress) error {
	// Daemons take this lock to lead.
	if _, err := db.Exec(ctx, "select pg_advisory_lock(hashtext(current_schema() || '.leaders'))"); err != nil {
		return fmt.Errorf("waiting for a daemon that begins to lead: %w", err)
	}
	return step(ctx, db, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local lock_timeout = '"+commitLimit+"'"); err != nil {
			return err
		}
		var holder string
		err := tx.QueryRow(ctx, `with open as (select term from leaders where ended_at is null for update)
			update leaders t set ended_at = clock_timestamp(), why = 'migrated' from open where t.term = open.term returning holder`).Scan(&holder)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("taking the lead from a daemon (stop it: systemctl stop fairlease, on a standby's host too): %w", err)
		}
		say(fmt.Sprintf("%s has led until now, and changes nothing more: restart it, and every standby, with the new version", holder))
		return nil
	})
}

// prepare refuses what we cannot work with and makes an empty schema if there is none.
func prepare(ctx context.Context, db *pgx.Conn, schema string, latest int64) (version int64, err error) {
	var server int
	if err := db.QueryRow(ctx, "select current_setting('server_version_num')::int").Scan(&server); err != nil {
		return 0, fmt.Errorf("asking PostgreSQL for its version: %w", err)
	}
	if server < oldest {
		return 0, fmt.Errorf("this is PostgreSQL %d; fairlease needs %d or newer", server/10000, oldest/10000)
	}
	if version, err = Version(ctx, db); err != nil {
		return 0, err
	}
	if version > latest {
		return 0, fmt.Errorf("the schema is version %d, made by a newer fairlease; this one knows %d: run the newer one", version, latest)
	}
	if _, err := db.Exec(ctx, "create schema if not exists "+pgx.Identifier{schema}.Sanitize()); err != nil {
		return 0, fmt.Errorf("making schema %s (the user must own the database or the schema): %w", schema, err)
	}
	return version, nil
}

func apply(ctx context.Context, db *dbsql.DB, schema string, files fs.FS, say Progress) error {
	texts, err := fs.Sub(files, "migrations")
	if err != nil {
		return err
	}
	runner, err := goose.NewProvider(goose.DialectPostgres, db, texts, goose.WithTableName(schema+".schema_version"))
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	for {
		done, err := runner.UpByOne(ctx)
		if errors.Is(err, goose.ErrNoNextVersion) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("migrating the schema (nothing of the failed step was kept): %w", err)
		}
		say(fmt.Sprintf("schema: %s applied in %s", done.Source.Path, done.Duration.Round(1e6)))
	}
}

// step does all works in one transaction.
func step(ctx context.Context, db *pgx.Conn, works ...func(context.Context, pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		for _, work := range works {
			if err := work(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
}
