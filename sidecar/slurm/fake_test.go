package slurm

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// recorded is a slurmrestd on a unix socket that gives the answers of a test and records the
// requests.
type recorded struct {
	testing.TB
	addr string

	mu      sync.Mutex
	answers map[string]answer // "GET /slurm/v0.0.45/jobs/"
	asked   []asked
}

type answer func(w http.ResponseWriter, r *http.Request)

type asked struct{ what, query, body, token string }

func newRecorded(t testing.TB, versions ...int) *recorded {
	f := &recorded{TB: t, answers: map[string]answer{}}
	socket := filepath.Join(t.TempDir(), "slurmrestd.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(f)
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	f.addr = "unix://" + socket
	paths := map[string]any{"/openapi/v3": map[string]any{}}
	for _, v := range versions {
		paths[fmt.Sprintf("/slurm/v0.0.%d/jobs/", v)] = map[string]any{"get": map[string]any{}}
	}
	f.on("GET /openapi/v3", say(map[string]any{"paths": paths}))
	v := fmt.Sprintf("v0.0.%d", versions[len(versions)-1])
	f.on("GET /slurm/"+v+"/diag", text(`{"statistics":{"req_time":{"set":true,"infinite":false,"number":1000000},"req_time_start":{"set":true,"infinite":false,"number":5}},"meta":{"slurm":{"cluster":"test","release":"26.05.5"}},"errors":[]}`))
	f.on("GET /slurm/"+v+"/nodes/", text(`{"nodes":[{"name":"v1","state":["IDLE"],"gres":"gpu:v100:4","cpus":16,"real_memory":8000,"partitions":["main"]}],"last_update":900,"errors":[]}`))
	f.on("GET /slurm/"+v+"/partitions/", text(`{"partitions":[{"name":"main","nodes":{"configured":"v1"},"partition":{"state":["UP"]}}],"last_update":{"set":true,"infinite":false,"number":900},"errors":[]}`))
	f.on("GET /slurm/"+v+"/reservations/", text(`{"reservations":[],"last_update":900,"errors":[]}`))
	f.on("GET /slurmdb/"+v+"/associations/", text(`{"associations":[{"account":"root","user":"","cluster":"test"},{"account":"nlp","user":"","parent_account":"root","shares_raw":3,"cluster":"test"},{"account":"nlp","user":"alice","cluster":"test"}],"errors":[]}`))
	return f
}

func (f *recorded) on(what string, a answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[what] = a
}

// texts are fields of a job that belong to its owner, to administrators and to their agents: fairlease never writes them.
var texts = regexp.MustCompile(`"(admin_comment|comment|extra|system_comment|mail_user|mail_type)":`)

// Nothing in the client names such a field as one to write, by REST or by scontrol.
func TestTextsOfOthersAreLeftAlone(t *testing.T) {
	written := regexp.MustCompile(`(?i)"(admin_?comment|comment|extra|system_?comment)(="|"\] *= |" *: )`)
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 20 {
		t.Fatal(len(files), err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if m := written.Find(b); m != nil && !strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s writes %s: texts of a job belong to its owner and administrators, so fairlease writes none", name, m)
		}
	}
	if !written.MatchString(`change{"comment": "x"}`) || !written.MatchString(`"AdminComment="+x`) || !texts.MatchString(`{"extra":"x"}`) {
		t.Error("a written text is not found")
	}
}

func (f *recorded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := new(strings.Builder)
	fmt.Fprint(body, readBody(r))
	what := r.Method + " " + r.URL.Path
	if r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/job") && texts.MatchString(body.String()) {
		f.Errorf("%s writes a text that belongs to others: %s", what, body)
	}
	f.mu.Lock()
	f.asked = append(f.asked, asked{what, r.URL.RawQuery, body.String(), r.Header.Get("X-SLURM-USER-TOKEN")})
	a := f.answers[what]
	f.mu.Unlock()
	if a == nil {
		http.Error(w, "Unable find requested URL", http.StatusNotFound)
		return
	}
	a(w, r)
}

func readBody(r *http.Request) string {
	var b strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := r.Body.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return b.String()
		}
	}
}

// count gives the number of such requests.
func (f *recorded) count(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, a := range f.asked {
		if a.what == what {
			n++
		}
	}
	return n
}

func (f *recorded) all() []asked {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]asked(nil), f.asked...)
}

func (f *recorded) client(change ...func(*Config)) *Client {
	f.Helper()
	cfg := Config{Address: f.addr, Timeout: 5 * time.Second, Scontrol: []string{"false"}, Now: func() time.Time { return time.Unix(1_000_100, 0) }}
	for _, c := range change {
		c(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(c.Close)
	return c
}

// see observes and fails the test if that fails.
func (f *recorded) see(c *Client) cluster.Observation {
	f.Helper()
	s, err := c.Observe(f.Context(), 0)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

func text(s string) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, s)
	}
}

func say(v any) answer {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text(string(b))
}

func status(code int, a answer) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		a(w, r)
	}
}

// jobs is a full list.
func jobs(lastUpdate int, records ...string) answer {
	return text(fmt.Sprintf(`{"jobs":[%s],"last_update":{"set":true,"infinite":false,"number":%d},"meta":{"slurm":{"cluster":"test"}},"errors":[],"warnings":[]}`, strings.Join(records, ","), lastUpdate))
}

// waitingJob is a record of a job that waits for two GPUs.
func waitingJob(id int, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"job_id":%d,"job_state":["PENDING"],"name":"train","user_name":"alice","account":"nlp","partition":"main","batch_flag":true,"requeue":true,`+
		`"tres_req_str":"cpu=2,mem=100M,node=1,billing=2,gres/gpu=2","tres_per_node":"gres/gpu:2","submit_time":{"set":true,"infinite":false,"number":100},`+
		`"priority":{"set":true,"infinite":false,"number":7}%s}`, id, more)
}

func runningJob(id int, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"job_id":%d,"job_state":["RUNNING"],"name":"train","user_name":"alice","account":"nlp","partition":"main","batch_flag":true,"requeue":true,`+
		`"tres_req_str":"cpu=2,mem=100M,node=1,billing=2,gres/gpu=2","tres_per_node":"gres/gpu:2","nodes":"v1","gres_detail":["gpu:v100:2(IDX:0-1)"],`+
		`"job_resources":{"nodes":{"count":1,"allocation":[{"index":0,"name":"v1","cpus":{"count":2,"used":0},"memory":{"used":0,"allocated":100},"sockets":[]}]}},`+
		`"submit_time":100,"start_time":{"set":true,"infinite":false,"number":200},"restart_cnt":0%s}`, id, more)
}
