package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// trains is a job that does ten steps a second, by the clock, saves where it is
// when it hears USR1, and resumes from there. It runs as a step, as training under
// srun does.
const trains = `#!/bin/bash
#SBATCH --open-mode=append
#SBATCH --output=train.out
cat > train.sh <<'SH'
saved=$(cat checkpoint 2>/dev/null || echo 0)
step=$saved
began=${EPOCHREALTIME/.}
save() { echo $step > checkpoint.new; mv checkpoint.new checkpoint; echo saved $step; }
trap save USR1
trap 'exit 0' TERM
echo start $step
while [ $step -lt 1200 ]; do sleep 0.1; step=$((saved+(${EPOCHREALTIME/.}-began)/100000)); done
echo finished
SH
srun bash train.sh
`

// A job that traps the notice saves, is requeued, and resumes from its checkpoint
// in its next lease, with the time limit that it had left and its output appended.
func TestCheckpointAndResume(t *testing.T) {
	o := testcluster.Options{Accounts: tenants(1, 1), Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 1, Model: "v100", GPUs: 4}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		train := r.submit("alice", trains, "-A", "nlp", "--gres=gpu:4", "-t", "30", "--comment=saves=notice")
		r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:4")
		r.govern()
		r.until("the training is reclaimed", 90*time.Second, func() bool { return r.count(cluster.Reclaim, train) > 0 })
		limit := ""
		r.until("the training is done", 8*time.Minute, func() bool {
			j, _ := r.Job(r.ctx(), train)
			limit = j["TimeLimit"]
			return j["JobState"] == "COMPLETED"
		})
		// Of its two minutes it ran more than one before its last lease: Slurm counts whole minutes.
		if limit >= "00:30:00" || limit < "00:25:00" {
			t.Errorf("time limit of the last attempt was %s, want what was left of 30 minutes", limit)
		}
		out := r.output("alice", "train.out")
		t.Logf("output:\n%s", out)
		var saved, started []int
		for line := range strings.Lines(out) {
			f := strings.Fields(line)
			if len(f) < 2 {
				continue
			}
			n, _ := strconv.Atoi(f[1])
			switch f[0] {
			case "saved":
				saved = append(saved, n)
			case "start":
				started = append(started, n)
			}
		}
		if len(started) < 2 || len(saved) == 0 || started[1] != saved[0] || started[1] == 0 {
			t.Errorf("attempts started at steps %v, saved at %v: want the second to start where the first saved", started, saved)
		}
		if !strings.Contains(out, "finished") {
			t.Error("the training did not finish")
		}
	})
}

// Jobs that finish by themselves around the ends of terms are never run again.
func TestFinishedJobsAreNeverRerun(t *testing.T) {
	onBoth(t, testcluster.Options{Accounts: tenants(1, 1)}, func(t *testing.T, r *rig) {
		r.mu.Lock()
		r.settings.Term, r.settings.MinLease, r.settings.Notice = 10*cluster.Second, 3*cluster.Second, cluster.Second
		r.mu.Unlock()
		var ids []string
		for i := range 60 {
			user, account := "alice", "nlp"
			if i%2 == 1 {
				user, account = "bob", "vision"
			}
			// From 1 to 12 seconds: many end in the very second of a boundary.
			script := fmt.Sprintf("#!/bin/bash\n#SBATCH --open-mode=append --output=f%d.out\nsleep %d.%d\necho end\n", i, 1+i%12, i%10)
			ids = append(ids, r.submit(user, script, "-A", account, "--gres=gpu:1"))
		}
		r.govern()
		for _, id := range ids {
			r.waitState(id, 4*time.Minute, "COMPLETED")
		}
		for i := range ids {
			user := "alice"
			if i%2 == 1 {
				user = "bob"
			}
			r.endedOnce(ids[i], strings.Count(r.output(user, fmt.Sprintf("f%d.out", i)), "end"))
		}
	})
}

// endedOnce fails if a job that says so many times that it ended did not end, or was run again after it had finished. It may say so and be requeued
// before slurmctld knows of its end: then nobody knew. A job that Slurm had as finished must not run again.
func (r *rig) endedOnce(id string, ends int) {
	r.t.Helper()
	if ends == 1 {
		return
	}
	states, err := r.Exec(r.ctx(), "root", "sacct", "-nXPD", "-j", id, "-o", "State")
	r.t.Logf("job %s came to its end %d times; its attempts: %q", id, ends, states)
	if err != nil || ends == 0 || strings.Count(states, "COMPLETED") > 1 {
		r.t.Errorf("job %s was run again after it had finished: %q, %v", id, states, err)
	}
}

// Jobs of all kinds behave as the design says.
func TestKindsOfJobs(t *testing.T) {
	onBoth(t, testcluster.Options{Accounts: tenants(1, 1)}, func(t *testing.T, r *rig) {
		keeps := r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:v100:4", "--no-requeue")
		array := r.submit("alice", sleeps(6), "-A", "nlp", "--gres=gpu:k80:2", "--array=0-5%2")
		first := r.submit("bob", sleeps(3), "-A", "vision", "--gres=gpu:k80:1")
		after := r.submit("bob", sleeps(2), "-A", "vision", "--gres=gpu:k80:1", "--dependency=afterok:"+first)
		typed := r.submit("bob", sleeps(2), "-A", "vision", "--gres=gpu:v100:2")
		r.govern()
		// An interactive job waits for a lease, too.
		out, err := r.Exec(r.ctx(), "bob", "salloc", "-A", "vision", "--gres=gpu:v100:1", "-t", "5", "hostname")
		if err != nil || out == "" {
			t.Errorf("salloc: %q, %v", out, err)
		}
		for range 8 { // rivals for the v100s
			r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:v100:4")
		}
		for _, id := range []string{first, after, typed} {
			r.waitState(id, 90*time.Second, "COMPLETED")
		}
		if j, _ := r.Job(r.ctx(), typed); !strings.HasPrefix(j["NodeList"], "v") {
			t.Errorf("the typed job ran on %s", j["NodeList"])
		}
		r.until("all six tasks are done", 2*time.Minute, func() bool {
			out, _ := r.Exec(r.ctx(), "root", "sacct", "-n", "-X", "-j", array, "-s", "COMPLETED", "-S", "now-1hour", "-E", "now", "-o", "jobid")
			return strings.Count(out, "_") == 6
		})
		r.waitState(keeps, 10*time.Second, "RUNNING")
		time.Sleep(2 * r.settings.Term.Duration())
		j, _ := r.Job(r.ctx(), keeps)
		if j["JobState"] != "RUNNING" || j["Restarts"] != "0" {
			t.Errorf("the --no-requeue job is %s after %s restarts, want it left alone", j["JobState"], j["Restarts"])
		}
		for _, v := range r.plan().Statuses {
			if v.Reason.Code == cluster.ReasonKept && v.Reason.Need == cluster.CountOf(4) {
				return
			}
		}
		t.Errorf("no status says that the job may not be reclaimed")
	})
}
