package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The faults that the proxy adds to a request.
const (
	errorsIn200 = "answers 200 with errors"     // nothing was done
	doneRefused = "does it, and answers errors" // in HTTP 500
	cutOff      = "cuts the answer off"         // after it was done
	lostAnswer  = "does it, and loses the answer"
	denied511   = "answers 511"
	slowAnswer  = "answers slowly"
	brokenJSON  = "answers 200 with half of it"
)

// proxy is the way to slurmrestd. It hands requests on, except for those that it was told to spoil.
type proxy struct {
	Socket string
	// granted is called when a grant of a job passes, before or after slurmrestd has it; nil = nobody asks.
	granted func(job string) (before, after func())

	server http.Server
	to     http.Client

	mu    sync.Mutex
	how   string // the requests are spoilt; "" = they are not
	odds  *rand.Rand
	spoil int // of ten
	tried map[string]int
}

// newProxy listens in a folder of its own and hands on to the socket at to.
func newProxy(dir, to string) (*proxy, error) {
	p := &proxy{Socket: filepath.Join(dir, "rest.sock"), tried: map[string]int{}}
	p.to.Transport = &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", to)
	}}
	listener, err := net.Listen("unix", p.Socket)
	if err != nil {
		return nil, fmt.Errorf("the proxy before slurmrestd: %w", err)
	}
	p.server.Handler = p
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

func (p *proxy) close() {
	_ = p.server.Close()
	p.to.CloseIdleConnections()
	_ = os.Remove(p.Socket)
}

// turn has so many of ten requests spoilt from now on, drawn from a seed; "" = none.
func (p *proxy) turn(how string, ofTen int, seed uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.how, p.spoil, p.odds = how, ofTen, rand.New(rand.NewPCG(seed, 4))
}

// fate tells what becomes of the next request.
func (p *proxy) fate() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.how == "" || p.odds.IntN(10) >= p.spoil {
		return ""
	}
	p.tried[p.how]++
	return p.how
}

// spoilt gives how many requests were spoilt, in all.
func (p *proxy) spoilt() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, k := range p.tried {
		n += k
	}
	return n
}

const failure = `{"meta": {}, "errors": [{"error_number": %d, "error": %q, "description": %q, "source": "chaos"}], "warnings": []}`

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	how := p.fate()
	switch how {
	case errorsIn200:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, failure, 1001, "Communication connection failure", "Unable to contact slurm controller (connect failure)")
		return
	case denied511:
		w.WriteHeader(http.StatusNetworkAuthenticationRequired)
		fmt.Fprintf(w, failure, 1007, "Protocol authentication error", "Authentication failure")
		return
	case slowAnswer:
		select {
		case <-time.After(3 * time.Second):
		case <-r.Context().Done():
		}
	}
	status, header, answer, err := p.pass(r, body)
	if err != nil { // as slurmrestd does when it dies
		drop(w, nil)
		return
	}
	switch how {
	case lostAnswer:
		drop(w, nil)
		return
	case cutOff:
		text := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(answer))
		drop(w, append(text, answer[:len(answer)/2]...))
		return
	case doneRefused:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, failure, 2015, "Requested node configuration is not available", "")
		return
	case brokenJSON:
		answer = answer[:len(answer)/2]
	}
	for name, values := range header {
		if name != "Connection" && name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

// pass hands a request on.
func (p *proxy) pass(r *http.Request, body []byte) (status int, header http.Header, answer []byte, err error) {
	if job := grantOf(r, body); job != "" && p.granted != nil {
		before, after := p.granted(job)
		if before != nil {
			before()
		}
		if after != nil {
			defer after()
		}
	}
	ask, err := http.NewRequestWithContext(r.Context(), r.Method, "http://localhost"+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	ask.Header = r.Header.Clone()
	res, err := p.to.Do(ask)
	if err != nil {
		return 0, nil, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, res.Header, answer, err
}

// grantOf gives the job that a request grants nodes; "" = it is another request.
func grantOf(r *http.Request, body []byte) string {
	_, job, ok := strings.Cut(r.URL.Path, "/job/")
	if r.Method != http.MethodPost || !ok {
		return ""
	}
	if _, err := strconv.Atoi(job); err != nil {
		return ""
	}
	var change struct {
		Nodes []string `json:"required_nodes"`
	}
	if err := json.Unmarshal(body, &change); err != nil || len(change.Nodes) == 0 || change.Nodes[0] == "" {
		return ""
	}
	return job
}

// drop writes a text on the connection, and closes it.
func drop(w http.ResponseWriter, text []byte) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return
	}
	if conn != nil {
		_, _ = conn.Write(text)
		_ = conn.Close()
	}
}
