package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/tests/seeds"
)

// Rounds fall on multiples of the interval, leases are granted, and every round
// that succeeds touches the heartbeat.
func TestRounds(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		pass(300 * time.Millisecond) // the start is between two beats
		on := newLive()
		on.submit("nlp", 4, 4)
		r := start(t, "a", newShared(), on, dir, short)
		pass(time.Minute)
		for _, at := range on.looks[1:] {
			if at.UnixMilli()%1000 != 0 {
				t.Fatalf("a round at %v", at)
			}
		}
		if n := len(on.looks); n != 61 {
			t.Errorf("%d rounds in a minute, one each second and one at the start are due", n)
		}
		if on.verbs(cluster.Grant) < 2 || on.verbs(cluster.Reclaim) == 0 {
			t.Errorf("%d grants, %d reclaims", on.verbs(cluster.Grant), on.verbs(cluster.Reclaim))
		}
		beat, _ := r.heartbeat("gpu")
		if want := fmt.Sprintf("%d\n%d\n60\n", time.Now().Unix(), os.Geteuid()); beat != want {
			t.Errorf("heartbeat %q, want %q", beat, want)
		}
		if len(r.log.with("round")) == 0 || len(r.log.with("grant")) == 0 {
			t.Error("no line about a round or a grant")
		}
		r.end(t)
		if _, there := r.heartbeat("gpu"); there {
			t.Error("the heartbeat is still there")
		}
		if r.desk.now != nil {
			t.Error("the lead was not given up")
		}
	})
}

// In a partition in which Slurm preempts, the submit plugin gates no jobs: there is no heartbeat. The log has a line when that
// begins, and one when it ends.
func TestNoHeartbeatWhereSlurmPreempts(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on := newLive()
		on.submit("nlp", 1, 1)
		r := start(t, "a", newShared(), on, dir, short)
		beats := func() bool { _, there := r.heartbeat("gpu"); return there }
		tier := func(n int) { on.mu.Lock(); on.tier = n; on.mu.Unlock() }
		until(t, "it has a heartbeat", beats)
		tier(5)
		until(t, "it has none", func() bool { return !beats() })
		pass(30 * time.Second)
		if n := len(r.log.with("partition gpu is only observed: Slurm may requeue its jobs for jobs of partition high")); n != 1 || beats() {
			t.Errorf("%d lines, heartbeat %v", n, beats())
		}
		tier(0)
		until(t, "it has a heartbeat again", beats)
		if n := len(r.log.with("partition gpu is no longer only observed")); n != 1 {
			t.Errorf("%d lines", n)
		}
		r.end(t)
	})
}

// A round that takes too long delays the next ones; two never run at once.
func TestRoundsDoNotOverlap(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on := newLive()
		on.slow = 2500 * time.Millisecond
		on.submit("nlp", 1, 1)
		r := start(t, "a", newShared(), on, dir, short)
		pass(30 * time.Second)
		r.end(t)
		for i := range on.looks[1:] {
			if d := on.looks[i+1].Sub(on.looks[i]); d < on.slow {
				t.Fatalf("a round began %v after the last, which took %v", d, on.slow)
			}
		}
		skipped := 0.0
		for _, line := range r.log.with("round") {
			if n, ok := line["skipped"].(float64); ok {
				skipped += n
			}
		}
		if skipped < 10 {
			t.Errorf("%v skipped beats were counted in 30 s of rounds of 2.5 s", skipped)
		}
	})
}

