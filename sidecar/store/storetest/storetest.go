// Package storetest gives every test a database of its own, on a private
// PostgreSQL server that the tests of one process share.
package storetest

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/migrate"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// template is the migrated database that others are copies of.
const template = "migrated"

var (
	made atomic.Int64
	// server ends with the process, however that ends.
	server = sync.OnceValues(func() (*testcluster.Postgres, error) {
		ctx := context.Background()
		p, err := testcluster.StartPostgres(ctx, "")
		if err != nil {
			return nil, err
		}
		if err := execute(ctx, p.DSN(), "create database "+template); err != nil {
			return nil, err
		}
		_, _, err = migrate.Up(ctx, in(p.DSN(), template), func(string) {})
		return p, err
	})
)

// Database gives the address of a new database with the newest schema.
func Database(t testing.TB) string {
	t.Helper()
	return database(t, " template "+template)
}

// Empty gives the address of a new database without anything in it.
func Empty(t testing.TB) string {
	t.Helper()
	return database(t, "")
}

func database(t testing.TB, how string) string {
	t.Helper()
	if !installed() {
		t.Skip("needs PostgreSQL's server, which is not installed: run `apt-get install postgresql`")
	}
	p, err := server()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("test%d", made.Add(1))
	if err := execute(t.Context(), p.DSN(), "create database "+name+how); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := execute(context.Background(), p.DSN(), "drop database "+name+" with (force)"); err != nil {
			t.Error(err)
		}
	})
	return in(p.DSN(), name)
}

// installed tells whether there is a PostgreSQL server to start.
func installed() bool {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	_, err := exec.LookPath("initdb")
	return len(found) > 0 || err == nil
}

// Connect gives a connection to the database at dsn, closed with the test.
func Connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	db, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close(context.Background()) })
	return db
}

func execute(ctx context.Context, dsn, text string) error {
	db, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	_, err = db.Exec(ctx, text)
	return err
}

// in gives the address of another database on the same server.
func in(dsn, name string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		panic(err) // the server gave it
	}
	u.Path = "/" + name
	return u.String()
}
