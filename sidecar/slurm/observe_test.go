package slurm

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/slurm/certs"
)

func TestNegotiation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		offered           []version
		ordered           string
		speaks, readsJobs version
		err               string
	}{
		{offered: []version{40, 41, 42}, speaks: 42, readsJobs: 42},
		{offered: []version{42, 43, 44, 45}, speaks: 45, readsJobs: 44},
		{offered: []version{44, 45, 46, 47}, speaks: 45, readsJobs: 44},
		{offered: []version{45, 46, 47, 48}, speaks: 45, readsJobs: 45},
		{offered: []version{46, 47}, err: "fairlease knows v0.0.42 to v0.0.45"},
		{offered: []version{46, 47}, ordered: "v0.0.46", speaks: 46, readsJobs: 46},
		{offered: []version{42, 43}, ordered: "v0.0.44", err: `slurm.api_version is "v0.0.44"`},
		{offered: []version{40, 41}, err: "needs Slurm 24.11 or newer"},
		{offered: nil, err: "offers no /slurm API"},
	} {
		s, err := choose(c.offered, c.ordered)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("choose(%v, %q) = %+v, %v; want an error with %q", c.offered, c.ordered, s, err, c.err)
			}
			continue
		}
		if err != nil || s.version != c.speaks || s.jobs != c.readsJobs {
			t.Errorf("choose(%v, %q) = %+v, %v; want %v and %v", c.offered, c.ordered, s, err, c.speaks, c.readsJobs)
		}
	}
}

// SUPPORT.md has a row for each version of the API that fairlease knows, and for the release that comes next.
func TestReleases(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../SUPPORT.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := ""
	for v := oldestVersion; v <= newestVersion+1; v++ {
		offers := []version{v - 3, v - 2, v - 1, v}
		s, err := choose(offers, "")
		if err != nil {
			t.Fatal(err)
		}
		uses, tested := s.version.String(), "no"
		if s.jobs != s.version {
			uses += ", for jobs " + s.jobs.String()
		}
		if slices.Contains(Tested, v.since()) {
			tested = "yes"
		}
		rows += fmt.Sprintf("| %s | %v | %s | %s | %s |\n", v.since(), v, v.until(), uses, tested)
	}
	if !strings.Contains(string(text), rows) {
		t.Errorf("SUPPORT.md lacks these rows:\n%s", rows)
	}
}

// A version of the API lives for two years. The last release that has the one that we use is reported.
func TestVersionsGo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		release, pinned, dropped string
		offered                  []int
		hides                    bool
	}{
		{"24.11.5", "", "", []int{42}, false},
		{"26.05.5", "", "", []int{42, 43, 44, 45}, false},
		{"26.05.5", "v0.0.42", "26.11", []int{42, 43, 44, 45}, false},
		{"26.05.5", "v0.0.43", "", []int{42, 43, 44, 45}, false},
		{"26.11.0", "v0.0.43", "27.05", []int{43, 44, 45}, false},
		{"27.11.1", "", "28.05", []int{45, 46, 47}, true},
	} {
		f := newRecorded(t, c.offered...)
		f.on("GET /slurm/v0.0.45/jobs/", jobs(900))
		for _, v := range c.offered {
			f.on(fmt.Sprintf("GET /slurm/v0.0.%d/diag", v), text(`{"statistics":{"req_time":1000000},"meta":{"slurm":{"cluster":"test","release":"`+c.release+`"}},"errors":[]}`))
			f.on(fmt.Sprintf("GET /slurm/v0.0.%d/nodes/", v), text(`{"nodes":[],"last_update":900,"errors":[]}`))
		}
		got, err := f.client(func(cfg *Config) { cfg.APIVersion = c.pinned }).Facts(t.Context())
		if err != nil || got.Dropped != c.dropped || got.HidesExclusive != c.hides {
			t.Errorf("Slurm %s with %v, pinned %q: %v; dropped in %q, hides --exclusive: %v; want %+v", c.release, c.offered, c.pinned, err, got.Dropped, got.HidesExclusive, c)
		}
	}
	for release, newer := range map[string]bool{"24.11.5": false, "26.05.9": false, "26.11.0": true, "27.05.0-0rc1": true, "": false} {
		if NewerThanTested(release) != newer {
			t.Errorf("%q counts as newer than all tested: %v", release, !newer)
		}
	}
}

// An upgrade of Slurm removes our version in the middle: the next look finds the new one.
func TestNegotiatesAgainAfterUpgrade(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	f.on("GET /slurm/v0.0.44/jobs/", jobs(900, waitingJob(7, "")))
	c := f.client()
	f.see(c)
	newer := newRecorded(t, 45)
	f.mu.Lock()
	f.answers = newer.answers
	f.mu.Unlock()
	f.on("GET /slurm/v0.0.45/jobs/", jobs(900, waitingJob(8, "")))
	if s := f.see(c); len(s.Jobs) != 1 || s.Jobs[0].ID.ID != 8 {
		t.Errorf("jobs after the upgrade: %+v", s.Jobs)
	}
}

func TestTruth(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer answer
		err    string
	}{
		"cut short":            {text(`{"jobs":[` + waitingJob(1, "") + `,{"job_id":2`), "cut short"},
		"cut in between":       {text(`{"jobs":[` + waitingJob(1, "")), "cut short"},
		"no JSON":              {text(`<html>proxy error</html>`), "no JSON"},
		"not an object":        {text(`[1,2]`), "not a JSON object"},
		"empty":                {text(``), "cut short"},
		"no list":              {text(`{"errors":[]}`), "no list"},
		"list is null":         {text(`{"jobs":null,"errors":[]}`), "no list"},
		"list is an object":    {text(`{"jobs":{},"errors":[]}`), "no list"},
		"errors in 200":        {text(`{"jobs":[],"errors":[{"error_number":1800,"error":"Zero Bytes were transmitted or received"}]}`), "Zero Bytes"},
		"errors without words": {text(`{"jobs":[],"errors":[{}]}`), "without a name"},
		"all records junk":     {text(`{"jobs":[{"job_id":[]},{"job_id":"x"}],"last_update":5}`), "2 of 2 records make no sense"},
		"500":                  {status(500, text(`{"errors":[{"error_number":1,"error":"Unspecified error"}]}`)), "Unspecified error"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newRecorded(t, 44)
			f.on("GET /slurm/v0.0.44/jobs/", c.answer)
			s, err := f.client(func(c *Config) { c.Retries = -1 }).Observe(t.Context(), 0)
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("saw %d jobs, error %v; want an error with %q", len(s.Jobs), err, c.err)
			}
		})
	}
}