// While Slurm is away rounds pause with a growing back-off; the error is logged once; then work
// continues.
func TestTrouble(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on := newLive()
		on.submit("nlp", 1, 1)
		r := start(t, "a", newShared(), on, dir, short)
		until(t, "rounds are made", func() bool { return on.rounds() > 3 })
		on.mu.Lock()
		on.away = errors.New("connection refused")
		before := len(on.looks)
		on.mu.Unlock()
		pass(time.Minute)
		on.mu.Lock()
		tries := len(on.looks) - before
		on.away = errors.New("timed out after 10 s")
		on.mu.Unlock()
		pass(time.Minute)
		on.mu.Lock()
		on.away = nil
		before = len(on.looks)
		on.mu.Unlock()
		until(t, "work goes on", func() bool { return on.rounds()-before >= 10 })
		r.end(t)
		if tries < 4 || tries > 12 {
			t.Errorf("%d attempts in the first minute", tries)
		}
		if n := len(r.log.with("round failed")); n != 2 {
			t.Errorf("two troubles gave %d lines", n)
		}
		if n := len(r.log.with("rounds succeed again")); n != 1 {
			t.Errorf("%d lines about the end of the trouble", n)
		}
	})
}

// A change seen in a look is not lost when its round fails afterwards.
func TestChangeSeenInAFailedRound(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on, journal := newLive(), newShared()
		r := start(t, "a", journal, on, dir, short)
		until(t, "rounds are made", func() bool { return on.rounds() > 3 })
		journal.mu.Lock()
		journal.gone = errors.New("PostgreSQL is gone")
		journal.mu.Unlock()
		on.submit("nlp", 3, 4)
		looks := on.rounds()
		until(t, "a round that saw the jobs has failed", func() bool { return on.rounds() > looks && len(r.log.with("round failed")) == 1 })
		journal.mu.Lock()
		journal.gone = nil
		journal.mu.Unlock()
		until(t, "a job is gated", func() bool { return on.verbs(cluster.Gate) > 0 })
		pass(5 * time.Second)
		r.end(t)
		if on.verbs(cluster.Gate) != 1 {
			t.Errorf("%d gates for one job that waits", on.verbs(cluster.Gate))
		}
	})
}

// Of two daemons one acts. When it falls silent the other takes over, and the first stops at
// once, in the middle of acting. While one commits rounds the other writes heartbeats, too: the
// submit plugin may be on its host.
func TestTwoDaemons(t *testing.T) {
	dirA, dirB := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on, journal := newLive(), newShared()
		on.submit("nlp", 4, 4)
		a := start(t, "a", journal, on, dirA, short)
		until(t, "a acts", func() bool { return on.rounds() > 0 })
		other := newLive() // b observes a cluster of its own, so that its rounds are distinguishable
		b := start(t, "b", journal, other, dirB, short)
		pass(20 * time.Second)
		if other.rounds() != 0 || len(b.log.with("waiting: another daemon leads: a")) != 1 {
			t.Error("b acts, or does not say that it waits")
		}
		if beat, _ := b.heartbeat("gpu"); beat != fmt.Sprintf("%d\n%d\n60\n", time.Now().Unix(), os.Geteuid()) {
			t.Errorf("b's heartbeat is %q at %d", beat, time.Now().Unix())
		}
		// a is cut off during a long action.
		acts, stopped := make(chan bool), make(chan bool)
		on.mu.Lock()
		on.before = func(ctx context.Context, _ []cluster.Action) {
			on.mu.Lock()
			on.before = nil
			on.mu.Unlock()
			close(acts)
			<-ctx.Done()
			close(stopped)
		}
		on.mu.Unlock()
		on.submit("vision", 1, 4)
		<-acts
		journal.mu.Lock()
		a.desk.cutOff = true
		journal.mu.Unlock()
		silent := time.Now()
		pass(12 * time.Second)
		if beat, _ := b.heartbeat("gpu"); beat > fmt.Sprintf("%d\n%d\n60\n", silent.Add(8*time.Second).Unix(), os.Geteuid()) {
			t.Errorf("b's heartbeat is %q, though no turn succeeded after %d", beat, silent.Unix())
		}
		<-stopped
		if after := time.Since(silent); after > takeover {
			t.Errorf("a acted for %v after it fell silent", after)
		}
		until(t, "b takes over", func() bool { return other.rounds() > 0 })
		if _, there := a.heartbeat("gpu"); there {
			t.Error("a keeps its heartbeat")
		}
		journal.mu.Lock()
		a.desk.cutOff = false
		journal.mu.Unlock()
		until(t, "a says that it was deposed", func() bool {
			return len(a.log.with("stopped acting")) > 0 && len(a.log.with("waiting: another daemon leads: b")) == 1
		})
		// b resigns: a need not wait for the timeout.
		b.end(t)
		left := time.Now()
		until(t, "a leads again", func() bool { return len(a.log.with("leadership acquired")) >= 2 })
		if after := time.Since(left); after > 2*time.Second {
			t.Errorf("a led again after %v", after)
		}
		a.end(t)
	})
}

