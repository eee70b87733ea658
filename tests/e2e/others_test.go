package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// aps is the comment with which NVIDIA's recovery agents know their jobs; both texts are theirs.
const aps = `{"APS":{"auto_requeue":true,"max_restarts":3}}`

// Three that requeue jobs beside fairlease: a script that requeues itself, an agent of the administrator's that requeues a job whose
// node it holds to be bad, and the owner of an expedited job, which Slurm 26.05 starts again at once. Each job waits for its next lease. The
// requeues are nobody's preemption, explain names them, the books agree with slurmdbd's, and the texts of others stay theirs.
func TestOthersRequeueJobs(t *testing.T) {
	o := testcluster.Options{Accounts: tenants(1, 1), Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4}}}
	t.Parallel()
	for _, suite := range testcluster.Suites {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			expedites, o := suite == "forky", o
			if expedites {
				o.ExtraConf = "SlurmctldParameters=enable_expedited_requeue\n"
			}
			r := newRig(t, suite, usual[suite], o)
			r.settings.StopAllowance, r.settings.StopOverheadMilli, r.settings.StopTotalMilli = 15*cluster.Minute, 20, 30
			r.settings.MinLease = 9 * cluster.Second // so long may a start take to last
			config := r.configure("stop: {allowance: 15m, per_hour: 0}\n")
			r.nextSecond()
			begin := time.Now()
			r.govern()
			r.goesOn(1, time.Minute)
			itself := r.submit("alice", "#!/bin/bash\n#SBATCH --open-mode=append\n[ -z \"$SLURM_RESTART_COUNT\" ] && { sleep 4; scontrol requeue $SLURM_JOB_ID; }\nexec sleep 3600\n",
				"-A", "nlp", "--gres=gpu:2")
			watched := r.submit("bob", "#!/bin/bash\n[ -z \"$SLURM_RESTART_COUNT\" ] && { sleep 5; touch failed.$SLURM_JOB_ID; }\nexec sleep 3600\n",
				"-A", "vision", "--gres=gpu:4", "--comment="+aps, "--extra=rack=7")
			jobs := []string{itself, watched}
			if expedites {
				jobs = append(jobs, r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:2", "--requeue=expedite"))
			}
			for _, id := range jobs {
				r.waitState(id, time.Minute, "RUNNING")
			}
			// A requeue right after the start made it a failed one, until a start lasts.
			r.until("its start has failed", time.Minute, func() bool {
				rec := r.lastCase(itself).Record
				return rec.Failed == 1 && rec.SlurmSaid == cluster.RequeuedAtStart
			})
			unseen := map[string]float64{} // GPU-seconds of an attempt that no look found running: slurmdbd alone knows it
			if r.lastCase(itself).Record.Ran == 0 {
				unseen["nlp"] = 2 * 6 // it ran for four seconds, and cleaned up
			}
			// The agent.
			r.until("the agent sees a failure", time.Minute, func() bool {
				_, err := os.Stat(filepath.Join(r.Home("bob"), "failed."+watched))
				return err == nil
			})
			r.run([][]string{{"scontrol", "update", "jobid=" + watched, "AdminComment=" + aps}, {"scontrol", "requeue", watched}})
			if expedites {
				r.requeuesExpedited(jobs[2])
			}
			for _, id := range jobs {
				r.until("job "+id+" runs again, once", 4*time.Minute, func() bool { return r.restarts(id) == "RUNNING 1" })
			}
			r.goesOn(3, 20*time.Second)
			for i, id := range jobs {
				c := r.lastCase(id)
				cause := cluster.ByOwner
				if i == 2 {
					cause = cluster.BySlurm
				}
				rec := &c.Record
				if x := rec.Others; x == nil || x.Count != 1 || x.Cause != cause || rec.Terms < 2 || rec.Stops != 0 || rec.Spent != 0 || rec.Lost != 0 || rec.MostLost != 0 {
					t.Errorf("job %s: %+v, requeues by others %+v", id, rec, rec.Others)
				}
				if n := r.count(cluster.Reclaim, id); n != 0 {
					t.Errorf("job %s was requeued by fairlease %d times", id, n)
				}
				out, err := r.fairlease(config, "explain", id)
				if err != nil || !strings.Contains(out, "Requeued    by its owner") || !strings.Contains(out, "not by fairlease") {
					t.Errorf("explain %s: %v\n%s", id, err, out)
				}
			}
			if j, err := r.Job(r.ctx(), watched); err != nil || j["Comment"] != aps || j["AdminComment"] != aps || j["Extra"] != "rack=7" {
				t.Errorf("the texts of others: %v, %v", j, err)
			}
			for _, id := range jobs {
				r.run([][]string{{"scancel", id}})
			}
			for _, id := range jobs {
				r.waitState(id, time.Minute, "CANCELLED")
			}
			r.goesOn(3, 20*time.Second)
			r.halt()
			for _, tenant := range []string{"nlp", "vision"} {
				alloc, _ := r.used(tenant)
				r.until("slurmdbd has all of "+tenant, 30*time.Second, func() bool { return r.accounted(tenant, begin) >= float64(alloc)/1000-10 })
				// slurmdbd keeps whole seconds, and a requeue by others ends when the job has cleaned up: up to two seconds per attempt. A
				// tenant has two or four attempts.
				want := r.accounted(tenant, begin)
				within(t, fmt.Sprintf("GPU-seconds of %s", tenant), float64(alloc)/1000, want, 100*(6+unseen[tenant])/want)
			}
		})
	}
}