// An invalid record costs itself, not the list; a job that was known before keeps its last state.
func TestJunkRecord(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	var list []string
	for i := range 20 {
		list = append(list, waitingJob(i+1, ""))
	}
	f.on("GET /slurm/v0.0.44/jobs/", jobs(1_000_000, list...))
	c := f.client()
	f.see(c)
	list[3] = waitingJob(4, `"restart_cnt":{"number":["x"]}`)
	list = append(list, `{"job_id":99,"job_state":["RUNNING"],"nodes":"v[1-"}`)
	f.on("GET /slurm/v0.0.44/jobs/", jobs(1_000_001, list...))
	if s := f.see(c); len(s.Jobs) != 20 {
		t.Errorf("%d jobs; want 20", len(s.Jobs))
	}
	notes := strings.Join(c.Notes(), "\n")
	for _, want := range []string{"/jobs/3/restart_cnt", "v[1-"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes do not name %s:\n%s", want, notes)
		}
	}
}

func TestReadsAreRetried(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	failures := 2
	f.on("GET /slurm/v0.0.44/jobs/", func(w http.ResponseWriter, r *http.Request) {
		if failures--; failures >= 0 {
			hijacked, _, _ := w.(http.Hijacker).Hijack()
			hijacked.Close()
			return
		}
		jobs(900, waitingJob(7, ""))(w, r)
	})
	if s := f.see(f.client()); len(s.Jobs) != 1 {
		t.Errorf("jobs: %+v", s.Jobs)
	}
	if n := f.count("GET /slurm/v0.0.44/jobs/"); n != 3 {
		t.Errorf("asked %d times; want 3", n)
	}
}

