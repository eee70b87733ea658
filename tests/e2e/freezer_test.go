package e2e

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// daemonizes is a job that counts tenths of seconds in which it goes on in a process with a session of its own, and no longer a child of the job's.
const daemonizes = `#!/bin/bash
(setsid bash -c 'while sleep 0.1; do echo; done' >count-$SLURM_JOB_ID &)
sleep 3600
`

// Where slurmd freezes suspended jobs (proctrack/cgroup), jobs that ignore signals take turns, too. A frozen job can be cancelled, and the other one runs on.
func TestFrozenTurns(t *testing.T) {
	o := inTurns(1)
	o.Freezer = true
	onBoth(t, o, func(t *testing.T, r *rig) {
		const quantum = 8 * cluster.Second
		r.settings.Term = 10 * cluster.Minute
		r.settings.Slices = &cluster.Slices{Quantum: quantum, Memory: []cluster.GPUMemory{{Model: "v100", Bytes: 32 << 30}}}
		r.govern()
		r.heard()
		of := r.shares(daemonizes, "--gres=gpu:1")
		r.begin(maps.Keys(of))
		count := func(id string) int { return strings.Count(r.output(of[id], "count-"+id), "\n") }
		r.until("both take turns", 3*time.Minute, func() bool {
			for id := range of {
				if r.count(cluster.Suspend, id) == 0 || r.count(cluster.Resume, id) == 0 {
					return false
				}
			}
			return true
		})
		begin, from := time.Now(), map[string]int{}
		for id := range of {
			from[id] = count(id)
		}
		r.poll("three turns of each job pass", 2*time.Minute, time.Second, func() bool { return time.Since(begin) >= 6*quantum.Duration() })
		took, sum := time.Since(begin).Seconds(), 0.0
		for id := range of {
			did := float64(count(id)-from[id]) / 10
			sum += did
			t.Logf("job %s counted %.0f s of %.0f", id, did, took)
			if did < 0.25*took {
				t.Errorf("job %s counted %.0f s of %.0f, want about half", id, did, took)
			}
		}
		if sum > 1.2*took {
			t.Errorf("jobs counted %.0f s in %.0f s on one GPU", sum, took)
		}
		frozen := ""
		r.until("a job is suspended", time.Minute, func() bool {
			for id := range of {
				if r.state(id) == "SUSPENDED" {
					frozen = id
				}
			}
			return frozen != ""
		})
		if _, err := r.Exec(r.ctx(), "root", "scancel", frozen); err != nil {
			t.Fatal(err)
		}
		r.until("it has ended", time.Minute, func() bool { return r.state(frozen) == "CANCELLED" })
		delete(of, frozen)
		for id := range of {
			n := count(id)
			r.until("the other one runs for more than a turn", time.Minute, func() bool { return r.state(id) == "RUNNING" && count(id) > n+12*int(quantum/cluster.Second) })
		}
	})
}
