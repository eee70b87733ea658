package install_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// build builds the packages, once.
var build = sync.OnceValues(func() (root string, err error) {
	if root, err = filepath.Abs("../.."); err != nil {
		return "", err
	}
	if out, err := exec.Command(filepath.Join(root, "packaging", "build")).CombinedOutput(); err != nil {
		return "", fmt.Errorf("the packages cannot be built: %w\n%s", err, out)
	}
	return root, nil
})

// built gives the sources, and the deb packages that were built of them.
func built(t *testing.T) (root string, packages []string) {
	t.Helper()
	root, err := build()
	if err != nil {
		t.Fatal(err)
	}
	packages, _ = filepath.Glob(filepath.Join(root, "dist", "*fairlease_*.deb"))
	if len(packages) != 2 {
		t.Fatalf("dist has the packages %q, want two", packages)
	}
	return root, packages
}

// TestPackages has the cheap part of packaging/check: another build of the same sources elsewhere gives the same packages, lintian has
// no complaint, and the list of parts has the one that is no Go module.
func TestPackages(t *testing.T) {
	testcluster.SkipUnlessRoot(t) // as the other test of these packages, which take a minute to build
	t.Parallel()
	root, packages := built(t)
	again := t.TempDir()
	// git tells the version, also of a copy.
	const script = `cd "$1" && git ls-files -coz --exclude-standard | xargs -0 cp --parents -Pt "$2" && mkdir "$2/bin" && cp bin/nfpm bin/cyclonedx-gomod "$2/bin/" &&
export GIT_DIR="$(git rev-parse --absolute-git-dir)" && cd "$2" && packaging/build && diff "$1/dist/SHA256SUMS" dist/SHA256SUMS`
	if out, err := exec.CommandContext(t.Context(), "bash", "-c", script, "bash", root, again).CombinedOutput(); err != nil {
		t.Errorf("two builds differ: %v\n%s", err, out)
	}
	lintian := exec.CommandContext(t.Context(), "lintian", append([]string{"--allow-root", "--fail-on=error,warning"}, packages...)...)
	if out, err := lintian.CombinedOutput(); err != nil {
		t.Errorf("lintian: %v\n%s", err, out)
	}
	var parts struct {
		Components []struct{ Purl string }
	}
	text, err := os.ReadFile(filepath.Join(root, "dist", "fairlease.cdx.json"))
	if err == nil {
		err = json.Unmarshal(text, &parts)
	}
	if err != nil {
		t.Fatal(err)
	}
	chart := 0
	for _, c := range parts.Components {
		if strings.HasPrefix(c.Purl, "pkg:npm/uplot@") {
			chart++
		}
	}
	if chart != 1 || len(parts.Components) < 20 {
		t.Errorf("the list of parts has the chart library %d times, and %d parts", chart, len(parts.Components))
	}
}
