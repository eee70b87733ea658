package browser

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/web/page"
	"github.com/fairlease/fairlease/sidecar/web/scene"
	"github.com/fairlease/fairlease/sidecar/web/scene/scenetest"
	"github.com/fairlease/fairlease/third_party/uplot"
)

var shots = flag.Bool("shots", false, "leave screenshots in out/browser")

// needs skips the test where npm packages or Chromium are missing; where everything is tested, they must be there.
func needs(t *testing.T) {
	t.Helper()
	err := Missing(".")
	switch {
	case err == nil:
	case os.Getenv("FAIRLEASE_FULL") != "":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
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

func serve(t *testing.T, made scenetest.Site, operator bool) *Site {
	t.Helper()
	site := Serve(made, operator)
	t.Cleanup(site.Close)
	return site
}

// look visits pages, and fails for what no page may do.
func look(t *testing.T, base string, visits []Visit) []Found {
	t.Helper()
	dir := ""
	if *shots {
		var err error
		if dir, err = filepath.Abs("../../out/browser"); err == nil {
			err = os.MkdirAll(dir, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	all, err := Look(".", base, dir, visits)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		for _, text := range f.Wrong() {
			t.Error(text)
		}
	}
	return all
}

// paths are the pages of a site that show a Scene, by name.
func paths(s *scene.Scene) map[string]string {
	out := map[string]string{"overview": "/", "gpus": "/gpus", "leases": "/leases", "places": "/places", "market": "/market", "objectives": "/objectives", "jobs": "/jobs", "rounds": "/rounds", "audit": "/audit",
		"round": fmt.Sprintf("/rounds/%d", s.Round), "ended": "/jobs/900001"}
	if len(s.Nodes) > 0 {
		out["place"] = "/places/" + s.Nodes[0].Name
	}
	for i := range s.Jobs {
		out[string(s.Jobs[i].Record.State)] = page.JobPath(s.Jobs[i].Record.ID.String())
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
		window   bool   // with a large one
		phone    bool   // with a telephone
		noAxe    bool
	}{
		{"site", scenetest.Site{Nodes: 60, Jobs: 400, Market: true, Counters: true}, true, "", true, true, false},
		{"cells", scenetest.Site{Nodes: 200, Jobs: 900, Cells: true, Counters: true}, true, "overview places place", true, false, false},
		{"hostile", scenetest.Site{Nodes: 40, Jobs: 300, Market: true, Counters: true, Hostile: true}, true, "", false, true, true},
		{"tenant", scenetest.Site{Nodes: 40, Jobs: 300, Market: true, Counters: true}, false, "overview leases round running", true, false, true},
		{"sixty-tenants", scenetest.Site{Nodes: 60, Jobs: 400, Tenants: 60}, true, "overview gpus leases places", true, true, false},
		{"empty", scenetest.Site{Tenants: 1}, true, "", true, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			site := serve(t, c.site, c.operator)
			seen := site.Keeper.Scene()
			if !c.operator {
				seen = seen.For(scene.Scope{Tenants: []string{seen.Tenants[0].Tenant}})
			}
			var visits []Visit
			for name, path := range paths(seen) {
				if c.pages != "" && !slices.Contains(strings.Fields(c.pages), name) {
					continue
				}
				if c.window {
					visits = append(visits, Visit{Name: c.name + "-" + name, Path: path, NoAxe: c.noAxe})
				}
				if c.phone {
					visits = append(visits, Visit{Name: c.name + "-" + name + "-phone", Path: path, Width: 390, Height: 844, Scheme: "dark", NoAxe: c.noAxe})
				}
			}
			for _, f := range look(t, site.URL, visits) {
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
	site := serve(t, scenetest.Site{Nodes: 20, Jobs: 100}, true)
	round := site.Keeper.Scene().Round
	at := func(n int64) string {
		return fmt.Sprintf("document.getElementById('asof').textContent.includes('round %d,') && window.here === 1", n)
	}
	look(t, site.URL, []Visit{{Name: "live", Path: "/", NoAxe: true, Steps: []Step{
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

// TestKeyboard reaches every control of every page by the Tab key, and sees where the focus is.
func TestKeyboard(t *testing.T) {
	needs(t)
	site := serve(t, scenetest.Site{Nodes: 4, Jobs: 12, Market: true, Counters: true}, true)
	var visits []Visit
	for name, path := range paths(site.Keeper.Scene()) {
		visits = append(visits, Visit{Name: "keyboard-" + name, Path: path, NoAxe: true, Tabs: true})
	}
	look(t, site.URL, visits)
}

// TestWithoutTheJournal shows the last good state, and says that it is one.
func TestWithoutTheJournal(t *testing.T) {
	needs(t)
	site := serve(t, scenetest.Site{Nodes: 20, Jobs: 100}, true)
	s, since := *site.Keeper.Scene(), time.Now().Add(-10*time.Minute)
	s.Silent = &since
	site.Keeper.Put(&s)
	site.Past.Err = scene.ErrAway
	for _, f := range look(t, site.URL, []Visit{{Name: "silent-overview", Path: "/"}, {Name: "silent-gpus", Path: "/gpus"}, {Name: "silent-rounds", Path: "/rounds"}, {Name: "silent-leases", Path: "/leases"}}) {
		if !strings.Contains(f.Text, "The journal has not answered since") {
			t.Errorf("%s does not say that it is old:\n%s", f.Name, f.Text)
		}
	}
}
