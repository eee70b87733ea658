package migrate_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	"github.com/fairlease/fairlease/sql"
	"github.com/fairlease/fairlease/tests/seeds"
)

// roled gives a journal with roles and two tenants, astro and bio: ann belongs to bio, eve to astro. Every text and number of astro's that
// somebody could know it by has "astro", "eve" or 777 in it.
// Roles are the server's, which all databases share: tests that make them run one after another.
func roled(t *testing.T) (dsn string, db *pgx.Conn) {
	t.Helper()
	dsn = storetest.Database(t)
	if err := migrate.Roles(t.Context(), dsn, migrate.Schema, quiet); err != nil {
		t.Fatal(err)
	}
	db = storetest.Connect(t, dsn)
	execute(t, db, `
		insert into members values ('bio', 'ann'), ('astro', 'eve');
		insert into tenants (name, weight) values ('bio', 1), ('astro', 7770);
		insert into leaders (holder, takeover_after, schema_version) values ('host:1', '15 s', 27);
		insert into daemons (holder, silent_after) values ('host:2', '1 hour');
		insert into rounds (number, at, leader_term, preset, nodes, nodes_bad, gpus, tenants, jobs, jobs_running, jobs_waiting, leases, leases_ended, claims, actions, actions_suppressed, events)
		values (1, now() - interval '1 hour', 1, 'astraea', 1, 0, 8, 2, 2, 1, 1, 1, 0, 0, 2, 0, 1), (2, now(), 1, 'astraea', 1, 0, 8, 2, 2, 1, 1, 1, 0, 0, 2, 0, 1);
		insert into round_blobs (round, keyframe, link, snapshot, plan, snapshot_bytes, plan_bytes) values (2, 2, 0, 'astro', 'astro', 5, 5);
		insert into nodes (name, gpus, cpus, memory_mb, partitions, features, bad, busy) values ('n1', '[]', 1, 1, '{gpu}', '{}', 'down', '');
		insert into pools values ('v100', now(), 8, 0, 9, 9, 0, 0, 0, 0);
		insert into pool_history values ('v100', now(), 8, 9, 9, 0, 0, 0, 0);
		insert into identity (name, cluster_id) values ('test', 1);
		insert into settings (settings) values ('{"astro": 777}');
		insert into fragmentation_history values ('rack', 'node', now(), 8, 0, 1);
		insert into violations (what, since) values ('astro has more than there is', now());
		insert into audits (day, at, policy, tenants, envy, misreports) values (now(), now(), 'oef:coop',
			'[{"tenant":"astro","incentive":0.9},{"tenant":"bio","incentive":1}]', '[{"tenant":"bio","of":"astro","ratio":1.5}]', '[{"kind":"astro/bert","model":"v100","gang":1,"by":"eve","said":1,"seen":2,"spread":0,"samples":777}]');
		insert into profiles values ('astro/bert', '', 'v100', 1, 'observed', 777, 1, 0, now(), '');
		insert into allocations (policy, digest, objective, why_not, pools, parties, since) values ('oef:coop', 'd', 0, 'astro has no answer', '{v100}', 2, now());
		insert into trades (id, made_at, fast, slow, fast_to, fast_to_kind, slow_to, slow_to_kind, fast_gpus, slow_gpus, price, fast_to_speedup, slow_to_speedup, fast_to_gain, slow_to_gain, left_fast_gpus, left_slow_gpus, undone_why)
		values (1, now(), 'v100', 'k80', 'bio', 'bio/a', 'astro', 'astro/a', 1, 1, 777, 1, 1, 1, 1, 1, 1, '');
		insert into lending values ('v100', 'bio', 'astro', 1, now());
		insert into lending_days values (now(), 'v100', 'astro', 'bio', 777);
		insert into bound_cells values ('rack', 'node', 'n1', 0, 'bio', '{n1}', '0-7', 8, false, 8, 0, '{1}', '{777}', now()), ('rack', 'node', 'n7770', 0, 'astro', '{n1}', '0-7', 8, false, 8, 0, '{777}', '{}', now());
		insert into events values (1, 0, now(), 'grant', 1, '', 'instead of job 777 of astro'), (2, 0, now(), 'grant', 777, '', 'astro');
		insert into overrides (kind, scope, name, until_at, reason, by, job_key) values
			('freeze', 'tenant', 'bio', now() + interval '1 day', 'ours 1', 'root', null), ('freeze', 'user', 'ann', now() + interval '1 day', 'ours 2', 'root', null),
			('freeze', 'job', '1_2', now() + interval '1 day', 'ours 3', 'root', 1), ('freeze', 'job', '1', now() + interval '1 day', 'ours 4', 'root', 1),
			('freeze', 'tenant', 'astro', now() + interval '1 day', 'astro', 'root', null), ('freeze', 'user', 'eve', now() + interval '1 day', 'eve', 'root', null),
			('freeze', 'job', '777', now() + interval '1 day', '777', 'root', 777), ('freeze', 'job', '1_2', now() + interval '1 day', 'of the job 777 that had the id before', 'root', 777);
		insert into gpu_nodes values ('n1', 'fresh', '', now(), now());
		insert into gpu_memory values ('eve', 'astro', 1, 'h100', 777, false, false, now());
		insert into gpu_sizes values ('h100', 777);
		insert into gpu_baselines values ('eve', 'astro', 1, 'h100', 'speed', 777, 0, 0, 0, now());
		insert into tunings (kind, file_ms, before_ms, term_ms, by, why) values ('kept', 1, 1, 1, 'fairlease', 'astro');
		insert into repairs (kind, found, done, reason, by) values ('clock', 'astro', 'eve', 'r', 'root')`)
	for _, x := range []struct {
		key          int
		id           string
		tenant, user string
	}{{1, "1_2", "bio", "ann"}, {777, "777", "astro", "eve"}} {
		other := map[string]string{"bio": "astro", "astro": "bio"}[x.tenant]
		execute(t, db, fmt.Sprintf(`
			insert into jobs (key, slurm_id, slurm_job, name, user_name, account, tenant, qos, partitions, state, inactive, outcome, control, control_why, gpus, model, nodes, cpus, memory_mb, limit_ms,
				submitted_at, eligible_at, restarts, terms, failed, said, alloc_gpu_ms, due_gpu_ms, lost_gpu_ms)
			values (%[1]d, '%[2]s', split_part('%[2]s', '_', 1)::int, '%[3]s', '%[4]s', '%[3]s', '%[3]s', 'normal', '{gpu}', 'waiting', '', '', 'act', '', 4, 'v100', 1, 1, 1, 0, now(), now(), 0, 1, 0, '', 5, 900, 0);
			insert into job_statuses (job_key, round, at, code, pool, need_gpus, free_gpus, behind_ms, other, other_behind_ms, rank, until_at, for_job, note, rho, alloc_gpu_ms, due_gpu_ms, queue, other_job)
			values (%[1]d, 2, now(), 'behind', 'v100', 4, 0, 0, '%[5]s', 777000, 1, now(), 778 - %[1]d, '', 0, 5, 900, '', 778 - %[1]d);
			insert into leases (job_key, term, slurm_id, tenant, user_name, state, class, pool, gpus, nodes, holdings, granted_at, started_at, ends_at, ended_at, adopted, why, granted_round, ended_round)
			values (%[1]d, 1, '%[2]s', '%[3]s', '%[4]s', 'over', 'shared', 'v100', 4, '{n1}', '[]', now(), now(), now(), now(), false, 'recalled', 1, 2);
			insert into actions (round, ordinal, verb, job_key, slurm_id, nodes, reservation, limit_ms, signal, suppressed, reason) values
			(2, %[1]d, 'reclaim', %[1]d, '%[2]s', '{n1}', '', 0, '', false, '{"code":"recalled","for":777,"other":"astro"}');
			insert into ledger values ('%[3]s', 'v100', now(), 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 900, 0, 900, 0, 0, case '%[3]s' when 'bio' then 9 else -777 end, 0);
			insert into bound_jobs values (%[1]d, 'age', 'v100', 4, now(), now() + interval '1 day');
			insert into window_buckets values ('%[3]s', 'v100', now(), 0, 900);
			insert into tenant_history values ('%[3]s', 'v100', now(), 1, 1, 1, 1, 0, 0, 0, 0);
			insert into budget_periods values ('%[3]s', '2026-03-01', '2026-04-01', true, 'month', case '%[3]s' when 'bio' then 9 else 777 end, '{}', 'warn', '{}', '{}', 1, '2026-03-02', null, null, 0);
			insert into objective_days values (now(), 'first_lease', '%[3]s', 95, 60000, 10, case '%[3]s' when 'bio' then 9 else 777 end);
			insert into charges values (now(), '%[3]s', '%[4]s', 'v100', 5);
			insert into losses values (2, %[1]d, now(), '%[2]s', '%[3]s', '%[4]s', 'v100', 1, 5, 'known', '/home/%[4]s/x', 4);
			insert into claims values (%[1]d, now(), 'v100', 1, '{n1}', now());
			insert into vc_cells values ('%[3]s', 'rack', 'node', now(), 8, 1, 0, 1, 0, 0, 0);
			insert into vc_cell_history values ('%[3]s', 'rack', 'node', now(), 8, 1, 0, 1, 0, 0, 0);
			insert into entitlements values ('%[3]s', 'v100', now(), 1, 1, 1, 1, 1, 1);
			insert into gpus values ('n1', %[1]d, '', 'H100', 'fresh', '', %[1]d, 0, 0, 70, 1, 2, true, now());
			insert into notices (kind, job_key, event, user_name, channel, facts, due_at) values ('stop', %[1]d, '1', '%[4]s', 'mail', '{"tenant": "%[3]s"}', now());
			insert into notice_choices values ('%[4]s', '{stop}', case '%[3]s' when 'bio' then '' else '07:00-07:07' end, now());
			insert into gpu_remarks values (%[1]d, 'stall', '', -1, now(), 'of %[3]s');
			insert into forecasts (at, job_key, round, runs, horizon_ms, waits, why, raw_ms, kept) values ('2026-03-02', %[1]d, 2, 100, 777, true, '', '{0,0,0,0,0,0}', true);
			insert into forecast_classes values ('running_end', 'tenant', '%[3]s', '2026-03-02', case '%[3]s' when 'bio' then 90 else 777 end, 20, 80, 70, 90);
			insert into gpu_use values (now(), %[1]d, 'h100', 1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 5);
			insert into entitlement_history values ('%[3]s', 'v100', now() - interval '1 hour', 1, 1, 1, 1, 1, 1)`, x.key, x.id, x.tenant, x.user, other))
	}
	return dsn, db
}

