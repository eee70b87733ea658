package python

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The example that users read is the one that is tested.
func TestDocumentedExample(t *testing.T) {
	example, err := os.ReadFile("tests/example.py")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```python\n"+string(example)+"```\n") {
		t.Error("docs/jobs.md has another example than tests/example.py")
	}
}

// The library and the Lua plugin have the version of the changelog. fairlease doctor compares it with the program's.
func TestVersions(t *testing.T) {
	version := func(path, pattern string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(pattern).FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s has no version", path)
		}
		return string(m[1])
	}
	want := version("../../CHANGELOG.md", `(?m)^## v([0-9.]+)`)
	for path, pattern := range map[string]string{"fairlease/__init__.py": `(?m)^__version__ = "(.*)"$`, "../job_submit.lua": `(?m)^-- fairlease (\S+):`} {
		if got := version(path, pattern); got != want {
			t.Errorf("%s has version %s, the changelog %s", path, got, want)
		}
	}
}
