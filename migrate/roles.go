package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The roles of a journal: what follows the schema's name in their names. PostgreSQL's roles belong to the whole server,
// so the schema's name gives each journal of a database roles of its own.
//
// Views run with their owner's rights, and the owner of a table sees all of its rows. So the views belong to a role that
// owns no table, and tables have policies that ask who runs the query: members of the tenants' role see their own
// tenants' rows, everybody else who was granted a view or table sees all.
const (
	reader   = "_reader"
	tenant   = "_tenant"
	operator = "_operator"
	writer   = "_daemon"
	viewer   = "_views"
)

// roles gives each role's purpose.
var roles = []struct{ name, is string }{
	{reader, "reads all of the journal, writes nothing"},
	{tenant, "reads the rows of its own tenants, by the Slurm user that database_users or its own name gives, and chooses which notices that user gets"},
	{operator, "reads all of the journal, gives and ends overrides (exempt, boost, freeze), takes over and undoes terms of leases, and chooses which notices users get"},
	{writer, "writes the journal, and ends overrides whose jobs have ended; neither gives overrides nor changes tables"},
	{viewer, "owns the views; it cannot log in"},
}

// ofUser is the condition on the rows of the Slurm user that a database user is.
const ofUser = `user_name = case
		when exists (select from database_users where name = current_user) then (select slurm_user from database_users where name = current_user)
		else current_user::text
	end`

// ofTenant gives, by table, the condition on the rows that a tenant sees through the views. Tenants see no row of a table
// that is not listed.
var ofTenant = map[string]string{
	"database_users": "name = current_user",
	"members":        ofUser,
	"notices":        ofUser,
	"notice_choices": ofUser,

	"tenants":             "name in (select tenant from members)",
	"jobs":                "tenant in (select tenant from members)",
	"leases":              "tenant in (select tenant from members)",
	"ledger":              "tenant in (select tenant from members)",
	"window_buckets":      "tenant in (select tenant from members)",
	"budget_periods":      "tenant in (select tenant from members)",
	"objective_days":      "tenant = '' or tenant in (select tenant from members)",
	"charges":             "tenant in (select tenant from members)",
	"losses":              "tenant in (select tenant from members)",
	"entitlements":        "tenant in (select tenant from members)",
	"entitlement_history": "tenant in (select tenant from members)",
	"vc_cells":            "vc in (select tenant from members)",
	"vc_cell_history":     "vc in (select tenant from members)",
	"job_statuses":        "job_key in (select key from jobs)",
	"bound_jobs":          "job_key in (select key from jobs)",
	"actions":             "job_key in (select key from jobs)",
	"gpus":                "job_key in (select key from jobs)",
	"gpu_use":             "job_key in (select key from jobs)",
	"gpu_remarks":         "job_key in (select key from jobs)",
	"forecasts":           "job_key in (select key from jobs)",
	"forecast_classes":    "divided_by <> 'tenant' or class in (select tenant from members)",
	"overrides": `case scope
		when 'tenant' then name in (select tenant from members)
		when 'user' then name in (select user_name from members)
		else job_key in (select key from jobs)
	end`,

	// Rows of no tenant, and sums over all tenants.
	"schema_version":        "true",
	"leaders":               "true",
	"daemons":               "true",
	"rounds":                "true",
	"nodes":                 "true",
	"pools":                 "true",
	"fragmentation_history": "true",
	"gpu_nodes":             "true",
}

// TenantViews lists the views that tenants may read. All other views name other tenants, or are wrong without their rows.
var TenantViews = []string{
	"tenant_fairness", "tenant_fairness_over_time", "job_fairness", "sharing_loss", "sharing_loss_summary", "lease_history", "gpu_hours",
	"bound_gpus", "work_lost", "work_lost_per_day", "work_lost_per_kind", "waiting_jobs", "pool_balance", "round_latency", "round_latency_per_hour",
	"overrides_in_force", "actions_recent", "leader_now", "standbys_now", "nodes_out_of_service", "vc_cells_now", "vc_cells_over_time", "fragmentation_over_time",
	"entitlements_now", "entitlements_over_time", "effective_throughput", "effective_throughput_over_time", "effective_throughput_per_day",
	"gpus_now", "gpu_nodes_now", "gpu_use_hourly", "idle_held", "gpu_remarks_now", "forecasts_now", "forecast_coverage", "budgets", "objectives_kept",
}

// tenantTables are the tables that the program reads for tenants, and those that the policies ask.
var tenantTables = []string{"jobs", "overrides", "rounds", "schema_version", "members", "database_users", "notices", "notice_choices"}

// written gives the daemon's rights on tables where it may not do everything. It may add to repairs and identity, since
// `fairlease repair` runs with its rights.
var written = map[string]string{
	"schema_version": "", "database_users": "", "overrides": "update (ended_at, ended_by), delete", "tunings": "insert, update (round), delete", "identity": "insert, update", "repairs": "insert",
	"administration": "insert (round, kind, key, before, after, by, why)",
}

