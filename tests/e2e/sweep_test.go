package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// sweep is a small sweep over the history that lends writes.
var sweep = []string{"tune", "history.csv", "-c", "sweep.yaml", "--nodes", "2x8", "--terms", "5m,15m,1h", "--intervals", "10s,5m"}

// lends puts the program, a history and a configuration into a user's home, and gives that home.
func (r *rig) lends(user string) string {
	r.t.Helper()
	path, err := binary()
	if err != nil {
		r.t.Fatal(err)
	}
	var jobs strings.Builder
	jobs.WriteString("job_id,tenant,user,gpus,submit_time,duration_s,state\n")
	for i := range 120 {
		tenant := []string{"nlp", "vision", "speech"}[i*i%3]
		fmt.Fprintf(&jobs, "%d,%s,%s,%d,%d,%d,COMPLETED\n", i, tenant, tenant, 1<<(i*7%4), i*611, 900+i*7919%14400)
	}
	home := r.Home(user)
	// A program that this process wrote could not be run while a child of another test, just forked, has it open.
	if out, err := exec.Command("cp", path, filepath.Join(home, "fairlease")).CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	for name, text := range map[string]string{"history.csv": jobs.String(), "sweep.yaml": "credit: {cap: 2h}\n"} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o755); err != nil {
			r.t.Fatal(err)
		}
	}
	return home
}

// asks runs a line of shell in a user's home on the cluster.
func (r *rig) asks(user, line string) string {
	r.t.Helper()
	out, err := r.Run(r.ctx(), user, "", "bash", "-c", line)
	if err != nil {
		r.t.Fatal(err)
	}
	return out.Stdout
}

// submitted reads the id from what sbatch says.
func (r *rig) submitted(said string) string {
	r.t.Helper()
	var id string
	if _, err := fmt.Sscanf(said, "Submitted batch job %s", &id); err != nil {
		r.t.Fatalf("sbatch said %q", said)
	}
	return id
}

// A sweep as a job array on a real Slurm comes to what it comes to in one go. A task that fails
// is named by the job that collects, and can be run again.
func TestSweepAsJobArray(t *testing.T) {
	onBoth(t, testcluster.Options{}, func(t *testing.T, r *rig) {
		home := r.lends("alice")
		read := func(name string) string {
			b, err := os.ReadFile(filepath.Join(home, name))
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		words := strings.Join(sweep, " ")
		whole := r.asks("alice", "./fairlease "+words+" --html whole.html")
		_, whole, _ = strings.Cut(whole, "\n\n") // the setup, the table, the recommendation
		if !strings.Contains(whole, "chosen") || !strings.Contains(read("whole.html"), "</html>") {
			t.Fatalf("in one go:\n%s", whole)
		}

		r.asks("alice", "./fairlease "+words+" --slurm-array sweep.sh --into 'my sweep'")
		collects := r.submitted(r.asks("alice", "bash sweep.sh -A nlp -t 10"))
		r.waitState(collects, 3*time.Minute, "COMPLETED", "FAILED")
		if got := strings.Replace(read("my sweep/tune.txt"), "/home/alice/my sweep/tune.html", "whole.html", 1); got != whole || r.state(collects) != "COMPLETED" {
			t.Errorf("collected, %s:\n%s\nin one go:\n%s", r.state(collects), got, whole)
		}
		if read("my sweep/tune.html") != read("whole.html") {
			t.Error("the page of the array is not that of the sweep in one go")
		}
		if j, err := r.Job(r.ctx(), collects); err != nil || j["Account"] != "nlp" || j["TimeLimit"] != "00:10:00" {
			t.Errorf("the job that collects: %v, %v", j, err)
		}

		// The third task finds something in its way.
		r.asks("alice", "./fairlease "+words+" --slurm-array again.sh --into broken && mkdir -p broken/trial-00002.json.part")
		collects = r.submitted(r.asks("alice", "bash again.sh"))
		r.waitState(collects, 3*time.Minute, "COMPLETED", "FAILED")
		if text := read("broken/tune.txt"); r.state(collects) != "FAILED" || !strings.Contains(text, "1 of 6 tasks have left no result: 2\n") ||
			!strings.Contains(text, "sbatch --array=2 ") || !strings.Contains(text, "chosen") {
			t.Errorf("collected without the third task, %s:\n%s", r.state(collects), text)
		}
		if text := read("broken/task-2.log"); !strings.Contains(text, "trial-00002.json.part cannot be written") {
			t.Errorf("the third task says %q", text)
		}
		r.submitted(r.asks("alice", "rmdir broken/trial-00002.json.part && sbatch --array=2 again.sh"))
		r.until("the third task has left its result", time.Minute, func() bool {
			_, err := os.Stat(filepath.Join(home, "broken/trial-00002.json"))
			return err == nil
		})
		if got := r.asks("alice", "./fairlease tune --collect broken --html whole.html"); got != whole {
			t.Errorf("collected after the third task was run again:\n%s\nin one go:\n%s", got, whole)
		}
	})
}
