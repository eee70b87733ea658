package daemon

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

func listen(t *testing.T) (*net.UnixConn, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "n")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, path
}

// The messages to the service manager in the life of a daemon.
func TestWhatTheServiceManagerHears(t *testing.T) {
	conn, path := listen(t)
	t.Setenv("NOTIFY_SOCKET", path)
	heard := make(chan string, 1000)
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := conn.Read(b)
			if err != nil {
				return
			}
			heard <- string(b[:n])
		}
	}()
	await := func(word string) {
		t.Helper()
		late := time.After(20 * time.Second)
		for {
			select {
			case got := <-heard:
				if strings.Contains(got, word) {
					return
				}
			case <-late:
				t.Fatalf("%s was not heard", word)
			}
		}
	}
	dir := t.TempDir()
	hangup := make(chan os.Signal, 1)
	cfg := settings(t, dir, short)
	d := &Daemon{Cluster: newLive(), Decide: simtest.Checked(t), Config: cfg, Hangup: hangup, Log: zerolog.Nop(),
		Manager: Manager{Watchdog: time.Second},
		Connect: func(context.Context) (Store, error) { return &desk{shared: newShared(), name: "a"}, nil },
		Reload:  func() (*config.Config, error) { return cfg, nil }}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Serve(ctx) }()
	await("READY=1")
	await("STATUS=round 1")
	await("WATCHDOG=1")
	hangup <- syscall.SIGHUP
	await("RELOADING=1")
	await("READY=1")
	stop()
	await("STOPPING=1")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// While a turn hangs, the watchdog gets no sign of life.
func TestWatchdogSeesAHangingTurn(t *testing.T) {
	d := &turns{}
	now := time.Now()
	if !d.alive(now) {
		t.Error("no turn is on, and all is not well")
	}
	d.began.Store(now.Add(-turnLimit).UnixMilli())
	if !d.alive(now) {
		t.Error("a long turn counts as hanging")
	}
	d.began.Store(now.Add(-turnLimit - 2*time.Minute).UnixMilli())
	if d.alive(now) {
		t.Error("a turn that hangs is not noticed")
	}
}

// After the clock was set back the next beat is far ahead: the daemon notices.
func TestStalledBeats(t *testing.T) {
	d := &turns{}
	now := time.Now()
	if d.stalled(now) {
		t.Error("stalled before the first turn")
	}
	d.ended.Store(now.Add(-time.Hour).UnixMilli())
	if d.stalled(now) {
		t.Error("stalled with a clock that goes forward")
	}
	d.ended.Store(now.Add(time.Hour).UnixMilli())
	if !d.stalled(now) {
		t.Error("a clock that was set back by an hour is not noticed")
	}
	d.began.Store(1)
	if d.stalled(now) {
		t.Error("stalled in the middle of a turn")
	}
}

// A service manager that does not read holds nobody up for long, whatever is told; one that reads again hears again.
func TestAServiceManagerThatDoesNotRead(t *testing.T) {
	conn, path := listen(t)
	t.Setenv("NOTIFY_SOCKET", path)
	m := &Manager{patience: 20 * time.Millisecond}
	silent, begin := 0, time.Now()
	for range 2000 {
		if err := m.tell("STATUS=a round"); errors.Is(err, errSilent) {
			silent++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begin); silent == 0 || took > 30*time.Second {
		t.Errorf("%d messages were not taken, in %s", silent, took)
	}
	b := make([]byte, 100)
	for deadline := time.Now().Add(20 * time.Second); m.tell("READY=1") != nil; {
		if time.Now().After(deadline) {
			t.Fatal("it is told nothing, though it reads")
		}
		for range 100 {
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
			if _, err := conn.Read(b); err != nil {
				break
			}
		}
	}
}
