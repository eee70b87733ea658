package ltgf

import (
	"reflect"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

const (
	second = cluster.Second
	minute = cluster.Minute
)

func (b *book) charged(key cluster.JobKey, want cluster.GPUTime) {
	b.t.Helper()
	if got := b.record(key).Alloc; got != want {
		b.t.Errorf("job %d was charged %d GPU-ms, want %d", key, got, want)
	}
	b.balanced()
}

func (b *book) overhead(want cluster.GPUTime) {
	b.t.Helper()
	if got := b.pool().Overhead; got != want {
		b.t.Errorf("overhead is %d GPU-ms, want %d", got, want)
	}
}

func TestAJobThatEndedBetweenTwoLooksIsChargedToItsEnd(t *testing.T) {
	b := open(t, 8)
	b.look(0, running(1, 2, begin))
	b.pass(minute, running(1, 2, begin))
	b.pass(minute, done(running(1, 2, begin), begin.Add(90*second)))
	b.charged(1, cluster.Times(2, 90*second))
	b.pass(minute, done(running(1, 2, begin), begin.Add(90*second)))
	b.pass(minute, gone(1, 2))
	b.charged(1, cluster.Times(2, 90*second))
	if got := b.record(1).Done; got != begin.Add(2*minute) {
		t.Errorf("done at %s, want when it was first seen done", got)
	}
}

// A job may start and end between two looks: its start and end are Slurm's, what
// it held is what it was granted, since Slurm forgets that first.
func TestAJobThatStartedAndEndedBetweenTwoLooksIsCharged(t *testing.T) {
	start, end := begin.Add(2*second), begin.Add(7*second)
	grant := []cluster.Lease{{Job: 1, State: cluster.Granted, Pool: "v100", Size: cluster.Whole(2),
		Nodes: []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(2)}}}}
	holds := running(1, 2, start)
	holds.Job.State, holds.Job.End = cluster.Done, end
	forgotten := holds
	forgotten.Job.Holds = nil
	for name, c := range map[string]cluster.Case{"Slurm still says what it held": holds, "Slurm has forgotten": forgotten} {
		t.Run(name, func(t *testing.T) {
			b := open(t, 8)
			b.look(0, waiting(1, 2))
			b.s.Leases = grant
			b.pass(10*second, c)
			b.charged(1, cluster.Times(2, 5*second))
			b.pass(10*second, c)
			b.charged(1, cluster.Times(2, 5*second))
		})
	}
	t.Run("without a lease, when gates had lapsed", func(t *testing.T) {
		b := open(t, 8)
		b.look(0, waiting(1, 2))
		c := forgotten
		c.Job.Had = []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(2)}}
		b.pass(10*second, c)
		b.charged(1, cluster.Times(2, 5*second))
		b.pass(10*second, c)
		b.charged(1, cluster.Times(2, 5*second))
	})
	t.Run("it still cleans up", func(t *testing.T) {
		b := open(t, 8)
		b.look(0, waiting(1, 2))
		c := holds
		c.Job.State = cluster.Completing
		b.pass(10*second, c)
		b.charged(1, cluster.Times(2, 5*second))
		b.overhead(cluster.Times(2, 3*second))
		b.pass(10*second, holds)
		b.charged(1, cluster.Times(2, 5*second))
	})
	t.Run("whole seconds", func(t *testing.T) { // it started in the second in which we looked
		b := open(t, 8)
		b.look(700, waiting(1, 2))
		b.s.Leases = grant
		c := forgotten
		c.Job.Start = begin
		b.pass(10*second, c)
		b.charged(1, cluster.Times(2, 7*second-700))
	})
	t.Run("cancelled while it waited", func(t *testing.T) {
		b := open(t, 8)
		b.look(0, waiting(1, 2))
		b.s.Leases = grant
		c := done(waiting(1, 2), end)
		b.pass(10*second, c)
		b.charged(1, 0)
	})
}

