package migrate_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	"github.com/fairlease/fairlease/sql"
)

func quiet(string) {}

func TestUp(t *testing.T) {
	dsn := storetest.Empty(t)
	var steps []string
	from, to, err := migrate.Up(t.Context(), dsn, func(step string) { steps = append(steps, step) })
	if err != nil || from != 0 || to != migrate.Latest() {
		t.Fatalf("from %d to %d (%v)", from, to, err)
	}
	if len(steps) != int(migrate.Latest())+1 {
		t.Errorf("told %q", steps)
	}
	from, to, err = migrate.Up(t.Context(), dsn, quiet)
	if err != nil || from != migrate.Latest() || to != migrate.Latest() {
		t.Errorf("again: from %d to %d (%v)", from, to, err)
	}
	db := storetest.Connect(t, dsn)
	version, err := migrate.Version(t.Context(), db)
	if err != nil || version != migrate.Latest() {
		t.Errorf("the schema is version %d (%v)", version, err)
	}
}

func TestVersionOfNothing(t *testing.T) {
	version, err := migrate.Version(t.Context(), storetest.Connect(t, storetest.Empty(t)))
	if err != nil || version != 0 {
		t.Errorf("an empty database has version %d (%v)", version, err)
	}
}

func TestManyAtOnce(t *testing.T) {
	dsn := storetest.Empty(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, _, err := migrate.Up(context.Background(), dsn, quiet); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestANewerSchemaIsLeftAlone(t *testing.T) {
	dsn := storetest.Database(t)
	db := storetest.Connect(t, dsn)
	execute(t, db, "insert into fairlease.schema_version (version_id, is_applied) values (1000, true)")
	execute(t, db, "drop view fairlease.gpu_hours")
	_, _, err := migrate.Up(t.Context(), dsn, quiet)
	if err == nil || !strings.Contains(err.Error(), "version 1000") {
		t.Errorf("the error is %v", err)
	}
	if n := number(t, db, "select count(*) from pg_views where schemaname = 'fairlease' and viewname = 'gpu_hours'"); n != 0 {
		t.Error("its views were made anew")
	}
}

// TestViewsAreMadeAnew drops views of older versions, and never what others built on ours.
func TestViewsAreMadeAnew(t *testing.T) {
	dsn := storetest.Database(t)
	db := storetest.Connect(t, dsn)
	execute(t, db, "create view fairlease.of_an_older_version as select 1 as x")
	execute(t, db, "drop view fairlease.gpu_hours")
	if _, _, err := migrate.Up(t.Context(), dsn, quiet); err != nil {
		t.Fatal(err)
	}
	if n := number(t, db, "select count(*) from pg_views where schemaname = 'fairlease' and viewname in ('gpu_hours', 'of_an_older_version')"); n != 1 {
		t.Errorf("%d of the two views are there", n)
	}
	execute(t, db, "create view public.ours as select * from fairlease.gpu_hours")
	_, _, err := migrate.Up(t.Context(), dsn, quiet)
	if err == nil || !strings.Contains(err.Error(), "view ours depends on view fairlease.gpu_hours") {
		t.Errorf("the error is %v", err)
	}
	if n := number(t, db, "select count(*) from public.ours"); n != 0 {
		t.Errorf("the view that somebody built gives %d rows", n)
	}
}

// TestEverythingIsDocumented looks for a comment on every table, view, column, index and function.
func TestEverythingIsDocumented(t *testing.T) {
	db := storetest.Connect(t, storetest.Database(t))
	rows, err := db.Query(t.Context(), `
		select c.relkind::text || ' ' || c.relname
		from pg_class c
		where c.relnamespace = 'fairlease'::regnamespace
		and c.relkind in ('r', 'v')
		and obj_description(c.oid, 'pg_class') is null
		union all
		select 'column ' || c.relname || '.' || a.attname
		from pg_class c
		join pg_attribute a on a.attrelid = c.oid
		where c.relnamespace = 'fairlease'::regnamespace
		and c.relkind in ('r', 'v')
		and a.attnum > 0
		and not a.attisdropped
		and col_description(c.oid, a.attnum) is null
		union all
		select 'index ' || i.relname
		from pg_class i
		join pg_index x on x.indexrelid = i.oid
		where i.relnamespace = 'fairlease'::regnamespace
		and not x.indisprimary
		and obj_description(i.oid, 'pg_class') is null
		union all
		select 'function ' || p.proname
		from pg_proc p
		where p.pronamespace = 'fairlease'::regnamespace
		and obj_description(p.oid, 'pg_proc') is null
		union all
		select 'schema fairlease'
		where obj_description('fairlease'::regnamespace, 'pg_namespace') is null`)
	if err != nil {
		t.Fatal(err)
	}
	missing, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range missing {
		t.Errorf("no comment on %s", what)
	}
	if n := number(t, db, "select count(*) from pg_views where schemaname = 'fairlease'"); n < len(sql.Views()) {
		t.Errorf("only %d views", n)
	}
}

func TestUpSaysWhatIsWrong(t *testing.T) {
	for dsn, words := range map[string]string{
		"://":                           "address",
		"host=/nowhere dbname=x user=x": "connecting",
	} {
		if _, _, err := migrate.Up(t.Context(), dsn, quiet); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", dsn, err)
		}
	}
	dsn := storetest.Empty(t)
	db := storetest.Connect(t, dsn)
	role := fmt.Sprintf("guest_%d", db.PgConn().PID()) // roles are the whole server's
	execute(t, db, "create role "+role+" login")
	if _, _, err := migrate.Up(t.Context(), strings.Replace(dsn, "user=postgres", "user="+role, 1), quiet); err == nil || !strings.Contains(err.Error(), "must own the database") {
		t.Errorf("a guest: %v", err)
	}
}

func execute(t *testing.T, db *pgx.Conn, text string) {
	t.Helper()
	if _, err := db.Exec(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

func number(t *testing.T, db *pgx.Conn, query string) (n int) {
	t.Helper()
	if err := db.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
