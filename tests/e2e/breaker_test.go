package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/slurm"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// The breaker trips on a real Slurm by jobs of two users of two tenants: whose starts do not last, which fail when they start again after a stop, whose
// work stops destroy, and which others requeue; and by a slurmctld that hangs in each look, on a clock that runs fast. Then no job is held, and nothing is stopped, until an operator resumes, whoever restarts the daemon.
func TestBreaker(t *testing.T) {
	o := testcluster.Options{Accounts: tenants(1, 1), Plugin: testcluster.PluginC, Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		users := map[string]string{"alice": "nlp", "bob": "vision"}
		tripped := func(config, kind string, jobs []string) {
			t.Helper()
			var out string
			r.until("the breaker has tripped by "+kind, 4*time.Minute, func() bool {
				out, _ = r.fairlease(config, "status")
				return strings.Contains(out, "breaker   has tripped")
			})
			named := 0
			for _, id := range jobs {
				if strings.Contains(out, id) {
					named++
				}
			}
			if !strings.Contains(out, "breaker."+kind) || !strings.Contains(out, "no partition is acted on") || named < 2 {
				t.Errorf("status names %d of the jobs %v:\n%s", named, jobs, out)
			}
			r.until("jobs are no longer gated at submission", 20*time.Second, func() bool {
				_, err := os.Stat(filepath.Join(r.HeartbeatDir(), "gpu"))
				return os.IsNotExist(err)
			})
		}
		resume := func(config string) {
			t.Helper()
			if out, err := r.fairlease(config, "resume", "--reason", "the jobs are mended"); err != nil {
				t.Fatal(out, err)
			}
			r.heard()
			if out, err := r.fairlease(config, "audit"); err != nil || !strings.Contains(out, "breaker") || !strings.Contains(out, "the jobs are mended") {
				t.Errorf("the record of administration: %v\n%s", err, out)
			}
		}
		config := r.configure("breaker: {failed_starts: 1, requeues: off, bad_ends: 1}\n")
		end := r.serve(config)
		r.heard()
		var jobs []string
		for user, account := range users {
			jobs = append(jobs, r.submit(user, "#!/bin/bash\n[ -z \"$SLURM_RESTART_COUNT\" ] && { sleep 1; scontrol requeue $SLURM_JOB_ID; }\nexec sleep 3600\n", "-A", account, "--gres=gpu:4"))
		}
		tripped(config, "failed_starts", jobs)
		end(syscall.SIGTERM)
		rounds := func() int {
			text, err := os.ReadFile(logOf(config))
			if err != nil {
				t.Fatal(err)
			}
			return strings.Count(string(text), `"message":"round"`)
		}
		before := rounds()
		end = r.serve(config)
		for _, id := range jobs { // nobody holds them
			r.waitState(id, 4*time.Minute, "RUNNING")
		}
		r.until("the new daemon has seen them run", time.Minute, func() bool { return rounds() > before })
		if out, err := r.fairlease(config, "status"); err != nil || !strings.Contains(out, "breaker   has tripped") {
			t.Errorf("a restart has ended it: %v\n%s", err, out)
		}
		for _, id := range jobs {
			r.run([][]string{{"scancel", id}})
		}
		resume(config)
		jobs = nil
		for user, account := range users {
			for range 2 {
				jobs = append(jobs, r.submit(user, "#!/bin/bash\n[ \"${SLURM_RESTART_COUNT:-0}\" -gt 0 ] && exit 1\nexec sleep 3600\n", "-A", account, "--gres=gpu:4"))
			}
		}
		tripped(config, "bad_ends", jobs)
		drain := func() {
			r.run([][]string{append([]string{"scancel"}, jobs...)})
			jobs = nil
		}
		drain()
		resume(config)
		end(syscall.SIGTERM)

		config = r.configure("breaker: {requeues: 1}\n")
		end = r.serve(config)
		r.heard()
		for user, account := range users {
			jobs = append(jobs, r.submit(user, "#!/bin/bash\nexec sleep 3600\n", "-A", account, "--gres=gpu:4"))
		}
		for _, id := range jobs {
			r.waitState(id, time.Minute, "RUNNING")
		}
		r.run([][]string{append([]string{"scontrol", "requeue"}, strings.Join(jobs, ","))})
		tripped(config, "requeues", jobs)
		drain()
		resume(config)
		end(syscall.SIGTERM)

		for user, account := range users {
			for range 2 {
				r.submit(user, "#!/bin/bash\nexec sleep 3600\n", "-A", account, "--gres=gpu:4")
			}
		}
		r.settings.Breaker = cluster.BreakerRule{LostWork: cluster.Bound{Max: int64(cluster.Minute)}} // of one GPU
		r.govern()
		var trip *cluster.Trip
		r.until("the breaker has tripped by lost_work", 4*time.Minute, func() bool { trip = r.plan().State.Breaker.Trip; return trip != nil })
		if trip.Kind != cluster.LostWork || trip.Count <= trip.Bound || trip.Users < 2 {
			t.Errorf("the breaker has tripped: %+v", trip)
		}
		r.halt()

		r.rules.Resumed = cluster.GoAhead{Round: trip.Round, By: "root"}
		r.settings.Breaker = cluster.BreakerRule{Latency: cluster.Bound{Max: int64(cluster.Second)}}
		ahead := time.Duration(0)
		r.client = r.newClient(func(c *slurm.Config) { c.Now = func() time.Time { return time.Now().Add(ahead) } })
		l := r.loop(hanging{r}, r.lead())
		r.until("the breaker has tripped by latency", 4*time.Minute, func() bool {
			report, err := l.Turn(r.ctx())
			r.note(report, err, r.ctx())
			ahead += 2 * time.Minute
			trip = r.plan().State.Breaker.Trip
			return trip != nil && trip.Kind == cluster.Latency
		})
		if trip.Count <= trip.Bound || ahead < 10*time.Minute {
			t.Errorf("the breaker has tripped after %v: %+v", ahead, trip)
		}
	})
}

// hanging is a Slurm whose slurmctld hangs for two seconds from the begin of each look. It measures looks as the daemon does.
type hanging struct{ *rig }

func (h hanging) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	if err := h.Freeze(ctx, testcluster.Slurmctld); err != nil {
		return cluster.Observation{}, err
	}
	woken := make(chan error, 1)
	time.AfterFunc(2*time.Second, func() { woken <- h.Thaw(context.WithoutCancel(ctx), testcluster.Slurmctld) })
	began := time.Now()
	seen, err := h.client.Observe(ctx, since)
	seen.Latency = cluster.SpanOf(time.Since(began))
	return seen, errors.Join(err, <-woken)
}

func (h hanging) Apply(ctx context.Context, actions []cluster.Action) []cluster.Outcome {
	return h.client.Apply(ctx, actions)
}
