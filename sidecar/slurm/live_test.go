package slurm_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/slurm"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// TestLive runs against the oldest and the newest supported Slurm.
func TestLive(t *testing.T) {
	for _, suite := range testcluster.Suites {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			l := boot(t, suite)
			for _, part := range []struct {
				name string
				test func(*live)
			}{
				{"facts", facts},
				{"requests", requests},
				{"versions of the API", versions},
				{"the cluster", theCluster},
				{"states of jobs", states},
				{"gates", gates},
				{"grants", grants},
				{"arrays", arrays},
				{"reclaims", reclaims},
				{"hand-over", handOver},
				{"notices", notices},
				{"suspended jobs", suspended},
				{"shards", shards},
				{"whole nodes of a user", wholeNodes},
				{"state polls", statePolls},
				{"limits", limits},
				{"history", history},
				{"a slurmrestd that looks at no token", trusting},
				{"faults", faults},
				{"races", races}, // last: a client that sees its jobs only when they have ended cannot know what they asked for
			} {
				t.Run(part.name, func(t *testing.T) {
					sub := &live{T: t, suite: suite, slurm: l.slurm, client: l.client}
					t.Cleanup(func() { sub.clear() })
					part.test(sub)
				})
			}
		})
	}
}

// live is a real Slurm and our client for it.
type live struct {
	*testing.T
	suite  string
	slurm  *testcluster.Cluster
	client *slurm.Client
}

func boot(t *testing.T, suite string) *live {
	c := testcluster.ForTest(t, testcluster.Options{Suite: suite, QOS: []testcluster.QOS{{Name: "small"}}})
	l := &live{T: t, suite: suite, slurm: c}
	l.exec("root", "sacctmgr", "--immediate", "modify", "qos", "small", "set", "GrpTRES=gres/gpu=1")
	l.client = l.another(func(*slurm.Config) {})
	return l
}

// another gives one more client.
func (l *live) another(change func(*slurm.Config)) *slurm.Client {
	l.Helper()
	cfg := slurm.Config{Address: "unix://" + l.slurm.RestSocket(), Scontrol: l.slurm.Scontrol(), SiteFactor: 1_000_000}
	change(&cfg)
	client, err := slurm.New(cfg)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(client.Close)
	return client
}

const sleeper = "#!/bin/bash\nexec sleep 900\n"

// submit gives the id of a new job.
func (l *live) submit(user, script string, args ...string) int64 {
	l.Helper()
	out, err := l.slurm.Sbatch(l.Context(), user, script, args...)
	if err != nil {
		l.Fatal(err)
	}
	id, err := strconv.ParseInt(out, 10, 64)
	if err != nil {
		l.Fatalf("sbatch said %q", out)
	}
	return id
}

func (l *live) exec(user string, argv ...string) string {
	l.Helper()
	out, err := l.slurm.Exec(l.Context(), user, argv...)
	if err != nil {
		l.Fatal(err)
	}
	return out
}

func (l *live) see() cluster.Observation {
	l.Helper()
	s, err := l.client.Observe(l.Context(), 0)
	if err != nil {
		l.Fatal(err)
	}
	if n := l.client.Notes(); len(n) > 0 {
		l.Errorf("notes: %q", n)
	}
	return s
}

func find(s cluster.Observation, id cluster.JobID) (cluster.Job, bool) {
	i, ok := slices.BinarySearchFunc(s.Jobs, id, func(j cluster.Job, id cluster.JobID) int { return j.ID.Compare(id) })
	if !ok {
		return cluster.Job{}, false
	}
	return s.Jobs[i], true
}

// until looks until the job is as wanted, and gives it.
func (l *live) until(id cluster.JobID, what string, is func(cluster.Job) bool) cluster.Job {
	l.Helper()
	var last cluster.Job
	l.eventually(fmt.Sprintf("job %v %s", id, what), func() bool {
		var there bool
		last, there = find(l.see(), id)
		return there && is(last)
	}, func() string { return fmt.Sprintf("%+v", last) })
	return last
}

// runs waits until the job has run for a while: Slurm loses track of a job that is requeued and
// started again within the second of its first start.
func (l *live) runs(id cluster.JobID) cluster.Job {
	l.Helper()
	return l.until(id, "running for two seconds", func(j cluster.Job) bool {
		return j.State == cluster.Running && time.Since(j.Start.Time()) > 2*time.Second
	})
}

// patience is the timeout on a busy machine; on an idle one nothing takes 5 s.
const patience = time.Minute

func (l *live) eventually(what string, is func() bool, seen func() string) {
	l.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			l.Fatalf("not in %v: %s; last seen: %s", patience, what, seen())
		}
	}
}

func in(s cluster.JobState) func(cluster.Job) bool {
	return func(j cluster.Job) bool { return j.State == s }
}

// apply carries out the actions. All must succeed.
func (l *live) apply(actions ...cluster.Action) []cluster.Outcome {
	l.Helper()
	outcomes := l.client.Apply(l.Context(), actions)
	for i, o := range outcomes {
		if !o.OK {
			l.Fatalf("%s %v: %+v", actions[i].Verb, actions[i].ID, o)
		}
	}
	return outcomes
}

// clear ends all jobs and reservations, and restores the nodes.
func (l *live) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, user := range []string{"alice", "bob", "carol"} {
		_, _ = l.slurm.Exec(ctx, "root", "scancel", "--hurry", "--user="+user)
	}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		out, err := l.slurm.Exec(ctx, "root", "squeue", "--noheader")
		if err == nil && out == "" {
			break
		}
		if time.Now().After(end) {
			l.Errorf("jobs remain: %s %v", out, err)
			break
		}
	}
	s, err := l.client.Observe(ctx, 0)
	if err != nil {
		l.Error(err)
		return
	}
	for _, r := range s.Reservations {
		if _, err := l.slurm.Exec(ctx, "root", "scontrol", "delete", "reservation="+r.Name); err != nil {
			l.Error(err)
		}
	}
}

// gated reports whether a reclaimed job is gated as requested or, on Slurm 24.11, for Slurm's own
// two minutes.
func (l *live) gated(j cluster.Job, r cluster.Action) bool {
	return j.Eligible == r.Until || l.suite == "trixie" && (j.Eligible.Sub(j.Submit)-120*cluster.Second).Duration().Abs() < 3*time.Second
}

// act fills an action with the job's names.
func act(verb cluster.Verb, j cluster.Job) cluster.Action {
	return cluster.Action{Verb: verb, ID: j.ID, Record: j.Record, UnsplitArray: j.UnsplitArray, Restarts: j.Restarts}
}

func job(id int64) cluster.JobID { return cluster.JobID{ID: id} }

func in1h() cluster.Instant {
	return cluster.InstantOf(time.Now().Add(time.Hour).Truncate(time.Second))
}
