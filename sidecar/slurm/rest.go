package slurm

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// rest speaks HTTP with slurmrestd over a few persistent connections.
type rest struct {
	cfg   Config
	http  *http.Client
	dial  func(context.Context) (net.Conn, error)
	base  string // "http://host" of every request, even if dial encrypts
	token token
}

// connections is the maximum number of concurrent requests: enough to keep slurmrestd busy with
// gates (a second connection adds a third), and few enough for other clients.
const connections = 4

func newREST(cfg Config) (*rest, error) {
	u, err := url.Parse(cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("slurm address %q: %w", cfg.Address, err)
	}
	r := &rest{cfg: cfg, base: "http://" + u.Host, token: token{file: cfg.TokenFile}}
	switch u.Scheme {
	case "unix":
		r.base = "http://localhost"
		r.dial = func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", u.Path)
		}
	case "http":
		r.dial = func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", withPort(u, "80"))
		}
	case "https":
		secrets, err := cfg.TLS.Load()
		if err != nil {
			return nil, fmt.Errorf("slurm TLS: %w", err)
		}
		r.dial = func(ctx context.Context) (net.Conn, error) {
			return (&tls.Dialer{Config: secrets}).DialContext(ctx, "tcp", withPort(u, "443"))
		}
	default:
		return nil, fmt.Errorf("slurm address %q: write unix:///path/of/the/socket, http://host:port or https://host:port", cfg.Address)
	}
	r.http = &http.Client{Transport: &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return r.dial(ctx) },
		MaxConnsPerHost:     connections,
		MaxIdleConnsPerHost: connections,
		IdleConnTimeout:     5 * time.Minute,
		DisableCompression:  true,
		ReadBufferSize:      256 << 10,
	}}
	return r, nil
}

func withPort(u *url.URL, otherwise string) string {
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), otherwise))
}

// get reads path, and take reads the reply's members. It retries with growing pauses if that may
// help; timeout covers all tries.
func (r *rest) get(ctx context.Context, timeout time.Duration, path string, take func(*reader, string) bool) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for try := 0; ; try++ {
		rep, err := r.once(ctx, http.MethodGet, path, nil, take)
		if err == nil || try >= r.cfg.Retries || !mayPass(err) || !pause(ctx, try) {
			return rep, err
		}
	}
}

// pause waits before retry try+1: 100 ms, 200 ms, 400 ms, …, each reduced by up to half at
// random. It returns false if ctx ended first.
func pause(ctx context.Context, try int) bool {
	most := 100 * time.Millisecond << min(try, 6)
	t := time.NewTimer(most/2 + rand.N(most/2))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// put sends a change, once. Its error is a *Error, with Unknown set if the change may have been
// made.
func (r *rest) put(ctx context.Context, method, path string, body any, take func(*reader, string) bool) error {
	var buf []byte
	if body != nil {
		var err error
		if buf, err = json.Marshal(body); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	_, err := r.once(ctx, method, path, buf, take)
	return err
}

// once does one request. It does a second one only if our token was not accepted, so that nothing
// was done, and the token file has changed.
func (r *rest) once(ctx context.Context, method, path string, body []byte, take func(*reader, string) bool) (reply, error) {
	stale, err := r.token.current()
	if err != nil {
		return reply{}, &Error{Doing: method + " " + path, Err: err}
	}
	rep, err := r.send(ctx, method, path, body, stale, take)
	if r.token.file == "" || !denied(err) {
		return rep, err
	}
	fresh, ferr := r.token.renewed(stale)
	if ferr != nil {
		return rep, &Error{Doing: method + " " + path, HTTP: http.StatusUnauthorized, Err: ferr}
	}
	if fresh == stale {
		return rep, err
	}
	return r.send(ctx, method, path, body, fresh, take)
}

func (r *rest) send(ctx context.Context, method, path string, body []byte, token string, take func(*reader, string) bool) (rep reply, err error) {
	began := time.Now()
	defer func() { r.cfg.Called(kindOf(method, path), time.Since(began), err) }()
	doing := method + " " + path
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, bytes.NewReader(body))
	if err != nil {
		return reply{}, &Error{Doing: doing, Err: err}
	}
	req.Header = r.head(token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := r.http.Do(req)
	if err != nil {
		return reply{}, &Error{Doing: doing, Err: r.unreachable(err), Unknown: !neverSent(err), Unheard: true}
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNotModified {
		return reply{same: true}, nil
	}
	rep, err = readReply(io.LimitReader(res.Body, replyMax), take)
	// Read the rest after the JSON, or the connection is not reused.
	_, _ = io.CopyN(io.Discard, res.Body, 4<<10)
	return rep, judge(doing, res, rep, err)
}

// kindOf gives the kind of a request: its method, and the noun in a path such as /slurm/v0.0.44/job/17 or /openapi/v3.
func kindOf(method, path string) string {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	noun := parts[0]
	if len(parts) > 2 {
		noun = parts[2]
	}
	return strings.ToLower(method) + "_" + noun
}

// head are the header fields of every request.
func (r *rest) head(token string) http.Header {
	h := http.Header{"Accept": {"application/json"}}
	if r.cfg.User != "" {
		h.Set("X-SLURM-USER-NAME", r.cfg.User)
	}
	if token != "" {
		h.Set("X-SLURM-USER-TOKEN", token)
	}
	return h
}

// replyMax bounds a reply: a million jobs fit.
const replyMax = 16 << 30

// neverSent reports whether the request cannot have reached the server.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// unreachable explains a failed connection.
func (r *rest) unreachable(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	where := r.cfg.Address
	const see = "see slurm.address in fairlease.yaml"
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("slurmrestd at %s did not answer in time: %w", where, context.DeadlineExceeded)
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("cannot reach slurmrestd at %s: %w; is slurmrestd running? %s", where, syscall.ENOENT, see)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("cannot reach slurmrestd at %s: %w; is slurmrestd running? %s", where, syscall.ECONNREFUSED, see)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("cannot reach slurmrestd at %s: %w; may this user open the socket? %s", where, syscall.EACCES, see)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("slurmrestd at %s broke off in the middle; did it restart?", where)
	}
	return fmt.Errorf("cannot reach slurmrestd at %s: %w; %s", where, err, see)
}
