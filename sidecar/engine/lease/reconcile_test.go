package lease

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

const at = cluster.Instant(1_800_000_000_000)

// lastLook is the time of the previous round.
var lastLook = at.Add(-15 * cluster.Second)

// look reconciles one job with its lease (nil = none) and returns the new lease, the ended leases and the
// record.
func look(c cluster.Case, l *cluster.Lease) (*cluster.Lease, []cluster.Lease, cluster.Record) {
	s := cluster.Snapshot{Now: at, Settings: cluster.Settings{Term: 15 * cluster.Minute, GrantTimeout: cluster.Minute},
		Nodes:  []cluster.Node{{Name: "n1"}},
		Ledger: cluster.Ledger{At: lastLook}}
	c.Record.Key = 1
	if c.Control == "" {
		c.Control = cluster.FullControl
	}
	s.Cases = []cluster.Case{c}
	if l != nil {
		l.Job, l.Term = 1, 3
		s.Leases = []cluster.Lease{*l}
	}
	records := []cluster.Record{c.Record}
	leases, ended, failures := Reconcile(&s, records, &Workspace{})
	for k := range failures {
		failures[k].Put(&records[failures[k].Case])
	}
	return leases[0], ended, records[0]
}

func job(state cluster.JobState) cluster.Case {
	c := cluster.Case{Job: cluster.Job{State: state, Start: at.Add(-cluster.Minute)}}
	if c.Job.Started() || state == cluster.Completing {
		c.Job.Holds = []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(2)}}
	}
	return c
}

func lease(state cluster.LeaseState) *cluster.Lease {
	return &cluster.Lease{State: state, Class: cluster.Shared, Pool: "v100", Size: cluster.Whole(2), Granted: at.Add(-90 * cluster.Second),
		Start: at.Add(-60 * cluster.Second), End: at.Add(10 * cluster.Minute), Nodes: []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(2)}}}
}

// Every state of a lease is combined with every state of its job.
func TestWhatBecomesOfALease(t *testing.T) {
	for _, c := range []struct {
		lease cluster.LeaseState
		job   cluster.JobState
		want  cluster.LeaseState // Over = ended
		why   string
	}{
		{cluster.Granted, cluster.Waiting, cluster.Over, "taken back: not started"},
		{cluster.Granted, cluster.Running, cluster.Active, ""},
		{cluster.Granted, cluster.Suspended, cluster.Active, ""},
		{cluster.Granted, cluster.Configuring, cluster.Granted, ""},
		{cluster.Active, cluster.Configuring, cluster.Granted, ""},
		{cluster.Granted, cluster.Completing, cluster.Granted, ""},
		{cluster.Granted, cluster.Done, cluster.Over, "finished"},
		{cluster.Active, cluster.Waiting, cluster.Over, "requeued by others"},
		{cluster.Active, cluster.Running, cluster.Active, ""},
		{cluster.Active, cluster.Suspended, cluster.Active, ""},
		{cluster.Active, cluster.Completing, cluster.Active, ""},
		{cluster.Active, cluster.Done, cluster.Over, "finished"},
		{cluster.Noticed, cluster.Waiting, cluster.Over, "reclaimed"},
		{cluster.Noticed, cluster.Running, cluster.Noticed, ""},
		{cluster.Noticed, cluster.Done, cluster.Over, "finished"},
		{cluster.Ending, cluster.Waiting, cluster.Over, "reclaimed"},
		{cluster.Ending, cluster.Running, cluster.Ending, ""},
		{cluster.Ending, cluster.Completing, cluster.Ending, ""},
		{cluster.Ending, cluster.Done, cluster.Over, "finished"},
	} {
		t.Run(string(c.lease)+" "+string(c.job), func(t *testing.T) {
			seen := job(c.job)
			seen.Job.End = at.Add(-5 * cluster.Second)
			got, ended, _ := look(seen, lease(c.lease))
			if c.want != cluster.Over {
				if got == nil || got.State != c.want || len(ended) != 0 {
					t.Fatalf("got %+v, ended %+v; want it %s", got, ended, c.want)
				}
				return
			}
			if got != nil || len(ended) != 1 || !strings.HasPrefix(ended[0].Why, c.why) || ended[0].State != cluster.Over || ended[0].Ended == 0 {
				t.Fatalf("got %+v, ended %+v; want it over: %s", got, ended, c.why)
			}
		})
	}
}

func TestALeaseWhoseJobIsGoneIsLost(t *testing.T) {
	c := job(cluster.Done)
	c.Gone = true
	if got, ended, _ := look(c, lease(cluster.Active)); got != nil || len(ended) != 1 || ended[0].Why != "lost" {
		t.Errorf("got %+v, ended %+v", got, ended)
	}
	s := cluster.Snapshot{Now: at, Leases: []cluster.Lease{*lease(cluster.Active)}} // its job is forgotten
	if leases, ended, _ := Reconcile(&s, nil, &Workspace{}); len(leases) != 0 || len(ended) != 1 || ended[0].Why != "lost" {
		t.Errorf("a lease without a case: %+v", ended)
	}
}

