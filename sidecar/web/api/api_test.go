package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/fairlease/fairlease/sidecar/web/api"
	"github.com/fairlease/fairlease/sidecar/web/rights"
	"github.com/fairlease/fairlease/sidecar/web/scene"
	"github.com/fairlease/fairlease/sidecar/web/scene/scenetest"
)

// desk is an API of a made-up site.
type desk struct {
	*scene.Keeper
	past *scenetest.Past
	api  http.Handler
}

func (d *desk) Past() scene.Past { return scene.Past{PastJobs: d.past, PastRounds: d.past} }

func newDesk(site scenetest.Site) *desk {
	d := &desk{Keeper: scene.Hold(site.Scene()), past: site.Past()}
	d.api = (&api.API{Source: d, Version: "test", Heartbeat: 50 * time.Millisecond, MaxLive: 3, MaxLiveEach: 2}).Handler()
	return d
}

var operator = rights.Person{User: "root", Operator: true}

// member gives a user of the first tenant.
func (d *desk) member() rights.Person {
	j := d.Scene().Jobs[0].Job()
	return rights.Person{User: j.User, Tenants: []string{j.Tenant}}
}

func (d *desk) ask(who rights.Person, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	d.api.ServeHTTP(w, r.WithContext(rights.With(r.Context(), who)))
	return w
}

