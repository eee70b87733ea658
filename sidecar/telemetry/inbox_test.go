package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// munged starts a private munged for a test and gives its socket.
func munged(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("munged")
	if err != nil {
		if program = "/usr/sbin/munged"; exec.Command(program, "--version").Run() != nil {
			t.Skip("munged is not installed: run `apt-get install munge`")
		}
	}
	dir, err := os.MkdirTemp("", "munge") // short: a socket's path has at most 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, "key"), bytes.Repeat([]byte("fairlease"), 20), 0o600)); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	cmd := exec.Command(program, "--foreground", "--force", "--key-file="+in("key"), "--socket="+in("socket"),
		"--pid-file="+in("pid"), "--log-file="+in("log"), "--seed-file="+in("seed"))
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = nil
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, said)
		_ = cmd.Wait()
	})
	var all strings.Builder // it says when it is ready
	buffer := make([]byte, 4096)
	for !strings.Contains(all.String(), "work threads") {
		n, err := said.Read(buffer)
		if all.Write(buffer[:n]); err != nil {
			t.Fatalf("munged ended: %s", all.String())
		}
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	return in("socket")
}

// seal makes a credential of a report as the given user; 0 = this process's own.
func seal(t *testing.T, socket, report string, as uint32) []byte {
	t.Helper()
	cmd := exec.Command("munge", "--socket="+socket)
	cmd.Stdin = strings.NewReader(report)
	if as != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: as, Gid: as}}
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("munge: %v", err)
	}
	return out
}

// inbox serves an inbox on its own port; jobs 1 and 2_3 belong to this process's user, 5 to
// 65534.
func inbox(t *testing.T, open func(context.Context, []byte) (uint32, []byte, error)) (*Inbox, *time.Time, func(body []byte) (int, string, http.Header)) {
	t.Helper()
	now := time.UnixMilli(1_700_000_000_000)
	owners := map[cluster.JobID]uint32{{ID: 1}: uint32(os.Getuid()), cluster.TaskID(2, 3): uint32(os.Getuid()), {ID: 5}: 65534}
	b := &Inbox{Open: open, Now: func() time.Time { return now }, Every: 10 * time.Second, AtOnce: 4, Patience: time.Minute,
		Owner: func(id cluster.JobID) (uint32, bool) { uid, ok := owners[id]; return uid, ok }}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := b.Server()
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return b, &now, func(body []byte) (int, string, http.Header) {
		t.Helper()
		answer, err := http.Post("http://"+l.Addr().String()+"/v1/progress", "text/plain", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text), answer.Header
	}
}

// With a real munged: only a job's owner reports for it, once with each credential.
func TestAReportIsBelievedOfTheJobsOwner(t *testing.T) {
	socket := munged(t)
	b, now, post := inbox(t, Munge{Socket: socket}.Open)
	first := seal(t, socket, `{"job":"1","steps":100,"total":1000}`, 0)
	expect := func(what string, body []byte, code int, says string) {
		t.Helper()
		got, text, header := post(body)
		if got != code || !strings.Contains(text, says) {
			t.Errorf("%s: %d %q, want %d %q", what, got, text, code, says)
		}
		if later := code == http.StatusAccepted || code == http.StatusTooManyRequests; later && header.Get("Retry-After") != "10" {
			t.Errorf("%s: Retry-After is %q", what, header.Get("Retry-After"))
		}
	}
	expect("a report", first, http.StatusAccepted, "")
	expect("the same again", first, http.StatusUnauthorized, "it was used before")
	expect("too soon", seal(t, socket, `{"job":"1","steps":101}`, 0), http.StatusTooManyRequests, "once in 10 s is enough")
	expect("an array's task", seal(t, socket, `{"job":"2_3","steps":7}`, 0), http.StatusAccepted, "")
	expect("another's job", seal(t, socket, `{"job":"5","steps":7}`, 0), http.StatusForbidden, "job 5 is not a job of user")
	expect("no running job", seal(t, socket, `{"job":"6","steps":7}`, 0), http.StatusNotFound, "job 6 is not known to run")
	expect("no report", seal(t, socket, `steps=7`, 0), http.StatusBadRequest, "the report cannot be read")
	expect("no credential", []byte(`{"job":"1","steps":7}`), http.StatusUnauthorized, "it is no MUNGE credential")
	damaged := bytes.Clone(seal(t, socket, `{"job":"1","steps":7}`, 0))
	damaged[20] ^= 1
	if code, text, _ := post(damaged); code != http.StatusUnauthorized {
		t.Errorf("a damaged credential: %d %q", code, text)
	}
	expect("too long", bytes.Repeat([]byte("x"), 5*Most), http.StatusRequestEntityTooLarge, "4096 bytes are the most")
	if os.Getuid() == 0 {
		expect("its owner's", seal(t, socket, `{"job":"5","steps":9}`, 65534), http.StatusAccepted, "")
		expect("of a user who owns none", seal(t, socket, `{"job":"1","steps":9}`, 65534), http.StatusForbidden, "job 1 is not a job of user 65534")
	}
	*now = now.Add(10 * time.Second)
	expect("later", seal(t, socket, `{"job":"1","steps":200}`, 0), http.StatusAccepted, "")

	got, refused := b.Take()
	at := cluster.Instant(1_700_000_000_000)
	want := []cluster.Progress{{Job: cluster.JobID{ID: 1}, Steps: 200, At: at + 10_000}, {Job: cluster.TaskID(2, 3), Steps: 7, At: at}}
	if os.Getuid() == 0 {
		want = append(want, cluster.Progress{Job: cluster.JobID{ID: 5}, Steps: 9, At: at})
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("reports (-want +got):\n%s", d)
	}
	if refused < 8 {
		t.Errorf("%d reports were refused, want 8 or more", refused)
	}
	if again, _ := b.Take(); len(again) > 0 {
		t.Errorf("taken twice: %+v", again)
	}
}

