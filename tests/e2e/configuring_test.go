package e2e

import (
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// A job whose nodes are prepared for longer than its term and than a grant's timeout has not begun: it keeps its grant, gets no notice and is charged nothing.
// Its term begins when it does.
func TestAConfiguringJobHasNotBegun(t *testing.T) {
	o := testcluster.Options{Accounts: tenants(1, 1), Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 1, Model: "v100", GPUs: 4}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		as := func(user string, args ...string) {
			t.Helper()
			if out, err := r.Exec(r.ctx(), user, args...); err != nil {
				t.Fatal(out, err)
			}
		}
		as("root", "sh", "-c", `printf '#!/bin/sh\nwhile [ -e /tmp/boots ]; do sleep 0.2; done\n' >/usr/local/bin/boots; chmod 755 /usr/local/bin/boots; touch /tmp/boots
			echo PrologSlurmctld=/usr/local/bin/boots >>/etc/slurm/slurm.conf; scontrol reconfigure`)
		r.govern()
		id := r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:4")
		r.waitState(id, time.Minute, "CONFIGURING")
		r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:4")
		r.until("a term and the timeout of grants pass", 2*time.Minute, func() bool {
			l := r.lease(id)
			return l.State == cluster.Granted && l.Size.Devices == 4 && r.plan().At > l.Granted.Add(25*cluster.Second)
		})
		c := r.lastCase(id)
		if c.Job.State != cluster.Configuring || c.Record.Alloc != 0 || c.Record.Configured == 0 || r.state(id) != "CONFIGURING" {
			t.Errorf("Slurm shows %s; the job is %s, its record %+v", r.state(id), c.Job.State, c.Record)
		}
		if n := r.count(cluster.Notify, id) + r.count(cluster.Reclaim, id) + r.count(cluster.RevokeGrant, id); n > 0 {
			t.Errorf("it got %d notices, requeues and revoked grants", n)
		}
		as("root", "rm", "/tmp/boots")
		began := cluster.InstantOf(time.Now())
		r.waitState(id, time.Minute, "RUNNING")
		r.until("its lease ends", 2*time.Minute, func() bool { return r.count(cluster.Reclaim, id) > 0 })
		r.until("what it ran is charged", time.Minute, func() bool { return r.lastCase(id).Record.Ran > 0 })
		ran, most := r.lastCase(id).Record.Ran, r.plan().At.Sub(began)+5*cluster.Second
		if ran < 5*cluster.Second || ran > most {
			t.Errorf("it ran for %s, want the 6 s of lease.min at least, and at most %s", ran, most)
		}
	})
}
