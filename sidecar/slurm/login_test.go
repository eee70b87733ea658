package slurm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// command puts a command of Slurm's into a folder, which is all of PATH.
func command(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// The tasks of an array are told by their lines; records that stand for several waiting ones have no task of their own.
func TestTasksAsUsersSeeThem(t *testing.T) {
	command(t, "scontrol", `echo "JobId=7 ArrayJobId=7 ArrayTaskId=3 JobName=x JobState=RUNNING Restarts=1 Requeue=1"
echo "JobId=9 ArrayJobId=7 ArrayTaskId=4-9%2 JobName=x JobState=PENDING Restarts=0"
echo "JobId=8 ArrayJobId=7 ArrayTaskId=0 JobName=x JobState=COMPLETING Reason=None Restarts=0"
echo "JobId=10 ArrayJobId=7 ArrayTaskId=1 JobName=x JobState=EXPEDITING Reason=Licenses Restarts=1"`)
	got, err := Login{}.Tasks(t.Context(), cluster.JobID{ID: 7})
	want := []UserTask{{cluster.TaskID(7, 3), 7, UserJob{State: "RUNNING", Restarts: 1}}, {cluster.TaskID(7, 0), 8, UserJob{State: "COMPLETING"}},
		{cluster.TaskID(7, 1), 10, UserJob{State: "PENDING", Reason: "Licenses", Restarts: 1}}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(err, d)
	}
}

func TestNodesAsUsersSeeThem(t *testing.T) {
	for _, x := range []struct {
		line string
		want UserNode
	}{
		{"NodeName=k1 Gres=gpu:k80:4(S:0-1),shard:k80:8 GresDrain=N/A GresUsed=gpu:k80:1(IDX:0),shard:k80:2(0/2,1/2,1/2,0/2) State=MIXED+PLANNED Partitions=gpu,free Reason=State=DOWN",
			UserNode{Node: cluster.Node{Name: "k1", Partitions: []string{"gpu", "free"}, GPUs: []cluster.GPUs{{Model: "k80", Count: 4}}}, Idle: []cluster.GPUs{{Model: "k80", Count: 1}}}},
		{"NodeName=v1 Gres=gpu:v100:4,gpu:a100:2 GresDrain=gpu:a100:1(IDX:5) GresUsed=gpu:v100:0(IDX:N/A),gpu:a100:1(IDX:4) State=IDLE* Partitions=gpu",
			UserNode{Node: cluster.Node{Name: "v1", Partitions: []string{"gpu"}, Bad: "not responding", GPUs: []cluster.GPUs{{Model: "a100", Count: 1}, {Model: "v100", Count: 4}}},
				Idle: []cluster.GPUs{{Model: "a100", Count: 0}, {Model: "v100", Count: 4}}}},
		{"NodeName=v2 Gres=gpu:v100:many:4,gpu:k80:2,fpga:a:b:c GresDrain=N/A GresUsed=gpu:k80:1(IDX:0),gpu:v100:x:y State=IDLE Partitions=gpu",
			UserNode{Node: cluster.Node{Name: "v2", Partitions: []string{"gpu"}, GPUs: []cluster.GPUs{{Model: "k80", Count: 2}}}, Idle: []cluster.GPUs{{Model: "k80", Count: 1}}}},
		{"NodeName=c1 Gres=(null) GresUsed= State=IDLE+DRAIN Partitions=cpu",
			UserNode{Node: cluster.Node{Name: "c1", Partitions: []string{"cpu"}, Bad: "drained", GPUs: []cluster.GPUs{}}, Idle: []cluster.GPUs{}}},
	} {
		if d := cmp.Diff(x.want, userNode(x.line)); d != "" {
			t.Errorf("%s:\n%s", x.line, d)
		}
	}
}

func TestJobsAsUsersSeeThem(t *testing.T) {
	command(t, "scontrol", `case $4 in
1) echo "JobId=1 JobName=a Reason=State JobState=PENDING Reason=x NodeList=(null) ExitCode=0:0 StdOut=/h/slurm-1.out";;
2) echo "JobId=2 JobState=FAILED Reason=NonZeroExitCode NodeList=v1 ExitCode=3:0";;
3) echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1;;
4) echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1;;
*) echo nonsense;;
esac`)
	ask := func(id int64) (UserJob, bool, error) { return Login{}.Job(t.Context(), cluster.JobID{ID: id}) }
	if j, known, err := ask(1); err != nil || !known || j.State != "PENDING" || j.Reason != "State" || j.Nodes != "" || j.Output != "/h/slurm-1.out" || j.Over() {
		t.Errorf("%+v, %v, %v", j, known, err)
	}
	if j, known, err := ask(2); err != nil || !known || j.Exit != "3:0" || j.Nodes != "v1" || !j.Over() {
		t.Errorf("%+v, %v, %v", j, known, err)
	}
	if _, known, err := ask(3); err != nil || known {
		t.Errorf("a job that Slurm has forgotten: %v, %v", known, err)
	}
	var e *Error
	if _, _, err := ask(4); !errors.As(err, &e) || !e.Unknown || !strings.Contains(err.Error(), "Unable to contact") {
		t.Errorf("without slurmctld: %v", err)
	}
	if _, _, err := ask(5); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("of nonsense: %v", err)
	}
}

// A job is submitted with the requested environment, even if its submitter's context has ended
// meanwhile.
func TestSubmitAsAUser(t *testing.T) {
	command(t, "sbatch", `[ "$1" = --parsable ] || exit 9
case $2 in
none) echo "sbatch: error: Invalid account" >&2; exit 1;;
odd) echo Submitted;;
*) echo "$((40+X));main";;
esac`)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	l := Login{Env: []string{"X=2"}}
	if id, err := l.Submit(gone, []string{"a.sh"}); err != nil || id.ID != 42 {
		t.Errorf("%v, %v", id, err)
	}
	if _, err := l.Submit(t.Context(), []string{"none"}); err == nil || !strings.Contains(err.Error(), "Invalid account") {
		t.Errorf("refused: %v", err)
	}
	if _, err := l.Submit(t.Context(), []string{"odd"}); err == nil || !strings.Contains(err.Error(), `"Submitted\n"`) {
		t.Errorf("another answer: %v", err)
	}
	t.Setenv("PATH", "")
	if _, err := l.Submit(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "cannot run Slurm's command sbatch") {
		t.Errorf("without sbatch: %v", err)
	}
}
