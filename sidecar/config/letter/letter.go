// Package letter writes notices in words: by built-in templates, or by those of a site.
package letter

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/notice"
)

//go:embed letters/*.txt
var own embed.FS

// ending is the end of the names of templates.
const ending = ".txt"

// Letters are the templates of letters, by kind. The first line of a template is the subject, and an empty line follows.
type Letters struct {
	of   map[string]*template.Template
	zone *time.Location
}

// example has all facts, with texts that would show a template which takes them for its own.
var example = notice.Facts{ID: "4711_3", Name: "train {{.Nothing}}", Tenant: "nlp", GPUs: cluster.CountOf(4), At: 1_800_000_000_000, Was: 1_800_000_100_000,
	Text: "has held 4 idle GPUs for 40 min", Counts: map[string]int{notice.Stop: 2, notice.Start: 1}}

// Read reads the templates of a folder in place of the built-in ones; "" = none. Times in letters are of a zone.
func Read(folder string, zone *time.Location) (*Letters, error) {
	l := &Letters{of: map[string]*template.Template{}, zone: zone}
	kinds := append(notice.Names(), notice.Digest)
	var problems []error
	if folder != "" {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name(), ending); ok && !slices.Contains(kinds, name) {
				problems = append(problems, fmt.Errorf("%s: there is no such kind of notice; the kinds are %s", filepath.Join(folder, e.Name()), strings.Join(kinds, ", ")))
			}
		}
	}
	for _, kind := range kinds {
		if err := l.read(folder, kind); err != nil {
			problems = append(problems, err)
		}
	}
	return l, errors.Join(problems...)
}

// read reads the template of a kind, and tries it.
func (l *Letters) read(folder, kind string) error {
	path := filepath.Join(folder, kind+ending)
	text, err := os.ReadFile(path)
	if folder == "" || errors.Is(err, fs.ErrNotExist) {
		path = "letters/" + kind + ending
		text, err = own.ReadFile(path)
	}
	if err != nil {
		return err
	}
	t, err := template.New(kind).Option("missingkey=error").Funcs(template.FuncMap{"time": l.time, "count": count}).Parse(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	l.of[kind] = t
	for _, facts := range []notice.Facts{example, {}} {
		if _, _, err := l.Write(kind, "ann", facts); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// time words a moment.
func (l *Letters) time(at cluster.Instant) string {
	return at.Time().In(l.zone).Format("Mon 2 Jan 15:04 MST")
}

// count words a number of things.
func count(n any, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprint(n, " ", thing)
}

// number gives whole GPUs as an int, which templates of sites compare with numbers. Parts equal none: a template that compares them still writes its letter.
func number(n cluster.GPUCount) any {
	if whole := n.Ceil(); cluster.CountOf(whole) == n {
		return whole
	}
	return n
}

// most is the maximum length of a letter in bytes.
const most = 16 << 10

// limited is a text of at most that length.
type limited struct{ strings.Builder }

func (b *limited) Write(p []byte) (int, error) {
	if b.Len()+len(p) > most {
		return 0, fmt.Errorf("the letter is longer than %d bytes", most)
	}
	return b.Builder.Write(p)
}

// Write writes a letter.
func (l *Letters) Write(kind, user string, facts notice.Facts) (subject, body string, err error) {
	t := l.of[kind]
	if t == nil {
		return "", "", fmt.Errorf("there is no letter of the kind %q", notice.Clean(kind))
	}
	var b limited
	err = t.Execute(&b, struct {
		User string
		GPUs any // in place of that of the facts
		notice.Facts
	}{notice.Clean(user), number(facts.GPUs), facts})
	if err != nil {
		return "", "", err
	}
	subject, body, found := strings.Cut(b.String(), "\n\n")
	if !found || strings.TrimSpace(body) == "" || notice.Clean(subject) == "" || strings.ContainsAny(subject, "\r\n") {
		return "", "", errors.New("a letter begins with one line, its subject; then come an empty line and the text")
	}
	return notice.Clean(subject), body, nil
}