// as connects as a new user of one of the journal's roles.
func as(t *testing.T, dsn string, db *pgx.Conn, role string) *pgx.Conn {
	t.Helper()
	return storetest.Connect(t, storetest.As(dsn, storetest.Role(t, db, "ann", "fairlease_"+role)))
}

// relations lists what is in the schema, tables first.
func relations(t *testing.T, db *pgx.Conn) (tables, views []string) {
	t.Helper()
	for _, kind := range []string{"table", "view"} {
		list := strings.Fields(text(t, db, fmt.Sprintf(`
			select string_agg(%[1]sname, ' ' order by 1) from pg_%[1]ss where schemaname = 'fairlease'
			and not (select relispartition from pg_class where oid = format('%%I.%%I', schemaname, %[1]sname)::regclass)`, kind)))
		if kind == "table" {
			tables = list
		} else {
			views = list
		}
	}
	return tables, views
}

func refused(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "42501"
}

// fraction of a second: any digits.
var fraction = regexp.MustCompile(`(:\d\d)\.\d+`)

// rows gives all that a user sees of a table or view, a row a line, without fractions of seconds: their digits tell of nobody.
func rows(t *testing.T, user *pgx.Conn, name string) ([]string, error) {
	t.Helper()
	all, err := user.Query(t.Context(), "select x::text from fairlease."+name+" x")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(all, func(row pgx.CollectableRow) (string, error) {
		text, err := pgx.RowTo[string](row)
		return fraction.ReplaceAllString(text, "$1"), err
	})
}

