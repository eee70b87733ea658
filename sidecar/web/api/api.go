// Package api answers questions about a site over HTTP, as JSON, under /api/v1/.
//
// The answers have the form of the commands' --json. Headers tell the rest:
//
//	Fairlease-Round         the round that the answer is of
//	Fairlease-At            when that round was
//	Fairlease-Silent-Since  since when the journal has not answered: the answer is the last good one
//	Link: <...>; rel=next   the rest of a list
//	ETag                    changes with every Scene; with If-None-Match the answer is 304 if it has not
//
// One table has all routes: the handlers, the checks of parameters and the OpenAPI description follow from it.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/web/rights"
	"github.com/fairlease/fairlease/sidecar/web/scene"
)

// Root is the path that all routes begin with.
const Root = "/api/v1"

// Source is what the API shows; a scene.Keeper is one.
type Source interface {
	Scene() *scene.Scene
	Past() scene.Past
	Subscribe(most int) (news <-chan struct{}, done func(), ok bool)
}

// API answers questions. Its fields are not changed after Handler.
type API struct {
	Source  Source
	Version string // of fairlease
	// Heartbeat is the time between two signs of life of a live stream; 0 = 15 s.
	Heartbeat time.Duration
	// Patience is the time in which a client must take an event; 0 = 10 s.
	Patience time.Duration
	// MaxLive is the maximum number of live streams; 0 = 200. MaxLiveEach is that of one person or address; 0 = 20.
	MaxLive, MaxLiveEach int

	boot  string // tells Scenes of different processes apart
	spec  []byte
	lives lives
}

// call is one question.
type call struct {
	request *http.Request
	out     http.Header
	api     *API
	person  rights.Person
	scene   *scene.Scene // the part for the person
	past    scene.Past
	args    map[string]string // the query's parameters, checked
}

// problem is an answer that says what is wrong, and what to do.
type problem struct {
	status int
	What   string `json:"error"`
	Next   string `json:"next,omitempty"`
}

func (p *problem) Error() string { return p.What }

func wrong(format string, args ...any) error {
	return &problem{status: http.StatusBadRequest, What: fmt.Sprintf(format, args...), Next: "see " + Root + "/openapi.json"}
}

func missing(format string, args ...any) error {
	return &problem{status: http.StatusNotFound, What: fmt.Sprintf(format, args...)}
}

// Handler answers everything under Root. It reads who asks from the request's context (rights.With).
func (a *API) Handler() http.Handler {
	a.boot = strconv.FormatInt(time.Now().UnixNano(), 36)
	a.spec = a.describe()
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.Handle("GET "+Root+r.path, a.serve(r)) // HEAD, too
	}
	mux.HandleFunc("GET "+Root+"/live", a.live)
	mux.HandleFunc("GET "+Root+"/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(a.spec)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, &problem{status: http.StatusMethodNotAllowed, What: "nothing can be changed over HTTP", Next: "use the commands of fairlease"})
			return
		}
		if _, pattern := mux.Handler(r); pattern == "" {
			refuse(w, missing("there is no %s", r.URL.Path))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// serve answers one route.
func (a *API) serve(r route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		person := rights.From(req.Context())
		now := a.Source.Scene()
		c := &call{request: req, out: w.Header(), api: a, person: person, scene: person.See(now), past: a.Source.Past()}
		c.out.Set("Cache-Control", "private, no-cache")
		c.out.Set("Vary", "Authorization")
		c.out.Set("Fairlease-Round", strconv.FormatInt(now.Round, 10))
		if now.Round > 0 {
			c.out.Set("Fairlease-At", now.At.UTC().Format(time.RFC3339))
		}
		if now.Silent != nil {
			c.out.Set("Fairlease-Silent-Since", now.Silent.UTC().Format(time.RFC3339))
		}
		if err := c.parse(r); err != nil {
			refuse(w, err)
			return
		}
		if !r.past && c.args["all"] != "true" {
			tag := a.tag(now, person)
			c.out.Set("ETag", tag)
			if matches(req.Header.Get("If-None-Match"), tag) {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		value, err := r.answer(c)
		if err != nil {
			c.out.Del("ETag")
			refuse(w, c.worded(err))
			return
		}
		write(w, http.StatusOK, value)
	})
}

// tag names the state of a Scene as a person sees it.
func (a *API) tag(s *scene.Scene, p rights.Person) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %v %q", p.User, p.Operator, p.Tenants)
	return fmt.Sprintf(`W/"%d-%d-%s-%x"`, s.Round, s.Serial, a.boot, h.Sum64())
}

