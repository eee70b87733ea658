package telemetry

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// asking is an inbox of jobs 1 (leased) and 2 of user 7, and 5 of user 8. post sends "USER TEXT" in place of a credential.
func asking(t *testing.T) (b *Inbox, now *time.Time, post func(path, credential string) *httptest.ResponseRecorder) {
	at := time.UnixMilli(1_700_000_000_000)
	owners := map[cluster.JobID]uint32{{ID: 1}: 7, {ID: 2}: 7, {ID: 5}: 8}
	b = &Inbox{Now: func() time.Time { return at }, Every: 10 * time.Second, AtOnce: 2, Patience: time.Minute,
		Owner: func(id cluster.JobID) (uint32, bool) { uid, ok := owners[id]; return uid, ok },
		Lease: func(id cluster.JobID) (Term, bool) {
			return Term{End: 1_700_000_900_000, Notice: cluster.Minute, GPUs: cluster.CountOf(4), Model: "v100", Renewed: Undecided}, id.ID == 1
		},
		Open: func(_ context.Context, credential []byte) (uint32, []byte, error) {
			user, text, ok := strings.Cut(string(credential), " ")
			if !ok {
				return 0, nil, &Refused{"it is no MUNGE credential"}
			}
			return map[string]uint32{"alice": 7, "bob": 8}[user], []byte(text), nil
		}}
	return b, &at, func(path, credential string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		b.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(credential)))
		return w
	}
}

// A job learns the end of its term and when the renewal is decided, and when its next question is useful.
func TestAJobAsksForItsLease(t *testing.T) {
	b, now, post := asking(t)
	is := func(what string, w *httptest.ResponseRecorder, code int, again, text string) {
		t.Helper()
		if w.Code != code || w.Header().Get("Retry-After") != again || !strings.Contains(w.Body.String(), text) {
			t.Errorf("%s: %d, Retry-After %q, %s; want %d, %q, %s", what, w.Code, w.Header().Get("Retry-After"), w.Body, code, again, text)
		}
	}
	is("in the middle of the term", post("/v1/lease", `alice {"job":"1"}`), 200, "60",
		`{"job":"1","ends":1700000900,"notice":60,"gpus":4,"model":"v100","renewed":"undecided"}`)
	is("at once again", post("/v1/lease", `alice {"job":"1"}`), 429, "10", "job 1 has just asked; once in 10 s is enough")
	is("a report meanwhile", post("/v1/progress", `alice {"job":"1","steps":5}`), 202, "10", "")
	is("a job without a lease", post("/v1/lease", `alice {"job":"2"}`), 200, "60", `{"job":"2"}`+"\n")
	*now = now.Add(810 * time.Second)
	is("half a minute before the decision", post("/v1/lease", `alice {"job":"1"}`), 200, "30", "undecided")
	*now = now.Add(35 * time.Second)
	is("after it", post("/v1/lease", `alice {"job":"1"}`), 200, "10", "undecided")
	b.Take() // a round between
	*now = now.Add(5 * time.Second)
	is("soon again, in the next round", post("/v1/lease", `alice {"job":"1"}`), 429, "5", "has just asked")
}

// Questions for other users' jobs, for unknown jobs and without a good credential are refused, and bounded.
func TestQuestionsThatAreRefused(t *testing.T) {
	b, _, post := asking(t)
	for _, x := range []struct {
		credential, want string
		code             int
	}{
		{`bob {"job":"1"}`, "job 1 is not a job of user 8", 403},
		{`alice {"job":"5"}`, "job 5 is not a job of user 7", 403},
		{`alice {"job":"6"}`, "job 6 is not known to run", 404},
		{`alice {"job":"x"}`, "is no job id", 400},
		{`alice {"job":1}`, "the question cannot be read", 400},
		{`alice {"job":"1","steps":4}`, "the question cannot be read", 400},
		{`alice ` + strings.Repeat(" ", Most+1), "the question has 1025 bytes; 1024 is the most", 400},
		{strings.Repeat("x", 4*Most+1), "too long", 413},
		{`nonsense`, "the credential is refused", 401},
	} {
		if w := post("/v1/lease", x.credential); w.Code != x.code || !strings.Contains(w.Body.String(), x.want) || strings.Contains(w.Body.String(), "v100") {
			t.Errorf("%.40q: %d %s, want %d %s", x.credential, w.Code, w.Body, x.code, x.want)
		}
	}
	for range mostBlame { // no lease may be fished for
		post("/v1/lease", `bob {"job":"1"}`)
	}
	if w := post("/v1/lease", `bob {"job":"5"}`); w.Code != 429 || !strings.Contains(w.Body.String(), "not looked at for a while") {
		t.Errorf("after many refused questions: %d %s", w.Code, w.Body)
	}
	if _, refused := b.Take(); refused != 9+mostBlame+1 {
		t.Errorf("%d requests were refused, want %d", refused, 9+mostBlame+1)
	}
	b.Lease = nil
	if w := post("/v1/lease", `alice {"job":"1"}`); w.Code != 404 {
		t.Errorf("an inbox that knows no leases: %d %s", w.Code, w.Body)
	}
	w := httptest.NewRecorder()
	b, _, _ = asking(t)
	b.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/lease", nil))
	if w.Code != 405 || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: %d, allowed is %q", w.Code, w.Header().Get("Allow"))
	}
}

