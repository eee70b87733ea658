//go:build linux

package scheduler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Limits of what a scheduler may write: its answer, with so much more for each job of its view, and what is kept of its standard error.
const (
	mostAnswer, mostPerJob = 1 << 20, 64
	mostSaid               = 2 << 10
)

// Ask runs a scheduler on a view and returns its answer, and the end of what it wrote to its standard error. The process gets few environment
// variables and the folder /, and is killed with its group at the deadline, and when it has ended.
func Ask(ctx context.Context, s *cluster.VCScheduler, v *View) (turns []cluster.VCTurn, said string, err error) {
	file, err := Trusted(s.Command, uint32(os.Getuid()))
	if err != nil {
		return nil, "", err
	}
	in, err := json.Marshal(v)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Deadline.Duration())
	defer cancel()
	c := exec.CommandContext(ctx, file)
	c.Args = s.Command // the name as written: some programs go by it
	out, told := &limited{most: mostAnswer + mostPerJob*len(v.Jobs), full: cancel}, &tail{}
	c.Stdin, c.Stdout, c.Stderr, c.Dir = bytes.NewReader(in), out, told, "/"
	c.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/"}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	// Only before the program is waited for is its number certain to be its own.
	c.Cancel = sync.OnceValue(func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })
	c.WaitDelay = 100 * time.Millisecond // for children that keep its output open
	runtime.LockOSThread()               // the process dies with this thread
	defer runtime.UnlockOSThread()
	if err = c.Start(); err != nil {
		return nil, "", fmt.Errorf("it cannot be started: %w", err)
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = unix.Waitid(unix.P_PID, c.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
	_ = c.Cancel() // its children
	err = c.Wait()
	said = told.String()
	var exit *exec.ExitError
	switch {
	case out.over:
		return nil, said, fmt.Errorf("its answer is longer than %d bytes for %d jobs", out.most, len(v.Jobs))
	case ctx.Err() != nil:
		return nil, said, fmt.Errorf("its deadline of %s passed", s.Deadline.Exact())
	case errors.As(err, &exit):
		return nil, said, fmt.Errorf("it ended with %s", exit.ProcessState)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, said, err
	}
	turns, err = Parse(out.text, v)
	return turns, said, err
}

// limited keeps what is written up to a length, and calls full at the first byte beyond.
type limited struct {
	text []byte
	most int
	over bool
	full func()
}

func (l *limited) Write(p []byte) (int, error) {
	if len(l.text)+len(p) > l.most {
		l.over = true
		l.full()
		return 0, io.ErrShortWrite
	}
	l.text = append(l.text, p...)
	return len(p), nil
}

// tail keeps the end of what is written.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p[max(len(p)-mostSaid, 0):]...)
	t.text = t.text[max(len(t.text)-mostSaid, 0):]
	return len(p), nil
}

// String returns the last lines.
func (t *tail) String() string { return strings.ToValidUTF8(strings.TrimSpace(string(t.text)), "?") }
