package truth

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
)

// texts gives what people read: documents, man pages, comments of files that are installed, pages, and the string literals of programs.
func texts(t *testing.T) map[string]string {
	t.Helper()
	literal := regexp.MustCompile("\"(?:[^\"\\\\\n]|\\\\.)*\"|`[^`]*`")
	out := map[string]string{}
	for _, root := range []string{"docs", "etc", "packaging", "sidecar", "sql/views", "README.md"} {
		err := filepath.WalkDir("../../"+root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
				return err
			}
			ext := filepath.Ext(path)
			if !slices.Contains([]string{".go", ".md", ".html", ".yaml", ".yml", ".sql", ".1", ".5", ".8", ".json", ".service", ".conf"}, ext) {
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			words := string(text)
			if ext == ".go" {
				words = strings.Join(literal.FindAllString(words, -1), "\n")
			}
			out[strings.TrimPrefix(path, "../../")] = strings.ReplaceAll(words, `\-`, "-")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// Every setting that a text names by its section and key exists.
func TestTextsNameSettings(t *testing.T) {
	known, sections := map[string]bool{}, map[string]bool{}
	for _, key := range config.Keys() {
		parts := strings.Split(key, ".")
		for i := range parts {
			known[strings.Join(parts[:i+1], ".")] = true
		}
		if len(parts) > 1 {
			sections[parts[0]] = true
		}
	}
	name := regexp.MustCompile(`(?:^|[^\w./{$\-%])((?:` + strings.Join(slices.Sorted(maps.Keys(sections)), "|") + `)(?:\.[a-z][a-z_0-9]*)+)`)
	named := 0
	for path, text := range texts(t) {
		for _, m := range name.FindAllStringSubmatch(text, -1) {
			if named++; !known[m[1]] && !slices.Contains(files, m[1][strings.LastIndex(m[1], ".")+1:]) && !others[m[1]] {
				t.Errorf("%s names the setting %s, which does not exist", path, m[1])
			}
		}
	}
	if named < 500 {
		t.Errorf("only %d settings are named: the test looks for the wrong words", named)
	}
}

// files are the ends of names of files, others names that look like settings and are none.
var (
	files  = []string{"conf", "go", "md", "sql", "yaml", "yml", "txt", "json", "csv", "html", "service", "socket", "log", "css", "js", "example", "com", "org", "py", "sh", "so", "db"}
	others = map[string]bool{"tenants.weights.nlp": true} // an entry of a mapping, as the record of administration has it
)

// Every preset that a text names exists, or is a scheduler of the simulator; and the man page lists them all.
func TestTextsNamePresets(t *testing.T) {
	name := regexp.MustCompile(`\b(?:gavel|oef|gandiva-fair):[a-z][a-z-]*[a-z]`)
	named, baselines := 0, baseline.Heterogeneous()
	all := texts(t)
	for path, text := range all {
		for _, m := range name.FindAllString(text, -1) {
			named++
			if _, ok := preset.Of(m); !ok && !slices.Contains(baselines, m) {
				t.Errorf("%s names the preset %s, which does not exist", path, m)
			}
		}
	}
	if named < 50 {
		t.Errorf("only %d presets are named: the test looks for the wrong words", named)
	}
	for _, p := range preset.All() {
		if entry := "\n.TP\n.B " + p.Name + "\n" + strings.ReplaceAll(p.Doc, "'", `\(aq`) + "\n"; !strings.Contains(all["docs/fairlease.1"], entry) {
			t.Errorf("the section PRESETS of docs/fairlease.1 lacks %s, or words it otherwise than the program:%s", p.Name, entry)
		}
	}
	if list := "one of\n" + strings.Join(preset.Dividing(), ",\n") + ".\n"; !strings.Contains(all["docs/fairlease.1"], list) {
		t.Errorf("the scheduler fairlease:PRESET of docs/fairlease.1 is not %s", list)
	}
}

// The sample of the configuration, and with it fairlease.yaml(5), names every choice of every setting that has some.
func TestSampleNamesChoices(t *testing.T) {
	sample, err := os.ReadFile("../../etc/fairlease.yaml")
	if err != nil {
		t.Fatal(err)
	}
	choices := regexp.MustCompile(`"zzz" is not known; write one of ([^\n]*)`)
	lines := strings.Split(string(sample), "\n")
	found := 0
	for _, key := range config.Keys() {
		text, parts := "", strings.Split(key, ".")
		for i, part := range parts {
			text += strings.Repeat("  ", i) + part + ":" + map[bool]string{true: " zzz", false: "\n"}[i == len(parts)-1]
		}
		_, err := config.Parse("sample.yaml", []byte(text), nil)
		if err == nil {
			continue
		}
		m := choices.FindStringSubmatch(err.Error())
		if m == nil {
			continue
		}
		found++
		line := regexp.MustCompile(`^` + strings.Repeat("  ", len(parts)-1) + regexp.QuoteMeta(parts[len(parts)-1]) + `:`)
		in, at := len(parts) == 1, -1
		for i, text := range lines {
			if in = in || strings.HasPrefix(text, parts[0]+":"); in && line.MatchString(text) && at < 0 {
				at = i
			}
		}
		if at < 0 {
			t.Errorf("the sample has no %s", key)
			continue
		}
		about := lines[at]
		for i := at - 1; i >= 0 && strings.TrimSpace(lines[i]) != ""; i-- { // comments of several keys stand above the first
			about = lines[i] + "\n" + about
		}
		for _, choice := range strings.Split(m[1], ", ") {
			choice = strings.TrimSuffix(strings.TrimSpace(choice), ".")
			if !regexp.MustCompile(`(?:^|[^\w-])` + regexp.QuoteMeta(choice) + `(?:$|[^\w-])`).MatchString(about) {
				t.Errorf("the comment of %s in etc/fairlease.yaml lacks the choice %q", key, choice)
			}
		}
	}
	if found < 8 {
		t.Errorf("only %d settings have choices: the test looks for the wrong words", found)
	}
}
