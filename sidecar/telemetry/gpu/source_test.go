package gpu

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/slurm/certs"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu/gputest"
)

// site is a web server that answers for every node by its first path element.
func site(t *testing.T, nodes map[string]http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler(nodes))
	t.Cleanup(s.Close)
	return s
}

func handler(nodes map[string]http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := nodes[strings.Split(r.URL.Path, "/")[1]]; h != nil {
			h(w, r)
		} else {
			http.NotFound(w, r)
		}
	})
}

func text(body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }
}

func exposition(host string) http.HandlerFunc {
	return text((&gputest.Node{Version: gputest.V49, Host: host, Devices: devices()}).Text())
}

func source(t *testing.T, url string, web Web, limits Limits) Source {
	t.Helper()
	s, err := NewExporters(url, DefaultTable(), web, limits)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Each way in which an exporter can fail is the error of its node, in words, and of no other node.
func TestBadExporters(t *testing.T) {
	const most = 64 << 10
	limits := Limits{AtOnce: 3, Timeout: 300 * time.Millisecond, Bytes: most}
	done := make(chan struct{})
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := fmt.Fprintln(w, "# nothing"); err != nil {
				return
			}
		}
	}
	s := site(t, map[string]http.HandlerFunc{
		"good": exposition("good"), "alias": exposition("alias-host.example.org"), "container": exposition("3f2a9c"),
		"wrong":   exposition("good.example.org"),
		"html":    text([]byte("<html><body>Sign in</body></html>\n")),
		"empty":   text(nil),
		"endless": endless,
		"series":  text(bytes.Repeat([]byte("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 1\n"), most/30)),
		"slow": func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-done:
			case <-r.Context().Done():
			}
		},
		"dripping": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "# a")
			w.(http.Flusher).Flush()
			select {
			case <-done:
			case <-r.Context().Done():
			}
		},
		"moved":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/good/metrics", http.StatusFound) },
		"login":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"broken": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5000")
			fmt.Fprint(w, "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 1\n")
		},
	})
	defer close(done)
	want := map[string]string{"good": "", "alias": "", "container": "", "wrong": "has the GPUs of node good", "html": "is no metric", "empty": "no GPU counter", "endless": "longer than", "series": "longer than",
		"slow": "in time", "dripping": "in time", "moved": "redirects to \"/good/metrics\"", "login": "set user and password_file", "broken": "500", "cut": "unexpected EOF", "missing": "404"}
	var nodes []Node
	for name := range want {
		nodes = append(nodes, Node{Name: name, Host: name + "-host"})
	}
	out, err := source(t, s.URL+"/{node}/metrics", Web{}, limits).Read(t.Context(), nodes)
	if err != nil || len(out) != len(nodes) {
		t.Fatalf("%d readings for %d nodes, %v", len(out), len(nodes), err)
	}
	for i, r := range out {
		switch text := want[nodes[i].Name]; {
		case text == "" && (r.Err != nil || len(r.Rows) != 2):
			t.Errorf("%s: %d rows, %v", nodes[i].Name, len(r.Rows), r.Err)
		case text != "" && (r.Err == nil || !strings.Contains(r.Err.Error(), text) || r.Rows != nil):
			t.Errorf("%s: %v, want an error with %q and no rows", nodes[i].Name, r.Err, text)
		}
	}
}

// No more requests are under way than allowed, and a node that does not answer is asked less and less often.
func TestRequestsAreBounded(t *testing.T) {
	var now, most, dead atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
		}
		if strings.HasPrefix(r.URL.Path, "/n0/") {
			dead.Add(1)
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		exposition("")(w, r)
	}))
	defer s.Close()
	nodes := make([]Node, 40)
	for i := range nodes {
		nodes[i].Name = fmt.Sprintf("n%d", i)
	}
	src := source(t, s.URL+"/{node}/metrics", Web{}, Limits{AtOnce: 4, Timeout: 10 * time.Second, Bytes: 1 << 20})
	const looks = 64
	for range looks {
		out, err := src.Read(t.Context(), nodes)
		if err != nil || out[0].Err == nil || out[39].Err != nil {
			t.Fatalf("%v, %v, %v", err, out[0].Err, out[39].Err)
		}
	}
	if most.Load() > 4 {
		t.Errorf("%d requests at once, want at most 4", most.Load())
	}
	if n := dead.Load(); n < 6 || n > 16 {
		t.Errorf("a silent node was asked %d times in %d looks", n, looks)
	}
}

func TestExportersWithTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(handler(map[string]http.HandlerFunc{"a": func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if r.Header.Get("Authorization") != "Bearer secret" && (user != "me" || password != "secret") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		exposition("")(w, r)
	}}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	dir := t.TempDir()
	ca, secret := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "secret")
	file := func(path string, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	file(secret, []byte("secret\n"))
	for _, c := range []struct {
		web  Web
		want string
	}{
		{Web{Files: certs.Files{CAFile: ca}, TokenFile: secret}, ""},
		{Web{Files: certs.Files{CAFile: ca}, User: "me", PasswordFile: secret}, ""},
		{Web{Files: certs.Files{CAFile: ca}}, "401"},
		{Web{TokenFile: secret}, "certificate"},
		{Web{Files: certs.Files{CAFile: ca, ServerName: "other.example.org"}, TokenFile: secret}, "certificate is valid for"},
		{Web{Files: certs.Files{CAFile: ca}, TokenFile: filepath.Join(dir, "absent")}, "reading the password or token"},
	} {
		out, _ := source(t, s.URL+"/{node}/metrics", c.web, ExporterLimits).Read(t.Context(), []Node{{Name: "a"}})
		if err := out[0].Err; c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.web, err, c.want)
		}
	}
}

func TestURLsOfSources(t *testing.T) {
	for _, url := range []string{"", "gpu:9400", "http://gpu:9400/metrics", "ftp://{node}/", "http://{node", "unix:///{node}"} {
		if _, err := NewExporters(url, DefaultTable(), Web{}, ExporterLimits); err == nil || !strings.Contains(err.Error(), "{node}") {
			t.Errorf("%q: %v", url, err)
		}
	}
	if _, err := NewPrometheus("prometheus", "", DefaultTable(), Web{}, PrometheusLimits, cluster.Minute, time.Now); err == nil {
		t.Error("prometheus is no URL")
	}
	if _, err := NewExporters("https://{node}/", DefaultTable(), Web{Files: certs.Files{CAFile: os.DevNull}}, ExporterLimits); err == nil || !strings.Contains(err.Error(), "no certificate") {
		t.Errorf("no certificate: %v", err)
	}
}

// series is one series of a fake Prometheus.
type series struct {
	name, labels, value string
	age                 time.Duration // of its sample
}

var present = time.Unix(1_800_000_000, 0)

// vector answers a query as Prometheus does: all series of its counters, and their times.
func vector(list []series, query, warning string) []byte {
	type result struct {
		Metric map[string]string `json:"metric"`
		Value  [2]any            `json:"value"`
	}
	var out []result
	for _, s := range list {
		if !strings.Contains(query, s.name) {
			continue
		}
		metric := func() map[string]string {
			m := map[string]string{}
			for _, pair := range strings.Split(s.labels, ",") {
				name, value, _ := strings.Cut(pair, "=")
				m[name] = value
			}
			return m
		}
		m := metric()
		m["__name__"] = s.name
		out = append(out, result{m, [2]any{float64(present.Unix()), s.value}})
		m = metric()
		m[stampLabel] = s.name
		out = append(out, result{m, [2]any{float64(present.Unix()), fmt.Sprint(present.Add(-s.age).Unix())}})
	}
	answer := map[string]any{"status": "success", "data": map[string]any{"resultType": "vector", "result": out}}
	if warning != "" {
		answer["warnings"] = []string{warning}
	}
	body, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return body
}