// A standby looks at the leader every few seconds, however long rounds are apart: it leads within 20 s of the last sign of life.
// It writes no heartbeat before it has seen a round of the leader's come.
func TestAStandbyOfLongRounds(t *testing.T) {
	dirA, dirB := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		const long = "mode: act\ninterval: 1m\n"
		journal := newShared()
		a := start(t, "a", journal, newLive(), dirA, long)
		until(t, "a leads", func() bool { return len(a.log.with("leadership acquired")) == 1 })
		pass(6 * time.Second)
		b := start(t, "b", journal, newLive(), dirB, long)
		pass(10 * time.Second)
		if _, there := b.heartbeat("gpu"); there {
			t.Error("b writes a heartbeat, though it knows of no new round")
		}
		pass(2 * time.Minute)
		if _, there := b.heartbeat("gpu"); !there {
			t.Error("b relays no heartbeat, though the leader is only quiet")
		}
		journal.mu.Lock()
		if now := time.Now(); len(journal.attends) != 2 || journal.attends["a"].Before(now) || journal.attends["b"].Before(now) {
			t.Errorf("at %v the journal knows of %v", now, journal.attends)
		}
		a.desk.cutOff = true
		journal.mu.Unlock()
		pass(21 * time.Second)
		if n := len(b.log.with("leadership acquired")); n == 0 || len(a.log.with("leadership acquired")) > 1 {
			t.Error("b does not lead")
		}
		b.end(t)
		if _, there := journal.attends["b"]; there {
			t.Error("b has ended, and the journal does not know that")
		}
		a.end(t)
	})
}

// A journal that gets younger under the daemon, since a dump was restored, is an error in the log and an event, once, and begins a new
// term. Jobs that were granted since the dump run on, each once. A process that starts later sees it from its state file.
func TestARestoredDump(t *testing.T) {
	for _, under := range []string{"the daemon", "a stopped daemon"} {
		t.Run(under, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				on, journal := newLive(), newShared()
				on.submit("nlp", 3, 2)
				r := start(t, "a", journal, on, dir, short)
				leases := func() int {
					journal.mu.Lock()
					defer journal.mu.Unlock()
					m, _ := journal.memory.Open(t.Context())
					return len(m.Leases)
				}
				until(t, "jobs run", func() bool { return leases() == 3 })
				journal.mu.Lock()
				dump, rounds := *journal.memory, journal.turns
				journal.mu.Unlock()
				on.submit("nlp", 1, 1)
				until(t, "another job runs", func() bool { return leases() == 4 })
				on.submit("nlp", 1, 4) // it waits behind a gate
				pass(15 * time.Second)
				if under != "the daemon" {
					r.end(t)
				}
				journal.mu.Lock()
				*journal.memory = dump
				term, told := journal.terms, on.verbs(cluster.Notify)
				if journal.turns <= rounds {
					t.Error("no turns since the dump")
				}
				if under != "the daemon" {
					journal.terms = 0 // the dump knows none
				}
				journal.mu.Unlock()
				if under != "the daemon" {
					r = start(t, "b", journal, on, dir, short)
				}
				on.submit("nlp", 1, 1)
				until(t, "it says so", func() bool { return len(r.log.with("the journal got younger: a dump was restored")) == 1 })
				pass(2 * time.Second)
				if n := on.verbs(cluster.Reclaim); n > told {
					t.Errorf("%d jobs were requeued, %d had notice before", n, told)
				}
				if n := leases(); n < 5 || n > 6 { // the sixth is the waiting job's, whose turn comes
					t.Errorf("%d leases of six jobs", n)
				}
				pass(time.Minute)
				var events int
				for _, line := range r.log.with("the journal got younger: its newest round was") {
					if line["event"] == "journal_restored" {
						events++
					}
				}
				if events != 1 || len(r.log.with("the journal got younger: a dump was restored")) != 1 {
					t.Errorf("%d events\n%s", events, r.log.b.String())
				}
				if journal.terms != term+1 {
					t.Errorf("term %d follows term %d", journal.terms, term)
				}
				r.end(t)
			})
		})
	}
}

