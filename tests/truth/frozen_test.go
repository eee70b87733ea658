package truth

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/web/api"
	"github.com/fairlease/fairlease/sql"
)

var freeze = flag.Bool("freeze", false, "record the names that a release promises; only for a release")

const (
	frozenFile     = "testdata/frozen.txt"
	deprecatedFile = "testdata/deprecated.txt"
)

// promised lists the names that programs and people of sites depend on: keys of the configuration, commands with their flags, views with
// their columns, paths and fields of the API, and metrics.
func promised(t *testing.T) []string {
	t.Helper()
	names := map[string]bool{}
	for _, key := range config.Keys() {
		names["key "+key] = true
	}
	program := filepath.Join(t.TempDir(), "fairlease")
	if out, err := exec.Command("go", "build", "-o", program, "../../sidecar/cmd/fairlease").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	commands(t, names, program)
	for _, name := range sql.ViewNames() {
		names["view "+name] = true
	}
	for _, v := range sql.Views() {
		for _, m := range regexp.MustCompile(`(?m)^comment on column (\w+\.\w+) is `).FindAllStringSubmatch(v.Text, -1) {
			names["column "+m[1]] = true
		}
	}
	interfaces(t, names)
	for _, name := range metricNames(t) {
		names["metric "+name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

var (
	subcommand = regexp.MustCompile(`(?m)^  ([a-z][a-z-]*) +\S`)
	examples   = regexp.MustCompile(`(?m)^Examples:\n(?:  .*\n)+`)
	option     = regexp.MustCompile(`(?m)^ +(?:-\w, )?(--[a-z][a-z-]*)`)
)

// commands adds the commands of a program below some words, and their flags, as the help lists them.
func commands(t *testing.T, names map[string]bool, program string, words ...string) {
	t.Helper()
	out, err := exec.Command(program, append(slices.Clone(words), "--help")...).Output()
	if err != nil {
		t.Fatalf("fairlease %s --help: %v", strings.Join(words, " "), err)
	}
	_, help, _ := strings.Cut(string(out), "\nUsage:\n")
	list, flags, _ := strings.Cut(help, "\nFlags:\n")
	for _, m := range option.FindAllStringSubmatch(flags, -1) {
		names[strings.Join(append(append([]string{"flag"}, words...), m[1]), " ")] = true
	}
	for _, m := range subcommand.FindAllStringSubmatch(examples.ReplaceAllString(list, ""), -1) {
		if m[1] == "fairlease" || m[1] == "help" || m[1] == "completion" {
			continue
		}
		below := append(slices.Clone(words), m[1])
		names["command "+strings.Join(below, " ")] = true
		commands(t, names, program, below...)
	}
}

// experimental is the path whose answer has the engine's own form, which no release promises.
const experimental = api.Root + "/rounds/{number}"

// interfaces adds the paths of the API and the fields of its answers, as its description has them.
func interfaces(t *testing.T, names map[string]bool) {
	t.Helper()
	w := httptest.NewRecorder()
	(&api.API{Version: "test"}).Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, api.Root+"/openapi.json", nil))
	var about struct {
		Paths      map[string]json.RawMessage
		Components struct{ Schemas map[string]json.RawMessage }
	}
	read := func(text []byte, to any) {
		if err := json.Unmarshal(text, to); err != nil {
			t.Fatal(err)
		}
	}
	read(w.Body.Bytes(), &about)
	seen := map[string]bool{}
	var fields func(text []byte)
	fields = func(text []byte) {
		for _, m := range regexp.MustCompile(`#/components/schemas/([\w.]+)`).FindAllSubmatch(text, -1) {
			schema := string(m[1])
			if seen[schema] {
				continue
			}
			seen[schema] = true
			var is struct{ Properties map[string]any }
			read(about.Components.Schemas[schema], &is)
			for field := range is.Properties {
				names["field "+schema+"."+field] = true
			}
			fields(about.Components.Schemas[schema])
		}
	}
	for path, text := range about.Paths {
		names["path "+path] = true
		var is struct {
			Get struct{ Parameters []struct{ Name string } }
		}
		read(text, &is)
		for _, p := range is.Get.Parameters {
			names["parameter "+path+" "+p.Name] = true
		}
		if path != experimental {
			fields(text)
		}
	}
}

// metricNames lists the daemon's metrics with their labels, from the package's own test.
func metricNames(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("../../sidecar/daemon/metrics/testdata/round.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, " ")
		name, labels, _ := strings.Cut(name, "{")
		names = append(names, name)
		for _, m := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(labels, -1) {
			names = append(names, name+" "+m[1])
		}
	}
	return names
}

// deprecation is a name that will vanish, or has.
type deprecation struct {
	name, since, instead string
	minor                int // of since
}

// deprecations reads lines of the form NAME | SINCE | INSTEAD.
func deprecations(text string) (list []deprecation, err error) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		parts := strings.Split(strings.TrimSpace(line), " | ")
		if len(parts) != 3 || parts[2] == "" {
			return nil, fmt.Errorf("%q: write NAME | SINCE | INSTEAD", line)
		}
		d := deprecation{name: parts[0], since: parts[1], instead: parts[2]}
		if d.minor, err = minorOf(d.since); err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// minorOf gives the number of a release of a major version: 12 of v0.12.3.
func minorOf(version string) (minor int, err error) {
	var major, patch int
	if _, err := fmt.Sscanf(version, "v%d.%d.%d", &major, &minor, &patch); err != nil {
		return 0, fmt.Errorf("%q is no version: write one like v0.1.0", version)
	}
	return minor, nil
}

// releases is how many minor releases still have a name, with a warning, from the one on that deprecates it.
const releases = 2

// broken says which promises names break that were frozen, in a release.
func broken(frozen, names []string, list []deprecation, minor int) (out []string) {
	for _, name := range frozen {
		if slices.Contains(names, name) {
			continue
		}
		k := slices.IndexFunc(list, func(d deprecation) bool { return d.name == name })
		switch {
		case k < 0:
			out = append(out, name+" has gone without an entry in "+deprecatedFile)
		case minor < list[k].minor+releases:
			out = append(out, fmt.Sprintf("%s has gone, but it is deprecated since %s: it stays for %d releases, with a warning", name, list[k].since, releases))
		}
	}
	return out
}

// A name that a release has promised goes only after two releases that warned of it (docs/stability.md).
func TestNamesStay(t *testing.T) {
	names := promised(t)
	if *freeze {
		if err := os.WriteFile(frozenFile, []byte(strings.Join(names, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	frozen := strings.Split(strings.TrimSpace(read(frozenFile)), "\n")
	kinds := map[string]int{}
	for _, name := range frozen {
		kind, _, _ := strings.Cut(name, " ")
		kinds[kind]++
	}
	for kind, least := range map[string]int{"key": 120, "command": 30, "flag": 150, "view": 25, "column": 300, "path": 20, "parameter": 20, "field": 200, "metric": 60} {
		if kinds[kind] < least {
			t.Errorf("%d names of the kind %s, want at least %d: the test looks in the wrong place", kinds[kind], kind, least)
		}
	}
	release := regexp.MustCompile(`(?m)^## (v[0-9.]+)`).FindStringSubmatch(read("../../CHANGELOG.md"))
	minor, err := minorOf(release[1])
	if err != nil {
		t.Fatal(err)
	}
	list, err := deprecations(read(deprecatedFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range broken(frozen, names, list, minor) {
		t.Error(wrong)
	}
	docs := read("../../docs/stability.md")
	for _, d := range list {
		if !strings.Contains(docs, "`"+d.name+"`") {
			t.Errorf("docs/stability.md does not say that %s is deprecated", d.name)
		}
	}
}

func TestBrokenPromises(t *testing.T) {
	list, err := deprecations("# words\n\nkey old | v0.2.0 | key new\nview gone | v0.3.1 | nothing\n")
	if err != nil || len(list) != 2 || list[0] != (deprecation{"key old", "v0.2.0", "key new", 2}) {
		t.Fatalf("%+v, %v", list, err)
	}
	frozen := []string{"key a", "key old", "view gone"}
	for _, c := range []struct {
		names []string
		minor int
		want  string
	}{
		{frozen, 2, ""},
		{append([]string{"key added"}, frozen...), 2, ""},
		{[]string{"key old", "view gone"}, 9, "key a has gone without"},
		{[]string{"key a", "view gone"}, 3, "key old has gone, but it is deprecated since v0.2.0"},
		{[]string{"key a", "view gone"}, 4, ""},
		{[]string{"key a"}, 4, "view gone has gone, but"},
		{[]string{"key a"}, 5, ""},
	} {
		got := strings.Join(broken(frozen, c.names, list, c.minor), "\n")
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%v in release %d: %q, want %q", c.names, c.minor, got, c.want)
		}
	}
	for _, text := range []string{"key a", "key a | v0.2.0", "key a | 0.2 | key b"} {
		if _, err := deprecations(text); err == nil {
			t.Errorf("%q is no entry", text)
		}
	}
}