// Rounds keep their distance from Slurm's whole seconds: were a start that followed a grant at once taken for the middle of
// its second, every attempt would be charged too little, or none.
func TestAnAttemptThatFollowsItsGrantIsChargedFromTheGrant(t *testing.T) {
	for _, c := range []struct {
		acted, start, charged cluster.Span // from a whole second on; charged by the look at 2 s
	}{
		{200, 500, 1800}, {600, 500, 1400}, {950, 500, 1050},
		{950, 1500, 1000}, // in the next second: at its begin
		{1300, 500, 1500}, // before the grant, by somebody else
		{100, 1500, 1000}, // gates open at once
		{0, 500, 1500},    // nobody heard of the grant
		{1999, 1500, 1},
	} {
		b := open(t, 8)
		b.look(0, waiting(1, 2))
		if c.acted > 0 {
			b.s.Cases[0].Record.Acted = begin.Add(c.acted)
		}
		x := running(1, 2, begin.Add(c.start))
		x.Job.Blur = 500
		b.pass(2*second, x)
		b.charged(1, cluster.Times(2, c.charged))
		b.pass(18*second, x)
		b.charged(1, cluster.Times(2, 18*second+c.charged))
	}
}

// "A requeued job has a new submit time": the moment of the requeue.
func TestARequeuedJobIsChargedToItsNewSubmitTime(t *testing.T) {
	b := open(t, 8)
	b.look(0, running(1, 4, begin))
	at := begin.Add(40 * second)
	b.pass(minute, requeued(running(1, 4, begin), at))
	b.charged(1, cluster.Times(4, 40*second))
	if got := b.record(1).Ran; got != 40*second {
		t.Errorf("ran for %s in attempts that ended, want 40 s: the time limit is reduced by it", got)
	}
}

// A job that we requeued at the last look ended then: Slurm's new submit time is when the job had
// cleaned up, and no tenant pays for that time.
func TestAReclaimedJobIsChargedToTheReclaim(t *testing.T) {
	b := open(t, 8)
	b.look(0, running(1, 4, begin))
	b.pass(minute, running(1, 4, begin))
	b.s.Leases = []cluster.Lease{{Job: 1, State: cluster.Ending, Pool: "v100", Size: cluster.Whole(4)}}
	b.pass(10*second, requeued(running(1, 4, begin), begin.Add(68*second)))
	b.charged(1, cluster.Times(4, minute))
	if got := b.record(1).Ran; got != minute {
		t.Errorf("ran for %s, want a minute", got)
	}
}

// The requeue that a turn decides is carried out a little later: where we heard
// when, the attempt went on until then, and only then.
func TestAReclaimedJobIsChargedToTheRequeueWeHeardOf(t *testing.T) {
	b := open(t, 8)
	b.look(0, running(1, 4, begin))
	b.pass(minute, running(1, 4, begin))
	b.s.Leases = []cluster.Lease{{Job: 1, State: cluster.Ending, Pool: "v100", Size: cluster.Whole(4)}}
	b.s.Cases[0].Record.Acted = begin.Add(minute + 300)
	b.pass(10*second, requeued(running(1, 4, begin), begin.Add(68*second)))
	b.charged(1, cluster.Times(4, minute+300))
	if got := b.record(1); got.Ran != minute+300 || got.Acted != 0 {
		t.Errorf("ran for %s, reclaimed at %d; want 60.3 s, and the reclaim forgotten", got.Ran, got.Acted)
	}
}

func TestAJobRequeuedRunAgainAndDoneBetweenTwoLooks(t *testing.T) {
	b := open(t, 8)
	b.look(0, running(1, 4, begin))
	b.s.Leases = []cluster.Lease{{Job: 1, State: cluster.Active, Pool: "v100", Size: cluster.Whole(4),
		Nodes: []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(4)}}}}
	c := done(requeued(running(1, 4, begin), begin.Add(20*second)), begin.Add(50*second))
	c.Job.Start = begin.Add(30 * second)
	b.pass(minute, c)
	b.charged(1, cluster.Times(4, 40*second))
}

// A job that is cancelled while it cleans up did not run until then.
func TestAJobCancelledWhileItCleansUp(t *testing.T) {
	requeue, cancel := begin.Add(30*second), begin.Add(40*second)
	cancelled := done(requeued(running(1, 2, begin), begin), cancel)
	cancelled.Job.Start = begin // of the attempt that was requeued
	t.Run("all between two looks", func(t *testing.T) {
		b := open(t, 8)
		b.look(0, running(1, 2, begin))
		b.attempts = []cluster.Attempt{{ID: cluster.JobID{ID: 1}, User: "u", Submit: begin, Start: begin, End: requeue,
			GPUs: []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(2)}}}}
		b.pass(minute, cancelled)
		b.charged(1, cluster.Times(2, 30*second))
	})
	t.Run("seen cleaning up", func(t *testing.T) {
		b := open(t, 8)
		b.look(0, running(1, 2, begin))
		b.pass(35*second, completing(running(1, 2, begin), requeue))
		was := b.record(1).Alloc
		b.pass(minute, cancelled)
		b.charged(1, was)
	})
}