// A tenant sees rows of its own in all views that it is granted, and of others nothing anywhere, by no table and no view; a member of no
// tenant sees no tenant's rows.
func TestWhatATenantSees(t *testing.T) {
	dsn, db := roled(t)
	ann := as(t, dsn, db, "tenant")
	execute(t, db, "insert into database_users values ('"+text(t, ann, "select current_user::text")+"', 'ann')")
	nobody := as(t, dsn, db, "tenant")
	tables, views := relations(t, db)
	for _, name := range slices.Concat(tables, views) {
		all, err := rows(t, db, name)
		if err != nil || len(all) == 0 && name != "debts" && name != "database_users" {
			t.Fatalf("%s: %d rows (%v): there is nothing to hide", name, len(all), err)
		}
		mine, err := rows(t, ann, name)
		mayRead := slices.Contains(migrate.TenantViews, name) || slices.Contains([]string{"jobs", "overrides", "rounds", "schema_version", "members", "database_users", "notices", "notice_choices"}, name)
		switch {
		case !mayRead && !refused(err):
			t.Errorf("%s can be read: %q (%v)", name, mine, err)
		case mayRead && (err != nil || len(mine) == 0):
			t.Errorf("%s: %d rows of its own (%v)", name, len(mine), err)
		}
		for _, row := range mine {
			if strings.Contains(row, "astro") || strings.Contains(row, "eve,") || strings.Contains(row, "777") {
				t.Errorf("%s shows another tenant's row: %s", name, row)
			}
		}
		none, err := rows(t, nobody, name)
		if (err == nil) != mayRead {
			t.Errorf("%s, for a user without a tenant: %v", name, err)
		}
		for _, row := range none {
			if strings.Contains(row, "bio") || strings.Contains(row, "ann,") {
				t.Errorf("%s shows a row to a user without a tenant: %s", name, row)
			}
		}
	}
	got, err := rows(t, ann, "waiting_jobs")
	if err != nil || len(got) != 1 || !strings.Contains(got[0], "its turn has not come; its own tenant is even") {
		t.Errorf("why its job waits: %q (%v)", got, err)
	}
	if n := number(t, ann, "select count(*) from overrides_in_force where reason like 'ours%'"); n != 4 {
		t.Errorf("it sees %d of the 4 orders about it", n)
	}
	if n := number(t, ann, "select count(*) from overrides_in_force"); n != 4 {
		t.Errorf("it sees %d orders about others", n-4)
	}
	for _, x := range []string{
		"update jobs set gpus = 1", "delete from jobs", "insert into members values ('astro', 'ann')", "update database_users set slurm_user = 'eve'",
		"insert into overrides (kind, scope, name, until_at, reason, by) values ('boost', 'tenant', 'bio', now() + interval '1 day', 'r', 'ann')",
		"create table mine ()", "alter table jobs disable row level security", "drop view waiting_jobs", "set role fairlease_views", "set role fairlease_reader",
		"insert into notice_choices (user_name, kinds) values ('ann', '{}')", "update notice_choices set kinds = '{}'", "delete from notice_choices", "update notices set due_at = now()",
		"select choose_notices('eve', '{}', null)", "select choose_notices(current_user, '{}', null)", "select choose_notices(null, '{}', null)",
		"do 'begin lock table notice_choices in row share mode; end'", "do 'begin lock table notices in row share mode; end'", "do 'begin lock table identity; end'", "do 'begin lock table leaders; end'", "select from notice_choices for key share",
		"insert into notices (kind, job_key, event, user_name, channel, facts, due_at) values ('stop', 7, '1', 'ann', 'mail', '{}', now())",
	} {
		if _, err := ann.Exec(t.Context(), x); !refused(err) {
			t.Errorf("%s: %v", x, err)
		}
	}
	execute(t, ann, "create temp table database_users as select session_user::text as name, 'eve' as slurm_user") // the function does not read it
	execute(t, ann, "select fairlease.choose_notices('ann', '{start}', '22:00-07:00')")
	execute(t, ann, "drop table pg_temp.database_users")
	if got := text(t, db, "select string_agg(concat_ws(' ', user_name, kinds, quiet), ', ' order by user_name) from notice_choices"); got != "ann {start} 22:00-07:00, eve {stop} 07:00-07:07" {
		t.Errorf("after its own choice there are: %s", got)
	}
	// Nothing that a query does with rows, in whichever order, sees those of others.
	execute(t, ann, "create function pg_temp.tell(text) returns boolean language plpgsql cost 0.0000001 as $$ begin if $1 ~ 'astro|eve' then raise 'leaked %', $1; end if; return true; end $$")
	for _, x := range []string{"waiting_jobs where pg_temp.tell(other)", "job_fairness where pg_temp.tell(tenant)", "gpu_hours where pg_temp.tell(user_name)", "jobs where pg_temp.tell(name)"} {
		if _, err := ann.Exec(t.Context(), "select from fairlease."+x); err != nil {
			t.Errorf("%s: %v", x, err)
		}
	}
	execute(t, ann, "set row_security = off")
	if got, err := rows(t, ann, "jobs"); err == nil {
		t.Errorf("without row security: %q", got)
	}
}

