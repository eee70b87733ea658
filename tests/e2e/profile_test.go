package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/store/storetest"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// A user who has no right but to submit jobs measures a kind on all models with idle GPUs, in the middle of others'
// leases: the daemon learns from the same reports, and nobody is requeued.
func TestProfileOnIdleGPUs(t *testing.T) {
	o := testcluster.Options{Accounts: tenants(1, 1), Nodes: []testcluster.NodeGroup{
		{Prefix: "k", Count: 1, Model: "k80", GPUs: 4}, {Prefix: "p", Count: 1, Model: "p100", GPUs: 2}, {Prefix: "v", Count: 1, Model: "v100", GPUs: 4}}, Plugin: testcluster.PluginC}
	onBoth(t, o, func(t *testing.T, r *rig) {
		m := &site{rig: r, jobs: map[string]string{}}
		m.config = r.configure(fmt.Sprintf("preset: gandiva-fair\nmodels: {progress: {folder: %s}}\n", filepath.Dir(r.Home("alice"))))
		m.end = r.serve(m.config)
		m.db = storetest.Connect(t, r.dsn)
		r.heard()
		home := r.lends("alice")
		if err := os.WriteFile(filepath.Join(home, "train.sh"), fmt.Appendf(nil, runs, 10, 40), 0o755); err != nil {
			t.Fatal(err)
		}
		tried := r.tryRequeues(home)
		var others []string
		for _, gres := range []string{"k80:2", "p100:2", "v100:3"} {
			others = append(others, r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:"+gres))
		}
		r.until("others hold most GPUs", time.Minute, func() bool { return r.running("vision") == 7 })

		patient, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		const ask = "FAIRLEASE_PROGRESS_FOLDER=/home ./fairlease profile lstm -A nlp --minutes 1 train.sh "
		if out := r.asks("alice", ask+"--dry-run"); strings.Count("\n"+out, "\nenv ") != 2 || !strings.Contains(out, "# p100: 0 of 2 GPUs are idle") {
			t.Errorf("a dry run says\n%s", out)
		}
		byJournal := make(chan string)
		go func() {
			byJournal <- r.administers(patient, m.config, "alice", "profile", "vae", "-A", "nlp", "--minutes", "1", "--models", "k80", "--json", "train.sh")
		}()
		out, _ := r.Run(patient, "alice", "", "bash", "-c", ask+"; echo exit code $?")
		t.Logf("\n%s%s", out.Stdout, out.Stderr)
		speeds := map[string]string{}
		for line := range strings.Lines(out.Stdout) {
			if f := strings.Fields(line); len(f) > 6 && f[3] == "timeout" {
				speeds[f[0]] = f[6]
			}
		}
		var k, v float64
		_, _ = fmt.Sscan(speeds["k80"], &k)
		_, _ = fmt.Sscan(speeds["v100"], &v)
		if len(speeds) != 2 || k != 1 || v < 3.5 || v > 4.5 || !strings.Contains(out.Stdout, "0 of 2 GPUs are idle") || !strings.HasSuffix(out.Stdout, "exit code 1\n") {
			t.Errorf("speedups %v, want 1 on k80s and about 4 on v100s, and why there is none of p100s", speeds)
		}
		r.until("the daemon has learned the same", time.Minute, func() bool {
			return m.ask("select count(*) from fairlease.profiles where kind = $1 and source = 'observed' and samples >= 2 and model in ('k80', 'v100')", "nlp/lstm") == "2"
		})

		var trials []struct{ Profile struct{ Rate float64 } }
		if text := <-byJournal; json.Unmarshal([]byte(text), &trials) != nil || len(trials) != 1 || trials[0].Profile.Rate < 9 || trials[0].Profile.Rate > 11 {
			t.Errorf("read in the journal: %s", text)
		}

		// With every GPU taken a job waits for idle ones, though its tenant has none at all; an interrupt cancels it.
		others = append(others, r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:k80:2"), r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:v100:1"))
		r.until("others hold all GPUs", 2*time.Minute, func() bool { return r.running("vision") == 10 })
		out, _ = r.Run(patient, "alice", "", "bash", "-c", "FAIRLEASE_PROGRESS_FOLDER=/home timeout --preserve-status -s INT 30 ./fairlease profile lstm -A nlp --minutes 1 train.sh --models v100 --wait-for-idle; echo exit code $?; squeue -h -u alice")
		if !strings.Contains(out.Stdout, "cancelled before it started") || !strings.HasSuffix(out.Stdout, "exit code 1\n") || !strings.Contains(out.Stderr, "and none is left") {
			t.Errorf("interrupted while it waits:\n%s%s", out.Stdout, out.Stderr)
		}
		for _, id := range others {
			if j, err := r.Job(r.ctx(), id); err != nil || j["Restarts"] != "0" || j["JobState"] != "RUNNING" {
				t.Errorf("job %s: %s, %s restarts, %v", id, j["JobState"], j["Restarts"], err)
			}
		}
		tried()
		m.end(syscall.SIGTERM)
	})
}