// A valid new configuration is applied at once, an invalid one is not, and keys that need a
// restart are named.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on := newLive()
		on.submit("nlp", 4, 4)
		r := start(t, "a", newShared(), on, dir, short)
		until(t, "a heartbeat is there", func() bool { _, there := r.heartbeat("gpu"); return there })
		reload := func(c *config.Config, err error) {
			said := len(r.log.with("taken over"))
			r.service.read = func() (*config.Config, error) { return c, err }
			r.hangup <- syscall.SIGHUP
			until(t, "it says what becomes of the new configuration", func() bool { return len(r.log.with("taken over")) > said })
		}
		reload(nil, config.Problems{{Place: "f.yaml:1", Text: "is wrong"}, {Place: "f.yaml:2", Text: "is wrong too"}})
		if n := len(r.log.with("not taken over")); n != 2 {
			t.Errorf("%d lines about two problems", n)
		}
		if _, there := r.heartbeat("gpu"); !there {
			t.Error("a bad configuration stopped the daemon")
		}
		// The kill switch stops all actions within one round.
		on.mu.Lock()
		applied := len(on.applied)
		on.mu.Unlock()
		quiet := settings(t, dir, "mode: observe\ninterval: 5s\nslurm: {timeout: 5s}\n")
		reload(quiet, nil)
		until(t, "no heartbeat is kept, since nothing is acted on", func() bool { _, there := r.heartbeat("gpu"); return !there })
		if d := cmp.Diff([]any{"slurm.timeout"}, r.log.with("need a restart")[0]["keys"]); d != "" {
			t.Error(d)
		}
		n := on.rounds()
		pass(time.Minute)
		if got := on.rounds() - n; got != 12 {
			t.Errorf("%d rounds a minute, 12 are configured", got)
		}
		on.mu.Lock()
		if len(on.applied) != applied {
			t.Errorf("acts though it observes: %v", on.applied[applied:])
		}
		on.mu.Unlock()
		r.end(t)
	})
}

// Rounds have the settings of the schedule in force, from its begin to its end.
func TestSchedule(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		pass(24*time.Hour - time.Duration(time.Now().UnixNano())%(24*time.Hour)) // to midnight
		on := newLive()
		on.submit("nlp", 3, 4)
		r := start(t, "a", newShared(), on, dir, "mode: act\ninterval: 1m\nschedules: [{name: night, at: 0 20 * * *, for: 12h, zone: UTC, set: {lease: {term: 1h}}}]\n")
		for _, x := range []struct {
			after time.Duration
			name  string
			term  cluster.Span
		}{{19*time.Hour + 58*time.Minute, "", 15 * cluster.Minute}, {3 * time.Minute, "night", cluster.Hour}, {11*time.Hour + 57*time.Minute, "night", cluster.Hour}, {3 * time.Minute, "", 15 * cluster.Minute}} {
			pass(x.after)
			s := r.service.rounds.last.Settings
			name := ""
			if s.Schedule != nil {
				name = s.Schedule.Name
			}
			if name != x.name || s.Term != x.term {
				t.Errorf("at %s the schedule is %q and the term %s, want %q and %s", time.Now().UTC().Format(time.TimeOnly), name, s.Term, x.name, x.term)
			}
		}
		r.end(t)
	})
}

