package migrate_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// acts gives the record of administration, oldest first.
const acts = `select coalesce(string_agg(concat_ws(' ', kind, key || ':', coalesce(regexp_replace(before, ' until .*', ''), '-'), '->', coalesce(regexp_replace(after, ' until .*', ''), '-'), 'by', by, '(' || why || ')'), E'\n' order by id), '')
	from fairlease.administration where kind <> 'schema'`

// No role changes what was recorded, not even the tables' owner; and only the daemon's role adds to it by itself.
func TestRecordIsAppendOnly(t *testing.T) {
	dsn, db := roled(t)
	add := "insert into administration (kind, key, before, after, by, why) values ('setting', 'mode', 'observe', 'act', 'root', 'start')"
	execute(t, db, add)
	for role, may := range map[string]struct{ read, add bool }{"tenant": {}, "reader": {read: true}, "operator": {read: true}, "daemon": {true, true}} {
		user := as(t, dsn, db, role)
		_, err := user.Exec(t.Context(), add)
		if may.add != (err == nil) || err != nil && !refused(err) {
			t.Errorf("%s adds: %v", role, err)
		}
		_, err = user.Exec(t.Context(), "select from administration")
		if may.read != (err == nil) || err != nil && !refused(err) {
			t.Errorf("%s reads: %v", role, err)
		}
		for _, x := range []string{"update administration set by = 'x'", "delete from administration", "truncate administration", "drop trigger append_only on administration",
			"alter table administration disable trigger all", "set session_replication_role = replica", "select setval(pg_get_serial_sequence('administration', 'id'), 1)",
			"insert into administration (kind, key, after, by, why, database_user) values ('setting', 'a', 'b', 'c', 'd', 'root')", "insert into administration (kind, key, after, by, why, at) values ('setting', 'a', 'b', 'c', 'd', '2000-01-01')"} {
			if _, err := user.Exec(t.Context(), x); err == nil || !refused(err) && !strings.Contains(err.Error(), "append-only") {
				t.Errorf("%s: %s: %v", role, x, err)
			}
		}
	}
	n := number(t, db, "select count(*) from administration")
	for _, x := range []string{"update administration set by = 'x'", "update administration set by = 'x' where false", "delete from administration", "truncate administration"} {
		if _, err := db.Exec(t.Context(), x); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("its owner: %s: %v", x, err)
		}
	}
	if now := number(t, db, "select count(*) from administration"); now != n {
		t.Errorf("%d rows, and %d before", now, n)
	}
}

// Overrides, terms, repairs and migrations are recorded whoever writes them, with the database user; from any search path.
func TestActsAreRecorded(t *testing.T) {
	dsn, db := roled(t)
	want := "schema fairlease - 1 fairlease migrate"
	for v := int64(1); v < migrate.Latest(); v++ {
		want += fmt.Sprintf(", schema fairlease %d %d fairlease migrate", v, v+1)
	}
	if got := text(t, db, "select string_agg(concat_ws(' ', kind, key, coalesce(before, '-'), after, why), ', ' order by id) from fairlease.administration where kind = 'schema'"); got != want {
		t.Errorf("the migration: %q", got)
	}
	before := number(t, db, "select count(*) from fairlease.administration")
	ann := as(t, dsn, db, "operator")
	execute(t, ann, "set search_path = pg_temp")
	execute(t, ann, "insert into fairlease.overrides (kind, scope, name, until_at, reason, by) values ('boost', 'tenant', 'bio', now() + interval '1 day', 'deadline', 'somebody')")
	id := number(t, db, "select max(id) from fairlease.overrides")
	if _, err := ann.Exec(t.Context(), "update fairlease.overrides set ended_at = now(), ended_by = 'ann' where id = $1", id); err != nil {
		t.Fatal(err)
	}
	execute(t, ann, "insert into fairlease.tunings (kind, file_ms, before_ms, term_ms, by, why) values ('kept', 1000, 1000, 1000, 'x', 'r'), ('taken', 900000, 900000, 1200000, 'ann', 'r')")
	execute(t, db, "insert into fairlease.repairs (kind, found, done, reason, by) values ('clock', 'round 7', 'round 6', 'r', 'root')")
	execute(t, db, "delete from fairlease.overrides where name = 'eve' or name = '777'")
	got := text(t, db, strings.Replace(acts, "where", "where id > "+strconv.Itoa(before)+" and", 1))
	want = `override tenant bio: - -> boost by somebody (deadline)
override tenant bio: boost -> - by ann (ended before its time)
term lease.term: 00:15:00 -> 00:20:00 by ann (taken: r)
repair clock: round 7 -> round 6 by root (r)
override user eve: freeze -> - by postgres (ended before its time)
override job 777: freeze -> - by postgres (ended before its time)`
	me := text(t, db, "select session_user::text")
	if want = strings.ReplaceAll(want, "postgres", me); got != want {
		t.Errorf("recorded:\n%s\nwant:\n%s", got, want)
	}
	if user := text(t, db, "select string_agg(distinct database_user, ',') from fairlease.administration where by in ('somebody', 'ann') and id > "+strconv.Itoa(before)); !strings.HasPrefix(user, "ann") {
		t.Errorf("the database user is %q", user)
	}
}

// The author of a migration is the one that the program names.
func TestMigrationHasAnAuthor(t *testing.T) {
	dsn := storetest.Empty(t)
	if _, _, err := migrate.UpBy(t.Context(), dsn, migrate.Schema, `root (SUDO_USER "ann")`, quiet); err != nil {
		t.Fatal(err)
	}
	if by := text(t, storetest.Connect(t, dsn), "select distinct by from fairlease.administration where kind = 'schema'"); by != `root (SUDO_USER "ann")` {
		t.Errorf("by %q", by)
	}
}
