package trial_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/operate/trial"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// nodes gives nodes of one partition with all GPUs of a model each, and the given numbers of idle
// ones.
func nodes(model string, all int, idle ...int) (out []slurm.UserNode) {
	for _, n := range idle {
		out = append(out, slurm.UserNode{Node: cluster.Node{Partitions: []string{"gpu"}, GPUs: []cluster.GPUs{{Model: model, Count: all}}},
			Idle: []cluster.GPUs{{Model: model, Count: n}}})
	}
	return out
}

// Gangs use a minimum number of nodes, and the same number of GPUs on each.
func TestSpread(t *testing.T) {
	for _, c := range []struct {
		gang int
		on   []int
		wait bool
		want string // of sbatch's arguments, or the note
	}{
		{1, []int{0, 1}, false, "--nodes=1 --gres=gpu:v100:1"},
		{4, []int{3, 4}, false, "--nodes=1 --gres=gpu:v100:4"},
		{4, []int{3, 2}, false, "--nodes=2 --gres=gpu:v100:2"},
		{6, []int{5, 2, 2}, false, "--nodes=3 --gres=gpu:v100:2"},
		{5, []int{4, 1, 1, 1, 1}, false, "--nodes=5 --gres=gpu:v100:1"},
		{5, []int{4, 4}, false, "8 of 16 GPUs are idle, but not 5 of them together; --wait-for-idle waits for that"},
		{5, []int{1, 1}, false, "2 of 16 GPUs are idle; --wait-for-idle waits for more"},
		{5, []int{1, 1}, true, "--nodes=1 --gres=gpu:v100:5"},
		{9, []int{8, 8}, true, "its nodes cannot hold 9 GPUs, evenly spread"},
	} {
		o := &trial.Request{Kind: "bert", GPUs: c.gang, Idle: c.wait, Partitions: []string{"gpu"}}
		trials, err := o.Trials(nodes("v100", 8, c.on...))
		if err != nil || len(trials) != 1 {
			t.Fatalf("%v: %v", err, trials)
		}
		got := trials[0].Note
		if trials[0].State == "" {
			got = strings.Join(o.Sbatch(trials[0]), " ")
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%d GPUs on %v: %q, want %q", c.gang, c.on, got, c.want)
		}
	}
}

// There is a trial for each requested model that exists.
func TestModels(t *testing.T) {
	there := append(nodes("v100", 4, 4), nodes("gpu", 4, 4)...)
	for _, c := range []struct {
		models, partitions []string
		want               string // models, or the error
	}{
		{nil, []string{"gpu"}, "gpu skipped, v100 "},
		{[]string{"v100", "v100"}, []string{"gpu"}, "v100 "},
		{[]string{"k80"}, []string{"gpu"}, `--models: no node of partition gpu has a GPU model "k80"`},
		{nil, []string{"cpu"}, "no node of partition cpu has GPUs"},
	} {
		o := &trial.Request{GPUs: 1, Models: c.models, Partitions: c.partitions}
		trials, err := o.Trials(there)
		var got []string
		for _, x := range trials {
			got = append(got, x.Model+" "+x.State)
		}
		if err != nil {
			got = []string{err.Error()}
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%v of %v: %q, want %q", c.models, c.partitions, s, c.want)
		}
	}
}

// A script that requests other GPUs, or many jobs, is refused before any submission.
func TestCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "train.sh")
	for _, c := range []struct {
		request      trial.Request
		script, want string
	}{
		{trial.Request{Kind: "bert", GPUs: 1, Minutes: 1}, "#!/bin/bash\n#SBATCH --gres=gpu:8\n", ""},
		{trial.Request{Kind: "bert", GPUs: 0, Minutes: 1}, "#!/bin/bash\n", "--gpus=0"},
		{trial.Request{Kind: "nlp/bert", GPUs: 1, Minutes: 1}, "#!/bin/bash\n", "nlp/bert"},
		{trial.Request{Kind: "bert", GPUs: 1, Minutes: 1}, "python train.py\n", "begin with #!"},
		{trial.Request{Kind: "bert", GPUs: 1, Minutes: 1}, "#!/bin/bash\n#SBATCH -J x --array=1-9\n", "--array=1-9"},
	} {
		if err := os.WriteFile(path, []byte(c.script), 0o600); err != nil {
			t.Fatal(err)
		}
		c.request.Script = path
		err := c.request.Check()
		var f *failure.Error
		if c.want == "" {
			if err != nil {
				t.Error(err)
			}
		} else if !errors.As(err, &f) || f.Code != failure.Misuse || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.want, err)
		}
	}
}

// In the journal a job's kind is that of its tenant, and reports from before the job began do not
// count.
func TestLearn(t *testing.T) {
	id := cluster.JobID{ID: 7}
	snap := &cluster.Snapshot{Cases: []cluster.Case{{Job: cluster.Job{ID: id}, Record: cluster.Record{Tenant: "vision"}}}}
	observed := cluster.Profile{Kind: "vision/resnet50", Model: "k80", Gang: 1, Rate: 4, Samples: 3, Source: cluster.Observed, At: 100}
	plan := &cluster.Plan{}
	plan.State.Profiles = []cluster.Profile{observed, {Kind: "vision/resnet50", Model: "v100", Gang: 1, Rate: 9, Source: cluster.Declared, At: 200},
		{Kind: "nlp/resnet50", Model: "v100", Gang: 1, Rate: 9, Source: cluster.Observed, At: 200}, {Kind: "vision/resnet50", Model: "v100", Gang: 2, Rate: 9, Source: cluster.Observed, At: 200}}
	for _, c := range []struct {
		name string
		x    trial.Trial
		want bool
	}{
		{"its own", trial.Trial{Model: "k80", Job: "7", ID: id, Began: 100}, true},
		{"from before it began", trial.Trial{Model: "k80", Job: "7", ID: id, Began: 101}, false},
		{"not observed, not of its tenant, or of another gang", trial.Trial{Model: "v100", Job: "7", ID: id, Began: 1}, false},
		{"never submitted", trial.Trial{Model: "k80", ID: id}, false},
	} {
		(&trial.Request{Kind: "resnet50", GPUs: 1}).Learn(snap, plan, []*trial.Trial{&c.x})
		if (c.x.Profile != nil) != c.want || c.want && (c.x.Profile.Rate != 4 || c.x.Profile.Samples != 3 || c.x.Profile.At != 100) {
			t.Errorf("%s: %+v", c.name, c.x.Profile)
		}
	}
}