// The user of the database is the user of that name in Slurm, unless database_users says otherwise.
func TestWhoseRowsATenantSees(t *testing.T) {
	dsn, db := roled(t)
	user := as(t, dsn, db, "tenant")
	me := text(t, user, "select current_user::text")
	tenants := func() string {
		return text(t, user, "select coalesce(string_agg(tenant, ' ' order by tenant), 'none') from tenant_fairness")
	}
	if got := tenants(); got != "none" {
		t.Errorf("a stranger to Slurm sees %s", got)
	}
	execute(t, db, "insert into members values ('astro', '"+me+"')")
	if got := tenants(); got != "astro" {
		t.Errorf("by its own name it sees %s", got)
	}
	execute(t, db, "insert into database_users values ('"+me+"', 'ann')")
	if got := tenants(); got != "bio" {
		t.Errorf("as ann it sees %s", got)
	}
	execute(t, db, "insert into members values ('astro', 'ann')")
	if got := tenants(); got != "astro bio" {
		t.Errorf("as ann of two tenants it sees %s", got)
	}
	execute(t, db, "update database_users set slurm_user = null")
	if got := tenants(); got != "none" {
		t.Errorf("as nobody it sees %s", got)
	}
	execute(t, db, "grant fairlease_reader to "+me)
	if got := tenants(); got != "astro bio" {
		t.Errorf("as a reader, too, it sees %s", got)
	}
}

