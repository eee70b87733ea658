package e2e

import (
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/loop"
)

// Without the submit plugin, override takes --no-requeue and --contiguous away all the same: jobs with these options wait for leases, and
// give their GPUs to the other tenant when its turn comes.
func TestOptOutOverride(t *testing.T) {
	onOne(t, "forky", eightGPUs, func(t *testing.T, r *rig) {
		r.rules.OptOut.NoRequeue, r.rules.OptOut.Contiguous = loop.Override, loop.Override
		r.govern()
		field := func(id, name string) string {
			j, err := r.Job(r.ctx(), id)
			if err != nil {
				t.Fatal(err)
			}
			return j[name]
		}
		var jobs []string
		for range 4 {
			jobs = append(jobs, r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:1", "--no-requeue", savesOnTerm))
		}
		// Slurm may start it before the first look, and then nobody takes its option away.
		wide := r.submit("alice", sleeps(3600), "-A", "nlp", "-N2", "--gres=gpu:2", "--contiguous", "--no-requeue", savesOnTerm, "--begin=now+5")
		if n, c := field(jobs[0], "Requeue"), field(wide, "Contiguous"); n != "0" || c != "1" {
			t.Fatalf("submitted are jobs with Requeue=%s and Contiguous=%s", n, c)
		}
		jobs = append(jobs, wide)
		r.until("all GPUs are nlp's", 2*time.Minute, func() bool { return r.holds("nlp") == 8 })
		r.waitState(wide, time.Minute, "RUNNING")
		if got := field(wide, "Contiguous"); got != "0" || r.events("contiguous_dropped") != 1 {
			t.Errorf("the granted job has Contiguous=%s, and %d events say that it lost the option", got, r.events("contiguous_dropped"))
		}
		for range 8 {
			r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:1", savesOnTerm)
		}
		r.until("vision gets its half", 3*time.Minute, func() bool { return r.holds("vision") >= 4 })
		waiting := 0
		r.keepsAll(jobs)
		for _, id := range jobs {
			if field(id, "JobState") != "PENDING" {
				continue
			}
			waiting++
			if got := field(id, "Requeue"); got != "1" {
				t.Errorf("job %s was stopped and has Requeue=%s", id, got)
			}
		}
		if waiting == 0 {
			t.Error("none of nlp's jobs waits")
		}
	})
}
