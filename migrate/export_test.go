package migrate

import (
	"context"
	"io/fs"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
)

// Later brings the schema to the version after the newest one, as a newer fairlease would.
func Later(ctx context.Context, dsn string, say Progress) (from, to int64, err error) {
	all := fstest.MapFS{"migrations/00099_later.sql": {Data: []byte("-- +goose Up\nalter table leaders add column later bigint;\n")}}
	names, err := fs.Glob(files, "migrations/*.sql")
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return 0, 0, err
		}
		all[name] = &fstest.MapFile{Data: text}
	}
	if err != nil {
		return 0, 0, err
	}
	return up(ctx, dsn, Schema, "", all, say)
}

// UpTo is Up by a program of a version of the schema. beside makes what today's views and roles know beyond it.
func UpTo(ctx context.Context, dsn string, version int64, beside ...string) error {
	names, err := fs.Glob(files, "migrations/*.sql")
	some := fstest.MapFS{}
	for _, name := range names[:version] {
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		some[name] = &fstest.MapFile{Data: text}
	}
	if err != nil {
		return err
	}
	if _, _, err = up(ctx, dsn, Schema, "", some, func(string) {}); len(beside) == 0 {
		return err
	}
	db, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close(ctx) }()
	for _, text := range beside {
		if _, err := db.Exec(ctx, text); err != nil {
			return err
		}
	}
	_, _, err = up(ctx, dsn, Schema, "", some, func(string) {})
	return err
}