func TestAJobThatWeMayNoLongerTouchIsLetGo(t *testing.T) {
	c := job(cluster.Running)
	c.Control = cluster.Unmanaged
	if got, ended, _ := look(c, lease(cluster.Active)); got != nil || len(ended) != 1 || ended[0].Why != "let go" {
		t.Errorf("got %+v, ended %+v", got, ended)
	}
}

// A job that runs without a lease gets one. Slurm started it before the sidecar did, or when its gate
// expired.
func TestARunningJobIsAdopted(t *testing.T) {
	got, _, r := look(job(cluster.Running), nil)
	if got == nil || !got.Adopted || got.State != cluster.Active || got.Size.Devices != 2 || got.Pool != "v100" || got.Term != 1 || r.Terms != 1 {
		t.Fatalf("got %+v", got)
	}
	if want := Next(at, &cluster.Settings{Term: 15 * cluster.Minute}); got.End != want || got.Start != at.Add(-cluster.Minute) {
		t.Errorf("it runs from %s to %s, want from its start to the next boundary %s", got.Start, got.End, want)
	}
	for _, state := range []cluster.JobState{cluster.Waiting, cluster.Completing, cluster.Done} {
		if got, _, _ := look(job(state), nil); got != nil {
			t.Errorf("a job that is %s was given a lease: %+v", state, got)
		}
	}
	c := job(cluster.Running)
	c.Job.Holds = nil // Slurm does not report yet what it holds
	if got, _, _ := look(c, nil); got != nil {
		t.Errorf("a job without GPUs was given a lease: %+v", got)
	}
}

// "A grant that does not start within its timeout is taken back with Slurm's reason,
// that pair of job and nodes is avoided for a while with growing back-off."
func TestAGrantThatDoesNotStart(t *testing.T) {
	c := job(cluster.Waiting)
	c.Job.PendingReason = "Resources"
	young := lease(cluster.Granted)
	young.Granted = at.Add(-59 * cluster.Second)
	if got, _, r := look(c, young); got == nil || r.Failed != 0 {
		t.Fatalf("taken back before the timeout: %+v", got)
	}
	want := []cluster.Span{1, 2, 4, 8, 16, 32, 60, 60}
	for i, minutes := range want {
		_, ended, r := look(c, lease(cluster.Granted))
		if len(ended) != 1 || !strings.Contains(ended[0].Why, "Resources") {
			t.Fatalf("ended %+v, want it taken back with Slurm's reason", ended)
		}
		if r.Failed != i+1 || r.AvoidUntil != at.Add(minutes*cluster.Minute) || r.SlurmSaid != "Resources" || len(r.AvoidNodes) != 1 || r.AvoidNodes[0] != "n1" {
			t.Errorf("failure %d: %+v, want it avoided for %d minutes, and n1 shunned", i+1, r, minutes)
		}
		c.Record = r
	}
	c.Job.State, c.Job.Holds, c.Job.Start = cluster.Running, job(cluster.Running).Job.Holds, at // it starts after all
	if _, _, r := look(c, lease(cluster.Granted)); r.Failed != 0 || r.AvoidUntil != 0 || r.AvoidNodes != nil || r.SlurmSaid != "" {
		t.Errorf("after it started: %+v, want all forgiven", r)
	}
	if got := backOff(1000, cluster.Minute); got != cluster.Hour {
		t.Errorf("after 1000 failures it is avoided for %s", got)
	}
	if got := backOff(1, 2*cluster.Hour); got != 2*cluster.Hour {
		t.Errorf("a timeout of 2 hours gives a back-off of %s", got)
	}
}

// The sidecar was away and may not have carried out the grant: neither the job nor the nodes are at fault.
func TestAGrantThatNobodyWatched(t *testing.T) {
	defer func(was cluster.Instant) { lastLook = was }(lastLook)
	lastLook = at.Add(-90 * cluster.Second)
	got, ended, r := look(job(cluster.Waiting), lease(cluster.Granted))
	if got != nil || len(ended) != 1 || !strings.HasPrefix(ended[0].Why, "taken back") || r.Failed != 0 || r.AvoidUntil != 0 || r.AvoidNodes != nil {
		t.Errorf("got %+v, ended %+v, record %+v", got, ended, r)
	}
}