func askPrometheus(t *testing.T, h http.HandlerFunc, nodes ...string) ([]Reading, error) {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	src, err := NewPrometheus(s.URL, "", DefaultTable(), Web{}, Limits{AtOnce: 1, Timeout: time.Second, Bytes: 1 << 20}, 2*cluster.Minute, func() time.Time { return present })
	if err != nil {
		t.Fatal(err)
	}
	var list []Node
	for _, n := range nodes {
		list = append(list, Node{Name: n, Host: n, Address: n + ".cluster"})
	}
	return src.Read(context.Background(), list)
}

// Stale, doubled and partial series of a Prometheus: what is certain counts, and the rest is said.
func TestPrometheus(t *testing.T) {
	list := []series{
		{"DCGM_FI_DEV_GPU_UTIL", "gpu=0,instance=a:9400", "50", 10 * time.Second},
		{"DCGM_FI_DEV_GPU_UTIL", "gpu=0,instance=a:9400,job=twice", "40", 20 * time.Second}, // older: the other counts
		{"DCGM_FI_DEV_POWER_USAGE", "gpu=0,instance=a:9400", "300", 10 * time.Second},
		{"DCGM_FI_DEV_POWER_USAGE", "gpu=0,instance=a:9400,job=twice", "310", 10 * time.Second}, // which of them?
		{"DCGM_FI_DEV_SM_CLOCK", "gpu=0,instance=a:9400", "1980", 3 * time.Minute},              // stale
		{"DCGM_FI_DEV_GPU_UTIL_RATIO", "gpu=1,exported_hostname=b.cluster,hostname=collector,instance=x:1", "0.5", 0},
		{"DCGM_FI_DEV_GPU_UTIL", "gpu=0,instance=c.cluster:9400", "NaN", 0},
		{"DCGM_FI_DEV_FB_USED", "gpu=0,instance=c.cluster:9400", "-7", 0},
		{"DCGM_FI_DEV_GPU_UTIL", "gpu=0,instance=d:9400", "0", 4 * time.Minute},
		{"DCGM_FI_DEV_GPU_UTIL", "gpu=0,instance=stranger:9400", "50", 0},
		{"DCGM_FI_DEV_GPU_UTIL", "gpu=0,hpc_job=1,instance=f:9400", "70", 0},
		{"DCGM_FI_DEV_GPU_UTIL", "gpu=0,hpc_job=2,instance=f:9400", "70", 0},
		{"DCGM_FI_DEV_GPU_UTIL", "gpu=0,instance=g:9400", "70", -time.Hour}, // from the future
	}
	out, err := askPrometheus(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.FormValue("time") != "1800000000.000" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = w.Write(vector(list, r.FormValue("query"), "one store did not answer"))
	}, "a", "b", "c", "d", "e", "f", "g")
	if err == nil || !strings.Contains(err.Error(), "one store did not answer") {
		t.Errorf("the warning is not told: %v", err)
	}
	if v := out[0].Rows[0].Values; v[Util] != 0.5 || v.Has(Power) || v.Has(Clock) {
		t.Errorf("a: %+v", v)
	}
	if at := cluster.InstantOf(present.Add(-10 * time.Second)); out[0].At != at {
		t.Errorf("a is of %v, want %v", out[0].At, at)
	}
	if r := out[1].Rows[0]; r.Index != 1 || r.Values[Util] != 0.5 {
		t.Errorf("b: %+v", r)
	}
	if v := out[2].Rows[0].Values; v != missing && (v.Has(Util) || v.Has(Used)) {
		t.Errorf("c: %+v", v)
	}
	for i, want := range map[int]string{3: "the newest sample", 4: "has no series of it", 6: "has no series of it"} {
		if out[i].Err == nil || !strings.Contains(out[i].Err.Error(), want) || out[i].Rows != nil {
			t.Errorf("node %d: %v, want %q", i, out[i].Err, want)
		}
	}
	if r := out[5].Rows; len(r) != 1 || !r[0].Shared || !near(r[0].Values[Util], 0.7) {
		t.Errorf("f: %+v", r)
	}
}

