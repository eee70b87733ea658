package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// behind is a proxy before a server that counts what it is asked.
func behind(t *testing.T) (*proxy, *http.Client, *atomic.Int32) {
	t.Helper()
	var asked atomic.Int32
	dir := t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(dir, "real"))
	if err != nil {
		t.Fatal(err)
	}
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write([]byte(`{"you": "` + r.Method + " " + r.URL.RequestURI() + " " + strings.ReplaceAll(string(body), `"`, "'") + `"}`))
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	p, err := newProxy(dir, filepath.Join(dir, "real"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", p.Socket)
	}}}
	t.Cleanup(client.CloseIdleConnections)
	return p, client, &asked
}

func TestProxy(t *testing.T) {
	p, client, asked := behind(t)
	for _, c := range []struct {
		how    string
		status int
		says   string // "" = the answer breaks off
		done   bool
	}{
		{"", 200, "POST /a?b=c {'x': 1}", true},
		{errorsIn200, 200, "Unable to contact", false},
		{denied511, 511, "1007", false},
		{doneRefused, 500, "2015", true},
		{lostAnswer, 0, "", true},
		{cutOff, 200, "", true},
		{brokenJSON, 200, `{"you"`, true},
	} {
		p.turn(c.how, 10, 1)
		asked.Store(0)
		res, err := client.Post("http://localhost/a?b=c", "application/json", strings.NewReader(`{"x": 1}`))
		var text []byte
		status := 0
		if err == nil {
			status = res.StatusCode
			text, err = io.ReadAll(res.Body)
			res.Body.Close()
		}
		if status != c.status || (err != nil) != (c.says == "") || !strings.Contains(string(text), c.says) || (asked.Load() == 1) != c.done {
			t.Errorf("%q: HTTP %d %q, %v, asked %d times", c.how, status, text, err, asked.Load())
		}
	}
	if n := p.spoilt(); n != 6 {
		t.Errorf("%d answers were spoilt, want 6", n)
	}
}

// Users are told of a grant before or after it, and of nothing else.
func TestProxySeesGrants(t *testing.T) {
	p, client, _ := behind(t)
	var told []string
	p.granted = func(job string) (before, after func()) {
		return func() { told = append(told, "before "+job) }, func() { told = append(told, "after "+job) }
	}
	for path, body := range map[string]string{
		"/slurm/v0.0.45/job/12": `{"required_nodes": ["v1"], "licenses": ""}`,
		"/slurm/v0.0.45/job/13": `{"required_nodes": [""]}`,
		"/slurm/v0.0.45/job/14": `{"licenses": "fairlease:1"}`,
		"/slurm/v0.0.45/jobs/":  `{"required_nodes": ["v1"]}`,
	} {
		res, err := client.Post("http://localhost"+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	if strings.Join(told, ", ") != "before 12, after 12" {
		t.Errorf("%q", told)
	}
}
