// Package browser looks at the web page in a real Chromium, and compares the chart library with its npm package. Screenshots are for
// people: they are in out/browser after `go test ./tests/browser -shots`.
package browser

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/web/api"
	"github.com/fairlease/fairlease/sidecar/web/page"
	"github.com/fairlease/fairlease/sidecar/web/rights"
	"github.com/fairlease/fairlease/sidecar/web/scene"
	"github.com/fairlease/fairlease/sidecar/web/scene/scenetest"
	"github.com/fairlease/fairlease/third_party/uplot"
)

var shots = flag.Bool("shots", false, "leave screenshots in out/browser")

// needs skips the test where npm packages or Chromium are missing; where everything is tested, they must be there.
func needs(t *testing.T) {
	t.Helper()
	_, err := os.Stat("node_modules/playwright-core")
	if err == nil {
		_, err = exec.LookPath("chromium")
	}
	if err == nil {
		_, err = exec.LookPath("node")
	}
	if err == nil {
		return
	}
	if os.Getenv("FAIRLEASE_FULL") != "" {
		t.Fatalf("%v: run make deps", err)
	}
	t.Skipf("%v: make deps installs it", err)
}

// TestChartLibraryIsThePackages compares the files in third_party with the npm package that package-lock.json pins.
func TestChartLibraryIsThePackages(t *testing.T) {
	needs(t)
	for name, text := range map[string]string{"LICENSE": uplot.License, "dist/uPlot.iife.min.js": uplot.Script, "dist/uPlot.min.css": uplot.Style} {
		b, err := os.ReadFile("node_modules/uplot/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if string(b) != text {
			t.Errorf("third_party/uplot differs from the npm package in %s: run make uplot", name)
		}
	}
}

// policy forbids all that the pages must do without.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// serve serves the pages of a made-up site to an operator, or with a tenant to one of its users.
func serve(t testing.TB, site scenetest.Site, operator bool) (*scene.Keeper, *scenetest.Past, string) {
	t.Helper()
	keeper, past := scene.Hold(site.Scene()), site.Past()
	who := rights.Person{User: "root", Operator: true}
	if !operator {
		who = rights.Person{User: "u", Tenants: []string{keeper.Scene().Tenants[0].Tenant}}
	}
	src := source{keeper, past}
	pages, answers := (&page.Pages{Source: src, Live: api.Root + "/live"}).Handler(), (&api.API{Source: src}).Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		r = r.WithContext(rights.With(r.Context(), who))
		switch {
		case r.URL.Path == "/next": // a new round
			s := *keeper.Scene()
			s.Round++
			keeper.Put(&s)
		case strings.HasPrefix(r.URL.Path, api.Root):
			answers.ServeHTTP(w, r)
		default:
			pages.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return keeper, past, server.URL
}

// source has made-up history.
type source struct {
	*scene.Keeper
	past scene.Past
}

func (s source) Past() scene.Past { return s.past }

// visit is a page to look at; found is what the browser saw there.
type visit struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Width  int    `json:"width,omitempty"`
	Height int    `json:"height,omitempty"`
	Scheme string `json:"scheme,omitempty"`
	NoAxe  bool   `json:"noAxe,omitempty"`
	Steps  []step `json:"steps,omitempty"`
}

type step struct {
	Click string `json:"click,omitempty"`
	Key   string `json:"key,omitempty"`
	Post  string `json:"post,omitempty"`
	Until string `json:"until,omitempty"`
}

type found struct {
	Name       string   `json:"name"`
	Status     int      `json:"status"`
	Errors     []string `json:"errors"`
	Outside    []string `json:"outside"`
	Violations []string `json:"violations"`
	Paint      float64  `json:"paint"`
	Wide       int      `json:"wide"`
	Text       string   `json:"text"`
}

// look visits pages, and fails for what no page may do.
func look(t *testing.T, base string, visits []visit) []found {
	t.Helper()
	task := map[string]any{"base": base, "visits": visits}
	if *shots {
		dir, err := filepath.Abs("../../out/browser")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		task["shots"] = dir
	}
	in, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "visit.mjs")
	var out, wrong bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &wrong
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, wrong.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var all []found
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &all); err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.Status != http.StatusOK {
			t.Errorf("%s: status %d", f.Name, f.Status)
		}
		for _, e := range f.Errors {
			t.Errorf("%s: %s", f.Name, e)
		}
		for _, e := range f.Outside {
			t.Errorf("%s asks another host: %s", f.Name, e)
		}
		for _, e := range f.Violations {
			t.Errorf("%s is not accessible: %s", f.Name, e)
		}
		if f.Wide > 0 {
			t.Errorf("%s is %d pixels wider than its window", f.Name, f.Wide)
		}
	}
	return all
}

