package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
)

// explaining measures `fairlease explain JOB`, the program from its start to its end, on a journal with 50,000 waiting jobs and
// 1,250 nodes, of jobs that run and of jobs that wait; and, to compare, as it reads the whole round.
func explaining(ctx context.Context, dsn string) error {
	const schema, waiting, each = "explaining", 50_000, 21
	st, lead, err := leading(ctx, dsn, schema)
	if err != nil {
		return err
	}
	defer st.Close()
	j := lead.Journal()
	if _, err := j.Open(ctx); err != nil {
		return err
	}
	story := journaltest.NewStory(1, 1250, waiting)
	var plan cluster.Plan
	for range 4 {
		var snap cluster.Snapshot
		if snap, plan = story.Next(); err == nil {
			err = j.Commit(ctx, snap, plan)
		}
	}
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fairlease-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, file := filepath.Join(dir, "fairlease"), filepath.Join(dir, "fairlease.yaml")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./sidecar/cmd/fairlease").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, "database: {url: %q, schema: %s}\n", dsn, schema), 0o600); err != nil {
		return err
	}
	explain := func(id cluster.JobID) (time.Duration, error) {
		begin := time.Now()
		out, err := exec.CommandContext(ctx, program, "-c", file, "explain", id.String()).CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("fairlease explain %s: %w: %s", id, err, out)
		}
		return time.Since(begin), nil
	}
	runs := map[cluster.JobKey]bool{}
	for i := range plan.State.Leases {
		runs[plan.State.Leases[i].Job] = true
	}
	worst := time.Duration(0)
	for _, running := range []bool{true, false} {
		var took []time.Duration
		for i := range plan.State.Records {
			r := &plan.State.Records[i]
			if runs[r.Key] != running || r.Done != 0 || r.Key%97 != 0 || len(took) == each {
				continue
			}
			t, err := explain(r.ID)
			if err != nil {
				return err
			}
			took = append(took, t)
		}
		slices.Sort(took)
		fmt.Printf("fairlease explain, %d jobs waiting, jobs that run %t: median %s, worst %s of %d\n", waiting, running, took[len(took)/2], took[len(took)-1], len(took))
		worst = max(worst, took[len(took)/2])
	}
	figure("explain_50k_ms", worst.Seconds()*1e3, "ms")
	// A journal that an older daemon wrote has no settings: there the whole round is read.
	db, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close(ctx) }()
	if _, err := db.Exec(ctx, "delete from "+pgx.Identifier{schema, "settings"}.Sanitize()); err != nil {
		return err
	}
	whole, err := explain(plan.State.Records[0].ID) // the first jobs of a crowd are written first
	fmt.Printf("the same with the whole round read: %s\n", whole)
	return err
}
