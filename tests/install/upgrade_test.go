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

// later makes the package of that build from the present one, once, and gives it.
var later = sync.OnceValues(func() ([]byte, error) {
	const script = `old=$(ls ../../dist/fairlease_*.deb) && work=$(mktemp -d) && dpkg-deb -R "$old" "$work/tree" &&
go build -C ../.. -buildvcs=false -trimpath -buildmode=pie -ldflags "-s -w -X github.com/fairlease/fairlease/sidecar/operate/build.version=$1" -o "$work/tree/usr/bin/fairlease" ./sidecar/cmd/fairlease &&
sed -i "s/^Version: .*/Version: $1-1/" "$work/tree/DEBIAN/control" && dpkg-deb -b "$work/tree" "$work/new.deb" >/dev/null && cat "$work/new.deb" && rm -r "$work"`
	out, err := exec.Command("bash", "-c", script, "bash", newer).Output()
	if err != nil {
		return nil, fmt.Errorf("the package of a later build: %w", err)
	}
	return out, nil
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
	old := packages[slices.IndexFunc(packages, func(p string) bool { return strings.HasPrefix(filepath.Base(p), "fairlease_") })]
	s.do("mkdir new")
	if err := os.WriteFile(filepath.Join(s.Home("root"), "new", "fairlease_"+newer+".deb"), next, 0o644); err != nil {
		s.t.Fatal(err)
	}
	put(s.t, old, filepath.Join(s.Home("root"), "old", "fairlease_OLD.deb"))
	was := s.do("fairlease version")
	s.do("mkdir -p /run/systemd/system; echo 'APT::Get::Assume-Yes \"true\";' >/etc/apt/apt.conf.d/90yes") // the package restarts what runs; apt asks before it goes back
	for i, step := range steps[1:] {
		s.do("cd " + []string{"new", "old"}[i] + "\n" + step)
		if got := s.do("fairlease version"); (i == 0) != strings.Contains(got, newer) || i == 1 && got != was {
			s.t.Errorf("step %d: the version is %s, was %s", i, got, was)
		}
		// A daemon that has just started waits for the lead.
		s.until("a daemon that leads", "runuser -u fairlease -- fairlease status || true", "leads since")
		s.until("a page that shows it", "fairlease status --server http://127.0.0.1:9964 || true", "leads since")
		s.until("nothing to repair", "runuser -u fairlease -- fairlease doctor || true", "0 to repair")
		for _, unit := range []string{"fairlease", "fairlease-web"} { // a process of a program that was replaced
			if run := s.do("readlink /proc/$(cat /run/units/" + unit + ")/exe"); strings.Contains(run, "deleted") {
				s.t.Errorf("step %d: %s still runs the version before", i, unit)
			}
		}
	}
	s.do("rmdir /run/systemd/system")
}
