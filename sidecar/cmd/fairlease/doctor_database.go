package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/migrate"
)

// databaseFacts is what doctor wants to know of PostgreSQL before the store can be
// opened, and whatever its schema.
type databaseFacts struct {
	version int // as server_version_num
	user    string
	schema  int64 // version; 0 = none
	rights  bool  // may write the journal
	skew    time.Duration
}

func lookAtDatabase(ctx context.Context, dsn, schema string) (facts databaseFacts, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return facts, err
	}
	migrate.In(config, schema)
	db, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return facts, err
	}
	defer db.Close(context.WithoutCancel(ctx))
	asked := time.Now()
	var there time.Time
	err = db.QueryRow(ctx, `select current_setting('server_version_num')::int, current_user, clock_timestamp(),
		coalesce(has_table_privilege(to_regclass('rounds'), 'insert'), false)`).Scan(&facts.version, &facts.user, &there, &facts.rights)
	if err != nil {
		return facts, err
	}
	facts.skew = asked.Add(time.Since(asked) / 2).Sub(there)
	facts.schema, err = migrate.Version(ctx, db)
	return facts, err
}
