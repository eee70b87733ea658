package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/fairlease/fairlease/sidecar/slurm/certs"
)

// Web says how to reach an HTTP server. Every field may be empty.
type Web struct {
	certs.Files
	// User and PasswordFile are for basic authentication, TokenFile for a bearer token. Files are read again for every look.
	User         string
	PasswordFile string
	TokenFile    string
}

// Limits bound what a source takes from a server.
type Limits struct {
	AtOnce  int           // requests at once
	Timeout time.Duration // of a request, with its answer
	Bytes   int64         // of an answer
}

// ExporterLimits are those for the exporter of one node.
var ExporterLimits = Limits{AtOnce: 16, Timeout: 3 * time.Second, Bytes: 4 << 20}

// exporters reads the exporter of every node.
type exporters struct {
	url    string
	web    Web
	client *http.Client
	parser *Parser
	limits Limits

	mu       sync.Mutex
	failures map[string]int // consecutive ones, by node
	errors   map[string]error
	look     int
}

// NewExporters makes the source that asks the exporter of every node. In the URL, {node} stands for the node's name in
// Slurm, {host} for its host's name and {address} for its address, as in http://{node}:9400/metrics.
func NewExporters(template string, table Table, web Web, limits Limits) (Source, error) {
	u, err := url.Parse(strings.NewReplacer("{node}", "node", "{host}", "host", "{address}", "address").Replace(template))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || !strings.Contains(template, "{") {
		return nil, fmt.Errorf("%q is no URL of exporters; write for instance http://{node}:9400/metrics, with {node}, {host} or {address} for the node", template)
	}
	client, err := web.client(limits)
	if err != nil {
		return nil, err
	}
	return &exporters{url: template, web: web, client: client, parser: NewParser(table), limits: limits, failures: map[string]int{}, errors: map[string]error{}}, nil
}

// client makes a client that follows no redirect: what another address says is not known to be the node's.
func (w *Web) client(limits Limits) (*http.Client, error) {
	config, err := w.Load()
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Timeout:       limits.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: 1, MaxConnsPerHost: limits.AtOnce, IdleConnTimeout: 2 * time.Minute, MaxResponseHeaderBytes: 64 << 10},
	}, nil
}

// authorize reads the credentials, and returns a function that adds them to requests.
func (w *Web) authorize() (func(*http.Request), error) {
	path := cmp.Or(w.TokenFile, w.PasswordFile)
	if path == "" {
		return func(*http.Request) {}, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the password or token: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if w.TokenFile != "" {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) }, nil
	}
	return func(r *http.Request) { r.SetBasicAuth(w.User, secret) }, nil
}

// mostWait is the maximum number of looks from one request to a silent node to the next.
const mostWait = 16

// Read implements Source. It visits nodes in a new random order, so that no exporter is always the last. A node that does
// not answer is asked less and less often, up to every 16th look, so that dead nodes do not delay the others.
func (e *exporters) Read(ctx context.Context, nodes []Node) ([]Reading, error) {
	out := make([]Reading, len(nodes))
	authorize, err := e.web.authorize()
	if err != nil {
		for i := range out {
			out[i].Err = err
		}
		return out, err
	}
	e.look++
	of, order, next := namesOf(nodes), rand.Perm(len(nodes)), make(chan int)
	var all sync.WaitGroup
	for range min(e.limits.AtOnce, len(nodes)) {
		all.Go(func() {
			var r reader
			for i := range next {
				out[i] = e.readOne(ctx, &r, nodes, i, of, authorize)
			}
		})
	}
	for _, i := range order {
		next <- i
	}
	close(next)
	all.Wait()
	return out, ctx.Err()
}

// reader holds the buffers of one of the concurrent readers.
type reader struct {
	gather gather
	body   []byte
}

// readOne reads one node, unless it has been silent and its turn has not come.
func (e *exporters) readOne(ctx context.Context, r *reader, nodes []Node, i int, of names, authorize func(*http.Request)) Reading {
	name := nodes[i].Name
	e.mu.Lock()
	failed, last := e.failures[name], e.errors[name]
	e.mu.Unlock()
	if wait := min(1<<min(failed/2, 10), mostWait); failed > 0 && e.look%wait != 0 {
		return Reading{Err: last}
	}
	rows, err := e.scrape(ctx, r, nodes, i, of, authorize)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.failures[name], e.errors[name] = failed+1, err
		return Reading{Err: err}
	}
	delete(e.failures, name)
	delete(e.errors, name)
	return Reading{Rows: rows}
}

func (e *exporters) scrape(ctx context.Context, r *reader, nodes []Node, i int, of names, authorize func(*http.Request)) ([]Row, error) {
	n := &nodes[i]
	address := strings.NewReplacer("{node}", n.Name, "{host}", cmp.Or(n.Host, n.Name), "{address}", cmp.Or(n.Address, n.Name)).Replace(e.url)
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	ask.Header.Set("Accept", "text/plain;version=0.0.4")
	authorize(ask)
	body, err := fetch(e.client, ask, e.limits, r.body)
	r.body = body
	if err != nil {
		return nil, err
	}
	rows, host, err := e.parser.parse(&r.gather, body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	if other := of.find(host); host != "" && other >= 0 && other != i {
		return nil, fmt.Errorf("%s has the GPUs of node %s; correct telemetry.gpu.exporters or the node's address", address, nodes[other].Name)
	}
	return rows, nil
}

// fetch reads an answer into a buffer, which it may replace.
func fetch(client *http.Client, ask *http.Request, limits Limits, buffer []byte) ([]byte, error) {
	answer, err := client.Do(ask)
	if err != nil {
		return buffer, brief(err)
	}
	defer answer.Body.Close()
	switch to := answer.Header.Get("Location"); {
	case answer.StatusCode/100 == 3 && to != "":
		return buffer, fmt.Errorf("%s redirects to %.100q, which is not followed; write the final URL", ask.URL, to)
	case answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden:
		return buffer, fmt.Errorf("%s answers %s; set user and password_file, or token_file", ask.URL, answer.Status)
	case answer.StatusCode != http.StatusOK:
		return buffer, fmt.Errorf("%s answers %s", ask.URL, answer.Status)
	}
	buffer, err = readAll(answer.Body, buffer[:0], limits.Bytes)
	if err != nil {
		return buffer, fmt.Errorf("%s: %w", ask.URL, brief(err))
	}
	return buffer, nil
}

// readAll reads a text of at most so many bytes into a buffer, which it grows.
func readAll(from io.Reader, buffer []byte, most int64) ([]byte, error) {
	for {
		if len(buffer) == cap(buffer) {
			buffer = append(buffer, make([]byte, max(len(buffer), 64<<10))...)[:len(buffer)]
		}
		n, err := from.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		switch {
		case int64(len(buffer)) > most:
			return buffer, fmt.Errorf("the answer is longer than %d MiB: nothing of it counts", most>>20)
		case errors.Is(err, io.EOF):
			return buffer, nil
		case err != nil:
			return buffer, err
		}
	}
}

// brief shortens errors of requests: a lasting problem reads the same at every look.
func brief(err error) error {
	var request *url.Error
	if errors.As(err, &request) && request.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no whole answer in time")
	}
	return err
}
