package operate

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain is the wrapper itself in the process that a test starts.
func TestMain(m *testing.M) {
	if os.Getenv("WRAP") != "" {
		if err := ExecWrapper(os.Args[1:], os.Environ()); err != nil {
			_, _ = os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// wrapped makes a command that runs a shell script in a job, by the wrapper.
func wrapped(t *testing.T, script string, options ...string) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		if os.Getenv("FAIRLEASE_FULL") != "" {
			t.Fatal(err)
		}
		t.Skip("needs python3, which make deps installs")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], append(options, "--", "/bin/sh", "-c", script)...)
	cmd.Env = append(os.Environ(), "WRAP=1", "SLURM_JOB_ID=1")
	return cmd
}

// The command's arguments and exit code pass; after a notice the wrapper waits for the requeue's SIGTERM. The library's
// own tests have the other cases.
func TestTheWrapperRunsFromTheBinary(t *testing.T) {
	cmd := wrapped(t, `echo "$0"; exit 7`)
	out, _ := cmd.Output()
	if string(out) != "/bin/sh\n" || cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("it says %q and ends with %v", out, cmd.ProcessState)
	}

	cmd = wrapped(t, `trap 'echo saved; exit 0' HUP; echo ready; while :; do sleep 0.1; done`, "--signal", "HUP")
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout // in the order in which it is written
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for _, x := range []struct {
		want string
		then syscall.Signal
	}{{"ready", syscall.SIGUSR1}, {"saved", 0}, {"waiting for the requeue", syscall.SIGTERM}} {
		for lines.Scan() && !strings.Contains(lines.Text(), x.want) {
			if !strings.Contains(lines.Text(), "fairlease run: notice") {
				t.Fatalf("it says %q, want %q", lines.Text(), x.want)
			}
		}
		if x.then == 0 {
			continue
		}
		if err := cmd.Process.Signal(x.then); err != nil {
			t.Fatal(err)
		}
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 143 {
		t.Errorf("after the requeue it ends with %d, want 143", got)
	}
}

func TestWithoutPython(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := ExecWrapper([]string{"--", "true"}, nil); err == nil || !strings.Contains(err.Error(), "python3") {
		t.Errorf("without python3: %v", err)
	}
}

// The library that the binary carries counts the steps of a PyTorch script, here with a double of PyTorch.
func TestStepsAreCountedFromTheBinary(t *testing.T) {
	home := t.TempDir()
	report := filepath.Join(home, "reports", "me", "1.json")
	for path, text := range map[string]string{
		"reports/me/none":             "",
		"lib/torch/__init__.py":       "",
		"lib/torch/optim/__init__.py": "",
		"lib/torch/optim/optimizer.py": `hooks = []
register_optimizer_step_post_hook = hooks.append
`,
		"train.py": `import os, time
from torch.optim import optimizer
end, sgd = time.monotonic() + 50, type("SGD", (), {"state": {}})
while not os.path.exists("` + report + `") and time.monotonic() < end:
    for hook in optimizer.hooks: hook(sgd, (), {})
    time.sleep(0.01)
`,
	} {
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := wrapped(t, "exec python3 "+filepath.Join(home, "train.py"))
	cmd.Env = append(cmd.Env, "LOGNAME=me", "PYTHONPATH="+filepath.Join(home, "lib"), "PYTHONDONTWRITEBYTECODE=1", "FAIRLEASE_PROGRESS_FOLDER="+filepath.Join(home, "reports"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got, err := os.ReadFile(report); err != nil || !strings.Contains(string(got), `"steps": 1.0`) {
		t.Errorf("the report is %q, %v; the script says %s", got, err, out)
	}
}
