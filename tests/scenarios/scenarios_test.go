// Package scenarios tells stories: each *.txt file is a small cluster, what its
// users and administrators do, and what fairlease makes of it. The stories are
// read by people and checked by this test.
//
// A line that begins with "> " is a command (see commands); the lines after it that are
// indented by four blanks are its output, as it was recorded. All else is prose.
// After a change of behaviour that you can explain line by line, record anew:
//
//	go test ./tests/scenarios -rewrite
package scenarios

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/tests/decisions"
)

var rewrite = flag.Bool("rewrite", false, "record the output of all commands anew")

func TestStories(t *testing.T) {
	files, err := filepath.Glob("*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, ".txt"), func(t *testing.T) {
			was, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			is, decided := tell(t, string(was))
			decided.Compare(t, filepath.Join("testdata", file), *rewrite)
			if *rewrite {
				if err := os.WriteFile(file, []byte(is), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			compare(t, file, strings.Split(string(was), "\n"), strings.Split(is, "\n"))
		})
	}
}

// indent is what tells output from commands and prose.
const indent = "    "

// tell runs the commands of a story and gives it back with their output, and what was decided.
func tell(t *testing.T, text string) (string, *decisions.Recording) {
	s := newStory(t)
	var out []string
	recorded := false // the old output of a command follows
	for n, line := range strings.Split(text, "\n") {
		if recorded && strings.HasPrefix(line, indent) {
			continue
		}
		out = append(out, line)
		command, ok := strings.CutPrefix(line, "> ")
		if recorded = ok; !ok {
			continue
		}
		said, err := s.do(strings.Fields(command))
		if err != nil {
			t.Fatalf("line %d: %s: %v", n+1, command, err)
		}
		for _, l := range said {
			out = append(out, strings.TrimRight(indent+l, " "))
		}
	}
	return strings.Join(out, "\n"), &s.decisions
}

// compare reports the first line that differs.
func compare(t *testing.T, file string, was, is []string) {
	t.Helper()
	for n := range max(len(was), len(is)) {
		var a, b string
		if n < len(was) {
			a = was[n]
		}
		if n < len(is) {
			b = is[n]
		}
		if a != b {
			t.Fatalf("%s, line %d:\nrecorded %q\nnow      %q", file, n+1, a, b)
		}
	}
}

// A test that cannot fail is a defect: a story that says otherwise is refused.
func TestAStoryThatIsNotTrueIsFoundOut(t *testing.T) {
	const text = "> nodes n1 v100 2\n> tenants a=1\n> submit a 1\n" + indent + "job 7\n"
	if is, _ := tell(t, text); is == text || !strings.Contains(is, indent+"job 1\n") {
		t.Errorf("told %q", is)
	}
}

func TestCommandsThatAreWrong(t *testing.T) {
	for _, command := range []string{"dance", "nodes n1", "tenants a", "submit nobody 1", "submit a one", "run", "run soon", "show me", "explain 7", "node n9 down",
		"submit a 1 sometimes", "freeze a", "settings lease=1", "by nobody", "vcs a", "vcs a=2"} {
		s := newStory(t)
		for _, before := range []string{"nodes n1 v100 2", "tenants a=1"} {
			if _, err := s.do(strings.Fields(before)); err != nil {
				t.Fatal(err)
			}
		}
		if said, err := s.do(strings.Fields(command)); err == nil {
			t.Errorf("%q was carried out: %v", command, said)
		}
	}
}