func TestARequeueSeenOnlyAfterTheNextStartIsTwoStretches(t *testing.T) {
	b := open(t, 8)
	b.look(0, running(1, 4, begin))
	again := running(1, 4, begin.Add(50*second))
	again.Job.Submit, again.Job.Restarts = begin.Add(20*second), 1
	b.pass(minute, again)
	b.charged(1, cluster.Times(4, 20*second+10*second))
	if got := b.record(1).Ran; got != 20*second {
		t.Errorf("ran for %s before, want 20 s", got)
	}
}

// The owner of a job may suspend it: the GPUs that it keeps are no shortage of its tenant, which would be repaid.
func TestSuspendedGPUsAreNoShortage(t *testing.T) {
	b := open(t, 8)
	b.s.Tenants = append(b.s.Tenants, cluster.Tenant{Name: "u", Weight: 1})
	c, other := running(1, 4, begin), running(2, 4, begin)
	other.Record.Tenant = "u"
	b.look(0, c, other)
	for i, due := range []cluster.MicroGPU{4, 2} { // u holds two GPUs more than its due
		row := &b.s.Ledger.Tenants[i]
		row.Entitlement, row.Demand = due*cluster.WholeGPU, 4*cluster.WholeGPU
	}
	c.Job.State, c.Job.Suspend = cluster.Suspended, minute
	b.look(minute, c, other)
	for _, row := range b.s.Ledger.Tenants {
		if row.Owed != 0 || row.Tenant == "t" && row.Deficit > 0 {
			t.Errorf("%s is owed %d GPU-ms, with a deficit of %d", row.Tenant, row.Owed, row.Deficit)
		}
	}
}

// A suspended job keeps its GPUs but is not charged: they are overhead.
func TestSuspendedTimeIsNotCharged(t *testing.T) {
	b := open(t, 8)
	b.look(0, running(1, 2, begin))
	c := running(1, 2, begin)
	c.Job.State, c.Job.Suspend = cluster.Suspended, 30*second
	b.pass(minute, c)
	b.charged(1, cluster.Times(2, 30*second))
	b.overhead(cluster.Times(2, 30*second))
	c.Job.Suspend = 90 * second
	b.pass(minute, c)
	b.charged(1, cluster.Times(2, 30*second))
	c.Job.State, c.Job.Suspend = cluster.Running, 100*second
	b.pass(minute, c)
	b.charged(1, cluster.Times(2, 80*second))
	b.overhead(cluster.Times(2, 100*second))
	// Its run time in this attempt reduces the next attempt's limit, and excludes the suspension.
	b.pass(0, requeued(c, b.now))
	if got := b.record(1).Ran; got != 80*second {
		t.Errorf("ran for %s, want 80 s", got)
	}
	b.charged(1, cluster.Times(2, 80*second))
}

func TestAJobThatCleansUpIsOverhead(t *testing.T) {
	b := open(t, 8)
	b.look(0, running(1, 4, begin))
	c := completing(running(1, 4, begin), begin.Add(50*second))
	b.pass(minute, c)
	b.charged(1, cluster.Times(4, 50*second))
	b.overhead(cluster.Times(4, 10*second))
	b.pass(10*second, c)
	b.charged(1, cluster.Times(4, 50*second))
	b.overhead(cluster.Times(4, 20*second))
	if got := b.pool().Idle; got != cluster.Times(4, 70*second) {
		t.Errorf("idle %d GPU-ms, want the other four GPUs' 70 s", got)
	}
}

// outage is what a job did while nobody looked for half an hour, according to
// the history: it ran on, was requeued, ran again and ended.
func outage() []cluster.Attempt {
	id := cluster.JobID{ID: 1}
	v100 := []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(2)}}
	return []cluster.Attempt{
		{ID: id, User: "u", Submit: begin, Start: begin, End: begin.Add(5 * minute), GPUs: v100, Outcome: "REQUEUED"},
		{ID: id, User: "u", Submit: begin.Add(5 * minute), Start: begin.Add(10 * minute), End: begin.Add(12 * minute), GPUs: v100, Outcome: "COMPLETED"},
	}
}

// "MinJobAge (300 s) is how long a finished job is still listed: after a longer
// outage the truth about what ran is in slurmdbd."
func TestAnOutageLongerThanSlurmRemembersIsChargedFromTheHistory(t *testing.T) {
	b := open(t, 8)
	b.look(0, running(1, 2, begin))
	b.pass(minute, running(1, 2, begin))
	b.attempts = outage()
	b.pass(30*minute, gone(1, 2))
	b.charged(1, cluster.Times(2, 5*minute+2*minute))
	if got := b.record(1).Ran; got != 7*minute {
		t.Errorf("ran for %s, want 7 minutes", got)
	}
}

