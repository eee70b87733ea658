package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine"
)

// fragile starts a daemon whose engine panics when broken says so.
func fragile(t *testing.T, on *shared, live *live, dir string, broken func(*cluster.Snapshot) bool) *rig {
	t.Helper()
	r := &rig{log: &lines{}, desk: &desk{shared: on, name: "a"}, hangup: make(chan os.Signal, 1), dir: dir, ended: make(chan error, 1)}
	decide := new(engine.Decider).Decide
	r.Daemon = &Daemon{Cluster: live, Config: settings(t, dir, short), Hangup: r.hangup, Log: zerolog.New(r.log), Divide: engine.Divide,
		Decide: func(s cluster.Snapshot) cluster.Plan {
			if broken(&s) {
				panic("the engine is off its head")
			}
			return decide(s)
		},
		Audit:   func(cluster.Snapshot) (cluster.Audit, bool) { panic("the audit is off its head") },
		Connect: func(context.Context) (Store, error) { return r.desk, on.gone },
		Reload:  func() (*config.Config, error) { return nil, fmt.Errorf("there is nothing to reload") }}
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = cancel
	go func() { r.ended <- r.Serve(ctx) }()
	return r
}

// An engine that panics on one user's job costs that job its lease, and other jobs nothing:
// rounds continue, and the snapshot is kept for replay.
func TestAnEngineThatBreaksDownOverAJob(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		live := newLive()
		bad := live.submit("nlp", 1, 4)[0]
		live.submit("vision", 3, 4)
		r := fragile(t, newShared(), live, dir, func(s *cluster.Snapshot) bool {
			for i := range s.Cases {
				if c := &s.Cases[i]; c.Job.ID == bad && c.Job.Aside == "" {
					return true
				}
			}
			return false
		})
		until(t, "the others are granted their leases", func() bool { return live.verbs(cluster.Grant) >= 2 })
		pass(30 * time.Second)
		r.end(t)
		if n := len(r.log.with("round failed")); n != 0 {
			t.Errorf("%d rounds failed", n)
		}
		if n := len(r.log.with("the engine broke down; ")); n != 1 {
			t.Errorf("%d lines about it", n)
		}
		aside := 0
		for _, line := range r.log.with("is set aside") {
			if line["event"] == "aside" && line["job"] == bad.String() {
				aside++
			}
		}
		if aside != 1 {
			t.Errorf("%d events about the job", aside)
		}
		text, err := ReadKept(filepath.Join(dir, "broken-1.json.gz"))
		var s cluster.Snapshot
		if err != nil || json.Unmarshal(text, &s) != nil || len(s.Cases) != 4 || s.Cases[0].Job.Aside != "" {
			t.Errorf("kept are %d jobs: %v", len(s.Cases), err)
		}
	})
}

// While the engine panics on every job, nothing is done, not even in part: gates expire, no new
// ones are set at submission, running jobs continue. Rounds resume when they can. The daemon does
// not end.
func TestAnEngineThatBreaksDown(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		live := newLive()
		live.submit("nlp", 4, 4)
		var mad atomic.Bool
		r := fragile(t, newShared(), live, dir, func(*cluster.Snapshot) bool { return mad.Load() })
		until(t, "jobs are granted and gated", func() bool { return live.verbs(cluster.Grant) >= 2 && live.verbs(cluster.Gate) > 0 })
		pass(2 * time.Second)
		mad.Store(true)
		live.submit("vision", 1, 4) // news
		until(t, "it has broken down", func() bool { return len(r.log.with("round failed")) > 0 })
		if _, there := r.heartbeat("gpu"); there {
			t.Error("jobs are still gated at submission")
		}
		live.mu.Lock()
		did := len(live.applied)
		live.mu.Unlock()
		pass(2 * time.Minute)
		live.mu.Lock()
		if len(live.applied) != did {
			t.Errorf("%d actions without a plan", len(live.applied)-did)
		}
		live.mu.Unlock()
		if kept, _ := filepath.Glob(filepath.Join(dir, "broken-*.json.gz")); len(kept) != 1 {
			t.Errorf("%q are kept of the same trouble", kept)
		}
		mad.Store(false)
		until(t, "rounds succeed again", func() bool { return len(r.log.with("rounds succeed again")) == 1 })
		until(t, "jobs are gated again", func() bool { _, there := r.heartbeat("gpu"); return there })
		r.end(t)
	})
}

// An audit that panics is logged, and stops nothing.
func TestAnAuditThatBreaksDown(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		live := newLive()
		live.submit("nlp", 1, 1)
		r := fragile(t, newShared(), live, dir, func(*cluster.Snapshot) bool { return false })
		until(t, "rounds are made", func() bool { return live.rounds() > 3 })
		r.service.gate.enter()
		if x := r.service.rounds; !r.service.audits.audit(t.Context(), x.candidate.lead, cluster.Snapshot{Round: 3}, x.keep) {
			t.Error("it is tried again on the same day")
		}
		r.service.gate.leave()
		r.end(t)
		if lines := r.log.with("the engine broke down; "); len(lines) != 1 || lines[0]["error"] != "the audit is off its head" {
			t.Errorf("%v", lines)
		}
	})
}

// Only the newest snapshots are kept.
func TestSnapshotsThatAreKept(t *testing.T) {
	dir := t.TempDir()
	for _, round := range []int64{8, 9, 10, 11, 100} {
		if _, err := KeepSnapshot(dir, cluster.Snapshot{Round: round}); err != nil {
			t.Fatal(err)
		}
	}
	kept, _ := filepath.Glob(filepath.Join(dir, "*"))
	if got := strings.ReplaceAll(strings.Join(kept, " "), dir+"/", ""); got != "broken-10.json.gz broken-100.json.gz broken-11.json.gz" {
		t.Errorf("kept are %s", got)
	}
	if _, err := ReadKept(filepath.Join(dir, "none.gz")); err == nil {
		t.Error("a file that is not there was read")
	}
	if err := os.WriteFile(filepath.Join(dir, "other.gz"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKept(filepath.Join(dir, "other.gz")); err == nil || !strings.Contains(err.Error(), "no snapshot that fairlease kept") {
		t.Errorf("another file: %v", err)
	}
}
