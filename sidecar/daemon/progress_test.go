package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/telemetry"
)

// A sighting contains the reports of jobs in the folder, and nothing else; only a job's owner can
// report for it.
func TestReportsFromTheFolder(t *testing.T) {
	folder, log := t.TempDir(), &bytes.Buffer{}
	cfg, err := config.Parse("f.yaml", []byte("models: {progress: {folder: "+folder+"}}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	d := &progress{report: &reporter{log: zerolog.New(log)}}
	closing, err := d.listen(context.Background(), &cfg.Models.Progress)
	if err != nil {
		t.Fatal(err)
	}
	defer closing()
	me := uint32(os.Getuid())
	seen := func() []cluster.Progress {
		s := cluster.Observation{Now: cluster.InstantOf(time.Now()), Jobs: []cluster.Job{
			{ID: cluster.JobID{ID: 7}, User: "alice", UID: me, State: cluster.Running},
			{ID: cluster.JobID{ID: 8}, User: "alice", UID: me + 1, State: cluster.Running},
			{ID: cluster.JobID{ID: 9}, User: "alice", UID: me, State: cluster.Waiting},
		}}
		d.hear(&s) // starts a read of the folder
		all := <-d.drop.got
		d.drop.got <- all
		d.hear(&s) // takes its result
		<-d.drop.got
		d.drop.got = nil
		return s.Progress
	}
	if got := seen(); got != nil || log.Len() > 0 {
		t.Fatalf("from an empty folder: %+v, %s", got, log)
	}
	if err := os.Mkdir(filepath.Join(folder, "alice"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"7", "8", "9"} {
		if err := os.WriteFile(filepath.Join(folder, "alice", id+".json"), []byte(`{"job": "`+id+`", "steps": 120}`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := seen(); len(got) != 1 || got[0].Job.ID != 7 || got[0].Steps != 120 {
		t.Errorf("heard %+v, want job 7's 120 steps", got)
	}
	if !strings.Contains(log.String(), "8.json") {
		t.Errorf("nothing is said of a report of another's job: %s", log)
	}
	if got := seen(); got != nil {
		t.Errorf("heard again: %+v", got)
	}
}

// The daemon listens on an address while it runs; a bad address is reported at the start.
func TestReportsByAddress(t *testing.T) {
	_, address, closing := listening(t)
	answer, err := http.Post("http://"+address+"/v1/progress", "text/plain", strings.NewReader("no credential"))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode < 400 {
		t.Errorf("a report without a credential is answered with %s", answer.Status)
	}
	other := &progress{report: &reporter{log: zerolog.Nop()}}
	if _, err := other.listen(context.Background(), &config.Progress{Listen: address}); err == nil || !strings.Contains(err.Error(), "models.progress.listen") {
		t.Errorf("the same address twice: %v", err)
	}
	closing()
}

// By TLS, a job's owner reports with a token that Slurm takes, as a user of a running job.
func TestReportsByToken(t *testing.T) {
	issuer := httptest.NewUnstartedServer(nil)
	issuer.StartTLS()
	issuer.Close()
	dir := t.TempDir()
	write := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key, err := x509.MarshalPKCS8PrivateKey(issuer.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write("crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issuer.Certificate().Raw}))
	write("key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	write("web.yaml", []byte("tls_server_config: {cert_file: crt, key_file: key}\n"))
	log := &bytes.Buffer{}
	d := &progress{report: &reporter{log: zerolog.New(log)}, takes: func(_ context.Context, user, _ string) (bool, error) { return user != "eve", nil }}
	cfg := config.Default().Models.Progress
	cfg.Listen, cfg.WebConfig = "127.0.0.1:0", filepath.Join(dir, "web.yaml")
	closing, err := d.listen(context.Background(), &cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer closing()
	_, address, _ := strings.Cut(log.String(), `"address":"`)
	address, _, _ = strings.Cut(address, `"`)
	round := func() []cluster.Progress {
		s := cluster.Observation{Now: cluster.InstantOf(time.Now()), Jobs: []cluster.Job{
			{ID: cluster.JobID{ID: 1}, User: "alice", UID: 7, State: cluster.Running}, {ID: cluster.JobID{ID: 2}, User: "bob", UID: 8, State: cluster.Waiting},
			{ID: cluster.JobID{ID: 3}, UID: 9, State: cluster.Running}, // of a user without a name
		}}
		d.hear(&s)
		return s.Progress
	}
	post := func(user string) int {
		t.Helper()
		text := base64.RawURLEncoding.EncodeToString
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+"/v1/progress", strings.NewReader(`{"job":"1","steps":12}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+text([]byte(`{"alg":"HS256"}`))+"."+text(fmt.Appendf(nil, `{"exp":%d,"sun":%q}`, time.Now().Add(time.Hour).Unix(), user))+"."+text([]byte("x")))
		answer, err := issuer.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	if got := post("alice"); got != http.StatusNotFound {
		t.Errorf("before the first round: status %d", got)
	}
	round()
	for user, want := range map[string]int{"alice": http.StatusAccepted, "bob": http.StatusNotFound, "eve": http.StatusUnauthorized} {
		if got := post(user); got != want {
			t.Errorf("%s reports: status %d, want %d", user, got, want)
		}
	}
	if got := round(); len(got) != 1 || got[0].Job.ID != 1 || got[0].Steps != 12 {
		t.Errorf("heard %+v", got)
	}
	trust := issuer.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: trust, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := conn.ConnectionState().NegotiatedProtocol; got != "http/1.1" { // a connection of HTTP/2 has many requests at once
		t.Errorf("the server speaks %q", got)
	}
	_ = conn.Close()
	cfg.WebConfig = filepath.Join(dir, "none")
	if _, err := d.listen(context.Background(), &cfg); err == nil || !strings.Contains(err.Error(), "models.progress.web_config") {
		t.Errorf("no such file: %v", err)
	}
}

// During a flood of connections with unfinished requests, a round still gets another user's
// report.
func TestReportsInAFlood(t *testing.T) {
	d, address, closing := listening(t)
	defer closing()
	d.inbox.Open = func(context.Context, []byte) (uint32, []byte, error) { return 7, []byte(`{"job":"1","steps":12}`), nil }
	round := func() []cluster.Progress {
		s := cluster.Observation{Now: cluster.InstantOf(time.Now()), Jobs: []cluster.Job{{ID: cluster.JobID{ID: 1}, User: "alice", UID: 7, State: cluster.Running}}}
		d.hear(&s)
		return s.Progress
	}
	round() // makes the job known
	for range 400 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "POST /v1/progress HTTP/1.1\r\n") // or the connection was closed
	}
	answer, err := http.Post("http://"+address+"/v1/progress", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if got := round(); answer.StatusCode != http.StatusAccepted || len(got) != 1 || got[0].Steps != 12 {
		t.Errorf("answered with %s; the round has %+v", answer.Status, got)
	}
}

// listening gives what receives reports, and its address.
func listening(t *testing.T) (d *progress, address string, closing func()) {
	t.Helper()
	log := &bytes.Buffer{}
	d = &progress{report: &reporter{log: zerolog.New(log)}}
	c := config.Default().Models.Progress
	c.Listen = "127.0.0.1:0"
	closing, err := d.listen(context.Background(), &c)
	if err != nil {
		t.Fatal(err)
	}
	_, address, _ = strings.Cut(log.String(), `"address":"`)
	address, _, _ = strings.Cut(address, `"`)
	return d, address, closing
}

// stuck is a cluster whose folder of reports does not answer until told to.
type stuck struct {
	*live
	d       chan *Daemon
	answers chan struct{}
}

func (s stuck) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	d := <-s.d
	s.d <- d
	d.service.rounds.progress.drop.read = func([]telemetry.Holder, cluster.Instant) ([]cluster.Progress, []error) {
		<-s.answers
		return []cluster.Progress{{Job: cluster.JobID{ID: 1}, Steps: 5}}, nil
	}
	return s.live.Observe(ctx, since)
}

// A folder that does not answer delays no round and no stop, and is logged once. Its late answer
// is used.
func TestAFolderThatDoesNotAnswer(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := stuck{newLive(), make(chan *Daemon, 1), make(chan struct{})}
		r := start(t, "one", newShared(), c, t.TempDir(), short+"models: {progress: {folder: "+folder+"}}\n")
		c.d <- r.Daemon
		pass(10 * time.Minute)
		if n := c.rounds(); n < 500 {
			t.Errorf("%d looks in ten minutes of a round a second", n)
		}
		said := r.log.with("progress")
		if len(said) != 1 || !strings.Contains(fmt.Sprint(said[0]["error"]), "has not answered for 1 min") {
			t.Errorf("it is said: %v", said)
		}
		c.answers <- struct{}{}
		pass(2 * time.Second)
		if said := r.log.with("answers again"); len(said) != 1 {
			t.Errorf("of its answer it is said: %v", said)
		}
		r.end(t)
		close(c.answers) // the bubble's goroutines end; the daemon did not wait for them
	})
}
