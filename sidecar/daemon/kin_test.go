package daemon

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Jobs tell whether Slurm is the journal's cluster: those that both have, and those that the journal should have.
func TestMeet(t *testing.T) {
	t.Parallel()
	const at = cluster.Instant(cluster.Day)
	job := func(id int64, user string, submit cluster.Instant, state cluster.JobState, restarts int) cluster.Job {
		return cluster.Job{ID: cluster.JobID{ID: id}, User: user, Submit: submit, State: state, Restarts: restarts}
	}
	records := []cluster.Record{{ID: cluster.JobID{ID: 1}, User: "ann", Submit: 1000}, {ID: cluster.JobID{ID: 2}, User: "bob", Submit: 2000}}
	for _, c := range []struct {
		what           string
		job            cluster.Job
		known, strange int
	}{
		{"in both", job(1, "ann", 1000, cluster.Running, 0), 1, 0},
		{"in both, and done", job(2, "bob", 2000, cluster.Done, 0), 1, 0},
		{"the number of another job", job(1, "ann", 3000, cluster.Running, 0), 0, 1},
		{"the number of another user's job", job(1, "bob", 1000, cluster.Waiting, 0), 0, 1},
		{"requeued since", job(1, "ann", 3000, cluster.Waiting, 1), 0, 0},
		{"done, and forgotten", job(7, "ann", 3000, cluster.Done, 0), 0, 0},
		{"just before the round", job(7, "ann", at-1000, cluster.Waiting, 0), 0, 0},
		{"after the round", job(7, "ann", at+1000, cluster.Waiting, 0), 0, 0},
	} {
		known, strange := meet(&cluster.Observation{Jobs: []cluster.Job{c.job}}, records, at)
		if known != c.known || strange != c.strange {
			t.Errorf("%s: %d known and %d strange, want %d and %d", c.what, known, strange, c.known, c.strange)
		}
	}
}

// A standby that is on another cluster of the same name has no effect: no heartbeat, and no lead when the leader dies. On the
// journal's cluster it relays heartbeats as soon as a job tells, and leads.
func TestAStandbyKnowsItsCluster(t *testing.T) {
	for _, c := range []struct {
		name          string
		jobs          int
		same          bool
		relays, leads bool
		says, saysNot string
	}{
		{"the journal's", 3, true, true, true, "leadership acquired", ErrStranger.Error()},
		{"another one", 3, false, false, false, "round failed; nothing is changed until one succeeds", "no heartbeat is relayed yet"},
		{"empty", 0, false, false, true, "no heartbeat is relayed yet", ErrStranger.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			dirA, dirB := t.TempDir(), t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				on, journal := newLive(), newShared()
				its := on
				if !c.same {
					its = newLive()
					pass(1500 * time.Millisecond)
					its.submit("vision", c.jobs, 1)
				}
				pass(3 * time.Second)
				on.submit("nlp", 4, 1)
				a := start(t, "a", journal, on, dirA, short)
				pass(5 * time.Minute)
				b := startBeside(t, "b", journal, its, dirB, short)
				pass(time.Minute)
				if _, there := b.heartbeat("gpu"); there != c.relays {
					t.Errorf("a heartbeat: %v", there)
				}
				journal.mu.Lock()
				a.desk.cutOff = true
				journal.mu.Unlock()
				applied := its.verbs(cluster.Gate) + its.verbs(cluster.Grant)
				pass(2 * time.Minute)
				if leads := len(b.log.with("leadership acquired")) > 0 && journal.now != nil && journal.now.name == "b"; leads != c.leads {
					t.Errorf("b leads: %v", leads)
				}
				if n := its.verbs(cluster.Gate) + its.verbs(cluster.Grant); !c.leads && n != applied {
					t.Errorf("%d changes of another cluster", n-applied)
				}
				if len(b.log.with(c.says)) == 0 || len(b.log.with(c.saysNot)) > 0 {
					t.Errorf("it says\n%s", b.log.b.String())
				}
				b.end(t)
				a.end(t)
			})
		})
	}
}

// A daemon of another cluster that found nobody leading gives the lead up at its first look, before it changes anything.
func TestALeaderOfAnotherCluster(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on, journal := newLive(), newShared()
		other := newLive()
		other.submit("vision", 4, 1)
		pass(3 * time.Second)
		on.submit("nlp", 4, 1)
		a := start(t, "a", journal, on, dir, short)
		pass(5 * time.Minute)
		a.end(t)
		b := startBeside(t, "b", journal, other, dir, short)
		pass(5 * time.Minute)
		if journal.now != nil || len(other.applied) > 0 {
			t.Errorf("it leads, or has changed the other cluster %d times", len(other.applied))
		}
		if n := len(b.log.with("leadership acquired")); n != 1 {
			t.Errorf("it took the lead %d times", n)
		}
		b.end(t)
		c := start(t, "c", journal, on, dir, short)
		until(t, "the right one leads", func() bool { return len(c.log.with("leadership acquired")) == 1 })
		c.end(t)
	})
}