// A stop lets the current round finish and carry out its decisions.
func TestStopFinishesTheRound(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on := newLive()
		on.submit("nlp", 3, 4)
		acting := make(chan bool)
		on.before = func(ctx context.Context, _ []cluster.Action) {
			close(acting)
			time.Sleep(8 * time.Second)
			if ctx.Err() != nil {
				t.Error("the round was cut short")
			}
		}
		r := start(t, "a", newShared(), on, dir, short)
		<-acting
		r.end(t)
		if on.verbs(cluster.Gate) != 1 {
			t.Errorf("%d gates for one job that waits", on.verbs(cluster.Gate))
		}
		if len(r.log.with("stopped")) != 1 {
			t.Error("does not say that it stopped")
		}
	})
}

// A job's original settings are written before the job is changed.
func TestStateIsThereBeforeActions(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on := newLive()
		ids := on.submit("nlp", 3, 4)
		on.before = func(_ context.Context, actions []cluster.Action) {
			s, err := ReadState(filepath.Join(dir, "state.json"))
			if err != nil {
				t.Error(err)
			}
			known := map[cluster.JobID]bool{}
			for _, j := range s.Jobs {
				known[j.ID] = true
			}
			for _, a := range actions {
				if a.ID != (cluster.JobID{}) && a.Verb != cluster.Notify && !known[a.ID] {
					t.Errorf("%s of %v without a line in the state file", a.Verb, a.ID)
				}
			}
		}
		r := start(t, "a", newShared(), on, dir, short)
		pass(30 * time.Second)
		on.mu.Lock()
		for _, id := range ids {
			on.v.Cancel(id)
		}
		on.mu.Unlock()
		until(t, "the state file has no job, since all are over", func() bool {
			s, err := ReadState(filepath.Join(dir, "state.json"))
			return err == nil && len(s.Jobs) == 0
		})
		r.end(t)
	})
}

// If the journal or the state file cannot be written, nothing is done.
func TestNoStateNoAction(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "state.json"), []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		on := newLive()
		on.submit("nlp", 3, 4)
		r := start(t, "a", newShared(), on, dir, short)
		pass(30 * time.Second)
		r.end(t)
		if len(on.applied) != 0 {
			t.Error("acts without writing down what jobs had")
		}
		if len(r.log.with("round failed")) != 1 {
			t.Error("does not say why")
		}
	})
}

func TestSchemaEndsTheDaemon(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		journal := newShared()
		journal.gone = fmt.Errorf("%w: run `fairlease migrate`", ErrSchema)
		r := start(t, "a", journal, newLive(), dir, short)
		if err := <-r.ended; !errors.Is(err, ErrSchema) {
			t.Error(err)
		}
	})
}

func TestPruning(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, "a", newShared(), newLive(), dir, "interval: 10s\n")
		pass(3*time.Hour + time.Minute)
		r.end(t)
		if r.desk.pruned != 3 {
			t.Errorf("pruned %d times in 3 hours", r.desk.pruned)
		}
	})
}

// Where a policy divides GPUs every day has an audit, even if the database is away for some
// hours.
func TestAudits(t *testing.T) {
	seeds.Slow(t)
	for preset, want := range map[string]int{"astraea": 0, "gandiva-fair": 2} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			pass(24*time.Hour - time.Duration(time.Now().UnixNano())%(24*time.Hour)) // to midnight
			on, journal := newLive(), newShared()
			gone := func(err error) {
				journal.mu.Lock()
				defer journal.mu.Unlock()
				journal.gone = err
			}
			on.submit("nlp", 3, 4)
			r := start(t, "a", journal, on, dir, "mode: act\ninterval: 1m\npreset: "+preset+"\n")
			pass(23*time.Hour + 30*time.Minute)
			gone(errors.New("PostgreSQL is gone"))
			on.submit("nlp", 3, 4)
			pass(3 * time.Hour)
			gone(nil)
			pass(3 * time.Hour)
			r.end(t)
			if len(journal.audits) != want || len(r.log.with("division audited")) != want {
				t.Fatalf("%s: %d audits in two days", preset, len(journal.audits))
			}
			for i, a := range journal.audits {
				if day := a.At.Time().Day() - journal.audits[0].At.Time().Day(); a.Policy != preset || len(a.Tenants) != 1 || day != i {
					t.Errorf("%s: audit %d is %+v", preset, i, a)
				}
			}
		})
	}
}

