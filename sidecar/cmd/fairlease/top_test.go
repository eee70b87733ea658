package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"

	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/tests/seeds"
)

// terminal is a pseudo terminal with an emulator behind it.
type terminal struct {
	ours, theirs *os.File
	screen       *vt.SafeEmulator
	ended        chan int // exit code of the program

	lock sync.Mutex
	got  int // bytes from the program
}

// runTop runs fairlease top in a terminal.
func runTop(t *testing.T, at time.Time, env []string, width, height int, args ...string) *terminal {
	t.Helper()
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{ours: ours, theirs: theirs, screen: vt.NewSafeEmulator(width, height), ended: make(chan int, 1)}
	x.resize(t, width, height)
	go func() { // answers of the emulator to questions
		answer := make([]byte, 256)
		for {
			n, err := x.screen.Read(answer)
			if err != nil {
				return
			}
			_, _ = ours.Write(answer[:n])
		}
	}()
	over := make(chan struct{})
	go func() {
		defer close(over)
		part := make([]byte, 4096)
		for {
			n, err := ours.Read(part)
			if err != nil {
				return
			}
			x.lock.Lock()
			x.got += n
			x.lock.Unlock()
			_, _ = x.screen.Write(part[:n])
		}
	}()
	ctx, stop := context.WithCancel(t.Context())
	p := &program{out: theirs, err: &buffer{}, env: append([]string{"TZ=UTC", "TERM=xterm-256color"}, env...), clock: time.Now}
	if !at.IsZero() {
		p.clock = func() time.Time { return at }
	}
	go func() { x.ended <- p.run(ctx, append([]string{"top", "--every", "1s"}, args...), theirs) }()
	t.Cleanup(func() {
		stop()
		_ = theirs.Close()
		_ = ours.Close()
		_ = x.screen.Close()
		<-over
	})
	return x
}

func (x *terminal) resize(t *testing.T, width, height int) {
	t.Helper()
	x.screen.Resize(width, height)
	if err := pty.Setsize(x.ours, &pty.Winsize{Rows: uint16(height), Cols: uint16(width)}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil { // the kernel tells only those whose controlling terminal it is
		t.Fatal(err)
	}
}

// press sends keys.
func (x *terminal) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := x.ours.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

func (x *terminal) bytes() int {
	x.lock.Lock()
	defer x.lock.Unlock()
	return x.got
}

// text gives what the screen shows, without the line of the daemon.
func (x *terminal) text() string {
	lines := strings.Split(x.screen.String(), "\n")
	for i := range lines {
		lines[i] = leaders.ReplaceAllString(strings.TrimRight(lines[i], " "), "LEADER")
	}
	return strings.Join(lines, "\n") + "\n"
}

// leaders matches a line that depends on the database's clock.
var leaders = regexp.MustCompile(`^.*login1\.example\.org:4711.*$`)

// sees waits until the screen shows a text, and then for it to stand still.
func (x *terminal) sees(t *testing.T, what string) string {
	t.Helper()
	last := ""
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		now := x.text()
		if strings.Contains(now, what) && now == last {
			return now
		}
		if last = now; time.Now().After(end) {
			t.Fatalf("the screen does not show %q in 30 s:\n%s", what, now)
		}
	}
}

// Frames in a terminal of 80 x 24, with the keys of the footer, and in terminals of other sizes.
func TestTop(t *testing.T) {
	s := tell(t)
	x := runTop(t, s.end, append(s.env, "NO_COLOR=1"), 80, 24)
	golden(t, "top", x.sees(t, "6 jobs"))
	x.press(t, "s")
	golden(t, "top-by-gpus", x.sees(t, "sort (gpus)"))
	x.press(t, "\x1b[B\x1b[B")
	x.press(t, "/alice\r")
	golden(t, "top-filter", x.sees(t, "1 job\n"))
	x.press(t, "\x1b")
	x.sees(t, "enter explain\n")
	x.press(t, "/2\r\r")
	golden(t, "top-explain", x.sees(t, "As of"))
	x.press(t, "q?")
	golden(t, "top-help", x.sees(t, "this help"))
	x.press(t, "q\x1b")
	x.sees(t, "enter explain\n")
	x.resize(t, 120, 40)
	golden(t, "top-wide", x.sees(t, "could not start even on an empty"))
	x.resize(t, 50, 14)
	golden(t, "top-small", x.sees(t, "2 to 3 of 6 jobs"))
	x.resize(t, 30, 8)
	x.sees(t, "needs 40 x 12")
	x.press(t, "q")
	if code := <-x.ended; code != failure.OK {
		t.Errorf("exit code %d", code)
	}
	until(t, "the first screen is back", func() bool { return !x.screen.IsAltScreen() })
}

