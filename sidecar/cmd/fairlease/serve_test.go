package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// buffer is output that is read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// until waits for a condition, with a deadline.
func until(t *testing.T, what string, yes func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !yes(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in 20 s: %s", what)
		}
	}
}

// The whole daemon in this process, on a real PostgreSQL: while Slurm is away it
// stays up and changes nothing, takes over a new configuration, and leaves cleanly.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "fairlease.yaml")
	text := fmt.Sprintf("mode: act\ninterval: 1s\nslurm: {address: 'unix://%s/none', retries: 0}\nfiles: {heartbeats: %s, state: %s/state.json}\n", dir, dir, dir)
	write(t, file, text)
	dsn := storetest.Database(t)
	ctx, stop := context.WithCancel(t.Context())
	var log buffer
	ended := make(chan int)
	go func() {
		ended <- Run(ctx, []string{"-c", file, "serve"}, strings.NewReader(""), io.Discard, &log, []string{"FAIRLEASE_DATABASE_URL=" + dsn})
	}()
	says := func(text string) func() bool { return func() bool { return strings.Contains(log.String(), text) } }
	until(t, "says that Slurm is away", says("no round; nothing is changed meanwhile"))

	s, err := store.Open(t.Context(), store.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if seat, err := s.Seated(t.Context()); err != nil || seat == nil || !strings.HasSuffix(seat.Holder, fmt.Sprintf(":%d", os.Getpid())) {
		t.Errorf("the seat is %+v (%v)", seat, err)
	}
	r := run(t, time.Time{}, []string{"FAIRLEASE_DATABASE_URL=" + dsn}, "-c", file, "round")
	if r.code != exitNo || !strings.Contains(r.err, "is seated since") || !strings.Contains(r.err, "--dry-run") {
		t.Errorf("a round by hand beside the daemon: exit code %d\n%s", r.code, r.err)
	}
	r = run(t, time.Time{}, []string{"FAIRLEASE_DATABASE_URL=" + dsn}, "-c", file, "release")
	if r.code != exitNo || !strings.Contains(r.err, "is seated and gates jobs again") {
		t.Errorf("a release beside the daemon: exit code %d\n%s", r.code, r.err)
	}

	write(t, file, text+"nonsense: 1\n")
	hangup(t)
	until(t, "refuses a wrong configuration", says("nonsense: unknown key"))
	write(t, file, strings.Replace(text, "mode: act", "mode: observe", 1))
	hangup(t)
	until(t, "takes over a new configuration", says("configuration taken over"))

	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if seat, err := s.Seated(t.Context()); err != nil || seat != nil {
		t.Errorf("the seat was not given up: %+v (%v)", seat, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "gpu")); err == nil {
		t.Error("a heartbeat though no round was made")
	}
}

// hangup sends SIGHUP to this process, which the daemon in it hears.
func hangup(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// A daemon that cannot ever work ends at once and says why.
func TestServeWithoutSchema(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"FAIRLEASE_DATABASE_URL=" + storetest.Empty(t), "run `fairlease migrate`"},
		{"NOTHING=1", "no database is configured"},
	} {
		r := run(t, time.Time{}, []string{c.env, "FAIRLEASE_CONFIG=" + empty(t)}, "serve")
		if r.code != exitUsage || !strings.Contains(r.err, c.want) {
			t.Errorf("exit code %d, want %d\n%s", r.code, exitUsage, r.err)
		}
	}
}

// After a clean stop nothing is released; else Slurm is asked.
func TestReleaseAfterCrash(t *testing.T) {
	env := []string{"FAIRLEASE_CONFIG=" + empty(t)}
	if r := run(t, time.Time{}, append(env, "SERVICE_RESULT=success"), "release", "--after-crash"); r.code != exitOK || !strings.Contains(r.out, "stopped cleanly") {
		t.Errorf("after a clean stop: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := run(t, time.Time{}, append(env, "SERVICE_RESULT=watchdog"), "release", "--after-crash"); r.code != exitAbsent {
		t.Errorf("after a crash, with Slurm away: exit code %d\n%s%s", r.code, r.out, r.err)
	}
}