// asOwner lists functions that run with the rights of the tables' owner: those that make, drop and clear partitions, for the
// daemon's role, the triggers that record what any role does, and the chooser.
var asOwner = []string{"make_days", "drop_days", "prune_rest", "record_override", "record_term", "record_repair", "record_schema", chooser}

// chooser is the function by which tenants write their choices: with a right to write the table, they could lock it.
const chooser = "choose_notices"

// Roles makes the journal's roles that are missing, and gives each role exactly its rights. The schema must be the newest.
// Roles may be repeated.
func Roles(ctx context.Context, dsn, schema string, say Progress) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return fmt.Errorf("reading the address of PostgreSQL: %w", err)
	}
	In(config, schema)
	db, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer db.Close(context.WithoutCancel(ctx))
	if _, err := db.Exec(ctx, "select pg_advisory_lock($1)", one); err != nil {
		return fmt.Errorf("waiting for another migration to end: %w", err)
	}
	made := 0
	err = step(ctx, db, func(ctx context.Context, tx pgx.Tx) (err error) {
		if made, err = makeRoles(ctx, tx, schema); err != nil {
			return err
		}
		return grant(ctx, tx, schema)
	})
	if err != nil {
		return err
	}
	say(fmt.Sprintf("roles: %d made, and all of %s have their rights", made, strings.Join(roleNames(schema), ", ")))
	return elsewhere(ctx, db, schema, say)
}

func roleNames(schema string) []string {
	var names []string
	for _, r := range roles {
		names = append(names, schema+r.name)
	}
	return names
}

// makeRoles makes the roles that are missing, and lets this user and the owner of the tables give views to their owner.
func makeRoles(ctx context.Context, tx pgx.Tx, schema string) (made int, err error) {
	var me string
	if err := tx.QueryRow(ctx, "select current_user").Scan(&me); err != nil {
		return 0, err
	}
	owner := quoted(schema + viewer)
	byHand := fmt.Sprintf("let an administrator of PostgreSQL run `create role %s; grant %s to %s`, then repeat `fairlease migrate --roles`",
		strings.Join(roleNames(schema), "; create role "), owner, quoted(me))
	for _, r := range roles {
		name := schema + r.name
		var there bool
		if err := tx.QueryRow(ctx, "select exists (select from pg_roles where rolname = $1)", name).Scan(&there); err != nil {
			return 0, err
		}
		if there {
			continue
		}
		_, err := tx.Exec(ctx, fmt.Sprintf("create role %s nologin; comment on role %[1]s is %s", quoted(name), literal(fmt.Sprintf("fairlease, schema %s: %s.", schema, r.is))))
		if denied(err) {
			return 0, fmt.Errorf("user %s may not create roles in PostgreSQL: %s", me, byHand)
		}
		if err != nil {
			return 0, fmt.Errorf("making role %s: %w", name, err)
		}
		made++
	}
	// The owner of the tables renews the views, even where an administrator makes the roles.
	rows, err := tx.Query(ctx, `
		select tableowner::text
		from pg_tables
		where schemaname = current_schema() and tablename = 'schema_version'
			and not pg_has_role(tableowner, $1, case when current_setting('server_version_num')::int >= 160000 then 'set' else 'member' end)
		union select current_user::text
		where not pg_has_role($1, case when current_setting('server_version_num')::int >= 160000 then 'set' else 'member' end)`, schema+viewer)
	if err != nil {
		return made, err
	}
	lacking, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return made, err
	}
	for _, user := range lacking {
		_, err := tx.Exec(ctx, fmt.Sprintf("grant %s to %s", owner, quoted(user)))
		if denied(err) {
			return 0, fmt.Errorf("user %s may not give views to role %s: %s", me, schema+viewer, byHand)
		}
		if err != nil {
			return 0, err
		}
	}
	return made, nil
}

