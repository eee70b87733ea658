// Package testsidecar runs the program fairlease as a daemon, looked after as systemd looks after it, for tests on a real Slurm.
package testsidecar

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Build compiles fairlease to the path bin.
func Build(ctx context.Context, bin string) error {
	out, err := exec.CommandContext(ctx, "go", "build", "-o", bin, "github.com/fairlease/fairlease/sidecar/cmd/fairlease").CombinedOutput()
	if err != nil {
		return fmt.Errorf("building fairlease: %w\n%s", err, out)
	}
	return nil
}

// Quoted gives the words of a command line as a list of YAML, without its brackets.
func Quoted(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(quoted, ", ")
}

// Daemon is `fairlease serve` with something like systemd over it, as etc/systemd/fairlease.service has it. It is safe for use by several
// goroutines.
type Daemon struct {
	Bin, Config, Log string // paths: the program, its configuration, and the log to which it appends
	Thaws            bool   // jobs take turns on GPUs: those that are suspended are resumed when it ends

	mu      sync.Mutex
	process *os.Process
	wanted  bool
	ended   chan struct{} // closed when nobody looks after it any longer; nil: it never ran
}

// Fairlease runs the program with the daemon's configuration and more environment, and gives what it printed.
func (d *Daemon) Fairlease(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, d.Bin, append([]string{"-c", d.Config}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Start has the daemon run until Stop.
func (d *Daemon) Start() error {
	ended := make(chan struct{})
	d.mu.Lock()
	d.wanted, d.ended = true, ended
	d.mu.Unlock()
	cmd, err := d.launch()
	if err != nil {
		close(ended)
		return err
	}
	go d.supervise(cmd, ended)
	return nil
}

func (d *Daemon) launch() (*exec.Cmd, error) {
	log, err := os.OpenFile(d.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	cmd := exec.Command(d.Bin, "-c", d.Config, "serve")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.wanted {
		return nil, nil
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d.process = cmd.Process
	return cmd, nil
}

// supervise does after each end of the daemon what systemd does, until the daemon is no longer wanted.
func (d *Daemon) supervise(cmd *exec.Cmd, ended chan<- struct{}) {
	defer close(ended)
	for cmd != nil {
		end := cmd.Wait()
		d.mu.Lock()
		d.process = nil
		d.mu.Unlock()
		if end != nil {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			out, err := d.Fairlease(ctx, []string{"SERVICE_RESULT=signal"}, "release", "--after-crash", "--patience", "5s")
			cancel()
			d.note("ended with %v; release --after-crash: %v: %s", end, err, strings.TrimSpace(out))
		}
		if d.Thaws {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			out, err := d.Fairlease(ctx, nil, "thaw", "--all")
			cancel()
			d.note("thaw --all: %v: %s", err, strings.TrimSpace(out))
		}
		time.Sleep(time.Second) // RestartSec
		var err error
		if cmd, err = d.launch(); err != nil {
			d.note("starting: %v", err)
		}
	}
}

// note appends a line to the daemon's log.
func (d *Daemon) note(format string, args ...any) {
	log, err := os.OpenFile(d.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer log.Close()
	fmt.Fprintf(log, "supervisor: %s %s\n", time.Now().UTC().Format(time.RFC3339), fmt.Sprintf(format, args...))
}

// Signal sends the daemon a signal, if it runs.
func (d *Daemon) Signal(s syscall.Signal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process != nil {
		_ = d.process.Signal(s) // it may have ended just now
	}
}

// Stop ends the daemon with a signal; it is not started again.
func (d *Daemon) Stop(s syscall.Signal) {
	d.mu.Lock()
	d.wanted = false
	running, ended := d.process != nil, d.ended
	d.mu.Unlock()
	if ended == nil {
		return
	}
	if running {
		d.Signal(syscall.SIGCONT)
		d.Signal(s)
	}
	select {
	case <-ended:
	case <-time.After(90 * time.Second):
		d.Signal(syscall.SIGKILL)
	}
}

// Pid gives the daemon's process id, 0 where it does not run.
func (d *Daemon) Pid() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process == nil {
		return 0
	}
	return d.process.Pid
}
