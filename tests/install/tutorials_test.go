package install_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// training stands for the train.py of docs/jobs.md where there is no PyTorch: the same, with a network of one number. The tests of the Python library
// run the one with PyTorch.
const training = `import os
import time

import fairlease

step = 0
if os.path.exists("run.ckpt"):
    step = int(open("run.ckpt").read())
print("start at step", step, flush=True)


def save(step):
    with open("run.ckpt.new", "w") as f:
        f.write(str(step))
    os.replace("run.ckpt.new", "run.ckpt")


for _ in fairlease.iterate(range(step, 90_000), save, start=step, total=90_000):
    time.sleep(0.01)
    step += 1
    if step % 100 == 0:
        print("step", step, "loss", 1 / step, flush=True)
`

// tutorials follows the tutorials literally, one after the other, on a cluster in mode observe. It waits until the jobs of the one before are gone.
func (s *site) tutorials(docs string) {
	s.t.Helper()
	s.tutorial(filepath.Join(docs, "tutorial-virtual-clusters.md"), "root")
	s.tutorial(filepath.Join(docs, "tutorial-gpu-models.md"), "root")
	if err := os.WriteFile(filepath.Join(s.Home("alice"), "train.py"), []byte(training), 0o644); err != nil {
		s.t.Fatal(err)
	}
	s.do("sed -i -e 's|^mode: .*|mode: act|' /etc/fairlease/fairlease.yaml; systemctl reload fairlease")
	s.tutorial(filepath.Join(docs, "tutorial-pytorch.md"), "alice")
	out := s.do("grep start /home/alice/first.out")
	if starts := strings.Fields(strings.ReplaceAll(out, "start at step", "")); len(starts) != 2 || starts[0] != "0" || starts[1] == "0" {
		s.t.Errorf("the training started at the steps %q", starts)
	}
}

// tutorial runs the commands of a page as a user. Where a page shows what the last one prints, that comes: if not at once, it is repeated.
func (s *site) tutorial(page, user string) {
	s.t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		s.t.Fatal(err)
	}
	s.until("a round without jobs", "runuser -u fairlease -- fairlease status", "jobs      none")
	run := func(script string) (string, error) {
		return s.Exec(s.t.Context(), user, "bash", "-euo", "pipefail", "-c", "cd /home/"+user+"\n"+script)
	}
	steps := 0
	for _, m := range regexp.MustCompile("(?s)```bash\n(.*?)```(?:\n\n```text\n(.*?)```)?").FindAllStringSubmatch(string(text), -1) {
		steps++
		first, last := m[1], ""
		if m[2] != "" {
			at := strings.LastIndexByte(strings.TrimSpace(m[1]), '\n') + 1
			first, last = m[1][:at], m[1][at:]
		}
		said, err := run(first)
		if err != nil {
			s.t.Fatalf("%s: %s\n%v\n%s", filepath.Base(page), first, err, said)
		}
		for end := time.Now().Add(4 * time.Minute); last != ""; time.Sleep(time.Second) {
			more, err := run(last)
			missing := lacks(said+"\n"+more, m[2])
			if err == nil && missing == "" {
				break
			}
			if time.Now().After(end) {
				s.t.Fatalf("%s: %s (%v) does not print %q:\n%s", filepath.Base(page), last, err, missing, more)
			}
		}
	}
	if steps < 5 {
		s.t.Errorf("%s has only %d steps", page, steps)
	}
}

// lacks gives the first wanted line that was not said, each on a line of its own, in any order; "" = none. … stands for anything, more may follow, and
// spaces may be more.
func lacks(said, want string) string {
	lines := strings.Split(said, "\n")
	for line := range strings.Lines(want) {
		pattern := "^"
		for _, word := range strings.Fields(line) {
			pattern += strings.ReplaceAll(regexp.QuoteMeta(word), "…", ".*") + `\s*`
		}
		k := slices.IndexFunc(lines, func(said string) bool { return regexp.MustCompile(pattern).MatchString(strings.TrimSpace(said)) })
		if k < 0 {
			return strings.TrimSpace(line)
		}
		lines = slices.Delete(lines, k, k+1)
	}
	return ""
}

func TestLacks(t *testing.T) {
	for _, c := range []struct{ said, want, lacks string }{
		{"  a   1\nb 2\n", "b …\na 1\n", ""},
		{"a 1\n", "a …\na …\n", "a …"},
		{"a 1 2\nb\n", "a 1\n", ""},
		{"ba 1\n", "a 1\n", "a 1"},
		{"7 nlp alice 4 v100\n", "… alice 4 v100 …\n", ""},
		{"7 nlp alice 4 k80\n", "… alice 4 v100 …\n", "… alice 4 v100 …"},
		{"", "", ""},
	} {
		if got := lacks(c.said, c.want); got != c.lacks {
			t.Errorf("of %q %q lacks %q, want %q", c.said, c.want, got, c.lacks)
		}
	}
}
