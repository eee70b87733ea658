package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// buffer is output that can be read while it is written.
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

// The whole daemon in this process, on a real PostgreSQL. While Slurm is away it stays up and
// changes nothing, applies a new configuration, and ends cleanly.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "fairlease.yaml")
	text := fmt.Sprintf("mode: act\ninterval: 1s\nslurm: {address: 'unix://%s/none', retries: 0}\nfiles: {heartbeats: %s, state: %s/state.json}\nmetrics: {listen: '127.0.0.1:0'}\n", dir, dir, dir)
	write(t, file, text)
	dsn := storetest.Database(t)
	ctx, stop := context.WithCancel(t.Context())
	var log buffer
	ended := make(chan int)
	go func() {
		ended <- Run(ctx, []string{"-c", file, "serve"}, strings.NewReader(""), io.Discard, &log, []string{"FAIRLEASE_DATABASE_URL=" + dsn})
	}()
	says := func(text string) func() bool { return func() bool { return strings.Contains(log.String(), text) } }
	until(t, "says that Slurm is away", says("round failed; nothing is changed until one succeeds"))
	until(t, "tells where its metrics are", says("metrics can be read"))
	at := regexp.MustCompile(`"address":"([^"]+)"`).FindStringSubmatch(log.String())[1]
	if status, text := get(t, "http://"+at+"/readyz"); status != http.StatusServiceUnavailable || !strings.HasPrefix(text, "no round yet: look at the cluster: ") ||
		!strings.Contains(text, "is slurmrestd running?") {
		t.Errorf("the daemon's readiness while Slurm is away: %d %s", status, text)
	}
	if status, text := get(t, "http://"+at+"/metrics"); status != http.StatusOK || !strings.Contains(text, "fairlease_ready 0\n") ||
		!strings.Contains(text, `fairlease_slurm_calls_total{call="get_openapi",result="failed"}`) {
		t.Errorf("status %d, metrics:\n%s", status, text)
	}

	s, err := store.Open(t.Context(), store.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if lead, err := s.Leader(t.Context()); err != nil || lead == nil || !strings.HasSuffix(lead.Holder, fmt.Sprintf(":%d", os.Getpid())) {
		t.Errorf("the lead is %+v (%v)", lead, err)
	}
	r := run(t, time.Time{}, []string{"FAIRLEASE_DATABASE_URL=" + dsn}, "-c", file, "round")
	if r.code != failure.No || !strings.Contains(r.err, "leads since") || !strings.Contains(r.err, "--dry-run") {
		t.Errorf("a round by hand beside the daemon: exit code %d\n%s", r.code, r.err)
	}
	r = run(t, time.Time{}, []string{"FAIRLEASE_DATABASE_URL=" + dsn}, "-c", file, "release")
	if r.code != failure.No || !strings.Contains(r.err, "leads and gates jobs again") {
		t.Errorf("a release beside the daemon: exit code %d\n%s", r.code, r.err)
	}

	write(t, file, text+"nonsense: 1\n")
	hangup(t)
	until(t, "refuses a wrong configuration", says("nonsense: unknown key"))
	write(t, file, "")
	hangup(t)
	until(t, "refuses an empty file", says("sets nothing: restore the file"))
	write(t, file, strings.Replace(text, "mode: act\n", "", 1))
	hangup(t)
	until(t, "refuses a file that lost its mode", says("mode: is not set any more: act was in force, and the default is observe"))
	if r := run(t, time.Time{}, nil, "-c", file, "config", "check"); !strings.Contains(r.out, "the daemon of this host refuses it without `fairlease config accept`") {
		t.Errorf("config check: %s%s", r.out, r.err)
	}
	if r := run(t, time.Time{}, nil, "-c", file, "config", "accept"); r.code != failure.OK || !strings.Contains(r.out, "accepted: "+file+": mode: is not set any more") {
		t.Errorf("config accept: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	until(t, "takes over what was accepted", says("configuration taken over"))
	if n := strings.Count(log.String(), "configuration taken over"); n != 1 {
		t.Errorf("%d configurations were taken over, one was accepted", n)
	}
	write(t, file, text)
	hangup(t)
	until(t, "acts again", func() bool { return strings.Count(log.String(), "configuration taken over") == 2 })
	// The log has that line already, so it is held back: another one tells.
	write(t, file, strings.NewReplacer("mode: act", "mode: observe\nqos: [long]", "retries: 0", "retries: 1").Replace(text))
	hangup(t)
	until(t, "takes over a new configuration", says("these changes need a restart"))

	stop()
	if code := <-ended; code != failure.OK {
		t.Errorf("exit code %d", code)
	}
	write(t, file, strings.Replace(text, "mode: act\n", "", 1))
	if r := run(t, time.Time{}, []string{"FAIRLEASE_DATABASE_URL=" + dsn}, "-c", file, "serve"); r.code != failure.Misuse || !strings.Contains(r.err, "fairlease config accept") {
		t.Errorf("a start with a file that lost its QOS: exit code %d\n%s", r.code, r.err)
	}
	if lead, err := s.Leader(t.Context()); err != nil || lead != nil {
		t.Errorf("the lead was not given up: %+v (%v)", lead, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "gpu")); err == nil {
		t.Error("a heartbeat though no round was made")
	}
}

// get reads an address of the daemon.
func get(t *testing.T, url string) (status int, text string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

// hangup sends SIGHUP to this process and so to its daemon.
func hangup(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// A daemon that can never work ends at once and says why.
func TestServeWithoutSchema(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"FAIRLEASE_DATABASE_URL=" + storetest.Empty(t), "run `fairlease migrate`"},
		{"NOTHING=1", "no database is configured"},
	} {
		r := run(t, time.Time{}, []string{c.env, "FAIRLEASE_CONFIG=" + empty(t)}, "serve")
		if r.code != failure.Misuse || !strings.Contains(r.err, c.want) {
			t.Errorf("exit code %d, want %d\n%s", r.code, failure.Misuse, r.err)
		}
	}
}

// After a crash only the daemon that had the lead last is released, and only while no daemon has
// the lead. Slurm is away here: a release that gets to query it ends with failure.Absent.
func TestReleaseAfterCrash(t *testing.T) {
	here, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	dead, alive := fmt.Sprintf("%s:%d", here, gone.Process.Pid), fmt.Sprintf("%s:%d", here, os.Getpid())
	for _, c := range []struct {
		name    string
		result  string   // $SERVICE_RESULT
		holders []string // of the lead, one after the other; all but the last have ended
		over    bool     // the last has ended, too
		term    int64    // in the state file
		code    int
		want    string
	}{
		{"clean stop", "success", []string{dead}, false, 1, failure.OK, "stopped cleanly"},
		{"leading last", "watchdog", []string{dead}, false, 1, failure.Absent, ""},
		{"leading last and resigned", "exit-code", []string{dead}, true, 1, failure.Absent, ""},
		{"standby", "signal", []string{"other.example.org:7"}, false, 0, failure.OK, "the daemon that crashed was not the last leader, other.example.org:7 was (term 1)"},
		{"standby on the host of the leading one", "signal", []string{alive}, false, 1, failure.OK, alive + " leads"},
		{"another led since", "oom-kill", []string{dead, "other.example.org:7"}, true, 1, failure.OK, "other.example.org:7 was (term 2)"},
		{"another leads", "oom-kill", []string{dead, "other.example.org:7"}, false, 1, failure.OK, "other.example.org:7 was (term 2)"},
		{"never leading", "signal", nil, false, 0, failure.OK, "no daemon has ever led"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := storetest.Database(t)
			s, err := store.Open(t.Context(), store.Config{DSN: dsn})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for i, holder := range c.holders {
				lead, err := s.Acquire(t.Context(), holder)
				if err != nil {
					t.Fatal(err)
				}
				if i+1 < len(c.holders) || c.over {
					if err := lead.Resign(t.Context()); err != nil {
						t.Fatal(err)
					}
				} else if holder == alive {
					keep(t, lead)
				}
			}
			r := run(t, time.Time{}, crashed(t, dsn, c.result, c.term), "release", "--after-crash", "--patience", "1s")
			if r.code != c.code || !strings.Contains(r.out, c.want) {
				t.Errorf("exit code %d, want %d and %q\n%s%s", r.code, c.code, c.want, r.out, r.err)
			}
			last, err := s.LastLeadership(t.Context())
			if err != nil || c.code == failure.Absent && (last.Holder != alive || !last.Ended) {
				t.Errorf("a release that works has the lead meanwhile; the last one in it was %+v (%v)", last, err)
			}
			if c.code == failure.OK && last != nil && last.Term != int64(len(c.holders)) {
				t.Errorf("the lead was taken though nothing was released: %+v", last)
			}
		})
	}
	for name, dsn := range map[string]string{"PostgreSQL is away": "postgres:///none?host=" + t.TempDir(), "schema mismatch": storetest.Empty(t)} {
		r := run(t, time.Time{}, crashed(t, dsn, "exit-code", 1), "release", "--after-crash")
		if r.code != failure.OK || !strings.Contains(r.out, "nothing is released: PostgreSQL cannot say whether another daemon leads") || !strings.Contains(r.out, "lapse by themselves") {
			t.Errorf("%s: exit code %d\n%s%s", name, r.code, r.out, r.err)
		}
	}
}

// keep gives signs of life of a lead until the test ends, or stop is called.
func keep(t *testing.T, lead *store.Leadership) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			_ = lead.Keep(ctx)
			time.Sleep(50 * time.Millisecond)
		}
	})
	stop = func() { cancel(); done.Wait() }
	t.Cleanup(stop)
	return stop
}

// crashed gives the environment of a release after a daemon's crash, with a state file of that
// term.
func crashed(t *testing.T, dsn, result string, term int64) []string {
	t.Helper()
	dir := t.TempDir()
	state := filepath.Join(dir, "state.json")
	write(t, state, fmt.Sprintf("fairlease state 1\n{\"written\":1,\"term\":%d,\"jobs\":[]}", term))
	file := filepath.Join(dir, "fairlease.yaml")
	write(t, file, fmt.Sprintf("slurm: {address: 'unix://%s/none', retries: 0}\nfiles: {heartbeats: %s, state: %s}\n", dir, dir, state))
	return []string{"FAIRLEASE_CONFIG=" + file, "FAIRLEASE_DATABASE_URL=" + dsn, "SERVICE_RESULT=" + result}
}