// A job that nobody ever saw is told by the history alone.
func TestAJobThatCameAndWentInAnOutageIsCharged(t *testing.T) {
	b := open(t, 8)
	b.look(0)
	b.attempts = []cluster.Attempt{{ID: cluster.JobID{ID: 9}, User: "u", Submit: begin.Add(minute), Start: begin.Add(2 * minute),
		End: begin.Add(8 * minute), GPUs: []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(8)}}}}
	b.pass(30*minute, gone(9, 8))
	b.charged(9, cluster.Times(8, 6*minute))
}

// A bug of other schedulers: borrowed time charged twice. Time charged from looks is not charged
// again from the history, and repeated entries of the history count once.
func TestTheHistoryIsNotChargedTwice(t *testing.T) {
	t.Run("the job runs again", func(t *testing.T) {
		b := open(t, 8)
		b.look(0, running(1, 2, begin))
		b.pass(4*minute, running(1, 2, begin))
		b.attempts = outage()[:1]
		b.attempts = append(b.attempts, cluster.Attempt{ID: cluster.JobID{ID: 1}, User: "u", Submit: begin.Add(5 * minute),
			Start: begin.Add(10 * minute), GPUs: []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(2)}}}) // still running
		again := running(1, 2, begin.Add(10*minute))
		again.Job.Submit, again.Job.Restarts = begin.Add(5*minute), 1
		b.pass(16*minute, again)
		b.charged(1, cluster.Times(2, 5*minute+10*minute))
		if got := b.record(1).Ran; got != 5*minute {
			t.Errorf("ran for %s in attempts that ended, want 5 minutes", got)
		}
	})
	t.Run("told again at the next look", func(t *testing.T) {
		b := open(t, 8)
		b.look(0, running(1, 2, begin))
		over := requeued(running(1, 2, begin), begin.Add(5*minute))
		b.attempts = outage()[:1]
		b.pass(10*minute, over)
		b.charged(1, cluster.Times(2, 5*minute))
		b.attempts = outage()[:1]
		b.pass(minute, over)
		b.charged(1, cluster.Times(2, 5*minute))
		if got := b.record(1).Ran; got != 5*minute {
			t.Errorf("ran for %s, want 5 minutes: told twice, it ran once", got)
		}
	})
	t.Run("told late", func(t *testing.T) { // first seen requeued, then slurmdbd catches up
		b := open(t, 8)
		b.look(0, running(1, 2, begin))
		over := requeued(running(1, 2, begin), begin.Add(5*minute))
		b.pass(10*minute, over)
		b.attempts = outage()[:1]
		b.pass(minute, over)
		b.charged(1, cluster.Times(2, 5*minute))
		if got := b.record(1).Ran; got != 5*minute {
			t.Errorf("ran for %s, want 5 minutes", got)
		}
	})
}

// Without a history the last look is all we know of a job that is simply gone.
func TestAJobThatVanishedIsChargedToTheLastLook(t *testing.T) {
	b := open(t, 8)
	b.look(0, running(1, 2, begin))
	b.pass(minute, running(1, 2, begin))
	b.pass(30*minute, gone(1, 2))
	b.charged(1, cluster.Times(2, minute))
}

// "JobIDs come round again; the ledger's key is ours, not JobID alone."
func TestAttemptsOfTwoJobsWithOneID(t *testing.T) {
	b := open(t, 8)
	first := done(running(1, 2, begin), begin.Add(2*minute))
	b.look(0, running(1, 2, begin))
	b.pass(4*minute, first)
	second := waiting(2, 4)
	second.Job.ID, second.Record.ID = first.Job.ID, first.Job.ID
	second.Job.Submit, second.Record.Submit = begin.Add(5*minute), begin.Add(5*minute)
	v100 := []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(4)}}
	b.attempts = []cluster.Attempt{
		{ID: first.Job.ID, User: "u", Submit: begin, Start: begin, End: begin.Add(2 * minute), GPUs: v100[:1]},
		{ID: first.Job.ID, User: "u", Submit: begin.Add(5 * minute), Start: begin.Add(6 * minute), End: begin.Add(7 * minute), GPUs: v100},
	}
	over := second
	over.Job.State, over.Job.Submit = cluster.Waiting, begin.Add(7*minute)
	b.pass(30*minute, gone(1, 2), over)
	b.charged(1, cluster.Times(2, 2*minute))
	b.charged(2, cluster.Times(4, minute))
}

