package testcluster_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/slurm"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// hintsAreCarried shows that hints reach the sidecar, by the SPANK plugin or without it, that their mistakes are told and fail nothing, and
// that the site's variables reach jobs.
func hintsAreCarried(t *testing.T, c *testcluster.Cluster) {
	ctx := t.Context()
	withSpank := c.Options.Plugin == testcluster.PluginC
	beat(t, c, "gpu", 0)
	observer, err := slurm.New(slurm.Config{Address: "unix://" + c.RestSocket(), Scontrol: c.Scontrol()})
	if err != nil {
		t.Fatal(err)
	}
	defer observer.Close()
	for _, test := range []struct {
		name, options, text, env string // options of sbatch, lines of its script, FAIRLEASE_HINTS
		spank                    bool   // needs the SPANK plugin
		want                     cluster.Hints
		says                     []string
	}{
		{name: "option", options: "--fairlease=kind=a;mem.v100=30g,signal=B:TERM --comment={\"APS\":\"kind=x\"}", env: "kind=b", spank: true,
			want: cluster.Hints{Kind: "a", Memory: []cluster.GPUMemory{{Model: "v100", Bytes: 30 << 30}}, Signal: "TERM", SignalTo: "batch"}},
		{name: "option in the script", text: "#SBATCH --fairlease=kind=c\n", spank: true, want: cluster.Hints{Kind: "c"}},
		{name: "option on the command line and in the script", options: "--fairlease=steps=5", text: "#SBATCH --fairlease=kind=c\n", spank: true,
			want: cluster.Hints{Steps: 5}},
		{name: "environment that is not exported", options: "--export=NONE", env: "kind=d,fl:begin=0", spank: true, want: cluster.Hints{Kind: "d"},
			says: []string{"fairlease: ignored: fl:begin=0: unknown; hints are kind="}},
		{name: "mistakes", options: "--fairlease=kind=a/b,mem.v100=4,gpus=idle", spank: true, want: cluster.Hints{Idle: true},
			says: []string{"fairlease: ignored: kind=a/b: a kind is up to", "fairlease: ignored: mem.v100=4: write GPU memory with its unit"}},
		{name: "environment", env: "kind=e gpus=idle", want: cluster.Hints{Kind: "e", Idle: true}},
		{name: "wckey", options: "--wckey=kind=f,steps=7 --comment=steps=8", env: "signal=none", want: cluster.Hints{Kind: "f", Steps: 8, Signal: "none"}},
	} {
		if test.spank && !withSpank {
			continue
		}
		argv := []string{"env", "FAIRLEASE_HINTS=" + test.env, "sbatch", "--parsable", "--gres=gpu:1"}
		if test.env == "" {
			argv = slices.Delete(argv, 0, 2)
		}
		out, err := c.Run(ctx, "alice", "#!/bin/bash\n"+test.text+"sleep 30\n", append(argv, strings.Fields(test.options)...)...)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		for _, says := range append(test.says, "fairlease: this job waits for a GPU lease of ") {
			if !strings.Contains(out.Stderr, says) {
				t.Errorf("%s: the user read %q, not %q", test.name, out.Stderr, says)
			}
		}
		if n := strings.Count(out.Stderr, "ignored"); n != len(test.says) {
			t.Errorf("%s: %d mistakes: %s", test.name, n, out.Stderr)
		}
		seen, err := observer.Observe(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		id := strings.TrimSpace(out.Stdout)
		i := slices.IndexFunc(seen.Jobs, func(j cluster.Job) bool { return j.ID.String() == id })
		if i < 0 || !seen.Jobs[i].Marked || seen.Jobs[i].MarkedBegin != 0 || seen.Jobs[i].Hints == nil {
			t.Errorf("%s: job %s of %+v", test.name, id, seen.Jobs)
		} else {
			got := *seen.Jobs[i].Hints
			got.Wrong = nil
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", test.name, d)
			}
		}
		if _, err := c.Exec(ctx, "root", "scancel", id); err != nil {
			t.Error(err)
		}
	}
	const show = "#!/bin/bash\nenv\nFAIRLEASE_PROGRESS_URL=mine srun -n1 env\n"
	if withSpank {
		out, err := c.Run(ctx, "alice", "", "srun", "-p", "free", "--fairlease=sorts=1", "true")
		if err != nil || !strings.Contains(out.Stderr, "ignored: sorts=1: unknown") {
			t.Errorf("srun: %v, the user read %q", err, out.Stderr)
		}
		if out, err := c.Run(ctx, "alice", "", "salloc", "-p", "free", "srun", "--fairlease=kind=a", "true"); err != nil || !strings.Contains(out.Stderr, "ignored for a step") {
			t.Errorf("srun in a job: %v, the user read %q", err, out.Stderr)
		}
	}
	id, err := c.Sbatch(ctx, "alice", show, "-p", "free", "-o", "/home/alice/shown")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.WaitJob(ctx, id, 30*time.Second, testcluster.InState("COMPLETED", "FAILED")); err != nil {
		t.Fatal(err)
	}
	shown, err := os.ReadFile(filepath.Join(c.Home("alice"), "shown"))
	if err != nil || strings.Count(string(shown), "FAIRLEASE_PROGRESS_URL=http://head:1\n") != 1 || strings.Count(string(shown), "FAIRLEASE_PROGRESS_URL=mine\n") != 1 {
		t.Errorf("the batch script and its step have %s, %v", shown, err)
	}
}

// setVariables lets the cluster set FAIRLEASE_PROGRESS_URL in all jobs: in plugstack.conf, or without the SPANK plugin in a TaskProlog.
func setVariables(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	conf := filepath.Join(c.Dir, "conf")
	if c.Options.Plugin == testcluster.PluginC {
		line := "optional spank_fairlease.so FAIRLEASE_PROGRESS_URL=http://head:1 PATH=/x FAIRLEASE\n"
		if err := os.WriteFile(filepath.Join(conf, "plugstack.conf"), []byte(line), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	prolog, err := os.ReadFile("../../contrib/task_prolog.sh")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(prolog), "http://slurm1:8765", "http://head:1", 1)
	if err := os.WriteFile(filepath.Join(conf, "task_prolog.sh"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// taskProlog is the line of slurm.conf that names contrib/task_prolog.sh; setVariables puts it there.
var taskProlog = map[testcluster.Plugin]string{testcluster.PluginLua: "TaskProlog=/etc/slurm/task_prolog.sh\n"}
