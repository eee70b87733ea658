// Package storetest gives every test a database of its own, on a private
// PostgreSQL server that the tests of one process share.
package storetest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/migrate"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// template is the migrated database that others copy.
const template = "migrated"

var (
	made atomic.Int64
	// server ends with the process, also when that is killed.
	server = sync.OnceValues(func() (*testcluster.Postgres, error) {
		ctx := context.Background()
		p, err := testcluster.StartPostgres(ctx, inMemory())
		if err != nil {
			return nil, err
		}
		if err := execute(ctx, p.DSN(), "create database "+template); err != nil {
			return nil, err
		}
		_, _, err = migrate.Up(ctx, in(p.DSN(), template), migrate.Schema, func(string) {})
		return p, err
	})
)

// inMemory makes a folder in memory, where a database is copied ten times as fast as on a disk;
// "" = too little memory.
func inMemory() string {
	const memory, room = "/dev/shm", 4 << 30
	var free syscall.Statfs_t
	if err := syscall.Statfs(memory, &free); err != nil || int64(free.Bavail)*free.Bsize < room {
		return ""
	}
	dir, err := os.MkdirTemp(memory, "fl-pg-")
	if err != nil {
		return ""
	}
	return dir
}

// Database gives the address of a new database with the newest schema.
func Database(t testing.TB) string {
	t.Helper()
	return database(t, " template "+template)
}

// Empty gives the address of a new, empty database.
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

// Connect gives a connection to the database at dsn that works in the journal's schema, closed with the test.
func Connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	migrate.In(config, migrate.Schema)
	db, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close(context.Background()) })
	return db
}

// Role makes a role that may log in and is a member of the roles of, and drops it with all its
// objects after the test. Roles belong to the whole server, so Role returns a unique name.
func Role(t testing.TB, db *pgx.Conn, name string, of ...string) string {
	t.Helper()
	name = fmt.Sprintf("%s_%d", name, made.Add(1))
	texts := []string{"create role " + name + " login"}
	for _, group := range of {
		texts = append(texts, "grant "+group+" to "+name)
	}
	for _, text := range texts {
		if _, err := db.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, text := range []string{"drop owned by " + name + " cascade", "drop role " + name} {
			if _, err := db.Exec(context.Background(), text); err != nil {
				t.Error(err)
			}
		}
	})
	return name
}

// Dump writes a journal's schema to a file with pg_dump, as in the README, and gives its path.
func Dump(t testing.TB, dsn string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "journal.dump")
	tool(t, "pg_dump", "--format=custom", "--schema="+migrate.Schema, "--file="+file, "--dbname="+dsn)
	return file
}

// Restore makes a new database from a Dump, with pg_restore and the given options, and gives its
// address.
func Restore(t testing.TB, file string, options ...string) string {
	t.Helper()
	dsn := Empty(t)
	tool(t, "pg_restore", append(options, "--exit-on-error", "--single-transaction", "--dbname="+dsn, file)...)
	return dsn
}

func tool(t testing.TB, name string, args ...string) {
	t.Helper()
	path, err := testcluster.PostgresTool(name)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// As gives the address of the same database for another user.
func As(dsn, user string) string { return strings.Replace(dsn, "user=postgres", "user="+user, 1) }

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
