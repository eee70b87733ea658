package slurm_test

import (
	"strings"
	"sync"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// races has owners open gates at the moment of a grant on fewer nodes than Slurm would give: no job is cut, and slurmctld lives.
func races(l *live) {
	if l.suite != "forky" {
		l.Skip("one Slurm races")
	}
	const races = 50
	for _, node := range []string{"k1", "k2", "v1", "v2"} { // leave one GPU on each node
		l.until(job(l.submit("bob", sleeper, "--gres=gpu:3", "-w", node)), "running", in(cluster.Running))
	}
	kinds := [][]string{{"-N1-4", "--gres=gpu:1"}, {"--gpus=4"}, {"-N2", "--gres=gpu:1"}, {"-n4", "--gpus-per-task=1"}}
	script := "#!/bin/bash\nsrun sleep 900\n"
	started, skipped := 0, 0
	for i := range races {
		id := job(l.submit("alice", script, append([]string{"--begin=now+1hour"}, kinds[i%len(kinds)]...)...))
		j := l.until(id, "waiting", in(cluster.Waiting))
		g := act(cluster.Grant, j)
		g.Nodes = []string{"k1", "v1"}
		var outcome cluster.Outcome
		var both sync.WaitGroup
		both.Go(func() {
			time.Sleep(time.Duration(i/len(kinds)) * 50 * time.Millisecond) // the moments around the start, for each kind
			outcome = l.client.Apply(l.Context(), []cluster.Action{g})[0]
		})
		both.Go(func() {
			_, _ = l.slurm.Exec(l.Context(), "alice", "scontrol", "update", "jobid="+id.String(), "StartTime=now")
		})
		both.Wait()
		if outcome.Skipped {
			skipped++
		}
		if j, there := find(l.see(), id); there && j.State == cluster.Running {
			started++
		}
		l.exec("root", "scancel", id.String())
		l.until(id, "ended", in(cluster.Done))
	}
	l.Logf("%d of %d jobs had started after the grant, %d grants were late", started, races, skipped)
	out := l.exec("root", "sacct", "-a", "-D", "-X", "-n", "-P", "-o", "jobid,state,nodelist")
	for line := range strings.Lines(out) {
		if strings.Contains(line, "RESIZING") {
			l.Errorf("a running job was cut: %s", line)
		}
	}
	if !slurmctldLives(l) {
		l.Error("slurmctld does not run")
	}
}

func slurmctldLives(l *live) bool {
	for _, d := range l.slurm.Running() {
		if d == testcluster.Slurmctld {
			return true
		}
	}
	return false
}