// matches tells whether a header If-None-Match names the tag.
func matches(header, tag string) bool {
	return slices.ContainsFunc(strings.Split(header, ","), func(t string) bool {
		t = strings.TrimSpace(t)
		return t == "*" || strings.TrimPrefix(t, "W/") == strings.TrimPrefix(tag, "W/")
	})
}

// parse checks the query's parameters against the route.
func (c *call) parse(r route) error {
	query, err := url.ParseQuery(c.request.URL.RawQuery)
	if err != nil {
		return wrong("the query cannot be read: %v", err)
	}
	c.args = map[string]string{}
	for name, values := range query {
		i := slices.IndexFunc(r.params, func(p param) bool { return p.name == name })
		if i < 0 {
			return wrong("%q is no parameter of %s", name, r.path)
		}
		if len(values) > 1 {
			return wrong("%s is there %d times", name, len(values))
		}
		if err := r.params[i].check(values[0]); err != nil {
			return err
		}
		c.args[name] = values[0]
	}
	return nil
}

// number gives a parameter that was checked to be a number; absent = otherwise.
func (c *call) number(name string, otherwise int64) int64 {
	n, err := strconv.ParseInt(c.args[name], 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

// moment gives a parameter that was checked to be a time; absent = otherwise.
func (c *call) moment(name string, otherwise time.Time) time.Time {
	t, err := time.Parse(time.RFC3339, c.args[name])
	if err != nil {
		return otherwise
	}
	return t
}

func (c *call) limit() int { return int(c.number("limit", defaultLimit)) }

// next links to the rest of a list.
func (c *call) next(cursor string) {
	query := c.request.URL.Query()
	query.Set("after", cursor)
	u := url.URL{Path: c.request.URL.Path, RawQuery: query.Encode()}
	c.out.Set("Link", fmt.Sprintf("<%s>; rel=\"next\"", u.String()))
}

// worded words an error of the past.
func (c *call) worded(err error) error {
	var p *problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, scene.ErrNone):
		return missing("%v: it is not in the journal, or not among what you may see", strings.TrimSuffix(err.Error(), ": "+scene.ErrNone.Error()))
	case errors.Is(err, scene.ErrBusy):
		return &problem{status: http.StatusServiceUnavailable, What: scene.ErrBusy.Error()}
	case errors.Is(err, context.Canceled):
		return &problem{status: http.StatusServiceUnavailable, What: "the question was withdrawn"}
	}
	return &problem{status: http.StatusServiceUnavailable, What: "the journal does not answer, and this is not in the last good state", Next: "try again later; " + Root + "/status says since when"}
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	var p *problem
	if !errors.As(err, &p) {
		p = &problem{status: http.StatusInternalServerError, What: err.Error()}
	}
	if p.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	write(w, p.status, p)
}

// buffers are for answers: two hundred a second of some ten kilobytes would keep the collector busy.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// write writes a value as JSON. Lists that are nil are empty.
func write(w http.ResponseWriter, status int, value any) {
	if v := reflect.ValueOf(value); v.Kind() == reflect.Slice && v.IsNil() {
		value = []struct{}{}
	}
	text := buffers.Get().(*bytes.Buffer)
	defer func() {
		if text.Cap() <= 1<<20 { // a whole round has tens of megabytes
			buffers.Put(text)
		}
	}()
	text.Reset()
	if err := json.NewEncoder(text).Encode(value); err != nil {
		status = http.StatusInternalServerError
		text.Reset()
		fmt.Fprintln(text, `{"error":"the answer cannot be written as JSON"}`)
	}
	told := view.Unstate(text.Bytes())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(told)))
	w.WriteHeader(status)
	_, _ = w.Write(told)
}
