package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A program of the site orders the jobs of its virtual cluster, the youngest first; while it fails the built-in order decides.
// All rounds are decided again as they were, without the program.
func TestASchedulerOfTheSite(t *testing.T) {
	onOne(t, "forky", fourNodes, schedulerOfTheSite)
}

func schedulerOfTheSite(t *testing.T, r *rig) {
	program := filepath.Join(t.TempDir(), "order")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(program+".new", []byte("#!/usr/bin/env python3\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(program+".new", program); err != nil {
			t.Fatal(err)
		}
	}
	write(`import json, sys
view = json.load(sys.stdin)
print(json.dumps({"order": sorted((job["job"] for job in view["jobs"]), reverse=True)}))
`)
	s := r.withCells(2, strings.Replace(nodeCells, "vc: nlp,", "vc: nlp, scheduler: "+program+",", 1), 1, 3)
	status := func(want string) {
		t.Helper()
		s.until("the status says "+want, time.Minute, func() bool {
			out, err := s.fairlease(s.config, "status")
			return err == nil && strings.Contains(out, want)
		})
	}
	holder := s.works("alice", 4, "guaranteed")
	status("virtual cluster nlp: its own scheduler orders its jobs since")
	for range 3 { // nothing is left to lend
		s.works("bob", 4, "guaranteed")
	}
	first, second, third := s.work("alice", 4), s.work("alice", 4), s.work("alice", 4)
	s.until("job "+first+" is told who orders", time.Minute, func() bool {
		out, err := s.fairlease(s.config, "explain", first)
		return err == nil && strings.Contains(out, "its virtual cluster's own scheduler orders the jobs of its tenant")
	})
	status("its last answer names 4 jobs")
	s.letGo(holder)
	s.runs(third, "guaranteed")

	write("import sys\nsys.exit('no licence')\n")
	last := s.work("alice", 4)
	status("virtual cluster nlp: the built-in order decides since")
	status("in place of its own scheduler: it ended with exit status 1")
	if text, err := os.ReadFile(logOf(s.config)); err != nil || !strings.Contains(string(text), "no licence") {
		t.Errorf("the log does not have what the program said (%v)", err)
	}
	s.letGo(third)
	s.runs(first, "guaranteed")
	for _, id := range []string{second, last} {
		if is := s.restarts(id); is != "PENDING 0" {
			t.Errorf("job %s is %s", id, is)
		}
	}
	s.goOn()
}