// No answer of a Prometheus makes the reader panic, or gives a value out of bounds.
func FuzzAnswer(f *testing.F) {
	whole := vector([]series{{"DCGM_FI_DEV_GPU_UTIL", "gpu=0,instance=a:9400", "50", 0}, {"DCGM_FI_DEV_POWER_USAGE", "gpu=1,GPU_I_ID=3,hpc_job=7,hostname=a", "-1e999", 0}}, "DCGM_FI_DEV_GPU_UTIL DCGM_FI_DEV_POWER_USAGE", "w")
	for _, text := range [][]byte{whole, whole[:len(whole)/2], []byte(`{"status":"success","data":{"resultType":"vector","result":[{"metric":null,"value":[1]}]}}`), []byte("null"), nil} {
		f.Add(text)
	}
	p := NewParser(DefaultTable())
	f.Fuzz(func(t *testing.T, text []byte) {
		w := &wanted{parser: p, of: namesOf([]Node{{Name: "a"}}), nodes: make([]gather, 1), newest: make([]float64, 1), latest: math.Inf(1)}
		if _, err := w.answer(text); err != nil {
			return
		}
		for _, row := range w.nodes[0].finish() {
			for m, v := range row.Values {
				if !math.IsNaN(v) && !(v >= 0 && v <= mosts[m]) {
					t.Fatalf("%s is %g", meaningNames[m], v)
				}
			}
		}
	})
}

// An answer that is not whole and well-formed tells nothing of any node.
func TestBadPrometheus(t *testing.T) {
	good := vector([]series{{"DCGM_FI_DEV_GPU_UTIL", "gpu=0,instance=a:9400", "50", 0}}, "DCGM_FI_DEV_GPU_UTIL", "")
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		want string
	}{
		"html":    {text([]byte("<html>")), "not that of a Prometheus server"},
		"cut":     {text(good[:len(good)-20]), "not that of a Prometheus server"},
		"error":   {text([]byte(`{"status":"error","error":"query timed out"}`)), "query timed out"},
		"matrix":  {text([]byte(`{"status":"success","data":{"resultType":"matrix","result":[]}}`)), "matrix"},
		"number":  {text(bytes.Replace(good, []byte(`"50"`), []byte(`50`), 1)), "must be a quoted string"},
		"word":    {text(bytes.Replace(good, []byte(`"50"`), []byte(`"x"`), 1)), "invalid syntax"},
		"none":    {text(bytes.Replace(good, []byte(`"value"`), []byte(`"v"`), 1)), "no value"},
		"long":    {text(bytes.Repeat([]byte(" "), 2<<20)), "longer than"},
		"moved":   {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, "redirects to"},
		"login":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, "set user and password_file"},
		"down":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, "503"},
		"no time": {func(_ http.ResponseWriter, r *http.Request) { _ = r.ParseForm(); <-r.Context().Done() }, "in time"},
	} {
		out, err := askPrometheus(t, c.h, "a")
		if err == nil || !strings.Contains(err.Error(), c.want) || out[0].Err == nil || out[0].Rows != nil {
			t.Errorf("%s: %v, %v, want %q", name, err, out[0].Err, c.want)
		}
	}
	// A later query fails, or an answer lacks the times of its values.
	asked := 0
	out, err := askPrometheus(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked > 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write(good)
	}, "a")
	if err == nil || out[0].Err == nil || out[0].Rows != nil {
		t.Errorf("one of the queries failed: %v, %+v", err, out)
	}
	untimed := bytes.ReplaceAll(good, []byte(stampLabel), []byte("other"))
	if out, err = askPrometheus(t, text(untimed), "a"); err != nil || out[0].Err == nil || out[0].Rows != nil {
		t.Errorf("values without times: %v, %+v", err, out)
	}
	if _, err := new(wanted).answer(bytes.Repeat([]byte(`"metric"`), mostSeries+1)); err == nil || !strings.Contains(err.Error(), "series") {
		t.Errorf("too many series: %v", err)
	}
}