// read gives an answer's value.
func read[T any](t *testing.T, w *httptest.ResponseRecorder) (out T) {
	t.Helper()
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// describe loads the description. Its schemas are made strict: a field that they lack is an error.
func describe(t *testing.T, d *desk) (*openapi3.T, routers.Router) {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(d.ask(rights.Person{}, "/api/v1/openapi.json").Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	no := false
	for _, s := range doc.Components.Schemas {
		if s.Value.Type.Is("object") {
			s.Value.AdditionalProperties.Has = &no
		}
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return doc, router
}

// Every route is described, and every answer is as its description says: with every kind of site, to every kind of person, and when
// something is wrong.
func TestAnswersAreAsDescribed(t *testing.T) {
	for name, site := range map[string]scenetest.Site{
		"hostile":  {Nodes: 12, Jobs: 80, Hostile: true, Market: true, Counters: true},
		"cells":    {Nodes: 200, Jobs: 1000, Cells: true},
		"no nodes": {},
	} {
		d := newDesk(site)
		doc, router := describe(t, d)
		targets := []string{"/jobs/900001", "/jobs/900001/gpus", "/leases?all=true", "/rounds?after=5", "/events?limit=3", "/jobs/x", "/jobs/5555555", "/rounds/0", "/rounds/99999", "/jobs?state=odd", "/jobs?odd=1", "/shares?since=2030-01-01T00:00:00Z&until=2029-01-01T00:00:00Z"}
		sample := map[string]string{"{id}": "1", "{name}": "n00001", "{number}": fmt.Sprint(d.Scene().Round)}
		for path := range doc.Paths.Map() {
			for from, to := range sample {
				path = strings.ReplaceAll(path, from, to)
			}
			if path != "/api/v1/live" {
				targets = append(targets, strings.TrimPrefix(path, "/api/v1"))
			}
		}
		if site.Nodes > 0 {
			j := d.Scene().Jobs[0].Record.ID.String()
			targets = append(targets, "/jobs/"+j, "/jobs/"+j+"/gpus")
		}
		for _, c := range []struct {
			who  rights.Person
			away bool
		}{{who: operator}, {}, {who: rights.Person{User: "nobody", Tenants: []string{"t000"}}}, {who: operator, away: true}} {
			if d.past.Err = nil; c.away {
				d.past.Err = errors.New("connection refused")
			}
			for _, target := range targets {
				r := httptest.NewRequest(http.MethodGet, "/api/v1"+target, nil)
				w := d.ask(c.who, "/api/v1"+target)
				route, params, err := router.FindRoute(r)
				if err != nil {
					t.Errorf("%s: %s is not described: %v", name, target, err)
					continue
				}
				err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
					RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
					Status:                 w.Code, Header: w.Header(), Body: readCloser{bytes.NewReader(w.Body.Bytes())},
					Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
				})
				if err != nil {
					t.Errorf("%s, %q, away %v: %s: status %d: %.600v", name, c.who.User, c.away, target, w.Code, err)
				}
				if strings.ContainsAny(w.Body.String(), "<>&") || w.Header().Get("Content-Type") != "application/json" {
					t.Errorf("%s: %s could be taken for a page", name, target)
				}
				if w.Code == http.StatusInternalServerError {
					t.Errorf("%s: %s: %s", name, target, w.Body)
				}
			}
		}
	}
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// Every person gets what it may see, from every route.
func TestRights(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 40, Jobs: 250, Market: true, Counters: true})
	me := d.member()
	counted := map[string]bool{} // users with GPUs that are
	for _, g := range d.Scene().GPUs {
		if g.User != nil {
			counted[*g.User] = true
		}
	}
	var mine, other *scene.Job
	for i := range d.Scene().Jobs {
		switch j := d.Scene().Jobs[i].Job(); {
		case !counted[j.User]:
		case j.Tenant == me.Tenants[0]:
			mine = j
		default:
			other = j
		}
	}
	for _, c := range []struct {
		who      rights.Person
		target   string
		status   int
		has, not string
	}{
		{operator, "/jobs/" + other.SlurmID, http.StatusOK, `"user":"` + other.User, "odd"},
		{me, "/jobs/" + mine.SlurmID, http.StatusOK, `"user":"` + mine.User, "odd"},
		{me, "/jobs/" + other.SlurmID, http.StatusNotFound, "not among what you may see", other.User},
		{me, "/jobs/" + other.SlurmID + "/gpus", http.StatusNotFound, "not among", other.User},
		{rights.Person{}, "/jobs/" + mine.SlurmID, http.StatusNotFound, "not among", mine.User},
		{me, "/jobs?limit=1000", http.StatusOK, `"tenant":"` + me.Tenants[0], `"tenant":"` + other.Tenant},
		{me, "/leases?limit=1000", http.StatusOK, `"tenant":"` + me.Tenants[0], other.Tenant},
		{me, "/leases?limit=1000&all=true", http.StatusOK, `"tenant":"` + me.Tenants[0], other.Tenant},
		{me, "/tenants", http.StatusOK, `"tenant":"` + other.Tenant, "odd"},
		{operator, "/objectives", http.StatusOK, `"budget_left_percent":-40`, "odd"},
		{rights.Person{User: "x", Tenants: []string{d.Scene().Budgets[0].Tenant}}, "/objectives", http.StatusOK, `"budget_left_percent":40`, `"budget_left_percent":-40`},
		{rights.Person{}, "/objectives", http.StatusOK, `"budget_left_percent":60`, `"budget_left_percent":40`},
		{operator, "/budgets", http.StatusOK, `"used_percent":120`, "odd"},
		{rights.Person{User: "x", Tenants: []string{d.Scene().Budgets[1].Tenant}}, "/budgets", http.StatusOK, `"used_percent":80`, `"used_percent":120`},
		{operator, "/bound", http.StatusOK, `"tenant":"` + other.Tenant, "odd"},
		{me, "/bound", http.StatusOK, `"tenant":"` + me.Tenants[0], `"tenant":"` + other.Tenant},
		{rights.Person{}, "/bound", http.StatusOK, "[]", "tenant"},
		{rights.Person{}, "/budgets", http.StatusOK, "[]", "tenant"},
		{rights.Person{User: "x", Tenants: []string{d.Scene().Budgets[1].Tenant}}, "/status", http.StatusOK, `"used_percent":80`, `"used_percent":120`},
		{rights.Person{}, "/tenants", http.StatusOK, `"tenant":"` + other.Tenant, "odd"},
		{rights.Person{}, "/jobs", http.StatusOK, "[]", "slurm_id"},
		{rights.Person{}, "/nodes?limit=1000", http.StatusOK, `"tenant":"` + other.Tenant, `"user":"` + other.User},
		{me, "/nodes?limit=1000", http.StatusOK, `"user":"` + mine.User, `"user":"` + other.User},
		{me, "/events", http.StatusOK, "the node is down", "configuration was read"},
		{operator, "/events", http.StatusOK, "configuration was read", "odd"},
		{me, fmt.Sprintf("/rounds/%d", d.Scene().Round), http.StatusForbidden, "only operators", other.User},
		{operator, fmt.Sprintf("/rounds/%d", d.Scene().Round), http.StatusOK, `"snapshot"`, "odd"},
		{me, "/audit", http.StatusForbidden, "only operators", "deadline"},
		{rights.Person{}, "/audit", http.StatusForbidden, "only operators", "deadline"},
		{operator, "/audit", http.StatusOK, `"before":"observe"`, "odd"},
		{operator, "/audit?key=override", http.StatusOK, "deadline", "observe"},
		{operator, "/audit?after=2", http.StatusOK, "tenants.weights.nlp", "deadline"},
		{me, "/person", http.StatusOK, `"operator":false`, other.Tenant},
		{me, "/gpus?limit=1000", http.StatusOK, `"tenant":"` + other.Tenant, `"user":"` + other.User},
		{me, "/gpus?of=" + mine.User, http.StatusOK, `"user":"` + mine.User, other.Tenant},
		{me, "/gpus?of=" + other.User, http.StatusOK, "[]", "node"},
		{operator, "/gpus?of=" + other.User, http.StatusOK, `"user":"` + other.User, mine.Tenant},
		{me, "/forecasts?limit=1000", http.StatusOK, `"tenant":"` + me.Tenants[0], `"tenant":"` + other.Tenant},
		{me, "/forecasts?job=" + mine.SlurmID, http.StatusOK, `"slurm_id":"` + mine.SlurmID, "odd"},
		{me, "/forecasts?job=" + other.SlurmID, http.StatusOK, "[]", "slurm_id"},
		{rights.Person{}, "/forecasts", http.StatusOK, "[]", "slurm_id"},
		{me, "/forecasts/coverage", http.StatusOK, `"class":"` + me.Tenants[0], `"class":"` + other.Tenant},
		{operator, "/forecasts/coverage", http.StatusOK, `"class":"` + other.Tenant, "odd"},
		{me, "/market", http.StatusOK, `"bert"`, "odd"},
		{rights.Person{}, "/market", http.StatusOK, `"trades"`, `"bert"`},
	} {
		w := d.ask(c.who, "/api/v1"+c.target)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.has) || strings.Contains(w.Body.String(), c.not) {
			t.Errorf("%q asks for %s: status %d, not %q without %q: %.300s", c.who.User, c.target, w.Code, c.has, c.not, w.Body)
		}
	}
}