// A read that Slurm refuses is not retried.
func TestRefusedReadIsNotRetried(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	f.on("GET /slurm/v0.0.44/jobs/", status(500, text(`{"errors":[{"error_number":2010,"error":"Access/permission denied"}]}`)))
	if _, err := f.client().Observe(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "permission denied (Slurm error 2010)") {
		t.Errorf("error: %v", err)
	}
	if n := f.count("GET /slurm/v0.0.44/jobs/"); n != 1 {
		t.Errorf("asked %d times; want once", n)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	c, err := New(Config{Address: "unix://" + filepath.Join(t.TempDir(), "nobody.sock"), Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Observe(t.Context(), 0)
	if err == nil || !strings.Contains(err.Error(), "no such file or directory; is slurmrestd running? see slurm.address in fairlease.yaml") {
		t.Errorf("error: %v", err)
	}
	if _, err := New(Config{Address: "/run/slurmrestd.sock"}); err == nil {
		t.Error("an address without a scheme was taken")
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	f.on("GET /slurm/v0.0.44/jobs/", jobs(900, waitingJob(7, "")))
	s := httptest.NewTLSServer(f)
	t.Cleanup(s.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	https := func(c *Config) { c.Address, c.Retries = s.URL, -1 }
	if _, err := f.client(https).Observe(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown authority: %v", err)
	}
	if s := f.see(f.client(https, func(c *Config) { c.TLS.CAFile, c.TLS.ServerName = ca, "example.com" })); len(s.Jobs) != 1 {
		t.Errorf("jobs: %+v", s.Jobs)
	}
	for _, bad := range []certs.Files{{CAFile: "/nowhere"}, {CertFile: ca, KeyFile: "/nowhere"}} {
		if _, err := New(Config{Address: s.URL, TLS: bad}); err == nil || !strings.Contains(err.Error(), "slurm TLS") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// Between two full reads only changed records are read.
func TestStatePolls(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	now := time.Unix(1_000_100, 0)
	c := f.client(func(c *Config) {
		c.SmallList = -1
		c.Singles = 2
		c.Now = func() time.Time { return now }
	})
	full, states := "GET /slurm/v0.0.44/jobs/", "GET /slurm/v0.0.44/jobs/state/"
	f.on(full, jobs(900, waitingJob(1, ""), waitingJob(2, ""), waitingJob(3, "")))
	f.on(states, text(`{"jobs":[{"job_id":1,"state":["PENDING"]},{"job_id":2,"state":["PENDING"]},{"job_id":3,"state":["PENDING"]}]}`))
	f.see(c)
	if s := f.see(c); !s.Unchanged || len(s.Jobs) != 3 || f.count(full) != 1 {
		t.Errorf("quiet look: unchanged %v, %d jobs, %d full reads", s.Unchanged, len(s.Jobs), f.count(full))
	}
	// One starts, one is gone, one is new.
	f.on(states, text(`{"jobs":[{"job_id":1,"state":["RUNNING"]},{"job_id":2,"state":["PENDING"]},{"job_id":4,"state":["PENDING"]}]}`))
	f.on("GET /slurm/v0.0.44/job/1", jobs(0, runningJob(1, "")))
	f.on("GET /slurm/v0.0.44/job/4", jobs(0, waitingJob(4, "")))
	s := f.see(c)
	if s.Unchanged || len(s.Jobs) != 3 || s.Jobs[0].State != cluster.Running || s.Jobs[2].ID.ID != 4 || f.count(full) != 1 {
		t.Errorf("after changes: unchanged %v, jobs %+v, %d full reads", s.Unchanged, s.Jobs, f.count(full))
	}
	// Three changes are more than the limit of single reads.
	f.on(states, text(`{"jobs":[{"job_id":5,"state":["PENDING"]},{"job_id":6,"state":["PENDING"]},{"job_id":7,"state":["PENDING"]}]}`))
	f.on(full, jobs(901, waitingJob(5, ""), waitingJob(6, ""), waitingJob(7, "")))
	if s := f.see(c); len(s.Jobs) != 3 || f.count(full) != 2 {
		t.Errorf("after many changes: %d jobs, %d full reads", len(s.Jobs), f.count(full))
	}
	// The list expires; Slurm says that nothing is newer, in the form of an empty cluster.
	now = now.Add(time.Minute)
	f.on(full, jobs(0))
	if s := f.see(c); !s.Unchanged || len(s.Jobs) != 3 || f.count(full) != 3 {
		t.Errorf("nothing newer: unchanged %v, %d jobs, %d full reads", s.Unchanged, len(s.Jobs), f.count(full))
	}
	// Records that we changed are read again.
	f.on(states, text(`{"jobs":[{"job_id":5,"state":["PENDING"]},{"job_id":6,"state":["PENDING"]},{"job_id":7,"state":["PENDING"]}]}`))
	f.on("POST /slurm/v0.0.44/job/5", text(`{"errors":[]}`))
	f.on("GET /slurm/v0.0.44/job/5", jobs(0, waitingJob(5, `"eligible_time":{"set":true,"infinite":false,"number":2000000}`)))
	c.Apply(t.Context(), []cluster.Action{{Verb: cluster.Gate, ID: cluster.JobID{ID: 5}, Record: 5, Until: 2_000_000_000}})
	if s := f.see(c); s.Jobs[0].Eligible != 2_000_000_000 || f.count(full) != 3 {
		t.Errorf("after our gate: eligible %v, %d full reads", s.Jobs[0].Eligible, f.count(full))
	}
	// A job without GPUs that ends does not matter; one that starts may.
	cpus := `{"job_id":9,"job_state":["RUNNING"],"user_name":"bob","account":"nlp","tres_req_str":"cpu=2,mem=100M,node=1","nodes":"v1","tres_alloc_str":"cpu=2,mem=100M,node=1"}`
	f.on(states, text(`{"jobs":[{"job_id":5,"state":["PENDING"]},{"job_id":"9","state":["RUNNING"]}]}`))
	f.on("GET /slurm/v0.0.44/job/9", jobs(0, cpus))
	if s := f.see(c); len(s.Jobs) != 2 || s.Jobs[1].Holds[0].CPUs != 2 {
		t.Errorf("a job without GPUs: %+v", s.Jobs)
	}
	f.on(states, text(`{"jobs":[{"job_id":5,"state":["PENDING"]},{"job_id":"9","state":["COMPLETED"]}]}`))
	if s := f.see(c); s.Unchanged || len(s.Jobs) != 1 || f.count("GET /slurm/v0.0.44/job/9") != 1 {
		t.Errorf("it ended: %+v, read %d times", s.Jobs, f.count("GET /slurm/v0.0.44/job/9"))
	}
	// After a restart of slurmctld ids may have been reused: everything is read.
	f.on("GET /slurm/v0.0.44/diag", text(`{"statistics":{"req_time":1000000,"req_time_start":77},"errors":[]}`))
	f.on(full, jobs(950, waitingJob(5, "")))
	if s := f.see(c); len(s.Jobs) != 1 || s.Boot != 77_000 || f.count(full) != 4 {
		t.Errorf("after a restart: %d jobs, boot %v, %d full reads", len(s.Jobs), s.Boot, f.count(full))
	}
}

// A list of states that equals the previous one is not parsed; one that equals an older one is,
// since the records have changed in between.
func TestAStateListThatComesBack(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	now := time.Unix(1_000_100, 0)
	c := f.client(func(c *Config) { c.SmallList, c.Now = -1, func() time.Time { return now } })
	states := "GET /slurm/v0.0.44/jobs/state/"
	wait := text(`{"jobs":[{"job_id":1,"state":["PENDING"]},{"job_id":2,"state":["PENDING"]}]}`)
	run := text(`{"jobs":[{"job_id":1,"state":["RUNNING"]},{"job_id":2,"state":["PENDING"]}]}`)
	f.on("GET /slurm/v0.0.44/jobs/", jobs(900, waitingJob(1, ""), waitingJob(2, "")))
	f.on(states, wait)
	quiet := func() {
		t.Helper()
		f.see(c)
		if s := f.see(c); !s.Unchanged || len(s.Jobs) != 2 {
			t.Errorf("unchanged %v, %d jobs", s.Unchanged, len(s.Jobs))
		}
	}
	state := func(when string, want cluster.JobState) {
		t.Helper()
		if s := f.see(c); len(s.Jobs) != 2 || s.Jobs[0].State != want {
			t.Errorf("%s job 1 is %s, want %s", when, s.Jobs[0].State, want)
		}
	}
	quiet()
	f.on("GET /slurm/v0.0.44/job/1", status(500, text(`{}`)))
	f.on(states, run)
	for range 2 {
		if _, err := c.Observe(t.Context(), 0); err == nil {
			t.Error("a record that cannot be read is an error, also when the list is the same again")
		}
	}
	f.on("GET /slurm/v0.0.44/job/1", jobs(0, runningJob(1, "")))
	state("read at last,", cluster.Running)
	quiet()
	f.on("GET /slurm/v0.0.44/job/1", jobs(0, waitingJob(1, "")))
	f.on(states, wait)
	state("with the first list again,", cluster.Waiting)
	quiet()
	// A full read sees the job run; it is requeued before the next list of states.
	now = now.Add(time.Minute)
	f.on("GET /slurm/v0.0.44/jobs/", jobs(901, runningJob(1, ""), waitingJob(2, "")))
	state("read with all,", cluster.Running)
	state("requeued since,", cluster.Waiting)
	quiet()
	if n := f.count("GET /slurm/v0.0.44/jobs/"); n != 2 {
		t.Errorf("%d full reads", n)
	}
	// A job that we changed is read at every look for a while. The last such read sees it run,
	// and it is requeued before the next list.
	f.on("POST /slurm/v0.0.44/job/1", text(`{"errors":[]}`))
	c.Apply(t.Context(), []cluster.Action{{Verb: cluster.Gate, ID: cluster.JobID{ID: 1}, Record: 1, Until: 1_000_000_000}})
	f.on("GET /slurm/v0.0.44/job/1", jobs(0, waitingJob(1, "")))
	state("that we changed,", cluster.Waiting)
	state("that we changed,", cluster.Waiting)
	f.on("GET /slurm/v0.0.44/job/1", jobs(0, runningJob(1, "")))
	state("started,", cluster.Running)
	f.on("GET /slurm/v0.0.44/job/1", jobs(0, waitingJob(1, "")))
	state("requeued by others,", cluster.Waiting)
}

// The history is read only for a time without looks, or with looks that were not committed: not
// in every look of a quiet hour.
func TestTheHistoryIsAskedForWhatNobodySaw(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	now := time.Unix(1_000_100, 0)
	c := f.client(func(c *Config) { c.Now = func() time.Time { return now } })
	history := "GET /slurmdb/v0.0.44/jobs"
	f.on(history, text(`{"jobs":[],"errors":[]}`))
	f.on("GET /slurm/v0.0.44/jobs/", jobs(900, waitingJob(1, "")))
	look := func(after time.Duration, since cluster.Instant) cluster.Observation {
		t.Helper()
		now = now.Add(after)
		s, err := c.Observe(t.Context(), since)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	asked := func(when string, want int) {
		t.Helper()
		if n := f.count(history); n != want {
			t.Errorf("%s the history has been asked %d times, want %d", when, n, want)
		}
	}
	written := look(0, 0).Now
	for range 20 {
		if s := look(time.Minute, written); !s.Unchanged {
			t.Fatal("changed")
		}
	}
	asked("in a quiet time", 0)
	look(4*time.Minute, written)
	asked("after a pause", 1)
	look(time.Minute, written)
	asked("after that", 1)
	f.on("GET /slurm/v0.0.44/jobs/", jobs(950, waitingJob(1, ""), waitingJob(2, "")))
	seen := look(time.Minute, written)
	if seen.Unchanged {
		t.Fatal("unchanged")
	}
	look(time.Minute, written)
	asked("where a change was seen and not written down", 2)
	look(time.Minute, seen.Now)
	asked("where it was written down", 2)
}

// A list's update time is in whole seconds: later changes in the same second must not be taken
// for known.
func TestUpdateTimes(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	c := f.client()
	ask := func() string {
		f.see(c)
		all := f.all()
		for i := len(all) - 1; i >= 0; i-- {
			if all[i].what == "GET /slurm/v0.0.44/jobs/" {
				return all[i].query
			}
		}
		return "never"
	}
	f.on("GET /slurm/v0.0.44/jobs/", jobs(1_000_000, waitingJob(1, "")))
	if q := ask(); q != "" {
		t.Errorf("first: %q", q)
	}
	f.on("GET /slurm/v0.0.44/jobs/", jobs(999_999, waitingJob(1, "")))
	if q := ask(); q != "update_time=1000000" { // the server's clock stood at 1000000
		t.Errorf("in the same second: %q", q)
	}
	if q := ask(); q != "update_time=1000000" {
		t.Errorf("one later: %q", q)
	}
}

// A clock that was an hour ahead and goes back hides no change: neither slurmctld's, by which it dates its lists, nor this host's, by which
// lists are due.
func TestAClockThatGoesBack(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(ahead int) (host, server int){
		"slurmctld's": func(ahead int) (int, int) { return 0, ahead },
		"this host's": func(ahead int) (int, int) { return ahead, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			f := newRecorded(t, 44)
			host, server, changed, records := 0, 0, 0, []string(nil)
			f.on("GET /slurm/v0.0.44/diag", func(w http.ResponseWriter, r *http.Request) {
				text(fmt.Sprintf(`{"statistics":{"req_time":{"set":true,"number":%d},"req_time_start":5},"meta":{"slurm":{"cluster":"test","release":"26.05.5"}},"errors":[]}`, 1_000_000+server))(w, r)
			})
			f.on("GET /slurm/v0.0.44/jobs/", func(w http.ResponseWriter, r *http.Request) {
				if ask, _ := strconv.Atoi(r.URL.Query().Get("update_time")); ask > changed {
					text(`{"jobs":[],"last_update":0,"errors":[]}`)(w, r) // nothing is newer
					return
				}
				jobs(changed, records...)(w, r)
			})
			f.on("GET /slurm/v0.0.44/jobs/state/", text(`{"jobs":[{"job_id":"1","state":["PENDING"]}],"errors":[]}`))
			c := f.client(func(c *Config) {
				c.Now, c.SmallList = func() time.Time { return time.Unix(int64(1_000_000+host), 0) }, -1
			})
			for at, ahead := range []int{0, 3600, 0, 0} {
				host, server = of(ahead)
				host, server = host+40*at, server+40*at
				changed, records = 1_000_000+server, []string{waitingJob(1, fmt.Sprintf(`"nice":%d,"name":"at %d"`, at, at))}
				if seen := f.see(c); len(seen.Jobs) != 1 || seen.Jobs[0].Name != fmt.Sprintf("at %d", at) {
					t.Errorf("look %d shows %+v", at, seen.Jobs)
				}
			}
		})
	}
}

// slurmrestd needs slurmdbd's list of TRES to show partitions. Without it, slurmctld's list still
// comes, beside an error: a look uses it, also the first one.
func TestPartitionsWithoutSlurmdbd(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	f.on("GET /slurm/v0.0.44/jobs/", jobs(900))
	const away = `"last_update":{"set":true,"infinite":false,"number":900},"errors":[{"description":"Slurmdb query failed","error_number":111,"error":"Connection refused","source":"slurmdb_tres_get"}]}`
	f.on("GET /slurm/v0.0.44/partitions/", text(`{"partitions":[{"name":"main","nodes":{"configured":"v1"},"partition":{"state":["UP"]}}],`+away))
	c := f.client(func(c *Config) { c.Retries = -1 })
	if s := f.see(c); len(s.Partitions) != 1 || s.Partitions[0].Name != "main" {
		t.Errorf("partitions: %+v", s.Partitions)
	}
	if n := c.Notes(); len(n) != 1 || !strings.Contains(n[0], "slurmdbd does not answer") {
		t.Errorf("notes: %q", n)
	}
	f.on("GET /slurm/v0.0.44/partitions/", text(`{"partitions":[],`+away))
	if s := f.see(c); len(s.Partitions) != 1 {
		t.Errorf("none is newer than those that are known: %+v", s.Partitions)
	}
	if _, err := f.client(func(c *Config) { c.Retries = -1 }).Observe(t.Context(), 0); err == nil {
		t.Error("a first look without partitions succeeds")
	}
}

// A look that waits for a restarting slurmctld describes the moment of the query for jobs, not
// its own start. Jobs may have ended meanwhile, and must not seem to have ended in its future.
func TestALookIsOfTheMomentAtWhichJobsWereAskedFor(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	f.on("GET /slurm/v0.0.44/jobs/", jobs(900))
	now := time.Unix(1_000_100, 0)
	c := f.client(func(c *Config) { c.Now = func() time.Time { return now } })
	was := f.see(c)
	partitions := f.answers["GET /slurm/v0.0.44/partitions/"]
	f.on("GET /slurm/v0.0.44/partitions/", func(w http.ResponseWriter, r *http.Request) {
		now = now.Add(3 * time.Second)
		partitions(w, r)
	})
	if s := f.see(c); s.Now.Sub(was.Now) != 3*cluster.Second || s.Clock.Sub(was.Clock) != 3*cluster.Second {
		t.Errorf("the look is of %v and slurmctld's clock of %v later than the one before, want 3 s", s.Now.Sub(was.Now), s.Clock.Sub(was.Clock))
	}
}

func TestAccountsSurviveSlurmdbd(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	f.on("GET /slurm/v0.0.44/jobs/", jobs(900))
	now := time.Unix(1_000_100, 0)
	c := f.client(func(c *Config) { c.Now = func() time.Time { return now } })
	away := status(502, text(`{"errors":[{"error_number":7000,"error":"Unable to connect to database"}]}`))
	tree := f.answers["GET /slurmdb/v0.0.44/associations/"]

	f.on("GET /slurmdb/v0.0.44/associations/", away)
	if _, err := c.Observe(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "database") {
		t.Errorf("no tree at all: %v", err)
	}
	// A daemon that starts while slurmdbd is away has slurmctld's copy.
	f.on("GET /slurm/v0.0.44/shares", text(`{"shares":{"total_shares":3,"shares":[
		{"cluster":"test","name":"root","parent":"","shares":{"set":false,"infinite":false,"number":0},"type":["ASSOCIATION"]},
		{"cluster":"test","name":"nlp","parent":"root","shares":{"set":true,"infinite":false,"number":3},"type":["ASSOCIATION"]},
		{"cluster":"test","name":"own","parent":"nlp","shares":{"set":true,"infinite":false,"number":2147483647},"type":["ASSOCIATION"]},
		{"cluster":"test","name":"nlp","parent":"root","partition":"main","shares":{"set":true,"infinite":false,"number":9},"type":["ASSOCIATION"]},
		{"cluster":"other","name":"cv","parent":"root","shares":{"set":true,"infinite":false,"number":9},"type":["ASSOCIATION"]},
		{"cluster":"test","name":"alice","parent":"nlp","shares":{"set":true,"infinite":false,"number":1},"type":["USER"]}]},"errors":[]}`))
	early := f.client(func(c *Config) { c.Now = func() time.Time { return now } })
	s := f.see(early)
	want := []cluster.Account{{Name: "nlp", Parent: "root", Shares: 3}, {Name: "own", Parent: "nlp", ViaParent: true}, {Name: "root", Shares: 1}}
	if diff := cmp.Diff(want, s.Accounts); diff != "" || len(s.Members) != 1 || s.Members[0] != (cluster.Member{Tenant: "nlp", User: "alice"}) {
		t.Errorf("slurmctld's copy (-want +got): %s, of users %+v", diff, s.Members)
	}
	if n := early.Notes(); len(n) != 1 || !strings.Contains(n[0], "slurmctld's copy") {
		t.Errorf("notes: %q", n)
	}
	if s.Limits.Read != 0 {
		t.Errorf("limits of %s from a slurmdbd that was away", s.Limits.Read)
	}
	f.on("GET /slurmdb/v0.0.44/associations/", tree)
	if s := f.see(c); len(s.Accounts) != 2 || s.Accounts[0].Shares != 3 || len(s.Members) != 1 || s.Members[0] != (cluster.Member{Tenant: "nlp", User: "alice"}) {
		t.Errorf("accounts: %+v", s.Accounts)
	}
	f.on("GET /slurmdb/v0.0.44/associations/", away)
	now = now.Add(time.Hour)
	if s := f.see(c); len(s.Accounts) != 2 || !s.Unchanged {
		t.Errorf("accounts while slurmdbd is away: %+v", s.Accounts)
	}
	if n := c.Notes(); len(n) != 1 || !strings.Contains(n[0], "could not be renewed") {
		t.Errorf("notes: %q", n)
	}
	// A job with an unknown account: one query for it, not one per round.
	f.on("GET /slurmdb/v0.0.44/associations/", tree)
	now = now.Add(time.Hour)
	f.on("GET /slurm/v0.0.44/jobs/", jobs(1_000_000, waitingJob(1, `"account":"new"`)))
	before := f.count("GET /slurmdb/v0.0.44/associations/")
	for range 3 {
		f.see(c)
	}
	if n := f.count("GET /slurmdb/v0.0.44/associations/") - before; n != 1 {
		t.Errorf("%d looks for one stranger; want 1", n)
	}
}

// Limits that were read hold while slurmdbd is away. A client that starts then says that it has read none, and counts what jobs
// without GPUs use, since the last known limits may hold.
func TestLimitsSurviveSlurmdbd(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	f.on("GET /slurm/v0.0.44/jobs/", jobs(900))
	dir := t.TempDir()
	enforce := func(what string) []string {
		path := filepath.Join(dir, what)
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho 'AccountingStorageEnforce = "+what+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return []string{path}
	}
	now := time.Unix(1_000_100, 0)
	client := func(scontrol []string) *Client {
		return f.client(func(c *Config) { c.Scontrol, c.Now = scontrol, func() time.Time { return now } })
	}
	away := status(502, text(`{"errors":[{"error_number":7000,"error":"Unable to connect to database"}]}`))
	tree := text(`{"associations":[{"account":"root","cluster":"test","shares_raw":1},
		{"account":"nlp","cluster":"test","parent_account":"root","shares_raw":1,"max":{"tres":{"total":[{"type":"gres","name":"gpu","count":4}]}}}],"errors":[]}`)
	f.on("GET /slurmdb/v0.0.44/associations/", tree)
	f.on("GET /slurmdb/v0.0.44/qos/", text(`{"qos":[{"name":"hi","limits":{"max":{"active_jobs":{"count":{"set":true,"infinite":false,"number":9}}}}}],"errors":[]}`))
	c := client(enforce("limits"))
	first := f.see(c)
	if l := first.Limits; len(l.Associations) != 1 || len(l.QOS) != 1 || l.Read != first.Now {
		t.Errorf("limits: %+v", l)
	}
	f.on("GET /slurmdb/v0.0.44/associations/", away)
	now = now.Add(time.Hour)
	if s := f.see(c); len(s.Limits.Associations) != 1 || s.Limits.Read != first.Now || !slices.ContainsFunc(c.Notes(), func(n string) bool { return strings.Contains(n, "those of "+first.Now.String()+" hold") }) {
		t.Errorf("limits while slurmdbd is away: %+v, notes %q", s.Limits, c.Notes())
	}
	f.on("GET /slurm/v0.0.44/shares", text(`{"shares":{"total_shares":3,"shares":[{"cluster":"test","name":"root","type":["ASSOCIATION"]},
		{"cluster":"test","name":"nlp","parent":"root","shares":{"set":true,"infinite":false,"number":3},"type":["ASSOCIATION"]}]},"errors":[]}`))
	late := client(enforce("limits"))
	if s := f.see(late); s.Limits.Read != 0 || len(s.Limits.Associations) != 0 {
		t.Errorf("limits of a client that starts while slurmdbd is away: %+v", s.Limits)
	}
	if s := f.see(client([]string{"false"})); s.Limits.Read != 0 {
		t.Errorf("limits of a client that does not know whether they are enforced: %+v", s.Limits)
	}
	if s := f.see(client(enforce("associations"))); s.Limits.Read == 0 {
		t.Errorf("limits of a Slurm that enforces none: %+v", s.Limits)
	}
	f.on("GET /slurmdb/v0.0.44/associations/", tree)
	now = now.Add(time.Hour)
	if s := f.see(late); s.Unchanged || s.Limits.Read != s.Now || len(s.Limits.Associations) != 1 {
		t.Errorf("limits when slurmdbd is back: %+v; unchanged: %v", s.Limits, s.Unchanged)
	}
}

// Both API versions write the rules of a partition alike.
func TestPartitionRules(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       cluster.Partition
	}{
		{"all", `{"name":"gpu","nodes":{"configured":"v[1-2]"},"accounts":{"allowed":"vision,nlp","deny":""},"qos":{"allowed":"","deny":"scavenger","assigned":"pq"},` +
			`"groups":{"allowed":"staff,hpc"},"maximums":{"cpus_per_node":{"set":true,"infinite":false,"number":12},"nodes":{"set":true,"infinite":false,"number":2},` +
			`"time":{"set":true,"infinite":false,"number":120}},"minimums":{"nodes":1},"partition":{"state":["UP"]},"flags":["DEFAULT"]}`,
			cluster.Partition{Name: "gpu", Nodes: []string{"v1", "v2"}, Default: true, Up: true, MaxTime: 2 * cluster.Hour,
				Rules: cluster.Rules{AllowAccounts: []string{"nlp", "vision"}, DenyQOS: []string{"scavenger"}, AllowGroups: []string{"hpc", "staff"}, MinNodes: 1, MaxNodes: 2, CPUsPerNode: 12, QOS: "pq"}}},
		{"none", `{"name":"gpu","accounts":{"allowed":"ALL","deny":""},"qos":{"allowed":"","deny":"","assigned":""},"maximums":{"cpus_per_node":{"set":false,"infinite":true,"number":0},` +
			`"nodes":{"set":false,"infinite":true,"number":0},"time":{"set":false,"infinite":true,"number":0}},"minimums":{"nodes":0},"partition":{"state":["UP"]}}`,
			cluster.Partition{Name: "gpu", Up: true}},
		{"unlimited as 32 bits", `{"name":"gpu","maximums":{"cpus_per_node":4294967295,"nodes":4294967295,"time":4294967295},"partition":{"state":["INACTIVE"]}}`,
			cluster.Partition{Name: "gpu", Rules: cluster.Rules{Closed: "INACTIVE"}}},
		{"no nodes and no time", `{"name":"gpu","maximums":{"nodes":{"set":true,"infinite":false,"number":0},"time":{"set":true,"infinite":false,"number":0}},"partition":{"state":["UP"]}}`,
			cluster.Partition{Name: "gpu", Up: true, Rules: cluster.Rules{Closed: "MaxNodes=0"}}},
		{"no time", `{"name":"gpu","maximums":{"time":{"set":true,"infinite":false,"number":0}},"partition":{"state":["UP"]}}`,
			cluster.Partition{Name: "gpu", Up: true, Rules: cluster.Rules{Closed: "MaxTime=0"}}},
		{"root only", `{"name":"gpu","partition":{"state":["UP"]},"flags":["ROOT_ONLY"]}`, cluster.Partition{Name: "gpu", Up: true, RootOnly: true}},
		{"a part of its nodes makes no sense", `{"name":"gpu","nodes":{"configured":"v[2-1],v[3-4],k[x],k1"},"partition":{"state":["UP"]}}`,
			cluster.Partition{Name: "gpu", Nodes: []string{"k1", "v3", "v4"}, Up: true}},
		{"unknown values", `{"name":"gpu","accounts":null,"qos":{"more":{"x":[1]}},"minimums":null,"partition":{"state":["UP","SHINY"]}}`, cluster.Partition{Name: "gpu", Up: true}},
	} {
		r := newReader(strings.NewReader(c.text))
		got := readPartition(r)
		if d := cmp.Diff(c.want, got); d != "" || r.junk != "" || r.err != nil {
			t.Errorf("%s: %s; %s; %v", c.name, d, r.junk, r.err)
		}
	}
}

// A reservation of cores keeps their CPUs of its nodes, and one of GPUs these and the cores of their sockets. One of whole nodes keeps the nodes.
func TestReservedParts(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []cluster.ReservedPart
	}{
		{"cores", `"core_count":4,"tres":"cpu=4","core_specializations":[{"node":"v1","core":"0-3"}]`, []cluster.ReservedPart{{Node: "v1", CPUs: 4}}},
		{"cores with two threads, on two nodes", `"core_count":5,"tres":"cpu=10","core_specializations":[{"node":"v2","core":"0,2"},{"node":"v1","core":"1-3"}]`,
			[]cluster.ReservedPart{{Node: "v1", CPUs: 6}, {Node: "v2", CPUs: 4}}},
		{"GPUs", `"core_count":8,"tres":"cpu=8,gres/gpu:v100=1,gres/gpu=1","core_specializations":[{"node":"v1","core":"0-7"}]`, []cluster.ReservedPart{{Node: "v1", CPUs: 8, GPUs: 1}}},
		{"GPUs of two nodes: 3 and 1, which Slurm does not tell", `"core_count":24,"tres":"cpu=24,gres/gpu=4","core_specializations":[{"node":"v1","core":"0-15"},{"node":"v2","core":"0-7"}]`,
			[]cluster.ReservedPart{{Node: "v1", CPUs: 16, GPUs: 3}, {Node: "v2", CPUs: 8, GPUs: 3}}},
		{"nodes", `"core_count":16,"tres":"cpu=16","core_specializations":[]`, nil},
		{"unreadable", `"core_count":16,"tres":"cpu=16","core_specializations":[{"node":"v1","core":"x"}]`, []cluster.ReservedPart{}},
		{"older", `"core_count":16`, nil},
	} {
		r := newReader(strings.NewReader(`{"name":"r","node_list":"v[1-2]",` + c.text + `}`))
		if got := readReservation(r); len(got.Parts)+len(c.want) > 0 && !slices.Equal(got.Parts, c.want) || r.junk != "" || r.err != nil {
			t.Errorf("%s: %+v, want %+v; %s, %v", c.name, got.Parts, c.want, r.junk, r.err)
		}
	}
}

// Before Slurm 26.05 a reservation of GPUs gives others all or none of a node: it keeps the whole node. One of cores keeps these in any release.
func TestReservedGPUsByRelease(t *testing.T) {
	for release, parts := range map[string]int{"24.11.5": 1, "25.11.0": 1, "26.05.5": 2, "27.05.0-0rc1": 2, "": 1} {
		f := newRecorded(t, 45)
		f.on("GET /slurm/v0.0.45/diag", text(`{"statistics":{"req_time":{"set":true,"number":1000000},"req_time_start":{"set":true,"number":5}},"meta":{"slurm":{"cluster":"test","release":"`+release+`"}},"errors":[]}`))
		f.on("GET /slurm/v0.0.45/reservations/", text(`{"reservations":[{"name":"g","node_list":"v1","core_count":8,"tres":"cpu=8,gres/gpu=2","core_specializations":[{"node":"v1","core":"0-7"}]},`+
			`{"name":"c","node_list":"v1","core_count":8,"tres":"cpu=8","core_specializations":[{"node":"v1","core":"0-7"}]}],"last_update":900,"errors":[]}`))
		f.on("GET /slurm/v0.0.45/jobs/", jobs(1))
		got := 0
		for _, v := range f.see(f.client()).Reservations {
			got += len(v.Parts)
		}
		if got != parts {
			t.Errorf("release %q: %d reservations of parts, want %d", release, got, parts)
		}
	}
}

// Both API versions write the limits of associations and QOS alike.
func TestLimits(t *testing.T) {
	const (
		association = `{"account":"nlp","cluster":"test","max":{"jobs":{"per":{"count":{"set":true,"infinite":false,"number":20},"accruing":{"set":false,"infinite":true,"number":0},` +
			`"wall_clock":{"set":true,"infinite":false,"number":90}},"active":{"set":true,"infinite":false,"number":11},"total":{"set":false,"infinite":true,"number":0}},` +
			`"tres":{"total":[{"type":"node","name":"","id":4,"count":2},{"type":"gres","name":"gpu","id":1001,"count":6},{"type":"license","name":"matlab","count":1}],` +
			`"group":{"minutes":[{"type":"gres","name":"gpu","id":1001,"count":900}],"active":[]},"minutes":{"total":[],"per":{"job":[{"type":"gres","name":"gpu","count":300}]}},` +
			`"per":{"job":[{"type":"gres","name":"gpu","id":1001,"count":5}],"node":[{"type":"gres","name":"gpu:v100","id":1001,"count":4}]}},` +
			`"per":{"account":{"wall_clock":{"set":true,"infinite":false,"number":5000}}}},"parent_account":"root","partition":"","shares_raw":1,"user":"alice"}`
		qos = `{"flags":["DENY_LIMIT","OVERRIDE_PARTITION_QOS"],"id":2,"limits":{"grace_time":0,"max":{"active_jobs":{"count":{"set":true,"infinite":false,"number":9}},` +
			`"jobs":{"count":{"set":false,"infinite":true,"number":0},"active_jobs":{"per":{"account":{"set":true,"infinite":false,"number":7},"user":{"set":true,"infinite":false,"number":5}}},` +
			`"per":{"account":{"set":false,"infinite":true,"number":0},"user":{"set":true,"infinite":false,"number":50}}},"tres":{"total":[{"type":"cpu","name":"","count":100}],` +
			`"per":{"account":[{"type":"gres","name":"gpu","count":3}],"job":[{"type":"mem","name":"","count":1000}],"node":[],"user":[{"type":"gres","name":"gpu","count":2}]}},` +
			`"wall_clock":{"per":{"qos":{"set":true,"infinite":false,"number":10000},"job":{"set":true,"infinite":false,"number":100}}}},` +
			`"min":{"priority_threshold":{"set":false,"infinite":true,"number":0},"tres":{"per":{"job":[{"type":"gres","name":"gpu","count":1}]}}}},"name":"hi","preempt":{"list":["low","batch"],"mode":["REQUEUE"],"exempt_time":{"set":false,"infinite":true,"number":0}},"priority":{"set":true,"number":10}}`
	)
	unread := unreadTRES{}
	r := newReader(strings.NewReader(association))
	a := readAssociation(r, unread)
	want := []cluster.Cap{{Rule: cluster.GrpJobs, Max: 20}, {Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: 6}, {Rule: cluster.GrpTRES, TRES: "node", Max: 2},
		{Rule: cluster.GrpTRESMins, TRES: "gres/gpu", Max: 900}, {Rule: cluster.GrpWall, Max: 5000},
		{Rule: cluster.MaxJobs, Max: 11}, {Rule: cluster.MaxTRESMins, TRES: "gres/gpu", Max: 300}, {Rule: cluster.MaxTRESPerJob, TRES: "gres/gpu", Max: 5}, {Rule: cluster.MaxTRESPerNode, TRES: "gres/gpu:v100", Max: 4}, {Rule: cluster.MaxWall, Max: 90}}
	if d := cmp.Diff(want, a.caps.sorted()); d != "" || r.junk != "" || r.err != nil || a.user != "alice" || a.shares.n != 1 {
		t.Errorf("an association: %s; %s; %v; %+v", d, r.junk, r.err, a)
	}
	if !unread["GrpTRES=license/matlab"] || len(unread) != 1 {
		t.Errorf("not read: %v", unread)
	}
	digests := map[uint64]string{}
	for _, change := range [][2]string{{"", ""}, {`"count":1}]`, `"count":2}]`}, {`"total":[]`, `"total":[{"count":301}]`}, {`"active":[]`, `"active":[{"count":1}]`}} {
		text := strings.Replace(association, change[0], change[1], 1)
		a := readAssociation(newReader(strings.NewReader(text)), unreadTRES{})
		if was, ok := digests[a.caps.others]; ok || a.caps.others == 0 {
			t.Errorf("%q and %q have the same digest of unread limits", change[1], was)
		}
		digests[a.caps.others] = change[1]
	}
	for _, change := range []string{`"number":20`, `"count":6`, `"count":90`, `"number":500`, `"shares_raw":1`} { // these are read, or no limits
		a := readAssociation(newReader(strings.NewReader(strings.Replace(association, change, change+"1", 1))), unreadTRES{})
		if _, ok := digests[a.caps.others]; !ok {
			t.Errorf("%s changes the digest of unread limits", change)
		}
	}
	if a := readAssociation(newReader(strings.NewReader(`{"account":"nlp","max":{"jobs":{"accruing":{"set":false,"infinite":true,"number":0}},"tres":{"group":{"minutes":[ ]}}}}`)), nil); a.caps.others != 0 {
		t.Errorf("no limits have a digest")
	}
	r = newReader(strings.NewReader(qos))
	q, preempts := readQOS(r, unread)
	if q.Unread == 0 {
		t.Error("unread limits of the QOS have no digest")
	}
	q.Unread = 0
	if d := cmp.Diff([]string{"batch", "low"}, preempts); d != "" {
		t.Errorf("it preempts %s", d)
	}
	if d := cmp.Diff(cluster.QOS{Name: "hi", Flags: []string{cluster.OverPartQOS}, Caps: []cluster.Cap{{Rule: cluster.GrpJobs, Max: 9}, {Rule: cluster.GrpTRES, TRES: "cpu", Max: 100},
		{Rule: cluster.GrpWall, Max: 10000},
		{Rule: cluster.MaxJobsPerAccount, Max: 7}, {Rule: cluster.MaxJobsPerUser, Max: 5}, {Rule: cluster.MaxTRESPerAccount, TRES: "gres/gpu", Max: 3},
		{Rule: cluster.MaxTRESPerJob, TRES: "mem", Max: 1000}, {Rule: cluster.MaxTRESPerUser, TRES: "gres/gpu", Max: 2}, {Rule: cluster.MaxWall, Max: 100},
		{Rule: cluster.MinTRESPerJob, TRES: "gres/gpu", Max: 1}}}, q); d != "" || r.junk != "" || r.err != nil {
		t.Errorf("a QOS: %s; %s; %v", d, r.junk, r.err)
	}
	for conf, want := range map[string]bool{"associations,limits,qos": true, "associations,limits,qos,safe": true, "all": true, "associations": false, "qos": false, "": false, "(null)": false} {
		if got := EnforcesLimits(map[string]string{"AccountingStorageEnforce": conf}); got != want {
			t.Errorf("AccountingStorageEnforce=%s: limits hold: %v", conf, got)
		}
	}
}
