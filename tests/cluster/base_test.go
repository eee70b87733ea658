package testcluster

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPrune: half-made trees and those of older recipes go, unless somebody stands on them.
func TestPrune(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"forky-new", "forky-old", "forky-used", ".building-forky-1", "trixie-old"} {
		if err := os.MkdirAll(filepath.Join(home, name, "tree"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	used, err := lockFile(t.Context(), filepath.Join(home, "forky-used"), syscall.LOCK_SH, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	pruneBases(home, "forky", "forky-new")
	left, err := os.ReadDir(home)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range left {
		names = append(names, entry.Name())
	}
	if got := strings.Join(names, " "); got != "forky-new forky-used trixie-old" {
		t.Errorf("left: %s", got)
	}
}

func TestBaseError(t *testing.T) {
	for out, want := range map[string]string{
		"E: Unable to locate package slurmctld":                                          "the mirror has no package slurmctld",
		"E: Package 'slurmrestd' has no installation candidate":                          "the mirror has no package slurmrestd",
		"Err:1 http://deb.example.org\n  Could not resolve 'deb.example.org'\nE: failed": "the mirror does not answer (Could not resolve 'deb.example.org')",
		"E: something else\n": "E: something else",
	} {
		if err := baseError("forky", out, errors.New("exit status 25")); !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", out, err)
		}
	}
}

func TestParseJob(t *testing.T) {
	job := parseJob("JobId=7 JobName=a=b JobState=RUNNING Reason=None Comment=one two JobState=LATER")
	for key, want := range map[string]string{"JobId": "7", "JobName": "a=b", "JobState": "RUNNING", "Comment": "one"} {
		if job[key] != want {
			t.Errorf("%s is %q, not %q", key, job[key], want)
		}
	}
}
