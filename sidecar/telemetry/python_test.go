package telemetry

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/tests/seeds"
)

// python runs a script with contrib's library, in a job.
func python(t *testing.T, script string, env ...string) string {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	cmd := exec.Command("python3", "-B", "-c", script)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/", "PYTHONPATH=../../contrib/python"}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// Reports of the library in contrib are accepted, in both ways, and refusals give reasons.
func TestThePythonLibraryReports(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, me.Username), 0o755); err != nil {
		t.Fatal(err)
	}
	named := []string{"SLURM_ARRAY_JOB_ID=2", "SLURM_ARRAY_TASK_ID=3", "SLURM_JOB_ID=17", "LOGNAME=" + me.Username, "FAIRLEASE_PROGRESS_FOLDER=" + dir}
	python(t, "import fairlease; fairlease.report(7, 70)", named...)
	d := &Spool{Folder: dir}
	task := cluster.TaskID(2, 3)
	got, wrong := d.Read([]Holder{{Job: task, User: me.Username, UID: uint32(os.Getuid())}}, 1<<60)
	if len(wrong) > 0 || len(got) != 1 || got[0].Job != task || got[0].Steps != 7 || got[0].Total != 70 {
		t.Errorf("left in the folder: %+v, %v", got, wrong)
	}
	python(t, "import fairlease, threading\nfairlease.progress(8); fairlease.saved(9, 70); fairlease.progress(10); fairlease.saved(11)\n[t.join() for t in threading.enumerate() if t is not threading.main_thread()]\nassert fairlease.last_error() is None", named...)
	got, wrong = d.Read([]Holder{{Job: task, User: me.Username, UID: uint32(os.Getuid())}}, 1<<60)
	if len(wrong) > 0 || len(got) != 1 || got[0].Steps != 9 || got[0].Saved == 0 || got[0].Saved != got[0].At {
		t.Errorf("a save left in the folder: %+v, %v", got, wrong)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(left) != 1 {
		t.Errorf("also left: %q", left)
	}

	for every, want := range map[string]string{"10": "10.0", "": "60.0", "soon": "60.0"} {
		if got := python(t, "import fairlease; print(fairlease.INTERVAL)", "FAIRLEASE_PROGRESS_EVERY="+every); got != want {
			t.Errorf("every %q it reports every %s seconds, want %s", every, got, want)
		}
	}

	socket := munged(t)
	b, _, _ := inbox(t, Munge{Socket: socket}.Open)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := b.Server()
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	bin := t.TempDir() // a munge that uses the test's munged
	script := "#!/bin/sh\nexec /usr/bin/munge --socket=" + socket + "\n"
	if err := os.WriteFile(filepath.Join(bin, "munge"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	at := []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "FAIRLEASE_PROGRESS_URL=http://" + l.Addr().String() + "/"}
	job := func(id string) []string { return append([]string{"SLURM_JOB_ID=" + id}, at...) }
	const told = "import fairlease\ntry:\n fairlease.report(%)\nexcept Exception as e: print(e)"
	if out := python(t, strings.Replace(told, "%", "9", 1), job("1")...); out != "" {
		t.Errorf("it is told %q", out)
	}
	if out := python(t, strings.Replace(told, "%", "9", 1), job("5")...); !strings.Contains(out, "403: job 5 is not a job of user") && os.Getuid() != 65534 {
		t.Errorf("of another's job it is told %q", out)
	}
	if out := python(t, strings.Replace(told, "%", "float('nan')", 1), job("1")...); !strings.Contains(out, "not JSON compliant") {
		t.Errorf("of NaN it is told %q", out)
	}
	reports, _ := b.Take()
	if diff := cmp.Diff([]cluster.Progress{{Job: cluster.JobID{ID: 1}, Steps: 9, At: 1_700_000_000_000}}, reports); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}

	// progress never raises, and sends nothing outside a job or from another process of it
	quiet := "import fairlease, threading\nfairlease.progress(1); fairlease.progress(2)\n[t.join() for t in threading.enumerate() if t is not threading.main_thread()]\nprint(fairlease.last_error())"
	if out := python(t, quiet, "SLURM_JOB_ID=2_3", "FAIRLEASE_PROGRESS_URL=http://"+l.Addr().String(), at[0]); out != "None" {
		t.Errorf("progress(): %s", out)
	}
	saves := strings.ReplaceAll(quiet, "progress", "saved")
	for _, env := range [][]string{at, append(job("1"), "SLURM_PROCID=3")} {
		for _, script := range []string{quiet, saves} {
			if out := python(t, script, env...); out != "None" {
				t.Errorf("progress(), saved(): %s", out)
			}
		}
	}
	if reports, refused := b.Take(); len(reports) != 1 || reports[0].Steps != 1 || refused != 0 {
		t.Errorf("progress() sent %+v, %d were refused", reports, refused)
	}
	if out := python(t, saves, append(at, "SLURM_JOB_ID=2_3")...); out != "None" {
		t.Errorf("saved(): %s", out)
	}
	if reports, refused := b.Take(); len(reports) != 1 || reports[0].Steps != 1 || reports[0].Saved == 0 || refused != 0 {
		t.Errorf("saved() sent %+v, %d were refused", reports, refused)
	}
	_ = server.Close()
	for _, script := range []string{quiet, saves} {
		if out := python(t, script, job("1")...); !strings.Contains(out, "refused") {
			t.Errorf("nobody there: %s", out)
		}
	}
}