// An attempt of another user is never charged to a job that had the id.
func TestAttemptsOfAnotherUserWithTheID(t *testing.T) {
	b := open(t, 8)
	b.look(0, running(1, 2, begin))
	b.pass(4*minute, done(running(1, 2, begin), begin.Add(2*minute)))
	b.attempts = []cluster.Attempt{{ID: cluster.JobID{ID: 1}, User: "other", Submit: begin.Add(5 * minute), Start: begin.Add(6 * minute), End: begin.Add(7 * minute), GPUs: []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(4)}}}}
	b.pass(30*minute, gone(1, 2))
	b.charged(1, cluster.Times(2, 2*minute))
}

func TestJobsOfNoTenantAreUntouchableAndBadNodesAreBad(t *testing.T) {
	b := open(t, 8)
	b.s.Nodes = append(b.s.Nodes, cluster.Node{Name: "n2", GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}, Bad: "drained"})
	stray := running(1, 3, begin)
	stray.Record.Tenant = ""
	leftover := running(2, 1, begin) // still runs on the drained node
	leftover.Job.Holds[0].Node = "n2"
	b.look(0, stray, leftover)
	b.pass(cluster.Hour, stray, leftover)
	want := cluster.PoolAccount{Pool: "v100", GPUs: cluster.CountOf(12), BadGPUs: cluster.CountOf(4), Capacity: cluster.Times(12, cluster.Hour),
		Tenants: cluster.Times(1, cluster.Hour), Untouchable: cluster.Times(3, cluster.Hour),
		Idle: cluster.Times(5, cluster.Hour), Bad: cluster.Times(3, cluster.Hour)}
	if got := b.pool(); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	b.balanced()
}

// A job that opts out is its tenant's or nobody's, as the site has it: also what it ran between the last look and its end, and
// also where the setting changes while it runs.
func TestJobsThatOptOutAreChargedAsTheSiteHasIt(t *testing.T) {
	for _, uncharged := range []bool{false, true} {
		b := open(t, 8)
		c := running(1, 3, begin)
		c.Control, c.Record.Uncharged = cluster.Unmanaged, uncharged
		b.look(0, c)
		b.pass(cluster.Hour, c)
		gone := cluster.Case{Gone: true, Control: cluster.Unmanaged, Record: c.Record, Job: cluster.Job{State: cluster.Done}}
		b.pass(cluster.Hour, gone)
		tenants, nobody := cluster.Times(3, cluster.Hour), cluster.GPUTime(0)
		if uncharged {
			tenants, nobody = nobody, tenants
		}
		if p := b.pool(); p.Tenants != tenants || p.Untouchable != nobody || b.row("t").Alloc != tenants {
			t.Errorf("uncharged %v: tenants had %d GPU-ms (t: %d), nobody %d; want %d, %d", uncharged, p.Tenants, b.row("t").Alloc, p.Untouchable, tenants, nobody)
		}
		b.balanced()
	}
	b := open(t, 8)
	c := running(1, 3, begin)
	c.Control = cluster.Unmanaged
	b.look(0, c)
	b.pass(cluster.Hour, c)
	c.Record.Uncharged = true
	b.pass(cluster.Hour, c)
	if p := b.pool(); p.Tenants != cluster.Times(3, cluster.Hour) || p.Untouchable != p.Tenants {
		t.Errorf("of two hours, after the first of which opt_out became leave, tenants had %d GPU-ms and nobody %d", p.Tenants, p.Untouchable)
	}
	b.balanced()
}

// Tenants that leave keep their accounts, so that the books go on adding up.
func TestATenantThatLeftStaysOnTheBooks(t *testing.T) {
	b := open(t, 8)
	b.look(0, running(1, 8, begin))
	b.pass(minute, running(1, 8, begin))
	b.s.Tenants = []cluster.Tenant{{Name: "other", Weight: 1}}
	b.pass(minute)
	if got := b.row("t").Alloc; got != cluster.Times(8, minute) {
		t.Errorf("tenant t has %d GPU-ms, want its 8 GPU-minutes still", got)
	}
	if got := b.row("other").Alloc; got != 0 {
		t.Errorf("the other tenant has %d GPU-ms", got)
	}
}