// The files of leases follow the leases; unchanged files are not written again, and files of an earlier process go.
func TestLeasesInFiles(t *testing.T) {
	dir := t.TempDir()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, name := range []string{"9.json", "9_1.json", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	n := &Notices{Folder: dir}
	one, two := cluster.JobID{ID: 1}, cluster.TaskID(2, 3)
	term := Term{End: 5000, Notice: cluster.Second, GPUs: cluster.CountOf(1), Model: "k80", Renewed: Undecided}
	if err := n.Write(map[cluster.JobID]Term{one: term, two: term}); err != nil {
		t.Fatal(err)
	}
	if got, want := read("2_3.json"), `{"job":"2_3","ends":5,"notice":1,"gpus":1,"model":"k80","renewed":"undecided"}`+"\n"; got != want {
		t.Errorf("the file says %s, want %s", got, want)
	}
	if read("9.json")+read("9_1.json") != "" || read("notes.txt") != "old" {
		t.Error("files of jobs that have ended must go, and no others")
	}
	if err := os.WriteFile(filepath.Join(dir, "1.json"), []byte("untouched"), 0o644); err != nil {
		t.Fatal(err)
	}
	refused := term
	refused.Renewed = RenewedNo
	if err := n.Write(map[cluster.JobID]Term{one: term, two: refused}); err != nil {
		t.Fatal(err)
	}
	if read("1.json") != "untouched" || !strings.Contains(read("2_3.json"), `"renewed":"no"`) {
		t.Errorf("the files say %s and %s", read("1.json"), read("2_3.json"))
	}
	if err := n.Write(nil); err != nil || read("1.json")+read("2_3.json") != "" {
		t.Errorf("without leases: %v, %s%s", err, read("1.json"), read("2_3.json"))
	}
	n.Folder = filepath.Join(dir, "gone")
	if err := n.Write(map[cluster.JobID]Term{one: term}); err == nil {
		t.Error("a folder that is gone is no error")
	}
	n.Folder = dir
	if err := n.Write(map[cluster.JobID]Term{one: term}); err != nil || read("1.json") == "" {
		t.Errorf("the folder is back, and the file is not written: %v", err)
	}
}

// The library in contrib learns a lease from the inbox, with a real credential.
func TestThePythonLibraryLearnsTheLease(t *testing.T) {
	socket := munged(t)
	b, _, _ := inbox(t, Munge{Socket: socket}.Open)
	b.Lease = func(cluster.JobID) (Term, bool) {
		return Term{End: 1_700_000_900_000, Notice: cluster.Minute, GPUs: cluster.CountOf(4), Model: "v100", Renewed: RenewedNo}, true
	}
	server := httptest.NewServer(b)
	defer server.Close()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "munge"), []byte("#!/bin/sh\nexec /usr/bin/munge --socket="+socket+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ask := func(job string) string {
		return python(t, "import fairlease; print(fairlease.lease())", "PATH="+bin+":"+os.Getenv("PATH"), "SLURM_JOB_ID="+job, "FAIRLEASE_PROGRESS_URL="+server.URL)
	}
	if got := ask("1"); got != "Lease(ends=1700000900.0, notice=60.0, model='v100', gpus=4, renewed=False)" {
		t.Errorf("its lease: %s", got)
	}
	if got := ask("5"); got != "None" && os.Getuid() != 65534 {
		t.Errorf("another's lease: %s", got)
	}
	dir := t.TempDir()
	if err := (&Notices{Folder: dir}).Write(map[cluster.JobID]Term{cluster.TaskID(2, 3): {End: 5000, GPUs: cluster.CountOf(1), Model: "k80", Renewed: RenewedYes}}); err != nil {
		t.Fatal(err)
	}
	if got := python(t, "import fairlease; print(fairlease.lease())", "SLURM_ARRAY_JOB_ID=2", "SLURM_ARRAY_TASK_ID=3", "SLURM_JOB_ID=17", "FAIRLEASE_LEASE_FOLDER="+dir); !strings.Contains(got, "renewed=True") {
		t.Errorf("in a file: %s", got)
	}
}

func FuzzQuestion(f *testing.F) {
	f.Add([]byte(`{"job":"123_4"}`))
	f.Add([]byte(`{"job":""}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if job, err := question(text); err == nil && (job == cluster.JobID{}) {
			t.Errorf("%q asks for no job", text)
		}
	})
}

// A lease of half a GPU is told as 0.5, of whole ones as an integer.
func TestLeasesOfParts(t *testing.T) {
	for n, want := range map[cluster.GPUCount]string{cluster.CountOf(4): `,"gpus":4,`, 500_000: `,"gpus":0.5,`, 125_000: `,"gpus":0.125,`} {
		if got := string(encode(cluster.JobID{ID: 7}, Term{End: 1_700_000_900_000, GPUs: n, Model: "v100", Renewed: Undecided}, true)); !strings.Contains(got, want) {
			t.Errorf("%s GPUs are told as %s", n, got)
		}
	}
}