// grant gives the roles their rights on what is in the schema now, the views their owner, and the tables their policies.
func grant(ctx context.Context, tx pgx.Tx, schema string) error {
	rows, err := tx.Query(ctx, `
		select relname, relkind = 'v'
		from pg_class
		where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p', 'v') and not relispartition
		order by relname`)
	if err != nil {
		return fmt.Errorf("listing the tables: %w", err)
	}
	var tables, views []string
	var name string
	var view bool
	if _, err := pgx.ForEachRow(rows, []any{&name, &view}, func() error {
		if view {
			views = append(views, name)
		} else {
			tables = append(tables, name)
		}
		return nil
	}); err != nil {
		return fmt.Errorf("listing the tables: %w", err)
	}
	in := quoted(schema)
	role := func(which string) string { return quoted(schema + which) }
	do := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); err == nil {
			if _, err = tx.Exec(ctx, text); err != nil {
				err = fmt.Errorf("giving the roles their rights (%s): %w", text, err)
			}
		}
	}
	everyone := strings.Join([]string{role(reader), role(tenant), role(operator), role(writer)}, ", ")
	do("grant usage on schema %s to %s, %s", in, everyone, role(viewer))
	do("grant create on schema %s to %s", in, role(viewer)) // the owner of a view must be able to make it
	for _, v := range views {
		do("alter view %s owner to %s", quoted(v), role(viewer))
	}
	do("revoke all on all tables in schema %s from %s", in, everyone)
	for _, t := range tables {
		sees := "false"
		if own, ok := ofTenant[t]; ok {
			sees = own
		}
		do("alter table %s enable row level security", quoted(t))
		do("drop policy if exists tenants on %s", quoted(t))
		do("create policy tenants on %s using ((select %s) or (%s))", quoted(t), unbound(schema), sees)
		do("grant select on %s to %s, %s, %s, %s", quoted(t), role(viewer), role(reader), role(operator), role(writer))
		writes, some := written[t]
		if !some {
			writes = "insert, update, delete"
		}
		if writes != "" {
			do("grant %s on %s to %s", writes, quoted(t), role(writer))
		}
		if t == "notice_choices" {
			do("grant insert, update, delete on %s to %s", t, role(operator)) // this lets the chooser write all rows
		}
		if slices.Contains(tenantTables, t) {
			do("grant select on %s to %s", quoted(t), role(tenant))
		}
	}
	for _, v := range views {
		do("grant select on %s to %s, %s, %s", quoted(v), role(reader), role(operator), role(writer))
		if slices.Contains(TenantViews, v) {
			do("grant select on %s to %s", quoted(v), role(tenant))
		}
	}
	if err != nil {
		return err
	}
	functions, err := partitioners(ctx, tx)
	for _, f := range functions {
		do("alter function %s security definer set search_path = %s, pg_temp", f, in)
		do("revoke execute on function %s from public", f)
		do("grant execute on function %s to %s", f, role(writer))
		if strings.HasPrefix(f, chooser+"(") {
			do("grant execute on function %s to %s, %s", f, role(tenant), role(operator))
		}
	}
	do("grant insert (kind, scope, name, until_at, reason, by, job_key, job_user, job_submitted_at), update (ended_at, ended_by) on overrides to %s", role(operator))
	do("grant insert (kind, file_ms, before_ms, term_ms, by, why, study) on tunings to %s", role(operator))
	return err
}

// partitioners gives the functions of asOwner that the schema has.
func partitioners(ctx context.Context, tx pgx.Tx) ([]string, error) {
	rows, err := tx.Query(ctx, "select oid::regprocedure::text from pg_proc where pronamespace = current_schema()::regnamespace and proname = any ($1)", asOwner)
	if err != nil {
		return nil, fmt.Errorf("listing the functions: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// unbound is a condition on the user that runs a query: it is no tenant, or may see all of the journal besides.
func unbound(schema string) string {
	member := func(of string) string {
		return fmt.Sprintf("coalesce(pg_has_role(current_user, to_regrole(%s), 'member'), false)", literal(quoted(schema+of)))
	}
	return fmt.Sprintf("not %s or %s or %s or %s", member(tenant), member(reader), member(operator), member(writer))
}

// roled tells whether the schema's roles were made: its views and tables must then be given to them.
func roled(ctx context.Context, tx pgx.Tx, schema string) (yes bool, err error) {
	err = tx.QueryRow(ctx, "select coalesce(has_schema_privilege(to_regrole($1), current_schema(), 'usage'), false)", quoted(schema+viewer)).Scan(&yes)
	return yes, err
}

// elsewhere says where else the roles have rights: their members read that journal, too.
func elsewhere(ctx context.Context, db *pgx.Conn, schema string, say Progress) error {
	rows, err := db.Query(ctx, `
		select distinct b.datname
		from pg_shdepend d
		join pg_database b on b.oid = d.dbid
		join pg_roles r on r.oid = d.refobjid and d.refclassid = 'pg_authid'::regclass
		where r.rolname = any ($1) and b.datname <> current_database()
		order by 1`, roleNames(schema))
	if err != nil {
		return fmt.Errorf("looking for other uses of the roles: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("looking for other uses of the roles: %w", err)
	}
	if len(names) > 0 {
		say(fmt.Sprintf("warning: these roles have rights in database %s, too, and their members use both: give each journal a schema of its own (database.schema)", strings.Join(names, ", ")))
	}
	return nil
}

func denied(err error) bool {
	var refused *pgconn.PgError
	const noRight = "42501"
	return errors.As(err, &refused) && refused.Code == noRight
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
