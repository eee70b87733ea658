package metrics

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"flag"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/crypto/bcrypt"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/objective"
	"github.com/fairlease/fairlease/sidecar/cluster/spending"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/loop"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/round.txt anew")

// clock is a clock that a test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

const noon cluster.Instant = 1_800_000_000_000

// busy is the report of a round in which everything happens.
func busy() *loop.Report {
	hour := cluster.GPUTime(cluster.Hour)
	return &loop.Report{
		Waits: 90 * cluster.Second,
		Plan: cluster.Plan{
			At: noon,
			Actions: []cluster.Action{{Verb: cluster.Grant}, {Verb: cluster.Reclaim}, {Verb: cluster.Reclaim}, {Verb: cluster.Reclaim},
				{Verb: cluster.Gate, Suppressed: true}, {Verb: cluster.Notify}},
			Bound: []cluster.BoundJob{ // of nlp's 4.5 GPUs, 3 are bound the longest; job 3 is not known
				{Job: 1, Way: cluster.WayAge, Pool: "v100", GPUs: cluster.CountOf(2), Since: noon.Add(-2 * cluster.Hour)}, {Job: 2, Way: cluster.WaySession, Pool: "v100", GPUs: cluster.CountOf(3), Since: noon.Add(-3 * cluster.Hour)},
				{Job: 3, Way: cluster.WayAge, Pool: "v100", GPUs: cluster.CountOf(7)}, {Job: 4, Way: cluster.WayAge, Pool: "v100", GPUs: cluster.CountOf(1), Since: noon.Add(-cluster.Hour)},
				{Job: 5, Way: "no_tenant", Pool: "v100", GPUs: cluster.CountOf(9)}, {Job: 6, Way: cluster.WayExempt, Pool: "k80", GPUs: cluster.CountOf(1), Since: noon.Add(-cluster.Minute)},
			},
			Ended:  []cluster.Lease{{Why: "finished"}, {Why: "reclaimed"}, {Why: "finished"}},
			Losses: []cluster.Loss{{Time: hour / 2}, {Time: hour / 2}},
			Tenants: []cluster.TenantStatus{
				{Tenant: "nlp", Pool: "v100", Holds: cluster.CountOf(6), Entitlement: 4_500_000, Demand: 9_000_000, Borrowed: 1_500_000, Waiting: 3, Owed: -hour, Rho: 1_250_000},
				{Tenant: "new", Pool: "v100"},
				{Tenant: "starving", Pool: "v100", Entitlement: 2_000_000, Demand: 2_000_000, Lent: 2_000_000, Deficit: hour},
				{Tenant: "undue", Pool: "v100", Holds: cluster.CountOf(1), Rho: cluster.Infinite},
			},
			State: cluster.State{
				NodeSpeeds: cluster.NodeSpeeds{Slow: []cluster.SlowNode{{Node: "n7", Model: "v100", Percent: 62}},
					GPUs: []cluster.SlowGPU{{SlowNode: cluster.SlowNode{Node: "n8", Model: "v100", Percent: 70}, Index: 3}}},
				Claims: []cluster.Claim{{}},
				Leases: []cluster.Lease{{State: cluster.Active}, {State: cluster.Active}, {State: cluster.Noticed}},
				Records: []cluster.Record{
					{State: cluster.Running}, {State: cluster.Waiting, Gate: noon + 1}, {State: cluster.Waiting, Gate: noon - 1},
					{State: cluster.Waiting, Locked: true}, {State: cluster.Waiting, Aside: "unreadable"}, {State: cluster.Running, Done: noon},
					{State: cluster.Running, Key: 1, Tenant: "nlp"}, {State: cluster.Running, Key: 2, Tenant: "nlp"}, {State: cluster.Running, Key: 4, Tenant: "nlp"},
					{State: cluster.Running, Key: 5}, {State: cluster.Running, Key: 6, Tenant: "undue"},
				},
				Ledger: cluster.Ledger{
					Tenants: []cluster.TenantPool{
						{Tenant: "nlp", Pool: "v100", Alloc: 5 * hour, Due: 4 * hour, Buckets: []cluster.Bucket{{}, {Due: 1}}},
						{Tenant: "new", Pool: "v100"},
						{Tenant: "starving", Pool: "v100", Due: hour, Buckets: []cluster.Bucket{{Due: hour}}},
						{Tenant: "undue", Pool: "v100", Alloc: hour, Buckets: []cluster.Bucket{{Alloc: hour}}},
					},
					Pools: []cluster.PoolAccount{{Pool: "v100", GPUs: cluster.CountOf(8), BadGPUs: cluster.CountOf(1), Tenants: 6 * hour, Untouchable: hour, Overhead: 2 * hour, Idle: 3 * hour, Bad: 4 * hour}},
				},
			},
		},
		Outcomes: []cluster.Outcome{{OK: true}, {OK: true}, {OK: true}, {Error: "no"}, {Skipped: true}, {Skipped: true}},
	}
}

