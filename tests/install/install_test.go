package install_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// blocks gives the commands of a page that it marks as bash, in order.
func blocks(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile("(?s)```bash\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		out = append(out, m[1])
	}
	return out
}

// TestThePageLeadsToADaemon follows docs/install.md literally in both releases of Debian: in a tree with Slurm's daemons and PostgreSQL, and without
// systemd, for which a script starts the units' processes. The machine has no network, so that nothing else is installed.
func TestThePageLeadsToADaemon(t *testing.T) {
	testcluster.SkipUnlessRoot(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), filepath.Join(root, "packaging", "build"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the package cannot be built: %v\n%s", err, out)
	}
	packages, _ := filepath.Glob(filepath.Join(root, "dist", "fairlease_*.deb"))
	if len(packages) != 1 {
		t.Fatalf("dist has the packages %q, want one", packages)
	}
	page := blocks(t, filepath.Join(root, "docs", "install.md"))
	if len(page) < 6 {
		t.Fatalf("the page has only %d steps", len(page))
	}
	for _, suite := range testcluster.Suites {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			c := testcluster.ForTest(t, testcluster.Options{Suite: suite})
			put(t, packages[0], filepath.Join(c.Home("root"), filepath.Base(packages[0])))
			put(t, "systemctl", filepath.Join(c.Home("root"), "systemctl"))
			do := func(script string) string {
				t.Helper()
				out, err := c.Exec(t.Context(), "root", "bash", "-euo", "pipefail", "-c", "cd /home/root\n"+script)
				if err != nil {
					t.Fatalf("%s\n%v\n%s", script, err, out)
				}
				return out
			}
			do("install -m 0755 systemctl /usr/local/bin/systemctl")
			begin := time.Now()
			var last string
			for _, step := range page {
				last = do(step)
			}
			t.Logf("install_minutes %.1f", time.Since(begin).Minutes())
			for _, want := range []string{"observe: no partition is acted on", "leads since", "v100 "} {
				if !strings.Contains(last, want) {
					t.Errorf("the last step does not show %s:\n%s", want, last)
				}
			}
		})
	}
}

func put(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
