package migrate

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// To makes the schema of an older version in an empty database, without views.
func To(ctx context.Context, dsn string, version int64) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err
	}
	In(config, Schema)
	db, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	if _, err := prepare(ctx, db, Schema); err != nil {
		return err
	}
	pool := stdlib.OpenDB(*config)
	defer pool.Close()
	return apply(ctx, pool, Schema, version, func(string) {})
}
