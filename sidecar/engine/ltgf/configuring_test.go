package ltgf

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

func configuring(key cluster.JobKey, gpus int, since cluster.Instant) cluster.Case {
	c := running(key, gpus, since)
	c.Job.State = cluster.Configuring
	return c
}

// from is what loop.Remember makes of a job whose nodes were configured up to a look.
func from(c cluster.Case, start cluster.Instant) cluster.Case {
	c.Job.Start = start
	return c
}

// TestJobsAreChargedFromWhenTheirNodesAreReady: the GPUs are neither used nor free before; the job and its tenant's rho have none of that time, its
// tenant's deficit has.
func TestJobsAreChargedFromWhenTheirNodesAreReady(t *testing.T) {
	start := begin.Add(10 * second)
	grant := []cluster.Lease{{Job: 1, State: cluster.Granted, Pool: "v100", Size: cluster.Whole(2), Nodes: []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(2)}}}}
	t.Run("with a lease, then it runs", func(t *testing.T) {
		b := open(t, 8)
		b.look(0, waiting(1, 2))
		b.due(8 * cluster.WholeGPU)
		b.s.Leases = grant
		b.pass(minute, configuring(1, 2, start))
		b.pass(minute, configuring(1, 2, start))
		b.charged(1, 0)
		b.overhead(cluster.Times(2, 110*second))
		if r := b.record(1); r.Configured != begin.Add(2*minute) || r.Ran != 0 || len(r.Held) > 0 {
			t.Errorf("the record is %+v", r)
		}
		b.pass(minute, from(running(1, 2, start), begin.Add(2*minute+20*second)))
		b.charged(1, cluster.Times(2, 40*second))
		b.overhead(cluster.Times(2, 130*second))
		if row := b.row("t"); row.Alloc != cluster.Times(2, 40*second) || row.Deficit > 0 {
			t.Errorf("its tenant received %d GPU-ms, deficit %d", row.Alloc, row.Deficit)
		}
		b.pass(minute, done(from(running(1, 2, start), begin.Add(2*minute+20*second)), begin.Add(3*minute+30*second)))
		b.charged(1, cluster.Times(2, 70*second))
		if r := b.record(1); r.Ran != 70*second {
			t.Errorf("it ran for %s", r.Ran)
		}
	})
	t.Run("without a lease", func(t *testing.T) {
		b := open(t, 8)
		b.look(0, waiting(1, 2))
		b.pass(minute, configuring(1, 2, start))
		b.overhead(cluster.Times(2, 50*second))
		b.charged(1, 0)
		b.pass(minute, gone(1, 2))
		b.overhead(cluster.Times(2, 50*second))
		b.charged(1, 0)
	})
	t.Run("its nodes do not come up, and it is requeued", func(t *testing.T) {
		b := open(t, 8)
		b.look(0, waiting(1, 2))
		b.s.Leases = grant
		b.pass(minute, configuring(1, 2, start))
		c := waiting(1, 2)
		c.Job.Restarts, c.Job.Submit = 1, begin.Add(90*second)
		b.s.Leases = grant
		b.pass(minute, c)
		b.overhead(cluster.Times(2, 80*second))
		b.charged(1, 0)
		if r := b.record(1); r.Configured != 0 {
			t.Errorf("the record is %+v", r)
		}
	})
	t.Run("it is cancelled meanwhile", func(t *testing.T) {
		b := open(t, 8)
		b.look(0, waiting(1, 2))
		b.s.Leases = grant
		b.pass(minute, configuring(1, 2, start))
		b.pass(minute, done(from(running(1, 2, start), begin.Add(minute)), begin.Add(minute)))
		b.charged(1, 0)
		b.overhead(cluster.Times(2, 50*second))
	})
	t.Run("slurmdbd tells of its attempt", func(t *testing.T) {
		b := open(t, 8)
		b.look(0, waiting(1, 2))
		b.s.Leases = grant
		attempt := cluster.Attempt{ID: cluster.JobID{ID: 1}, User: "u", Submit: begin, Start: start, GPUs: []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(2)}}}
		b.attempts = []cluster.Attempt{attempt}
		b.pass(minute, configuring(1, 2, start))
		b.attempts = []cluster.Attempt{attempt}
		b.pass(minute, from(running(1, 2, start), begin.Add(minute+30*second)))
		b.charged(1, cluster.Times(2, 30*second))
	})
}