// Readers, operators and the daemon see every row of every table and view.
func TestWhatOthersMay(t *testing.T) {
	dsn, db := roled(t)
	tables, views := relations(t, db)
	writes := []string{
		"insert into jobs select * from jobs where key = 0", "update jobs set gpus = gpus", "delete from jobs where key = 0", "update leaders set renewed_at = now()",
		"insert into leaders (holder, takeover_after) select 'x', '1 s' where false", "delete from rounds where number = 0", "insert into members values ('x', 'x')", "delete from members where tenant = 'x'",
		"delete from charges where gpu_ms = 0", "update tunings set round = 1", "update notices set sent_at = now() where id = 0", "delete from notices where id = 0",
	}
	audit := []string{"insert into repairs (kind, found, done, reason, by) values ('clock', '', '', '', 'ann')", "update identity set name = name"}
	order := []string{
		"insert into overrides (kind, scope, name, until_at, reason, by) values ('boost', 'tenant', 'bio', now() + interval '1 day', 'r', 'ann')",
	}
	end := []string{"update overrides set ended_at = now(), ended_by = 'ann' where id = 1"}
	term := []string{"insert into tunings (kind, file_ms, before_ms, term_ms, by, why, study) values ('taken', 1, 1, 2, 'ann', 'r', null)"}
	choose := []string{"select choose_notices('bob', '{}', null)"}
	prune := []string{"delete from overrides where id = 0", "delete from tunings where id = 0"}
	never := []string{
		"update overrides set reason = 'x'", "update overrides set until_at = until_at", "insert into overrides (kind, scope, name, until_at, reason, by, created_at) values ('boost', 'tenant', 'bio', now(), 'r', 'ann', '2000-01-01')",
		"update repairs set by = 'x'", "update tunings set term_ms = 9", "update tunings set why = 'x'", "delete from repairs", "delete from identity", "update database_users set slurm_user = 'eve'", "insert into database_users values ('x', 'x')", "delete from schema_version",
		"truncate jobs", "create table mine ()", "drop view waiting_jobs", "alter table jobs disable row level security", "drop table jobs", "set role fairlease_views", "create role other",
	}
	for role, may := range map[string][]string{"reader": nil, "operator": slices.Concat(order, end, term, choose), "daemon": slices.Concat(writes, audit, prune, end, term, choose)} {
		user := as(t, dsn, db, role)
		for _, name := range slices.Concat(tables, views) {
			all, err1 := rows(t, db, name)
			seen, err2 := rows(t, user, name)
			slices.Sort(all)
			slices.Sort(seen)
			clock := name == "leader_now" || name == "standbys_now"
			if !clock && !slices.Equal(all, seen) || err1 != nil || err2 != nil {
				t.Errorf("%s sees of %s: %s (%v, %v)", role, name, cmp.Diff(all, seen), err1, err2)
			}
		}
		for _, x := range slices.Concat(writes, audit, order, end, prune, choose, never) {
			_, err := user.Exec(t.Context(), x)
			if want := slices.Contains(may, x); want && err != nil || !want && !refused(err) {
				t.Errorf("%s: %s: %v", role, x, err)
			}
		}
	}
}

