package store

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// watched is a journal that shows what is committed.
type watched struct {
	loop.Journal
	see func(cluster.Snapshot, cluster.Plan)
}

func (w *watched) Commit(ctx context.Context, snap cluster.Snapshot, plan cluster.Plan) error {
	w.see(snap, plan)
	return w.Journal.Commit(ctx, snap, plan)
}

// The rows of a round are the same whether or not the loop knows which jobs are as they were. Tables that take few rows a round are behind.
func TestUnchangedJobsAreNotWrittenAgain(t *testing.T) {
	for _, most := range []int{mostJobs, 5} {
		known, unknown := newWritten(5*cluster.Minute), newWritten(5*cluster.Minute)
		for _, w := range []*written{known, unknown} {
			w.jobs.most, w.statuses.most = most, most
		}
		rounds, jobs, statuses, next := 0, 0, 0, int64(0)
		site, err := (simtest.Site{Nodes: 20, Jobs: 300, Tenants: 4, Gangs: 5}).Open()
		if err != nil {
			t.Fatal(err)
		}
		site.Loop.Journal = &watched{site.Loop.Journal, func(snap cluster.Snapshot, plan cluster.Plan) {
			for i := range snap.Cases {
				if next > 0 && snap.Round != next {
					snap.Cases[i].Was = 0
				}
			}
			rounds, next = rounds+1, snap.Round+1
			jobs, statuses = jobs+checkSame(t, known.jobRows(&snap, &plan), known.jobs), statuses+checkSame(t, known.statusRows(&snap, &plan), known.statuses)
			entry := known.entry(snap, plan, cluster.Minute)
			snap.Cases = slices.Clone(snap.Cases)
			for i := range snap.Cases {
				snap.Cases[i].Was = 0
			}
			if d := cmp.Diff(rowsByTable(t, unknown.entry(snap, plan, cluster.Minute)), rowsByTable(t, entry)); d != "" {
				t.Fatalf("round %d, %d rows at most: rows are (-if nothing is known, +if it is):\n%s", snap.Round, most, d)
			}
			known.keep(entry, plan.State)
			unknown.keep(unknown.entry(snap, plan, cluster.Minute), plan.State)
		}}
		if most < mostJobs { // gates are begin times
			site.License = 0
		}
		for k := range 250 {
			if _, err := site.Turn(k % 7 * 6); err != nil {
				t.Fatal(err)
			}
		}
		if rounds < 60 || jobs < 100*rounds || statuses < 10*rounds {
			t.Errorf("%d rounds; %d jobs and %d statuses are known to be as before", rounds, jobs, statuses)
		}
	}
}

// checkSame checks that rows which are said to be as they were are, and counts them.
func checkSame[R comparable](t *testing.T, rows source[cluster.JobKey, R], of *table[cluster.JobKey, R]) (n int) {
	t.Helper()
	for i := range rows.n {
		was := of.rows[rows.key(i)]
		if was == nil || !rows.same(i, was) {
			continue
		}
		if n++; !of.same(*was, rows.row(i)) {
			t.Fatalf("a row is said to be unchanged, and was\n%+v\nand is\n%+v", *was, rows.row(i))
		}
	}
	return n
}

// rowsByTable gives the rows of an entry by their query, in order of their text.
func rowsByTable(t *testing.T, e entry) map[string][]string {
	t.Helper()
	texts, err := e.texts()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, x := range texts {
		var rows []json.RawMessage
		if err := json.Unmarshal(x.text, &rows); err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			out[x.query] = append(out[x.query], string(row))
		}
	}
	for _, rows := range out {
		slices.Sort(rows)
	}
	return out
}