// By TLS, the library in contrib reports with a token. It does not trust a server whose certificate nobody vouches for.
func TestThePythonLibraryReportsByToken(t *testing.T) {
	b, _, _ := inbox(t, nil)
	slurm := new(controller)
	b.Tokens = &Tokens{Ask: slurm.takes, Now: func() time.Time { return noon }}
	b.Number = func(user string) (uint32, bool) { return uint32(os.Getuid()), user == "me" }
	server := httptest.NewTLSServer(b)
	defer server.Close()
	authority := filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	const report = "import fairlease\ntry: fairlease.report(9)\nexcept OSError as e: print(e)"
	good := time.Since(noon) + time.Hour // the library looks at the real clock
	env := []string{"FAIRLEASE_AUTH=jwt", "SLURM_JOB_ID=1", "FAIRLEASE_PROGRESS_URL=" + server.URL, "SLURM_JWT=" + tokenOf("me", good, "here")}
	if out := python(t, report, env...); !strings.Contains(out, "CERTIFICATE_VERIFY_FAILED") || slurm.asked.Load() > 0 {
		t.Errorf("an unknown server: %q", out)
	}
	if out := python(t, report, append(env, "SSL_CERT_FILE="+authority)...); out != "" {
		t.Errorf("it is told %q", out)
	}
	if reports, _ := b.Take(); len(reports) != 1 || reports[0].Steps != 9 {
		t.Errorf("heard %+v", reports)
	}
}

// A client that must retry later does so, within limits, although the report was refused.
func TestThePythonLibraryComesAgainWhenItIsTold(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "munge"), []byte("#!/bin/sh\nexec cat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	const script = "import fairlease, time, fairlease._reports as reports\ntry: fairlease.report(1)\nexcept OSError: pass\nprint(round(max(reports._next - time.monotonic(), 0) / 10) * 10)"
	for _, x := range []struct {
		code  int
		again string
		want  string
	}{
		{http.StatusAccepted, "120", "120"}, {http.StatusTooManyRequests, "120", "120"}, {http.StatusServiceUnavailable, "240", "240"},
		{http.StatusTooManyRequests, "1e9", "3600"}, {http.StatusTooManyRequests, "inf", "3600"}, {http.StatusTooManyRequests, "nan", "0"}, {http.StatusTooManyRequests, "-5", "0"},
		{http.StatusTooManyRequests, "Fri, 31 Dec 1999 23:59:59 GMT", "0"}, {http.StatusAccepted, "soon", "0"}, {http.StatusTooManyRequests, "", "0"},
	}[:seeds.Some(4, 10)] {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if x.again != "" {
				w.Header().Set("Retry-After", x.again)
			}
			w.WriteHeader(x.code)
		}))
		got := python(t, script, "PATH="+bin+":"+os.Getenv("PATH"), "SLURM_JOB_ID=1", "FAIRLEASE_PROGRESS_URL="+server.URL)
		server.Close()
		if got != x.want {
			t.Errorf("%d, Retry-After %q: it comes again in %s s, want %s", x.code, x.again, got, x.want)
		}
	}
}
