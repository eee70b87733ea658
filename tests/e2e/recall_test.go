package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// hears is a job that runs until it is ended, and writes down what it hears: the notice, and
// SIGTERM, at which it saves.
const hears = `#!/bin/bash
cat > hears.sh <<'SH'
exec >> heard
trap 'echo told' USR1
trap 'echo ${SLURM_RESTART_COUNT:-0} > checkpoint; echo saved; exit 0' TERM
echo start $(cat checkpoint 2>/dev/null)
while :; do sleep 0.1; done
SH
srun bash hears.sh
`

// until is a job that ends by itself when there is a file of a name in its user's home.
func until(file string) string {
	return "#!/bin/bash\nuntil [ -e " + file + " ]; do sleep 0.1; done\n"
}

// end lets a job of until("end") end by itself.
func (r *rig) end(user, id string) {
	r.t.Helper()
	file := filepath.Join(r.Home(user), "end")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		r.t.Fatal(err)
	}
	r.waitState(id, 20*time.Second, "COMPLETED")
	if err := os.Remove(file); err != nil {
		r.t.Fatal(err)
	}
}

// recalls sets that leases are recalled, with a notice. Terms that begin from now on are two
// minutes and more, and none is over in the next one and a half.
func (r *rig) recalls(notice cluster.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.settings
	s.MinLease, s.Notice, s.RecallFirst, s.RecallNotice = 8*cluster.Second, 3*cluster.Second, true, notice
	now := cluster.InstantOf(time.Now())
	for s.Term = 2 * cluster.Minute; now%cluster.Instant(s.Term) > cluster.Instant(10*cluster.Second); {
		s.Term += cluster.Second
	}
}

// lease gives the lease that a job has by the last plan; that of no job where it has none.
func (r *rig) lease(id string) cluster.Lease {
	p := r.plan()
	for rec := range p.State.All() {
		for _, l := range p.State.Leases {
			if rec.ID.String() == id && l.Job == rec.Key {
				return l
			}
		}
	}
	return cluster.Lease{}
}

// holdsLong waits until a job runs in a lease that is not over before the test is.
func (r *rig) holdsLong(id string) cluster.Lease {
	r.t.Helper()
	var l cluster.Lease
	r.until("job "+id+" has a lease of a long term", 30*time.Second, func() bool {
		l = r.lease(id)
		return l.State == cluster.Active && l.End.Time().After(time.Now().Add(time.Minute))
	})
	return l
}

// recalled checks that a lease was recalled with a notice, long before its term was over,
// and gives it as it ended.
func (r *rig) recalled(was cluster.Lease, notice cluster.Span) cluster.Lease {
	r.t.Helper()
	var l cluster.Lease
	r.until("a lease has ended", 20*time.Second, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		at := slices.IndexFunc(r.ended, func(l cluster.Lease) bool { return l.Job == was.Job && l.Term == was.Term })
		if at >= 0 {
			l = r.ended[at]
		}
		return at >= 0
	})
	if l.Why != "recalled" || l.End >= was.End.Add(-30*cluster.Second) || l.End.Sub(l.NoticedAt) != notice {
		r.t.Errorf("want a lease until %s recalled long before, with %s notice: %+v", was.End, notice, l)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.ContainsFunc(r.actions, func(a cluster.Action) bool {
		return a.Verb == cluster.Reclaim && a.Job == l.Job && a.Reason.Code == cluster.ReasonRecalled && a.Reason.Until == l.End
	}) {
		r.t.Errorf("not requeued as recalled: %+v", l)
	}
	return l
}

// restarts gives a job's state and how often it was requeued, as Slurm says.
func (r *rig) restarts(id string) string {
	r.t.Helper()
	j, err := r.Job(r.ctx(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return j["JobState"] + " " + j["Restarts"]
}

// A job's first lease begins in the middle of others' terms: of other jobs of its own
// tenant, and of tenants further ahead, at once or after a notice.
func TestRecall(t *testing.T) {
	o := testcluster.Options{Accounts: tenants(1, 1), Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 1, Model: "v100", GPUs: 16}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		r.settings.Term, r.settings.MinLease, r.settings.Notice = 4*cluster.Second, 3*cluster.Second, cluster.Second
		r.settings.Signals = []cluster.SignalRule{{Signal: "USR1", To: "steps"}} // the gang handles it, and does not say so
		var old []string
		for range 2 {
			old = append(old, r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:8"))
		}
		r.govern()
		r.until("both old jobs have had a lease", 30*time.Second, func() bool { return r.lease(old[0]).Term > 1 && r.lease(old[1]).Term > 1 })
		r.recalls(0)
		was := []cluster.Lease{r.holdsLong(old[0]), r.holdsLong(old[1])}
		first := r.submit("carol", until("end"), "-A", "nlp", "--gres=gpu:8")
		r.waitState(first, 30*time.Second, "RUNNING")
		victim := 0
		if r.restarts(old[0]) == "RUNNING 0" {
			victim = 1
		}
		if v, other := r.restarts(old[victim]), r.restarts(old[1-victim]); v != "PENDING 1" || other != "RUNNING 0" {
			t.Errorf("the old jobs are %s, %s; want one of them requeued", v, other)
		}
		r.recalled(was[victim], 0)
		r.end("carol", first)
		for _, id := range old {
			if _, err := r.Exec(r.ctx(), "root", "scancel", id); err != nil {
				t.Fatal(err)
			}
		}

		gang := r.submit("alice", hears, "-A", "nlp", "--gres=gpu:16")
		for n, notice := range []cluster.Span{0, 3 * cluster.Second} {
			r.recalls(notice)
			was := r.holdsLong(gang)
			quick := r.submit("bob", until("end"), "-A", "vision", "--gres=gpu:1")
			r.waitState(quick, 40*time.Second, "RUNNING")
			if is, want := r.restarts(gang), fmt.Sprintf("PENDING %d", n+1); is != want {
				t.Errorf("the gang is %s, want %s", is, want)
			}
			if l := r.recalled(was, notice); l.NoticedAt.Sub(l.Start) < r.settings.MinLease {
				t.Errorf("recalled before the shortest lease: %+v", l)
			}
			r.end("bob", quick)
		}
		want := "start\nsaved\nstart 0\ntold\nsaved\nstart 1\n"
		r.until("the gang runs for the third time", 30*time.Second, func() bool { return strings.HasSuffix(r.output("alice", "heard"), "start 1\n") })
		if got := r.output("alice", "heard"); got != want {
			t.Errorf("the gang wrote %q, want %q", got, want)
		}
	})
}
