// Package browser looks at the web page in a real Chromium, and compares the chart library with its npm package. Screenshots are for
// people: they are in out/browser after `go test ./tests/browser -shots`.
package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/web/api"
	"github.com/fairlease/fairlease/sidecar/web/page"
	"github.com/fairlease/fairlease/sidecar/web/rights"
	"github.com/fairlease/fairlease/sidecar/web/scene"
	"github.com/fairlease/fairlease/sidecar/web/scene/scenetest"
)

// Policy forbids all that the pages must do without.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Site serves the pages of a made-up site.
type Site struct {
	Keeper *scene.Keeper
	Past   *scenetest.Past
	URL    string

	server *httptest.Server
}

// Serve starts a site for one person, who is everybody that asks: an operator, or a user of the first tenant. The path /next makes a
// new round.
func Serve(made scenetest.Site, operator bool) *Site {
	return serveAt(made.Scene(), made.Past(), operator, nil)
}

// serveAt starts a site as of a time; nil = now.
func serveAt(at *scene.Scene, past *scenetest.Past, operator bool, now func() time.Time) *Site {
	s := &Site{Keeper: scene.Hold(at), Past: past}
	who := rights.Person{User: "root", Operator: true}
	if !operator {
		who = rights.Person{User: "u", Tenants: []string{s.Keeper.Scene().Tenants[0].Tenant}}
	}
	src := source{s.Keeper, scene.Past{PastJobs: s.Past, PastRounds: s.Past}}
	pages, answers := (&page.Pages{Source: src, Live: api.Root + "/live", Now: now}).Handler(), (&api.API{Source: src}).Handler()
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", Policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		r = r.WithContext(rights.With(r.Context(), who))
		switch {
		case r.URL.Path == "/next":
			next := *s.Keeper.Scene()
			next.Round++
			s.Keeper.Put(&next)
		case strings.HasPrefix(r.URL.Path, api.Root):
			answers.ServeHTTP(w, r)
		default:
			pages.ServeHTTP(w, r)
		}
	}))
	s.URL = s.server.URL
	return s
}

// Close ends the site, and all live streams.
func (s *Site) Close() {
	s.server.CloseClientConnections()
	s.server.Close()
}

// source has made-up history.
type source struct {
	*scene.Keeper
	past scene.Past
}

func (s source) Past() scene.Past { return s.past }

// Visit is a page to look at, in a window of that size (0 = 1280 × 900), by day or by night.
type Visit struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Width  int    `json:"width,omitempty"`
	Height int    `json:"height,omitempty"`
	Scheme string `json:"scheme,omitempty"` // "dark"; "" = light
	NoAxe  bool   `json:"noAxe,omitempty"`
	Tabs   bool   `json:"tabs,omitempty"` // press Tab from the top to the end
	User   string `json:"user,omitempty"` // that a proxy names in X-Remote-User; "" = none
	Steps  []Step `json:"steps,omitempty"`
}

// Step is something that a person does on a page, and an expression in JavaScript that becomes true then.
type Step struct {
	Click   string `json:"click,omitempty"`
	Key     string `json:"key,omitempty"`
	Post    string `json:"post,omitempty"`
	Into    string `json:"into,omitempty"` // a field that gets Text, or a file of that Name with it
	Name    string `json:"name,omitempty"`
	Text    string `json:"text,omitempty"`
	Until   string `json:"until,omitempty"`
	Seconds int    `json:"seconds,omitempty"` // the time for Until; 0 = 20
}

// Found is what the browser saw.
type Found struct {
	Name       string   `json:"name"`
	Status     int      `json:"status"`
	Errors     []string `json:"errors"`     // of the console, of scripts, and of the policy
	Outside    []string `json:"outside"`    // requests to other hosts
	Violations []string `json:"violations"` // of accessibility
	Paint      float64  `json:"paint"`      // first contentful paint, ms since the request
	Wide       int      `json:"wide"`       // pixels beyond the window
	Cut        []string `json:"cut"`        // sentences of tables that are not shown whole
	Unreached  []string `json:"unreached"`  // controls that never have the focus, or do not show it; of a visit with Tabs
	Text       string   `json:"text"`

	Took  []float64 `json:"took"`  // seconds of each step
	After string    `json:"after"` // the text after the steps; "" = there are none
}

// Wrong says what is wrong with a page.
func (f *Found) Wrong() (out []string) {
	if f.Status != http.StatusOK {
		out = append(out, fmt.Sprintf("%s: status %d", f.Name, f.Status))
	}
	for what, list := range map[string][]string{"": f.Errors, "asks another host: ": f.Outside, "is not accessible: ": f.Violations, "the keyboard does not reach, or the focus is not seen: ": f.Unreached} {
		for _, text := range list {
			out = append(out, f.Name+": "+what+text)
		}
	}
	if f.Wide > 0 {
		out = append(out, fmt.Sprintf("%s is %d pixels wider than its window", f.Name, f.Wide))
	}
	if len(f.Cut) > 0 {
		out = append(out, fmt.Sprintf("%s cuts %q", f.Name, f.Cut))
	}
	return out
}

// Missing says what Look lacks on this host; nil = nothing. The folder is that of this package.
func Missing(folder string) error {
	_, err := os.Stat(filepath.Join(folder, "node_modules/playwright-core"))
	for _, program := range []string{"chromium", "node"} {
		if err == nil {
			_, err = exec.LookPath(program)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: make browser-deps installs it", err)
	}
	return nil
}

// Look visits pages of a site. The folder is the one of this package, as seen from here; screenshots go to shots, "" = none.
func Look(folder, url, shots string, visits []Visit) ([]Found, error) {
	in, err := json.Marshal(map[string]any{"base": url, "shots": shots, "visits": visits})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("node", "visit.mjs")
	var out, wrong bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = folder, bytes.NewReader(in), &out, &wrong
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("running Chromium: %w\n%s", err, wrong.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var all []Found
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &all); err != nil {
		return nil, fmt.Errorf("reading what Chromium found: %w", err)
	}
	return all, nil
}
