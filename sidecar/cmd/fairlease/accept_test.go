package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/show/failure"
)

// A configuration that waits is shown first, and accepted by its digest only: not one that has changed since.
func TestAcceptAndReject(t *testing.T) {
	dir := t.TempDir()
	path, state := filepath.Join(dir, "f.yaml"), filepath.Join(dir, "state.json")
	load := func(text string) *config.Config {
		if err := os.WriteFile(path, []byte(text+"files: {state: "+state+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	was := load("mode: act\npartitions: [gpu]\n")
	now := load("mode: act\npartitions: [other]\n")
	accepted := was.Accept()
	accepted.Waiting = &config.Waiting{Digest: config.Digest(now), Since: time.Now(), Says: "the next round would end the leases of 3 jobs", Keys: config.Changes(was, now)}
	file := now.AcceptedPath()
	if err := daemon.WriteAccepted(file, accepted); err != nil {
		t.Fatal(err)
	}
	answer := func(code int, words string, args ...string) *config.Answer {
		t.Helper()
		r := run(t, time.Time{}, []string{"FAIRLEASE_CONFIG=" + path, "SUDO_USER=ann"}, append([]string{"config"}, args...)...)
		if r.code != code || !strings.Contains(r.out+r.err, words) {
			t.Errorf("%v: exit code %d, want %d and %q\n%s%s", args, r.code, code, words, r.out, r.err)
		}
		return config.ReadAccepted(file).Answer
	}
	digest := config.Digest(now)[:12]
	if a := answer(failure.No, "fairlease config accept "+digest, "accept"); a != nil {
		t.Errorf("without a digest: %+v", a)
	}
	if a := answer(failure.No, "has changed since it was looked at", "accept", config.Digest(was)[:12]); a != nil {
		t.Errorf("the digest of another file: %+v", a)
	}
	if a := answer(failure.No, "has changed since it was looked at", "accept", digest[:4]); a != nil {
		t.Errorf("the beginning of a digest: %+v", a)
	}
	if a := answer(failure.OK, "within seconds", "accept", digest); a == nil || !a.Accept || a.Digest != config.Digest(now) || !strings.Contains(a.By, `SUDO_USER "ann"`) {
		t.Errorf("accepted: %+v", a)
	}
	if a := answer(failure.OK, "rejected", "reject"); a == nil || a.Accept {
		t.Errorf("rejected: %+v", a)
	}
	load("mode: act\npartitions: [other, more]\n")
	if a := answer(failure.No, "has changed since it was looked at", "accept", digest); a == nil || a.Accept {
		t.Errorf("the file has changed: %+v", a)
	}
}
