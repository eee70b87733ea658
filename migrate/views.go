package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fairlease/fairlease/sql"
)

// errUnchanged takes back a transaction that would change nothing.
var errUnchanged = errors.New("nothing changed")

// refresh brings the views and functions up to date in one transaction, and tells how many changed; where none did it
// writes nothing. A view is replaced in place, or, where its columns do not allow that, all views are made anew: they
// keep their owners and grants in both cases.
func refresh(ctx context.Context, db *pgx.Conn, schema string) (changed int, err error) {
	err = step(ctx, db, func(ctx context.Context, tx pgx.Tx) error {
		was, err := definitions(ctx, tx)
		if err != nil {
			return err
		}
		err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return createViews(ctx, tx) })
		var refused *pgconn.PgError
		const otherColumns = "42P16"
		if errors.As(err, &refused) && refused.Code == otherColumns {
			for _, work := range []func(context.Context, pgx.Tx) error{keepRights, dropViews, createViews} {
				if err := work(ctx, tx); err != nil {
					return err
				}
			}
		} else if err != nil {
			return err
		}
		if err := errors.Join(dropStale(ctx, tx), giveRights(ctx, tx)); err != nil {
			return err
		}
		is, err := definitions(ctx, tx)
		if err != nil {
			return err
		}
		for name, text := range is {
			if was[name] != text {
				changed++
			}
			delete(was, name)
		}
		if changed += len(was); changed == 0 {
			return errUnchanged
		}
		if yes, err := roled(ctx, tx, schema); err != nil || !yes {
			return err
		}
		return grant(ctx, tx, schema)
	})
	if errors.Is(err, errUnchanged) {
		err = nil
	}
	return changed, err
}

// definitions gives all that makes each view and function of the schema, by its name, and the grants that are kept for
// views to come.
func definitions(ctx context.Context, tx pgx.Tx) (map[string]string, error) {
	rows, err := tx.Query(ctx, `
		select 'view ' || c.relname, concat_ws(E'\n', c.relowner, c.reloptions, pg_get_viewdef(c.oid), obj_description(c.oid, 'pg_class'),
			(select string_agg(concat_ws(' ', a.attname, col_description(c.oid, a.attnum)), E'\n' order by a.attnum)
			from pg_attribute a where a.attrelid = c.oid and a.attnum > 0))
		from pg_class c
		where c.relnamespace = current_schema()::regnamespace and c.relkind = 'v'
		union all
		select 'function ' || p.oid::regprocedure, concat_ws(E'\n', pg_get_functiondef(p.oid), obj_description(p.oid, 'pg_proc'))
		from pg_proc p
		where p.pronamespace = current_schema()::regnamespace and p.prokind = 'f'
		union all
		select 'kept grants', '' where to_regclass('kept_grants') is not null`)
	if err != nil {
		return nil, fmt.Errorf("reading the views: %w", err)
	}
	out := map[string]string{}
	var name, text string
	if _, err = pgx.ForEachRow(rows, []any{&name, &text}, func() error { out[name] = text; return nil }); err != nil {
		return nil, fmt.Errorf("reading the views: %w", err)
	}
	return out, nil
}

// viewNames gives the views of the schema, those of older versions too, as SQL writes them.
func viewNames(ctx context.Context, tx pgx.Tx) ([]string, error) {
	rows, err := tx.Query(ctx, "select quote_ident(viewname) from pg_views where schemaname = current_schema()")
	if err != nil {
		return nil, fmt.Errorf("listing the views: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("listing the views: %w", err)
	}
	return names, nil
}

// dropViews drops all views of the schema.
func dropViews(ctx context.Context, tx pgx.Tx) error {
	names, err := viewNames(ctx, tx)
	if err != nil {
		return err
	}
	return drop(ctx, tx, names)
}

// dropStale drops the views that older versions had.
func dropStale(ctx context.Context, tx pgx.Tx) error {
	names, err := viewNames(ctx, tx)
	if err != nil {
		return err
	}
	ours := map[string]bool{}
	for _, name := range sql.ViewNames() {
		ours[name] = true
	}
	var stale []string
	for _, name := range names {
		if !ours[name] {
			stale = append(stale, name)
		}
	}
	return drop(ctx, tx, stale)
}

// drop drops views in one statement, so that their order does not matter. It never drops what others built on them.
func drop(ctx context.Context, tx pgx.Tx, names []string) error {
	if len(names) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, "drop view "+strings.Join(names, ", "))
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Detail != "" {
		return fmt.Errorf("dropping the old views: %w: %s: drop it first, and make it again afterwards", err, refused.Detail)
	}
	if err != nil {
		return fmt.Errorf("dropping the old views: %w", err)
	}
	return nil
}

func createViews(ctx context.Context, tx pgx.Tx) error {
	for _, view := range sql.Views() {
		if _, err := tx.Exec(ctx, view.Text); err != nil {
			return fmt.Errorf("making the view of %s: %w", view.File, err)
		}
	}
	return nil
}

// keepRights notes the grants on all views, and their owners, in a table that lasts until giveRights: migrations run
// between the two, and may fail.
func keepRights(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `
		create table if not exists kept_grants (view text not null, rank integer not null, grantee text not null, command text not null);
		insert into kept_grants
		select c.relname, 0, case when acl.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(acl.grantee)) end,
			format('grant %s%s on %I to %s%s', acl.privilege_type, acl.columns, c.relname,
				case when acl.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(acl.grantee)) end,
				case when acl.is_grantable then ' with grant option' else '' end)
		from pg_class c
		cross join lateral (
			select x.grantee, x.privilege_type, x.is_grantable, '' as columns from aclexplode(c.relacl) x
			union all
			select x.grantee, x.privilege_type, x.is_grantable, format(' (%I)', a.attname)
			from pg_attribute a cross join lateral aclexplode(a.attacl) x
			where a.attrelid = c.oid and a.attnum > 0
		) acl
		where c.relnamespace = current_schema()::regnamespace and c.relkind = 'v' and acl.grantee <> c.relowner
		union all
		select c.relname, 1, quote_ident(pg_get_userbyid(c.relowner)), format('alter view %I owner to %I', c.relname, pg_get_userbyid(c.relowner))
		from pg_class c
		where c.relnamespace = current_schema()::regnamespace and c.relkind = 'v' and pg_get_userbyid(c.relowner) <> current_user`)
	if err != nil {
		return fmt.Errorf("noting the grants on the views: %w", err)
	}
	return nil
}

// giveRights gives the views the grants and owners that keepRights noted, if it did. Views and roles that are not there
// any more are passed over.
func giveRights(ctx context.Context, tx pgx.Tx) error {
	var kept bool
	if err := tx.QueryRow(ctx, "select to_regclass('kept_grants') is not null").Scan(&kept); err != nil || !kept {
		return err
	}
	rows, err := tx.Query(ctx, `
		select command from kept_grants
		where to_regclass(quote_ident(view)) is not null and (grantee = 'public' or to_regrole(grantee) is not null)
		order by rank, command`)
	if err != nil {
		return fmt.Errorf("reading the grants on the views: %w", err)
	}
	commands, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("reading the grants on the views: %w", err)
	}
	for _, command := range append(commands, "drop table kept_grants") {
		if _, err := tx.Exec(ctx, command); err != nil {
			return fmt.Errorf("giving the views their grants again (%s): %w", command, err)
		}
	}
	return nil
}