// Nothing that Charge is given is changed: the same snapshot can be decided again.
func TestChargeChangesNothingThatItWasGiven(t *testing.T) {
	b := open(t, 8)
	b.look(0, running(1, 2, begin))
	b.due(4*gpu, running(1, 2, begin))
	b.pass(minute, running(1, 2, begin), waiting(2, 3))
	b.s.Now = b.s.Now.Add(minute)
	first := Charge(&b.s, Buffer{}, new(Memory))
	second := Charge(&b.s, Buffer{}, new(Memory))
	if !reflect.DeepEqual(first, second) {
		t.Error("charging the same snapshot twice gives two results")
	}
}

// Carries are exact: a million small steps are due the same as one long one, for a
// rate that no step divides.
func TestSmallStepsSumToTheSameAsOneLongOne(t *testing.T) {
	const steps = 1_000_000
	for _, rate := range []cluster.MicroGPU{1, 333_333, 2_666_667, 7 * gpu / 3, 79_999_999_999} {
		var sum cluster.GPUTime
		var carry int64
		for range steps {
			var g cluster.GPUTime
			g, carry = cluster.Accrue(rate, 7, carry)
			sum += g
		}
		whole, rest := cluster.Accrue(rate, 7*steps, 0)
		if sum != whole || carry != rest {
			t.Errorf("rate %d: a million steps give %d and %d over, one gives %d and %d", rate, sum, carry, whole, rest)
		}
	}
}

func TestTheBooksDoNotDependOnHowOftenWeLook(t *testing.T) {
	job := running(1, 3, begin)
	total := func(steps int) (cluster.TenantPool, cluster.Record) {
		b := open(t, 8)
		b.look(0, job)
		b.due(2_333_333, job)
		for range steps {
			b.pass(cluster.Hour/cluster.Span(steps), job)
		}
		row := *b.row("t")
		row.Buckets = nil
		return row, b.record(1)
	}
	row, record := total(1)
	for _, steps := range []int{2, 60, 3600} {
		if r, j := total(steps); !reflect.DeepEqual(r, row) || !reflect.DeepEqual(j, record) {
			t.Errorf("%d looks: %+v %+v\none look: %+v %+v", steps, r, j, row, record)
		}
	}
}

// A year of 80,000 GPUs fits in 64 bits, whether it is charged hourly or at once.
func TestAYearOf80000GPUsDoesNotOverflow(t *testing.T) {
	const n, year = 80_000, 365 * cluster.Day
	for _, steps := range []int{1, 365} {
		b := open(t, n)
		b.s.Settings.CreditCap = year
		job := running(1, n, begin)
		b.look(0, job)
		b.due(n*gpu, job)
		for range steps {
			b.pass(year/cluster.Span(steps), job)
			b.due(n*gpu, job)
		}
		b.charged(1, cluster.Times(n, year))
		row := b.row("t")
		if row.Due != row.Alloc || row.Deficit != 0 || b.record(1).Due != row.Due {
			t.Errorf("%d looks: received %d, due %d, deficit %d, the job due %d", steps, row.Alloc, row.Due, row.Deficit, b.record(1).Due)
		}
		if got := Rho([]cluster.TenantPool{*row}, b.now, 0); got != cluster.Fair {
			t.Errorf("%d looks: rho %s, want 1", steps, got)
		}
	}
}

// The credit of an idle tenant is bounded, and one that is bounded on either side
// does not wrap, however absurd the setting.
func TestTheCreditCap(t *testing.T) {
	b := open(t, 8)
	b.s.Settings.CreditCap = 2 * cluster.Hour
	taker := b.lending()
	b.look(0, taker)
	b.due(4*gpu, taker)
	for range 10 {
		b.pass(cluster.Hour, taker)
		b.due(4*gpu, taker)
	}
	if got, want := b.row("t").Deficit, cluster.Times(4, 2*cluster.Hour); got != want {
		t.Errorf("idle for ten hours: owed %d GPU-ms, want the cap of %d", got, want)
	}
	// A cap that shrinks forgives nothing that was owed before, but adds nothing.
	b.s.Settings.CreditCap = cluster.Hour
	b.pass(cluster.Hour, taker)
	if got := b.row("t").Deficit; got != cluster.Times(4, 2*cluster.Hour) {
		t.Errorf("after the cap shrank: owed %d GPU-ms", got)
	}
	b.s.Settings.CreditCap = 1<<63 - 1
	b.pass(cluster.Hour, taker)
	if got := b.row("t").Deficit; got != cluster.Times(4, 3*cluster.Hour) {
		t.Errorf("without a cap: owed %d GPU-ms, want another hour", got)
	}
	row := *b.row("t")
	Settle(&b.s.Ledger, []cluster.MicroGPU{4 * gpu, 4 * gpu}, []cluster.MicroGPU{4 * gpu, 4 * gpu}, nil, []cluster.MicroGPU{8 * gpu, 8 * gpu}, make([]cluster.MicroGPU, 4), &b.s.Settings, true)
	if got := b.row("t").Deficit; got != row.Deficit {
		t.Errorf("settling changed the deficit from %d to %d", row.Deficit, got)
	}
}

