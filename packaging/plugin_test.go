// Package packaging_test tests scripts of this folder.
package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Where a header is missing, the script that builds the plugins' package names the package to install, and no compiler's error.
func TestMissingHeaders(t *testing.T) {
	for header, want := range map[string]string{"stdio.h": "install libc6-dev (Debian, Ubuntu) or glibc-devel", "slurm/slurm.h": "install libslurm-dev (Debian, Ubuntu) or slurm-devel",
		"slurm/spank.h": "install libslurm-dev (Debian, Ubuntu) or slurm-devel"} {
		dir := t.TempDir()
		gcc := "#!/bin/sh\ncase $(cat) in *'<" + header + ">'*) echo 'fatal error: no such file' >&2; exit 1 ;; esac\n"
		if err := os.WriteFile(filepath.Join(dir, "gcc"), []byte(gcc), 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("./slurm-plugin")
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "VERSION=0.0.0", "SOURCE_DATE_EPOCH=0")
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), header) || !strings.Contains(string(out), want) || strings.Contains(string(out), "fatal error") {
			t.Errorf("without %s: %v\n%s", header, err, out)
		}
	}
}