// A user who was granted a view in another way sees all of it, as ever.
func TestOthersGrantsStand(t *testing.T) {
	dsn, db := roled(t)
	grafana := storetest.Role(t, db, "grafana")
	execute(t, db, "grant usage on schema fairlease to "+grafana)
	execute(t, db, "grant select on fairlease.gpu_hours to "+grafana)
	got, err := rows(t, storetest.Connect(t, storetest.As(dsn, grafana)), "gpu_hours")
	if err != nil || len(got) != 2 {
		t.Errorf("it sees %q (%v)", got, err)
	}
}

// Every view is either named as one that tenants may read, or they may not read it; and no name is of a view that is not there.
func TestTenantViewsAreViews(t *testing.T) {
	for _, name := range migrate.TenantViews {
		if !slices.Contains(sql.ViewNames(), name) {
			t.Errorf("there is no view %s", name)
		}
	}
}

// rights are the owners, grants and policies of every table and view.
const rights = `select string_agg(concat_ws(' ', c.relname, (select string_agg(x::text, ',' order by x::text) from unnest(c.relacl) x), pg_get_userbyid(c.relowner), c.relrowsecurity,
		(select string_agg(pg_get_expr(polqual, polrelid), ',') from pg_policy where polrelid = c.oid)), E'\n' order by c.relname)
	from pg_class c where c.relnamespace = 'fairlease'::regnamespace and c.relkind in ('r', 'p', 'v') and not c.relispartition`

// Made again, roles are as they were; views that a later version makes anew or adds are given to them.
func TestRolesAgain(t *testing.T) {
	dsn, db := roled(t)
	want := text(t, db, rights)
	if err := migrate.Roles(t.Context(), dsn, migrate.Schema, quiet); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, text(t, db, rights)); diff != "" {
		t.Errorf("again:\n%s", diff)
	}
	was := catalog(t, db)
	if _, _, err := migrate.Up(t.Context(), dsn, migrate.Schema, quiet); err != nil {
		t.Fatal(err)
	}
	if is := catalog(t, db); was != is {
		t.Errorf("migrate, where nothing was to be done, wrote to the catalogue: %s, then %s", was, is)
	}
	for _, change := range []string{"alter view fairlease.gpu_hours rename column model to pool", "drop view fairlease.gpu_hours", "select 'a migration'"} {
		execute(t, db, change)
		_, _, err := migrate.Up(t.Context(), dsn, migrate.Schema, quiet)
		if change == "select 'a migration'" && err == nil {
			_, _, err = migrate.Later(t.Context(), dsn, quiet)
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, text(t, db, rights)); diff != "" {
			t.Errorf("after %s:\n%s", change, diff)
		}
	}
}

// A journal that is restored has the rights of its roles, also where the roles were made anew after it.
func TestRightsOfARestoredJournal(t *testing.T) {
	seeds.Slow(t)
	dsn, db := roled(t)
	want, dump := text(t, db, rights), storetest.Dump(t, dsn)
	for _, options := range [][]string{nil, {"--no-owner", "--no-privileges"}} {
		restored := storetest.Restore(t, dump, options...)
		db := storetest.Connect(t, restored)
		if _, _, err := migrate.Up(t.Context(), restored, migrate.Schema, quiet); err != nil {
			t.Fatal(err)
		}
		if options != nil {
			if err := migrate.Roles(t.Context(), restored, migrate.Schema, quiet); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, text(t, db, rights)); diff != "" {
			t.Errorf("pg_restore %v:\n%s", options, diff)
		}
	}
}