// New tenants stand first: as far behind as the furthest, but no further than
// anybody may be. A debt is forgiven down to the largest gang for one term.
func TestSettle(t *testing.T) {
	b := open(t, 8)
	b.s.Tenants = []cluster.Tenant{{Name: "new", Weight: 1}, {Name: "owed", Weight: 1}, {Name: "owing", Weight: 1}}
	b.look(0)
	owed, owing := b.row("owed"), b.row("owing")
	owed.Base, owed.Entitlement, owed.Deficit = 4*gpu, 4*gpu, cluster.Times(4, cluster.Hour)
	owing.Base, owing.Entitlement, owing.Deficit = 4*gpu, 4*gpu, -cluster.Times(8, 10*cluster.Hour)
	Settle(&b.s.Ledger, []cluster.MicroGPU{gpu, 3 * gpu, 3 * gpu}, []cluster.MicroGPU{2 * gpu, 3 * gpu, 3 * gpu}, nil, []cluster.MicroGPU{0, 0, 4 * gpu, 0}, make([]cluster.MicroGPU, 4), &b.s.Settings, true)
	if got, want := b.row("new").Deficit, cluster.Times(2, cluster.Hour); got != want {
		t.Errorf("the new tenant is owed %d GPU-ms, want an hour of its quota: %d", got, want)
	}
	if got, want := b.row("owing").Deficit, -cluster.Times(4, 15*minute); got != want {
		t.Errorf("the debtor owes %d GPU-ms, want its largest gang for a term: %d", got, want)
	}
	if got := b.row("owed"); got.Deficit != cluster.Times(4, cluster.Hour) || got.Entitlement != 3*gpu || got.Base != 3*gpu {
		t.Errorf("the creditor has %+v", got)
	}
}

// No tenant owes the deficit that even tenants with full demand have: it is subtracted from all
// in proportion, in time at their own entitlement, so that differences between them stay.
func TestWasteIsWrittenOff(t *testing.T) {
	for _, c := range []struct {
		name   string
		demand [3]int // of entitlements of 2, 2 and 4 GPUs
		behind [3]cluster.Span
		want   [3]cluster.Span
	}{
		{"all want all", [3]int{2, 9, 4}, [3]cluster.Span{50, 30, 90}, [3]cluster.Span{20, 0, 60}},
		{"one is ahead: nothing to write off", [3]int{2, 9, 4}, [3]cluster.Span{50, -30, 90}, [3]cluster.Span{50, -30, 90}},
		{"who is idle does not count, but keeps its distance", [3]int{0, 9, 4}, [3]cluster.Span{10, 30, 90}, [3]cluster.Span{-20, 0, 60}},
		{"who wants less than its due does not count", [3]int{1, 1, 4}, [3]cluster.Span{10, 30, 90}, [3]cluster.Span{-80, -60, 0}},
		{"nobody wants anything", [3]int{0, 0, 0}, [3]cluster.Span{10, 30, 90}, [3]cluster.Span{10, 30, 90}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := cluster.Ledger{Pools: []cluster.PoolAccount{{Pool: "v100"}}}
			entitled := []cluster.MicroGPU{2 * gpu, 2 * gpu, 4 * gpu}
			for i, name := range []string{"a", "b", "c"} {
				l.Tenants = append(l.Tenants, cluster.TenantPool{Tenant: name, Pool: "v100", Base: entitled[i], Entitlement: entitled[i],
					Demand: cluster.MicroGPU(c.demand[i]) * gpu, Deficit: cluster.Times(int(entitled[i]/gpu), c.behind[i]*minute)})
			}
			Settle(&l, entitled, entitled, nil, []cluster.MicroGPU{99 * gpu, 99 * gpu, 99 * gpu}, make([]cluster.MicroGPU, 3), &cluster.Settings{Term: cluster.Day, CreditCap: cluster.Day}, true)
			for i := range l.Tenants {
				if got := Behind(l.Tenants[i].Deficit, entitled[i]); got != c.want[i]*minute {
					t.Errorf("tenant %s is behind by %s, want %d minutes", l.Tenants[i].Tenant, got, c.want[i])
				}
			}
		})
	}
}

