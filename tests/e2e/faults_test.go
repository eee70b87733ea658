package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// errCrash is the end of a sidecar in the middle of a turn.
var errCrash = errors.New("crash")

// crashing stands between the loop and the world and ends the turn at a point,
// as kill -9 would: nothing after it happens.
type crashing struct {
	loop.Cluster
	loop.Journal
	before, after bool // the commit
	actions       int  // carried out before the crash; < 0 = all
	verb          cluster.Verb
}

func (c *crashing) Commit(ctx context.Context, s cluster.Snapshot, p cluster.Plan) error {
	acts := false
	for _, a := range p.Actions {
		acts = acts || a.Verb == c.verb
	}
	if acts && c.before {
		panic(errCrash)
	}
	if err := c.Journal.Commit(ctx, s, p); err != nil {
		return err
	}
	if acts && c.after {
		panic(errCrash)
	}
	return nil
}

func (c *crashing) Apply(ctx context.Context, actions []cluster.Action) []cluster.Outcome {
	for i, a := range actions {
		if a.Verb == c.verb && c.actions >= 0 {
			c.Cluster.Apply(ctx, actions[:i+c.actions])
			panic(errCrash)
		}
	}
	return c.Cluster.Apply(ctx, actions)
}

// crash makes turns until one crashes.
func (r *rig) crash(c *crashing) {
	r.t.Helper()
	c.Cluster, c.Journal = r.newClient(), r.lead().Journal()
	l := &loop.Loop{Cluster: c, Journal: c, Decide: simtest.Checked(r.t),
		Configure: func() (loop.Rules, cluster.Settings) { return r.rules, r.settings }}
	r.until("the sidecar crashes", time.Minute, func() (crashed bool) {
		defer func() {
			if p := recover(); p != nil {
				if p != errCrash { //nolint:errorlint // the very value
					panic(p)
				}
				crashed = true
			}
		}()
		if _, err := l.Turn(r.ctx()); err != nil {
			r.t.Log(err)
		}
		return false
	})
}

// kill -9 at each step of a round: no job is lost, none is leased twice, none stays
// pinned to a node, and the state is repaired in the next round.
func TestCrashAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		at   crashing
	}{
		{"before the commit of a grant", crashing{verb: cluster.Grant, before: true, actions: -1}},
		{"after the commit of a grant", crashing{verb: cluster.Grant, after: true, actions: -1}},
		{"after one of several grants", crashing{verb: cluster.Grant, actions: 1}},
		{"before the commit of a hand-over", crashing{verb: cluster.Reclaim, before: true, actions: -1}},
		{"after the commit of a hand-over", crashing{verb: cluster.Reclaim, after: true, actions: -1}},
		{"between reservation and grant", crashing{verb: cluster.Reserve, actions: 1}},
		{"between grant and requeue", crashing{verb: cluster.Reclaim, actions: 0}},
		{"between two requeues", crashing{verb: cluster.Reclaim, actions: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := testcluster.Options{Accounts: tenants(1, 1), Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4}}}
			onBothGates(t, o, func(t *testing.T, r *rig) {
				var ids []string
				for range 4 {
					ids = append(ids, r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:2"))
				}
				at := c.at
				if at.verb == cluster.Reclaim || at.verb == cluster.Reserve {
					r.govern()
					r.until("the cluster is full", 30*time.Second, func() bool { return r.holds("nlp") == 8 })
					r.halt()
				}
				for range 2 {
					ids = append(ids, r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:4"))
				}
				r.crash(&at)
				r.govern()
				r.halves(4, 3*r.settings.Term.Duration(), r.holds)
				r.keepsAll(ids)
				r.until("no waiting job is pinned to a node, no reservation is left but the lock", 30*time.Second, func() bool {
					for _, id := range ids {
						j, _ := r.Job(r.ctx(), id)
						if j["JobState"] == "PENDING" && j["ReqNodeList"] != "(null)" {
							return false
						}
					}
					out, _ := r.Exec(r.ctx(), "root", "scontrol", "show", "reservation", "-o")
					return !strings.Contains(strings.ReplaceAll(out, cluster.GateReservation, ""), cluster.ReservationPrefix)
				})
			})
		})
	}
}

// When the sidecar is dead, all gates lapse within their TTL and Slurm runs the jobs.
func TestDeadSidecarFailsOpen(t *testing.T) {
	onBothGates(t, testcluster.Options{Accounts: tenants(1, 1)}, func(t *testing.T, r *rig) {
		r.settings.GateTTL = 20 * cluster.Second
		var ids []string
		for range 10 {
			ids = append(ids, r.submit("alice", sleeps(8), "-A", "nlp", "--gres=gpu:4"))
		}
		r.govern()
		r.until("some run and the others wait behind gates", 30*time.Second, func() bool { return r.holds("nlp") == 16 && r.count(cluster.Gate, "") > 0 })
		r.halt()
		died := time.Now()
		// Four jobs run at a time, for 8 s: the gates, Slurm's next look at the queue
		// (5 s here, plus what a passing begin time may be late), and two rounds of jobs.
		r.until("Slurm has run all jobs", r.settings.GateTTL.Duration()+60*time.Second, func() bool {
			out, _ := r.Exec(r.ctx(), "root", "squeue", "-h")
			return out == ""
		})
		for _, id := range ids {
			if s := r.state(id); s != "COMPLETED" {
				t.Errorf("job %s is %q", id, s)
			}
		}
		t.Logf("without a sidecar all jobs were done after %s (gate TTL %s)", time.Since(died).Round(time.Second), r.settings.GateTTL)
	})
}