// A job that keeps failing may not displace others for ever longer times, up to a day.
func TestMayDisplace(t *testing.T) {
	for failed, want := range map[int]cluster.Instant{0: 0, 1: 0, 2: at.Add(15 * cluster.Minute), 3: at.Add(30 * cluster.Minute),
		8: at.Add(16 * cluster.Hour), 9: at.Add(cluster.Day), 1000: at.Add(cluster.Day)} {
		r := cluster.Record{Failed: failed, AvoidUntil: at}
		if got := MayDisplace(&r, 15*cluster.Minute); got != want {
			t.Errorf("after %d failures: %s, want %s", failed, got, want)
		}
	}
}

// A job that is held, or whose dependency returns, does not fail: its user decided it.
func TestAGrantToAJobThatIsHeldIsTakenBackWithoutBlame(t *testing.T) {
	c := job(cluster.Waiting)
	c.Job.Inactive, c.Job.PendingReason = "held", "JobHeldUser"
	young := lease(cluster.Granted)
	young.Granted = at.Add(-cluster.Second)
	got, ended, r := look(c, young)
	if got != nil || len(ended) != 1 || ended[0].Why != "taken back: held" || r.Failed != 0 || r.AvoidUntil != 0 {
		t.Errorf("got %+v, ended %+v, record %+v", got, ended, r)
	}
}

// A grant that started, and was requeued by others before it was seen running, did not fail. It is not about
// to start either.
func TestAGrantThatOthersRequeued(t *testing.T) {
	for _, state := range []cluster.JobState{cluster.Completing, cluster.Waiting} {
		c := job(state)
		c.Job.Restarts = 1
		got, ended, r := look(c, lease(cluster.Granted))
		if got != nil || len(ended) != 1 || ended[0].Why != "requeued by others" || r.Failed != 0 {
			t.Errorf("%s: got %+v, ended %+v, record %+v", state, got, ended, r)
		}
	}
}

// At most the work after the notice is lost to a reclaim.
func TestWorkLostToAReclaim(t *testing.T) {
	l := lease(cluster.Ending)
	l.NoticedAt, l.End = at.Add(-70*cluster.Second), at.Add(-10*cluster.Second)
	if _, _, r := look(job(cluster.Waiting), l); r.Lost != cluster.Times(2, cluster.Minute) {
		t.Errorf("lost %d GPU-ms, want two GPUs for the minute from notice to end", r.Lost)
	}
	l = lease(cluster.Ending) // never noticed: the whole lease
	l.Start, l.End = at.Add(-30*cluster.Second), at
	if _, _, r := look(job(cluster.Waiting), l); r.Lost != cluster.Times(2, 30*cluster.Second) {
		t.Errorf("lost %d GPU-ms, want two GPUs for 30 s", r.Lost)
	}
}

// With a stop budget only stops of ours destroy work. After its notice a job may requeue itself, or its node may fail.
func TestNoWorkIsLostToARequeueByOthersAfterTheNotice(t *testing.T) {
	for _, set := range []cluster.Settings{{StopAllowance: cluster.Minute}, {StopOverheadMilli: 20}} {
		for _, state := range []cluster.LeaseState{cluster.Noticed, cluster.Ending} {
			l, c := lease(state), job(cluster.Waiting)
			l.Job, l.Term, l.NoticedAt, c.Control, c.Record.Key = 1, 3, at.Add(-30*cluster.Second), cluster.FullControl, 1
			s := cluster.Snapshot{Now: at, Settings: set, Cases: []cluster.Case{c}, Leases: []cluster.Lease{*l}}
			records := []cluster.Record{c.Record}
			if _, ended, failures := Reconcile(&s, records, &Workspace{}); len(ended) != 1 || len(failures) != 0 {
				t.Errorf("%s: ended %+v, found %+v: want no loss", state, ended, failures)
			}
		}
	}
}

// A job may end between its renewal and the boundary. Its next lease then ends before it begins.
func TestAnEndBeforeTheNextTerm(t *testing.T) {
	c := job(cluster.Done)
	c.Job.End = at.Add(-2 * cluster.Second)
	l := lease(cluster.Active)
	l.Granted, l.Start, l.End = at.Add(-cluster.Minute), at, at.Add(15*cluster.Minute)
	if _, ended, _ := look(c, l); len(ended) != 1 || ended[0].Ended != c.Job.End {
		t.Errorf("ended %+v, want the lease to end with the job, two seconds ago", ended)
	}
}

// A requeued job that Slurm has started again is not reclaimed a second time.
func TestARequeueThatWasOvertakenByItsNextStart(t *testing.T) {
	c := job(cluster.Running)
	c.Job.Start = at.Add(-cluster.Second)
	got, ended, _ := look(c, lease(cluster.Ending))
	if len(ended) != 1 || ended[0].Why != "reclaimed" || got == nil || !got.Adopted {
		t.Errorf("got %+v, ended %+v; want the old lease over and a new one adopted", got, ended)
	}
}
