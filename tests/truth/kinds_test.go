package truth

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/explain"
)

var rewrite = flag.Bool("rewrite", false, "write the lists of docs/operations.md anew")

// sources parses the program's sources.
func sources(t *testing.T, visit func(path string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir("../../sidecar", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "journaltest") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			visit(path, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// constants gives the values of the constants of package cluster that have a type, or a prefix without one.
func constants(t *testing.T, typ, prefix string) (out []string) {
	t.Helper()
	sources(t, func(path string, file *ast.File) {
		if filepath.Base(filepath.Dir(path)) != "cluster" {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			of, _ := spec.Type.(*ast.Ident)
			for i, name := range spec.Names {
				if i >= len(spec.Values) || !strings.HasPrefix(name.Name, prefix) || typ == "" && of != nil || typ != "" && (of == nil || of.Name != typ) {
					continue
				}
				if x, ok := spec.Values[i].(*ast.BasicLit); ok && x.Kind == token.STRING {
					text, _ := strconv.Unquote(x.Value)
					out = append(out, text)
				}
			}
			return true
		})
	})
	return out
}

// Every kind of event, state and verb is listed once, with words.
func TestListsAreWhole(t *testing.T) {
	var events, jobs, leases, verbs []string
	for _, k := range cluster.EventKinds {
		events = append(events, k.Kind)
	}
	for _, s := range cluster.JobStates {
		jobs = append(jobs, s.Name)
	}
	for _, s := range cluster.LeaseStates {
		leases = append(leases, s.Name)
	}
	for _, v := range cluster.Verbs {
		verbs = append(verbs, v.Name)
	}
	for what, lists := range map[string][2][]string{
		"kinds of events": {constants(t, "", "Event"), events}, "states of jobs": {constants(t, "JobState", ""), jobs}, "states of leases": {constants(t, "LeaseState", ""), leases},
		"verbs": {constants(t, "Verb", ""), verbs},
	} {
		if len(lists[0]) < 5 {
			t.Errorf("%s: only %q are found", what, lists[0])
		}
		if slices.Sort(lists[0]); !slices.Equal(lists[0], slices.Sorted(slices.Values(lists[1]))) {
			t.Errorf("%s: there are %q, and %q are listed", what, lists[0], lists[1])
		}
	}
}

// No event has a kind of its own making: the literal "kind: text" of an event is one of the listed constants, or a value that a caller gives.
func TestEventsHaveListedKinds(t *testing.T) {
	var known []string
	for _, k := range cluster.EventKinds {
		known = append(known, k.Kind)
	}
	events := 0
	sources(t, func(path string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			kv, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			key, ok := kv.Key.(*ast.Ident)
			if !ok || key.Name != "Kind" {
				return true
			}
			if x, ok := kv.Value.(*ast.SelectorExpr); ok && strings.HasPrefix(x.Sel.Name, "Event") {
				events++
			}
			if x, ok := kv.Value.(*ast.BasicLit); ok && (strings.Contains(path, "/engine/") || strings.HasSuffix(path, "store/repair.go")) {
				t.Errorf("%s: an event has the kind %s: add a constant to cluster.EventKinds", path, x.Value)
			}
			return true
		})
		if filepath.Base(path) == "event.go" {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool { // kinds that are passed on
			if x, ok := n.(*ast.BasicLit); ok && x.Kind == token.STRING && strings.Contains(x.Value, "_") && strings.Contains(path, "/engine/") {
				if text, _ := strconv.Unquote(x.Value); slices.Contains(known, text) {
					t.Errorf("%s has the kind %s as text: use the constant of package cluster", path, x.Value)
				}
			}
			return true
		})
	})
	if events < 20 {
		t.Errorf("only %d events are made: the test looks for the wrong words", events)
	}
}

// The lists in the documents are those of the program.
func TestListsInDocs(t *testing.T) {
	const path, begin, end = "../../docs/operations.md", "<!-- lists of the program: go test ./tests/truth -run ListsInDocs -rewrite -->\n", "<!-- end of the lists -->\n"
	var b strings.Builder
	b.WriteString("\n| event | what has happened |\n|---|---|\n")
	for _, k := range cluster.EventKinds {
		fmt.Fprintf(&b, "| `%s` | %s |\n", k.Kind, k.Words)
	}
	for _, list := range []struct {
		of    string
		names []cluster.Named
	}{{"state of a job", cluster.JobStates}, {"state of a lease", cluster.LeaseStates}, {"verb of an action", cluster.Verbs}} {
		fmt.Fprintf(&b, "\n| %s | |\n|---|---|\n", list.of)
		for _, s := range list.names {
			fmt.Fprintf(&b, "| `%s` | %s |\n", s.Name, s.Words)
		}
	}
	b.WriteString("\n| reason code | in a few words |\n|---|---|\n")
	for _, code := range constants(t, "Code", "Reason") {
		fmt.Fprintf(&b, "| `%s` | %s |\n", code, explain.Short(cluster.Code(code)))
	}
	b.WriteString("\n")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	is, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the lists", path)
	}
	if is == b.String() {
		return
	}
	if !*rewrite {
		t.Fatalf("the lists of %s are not those of the program: go test ./tests/truth -run ListsInDocs -rewrite", path)
	}
	if err := os.WriteFile(path, []byte(before+begin+b.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
