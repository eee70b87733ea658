package install_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// site is a tree with Slurm's daemons and PostgreSQL, and without systemd, for which a script starts the units' processes. It has no
// network, so that nothing else is installed.
type site struct {
	*testcluster.Cluster
	t *testing.T
}

// try runs a script as root, in the folder with the package, and gives what it wrote to standard output.
func (s *site) try(script string) (string, error) {
	return s.Exec(s.t.Context(), "root", "bash", "-euo", "pipefail", "-c", "cd /home/root\n"+script)
}

func (s *site) do(script string) string {
	s.t.Helper()
	out, err := s.try(script)
	if err != nil {
		s.t.Fatalf("%s\n%v\n%s", script, err, out)
	}
	return out
}

// TestTheFirstHour follows docs/install.md literally in both releases of Debian, from the package to the web page. Then it makes the
// mistakes that one can make on the way, and fairlease doctor names each. Then it follows the roll-out and the tutorials.
// At last it upgrades to another build, and goes back.
func TestTheFirstHour(t *testing.T) {
	testcluster.SkipUnlessRoot(t)
	t.Parallel()
	root, packages := built(t)
	page := blocks(t, filepath.Join(root, "docs", "install.md"))
	if len(page) < 7 {
		t.Fatalf("the page has only %d steps", len(page))
	}
	for _, suite := range testcluster.Suites {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			s := &site{testcluster.ForTest(t, options(suite)), t}
			for _, p := range packages {
				put(t, p, filepath.Join(s.Home("root"), filepath.Base(p)))
			}
			put(t, "systemctl", filepath.Join(s.Home("root"), "systemctl"))
			s.do("install -m 0755 systemctl /usr/local/bin/systemctl")
			begin := time.Now()
			said := map[string]string{} // of a step, by its last command
			for _, step := range page {
				lines := strings.Split(strings.TrimSpace(step), "\n")
				said[lines[len(lines)-1]] = s.do(step)
			}
			t.Logf("install_minutes %.1f", time.Since(begin).Minutes())
			for command, wants := range map[string][]string{
				"runuser -u fairlease -- fairlease doctor":        {"0 to repair"},
				"runuser -u fairlease -- fairlease status":        {"observe: no partition is acted on", "leads since", "v100 "},
				"fairlease status --server http://127.0.0.1:9964": {"leads since", "v100 "},
			} {
				for _, want := range wants {
					if !strings.Contains(said[command], want) {
						t.Errorf("%s does not show %s:\n%s", command, want, said[command])
					}
				}
			}
			html := s.do(`python3 -c 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:9964/").read().decode())'`)
			for _, want := range []string{"<!doctype html>", "nlp", "vision", "v100", "k80"} {
				if !strings.Contains(html, want) {
					t.Errorf("the web page does not show %s:\n%s", want, html)
				}
			}
			s.do("apt-get install ./python3-fairlease_*.deb")
			if !t.Failed() {
				s.mistakes(suite)
			}
			if !t.Failed() {
				s.weeks(blocks(t, filepath.Join(root, "docs", "rollout.md")))
			}
			if !t.Failed() {
				for _, account := range []string{"nlp", "vision"} {
					s.do("scancel -A " + account)
				}
				s.tutorials(filepath.Join(root, "docs"))
			}
			if !t.Failed() {
				s.upgrade(filepath.Join(root, "docs", "install.md"), packages)
			}
		})
	}
}

// weeks follows docs/rollout.md literally, on a cluster with jobs of two tenants: each command shows something of them, and each mode
// comes into force.
func (s *site) weeks(page []string) {
	s.t.Helper()
	for _, user := range []string{"alice", "bob"} {
		s.do("setpriv --reuid=" + user + " --regid=" + user + " --init-groups env --chdir=/tmp sbatch -p gpu --gres=gpu:2 --requeue --wrap 'exec sleep 900'")
		s.do("setpriv --reuid=" + user + " --regid=" + user + " --init-groups env --chdir=/tmp sbatch -p gpu --gres=gpu:1 --wrap 'exec sleep 20'")
	}
	s.until("fairlease status", "runuser -u fairlease -- fairlease leases", "alice", "bob")
	s.until("fairlease shadow", "runuser -u fairlease -- fairlease shadow 2>&1 || true", "slurm (as it was)", "fairlease (would be)") // a round after their start
	mode := regexp.MustCompile(`\|mode: (\w+)\|`)
	said := ""
	for _, step := range page {
		said += s.do(step)
		if m := mode.FindStringSubmatch(step); m != nil {
			s.until("the mode "+m[1], "runuser -u fairlease -- fairlease status", map[string]string{"canary": "canary: acting on gpu", "act": "act: acting on ", "observe": "observe: no partition is acted on"}[m[1]])
		}
	}
	for _, want := range []string{"0 to repair", "leads since", "nlp", "vision", "alice", "mode    observe   canary"} {
		if !strings.Contains(said, want) {
			s.t.Errorf("the weeks do not show %q:\n%s", want, said)
		}
	}
}

// until repeats a command until it shows all of the texts.
func (s *site) until(what, command string, texts ...string) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		said := s.do(command)
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(said, text) }) {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s does not come within a minute:\n%s", what, said)
		}
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
