package slurm_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/slurm"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

func faults(l *live) {
	ctx := l.Context()
	must := func(err error) {
		l.Helper()
		if err != nil {
			l.Fatal(err)
		}
	}
	id := job(l.submit("alice", sleeper, "--gres=gpu:1"))
	l.until(id, "running", in(cluster.Running))
	before := l.see()

	// slurmdbd away: the tree is kept; a new client reads slurmctld's copy, which is the same.
	must(l.slurm.Stop(ctx, testcluster.Slurmdbd))
	hasty := l.another(func(c *slurm.Config) { c.AccountsEvery = time.Nanosecond })
	if s, err := hasty.Observe(ctx, 0); err != nil || !reflect.DeepEqual(s.Accounts, before.Accounts) || !reflect.DeepEqual(s.Members, before.Members) {
		l.Errorf("a first look while slurmdbd is away: %v: %+v, before %+v", err, s.Accounts, before.Accounts)
	} else if s.Limits.Read != 0 {
		l.Errorf("limits of %s from a slurmdbd that is away", s.Limits.Read)
	}
	if s, err := l.client.Observe(ctx, 0); err != nil || !reflect.DeepEqual(s.Accounts, before.Accounts) || s.Limits.Read == 0 || !reflect.DeepEqual(s.Limits.QOS, before.Limits.QOS) {
		l.Errorf("while slurmdbd is away: %v", err)
	}
	if _, err := l.client.Observe(ctx, before.Now.Add(-cluster.Hour)); err == nil {
		l.Error("a history without slurmdbd")
	}
	must(l.slurm.Start(ctx, testcluster.Slurmdbd))

	// slurmrestd away.
	must(l.slurm.Kill(ctx, testcluster.Slurmrestd))
	_, err := l.client.Observe(ctx, 0)
	if err == nil || !strings.Contains(err.Error(), "is slurmrestd running") && !strings.Contains(err.Error(), "did it restart") {
		l.Errorf("without slurmrestd: %v", err)
	}
	if o := l.client.Apply(ctx, []cluster.Action{{Verb: cluster.Gate, ID: id, Record: id.ID, Until: in1h()}}); o[0].OK || strings.Contains(o[0].Error, "outcome unknown") {
		l.Errorf("action without slurmrestd: %+v", o[0])
	}
	must(l.slurm.Start(ctx, testcluster.Slurmrestd))
	if s := l.see(); len(s.Jobs) != len(before.Jobs) {
		l.Errorf("%d jobs; before %d", len(s.Jobs), len(before.Jobs))
	}

	// slurmctld hangs: three changes are tried, the rest of the plan is dropped.
	var many []cluster.Action
	for range 8 {
		waiting := job(l.submit("alice", sleeper, "--gres=gpu:1", "--begin=now+1hour"))
		many = append(many, cluster.Action{Verb: cluster.RevokeGrant, ID: waiting, Record: waiting.ID, Until: in1h()})
	}
	l.see()
	must(l.slurm.Freeze(ctx, testcluster.Slurmctld))
	out := l.client.Apply(ctx, many)
	must(l.slurm.Thaw(ctx, testcluster.Slurmctld))
	for i, o := range out {
		if o.OK || o.Skipped != (i >= 3) || o.Skipped && !strings.Contains(o.Error, "the next one looks first") {
			l.Errorf("change %d while slurmctld hangs: %+v", i+1, o)
		}
	}
	for _, a := range many {
		l.exec("alice", "scancel", a.ID.String())
	}

	// slurmctld away: an error, never an empty cluster. Back: another boot, the same jobs, and the history of all.
	stopped := cluster.InstantOf(time.Now())
	must(l.slurm.Stop(ctx, testcluster.Slurmctld))
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	if s, err := l.client.Observe(short, 0); err == nil {
		l.Errorf("without slurmctld %d jobs are seen", len(s.Jobs))
	}
	cancel()
	must(l.slurm.Start(ctx, testcluster.Slurmctld))
	s, err := l.client.Observe(ctx, stopped)
	must(err)
	if !slices.ContainsFunc(s.Attempts, func(a cluster.Attempt) bool { return a.ID == id && a.End == 0 && len(a.GPUs) == 1 }) {
		l.Errorf("after a restart, the history is %+v", s.Attempts)
	}
	if j, there := find(s, id); s.Boot <= before.Boot || !there || j.State != cluster.Running {
		l.Errorf("after a restart: boot %v (before %v), job %+v", s.Boot, before.Boot, j)
	}
}
