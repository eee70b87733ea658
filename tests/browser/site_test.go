package browser

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/tests/site"
)

// The documentation reads well from a folder, without a server: in a wide window and a phone's, light and dark. Its search finds headings and text.
func TestDocumentationSite(t *testing.T) {
	needs(t)
	out := t.TempDir()
	if err := site.Build("../..", out); err != nil {
		t.Fatal(err)
	}
	search := []Step{{Into: "#search", Text: "exempt debts", Until: `document.querySelectorAll("#results li").length > 0`}}
	visits := []Visit{
		{Name: "docs-start", Path: "/index.html"},
		{Name: "docs-dark", Path: "/docs/gates.html", Scheme: "dark"},
		{Name: "docs-phone", Path: "/docs/install.html", Width: 390, Height: 844},
		{Name: "docs-results", Path: "/docs/results.html", Width: 390, Height: 844, Scheme: "dark"},
		{Name: "docs-search", Path: "/docs/web.html", Steps: search},
		{Name: "docs-followed", Path: "/docs/web.html", Steps: []Step{
			{Key: "/", Until: `document.activeElement.id === "search"`},
			{Into: "#search", Text: "releases of slurm", Until: `document.querySelectorAll("#results li").length > 0`},
			{Click: "#results a", Until: `location.pathname.endsWith("/SUPPORT.html") && location.hash === "#releases-of-slurm"`}}},
		{Name: "docs-nothing", Path: "/docs/web.html", Steps: []Step{{Into: "#search", Text: "xyzzy", Until: `!document.getElementById("results").hidden`}}},
	}
	server := httptest.NewServer(http.FileServer(http.Dir(out)))
	t.Cleanup(server.Close)
	folder := Visit{Name: "docs-folder", Path: "/index.html", Steps: search, NoAxe: true} // axe reads style sheets again, which a page in a folder may not
	for _, f := range append(look(t, server.URL, visits), look(t, "file://"+out, []Visit{folder})...) {
		want := map[string]string{"docs-search": "places", "docs-folder": "places", "docs-followed": "Releases of Slurm", "docs-nothing": "Nothing has all these words"}[f.Name]
		if !strings.Contains(f.After, want) {
			t.Errorf("%s lacks %q:\n%s", f.Name, want, f.After)
		}
	}
}
