// Package web is the server of the web page and its API: the listeners, limits, headers, and who asks. It only answers; nothing can be
// changed over it.
package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/fairlease/fairlease/sidecar/web/api"
	"github.com/fairlease/fairlease/sidecar/web/rights"
)

// Server answers questions about a site.
type Server struct {
	Source api.Source
	API    *api.API
	Page   http.Handler // everything but the API; nil = nothing
	Door   *rights.Door
	Policy *rights.Policy
	// NoAnonymous refuses people who are not known; else they see sums.
	NoAnonymous bool

	Listen    string // HOST:PORT; "" = no
	WebConfig string // a file in the format of exporter-toolkit; "" = no TLS
	Socket    string // path of a unix socket that all local users may open; "" = none
	// MaxConnections is the maximum number of connections of each listener, a quarter of them from one address; 0 = 1000.
	MaxConnections int
	// Open is called when the listeners are open; nil = nobody is told.
	Open func()
	// Say is told of events, for the log; nil = nobody is.
	Say func(string)
}

// The limits of one request.
const (
	maxHeader    = 16 << 10
	maxAtOnce    = 64              // requests, without live streams
	maxEach      = maxAtOnce / 4   // of them, of one person or address
	maxWait      = 2 * time.Second // of a request for its turn
	maxStreams   = 32              // questions at once on a connection of HTTP/2: a page needs about ten
	readHeaders  = 5 * time.Second
	readRequest  = 10 * time.Second
	writeAnswer  = 30 * time.Second
	idle         = time.Minute
	memory       = 200 << 20 // of this process: beyond it the collector works harder
	socketRights = 0o666     // everybody may ask: the kernel says who
)

// connection is the key of a question's connection in its context.
type connection struct{}

// Serve answers until ctx ends, or a listener fails. Its error says which setting is wrong.
func (s *Server) Serve(ctx context.Context) error {
	debug.SetMemoryLimit(memory)
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	if err := web.Validate(s.WebConfig); err != nil {
		return fmt.Errorf("web.web_config: %w", err)
	}
	if s.Listen != "" {
		l, err := net.Listen("tcp", s.Listen)
		if err != nil {
			return fmt.Errorf("web.listen: %w", err)
		}
		listeners = append(listeners, l)
		s.say("the page is at %s", l.Addr())
	}
	if s.Socket != "" {
		l, err := listenUnix(s.Socket)
		if err != nil {
			return fmt.Errorf("web.socket: %w", err)
		}
		listeners = append(listeners, l)
		s.say("local users are answered at %s", s.Socket)
	}
	if len(listeners) == 0 {
		return errors.New("web.listen and web.socket are both empty: nobody could ask")
	}
	if s.Open != nil {
		s.Open()
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server := &http.Server{
		Handler: s.Handler(), BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if secure, ok := c.(*tls.Conn); ok {
				c = secure.NetConn()
			}
			of, ok := c.(*limited)
			if !ok {
				return ctx
			}
			if ctx = context.WithValue(ctx, connection{}, of); of.peer != nil {
				return rights.WithPeer(ctx, *of.peer)
			}
			return ctx // of no unix socket: Limit lets none of these in without its user
		},
		ReadHeaderTimeout: readHeaders, ReadTimeout: readRequest, WriteTimeout: writeAnswer, IdleTimeout: idle, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // of clients that go away
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
	}
	unwatch := context.AfterFunc(ctx, func() { server.Close() })
	defer unwatch()
	ends := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { ends <- s.serveOn(server, l) }()
	}
	err := <-ends
	stop()
	for range len(listeners) - 1 {
		<-ends //nolint:errcheck // they end because the first did
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// serveOn answers on one listener. Only TCP has TLS.
func (s *Server) serveOn(server *http.Server, l net.Listener) error {
	most := s.MaxConnections
	if most <= 0 {
		most = 1000
	}
	limit := &Limit{Listener: l, Most: most, EachMost: max(most/4, 1), Free: s.Door.Proxies, FreeUsers: s.Door.ProxyUsers}
	if l.Addr().Network() == "unix" {
		return server.Serve(limit)
	}
	return web.Serve(limit, server, &web.FlagConfig{WebConfigFile: &s.WebConfig}, slog.New(slog.DiscardHandler))
}

func (s *Server) say(format string, args ...any) {
	if s.Say != nil {
		s.Say(fmt.Sprintf(format, args...))
	}
}

// listenUnix opens a unix socket. One that a dead process left is replaced.
func listenUnix(path string) (net.Listener, error) {
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return nil, fmt.Errorf("another process answers at %s", path)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("%s is there and is no socket: remove it, or name another path", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketRights); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Handler gives the whole server without its listeners.
func (s *Server) Handler() http.Handler {
	running := newTurns()
	mux := http.NewServeMux()
	mux.Handle("/api/", s.API.Handler())
	mux.HandleFunc("/livez", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "alive") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if since := s.Source.Scene().Silent; since != nil {
			plain(w, http.StatusServiceUnavailable, "the journal has not answered since "+since.UTC().Format(time.RFC3339))
			return
		}
		plain(w, http.StatusOK, "the journal answers")
	})
	if s.Page != nil {
		mux.Handle("/", s.Page)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if on, ok := r.Context().Value(connection{}).(*limited); ok {
			on.answering.Add(1)
			defer on.answering.Add(-1)
		}
		headers(w.Header())
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			plain(w, http.StatusMethodNotAllowed, "nothing can be changed over HTTP: use the commands of fairlease")
			return
		case r.ContentLength != 0:
			w.Header().Set("Connection", "close")
			plain(w, http.StatusBadRequest, "a question has no body")
			return
		}
		if r.URL.Path == "/livez" || r.URL.Path == "/readyz" {
			mux.ServeHTTP(w, r) // health checks look at no credential
			return
		}
		user, byProxy, err := s.Door.User(r)
		var refused *rights.Refused
		switch {
		case errors.As(err, &refused):
			unknown(w, refused.Why)
			return
		case errors.Is(err, rights.ErrBusy):
			busy(w, err.Error())
			return
		case err != nil:
			s.say("a person cannot be recognised: %v", err)
			unknown(w, "you cannot be recognised; the server's log says why")
			return
		case user == "" && s.NoAnonymous:
			unknown(w, "you must say who you are: by the local socket, by a MUNGE credential (munge -s "+rights.Payload+"), by a token (scontrol token), or through the site's proxy")
			return
		}
		if r.URL.Path != api.Root+"/live" {
			leave, ok := running.enter(r.Context(), rights.Asker(user, r))
			if !ok {
				busy(w, "the server is busy")
				return
			}
			defer leave()
		}
		person := s.Policy.Person(user, byProxy, s.Source.Scene())
		mux.ServeHTTP(w, r.WithContext(rights.With(r.Context(), person)))
	})
}

// headers keep browsers from doing anything but show our page with our own scripts.
func headers(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}

func busy(w http.ResponseWriter, text string) {
	w.Header().Set("Retry-After", "5")
	plain(w, http.StatusServiceUnavailable, text)
}

func unknown(w http.ResponseWriter, why string) {
	w.Header().Add("WWW-Authenticate", rights.Scheme)
	w.Header().Add("WWW-Authenticate", rights.TokenScheme)
	plain(w, http.StatusUnauthorized, strings.TrimSpace(why))
}
