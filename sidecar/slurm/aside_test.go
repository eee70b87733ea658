package slurm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// An invalid record is set aside: it is reported with its owner and allocation, and the other
// records are read as usual. However many of them a user has, the look does not fail.
func TestARecordThatMakesNoSenseIsSetAside(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	list := []string{waitingJob(1, ""), runningJob(2, "")}
	for id := 10; id < 20; id++ {
		list = append(list, waitingJob(id, `"required_nodes":["v[1-"]`))
	}
	list = append(list, runningJob(30, `"required_nodes":"v1[","gres_detail":["a:b:c:d"]`), waitingJob(40, `"array_job_id":40,"array_task_string":"0-4294967294:0"`))
	f.on("GET /slurm/v0.0.44/jobs/", jobs(1_000_000, list...))
	c := f.client()
	s := f.see(c)
	if len(s.Jobs) != 14 {
		t.Fatalf("%d jobs", len(s.Jobs))
	}
	want := map[int64]string{30: "v1[", 40: "no list of numbers"}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		switch id := j.ID.ID; {
		case id < 10:
			if j.Aside != "" || j.Request.GPUs != 2 {
				t.Errorf("job %d: %+v", id, j)
			}
		case id < 20:
			if !strings.Contains(j.Aside, "v[1-") || j.State != cluster.Waiting || j.User != "alice" || j.Account != "nlp" || j.Request.GPUs != 0 {
				t.Errorf("job %d: %+v", id, j)
			}
		case !strings.Contains(j.Aside, want[id]):
			t.Errorf("job %d is set aside for %q", id, j.Aside)
		}
	}
	if h := s.Jobs[12].Holds; len(h) != 1 || h[0].Node != "v1" || s.Jobs[12].State != cluster.Running {
		t.Errorf("of job 30 it is not told what it holds: %+v", s.Jobs[12])
	}
	if notes := c.Notes(); len(notes) != 12 || !strings.Contains(notes[0], "is set aside") {
		t.Errorf("%q", notes)
	}
}

// Knowledge of a job stays when its record becomes invalid, and is used again when it is valid.
// An array keeps its tasks.
func TestAKnownJobIsSetAsideAndComesBack(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	const array = `"array_job_id":5,"array_task_string":"0-2"`
	f.on("GET /slurm/v0.0.44/jobs/", jobs(1_000_000, waitingJob(1, ""), runningJob(2, ""), waitingJob(5, array)))
	c := f.client()
	before := f.see(c).Jobs
	f.on("GET /slurm/v0.0.44/jobs/", jobs(1_000_001, waitingJob(1, `"excluded_nodes":"v[2-1]"`), runningJob(2, `"nodes":"v["`), waitingJob(5, array+`,"excluded_nodes":"v["`)))
	now := f.see(c).Jobs
	if len(now) != len(before) {
		t.Fatalf("%d jobs, no longer %d", len(now), len(before))
	}
	for i := range now {
		j := now[i]
		if j.Aside == "" {
			t.Errorf("job %v is not set aside", j.ID)
		}
		if j.Aside = ""; !cmp.Equal(j, before[i]) {
			t.Errorf("job %v is %s", j.ID, cmp.Diff(before[i], j))
		}
	}
	f.on("GET /slurm/v0.0.44/jobs/", jobs(1_000_002, waitingJob(1, ""), runningJob(2, ""), waitingJob(5, array)))
	if d := cmp.Diff(before, f.see(c).Jobs); d != "" {
		t.Error("they do not come back: " + d)
	}
	// A job that ends while its record is invalid is over.
	f.on("GET /slurm/v0.0.44/jobs/", jobs(1_000_003, strings.Replace(runningJob(2, `"excluded_nodes":"v[","end_time":300`), "RUNNING", "COMPLETED", 1)))
	if j := f.see(c).Jobs[0]; j.State != cluster.Done || j.Outcome != "COMPLETED" || j.End != 300_500 || j.Holds != nil || j.Aside == "" {
		t.Errorf("%+v", j)
	}
}
