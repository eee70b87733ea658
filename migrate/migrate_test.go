package migrate_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	"github.com/fairlease/fairlease/sql"
	"github.com/fairlease/fairlease/tests/seeds"
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
	if len(steps) < 7 || !strings.HasPrefix(steps[len(steps)-2], fmt.Sprintf("schema: %05d_", migrate.Latest())) || !strings.HasPrefix(steps[len(steps)-1], "views and their functions: ") {
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
		{"a migration", undo + forget},
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
			if _, _, err := migrate.Up(t.Context(), dsn, migrate.Schema, quiet); err != nil {
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

// forget makes the newest migrations be made again; undo takes back what they did and cannot do twice, their
// renames and tables.
const forget = "delete from fairlease.schema_version where version_id >= 15"

var undo = func() string {
	var text []byte
	for _, name := range []string{"00016_suppressed", "00015_words"} {
		more, err := os.ReadFile("migrations/" + name + ".sql")
		if err != nil {
			panic(err)
		}
		text = append(text, more...)
	}
	var out strings.Builder
	out.WriteString("drop table fairlease.tunings cascade;")
	for _, r := range regexp.MustCompile(`(?m)^alter (table|index|sequence) (?:(\w+) rename (column|constraint) )?(\w+) (?:rename )?to (\w+);`).FindAllStringSubmatch(string(text), -1) {
		kind, table, part, from, to := r[1], r[2], r[3], r[4], r[5]
		if part == "" {
			fmt.Fprintf(&out, "alter %s fairlease.%s rename to %s;", kind, to, from)
			continue
		}
		fmt.Fprintf(&out, "alter table fairlease.%s rename %s %s to %s;", table, part, to, from)
	}
	return out.String()
}()

// A migration that fails in the middle leaves the views away: the next one that succeeds gives them their grants.
func TestGrantsSurviveAFailedMigration(t *testing.T) {
	t.Parallel()
	dsn := storetest.Database(t)
	db := storetest.Connect(t, dsn)
	reader := storetest.Role(t, db, "reader")
	execute(t, db, "grant select on fairlease.gpu_hours to "+reader)
	execute(t, db, forget)
	if _, _, err := migrate.Up(t.Context(), dsn, migrate.Schema, quiet); err == nil {
		t.Fatal("a migration whose tables are there already succeeded")
	}
	if n := number(t, db, "select count(*) from pg_views where schemaname = 'fairlease'"); n != 0 {
		t.Fatalf("%d views are there; the test wants none", n)
	}
	execute(t, db, undo)
	if _, _, err := migrate.Up(t.Context(), dsn, migrate.Schema, quiet); err != nil {
		t.Fatal(err)
	}
	if n := number(t, db, "select has_table_privilege('"+reader+"', 'fairlease.gpu_hours', 'select')::int"); n != 1 {
		t.Error("the grant is gone")
	}
}

// TestInterrupted ends the connection of every migration when all of its work is done and none is committed: nothing of it is
// kept, and the next call makes the same schema as one that nobody interrupts.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	want := text(t, storetest.Connect(t, storetest.Database(t)), shape)
	latest := int(migrate.Latest())
	for version := int64(seeds.Some(latest-3, 1)); version < migrate.Latest(); version++ {
		t.Run(fmt.Sprintf("after %d", version), func(t *testing.T) {
			t.Parallel()
			dsn := storetest.Empty(t)
			if err := migrate.To(t.Context(), dsn, version); err != nil {
				t.Fatal(err)
			}
			db, other := storetest.Connect(t, dsn), storetest.Connect(t, dsn)
			was := text(t, db, shape)
			execute(t, other, "begin; lock table fairlease.schema_version in share mode") // its last row waits
			ended := make(chan error, 1)
			go func() {
				_, _, err := migrate.Up(context.Background(), dsn, migrate.Schema, quiet)
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
			if diff := cmp.Diff(was, text(t, db, shape)); diff != "" {
				t.Errorf("something of it was kept:\n%s", diff)
			}
			if from, to, err := migrate.Up(t.Context(), dsn, migrate.Schema, quiet); err != nil || from != version || to != migrate.Latest() {
				t.Errorf("again: from %d to %d (%v)", from, to, err)
			}
			if diff := cmp.Diff(want, text(t, db, shape)); diff != "" {
				t.Errorf("the schema differs:\n%s", diff)
			}
		})
	}
}

// A migration takes the lead: a daemon of the version before ends its commit, writes nothing more, and does not lead again,
// neither while the migration runs nor after it.
func TestAMigrationTakesTheLead(t *testing.T) {
	t.Parallel()
	for version, table := range map[int64]string{14: "seats", 26: "leaders"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			dsn := storetest.Empty(t)
			if err := migrate.To(t.Context(), dsn, version); err != nil {
				t.Fatal(err)
			}
			db, daemon := storetest.Connect(t, dsn), storetest.Connect(t, dsn)
			lead := "insert into " + table + " (holder, takeover_after) values ('ctl1:7', '15 s')"
			execute(t, daemon, lead)
			execute(t, daemon, "begin")
			execute(t, daemon, "select from "+table+" where ended_at is null for key share")
			execute(t, daemon, "insert into tenants (name, weight) values ('nlp', 1)")
			var said []string
			free := -1
			ended := make(chan error, 1)
			go func() {
				_, _, err := migrate.Up(context.Background(), dsn, migrate.Schema, func(step string) {
					if said = append(said, step); len(said) == 2 { // between two migrations
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
			if n := number(t, db, "select count(*) from leaders where why = 'migrated' and ended_at is not null and schema_version = 26"); n != 1 {
				t.Errorf("%d terms were ended", n)
			}
			_, err := daemon.Exec(t.Context(), strings.Replace(lead, "seats", "leaders", 1))
			if err == nil || !strings.Contains(err.Error(), "this_fairlease_is_older_than_the_schema") {
				t.Errorf("the older daemon leads again: %v", err)
			}
		})
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

// TestHistoryIsPartitioned migrates a journal with rows of before, and of a wrong clock: nothing is lost, and what comes goes
// into the days' partitions.
func TestHistoryIsPartitioned(t *testing.T) {
	t.Parallel()
	dsn := storetest.Empty(t)
	if err := migrate.To(t.Context(), dsn, 8); err != nil {
		t.Fatal(err)
	}
	db := storetest.Connect(t, dsn)
	execute(t, db, `
		insert into seats (holder, takeover_after) values ('me', '15 s');
		insert into rounds (number, at, seat_term, preset, nodes, nodes_bad, gpus, tenants, jobs, jobs_running, jobs_waiting, leases, leases_ended, claims, actions, actions_withheld, events)
		select n, case when n = 3 then '2199-01-01' else now() - interval '1 day' * (3 - n) end, 1, 'astraea', 1, 0, 8, 1, 1, 1, 0, 1, 0, 0, 1, 0, 1 from generate_series(1, 3) n;
		insert into round_blobs select n, 1, 'x', 'y', 1, 1 from generate_series(1, 3) n;
		insert into actions (round, ordinal, verb, slurm_id, nodes, reservation, limit_ms, signal, withheld, because) select n, 0, 'gate', '', '{}', '', 0, '', false, '{}' from generate_series(1, 3) n;
		insert into events select number, 0, at, 'kind', null, '', 'text' from rounds;
		insert into tenant_history select 'bio', 'v100', at, 1, 1, 1, 1, 1, 1, 1, 1 from rounds`)
	if _, _, err := migrate.Up(t.Context(), dsn, migrate.Schema, quiet); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"rounds", "round_blobs", "actions", "events", "tenant_history"} {
		if n := number(t, db, "select count(*) from "+table); n != 3 {
			t.Errorf("%d rows of %s of 3", n, table)
		}
		other := 0
		if table == "rounds" || table == "events" || table == "tenant_history" {
			other = 1
		}
		if n := number(t, db, "select count(*) from "+table+"_other"); n != other {
			t.Errorf("%d rows of %s are of no day, want %d", n, table, other)
		}
	}
	if n := number(t, db, "select count(*) from round_blobs where link is null"); n != 3 {
		t.Errorf("%d blobs of before are known as such", n)
	}
	if n := number(t, db, "select count(*) from pg_class where relname in ('pool_history_before', 'losses_before')"); n != 0 {
		t.Errorf("%d empty tables are kept", n)
	}
	// Rows that came before their day's partition are taken over by it.
	execute(t, db, "insert into pool_history select 'v100', now() + interval '2 days', 1, 1, 1, 1, 1, 1, 1 from generate_series(1, 1)")
	for range 2 {
		execute(t, db, "select make_days((now() at time zone 'UTC')::date, (now() at time zone 'UTC')::date + 3)")
	}
	for query, want := range map[string]int{
		"select count(*) from pool_history":                                                                 1,
		"select count(*) from pool_history_other":                                                           0,
		"select count(*) from history_parts() where parent = 'pool_history'":                                1 + 4,
		"select count(*) from history_parts() where parent = 'rounds'":                                      1 + 1 + 3, // today is in what was there
		"select count(*) from history_parts() where parent = 'rounds' and ends <= now()":                    0,
		"select count(*) from history_parts() where rest and part <> parent || '_other'":                    0,
		"select count(*) from pg_indexes where tablename like 'events\\_2%' and indexname like '%job_key%'": 3,
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

// TestRowsOfBeforeCountGPUTimeAsWork upgrades accounts from before work was stored.
func TestRowsOfBeforeCountGPUTimeAsWork(t *testing.T) {
	t.Parallel()
	dsn := storetest.Empty(t)
	if err := migrate.To(t.Context(), dsn, 19); err != nil {
		t.Fatal(err)
	}
	db := storetest.Connect(t, dsn)
	execute(t, db, "insert into fairlease.window_buckets values ('bio', 'v100', '2026-03-02', 500, 1000), ('bio', 'k80', '2026-03-02', 900, 1000)")
	execute(t, db, `insert into fairlease.ledger values
		('bio', 'v100', '2026-03-02', 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 500, 1000, 700, 2000, 0.5, 0.35, 0, 0)`)
	if _, _, err := migrate.Up(t.Context(), dsn, migrate.Schema, quiet); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"select string_agg(concat_ws(' ', pool, rho, work_gpu_ms, work_due_gpu_ms), ', ' order by pool) from fairlease.tenant_fairness_over_time": "k80 0.900000 900 1000, v100 0.500000 500 1000",
		"select concat_ws(' ', window_work_gpu_ms, window_work_due_gpu_ms, work_gpu_ms, work_due_gpu_ms) from fairlease.tenant_fairness":          "500 1000 700 2000",
		"select concat_ws(' ', tenant, pool, missing_gpu_ms) from fairlease.sharing_loss":                                                         "bio v100 500",
	} {
		if got := text(t, db, query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// TestOverridesOfBefore upgrades overrides that name a job by its id alone: each is bound to the job that had the id when it was given, or ends.
func TestOverridesOfBefore(t *testing.T) {
	t.Parallel()
	dsn := storetest.Empty(t)
	if err := migrate.To(t.Context(), dsn, overrideJobs-1); err != nil {
		t.Fatal(err)
	}
	db := storetest.Connect(t, dsn)
	for _, j := range []struct {
		key                       int
		id, user                  string
		submitted, eligible, done string
	}{
		{1, "5", "ann", "-4 hours", "-4 hours", "-3 hours"}, {2, "5", "bob", "-2 hours", "-2 hours", ""}, // the id was reused
		{3, "6", "ann", "-10 minutes", "-4 hours", ""}, // requeued
		{4, "7_0", "eve", "-10 minutes", "-4 hours", ""}, {5, "7_1", "eve", "-5 hours", "", ""}, {6, "7_2", "eve", "-5 hours", "", ""},
		{7, "8", "eve", "-5 hours", "-5 hours", "-1 hours"},
	} {
		execute(t, db, fmt.Sprintf(`insert into fairlease.jobs (key, slurm_id, slurm_job, name, user_name, account, tenant, qos, partitions, state, inactive, outcome, touch, touch_why, gpus, model, nodes, cpus, memory_mb,
			limit_ms, submitted_at, eligible_at, done_at, restarts, terms, failed, said, alloc_gpu_ms, due_gpu_ms, lost_gpu_ms)
			values (%d, '%s', split_part('%[2]s', '_', 1)::bigint, '', '%s', '', '', '', '{}', 'waiting', '', '', '', '', 1, '', 1, 1, 1, 0, now() + '%s', now() + nullif('%s', '')::interval, now() + nullif('%s', '')::interval, 0, 0, 0, '', 0, 0, 0)`,
			j.key, j.id, j.user, j.submitted, j.eligible, j.done))
	}
	execute(t, db, `insert into fairlease.overrides (kind, scope, name, until_at, reason, by, created_at, ended_at) values
		('exempt', 'job', '5', now() + interval '1 day', 'of the job before', 'root', now() - interval '3 hours', null),
		('exempt', 'job', '5', now() + interval '1 day', 'of this job', 'root', now() - interval '1 hour', null),
		('exempt', 'job', '6', now() + interval '1 day', 'of a job that was requeued since', 'root', now() - interval '1 hour', null),
		('exempt', 'job', '7', now() + interval '1 day', 'of an array', 'root', now() - interval '1 hour', null),
		('exempt', 'job', '7_1', now() + interval '1 day', 'of a task', 'root', now() - interval '1 hour', null),
		('exempt', 'job', '8', now() + interval '1 day', 'of a job that has ended', 'root', now() - interval '2 hours', null),
		('exempt', 'job', '9', now() + interval '1 day', 'of no job', 'root', now() - interval '2 hours', null),
		('exempt', 'job', '9', now() - interval '1 hour', 'lapsed', 'root', now() - interval '2 hours', null),
		('exempt', 'user', 'ann', now() + interval '1 day', 'of a user', 'root', now() - interval '2 hours', null)`)
	if _, _, err := migrate.Up(t.Context(), dsn, migrate.Schema, quiet); err != nil {
		t.Fatal(err)
	}
	got := text(t, db, `select string_agg(concat_ws(' ', reason || ':', job_key, job_user, 'ended: ' || left(ended_by, 20)), E'\n' order by id) from fairlease.overrides`)
	want := strings.Join([]string{
		"of the job before: ended: fairlease migrate: n", "of this job: 2 bob", "of a job that was requeued since: 3 ann", "of an array: 6 eve", "of a task: 5 eve",
		"of a job that has ended: ended: fairlease migrate: n", "of no job: ended: fairlease migrate: n", "lapsed:", "of a user:",
	}, "\n")
	if got != want {
		t.Errorf("the overrides are\n%s\nwant\n%s", got, want)
	}
}

// overrideJobs is the version of the schema since which overrides name their jobs.
const overrideJobs = 29
