package migrate_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	"github.com/fairlease/fairlease/sql"
)

func quiet(string) {}

func TestUp(t *testing.T) {
	t.Parallel()
	dsn := storetest.Empty(t)
	var steps []string
	from, to, err := migrate.Up(t.Context(), dsn, migrate.Schema, func(step string) { steps = append(steps, step) })
	if err != nil || from != 0 || to != migrate.Latest() {
		t.Fatalf("from %d to %d (%v)", from, to, err)
	}
	if len(steps) != int(migrate.Latest())+1 || !strings.HasPrefix(steps[len(steps)-2], fmt.Sprintf("schema: %05d_", migrate.Latest())) || !strings.HasPrefix(steps[len(steps)-1], "views and their functions: ") {
		t.Errorf("told %q", steps)
	}
	db := storetest.Connect(t, dsn)
	was := catalog(t, db)
	steps = nil
	from, to, err = migrate.Up(t.Context(), dsn, migrate.Schema, func(step string) { steps = append(steps, step) })
	if err != nil || from != migrate.Latest() || to != migrate.Latest() || len(steps) > 0 {
		t.Errorf("again: from %d to %d, told %q (%v)", from, to, steps, err)
	}
	if is := catalog(t, db); was != is {
		t.Errorf("again, where nothing was to be done, it wrote to the catalogue: %s, then %s", was, is)
	}
	version, err := migrate.Version(t.Context(), db)
	if err != nil || version != migrate.Latest() {
		t.Errorf("the schema is version %d (%v)", version, err)
	}
}

