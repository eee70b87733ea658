package ltgf

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// ran is an attempt of job 1 by the history; end 0 = slurmdbd knows of none.
func ran(end cluster.Instant, outcome string) cluster.Attempt {
	return cluster.Attempt{ID: cluster.JobID{ID: 1}, User: "u", Submit: begin, Start: begin, End: end, GPUs: []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(2)}}, Outcome: outcome}
}

// A slurmctld that was started without its state does not know the jobs that ran. They had their GPUs until then, unless slurmdbd has an end, or
// their time limit was over.
func TestJobsThatSlurmctldLost(t *testing.T) {
	boot := begin.Add(20 * minute)
	for what, c := range map[string]struct {
		history []cluster.Attempt
		limit   cluster.Span
		boot    cluster.Instant
		waits   bool
		want    cluster.Span
	}{
		"slurmdbd does not answer":               {boot: boot, want: 20 * minute},
		"slurmdbd has it running for ever":       {history: []cluster.Attempt{ran(0, "")}, boot: boot, want: 20 * minute},
		"slurmdbd has ended it with slurmctld":   {history: []cluster.Attempt{ran(begin.Add(3*minute), "CANCELLED")}, boot: boot, want: 3 * minute},
		"its time limit was over before":         {history: []cluster.Attempt{ran(0, "")}, boot: boot, limit: 10 * minute, want: 10 * minute},
		"its time limit was over at a look":      {boot: boot, limit: cluster.Second, want: minute},
		"slurmctld was not started":              {want: minute},
		"it was started by a clock that is late": {boot: begin, want: minute},
		"it waits again, by an older state":      {boot: boot, waits: true, want: 20 * minute},
		"the same, by slurmdbd it runs":          {history: []cluster.Attempt{ran(0, "")}, boot: boot, waits: true, want: 20 * minute},
	} {
		b := open(t, 8)
		job := running(1, 2, begin)
		job.Record.UserLimit = c.limit
		b.look(0, job)
		b.pass(minute, job)
		after := gone(1, 2)
		if c.waits {
			after = requeued(job, begin)
			after.Job.Restarts = 0
		}
		b.attempts, b.s.Boot = c.history, c.boot
		b.pass(29*minute, after)
		b.s.Boot = 0
		t.Log(what)
		b.charged(1, cluster.Times(2, c.want))
		if got := b.record(1).Ran; got != c.want {
			t.Errorf("%s: ran for %s, want %s", what, got, c.want)
		}
		if c.waits {
			continue
		}
		// Whatever slurmdbd tells of it later has been charged.
		for _, late := range []cluster.Instant{0, begin.Add(40 * minute)} {
			b.attempts = []cluster.Attempt{ran(late, "CANCELLED")}
			b.pass(10*minute, gone(1, 2))
			b.charged(1, cluster.Times(2, c.want))
		}
	}
}

// Ids start over with a new slurmctld: what slurmdbd still has running of the job that had an id before is not charged to the next one.
func TestALostJobsIDIsGivenAnew(t *testing.T) {
	for _, end := range []cluster.Instant{0, begin.Add(35 * minute)} {
		b := open(t, 8)
		b.look(0)
		b.pass(30 * minute)
		next := running(2, 4, begin.Add(31*minute))
		next.Job.ID.ID, next.Record.ID.ID = 1, 1
		next.Job.Submit, next.Record.Submit = begin.Add(31*minute), begin.Add(31*minute)
		b.attempts = []cluster.Attempt{ran(end, "CANCELLED")}
		b.pass(10*minute, next)
		b.charged(2, cluster.Times(4, 9*minute))
		b.attempts = []cluster.Attempt{ran(0, "")}
		b.pass(10*minute, requeued(next, begin.Add(45*minute)))
		b.charged(2, cluster.Times(4, 14*minute))
	}
}
