package slurm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// An invalid record is set aside: it is reported with its owner and allocation, and the other
// records are read as usual. However many of them a user has, the look does not fail.
func TestARecordThatMakesNoSenseIsSetAside(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	list := []string{waitingJob(1, ""), runningJob(2, "")}
	for id := 10; id < 20; id++ {
		list = append(list, waitingJob(id, fmt.Sprintf(`"array_job_id":%d,"array_task_string":"v[1-"`, id)))
	}
	list = append(list, runningJob(30, `"gres_detail":["gpu:b:c:d"]`), waitingJob(40, `"array_job_id":40,"array_task_string":"0-4294967294:0"`))
	f.on("GET /slurm/v0.0.44/jobs/", jobs(1_000_000, list...))
	c := f.client()
	s := f.see(c)
	if len(s.Jobs) != 14 {
		t.Fatalf("%d jobs", len(s.Jobs))
	}
	want := map[int64]string{30: "gpu:b:c:d", 40: "no list of numbers"}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		switch id := j.ID.ID; {
		case id < 10:
			if j.Aside != "" || j.Request.Size.Devices != 2 {
				t.Errorf("job %d: %+v", id, j)
			}
		case id < 20:
			if !strings.Contains(j.Aside, "v[1-") || j.State != cluster.Waiting || j.User != "alice" || j.Account != "nlp" || j.Request.Size.Devices != 0 {
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

// Lists of a waiting job that make no sense in part cost that part alone.
func TestOddPartsOfAJobsLists(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	f.on("GET /slurm/v0.0.44/jobs/state/", text(`{"jobs":[{"job_id":"6_1","state":["PENDING"]},{"job_id":"6_2","state":["PENDING"]},{"job_id":"6_7","state":["PENDING"]}],"errors":[]}`))
	f.on("GET /slurm/v0.0.44/jobs/", jobs(1_000_000, waitingJob(1, `"excluded_nodes":"v[2-1],v3"`), waitingJob(2, `"required_nodes":"v[2-1],v3"`),
		waitingJob(3, `"required_nodes":"n[0-999999]"`), waitingJob(4, `"excluded_nodes":"gone"`), waitingJob(6, `"array_job_id":6,"array_task_string":"1-2,odd"`)))
	s := f.see(f.client())
	if len(s.Jobs) != 7 {
		t.Fatalf("%d jobs: %+v", len(s.Jobs), s.Jobs)
	}
	for i, want := range []cluster.Job{{Exclude: []string{"v3"}}, {NodeList: []string{"v[2-1]", "v3"}, Request: cluster.Request{Unplaceable: cluster.UnreadNodes}},
		{NodeList: []string{"n[0-999999]"}, Request: cluster.Request{Unplaceable: cluster.UnreadNodes}}, {Exclude: []string{"gone"}}, {}, {}, {}} {
		j := &s.Jobs[i]
		if j.Aside != "" || j.Request.Size.Devices != 2 || !j.Request.Leasable() || j.Request.Unplaceable != want.Request.Unplaceable || !cmp.Equal(j.Exclude, want.Exclude) || !cmp.Equal(j.NodeList, want.NodeList) {
			t.Errorf("job %v: %+v", j.ID, j)
		}
	}
	if got := s.Jobs[6].ID; got != cluster.TaskID(6, 7) {
		t.Errorf("the last task is %v", got)
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
	f.on("GET /slurm/v0.0.44/jobs/", jobs(1_000_001, waitingJob(1, `"job_state":["ODD"]`), runningJob(2, `"nodes":"v["`), waitingJob(5, array+`,"job_state":["ODD"]`)))
	now := f.see(c).Jobs
	if len(now) != len(before) {
		t.Fatalf("%d jobs, no longer %d", len(now), len(before))
	}
	for i := range now {
		j := now[i]
		if j.Aside == "" {
			t.Errorf("job %v is not set aside", j.ID)
		}
		if j.Version == before[i].Version {
			t.Errorf("job %v has the version that it had before", j.ID)
		}
		if j.Aside, j.Version = "", before[i].Version; !cmp.Equal(j, before[i]) {
			t.Errorf("job %v is %s", j.ID, cmp.Diff(before[i], j))
		}
	}
	f.on("GET /slurm/v0.0.44/jobs/", jobs(1_000_002, waitingJob(1, ""), runningJob(2, ""), waitingJob(5, array)))
	if d := cmp.Diff(before, f.see(c).Jobs, cmpopts.IgnoreFields(cluster.Job{}, "Version")); d != "" {
		t.Error("they do not come back: " + d)
	}
	// A job that ends while its record is invalid is over.
	f.on("GET /slurm/v0.0.44/jobs/", jobs(1_000_003, strings.Replace(runningJob(2, `"nodes":"v[","end_time":300`), "RUNNING", "COMPLETED", 1)))
	if j := f.see(c).Jobs[0]; j.State != cluster.Done || j.Outcome != "COMPLETED" || j.End != 300_500 || j.Holds != nil || j.Aside == "" {
		t.Errorf("%+v", j)
	}
}
