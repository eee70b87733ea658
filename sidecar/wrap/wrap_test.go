package wrap

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain is the wrapper itself in the process that a test starts.
func TestMain(m *testing.M) {
	if os.Getenv("WRAP") != "" {
		if err := Exec(os.Args[1:], os.Environ()); err != nil {
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
	if err := Exec([]string{"--", "true"}, nil); err == nil || !strings.Contains(err.Error(), "python3") {
		t.Errorf("without python3: %v", err)
	}
}
