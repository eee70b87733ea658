package sql_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sql"
)

// Query writes the names that files leave out.
func TestQuery(t *testing.T) {
	for _, c := range []struct {
		name, columns, want string
	}{
		{"put_settings", "settings", `insert into settings ( settings ) select settings from json_populate_recordset(null::settings, $1)
			on conflict (single) do update set settings = excluded.settings, recorded_at = clock_timestamp();`},
		{"put_entitlements", "tenant pool at speed holds_gpus", `insert into entitlements as had ( tenant, pool, at, speed, holds_gpus )
			select tenant, pool, at, speed, holds_gpus from json_populate_recordset(null::entitlements, $1)
			on conflict (tenant, pool) do update set at = excluded.at, speed = excluded.speed, holds_gpus = excluded.holds_gpus
			where (had.speed, had.holds_gpus) is distinct from (excluded.speed, excluded.holds_gpus);`},
		{"debts", "pool gpu_ms", "select pool, gpu_ms from debts;"},
		{"prune_jobs", "", `delete from jobs where ctid = any (array(
			select ctid from jobs where done_at < now() - $1::interval limit 10000 ));`},
	} {
		got := sql.Query(c.name, strings.Fields(c.columns)...)
		if diff := cmp.Diff(strings.Fields(c.want), strings.Fields(got)); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", c.name, diff)
		}
	}
	if got := sql.Query("standings_of", "pool", "millionths(rho) as rho"); !strings.Contains(got, "millionths(rho) as rho\n") {
		t.Errorf("an expression is left out:\n%s", got)
	}
}

func TestQueryThatIsNot(t *testing.T) {
	for name, why := range map[string]string{"no such query": "there is none", "put_jobs": "it has no columns", "put_bound_cells": "it has no column since to leave out"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("query %q was given, though %s", name, why)
				}
			}()
			sql.Query(name)
		}()
	}
}
