package daemon

import (
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
)

// A tripped breaker stops the heartbeats of the leader and of a standby. It stays open for a daemon that takes over and after a reload, until an
// operator resumes.
func TestBreaker(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on, books := newLive(), newShared()
		on.v.Refuse = func(*cluster.Job) string { return "Prolog" }
		text := "mode: act\ninterval: 5s\nbreaker: {failed_starts: 1}\n"
		r := start(t, "a", books, on, dir, text)
		defer func() { r.stop() }()
		until(t, "it leads", func() bool { _, ok := r.heartbeat("gpu"); return ok })
		ids := append(on.submit("nlp", 1, 4), on.submit("vision", 1, 4)...)
		pass(3 * time.Minute)
		if len(r.log.with("fairlease only observes from now on: the starts of 2 jobs failed within an hour")) == 0 {
			t.Fatal("it has not tripped")
		}
		if _, ok := r.heartbeat("gpu"); ok {
			t.Error("jobs are still gated at submission")
		}
		on.mu.Lock()
		on.v.Refuse = nil
		on.v.Reconsider()
		on.mu.Unlock()
		pass(15 * time.Minute)
		seen, err := on.Observe(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if !slices.ContainsFunc(seen.Jobs, func(j cluster.Job) bool { return j.ID == id && j.State == cluster.Running }) {
				t.Errorf("job %s is held", id)
			}
		}
		grants := on.verbs(cluster.Grant)
		r.end(t)
		r = start(t, "b", books, on, dir, text)
		pass(time.Minute)
		next := settings(t, dir, "mode: act\ninterval: 5s\nbreaker: {failed_starts: off}\nconfig: {accept_above: 0}\n")
		r.service.read = func() (*config.Config, error) { return next, nil }
		r.hangup <- syscall.SIGHUP
		pass(time.Minute)
		on.submit("nlp", 2, 4)
		pass(time.Hour)
		if _, ok := r.heartbeat("gpu"); ok || on.verbs(cluster.Grant) != grants {
			t.Errorf("another leader, or a reload, ended it: %d grants", on.verbs(cluster.Grant)-grants)
		}
		state, err := books.memory.Open(t.Context())
		if err != nil || state.Breaker.Trip == nil {
			t.Fatalf("the journal has no trip: %v", err)
		}
		books.mu.Lock()
		books.resumed = cluster.GoAhead{Round: state.Breaker.Trip.Round, By: "ann", Why: "mended"}
		books.mu.Unlock()
		pass(11 * time.Second)
		if _, ok := r.heartbeat("gpu"); !ok || len(r.log.with("fairlease acts again: ann resumed (mended)")) == 0 {
			t.Error("it does not act two rounds after an operator resumed")
		}
		r.end(t)
	})
}

// The daemon measures how long its looks at Slurm take: it trips by those of a quarter of an hour, and not by those of ten minutes.
func TestSlowLooksTrip(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on := newLive()
		r := start(t, "a", newShared(), on, dir, "mode: act\ninterval: 5s\nbreaker: {latency: 2s}\n")
		defer func() { r.stop() }()
		slow := func(d, until time.Duration) {
			on.mu.Lock()
			on.slow = d
			on.mu.Unlock()
			for ; until > 0; until -= time.Minute { // a round in which nothing changes is not decided
				on.submit("nlp", 1, 1)
				pass(time.Minute)
			}
		}
		trips := func() int { return len(r.log.with("fairlease only observes from now on")) }
		slow(0, 5*time.Minute)
		slow(3*time.Second, 9*time.Minute)
		slow(0, 20*time.Minute)
		if trips() > 0 {
			t.Fatal("slow looks of nine minutes trip it")
		}
		slow(3*time.Second, 21*time.Minute)
		if trips() == 0 {
			t.Error("slow looks of 21 minutes do not trip it")
		}
		r.end(t)
	})
}