// The results of a round can be read, name by name.
func TestMetricsOfARound(t *testing.T) {
	c := &clock{noon.Time()}
	m := New("v0.1.0", c.now)
	m.Phase(Decide, 20*time.Millisecond)
	m.Call("get_jobs", time.Second, nil)
	m.Call("post_job", 3*time.Second, errors.New("no"))
	m.Skipped(2)
	m.Journal(1 << 30)
	m.Nodes(map[string]int{"fresh": 7, "silent": 1})
	m.Budgets(spending.Book{
		{Budget: spending.Budget{Tenant: "nlp", Hours: 200, AtEnd: spending.IdleOnly, Zone: time.UTC}, Used: 250, Spent: noon, Told: 100},
		{Budget: spending.Budget{Tenant: "starving", Hours: 200, Zone: time.UTC}, Used: 50},
	})
	m.Forecast([]forecast.Coverage{{Kind: "waiting_start", Statements: 1200, Percent: 78.5}, {Kind: "running_end", Statements: 30, Percent: 90}, {Kind: "waiting_start", By: "tenant", Class: "nlp", Statements: 60}})
	m.Objectives(objective.Counts{{Objective: objective.Rounds, Total: 10, Bad: 1}, {Objective: objective.FirstLease, Tenant: "nlp", Total: 4},
		{Objective: objective.FirstLease, Tenant: "nlp", Bad: -1}}, // left out: no counter can take it
		objective.Targets{Percent: map[objective.Name]float64{objective.Rounds: 99, objective.FirstLease: 95}})
	m.Round(busy(), nil, 300*time.Millisecond)
	m.Round(&loop.Report{Quiet: true}, nil, time.Millisecond)
	m.Round(&loop.Report{}, errors.New("no look"), time.Millisecond)
	m.Well(Leader, "", 10*time.Second)
	c.at = c.at.Add(4 * time.Second)
	text := scrape(t, m)
	var got []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "fairlease_") && !strings.Contains(line, "_bucket{") {
			got = append(got, line)
		}
	}
	slices.Sort(got)
	if *rewrite {
		if err := os.WriteFile("testdata/round.txt", []byte(strings.Join(got, "")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/round.txt")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), strings.Join(got, "")); d != "" {
		t.Errorf("the metrics differ from testdata/round.txt:\n%s", d)
	}
	problems, err := testutil.GatherAndLint(m.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for _, word := range []string{"job=", "job_id=", "user="} {
		if strings.Contains(text, "{"+word) || strings.Contains(text, ","+word) {
			t.Errorf("a metric has a label %s", word)
		}
	}
}

func scrape(t *testing.T, m *Meter) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler(func() bool { return true }).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// A standby and a daemon that stops making rounds do not repeat what was true once.
func TestReady(t *testing.T) {
	c := &clock{noon.Time()}
	m := New("v", c.now)
	hangs := false
	h := m.Handler(func() bool { return !hangs })
	asks := func(path string, status int, text string) {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != status || w.Body.String() != text+"\n" {
			t.Errorf("%s: %d %q, want %d %q", path, w.Code, w.Body, status, text)
		}
	}
	asks("/livez", 200, "alive")
	asks("/readyz", 503, "no round yet")
	m.Ill(errors.New("no Slurm"))
	asks("/readyz", 503, "no round yet: no Slurm")
	m.Well(Leader, "", 10*time.Second)
	m.Round(busy(), nil, time.Second)
	asks("/readyz", 200, "leader: last round 0 s ago")
	c.at = c.at.Add(50 * time.Second)
	m.Ill(errors.New("no journal"))
	asks("/readyz", 200, "leader: last round 50 s ago")
	c.at = c.at.Add(11 * time.Second)
	asks("/readyz", 503, "no round for 1 min 1 s: no journal")
	if text := scrape(t, m); !strings.Contains(text, "fairlease_ready 0\n") || !strings.Contains(text, "fairlease_leader 0\n") || !strings.Contains(text, "fairlease_round_age_seconds 61\n") {
		t.Errorf("of a daemon that is not ready:\n%s", text)
	}
	m.Well(Standby, "another daemon leads: a:1", time.Minute)
	c.at = c.at.Add(3 * time.Minute)
	asks("/readyz", 200, "standby: another daemon leads: a:1")
	text := scrape(t, m)
	if !strings.Contains(text, "fairlease_ready 1\n") || !strings.Contains(text, "fairlease_leader 0\n") || strings.Contains(text, "fairlease_account_") {
		t.Errorf("of a standby:\n%s", text)
	}
	hangs = true
	asks("/livez", 503, "a round hangs")
	for _, r := range []*http.Request{httptest.NewRequest(http.MethodPost, "/metrics", nil), httptest.NewRequest(http.MethodGet, "/../etc/passwd", nil)} {
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code == http.StatusOK {
			t.Errorf("%s %s was answered", r.Method, r.URL)
		}
	}
}

// A daemon without a meter measures nothing.
func TestNoMeter(t *testing.T) {
	var m *Meter
	m.Phase(Act, 1)
	m.Call("get_jobs", 1, nil)
	m.Skipped(1)
	m.Journal(1)
	m.Nodes(nil)
	m.Budgets(nil)
	m.Forecast(nil)
	m.Round(busy(), nil, 1)
	m.Well(Leader, "", 1)
	m.Ill(errors.New("no"))
}

// TLS and users come from a file of exporter-toolkit's; an address without them, or with the wrong ones, is refused.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t, dir)
	password, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "web.yml")
	if err := os.WriteFile(file, []byte("tls_server_config: {cert_file: "+cert+", key_file: "+key+"}\nbasic_auth_users: {prometheus: '"+string(password)+"'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	at, over := make(chan net.Addr, 1), make(chan error, 1)
	m := New("v", time.Now)
	go func() {
		over <- Serve(ctx, "127.0.0.1:0", file, m.Handler(func() bool { return true }), func(a net.Addr) { at <- a })
	}()
	address := (<-at).String()
	pem, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
	for password, want := range map[string]int{"secret": http.StatusOK, "wrong": http.StatusUnauthorized} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/livez", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("prometheus", password)
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("with the password %q: %d, want %d", password, res.StatusCode, want)
		}
	}
	if err := Serve(t.Context(), address, "", http.NotFoundHandler(), func(net.Addr) {}); err == nil || !strings.HasPrefix(err.Error(), "metrics.listen: ") {
		t.Errorf("of an address in use: %v", err)
	}
	if err := Serve(t.Context(), "127.0.0.1:0", filepath.Join(dir, "none.yml"), http.NotFoundHandler(), func(net.Addr) { t.Error("it listens without its file") }); err == nil || !strings.HasPrefix(err.Error(), "metrics.web_config: ") {
		t.Errorf("of a file that is not there: %v", err)
	}
	stop()
	if err := <-over; err != nil {
		t.Errorf("the end: %v", err)
	}
}

// certificate writes a certificate for 127.0.0.1 and its key.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fairlease"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &secret.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// Events that were left out are counted once, round by round; what a process finds at its start another one has counted.
func TestEventsLeftOut(t *testing.T) {
	m := New("v0.1.0", time.Now)
	round := func(noise ...cluster.Noise) {
		m.Round(&loop.Report{Plan: cluster.Plan{State: cluster.State{Noise: noise}}}, nil, 0)
	}
	says := func(want string) {
		t.Helper()
		if text := scrape(t, m); !strings.Contains(text, "\nfairlease_events_left_out_total "+want+"\n") {
			t.Errorf("not %s:\n%s", want, text)
		}
	}
	round(cluster.Noise{User: "ann", Since: 1, Left: 7})
	says("0")
	round(cluster.Noise{User: "ann", Since: 1, Left: 9}, cluster.Noise{User: "bob", Since: 2, Left: 3})
	says("5")
	round(cluster.Noise{User: "bob", Since: 2, Left: 3})
	says("5")
	round(cluster.Noise{User: "ann", Since: 3_600_001, Left: 1}, cluster.Noise{User: "bob", Since: 2, Left: 3})
	says("6")
}
