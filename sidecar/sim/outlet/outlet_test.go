package outlet_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/sim/outlet"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// Scores go to the output in one form, and to any number of files; output for programs does not
// list these.
func TestOutlet(t *testing.T) {
	scores := make([]score.Scores, 1)
	scores[0].Scheduler = "fifo"
	for _, c := range []struct {
		o     outlet.Outlet
		files string
		told  int
	}{
		{outlet.Outlet{}, "", 0},
		{outlet.Outlet{HTML: "page.html"}, "page.html", 1},
		{outlet.Outlet{Dir: "new/out"}, "new/out/report.html new/out/scores.csv new/out/scores.json", 3},
		{outlet.Outlet{JSON: true, HTML: "page.html", Dir: "out"}, "page.html out/report.html out/scores.csv out/scores.json", 0},
	} {
		t.Chdir(t.TempDir())
		var out bytes.Buffer
		if err := c.o.Write(&out, scores); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "written: "); n != c.told {
			t.Errorf("%+v: %d files are told\n%s", c.o, n, &out)
		}
		for _, path := range strings.Fields(c.files) {
			if text, err := os.ReadFile(path); err != nil || len(text) == 0 {
				t.Errorf("%+v: %v", c.o, err)
			}
		}
		if c.o.JSON {
			if text, err := os.ReadFile(filepath.Join("out", "scores.json")); err != nil || string(text) != out.String() {
				t.Errorf("%v: the file is not the output", err)
			}
		}
	}
	if err := (&outlet.Outlet{CSV: true, JSON: true}).Check(); err == nil {
		t.Error("two forms at once")
	}
	if err := (&outlet.Outlet{HTML: "none/x.html"}).Write(&bytes.Buffer{}, scores); err == nil || !strings.Contains(err.Error(), "none/x.html cannot be written") {
		t.Error(err)
	}
}
