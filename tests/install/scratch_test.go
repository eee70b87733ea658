package install_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

func TestScratch(t *testing.T) {
	root, packages := built(t)
	page := blocks(t, filepath.Join(root, "docs", "install.md"))
	s := &site{testcluster.ForTest(t, options("trixie")), t}
	for _, p := range packages {
		put(t, p, filepath.Join(s.Home("root"), filepath.Base(p)))
	}
	put(t, "systemctl", filepath.Join(s.Home("root"), "systemctl"))
	s.do("install -m 0755 systemctl /usr/local/bin/systemctl")
	for _, step := range page {
		s.do(step)
	}
	s.do("apt-get install ./python3-fairlease_*.deb")
	for {
		script, err := os.ReadFile("/tmp/scratch/do")
		if err == nil {
			os.Remove("/tmp/scratch/do")
			if string(script) == "quit\n" {
				return
			}
			out, err := s.try(string(script))
			if err != nil {
				out += "\n" + err.Error()
			}
			os.WriteFile("/tmp/scratch/out.new", []byte(out), 0o644)
			os.Rename("/tmp/scratch/out.new", "/tmp/scratch/out")
		}
		time.Sleep(200 * time.Millisecond)
	}
}