// The parts of every list, one after the other, are the list.
func TestCursors(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 12, Jobs: 77, Counters: true})
	for _, c := range []struct {
		target string
		want   int
	}{
		{"/jobs", len(d.Scene().Jobs)}, {"/nodes", 12}, {"/leases", len(d.Scene().Leases)}, {"/leases?all=true", 7 * len(d.Scene().Leases)},
		{"/gpus", len(d.Scene().GPUs)}, {"/gpus?of=n00001", len(d.Scene().Node("n00001").Seen)}, {"/forecasts", len(d.Scene().Forecasts)},
		{"/rounds", int(d.Scene().Round)}, {"/events", 120},
	} {
		seen := map[string]bool{}
		target := "/api/v1" + c.target
		for target != "" {
			at := "?"
			if strings.Contains(target, "?") {
				at = "&"
			}
			if !strings.Contains(target, "limit=") {
				target += at + "limit=5"
			}
			w := d.ask(operator, target)
			part := read[[]json.RawMessage](t, w)
			if len(part) > 5 {
				t.Fatalf("%s gives %d rows", target, len(part))
			}
			for _, row := range part {
				if seen[string(row)] {
					t.Fatalf("%s gives %s again", target, row)
				}
				seen[string(row)] = true
			}
			next := w.Header().Get("Link")
			target, _, _ = strings.Cut(strings.TrimPrefix(next, "<"), ">")
		}
		if len(seen) != c.want {
			t.Errorf("%s: %d rows, not %d", c.target, len(seen), c.want)
		}
	}
	for _, odd := range []string{"/jobs?after=x", "/leases?after=1.2", "/leases?after=a.b.c", "/rounds?after=-1", "/events?after=1", "/jobs?limit=0", "/jobs?limit=1001", "/jobs?limit=1&limit=2", "/leases?all=perhaps", "/shares?step=0s", "/jobs?user=" + strings.Repeat("x", 300)} {
		if w := d.ask(operator, "/api/v1"+odd); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"error"`) {
			t.Errorf("%s: status %d: %s", odd, w.Code, w.Body)
		}
	}
}

// A filter gives the jobs that fit.
func TestFilters(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 12, Jobs: 77})
	for _, j := range read[[]scene.Job](t, d.ask(operator, "/api/v1/jobs?state=waiting&tenant=t001&limit=1000")) {
		if j.State != "waiting" || j.Tenant != "t001" {
			t.Errorf("job %s of %s is %s", j.SlurmID, j.Tenant, j.State)
		}
	}
}

// A tag holds until there is a new Scene, and for one person.
func TestTags(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 4, Jobs: 20})
	tag := d.ask(operator, "/api/v1/jobs").Header().Get("ETag")
	if w := d.ask(operator, "/api/v1/jobs", "If-None-Match", `"x", `+tag); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("status %d, %d bytes", w.Code, w.Body.Len())
	}
	if w := d.ask(d.member(), "/api/v1/jobs", "If-None-Match", tag); w.Code != http.StatusOK {
		t.Error("the tag holds for another person")
	}
	d.Put(scenetest.Site{Nodes: 4, Jobs: 20}.Scene())
	if w := d.ask(operator, "/api/v1/jobs", "If-None-Match", tag); w.Code != http.StatusOK || w.Header().Get("ETag") == tag {
		t.Error("the tag holds for the next Scene")
	}
}

// Nothing changes anything: all methods but GET and HEAD are refused, on every path.
func TestOnlyReading(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 4, Jobs: 20})
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"} {
		for _, path := range []string{"/api/v1/jobs", "/api/v1/live", "/api/v1/nothing"} {
			w := httptest.NewRecorder()
			d.api.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader("x=1")))
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: status %d", method, path, w.Code)
			}
		}
	}
}

// If the journal is away, the last good state is shown with its age, and only history is refused.
func TestTheJournalIsAway(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 12, Jobs: 80})
	d.past.Err = errors.New("connection refused by 10.0.0.1:5432 password=secret")
	for target, want := range map[string]int{
		"/status": 200, "/tenants": 200, "/jobs": 200, "/leases": 200, "/nodes": 200, "/market": 200, "/jobs/" + d.Scene().Jobs[0].Record.ID.String(): 200,
		"/rounds": 503, "/audit": 503, "/events": 503, "/shares": 503, "/leases?all=true": 503, "/jobs/900001": 503, "/trades": 503, "/rounds/8": 503,
	} {
		w := d.ask(operator, "/api/v1"+target)
		if w.Code != want || strings.Contains(w.Body.String(), "secret") || want == 503 && w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: status %d, not %d: %.200s", target, w.Code, want, w.Body)
		}
	}
	x := read[api.Explained](t, d.ask(operator, "/api/v1/jobs/"+d.Scene().Jobs[0].Record.ID.String()))
	if x.Missing == "" || x.Words == "" {
		t.Errorf("%+v", x)
	}
	d.past.Err = fmt.Errorf("x: %w", scene.ErrBusy)
	if w := d.ask(operator, "/api/v1/rounds"); w.Code != 503 || !strings.Contains(w.Body.String(), "too many ask") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

// The live stream tells the present state, each new one, and signs of life; the number of streams is bounded.
func TestLive(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 4, Jobs: 20})
	user := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.api.ServeHTTP(w, r.WithContext(rights.With(r.Context(), rights.Person{User: r.Header.Get("User")})))
	}))
	defer s.Close()
	defer s.CloseClientConnections() // Close waits for the streams
	open := func() (status int, lines *bufio.Scanner, end context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v1/live", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User", user)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		return answer.StatusCode, bufio.NewScanner(answer.Body), cancel
	}
	user = "ann"
	_, lines, end := open()
	until := func(what string) {
		t.Helper()
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), what) {
				return
			}
		}
		t.Fatalf("the stream ended before %q: %v", what, lines.Err())
	}
	until(`data: {"serial":1`)
	until(": alive")
	d.Put(scenetest.Site{Nodes: 4, Jobs: 20}.Scene())
	until(`data: {"serial":2`)
	if status, _, _ := open(); status != http.StatusOK {
		t.Errorf("the second stream: status %d", status)
	}
	if status, _, _ := open(); status != http.StatusServiceUnavailable {
		t.Errorf("one person's third stream: status %d", status)
	}
	user = "bob"
	open()
	user = "cy"
	if status, _, _ := open(); status != http.StatusServiceUnavailable {
		t.Errorf("the fourth stream of all: status %d", status)
	}
	end()
	for { // a stream that has ended leaves room
		if status, _, _ := open(); status == http.StatusOK {
			break
		}
		if t.Context().Err() != nil {
			t.Fatal("there is no room after a stream has ended")
		}
	}
}

// A stream outlives the time that the server gives a question and its answer, over HTTP/1 and HTTP/2.
func TestStreamsStay(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 4, Jobs: 20})
	s := httptest.NewUnstartedServer((&api.API{Source: d, Heartbeat: 50 * time.Millisecond, Patience: 20 * time.Millisecond}).Handler())
	s.Config.ReadTimeout, s.Config.WriteTimeout = 200*time.Millisecond, 200*time.Millisecond
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	defer s.CloseClientConnections()
	for _, two := range []bool{false, true} {
		transport := s.Client().Transport.(*http.Transport).Clone()
		transport.ForceAttemptHTTP2 = two
		if !two {
			transport.TLSClientConfig.NextProtos = []string{"http/1.1"}
		}
		answer, err := (&http.Client{Transport: transport}).Get(s.URL + "/api/v1/live")
		if err != nil {
			t.Fatal(err)
		}
		if (answer.ProtoMajor == 2) != two {
			t.Errorf("%s is spoken", answer.Proto)
		}
		lines, beats := bufio.NewScanner(answer.Body), 0
		for beats < 12 && lines.Scan() { // one each 50 ms
			if lines.Text() == ": alive" {
				beats++
			}
		}
		answer.Body.Close()
		if beats < 12 {
			t.Errorf("%s: the stream ended after %d signs of life: %v", answer.Proto, beats, lines.Err())
		}
	}
}

// An answer has everything that the text of an explanation needs.
func TestAnExplanationCanBeWritten(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 12, Jobs: 80})
	i := slices.IndexFunc(d.Scene().Jobs, func(j scene.Row) bool { return j.Record.State == "waiting" })
	x := read[api.Explained](t, d.ask(operator, "/api/v1/jobs/"+d.Scene().Jobs[i].Record.ID.String()))
	x.Context.Restore(x.Explanation)
	if x.Newest.Plan.Round != d.Scene().Round || x.Newest.Snapshot.Settings.Term == 0 || len(x.Newest.Snapshot.Cases) == 0 || len(x.Actions) != 1 || len(x.Leases) != 1 {
		t.Errorf("%+v", x)
	}
}