// A save counts even if the job has just reported, and later reports without one do not hide it.
func TestASaveIsNotLost(t *testing.T) {
	b, now, post := inbox(t, func(_ context.Context, text []byte) (uint32, []byte, error) { return uint32(os.Getuid()), text, nil })
	expect := func(body string, code int) {
		t.Helper()
		if got, text, _ := post([]byte(body)); got != code {
			t.Errorf("%s: %d %q, want %d", body, got, text, code)
		}
	}
	expect(`{"job":"1","steps":100}`, http.StatusAccepted)
	*now = now.Add(time.Second)
	expect(`{"job":"1","steps":101,"saved":true}`, http.StatusAccepted)
	expect(`{"job":"1","steps":102,"saved":true}`, http.StatusTooManyRequests)
	expect(`{"job":"1","steps":102}`, http.StatusTooManyRequests)
	*now = now.Add(10 * time.Second)
	expect(`{"job":"1","steps":103}`, http.StatusAccepted)
	at := cluster.Instant(1_700_000_000_000)
	got, _ := b.Take()
	if d := cmp.Diff([]cluster.Progress{{Job: cluster.JobID{ID: 1}, Steps: 103, At: at + 11_000, Saved: at + 1000}}, got); d != "" {
		t.Errorf("reports (-want +got):\n%s", d)
	}
	*now = now.Add(10 * time.Second)
	expect(`{"job":"1","steps":104}`, http.StatusAccepted)
	if got, _ := b.Take(); len(got) != 1 || got[0].Saved != 0 {
		t.Errorf("a save is told twice: %+v", got)
	}
}

func TestWithoutMunged(t *testing.T) {
	if _, err := exec.LookPath("unmunge"); err != nil {
		t.Skip("unmunge is not installed: run `apt-get install munge`")
	}
	_, _, post := inbox(t, Munge{Socket: filepath.Join(t.TempDir(), "none")}.Open)
	if code, text, header := post([]byte("MUNGE:x:")); code != http.StatusServiceUnavailable || !strings.Contains(text, "munged cannot be asked") || header.Get("Retry-After") == "" {
		t.Errorf("%d %q", code, text)
	}
}

func TestOnlyProgressIsPosted(t *testing.T) {
	b, _, _ := inbox(t, nil)
	for _, x := range []struct {
		method, path string
		want         int
	}{{"GET", "/v1/progress", http.StatusMethodNotAllowed}, {"POST", "/", http.StatusNotFound}, {"POST", "/v1/progress/", http.StatusNotFound}} {
		r, err := http.NewRequestWithContext(t.Context(), x.method, "http://h"+x.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, no := b.serve(r); no == nil || no.code != x.want {
			t.Errorf("%s %s: %+v, want %d", x.method, x.path, no, x.want)
		}
	}
}

// Concurrent reports beyond the limit wait; after too long a wait they must be sent again later.
func TestCredentialsAreOpenedAFewAtATime(t *testing.T) {
	began, end := make(chan struct{}), make(chan struct{})
	b, _, post := inbox(t, func(context.Context, []byte) (uint32, []byte, error) {
		began <- struct{}{}
		<-end
		return uint32(os.Getuid()), []byte(`{"job":"1","steps":1}`), nil
	})
	b.AtOnce = 1
	done := make(chan int)
	go func() {
		code, _, _ := post(nil)
		done <- code
	}()
	<-began
	b.Patience = 0 // the slot is taken
	if code, text, header := post(nil); code != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("%d %q, want to be told to come again", code, text)
	}
	close(end)
	if code := <-done; code != http.StatusAccepted {
		t.Errorf("the first one: %d", code)
	}
}