// paths are the pages of a site that show a Scene, by name.
func paths(s *scene.Scene) map[string]string {
	out := map[string]string{"overview": "/", "gpus": "/gpus", "leases": "/leases", "places": "/places", "market": "/market", "jobs": "/jobs", "rounds": "/rounds",
		"round": fmt.Sprintf("/rounds/%d", s.Round), "ended": "/jobs/900001"}
	if len(s.Nodes) > 0 {
		out["place"] = "/places/" + s.Nodes[0].Name
	}
	for i := range s.Jobs {
		out[s.Jobs[i].State] = page.JobPath(s.Jobs[i].SlurmID)
	}
	return out
}

// TestPages looks at every page with a large window by day, and with a telephone by night. Sites differ in what there is; the hostile one
// has names that break pages which do not quote them.
func TestPages(t *testing.T) {
	needs(t)
	for _, c := range []struct {
		name     string
		site     scenetest.Site
		operator bool
		pages    string // names of them; "" = all
		phone    bool   // these with a telephone, too
		noAxe    bool
	}{
		{"site", scenetest.Site{Nodes: 60, Jobs: 400, Market: true, Counters: true}, true, "", true, false},
		{"cells", scenetest.Site{Nodes: 200, Jobs: 900, Cells: true, Counters: true}, true, "overview places place", false, false},
		{"hostile", scenetest.Site{Nodes: 40, Jobs: 300, Market: true, Counters: true, Hostile: true}, true, "", true, true},
		{"tenant", scenetest.Site{Nodes: 40, Jobs: 300, Market: true, Counters: true}, false, "overview leases round running", false, true},
		{"empty", scenetest.Site{Tenants: 1}, true, "", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			keeper, _, base := serve(t, c.site, c.operator)
			seen := keeper.Scene()
			if !c.operator {
				seen = seen.For(scene.Scope{Tenants: []string{seen.Tenants[0].Tenant}})
			}
			var visits []visit
			for name, path := range paths(seen) {
				if c.pages != "" && !slices.Contains(strings.Fields(c.pages), name) {
					continue
				}
				visits = append(visits, visit{Name: c.name + "-" + name, Path: path, NoAxe: c.noAxe})
				if c.phone {
					visits = append(visits, visit{Name: c.name + "-" + name + "-phone", Path: path, Width: 390, Height: 844, Scheme: "dark", NoAxe: c.noAxe})
				}
			}
			for _, f := range look(t, base, visits) {
				if !strings.Contains(f.Text, "Times are in") {
					t.Errorf("%s has no end:\n%s", f.Name, f.Text)
				}
			}
		})
	}
}

// TestLive changes the site while a page is open: it follows without a reload, unless it is told to stop. The theme can be chosen, and is
// kept.
func TestLive(t *testing.T) {
	needs(t)
	keeper, _, base := serve(t, scenetest.Site{Nodes: 20, Jobs: 100}, true)
	round := keeper.Scene().Round
	at := func(n int64) string {
		return fmt.Sprintf("document.getElementById('asof').textContent.includes('round %d,') && window.here === 1", n)
	}
	look(t, base, []visit{{Name: "live", Path: "/", NoAxe: true, Steps: []step{
		{Until: "(window.here = 1)"},
		{Post: "/next", Until: at(round + 1)},
		{Click: "#live", Until: "document.getElementById('live').getAttribute('aria-pressed') === 'false'"},
		{Post: "/next"},
		{Until: at(round + 1)},
		{Click: "#live", Until: at(round + 2)},
		{Click: "#theme", Until: "document.documentElement.dataset.theme === 'dark' && document.cookie === 'theme=dark'"},
		{Key: "Tab", Until: "document.activeElement !== document.body"},
	}}})
}

// TestWithoutTheJournal shows the last good state, and says that it is one.
func TestWithoutTheJournal(t *testing.T) {
	needs(t)
	keeper, past, base := serve(t, scenetest.Site{Nodes: 20, Jobs: 100}, true)
	s, since := *keeper.Scene(), time.Now().Add(-10*time.Minute)
	s.Silent = &since
	keeper.Put(&s)
	past.Err = scene.ErrAway
	for _, f := range look(t, base, []visit{{Name: "silent-overview", Path: "/"}, {Name: "silent-gpus", Path: "/gpus"}, {Name: "silent-rounds", Path: "/rounds"}, {Name: "silent-leases", Path: "/leases"}}) {
		if !strings.Contains(f.Text, "The journal has not answered since") {
			t.Errorf("%s does not say that it is old:\n%s", f.Name, f.Text)
		}
	}
}
