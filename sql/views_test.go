package sql_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	"github.com/fairlease/fairlease/sql"
)

func TestViews(t *testing.T) {
	for _, view := range views {
		t.Run(view.name, func(t *testing.T) {
			t.Parallel()
			db := storetest.Connect(t, storetest.Database(t))
			const clock = "create or replace function fairlease.passed(moment timestamptz) returns boolean language sql stable return coalesce(moment < '2026-03-02 00:20+00', false)"
			for _, text := range []string{"set timezone = 'UTC'", clock, view.given} {
				if _, err := db.Exec(t.Context(), text); err != nil {
					t.Fatal(err)
				}
			}
			got := lines(t, db, "select "+view.columns+" from fairlease."+view.name)
			if diff := cmp.Diff(view.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// No view tells a moment that has passed as one to come, or how far behind a claimant is that is due nothing.
func TestMomentsThatHavePassed(t *testing.T) {
	for _, view := range views {
		if view.name != "waiting_jobs" && view.name != "bound_gpus" {
			continue
		}
		db := storetest.Connect(t, storetest.Database(t))
		for _, text := range []string{"set timezone = 'UTC'", view.given, "update fairlease.job_statuses set behind_ms = -4611686018427387904 where code = 'threshold'"} {
			if _, err := db.Exec(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		asked := "count(until_at)"
		if view.name == "waiting_jobs" {
			asked += ", count(gate_until), count(*) filter (where reason ~ '(at|until|by) 20' or forecast ~ '(about|after|between) 20' or behind < '-1 year'), count(*) filter (where behind is null)"
		}
		got := lines(t, db, "select "+asked+" from fairlease."+view.name)
		if want := map[string]string{"waiting_jobs": "0|0|0|1", "bound_gpus": "0"}[view.name]; got[0] != want {
			t.Errorf("%s: %s", view.name, got[0])
		}
	}
}

// lines gives a query's rows as text, columns parted by |, null as nothing.
func lines(t *testing.T, db *pgx.Conn, query string) []string {
	t.Helper()
	results, err := db.PgConn().Exec(t.Context(), query).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, row := range results[0].Rows {
		var columns []string
		for _, column := range row {
			columns = append(columns, string(column))
		}
		all = append(all, strings.Join(columns, "|"))
	}
	return all
}

// TestEveryViewIsTested finds views, and columns of views, that no case asks for.
func TestEveryViewIsTested(t *testing.T) {
	db := storetest.Connect(t, storetest.Database(t))
	asked := map[string]string{}
	for _, view := range views {
		asked[view.name] = view.columns
	}
	for _, column := range lines(t, db, `select table_name || '.' || column_name from information_schema.columns
		where table_schema = 'fairlease' and table_name in (select viewname from pg_views where schemaname = 'fairlease')`) {
		view, name, _ := strings.Cut(column, ".")
		words := strings.FieldsFunc(asked[view], func(r rune) bool { return r == ',' || r == ' ' })
		if !slices.Contains(words, name) {
			t.Errorf("no test asks for %s", column)
		}
	}
}

// Texts of views write lengths of time as all others do.
func TestSpansInWords(t *testing.T) {
	db := storetest.Connect(t, storetest.Database(t))
	for _, s := range []cluster.Span{0, 999, 19_000, 60_000, 71_999, 299_999, 300_000, 3_599_999, 3_600_000, 4_859_000, 86_399_999, 86_400_000, 86_400_000 + 3_599_000, 274_000_000} {
		var got string
		if err := db.QueryRow(t.Context(), "select fairlease.in_words($1)", int64(s)).Scan(&got); err != nil || got != s.String() {
			t.Errorf("%d ms: %s, %v; want %s", s, got, err, s)
		}
	}
}

// TestReasonsInWords gives every reason that a waiting job may have and looks for words that are more than its code.
func TestReasonsInWords(t *testing.T) {
	db := storetest.Connect(t, storetest.Database(t))
	want := map[string]string{
		"behind":     "its turn has not come; its own tenant is even; the next lease that could serve it ends at a time not known yet",
		"shape":      "wants 4 GPUs (any model) where they fit together; 0 are free, but not so",
		"claim":      "4 GPUs (any model) are kept for it at a time not known yet",
		"claimed":    "what is free (0 GPUs) is kept for job of another tenant; the next lease that could serve it ends at a time not known yet",
		"cells":      "its tenant has no free cell of type rack (chain rack-v100) for its 4 GPUs; what there is others have",
		"lost":       "its tenant lost cells of type rack (chain rack-v100) to bad hardware (n3 is down), and has no other free for its 4 GPUs",
		"unsafe":     "promises to virtual clusters do not add up, nothing is granted until they do: rack",
		"burst":      "its tenant holds the most that it may while others wait; it is 2 s ahead of its due",
		"limit":      "its turn, but the limit of reclaims a round is reached: next round",
		"stops":      "its turn, but as many GPUs were taken from running jobs within the hour as may be (stop.per_hour); more may be at a time not known yet",
		"threshold":  "its tenant is 1 min behind its due, not far enough behind the others to end a running lease",
		"inactive":   "could not start even on an empty cluster: dependency",
		"failed":     "was granted GPUs, but Slurm did not start it (Resources); tried again at a time not known yet",
		"refused":    "Slurm does not start jobs of its kind (AssocGrpGRES); an administrator can change it (sacctmgr); the last one tried was job of another user; one is tried again when GPUs for it are idle",
		"reserved":   "its time limit overlaps a reservation on all nodes where it could run: maint; an administrator can change it (scontrol update reservation), and its owner can shorten the time limit (scontrol update job)",
		"unstarted":  "grants of its user or tenant have not started yet, and hold as many GPUs as they may",
		"idle_only":  "waits for 4 idle GPUs (any model): it asked for no others",
		"spent":      "waits for 4 idle GPUs (any model): its tenant's budget is used up, and the next period begins at a time not known yet",
		"frozen":     "frozen by an administrator: runaway",
		"too_big":    "wants 4 GPUs (any model); no healthy nodes could ever hold it",
		"rule":       "Slurm's rules do not let it start: partition gpu has MaxTime=01:00:00",
		"untouched":  "not ours to lease: interactive",
		"completing": "its last attempt still cleans up",
		"starting":   "granted; Slurm is starting it, at the latest by a time not known yet",
		"follows":    "granted behind job of its tenant on n1: it starts when that ends",
		"granted":    "granted in the last round",
		"unheard_of": "unheard_of: note",
	}
	set := map[string]string{"inactive": "inactive = 'dependency'", "failed": "said = 'Resources'", "untouched": "control_why = 'interactive'"}
	note := map[string]string{"cells": "cell = 'rack', chain = 'rack-v100'", "lost": "cell = 'rack', chain = 'rack-v100', note = 'n3 is down'", "unsafe": "note = 'rack'", "burst": "behind_ms = -2999", "threshold": "behind_ms = 60000", "frozen": "note = 'runaway'", "refused": "note = 'AssocGrpGRES'", "reserved": "note = 'maint'", "rule": "note = 'partition gpu has MaxTime=01:00:00'", "unheard_of": "note = 'note'", "follows": "note = 'n1'"}
	if _, err := db.Exec(t.Context(), "insert into fairlease.violations (what, since) values ('rack', now())"); err != nil {
		t.Fatal(err)
	}
	key := 0
	for code := range want {
		key++
		text := job(key, fmt.Sprint(100+key), "bio", "ann", "waiting", set[code]) + status(key, code, note[code])
		if _, err := db.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	for _, line := range lines(t, db, "select code, reason from fairlease.waiting_jobs") {
		code, reason, _ := strings.Cut(line, "|")
		got[code] = reason
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A job that fits nowhere is told which of its required nodes Slurm does not have.
func TestRequiredNodesInWords(t *testing.T) {
	db := storetest.Connect(t, storetest.Database(t))
	if _, err := db.Exec(t.Context(), job(1, "101", "bio", "ann", "waiting", "")+status(1, "too_big", "note = 'n7, n8'")); err != nil {
		t.Fatal(err)
	}
	want := []string{"cannot start: its list of required nodes has n7, n8, and Slurm has no node with GPUs of that name"}
	if diff := cmp.Diff(want, lines(t, db, "select reason from fairlease.waiting_jobs")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A failed start whose job was requeued at its start has words of its own, since Slurm has no such reason.
func TestRequeuedAtStartInWords(t *testing.T) {
	db := storetest.Connect(t, storetest.Database(t))
	for key, code := range []string{"failed", "refused"} {
		text := job(key+1, fmt.Sprint(101+key), "bio", "ann", "waiting", "") + status(key+1, code, "note = '"+cluster.RequeuedAtStart+"'")
		if _, err := db.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"failed|was requeued right after its start, not by fairlease; it is tried again at a time not known yet",
		"refused|jobs of its kind were requeued right after their start, not by fairlease; the last one tried was job of another user; one is tried again when GPUs for it are idle",
	}
	if diff := cmp.Diff(want, lines(t, db, "select code, reason from fairlease.waiting_jobs order by code")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestViewsAreMadeInOrder is what the numbers in the files' names are for.
func TestViewsAreMadeInOrder(t *testing.T) {
	var names []string
	for _, view := range sql.Views() {
		names = append(names, view.File)
	}
	if !slices.IsSorted(names) || len(names) == 0 {
		t.Errorf("they are %q", names)
	}
}
