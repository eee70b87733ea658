package store_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// The rows of one job give the same as the whole round: jobs wait, run, are stopped, and have
// claims.
func TestAJobsRowsTellWhatTheRoundTells(t *testing.T) {
	t.Parallel()
	s := openStore(t, store.Config{DSN: storetest.Database(t), Refresh: time.Millisecond}) // all numbers are the newest round's
	set := simtest.Product()
	w := simtest.New(t, set, simtest.Nodes("v", "v100", 2, 4), "bio", "nlp")
	w.Loop.Journal = takeLead(t, s).Journal()
	w.Submit("nlp", 6, 1, 3*cluster.Hour)
	w.Submit("bio", 3, 4, 3*cluster.Hour)
	w.Virtual.Submit(sim.Work{Name: "shell", User: "bio_user", Account: "bio", Partition: "gpu", Request: simtest.Gang(1), Runs: cluster.Hour, Interactive: true})
	seen := map[string]int{}
	turns := seeds.Some(10, 30)
	for range turns {
		w.Run(90 * cluster.Minute / cluster.Span(turns))
		snap, plan, err := s.Rounds.Last(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		says := map[cluster.JobKey]string{}
		for i := range snap.Cases {
			says[snap.Cases[i].Record.Key] = snap.Cases[i].Job.PendingReason
		}
		for _, v := range plan.Statuses {
			x, err := s.Jobs.ExplainKey(t.Context(), v.Job)
			if err != nil {
				t.Fatal(err)
			}
			whole := store.Explanation{Status: &v}
			for i := range plan.State.Leases {
				if l := &plan.State.Leases[i]; l.Job == v.Job {
					whole.Lease = l
				}
			}
			for i := range plan.State.Claims {
				if c := &plan.State.Claims[i]; c.Job == v.Job {
					whole.Claim = c
				}
			}
			for _, st := range plan.Tenants {
				if st.Tenant == x.Job.Tenant {
					whole.Standing = append(whole.Standing, st)
				}
			}
			got := store.Explanation{Status: x.Status, Lease: x.Lease, Claim: x.Claim, Standing: x.Standing}
			if diff := cmp.Diff(whole, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("round %d, job %s (-whole +rows):\n%s", plan.Round, x.Job.SlurmID, diff)
			}
			if x.Round != plan.Round || x.At != plan.At || x.NumbersAt != plan.At || x.SlurmSays != says[v.Job] {
				t.Fatalf("job %s is explained as of round %d, %s, its numbers as of %s; Slurm says %q", x.Job.SlurmID, x.Round, x.At, x.NumbersAt, x.SlurmSays)
			}
			want, may := engine.StopOf(&snap, &plan, v.Job)
			stop, can := engine.StopOf(&x.Newest.Snapshot, &x.Newest.Plan, v.Job)
			if diff := cmp.Diff(want, stop); diff != "" || may != can {
				t.Fatalf("round %d, job %s, when it may be stopped (-whole +rows):\n%s", plan.Round, x.Job.SlurmID, diff)
			}
			if of := v.Reason.For; of != 0 && x.For == "" {
				t.Fatalf("round %d: job %s waits for job %d, which has no name", plan.Round, x.Job.SlurmID, of)
			}
			for what, is := range map[string]bool{"waiting": whole.Lease == nil, "lease": whole.Lease != nil, "claim": whole.Claim != nil, "stop": may,
				"stopped": x.Record.Stops > 0, "named": x.For != ""} {
				if is {
					seen[what]++
				}
			}
		}
	}
	for _, what := range []string{"waiting", "lease", "stop", "stopped", "named"} {
		if seen[what] == 0 {
			t.Errorf("no job was %s: %v", what, seen)
		}
	}
	t.Logf("%v", seen)
}

// Explaining a job reads no round: it works when the newest one is unreadable. A journal of an
// older version has no settings; there the round is read.
func TestAJobIsExplainedWithoutItsRound(t *testing.T) {
	t.Parallel()
	l := newLife(t, store.Config{}, journaltest.NewStory(1, 2, 5))
	_, plan := l.round()
	key := plan.State.Leases[0].Job
	do := func(sql string) {
		t.Helper()
		if _, err := l.db.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	want, err := l.store.Jobs.ExplainKey(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	do("update fairlease.round_blobs set plan = 'x'")
	got, err := l.store.Jobs.ExplainKey(t.Context(), key)
	if diff := cmp.Diff(toJSON(t, want), toJSON(t, got)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	do("delete from fairlease.settings")
	if _, err := l.store.Jobs.ExplainKey(t.Context(), key); err == nil {
		t.Error("without settings the round is read, and it cannot be read here")
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
