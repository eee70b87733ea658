package site

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func write(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, content := range files {
		if err := put(root, name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// Every page of the repository is in the site, with all its links, pictures and anchors. No page loads anything from another host.
func TestTheRepository(t *testing.T) {
	t.Parallel()
	const root = "../.."
	out := t.TempDir()
	if err := Build(root, out); err != nil {
		t.Fatal(err)
	}
	loads := regexp.MustCompile(`<(?:img|script|link|iframe)[^>]*(?:src|href)="([^"]*)"`)
	count := 0
	for _, pattern := range sources {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			name := htmlOf(filepath.ToSlash(source))
			text, err := os.ReadFile(filepath.Join(out, name))
			if err != nil {
				t.Error(err)
				continue
			}
			count++
			if n := strings.Count(string(text), `aria-current="page"`); n != 1 {
				t.Errorf("%s is in the navigation %d times, want once", name, n)
			}
			for _, m := range loads.FindAllStringSubmatch(string(text), -1) {
				if m[1] == "data:," {
					continue
				}
				if _, err := os.Stat(filepath.Join(out, filepath.Dir(name), m[1])); err != nil {
					t.Errorf("%s loads %s, which the site lacks", name, m[1])
				}
			}
		}
	}
	if count < 30 {
		t.Errorf("only %d pages", count)
	}
}

// Links that lead nowhere are named, all at once.
func TestLinksThatLeadNowhere(t *testing.T) {
	t.Parallel()
	good := "# Start\n\n[other](docs/other.md#the-end) [file](etc/x.yaml) [far](https://example.org/#x)\n\n## Documentation\n\n**You read.** Text.\n1. [other](docs/other.md)\n"
	for _, c := range []struct{ start, want string }{
		{good, ""},
		{good + "[x](docs/none.md)", "README.md links to docs/none.md, which is no file"},
		{good + "[x](docs)", "README.md links to docs, which is no file"},
		{good + "[x](docs/other.md#none)", "README.md links to docs/other.md#none, and docs/other.md has no such heading"},
		{good + "[x](#none)", "README.md links to #none, and README.md has no such heading"},
		{good + "![x](a.png) [x](#b)", "README.md links to a.png, which is no file\nREADME.md links to #b, and README.md has no such heading"},
	} {
		root, out := write(t, map[string]string{"README.md": c.start, "docs/other.md": "# Other\n\n## The `end`\n\nLast words. [up](../README.md#start)", "etc/x.yaml": "a: 1\n"}), t.TempDir()
		err := Build(root, out)
		if c.want != "" {
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for name, has := range map[string][]string{
			"index.html":      {`href="docs/other.html#the-end"`, `href="etc/x.yaml.txt"`, `href="https://example.org/#x"`, "<h2>You read</h2>", `<a href="docs/other.html">Other</a>`},
			"docs/other.html": {`href="../index.html#start"`, `<a href="../docs/other.html" aria-current="page">`, `id="the-end"`, `src="../site/site.js"`},
			"etc/x.yaml.txt":  {"a: 1"},
			"site/index.js":   {`{"p":"docs/other.html","a":"the-end","t":"Other","h":"The end","x":"Last words. up "}`},
		} {
			text, err := os.ReadFile(filepath.Join(out, name))
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range has {
				if !strings.Contains(string(text), part) {
					t.Errorf("%s lacks %s:\n%s", name, part, text)
				}
			}
		}
	}
}