func TestVersionOfNothing(t *testing.T) {
	t.Parallel()
	version, err := migrate.Version(t.Context(), storetest.Connect(t, storetest.Empty(t)))
	if err != nil || version != 0 {
		t.Errorf("an empty database has version %d (%v)", version, err)
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	dsn := storetest.Empty(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, _, err := migrate.Up(context.Background(), dsn, migrate.Schema, quiet); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestANewerSchemaIsLeftAlone(t *testing.T) {
	t.Parallel()
	dsn := storetest.Database(t)
	db := storetest.Connect(t, dsn)
	execute(t, db, "insert into fairlease.schema_version (version_id, is_applied) values (1000, true)")
	execute(t, db, "drop view fairlease.gpu_hours")
	_, _, err := migrate.Up(t.Context(), dsn, migrate.Schema, quiet)
	if err == nil || !strings.Contains(err.Error(), "version 1000") {
		t.Errorf("the error is %v", err)
	}
	if n := number(t, db, "select count(*) from pg_views where schemaname = 'fairlease' and viewname = 'gpu_hours'"); n != 0 {
		t.Error("its views were made anew")
	}
}

// catalog stands for every row of the schema's relations, functions and their comments as the catalogue has them: a row that
// is written over with the same has another transaction.
func catalog(t *testing.T, db *pgx.Conn) (text string) {
	t.Helper()
	err := db.QueryRow(t.Context(), `
		select concat_ws(' ', md5(string_agg(row, ' ' order by row)), count(*))
		from (
			select concat_ws(' ', c.oid, c.xmin, c.relacl, r.xmin) as row
			from pg_class c
			left join pg_rewrite r on r.ev_class = c.oid
			where c.relnamespace = 'fairlease'::regnamespace
			union all
			select concat_ws(' ', oid, xmin, proacl) from pg_proc where pronamespace = 'fairlease'::regnamespace
			union all
			select concat_ws(' ', d.objoid, d.objsubid, d.xmin)
			from pg_description d
			join pg_class c on c.oid = d.objoid and d.classoid = 'pg_class'::regclass
			where c.relnamespace = 'fairlease'::regnamespace
		) rows`).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestViewsKeepTheirGrants has a view that is as it should be, one that is replaced in place, and one that cannot be, for an
// older version had other columns: which roles may read them is what it was in all cases, also where migrations are
// applied.
func TestViewsKeepTheirGrants(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, change string }{
		{"no change", "select 1"},
		{"another text", "create or replace view fairlease.gpu_hours as select day, tenant, user_name, pool as model, gpu_ms, 0.0::numeric as gpu_hours from fairlease.charges"},
		{"other columns", "alter view fairlease.gpu_hours rename column model to pool"},
		{"a view on it", "alter view fairlease.job_fairness rename column age to old"},
		{"a comment", "comment on view fairlease.gpu_hours is 'old'"},
		{"a migration", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := storetest.Database(t)
			db := storetest.Connect(t, dsn)
			reader, writer := storetest.Role(t, db, "reader"), storetest.Role(t, db, "writer")
			execute(t, db, "grant select on fairlease.gpu_hours, fairlease.sharing_loss to "+reader+" with grant option")
			execute(t, db, "grant select (tenant) on fairlease.gpu_hours to "+writer)
			execute(t, db, "grant select on fairlease.leader_now to public")
			execute(t, db, "grant create on schema fairlease to "+writer)
			execute(t, db, "alter view fairlease.round_latency owner to "+writer)
			const grants = `select string_agg(concat_ws(' ', c.relname, c.relacl, pg_get_userbyid(c.relowner), (select string_agg(a.attacl::text, ',') from pg_attribute a where a.attrelid = c.oid)), E'\n' order by c.relname)
				from pg_class c where c.relnamespace = 'fairlease'::regnamespace and c.relkind = 'v'`
			want, texts := text(t, db, grants), text(t, db, definitions)
			execute(t, db, c.change)
			_, _, err := migrate.Up(t.Context(), dsn, migrate.Schema, quiet)
			if c.change == "" && err == nil {
				_, _, err = migrate.Later(t.Context(), dsn, quiet)
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, text(t, db, grants)); diff != "" {
				t.Errorf("the grants differ:\n%s", diff)
			}
			if diff := cmp.Diff(texts, text(t, db, definitions)); diff != "" {
				t.Errorf("the views differ:\n%s", diff)
			}
		})
	}
}

// definitions are the texts of the views and their comments.
const definitions = `select string_agg(concat_ws(' ', c.relname, pg_get_viewdef(c.oid), obj_description(c.oid, 'pg_class')), E'\n' order by c.relname)
	from pg_class c where c.relnamespace = 'fairlease'::regnamespace and c.relkind = 'v'`

// A migration that fails in the middle leaves the views away: the next one that succeeds gives them their grants.
func TestGrantsSurviveAFailedMigration(t *testing.T) {
	t.Parallel()
	dsn := storetest.Database(t)
	db := storetest.Connect(t, dsn)
	reader := storetest.Role(t, db, "reader")
	execute(t, db, "grant select on fairlease.gpu_hours to "+reader)
	execute(t, db, "alter table fairlease.leaders add column later text")
	if _, _, err := migrate.Later(t.Context(), dsn, quiet); err == nil {
		t.Fatal("a migration whose column is there already succeeded")
	}
	if n := number(t, db, "select count(*) from pg_views where schemaname = 'fairlease'"); n != 0 {
		t.Fatalf("%d views are there; the test wants none", n)
	}
	execute(t, db, "alter table fairlease.leaders drop column later")
	if _, _, err := migrate.Later(t.Context(), dsn, quiet); err != nil {
		t.Fatal(err)
	}
	if n := number(t, db, "select has_table_privilege('"+reader+"', 'fairlease.gpu_hours', 'select')::int"); n != 1 {
		t.Error("the grant is gone")
	}
}

// TestInterrupted ends the connection of a migration when all of its work is done and none is committed: nothing of it is kept, and the next
// call makes the same schema as one that nobody interrupts.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	whole := storetest.Database(t)
	if _, _, err := migrate.Later(t.Context(), whole, quiet); err != nil {
		t.Fatal(err)
	}
	want := text(t, storetest.Connect(t, whole), shape)
	dsn := storetest.Database(t)
	db, other := storetest.Connect(t, dsn), storetest.Connect(t, dsn)
	const tables = "select count(*) from information_schema.columns where table_schema = 'fairlease' and column_name = 'later'"
	execute(t, other, "begin; lock table fairlease.schema_version in share mode") // its last row waits
	ended := make(chan error, 1)
	go func() {
		_, _, err := migrate.Later(context.Background(), dsn, quiet)
		ended <- err
	}()
	const waiting = "from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%schema_version%'"
	deadline := time.After(time.Minute)
	for number(t, db, "select count(*) "+waiting) == 0 {
		select {
		case <-deadline:
			t.Fatal("the migration neither waits for the lock nor ends")
		case err := <-ended:
			t.Fatalf("it ended before it was interrupted (%v)", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	execute(t, db, "select pg_terminate_backend(pid) "+waiting)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "nothing of the failed step was kept") {
		t.Errorf("interrupted, it says %v", err)
	}
	execute(t, other, "rollback")
	if n := number(t, db, tables); n != 0 {
		t.Error("something of it was kept")
	}
	if from, to, err := migrate.Later(t.Context(), dsn, quiet); err != nil || from != migrate.Latest() || to <= from {
		t.Errorf("again: from %d to %d (%v)", from, to, err)
	}
	if diff := cmp.Diff(want, text(t, db, shape)); diff != "" {
		t.Errorf("the schema differs:\n%s", diff)
	}
}

// A journal of the schema before gets the tables of notices: its rows stay, its roles have their rights on the new tables, and its shape is that of a new one.
func TestUpgradeToNotices(t *testing.T) {
	dsn := storetest.Empty(t)
	// Today's views know tables that the program of that schema did not.
	if err := migrate.UpTo(t.Context(), dsn, 1,
		"create table fairlease.objective_days (day date, objective text, tenant text, target_percent float8, within_ms bigint, total float8, bad float8);"+
			"create table fairlease.daemons (holder text, host text, since timestamptz, seen_at timestamptz, silent_after interval)"); err != nil {
		t.Fatal(err)
	}
	db := storetest.Connect(t, dsn)
	if err := migrate.Roles(t.Context(), dsn, migrate.Schema, quiet); err != nil {
		t.Fatal(err)
	}
	execute(t, db, "drop table fairlease.objective_days, fairlease.daemons cascade")
	execute(t, db, "insert into tenants (name, weight) values ('bio', 3)")
	from, to, err := migrate.Up(t.Context(), dsn, migrate.Schema, quiet)
	if err != nil || from != 1 || to != migrate.Latest() {
		t.Fatalf("from %d to %d (%v)", from, to, err)
	}
	if n := number(t, db, "select count(*) from tenants where name = 'bio' and weight = 3"); n != 1 {
		t.Error("a tenant is gone")
	}
	if diff := cmp.Diff(text(t, storetest.Connect(t, storetest.Database(t)), shape), text(t, db, shape)); diff != "" {
		t.Errorf("the schema differs from a new one:\n%s", diff)
	}
	user := as(t, dsn, db, "tenant")
	execute(t, user, "select choose_notices(current_user, '{stop}', null)")
	if _, err := user.Exec(t.Context(), "select choose_notices('eve', '{stop}', null)"); !refused(err) {
		t.Errorf("a tenant chooses for another: %v", err)
	}
	execute(t, as(t, dsn, db, "daemon"), "insert into administration (kind, key, by, why) values ('breaker', 'breaker', 'ann', 'mended')")
	execute(t, as(t, dsn, db, "daemon"), "insert into objective_days (day, objective, tenant, target_percent, total, bad) values ('2026-03-01', 'rounds', '', 99, 1, 0)")
	execute(t, as(t, dsn, db, "daemon"), "insert into notices (kind, job_key, event, user_name, channel, facts, due_at) values ('stop', 1, '1', 'ann', 'mail', '{}', now())")
}

// A migration takes the lead: the daemon of before ends its commit and writes nothing more.
func TestAMigrationTakesTheLead(t *testing.T) {
	t.Parallel()
	dsn := storetest.Database(t)
	db, daemon := storetest.Connect(t, dsn), storetest.Connect(t, dsn)
	execute(t, daemon, fmt.Sprintf("insert into fairlease.leaders (holder, takeover_after, schema_version) values ('ctl1:7', '15 s', %d)", migrate.Latest()))
	execute(t, daemon, "begin")
	execute(t, daemon, "select from fairlease.leaders where ended_at is null for key share")
	execute(t, daemon, "insert into fairlease.tenants (name, weight) values ('nlp', 1)")
	var said []string
	free := -1
	ended := make(chan error, 1)
	go func() {
		_, _, err := migrate.Later(context.Background(), dsn, func(step string) {
			if said = append(said, step); len(said) == 2 { // the schema is new, the views are not there yet
				_ = db.QueryRow(context.Background(), "select count(*) from (select pg_try_advisory_lock(hashtext('fairlease.leaders')) as locked) x where locked").Scan(&free)
			}
		})
		ended <- err
	}()
	const waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%migrated%'"
	for end := time.Now().Add(time.Minute); number(t, db, waiting) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the migration does not wait for the commit")
		}
	}
	execute(t, daemon, "commit")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if free != 0 {
		t.Errorf("a daemon can take the lead during the migration (%d)", free)
	}
	if len(said) == 0 || !strings.HasPrefix(said[0], "ctl1:7 has led until now") {
		t.Errorf("it said %q", said)
	}
	if n := number(t, db, "select count(*) from fairlease.leaders where why = 'migrated' and ended_at is not null"); n != 1 {
		t.Errorf("%d terms were ended", n)
	}
}

// shape lists all columns, indexes, constraints and comments of the schema's tables and views, but for the partitions, which are of today,
// and for what a migration keeps of the views' grants until they are made anew.
const shape = `
	with relations as (
		select oid, relname from pg_class where relnamespace = 'fairlease'::regnamespace and relkind in ('r', 'p', 'v', 'i', 'I') and not relispartition and relname <> 'kept_grants'
	)
	select string_agg(line, E'\n' order by line)
	from (
		select concat_ws(' ', relname, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, pg_get_expr(adbin, adrelid), col_description(relations.oid, attnum)) as line
		from relations
		join pg_attribute on attrelid = relations.oid and attnum > 0 and not attisdropped
		left join pg_attrdef on adrelid = relations.oid and adnum = attnum
		union all
		select concat_ws(' ', relname, conname, pg_get_constraintdef(pg_constraint.oid)) from relations join pg_constraint on conrelid = relations.oid
		union all
		select concat_ws(' ', relname, pg_get_indexdef(relations.oid)) from relations join pg_index on indexrelid = relations.oid
		union all
		select concat_ws(' ', relname, obj_description(oid, 'pg_class')) from relations
	) lines`

// TestViewsOfOthers drops views of older versions, and never what others built on ours.
func TestViewsOfOthers(t *testing.T) {
	t.Parallel()
	dsn := storetest.Database(t)
	db := storetest.Connect(t, dsn)
	execute(t, db, "create view fairlease.of_an_older_version as select 1 as x")
	execute(t, db, "drop view fairlease.gpu_hours")
	if _, _, err := migrate.Up(t.Context(), dsn, migrate.Schema, quiet); err != nil {
		t.Fatal(err)
	}
	if n := number(t, db, "select count(*) from pg_views where schemaname = 'fairlease' and viewname in ('gpu_hours', 'of_an_older_version')"); n != 1 {
		t.Errorf("%d of the two views are there", n)
	}
	execute(t, db, "create view public.ours as select * from fairlease.gpu_hours")
	execute(t, db, "comment on view fairlease.gpu_hours is 'old'")
	if _, _, err := migrate.Up(t.Context(), dsn, migrate.Schema, quiet); err != nil {
		t.Errorf("a view that is replaced in place: %v", err)
	}
	execute(t, db, "alter view fairlease.gpu_hours rename column model to pool")
	_, _, err := migrate.Up(t.Context(), dsn, migrate.Schema, quiet)
	if err == nil || !strings.Contains(err.Error(), "view public.ours depends on view gpu_hours") {
		t.Errorf("the error is %v", err)
	}
	if n := number(t, db, "select count(*) from public.ours"); n != 0 {
		t.Errorf("the view that somebody built gives %d rows", n)
	}
}

func text(t *testing.T, db *pgx.Conn, query string) (text string) {
	t.Helper()
	if err := db.QueryRow(t.Context(), query).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

// TestEverythingIsDocumented looks for a comment on every table, view, column, index and function.
func TestEverythingIsDocumented(t *testing.T) {
	t.Parallel()
	db := storetest.Connect(t, storetest.Database(t))
	rows, err := db.Query(t.Context(), `
		select c.relkind::text || ' ' || c.relname
		from pg_class c
		where c.relnamespace = 'fairlease'::regnamespace
		and c.relkind in ('r', 'p', 'v')
		and not c.relispartition
		and obj_description(c.oid, 'pg_class') is null
		union all
		select 'column ' || c.relname || '.' || a.attname
		from pg_class c
		join pg_attribute a on a.attrelid = c.oid
		where c.relnamespace = 'fairlease'::regnamespace
		and c.relkind in ('r', 'p', 'v')
		and not c.relispartition
		and a.attnum > 0
		and not a.attisdropped
		and col_description(c.oid, a.attnum) is null
		union all
		select 'index ' || i.relname
		from pg_class i
		join pg_index x on x.indexrelid = i.oid
		where i.relnamespace = 'fairlease'::regnamespace
		and not x.indisprimary
		and not i.relispartition
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

// TestHistoryIsPartitioned writes rows of any day: they go into the days' partitions.
func TestHistoryIsPartitioned(t *testing.T) {
	t.Parallel()
	db := storetest.Connect(t, storetest.Database(t))
	execute(t, db, "set search_path = fairlease")
	// Rows that came before their day's partition are taken over by it.
	execute(t, db, "insert into pool_history select 'v100', now() + interval '2 days', 1, 1, 1, 1, 1, 1, 1 from generate_series(1, 1)")
	for range 2 {
		execute(t, db, "select make_days((now() at time zone 'UTC')::date, (now() at time zone 'UTC')::date + 3)")
	}
	for query, want := range map[string]int{
		"select count(*) from pool_history":                                                                 1,
		"select count(*) from pool_history_other":                                                           0,
		"select count(*) from history_parts() where parent = 'pool_history'":                                1 + 4,
		"select count(*) from history_parts() where rest and part <> parent || '_other'":                    0,
		"select count(*) from pg_indexes where tablename like 'events\\_2%' and indexname like '%job_key%'": 4,
	} {
		if n := number(t, db, query); n != want {
			t.Errorf("%s: %d, want %d", query, n, want)
		}
	}
}

func TestUpSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for dsn, words := range map[string]string{
		"://":                           "address",
		"host=/nowhere dbname=x user=x": "connecting",
	} {
		if _, _, err := migrate.Up(t.Context(), dsn, migrate.Schema, quiet); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", dsn, err)
		}
	}
	dsn := storetest.Empty(t)
	db := storetest.Connect(t, dsn)
	role := fmt.Sprintf("guest_%d", db.PgConn().PID()) // roles are the whole server's
	execute(t, db, "create role "+role+" login")
	if _, _, err := migrate.Up(t.Context(), strings.Replace(dsn, "user=postgres", "user="+role, 1), migrate.Schema, quiet); err == nil || !strings.Contains(err.Error(), "must own the database") {
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
