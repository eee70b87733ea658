package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// preempting are configurations in which Slurm requeues jobs of partition gpu by itself. The two Slurm versions take turns.
var preempting = []struct {
	name, conf string
	old, new   string // the change of slurm.conf that ends it
	says       string
	urgent     bool // jobs of partition urgent are preferred
}{
	{"a higher tier", "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n", "PriorityTier=1 ", "PriorityTier=1 PreemptMode=OFF ",
		"Slurm may requeue its jobs for jobs of partition urgent", true},
	{"within a QOS", "PreemptType=preempt/qos\nPreemptMode=REQUEUE,WITHIN\n", "REQUEUE,WITHIN\n", "REQUEUE\n",
		"Slurm may requeue its jobs of QOS normal for others of that QOS", false},
}

// A partition in which Slurm requeues jobs by itself is only observed, and fairlease says why. Without that it is managed. When
// Slurm preempts again, the jobs go back to Slurm.
func TestSlurmPreemptsByItself(t *testing.T) {
	t.Parallel()
	for i, c := range preempting {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			suite := testcluster.Suites[i%len(testcluster.Suites)]
			r := newRig(t, suite, usual[suite], testcluster.Options{ExtraConf: c.conf, Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4}},
				Partitions: []testcluster.Partition{{Name: "gpu", Default: true, Extra: "PriorityTier=1 MaxTime=120"}, {Name: "urgent", Extra: "PriorityTier=10 MaxTime=120"}}})
			r.settings = short(600) // no lease ends meanwhile
			conf := filepath.Join(r.Dir, "conf", "slurm.conf")
			preempts, err := os.ReadFile(conf)
			if err != nil {
				t.Fatal(err)
			}
			reconfigure := func(text string) {
				if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				if err := r.Reconfigure(r.ctx()); err != nil {
					t.Fatal(err)
				}
			}
			events := func() int { r.mu.Lock(); defer r.mu.Unlock(); return r.told["preemption"] }

			first := r.submit("alice", sleeps(900), "--gres=gpu:4", "-N", "1", "-w", "v1")
			r.govern()
			r.waitState(first, time.Minute, "RUNNING")
			r.until("it is observed, as an event says", time.Minute, func() bool { return events() == 1 })
			if x := r.lastCase(first); x.Control != cluster.ObserveOnly || !strings.Contains(x.ControlWhy, c.says) {
				t.Errorf("control %s (%s), want %q", x.Control, x.ControlWhy, c.says)
			}
			if c.urgent { // it is as the event says
				r.submit("bob", sleeps(5), "-p", "urgent", "--gres=gpu:4", "-N", "1", "-w", "v1")
				r.until("Slurm requeues the job", time.Minute, func() bool { j, err := r.Job(r.ctx(), first); return err == nil && j["Restarts"] == "1" })
			}
			if n := r.count(cluster.Grant, "") + r.count(cluster.Gate, "") + r.count(cluster.Reclaim, ""); n > 0 {
				t.Errorf("%d actions on jobs of an observed partition", n)
			}
			if _, err := r.Exec(r.ctx(), "root", "scancel", first); err != nil {
				t.Fatal(err)
			}

			reconfigure(strings.Replace(string(preempts), c.old, c.new, 1))
			r.until("it is managed, as an event says", time.Minute, func() bool { return events() == 2 })
			var jobs []string
			for range 3 { // for two nodes
				jobs = append(jobs, r.submit("alice", sleeps(900), "--gres=gpu:4", "-N", "1"))
			}
			var waits string
			gated := func(id string) bool { // a gate of begin time is renewed a minute before it lapses
				x := r.lastCase(id)
				return x.Job.Locked || x.Job.Eligible > cluster.InstantOf(time.Now()).Add(5*cluster.Second)
			}
			// Slurm may start both itself before a round has gated them.
			running := func() (ids []string, is bool) {
				waits = ""
				for _, id := range jobs {
					if r.state(id) == "RUNNING" {
						ids = append(ids, id)
					} else if r.seen(id) && gated(id) {
						waits = id
					}
				}
				return ids, len(ids) == 2 && waits != ""
			}
			r.until("two run and one is gated", time.Minute, func() bool { _, is := running(); return is })
			ran, _ := running()
			if _, err := r.Exec(r.ctx(), "root", "scancel", ran[0]); err != nil {
				t.Fatal(err)
			}
			r.until("the one that waited runs by a grant", time.Minute, func() bool { return r.state(waits) == "RUNNING" && r.count(cluster.Grant, "") > 0 })
			jobs = []string{ran[1], waits, r.submit("alice", sleeps(900), "--gres=gpu:4", "-N", "1")}
			r.until("a new one is gated", time.Minute, func() bool { _, is := running(); return is })

			reconfigure(string(preempts))
			r.until("the waiting job is Slurm's", 40*time.Second, func() bool { return events() == 3 && r.lastCase(waits).Control == cluster.ObserveOnly && !gated(waits) })
			r.until("the running jobs have no licence", time.Minute, func() bool {
				for _, id := range jobs {
					if j, err := r.Job(r.ctx(), id); err != nil || strings.Contains(j["Licenses"], license) {
						return false
					}
				}
				return true
			})
			if n := r.count(cluster.Reclaim, ""); n > 0 {
				t.Errorf("%d jobs were stopped", n)
			}
		})
	}
}

// seen tells whether the last round saw a job.
func (r *rig) seen(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.cases {
		if r.cases[i].Job.ID.String() == id {
			return true
		}
	}
	return false
}
