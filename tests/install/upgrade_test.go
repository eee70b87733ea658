package install_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// newer is the version of a later build of the same sources.
const newer = "9.9.9"

// later makes the package of that build from the present one, once, and gives its file.
var later = sync.OnceValues(func() (string, error) {
	const script = `old=$(ls ../../dist/fairlease_*.deb) && work=$(mktemp -d) && dpkg-deb -R "$old" "$work/tree" &&
go build -C ../.. -buildvcs=false -trimpath -buildmode=pie -ldflags "-s -w -X github.com/fairlease/fairlease/sidecar/operate/build.version=$1" -o "$work/tree/usr/bin/fairlease" ./sidecar/cmd/fairlease &&
sed -i "s/^Version: .*/Version: $1-1/" "$work/tree/DEBIAN/control" && dpkg-deb -b "$work/tree" "$work/fairlease_$1-1_$(dpkg --print-architecture).deb" >/dev/null && ls "$work"/*.deb`
	out, err := exec.Command("bash", "-c", script, "bash", newer).Output()
	if err != nil {
		return "", fmt.Errorf("the package of a later build: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
})

// upgrade follows the section of docs/install.md literally, from a daemon and a web page that run to those of a later build, and back.
func (s *site) upgrade(page string, packages []string) {
	s.t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		s.t.Fatal(err)
	}
	steps := regexp.MustCompile("(?s)\n## Upgrade\n.*?```\n(.*?)```.*?```\n(.*?)```").FindStringSubmatch(string(text))
	if steps == nil {
		s.t.Fatal("the page has no commands to upgrade and to go back")
	}
	next, err := later()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(next)) })
	old := packages[slices.IndexFunc(packages, func(p string) bool { return strings.HasPrefix(filepath.Base(p), "fairlease_") })]
	put(s.t, next, filepath.Join(s.Home("root"), "new", filepath.Base(next)))
	put(s.t, old, filepath.Join(s.Home("root"), "old", "fairlease_OLD.deb"))
	was := s.do("fairlease version")
	s.do("mkdir -p /run/systemd/system; echo 'APT::Get::Assume-Yes \"true\";' >/etc/apt/apt.conf.d/90yes") // the package restarts what runs; apt asks before it goes back
	for i, step := range steps[1:] {
		s.do("cd " + []string{"new", "old"}[i] + "\n" + step)
		if got := s.do("fairlease version"); (i == 0) != strings.Contains(got, newer) || i == 1 && got != was {
			s.t.Errorf("step %d: the version is %s, was %s", i, got, was)
		}
		said := s.do("runuser -u fairlease -- fairlease doctor") + s.do("runuser -u fairlease -- fairlease status") + s.do("fairlease status --server http://127.0.0.1:9964")
		if !strings.Contains(said, "0 to repair") || strings.Count(said, "leads since") < 2 {
			s.t.Errorf("step %d leaves something to repair, or no daemon that leads:\n%s", i, said)
		}
		for _, unit := range []string{"fairlease", "fairlease-web"} { // a process of a program that was replaced
			if run := s.do("readlink /proc/$(cat /run/units/" + unit + ")/exe"); strings.Contains(run, "deleted") {
				s.t.Errorf("step %d: %s still runs the version before", i, unit)
			}
		}
	}
	s.do("rmdir /run/systemd/system")
}
