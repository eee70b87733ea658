// Package migrate brings the journal's schema in PostgreSQL up to date:
// numbered migrations, each applied once, then all views made anew.
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
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/fairlease/fairlease/sql"
)

//go:embed migrations/*.sql
var files embed.FS

// oldest is the first PostgreSQL whose numeric knows Infinity, which rho may be.
const oldest = 140000

// one is the advisory lock under which at most one migration runs.
const one = 0x6661_6972_6c65_6173

// Progress is told each step as it is taken.
type Progress func(step string)

// Latest gives the version of the schema that this program was built for.
func Latest() int64 {
	all, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		panic(err) // the pattern is wrong
	}
	return int64(len(all))
}

// Version gives the version of the database's schema; 0 = there is none.
func Version(ctx context.Context, db *pgx.Conn) (int64, error) {
	var version int64
	err := db.QueryRow(ctx, "select coalesce(max(version_id), 0) from fairlease.schema_version").Scan(&version)
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

// Up brings the schema of the database at dsn to Latest and makes its views
// anew. It gives the versions before and after. Two at once wait for each other;
// a schema newer than this program is an error and is left alone.
func Up(ctx context.Context, dsn string, say Progress) (from, to int64, err error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the address of PostgreSQL: %w", err)
	}
	db, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return 0, 0, fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer db.Close(context.WithoutCancel(ctx)) // gives the lock back, too
	if _, err := db.Exec(ctx, "select pg_advisory_lock($1)", one); err != nil {
		return 0, 0, fmt.Errorf("waiting for another migration to end: %w", err)
	}
	if from, err = prepare(ctx, db); err != nil {
		return 0, 0, err
	}
	if from < Latest() {
		if err := step(ctx, db, dropViews); err != nil { // they may stand in a migration's way
			return from, from, err
		}
		pool := stdlib.OpenDB(*config)
		defer pool.Close()
		if err := apply(ctx, pool, say); err != nil {
			return from, from, err
		}
	}
	if err := step(ctx, db, dropViews, createViews); err != nil {
		return from, from, err
	}
	say(fmt.Sprintf("views: %d made anew", len(sql.Views())))
	return from, Latest(), nil
}

// prepare refuses what we cannot work with and makes an empty schema if there is none.
func prepare(ctx context.Context, db *pgx.Conn) (version int64, err error) {
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
	if version > Latest() {
		return 0, fmt.Errorf("the schema is version %d, made by a newer fairlease; this one knows %d: run the newer one", version, Latest())
	}
	if _, err := db.Exec(ctx, "create schema if not exists fairlease"); err != nil {
		return 0, fmt.Errorf("making schema fairlease (the user must own the database or the schema): %w", err)
	}
	return version, nil
}

func apply(ctx context.Context, db *dbsql.DB, say Progress) error {
	texts, err := fs.Sub(files, "migrations")
	if err != nil {
		return err
	}
	runner, err := goose.NewProvider(goose.DialectPostgres, db, texts, goose.WithTableName("fairlease.schema_version"))
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

// dropViews drops all views of the schema, those of older versions too, in one
// statement, so that their order does not matter. It never drops what others
// built on them.
func dropViews(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, "select 'fairlease.' || quote_ident(viewname) from pg_views where schemaname = 'fairlease'")
	if err != nil {
		return fmt.Errorf("listing the old views: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("listing the old views: %w", err)
	}
	if len(names) == 0 {
		return nil
	}
	_, err = tx.Exec(ctx, "drop view "+strings.Join(names, ", "))
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Detail != "" {
		return fmt.Errorf("dropping the old views: %w: %s: drop it first, and make it again afterwards", err, refused.Detail)
	}
	if err != nil {
		return fmt.Errorf("dropping the old views: %w", err)
	}
	return nil
}

func createViews(ctx context.Context, tx pgx.Tx) error {
	for _, view := range sql.Views() {
		if _, err := tx.Exec(ctx, view.Text); err != nil {
			return fmt.Errorf("making the view of %s: %w", view.File, err)
		}
	}
	return nil
}