// Colours are used unless NO_COLOR is set, and a quiet site costs a slow line little.
func TestTopOnASlowLine(t *testing.T) {
	seeds.Slow(t)
	s := tell(t)
	for _, c := range []struct {
		env     string
		colours bool
	}{{"A=b", true}, {"NO_COLOR=1", false}} {
		x := runTop(t, time.Time{}, append(s.env, c.env), 80, 24)
		x.sees(t, "6 jobs")
		if got := regexp.MustCompile(`\x1b\[[0-9;]*3[0-7]m`).MatchString(x.screen.Render()); got != c.colours {
			t.Errorf("%s: colours: %v", c.env, got)
		}
		first := x.bytes()
		const looks = 4
		time.Sleep(looks * time.Second)
		if more := x.bytes() - first; more > looks*200 || first > 8000 {
			t.Errorf("%s: %d bytes for the first frame, %d in %d s", c.env, first, more, looks)
		} else {
			t.Logf("%s: %d bytes for the first frame, %d in %d s", c.env, first, more, looks)
		}
	}
}

// While the daemon or the database is away, the first line says so; top goes on when it is back.
func TestTopGoesOn(t *testing.T) {
	seeds.Slow(t)
	s := tell(t)
	w := serveWeb(t, s, "")
	open := s.gate(t)
	db := s.store
	for name, env := range map[string][]string{"journal": s.env, "server": w.offline(t)} {
		t.Run(name, func(t *testing.T) {
			x := runTop(t, time.Time{}, append(env, "NO_COLOR=1"), 80, 24)
			x.sees(t, "JOB")
			open(false)
			x.sees(t, "no answer since")
			open(true)
			until(t, "the site answers again", func() bool { return !strings.Contains(x.text(), "no answer since") })
			snap, plan, err := db.Rounds.Last(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			plan.Round++
			snap.Round++
			plan.State.Round++
			if err := s.world.Loop.Journal.Commit(t.Context(), snap, plan); err != nil {
				t.Fatal(err)
			}
			x.sees(t, fmt.Sprintf("round %d", plan.Round))
			until(t, "the daemon is away", func() bool { return strings.Contains(x.screen.String(), "gave no sign of life") })
			x.press(t, "\x03")
			if code := <-x.ended; code != failure.OK {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// Where there is no terminal that can move its cursor, the state is printed once.
func TestTopWithoutATerminal(t *testing.T) {
	s := tell(t)
	r := s.run(t, "top")
	lines := strings.SplitAfter(r.out, "\n")
	lines[0] = "LEADER\n"
	golden(t, "top-plain", strings.Join(lines, ""))
	if r.err != "" || strings.Contains(r.out, "\x1b") {
		t.Errorf("%q", r.err+r.out)
	}
	x := runTop(t, s.end, append(s.env, "TERM=dumb"), 80, 24)
	<-x.ended
	until(t, "the plain print", func() bool { return strings.Contains(x.screen.String(), "sweep") || strings.Contains(x.text(), "JOB") })
	if x.screen.IsAltScreen() {
		t.Error("a dumb terminal gets control sequences")
	}
	for _, args := range [][]string{{"top", "--every", "100ms"}, {"top", "x"}} {
		if r := s.run(t, args...); r.code != failure.Misuse {
			t.Errorf("%v: exit code %d", args, r.code)
		}
	}
}