// Roles of two schemas of a database know nothing of each other.
func TestRolesOfTwoSchemas(t *testing.T) {
	dsn, db := roled(t)
	if _, _, err := migrate.Up(t.Context(), dsn, "beta", quiet); err != nil {
		t.Fatal(err)
	}
	if err := migrate.Roles(t.Context(), dsn, "beta", quiet); err != nil {
		t.Fatal(err)
	}
	alpha := as(t, dsn, db, "reader")
	beta := storetest.Connect(t, storetest.As(dsn, storetest.Role(t, db, "ann", "beta_reader")))
	for user, its := range map[*pgx.Conn]string{alpha: "fairlease", beta: "beta"} {
		for _, schema := range []string{"fairlease", "beta"} {
			if _, err := user.Exec(t.Context(), "select from "+schema+".gpu_hours"); (err == nil) != (schema == its) {
				t.Errorf("the reader of %s in %s: %v", its, schema, err)
			}
		}
	}
}

// The owner of the database who may not make roles is told what to have done, and goes on from there. Roles that another database of
// the server has the same names of are told, too.
func TestRolesThatMayNotBeMade(t *testing.T) {
	_, _ = roled(t) // another database with roles of the same names
	dsn := storetest.Empty(t)
	db := storetest.Connect(t, dsn)
	owner := storetest.Role(t, db, "owner")
	execute(t, db, fmt.Sprintf("grant create on database %s to %s", pgx.Identifier{text(t, db, "select current_database()::text")}.Sanitize(), owner))
	theirs := storetest.As(dsn, owner)
	const schema = "gamma"
	if _, _, err := migrate.Up(t.Context(), theirs, schema, quiet); err != nil {
		t.Fatal(err)
	}
	err := migrate.Roles(t.Context(), theirs, schema, quiet)
	if err == nil || !strings.Contains(err.Error(), "user "+owner+" may not create roles") {
		t.Fatalf("the error is %v", err)
	}
	_, command, _ := strings.Cut(err.Error(), "`")
	command, _, _ = strings.Cut(command, "`")
	execute(t, db, command)
	if err := migrate.Roles(t.Context(), theirs, schema, quiet); err != nil {
		t.Fatal(err)
	}
	reader := storetest.Connect(t, storetest.As(dsn, storetest.Role(t, db, "ann", schema+"_reader")))
	if _, err := reader.Exec(t.Context(), "select from gamma.gpu_hours"); err != nil {
		t.Error(err)
	}
	if _, _, err := migrate.Up(t.Context(), dsn, migrate.Schema, quiet); err != nil {
		t.Fatal(err)
	}
	var said []string
	if err := migrate.Roles(t.Context(), dsn, migrate.Schema, func(step string) { said = append(said, step) }); err != nil {
		t.Fatal(err)
	}
	if len(said) != 2 || !strings.Contains(said[1], "these roles have rights in database test") {
		t.Errorf("it said %q", said)
	}
}

// An administrator of PostgreSQL may make the roles of a journal that another user owns: its owner still reads and renews the views.
func TestRolesMadeByAnAdministrator(t *testing.T) {
	dsn := storetest.Empty(t)
	db := storetest.Connect(t, dsn)
	name := storetest.Role(t, db, "owner")
	execute(t, db, fmt.Sprintf("grant create on database %s to %s", pgx.Identifier{text(t, db, "select current_database()::text")}.Sanitize(), name))
	owner := storetest.As(dsn, name)
	for _, work := range []func() error{
		func() error { _, _, err := migrate.Up(t.Context(), owner, migrate.Schema, quiet); return err },
		func() error { return migrate.Roles(t.Context(), dsn, migrate.Schema, quiet) },
		func() error { _, err := storetest.Connect(t, owner).Exec(t.Context(), "table leader_now"); return err },
		func() error { _, _, err := migrate.Up(t.Context(), owner, migrate.Schema, quiet); return err },
		func() error { return migrate.Roles(t.Context(), dsn, migrate.Schema, quiet) },
	} {
		if err := work(); err != nil {
			t.Fatal(err)
		}
	}
}
