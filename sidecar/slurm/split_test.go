package slurm

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Grants for many tasks of an array cost one scontrol per 64 tasks, and one small query each:
// never a list of all records of the array.
func TestGrantsOfManyTasks(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	f.on("GET /slurm/v0.0.44/jobs/", jobs(1_000_000, waitingJob(5, `"array_job_id":5,"array_task_string":"0-99"`)))
	f.on("GET /slurm/v0.0.44/jobs/state/", func(w http.ResponseWriter, r *http.Request) {
		_, task, _ := strings.Cut(r.URL.Query().Get("job_id"), "_")
		say(map[string]any{"jobs": []any{map[string]any{"job_id": "1" + task + "_" + task, "state": []string{"PENDING"}}}, "errors": []any{}})(w, r)
	})
	for i := range 100 {
		f.on(fmt.Sprintf("POST /slurm/v0.0.44/job/1%d", i), text(`{"errors":[]}`))
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "scontrol")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$@\" >> "+dir+"/said\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := f.client(func(c *Config) { c.Scontrol = []string{script} })
	var grants []cluster.Action
	for _, j := range f.see(c).Jobs {
		grants = append(grants, cluster.Action{Verb: cluster.Grant, ID: j.ID, Record: j.Record, UnsplitArray: j.UnsplitArray, Nodes: []string{"v1"}})
	}
	for _, o := range c.Apply(t.Context(), grants) {
		if !o.OK {
			t.Fatal(o.Error)
		}
	}
	said, err := os.ReadFile(filepath.Join(dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	asked := strings.TrimSpace(strings.TrimPrefix(string(said), "show config\nshow topology\n"))
	if lines := strings.Split(asked, "\n"); len(lines) != 2 || !strings.HasPrefix(lines[0], "update jobid=5_0,5_1,") || !strings.Contains(lines[1], "5_99 StartTime=uts") {
		t.Errorf("scontrol was asked %d times:\n%s", len(lines), said)
	}
	if n, all := f.count("GET /slurm/v0.0.44/jobs/state/"), f.count("GET /slurm/v0.0.44/job/5"); n != 100 || all != 0 {
		t.Errorf("%d questions about a task, %d about all", n, all)
	}
	for i := range 100 {
		if f.count(fmt.Sprintf("POST /slurm/v0.0.44/job/1%d", i)) != 1 {
			t.Errorf("task %d was not granted by a record of its own", i)
		}
	}
}