// stopping orders the stop of a job, as a round does after it has charged.
func (b *book) stopping(key cluster.JobKey, s cluster.PendingStop) {
	b.s.Leases = []cluster.Lease{{Job: key, State: cluster.Ending}}
	for i := range b.s.Cases {
		if b.s.Cases[i].Record.Key == key {
			b.s.Cases[i].Record.Stopping = &s
		}
	}
}

// Work that a stop destroys leaves the received time of its job and tenant. It becomes overhead, and the tenant falls behind by it.
func TestDestroyedWorkIsOverhead(t *testing.T) {
	for _, c := range []struct {
		sure           cluster.Certainty
		known, unknown cluster.GPUTime
	}{{cluster.KnownLoss, 1, 0}, {cluster.BoundedLoss, 0, 0}, {cluster.UnknownLoss, 0, 1}} {
		b := open(t, 8)
		b.look(0, running(1, 4, begin))
		b.s.Ledger.Tenants[0].Entitlement, b.s.Ledger.Tenants[0].Demand = 4*gpu, 4*gpu
		b.pass(10*minute, running(1, 4, begin))
		b.stopping(1, cluster.PendingStop{Since: begin.Add(6 * minute), Certainty: c.sure})
		b.s.Cases[0].Record.Acted = b.now.Add(4 * second)
		b.pass(10*second, completing(running(1, 4, begin), b.now))
		b.charged(1, cluster.Times(4, 10*minute+4*second)) // it may still be that it has ended by itself
		b.pass(10*second, requeued(running(1, 4, begin), b.now))
		b.charged(1, cluster.Times(4, 6*minute))
		lost := cluster.Times(4, 4*minute+4*second)
		b.overhead(lost + cluster.Times(4, 6*second))
		if r := b.record(1); r.Lost != lost || r.KnownLost != c.known*lost || r.UnknownLost != c.unknown*lost || r.Stopping != nil {
			t.Errorf("%s: %d GPU-ms lost, %d of it known, %d unknown; want %d", c.sure, r.Lost, r.KnownLost, r.UnknownLost, lost)
		}
		if got, want := b.row("t").Deficit, cluster.Times(4, 10*minute+20*second)-cluster.Times(4, 6*minute); got != want {
			t.Errorf("%s: the tenant is %d GPU-ms behind, want %d", c.sure, got, want)
		}
		if got := b.row("t").Destroyed; got != lost {
			t.Errorf("%s: %d GPU-ms are to be taken off what it uses, want %d", c.sure, got, lost)
		}
	}
}

// A job that ended before the requeue reached it lost nothing.
func TestAJobThatEndedBeforeItsStopLostNothing(t *testing.T) {
	for _, c := range []struct {
		what string
		now  cluster.Case
	}{
		{"completed", done(running(1, 4, begin), begin.Add(10*minute+second))},
		{"gone", gone(1, 4)},
		{"requeued by others, the lease was another by then", requeued(running(1, 4, begin), begin.Add(10*minute+second))},
	} {
		b := open(t, 8)
		b.look(0, running(1, 4, begin))
		b.pass(10*minute, running(1, 4, begin))
		b.stopping(1, cluster.PendingStop{Since: begin})
		if c.now.Job.State == cluster.Waiting {
			b.s.Leases[0].State = cluster.Active
		}
		b.pass(10*second, c.now)
		if r := b.record(1); r.Lost != 0 || r.Alloc < cluster.Times(4, 10*minute) || r.Stopping != nil {
			t.Errorf("%s: %d GPU-ms lost, %d received", c.what, r.Lost, r.Alloc)
		}
	}
}

// Of a job that had run before we came no more is taken back than was charged.
func TestNoMoreIsTakenBackThanWasCharged(t *testing.T) {
	b := open(t, 8)
	old := running(1, 4, begin.Add(-cluster.Hour))
	b.look(0, old)
	b.pass(minute, old)
	b.stopping(1, cluster.PendingStop{Since: old.Job.Start})
	b.pass(10*second, requeued(old, b.now))
	b.charged(1, 0)
	if got, want := b.record(1).Lost, cluster.Times(4, cluster.Hour+minute); got != want {
		t.Errorf("%d GPU-ms lost, want %d", got, want)
	}
}