// requeuesExpedited has the owner of a running expedited job requeue it, while nobody grants leases. It waits behind the licence that it got
// when it had started.
func (r *rig) requeuesExpedited(id string) {
	r.t.Helper()
	r.until("the expedited job has the licence", time.Minute, func() bool {
		j, err := r.Job(r.ctx(), id)
		return err == nil && j["Licenses"] == license+":1"
	})
	if c := r.lastCase(id); !c.Job.Expedited {
		r.t.Errorf("the expedited job is seen as %+v", c.Job)
	}
	r.halt()
	if out, err := r.Exec(r.ctx(), "alice", "scontrol", "requeue", id); err != nil {
		r.t.Fatal(out, err)
	}
	r.until("it waits for the licence", time.Minute, func() bool {
		j, err := r.Job(r.ctx(), id)
		return err == nil && strings.HasPrefix(j["JobState"], "PENDING") && j["Reason"] == "Licenses"
	})
	for until := time.Now().Add(12 * time.Second); time.Now().Before(until); time.Sleep(time.Second) {
		if state := r.state(id); !strings.HasPrefix(state, "PENDING") {
			r.t.Fatalf("the expedited job is %s without a lease", state)
		}
	}
	r.govern()
}

// One task of an array that requeues $SLURM_JOB_ID at the notice takes its siblings down, on both versions of Slurm: try-requeue finds that
// and says so. One that names its own task does not.
func TestATaskThatTakesItsSiblings(t *testing.T) {
	onBoth(t, testcluster.Options{Accounts: tenants(1, 1)}, func(t *testing.T, r *rig) {
		home := r.lends("alice")
		const counts = `#!/bin/bash
#SBATCH --ntasks=1 --mem=100 --array=0-9 --open-mode=append --comment=saves=notice
cat > count.$SLURM_JOB_ID <<'SH'
n=$(cat saved.$SLURM_JOB_ID 2>/dev/null || echo 0)
trap 'echo $n > saved.$SLURM_JOB_ID; scontrol requeue %s' USR1
while :; do (trap '' USR1; exec sleep 1); n=$((n+1)); echo step $n; done
SH
srun bash count.$SLURM_JOB_ID
`
		for name, id := range map[string]string{"siblings": "$SLURM_JOB_ID", "itself": "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"} {
			if err := os.WriteFile(filepath.Join(home, name+".sh"), fmt.Appendf(nil, counts, id), 0o755); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
			got, err := r.Run(ctx, "alice", "", "bash", "-c", "./fairlease try-requeue "+name+".sh --lease 25s --notice-time 4s --now --json")
			cancel()
			t.Logf("%s: %s%v", name, got.Stderr, err)
			var f struct {
				Siblings []string `json:"requeued_siblings"`
				Changes  []string
				Resumed  string
			}
			if err := json.Unmarshal([]byte(got.Stdout), &f); err != nil {
				t.Fatalf("%s: %v: %s", name, err, got.Stdout)
			}
			if takes := name == "siblings"; takes != (len(f.Siblings) == 1) || takes != strings.Contains(strings.Join(f.Changes, ""), "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}") {
				t.Errorf("%s: %+v", name, f)
			}
		}
	})
}