// Beats fall on multiples of any interval, and so on every boundary of terms that the interval
// divides.
func TestBeat(t *testing.T) {
	for _, interval := range []time.Duration{time.Second, 7 * time.Second, 10 * time.Second, 90 * time.Second} {
		at := time.Date(2026, 3, 1, 12, 0, 0, 1, time.UTC)
		for range 50 {
			next := beat(interval).Next(at)
			if next.UnixNano()%int64(interval) != 0 || !next.After(at) || next.Sub(at) > interval {
				t.Fatalf("interval %v: after %v comes %v", interval, at, next)
			}
			at = next
		}
	}
}

func TestOnce(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on, journal := newLive(), newShared()
		on.submit("nlp", 3, 4)
		d := &Daemon{Cluster: on, Decide: nil, Config: settings(t, dir, short),
			Connect: func(context.Context) (Store, error) { return &desk{shared: journal, name: "hand"}, nil }}
		r := start(t, "a", journal, newLive(), t.TempDir(), short)
		until(t, "a daemon leads", func() bool { return len(r.log.with("leadership acquired")) > 0 })
		if _, err := d.Once(t.Context()); !errors.Is(err, ErrTaken) {
			t.Errorf("a round by hand beside a leading daemon: %v", err)
		}
		d.Decide = r.Decide
		r.end(t)
		report, err := d.Once(t.Context())
		if err != nil || len(report.Outcomes) != 1 || !report.Outcomes[0].OK {
			t.Errorf("%v %+v", err, report.Outcomes)
		}
		if journal.now != nil {
			t.Error("the lead was not given up")
		}
		synctest.Wait()
	})
}

// A policy that panics, or never answers, stops nothing: rounds use weighted shares, and one log
// line says so.
func TestAPolicyThatFails(t *testing.T) {
	for name, x := range map[string]struct {
		divide func(cluster.AllocationRequest) cluster.Allocation
		matter string
		says   string
	}{
		"breaks down": {func(cluster.AllocationRequest) cluster.Allocation { panic("no such pivot") }, "the policy or a scheduler failed", "no such pivot"},
		"hangs": {func(cluster.AllocationRequest) cluster.Allocation {
			time.Sleep(24 * time.Hour)
			return cluster.Allocation{}
		}, "division", "has not answered for more than 10 s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, on := newLive(), newShared()
				c.submit("nlp", 4, 1)
				c.submit("vision", 4, 1)
				r := start(t, "one", on, c, t.TempDir(), short+"preset: gandiva-fair\n")
				pass(100 * time.Millisecond)
				r.service.gate.enter()
				r.service.rounds.divide, r.service.rounds.loop = x.divide, nil
				r.service.gate.leave()
				pass(5 * time.Minute)
				c.submit("nlp", 1, 1) // another question
				pass(5 * time.Minute)
				if n := c.rounds(); n < 500 {
					t.Errorf("%d looks in ten minutes of a round a second", n)
				}
				if n := c.verbs(cluster.Grant); n < 8 {
					t.Errorf("%d grants, for eight jobs that fit", n)
				}
				said := r.log.with(x.matter)
				if len(said) != 1 || !strings.Contains(fmt.Sprint(said[0]["error"]), x.says) {
					t.Errorf("it is said: %v", said)
				}
				r.end(t)
				time.Sleep(24 * time.Hour) // the bubble's goroutines end; the daemon did not wait for them
			})
		})
	}
}