// tryRequeues has alice try scripts that need no GPU, so that nobody gates them: one that saves and resumes, and one that
// does neither and truncates its output. The func that it returns waits for the findings, and checks them.
func (r *rig) tryRequeues(home string) (done func()) {
	const counts = `#!/bin/bash
#SBATCH --ntasks=1 --mem=100 %s
cat > count.$SLURM_JOB_ID <<'SH'
n=$(cat saved.$SLURM_JOB_ID 2>/dev/null || echo 0)
save() { %s; }
trap save USR1
trap 'save; exit 0' TERM
while :; do (trap '' USR1; exec sleep 1); n=$((n+1)); echo step $n; done
SH
srun bash count.$SLURM_JOB_ID
`
	type findings struct {
		Resumed string
		Kept    string `json:"output_kept"`
		Before  string
		After   string
		Changes []string
		Seconds float64
	}
	found := map[string]chan string{}
	for name, script := range map[string]string{
		"resumes":  fmt.Sprintf(counts, "--open-mode=append --comment=saves=notice", "echo $n > saved.$SLURM_JOB_ID; echo saved at step $n"),
		"restarts": fmt.Sprintf(counts, "--open-mode=truncate --comment=saves=notice", ":"),
	} {
		if err := os.WriteFile(filepath.Join(home, name+".sh"), []byte(script), 0o755); err != nil {
			r.t.Fatal(err)
		}
		out := make(chan string, 1)
		found[name] = out
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
			defer cancel()
			got, err := r.Run(ctx, "alice", "", "bash", "-c", "./fairlease try-requeue "+name+".sh --lease 45s --notice-time 4s --now --json")
			r.t.Logf("%s: %s%v", name, got.Stderr, err)
			out <- got.Stdout
		}()
	}
	return func() {
		for name, out := range found {
			var f findings
			text := <-out
			if err := json.Unmarshal([]byte(text), &f); err != nil {
				r.t.Errorf("%s: %s: %v", name, text, err)
				continue
			}
			r.t.Logf("try_requeue_s %.1f (%s, with a lease of 45 s): %+v", f.Seconds, name, f)
			want, kept, changes := "yes", "yes", 0
			if name == "restarts" {
				want, kept, changes = "no", "no", 2
			}
			if f.Resumed != want || f.Kept != kept || len(f.Changes) != changes {
				r.t.Errorf("%s: %+v, want resumed %s, output kept %s, %d changes", name, f, want, kept, changes)
			}
		}
	}
}

// administers runs the program on this machine, where the journal is, with Slurm's commands as a user has them in the
// cluster, in that user's home. It gives what was printed.
func (r *rig) administers(ctx context.Context, config, user string, args ...string) string {
	bin := r.t.TempDir()
	for _, name := range []string{"sbatch", "scontrol", "scancel"} {
		script := "#!/bin/sh\nexec " + strings.Join(r.Command(user, name), " ") + ` "$@"` + "\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			return err.Error()
		}
	}
	path, err := binary()
	if err != nil {
		return err.Error()
	}
	cmd := exec.CommandContext(ctx, path, append([]string{"-c", config}, args...)...)
	cmd.Dir, cmd.Env = r.Home(user), append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String() + errs.String() + err.Error()
	}
	return out.String()
}