// fails waits until a turn fails from now on. One that began before the fault may still go through, and
// one that failed before says nothing of it.
func (r *rig) fails() {
	r.t.Helper()
	r.mu.Lock()
	r.errors = nil
	r.mu.Unlock()
	r.until("turns fail", time.Minute, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.errors) > 0 })
}

// slurmctld restarted, slurmrestd gone: rounds pause, nothing is guessed, work
// goes on afterwards.
func TestSlurmDaemonsComeAndGo(t *testing.T) {
	onBoth(t, testcluster.Options{Accounts: tenants(1, 1)}, func(t *testing.T, r *rig) {
		for range 8 {
			r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:2")
			r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:2")
		}
		r.govern()
		full := func() bool { return r.holds("nlp") == 8 && r.holds("vision") == 8 }
		r.until("both have their half", time.Minute, full)
		for _, fault := range []struct {
			name     string
			out, fix func() error
		}{
			{"slurmrestd gone", func() error { return r.Kill(r.ctx(), testcluster.Slurmrestd) }, func() error { return r.Start(r.ctx(), testcluster.Slurmrestd) }},
			{"slurmctld restarted", func() error { return r.Stop(r.ctx(), testcluster.Slurmctld) }, func() error { return r.Start(r.ctx(), testcluster.Slurmctld) }},
		} {
			if err := fault.out(); err != nil {
				t.Fatal(err)
			}
			r.fails()
			round := r.plan().Round
			time.Sleep(5 * time.Second)
			if now := r.plan().Round; now != round {
				t.Errorf("%s: round %d was decided while Slurm could not be seen (after %d)", fault.name, now, round)
			}
			if err := fault.fix(); err != nil {
				t.Fatal(err)
			}
			r.until(fault.name+": turns go on", time.Minute, func() bool { return r.plan().Round > round })
			r.until(fault.name+": both have their half again", time.Minute, full)
		}
	})
}

// PostgreSQL gone for a while: nothing is done that could not be written down, and
// work goes on afterwards.
func TestPostgresComesAndGoes(t *testing.T) {
	onBoth(t, testcluster.Options{Accounts: tenants(1, 1)}, postgresComesAndGoes)
}

func postgresComesAndGoes(t *testing.T, r *rig) {
	db := testcluster.PostgresForTest(t)
	r.dsn = db.DSN()
	if _, _, err := migrate.Up(r.ctx(), r.dsn, migrate.Schema, func(string) {}); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:4")
	}
	r.govern()
	r.until("nlp uses all GPUs", 40*time.Second, func() bool { return r.holds("nlp") == 16 })
	if err := db.Kill(r.ctx()); err != nil {
		t.Fatal(err)
	}
	r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:4")
	r.fails()
	round, acted := r.plan().Round, r.count(cluster.Reclaim, "")
	time.Sleep(r.settings.Term.Duration()) // over a boundary
	if now := r.plan().Round; now != round || r.count(cluster.Reclaim, "") != acted {
		t.Errorf("round %d was decided, or acted on, without a journal (after %d)", now, round)
	}
	if err := db.Start(r.ctx()); err != nil {
		t.Fatal(err)
	}
	r.until("the late tenant has its GPUs once the journal is back", time.Minute, func() bool { return r.holds("vision") == 4 })
}

// Of two sidecars one acts; when it dies the other takes over, and the deposed one
// can write nothing more.
func TestTwoSidecars(t *testing.T) {
	onBoth(t, testcluster.Options{Accounts: tenants(1, 1)}, twoSidecars)
}

func twoSidecars(t *testing.T, r *rig) {
	s, err := store.Open(r.ctx(), store.Config{DSN: r.dsn, Takeover: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	first := r.lead()
	var taken *store.TakenError
	if _, err := s.Acquire(r.ctx(), "second"); !errors.As(err, &taken) {
		t.Fatalf("the second sidecar took the lead of one that lives: %v", err)
	}
	r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:4")
	stale := &loop.Loop{Cluster: r.newClient(), Journal: first.Journal(), Decide: simtest.Checked(r.t),
		Configure: func() (loop.Rules, cluster.Settings) { return r.rules, r.settings }}
	if _, err := stale.Turn(r.ctx()); err != nil {
		t.Fatal(err)
	}
	// The first falls silent, the second takes over; then the first wakes up.
	r.govern()
	r.until("the second governs", time.Minute, func() bool { return r.holds("nlp") == 4 })
	r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:4")
	if _, err := stale.Turn(r.ctx()); !errors.Is(err, store.ErrDeposed) {
		t.Errorf("the deposed sidecar's turn: %v, want it refused", err)
	}
	r.until("the second goes on", time.Minute, func() bool { return r.holds("vision") == 4 })
}
