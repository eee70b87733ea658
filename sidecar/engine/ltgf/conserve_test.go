package ltgf

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// toy is a node of 8 GPUs whose jobs start, are suspended, are requeued, clean up
// and end at any millisecond; it knows what each really received.
type toy struct {
	*rapid.T
	now      cluster.Instant
	free     int
	jobs     []*toyJob
	attempts []cluster.Attempt
}

type toyJob struct {
	cluster.Case
	gpus     int
	received cluster.GPUTime
	since    cluster.Instant // of its present state
	ran      cluster.Span    // of its present attempt
	doomed   cluster.Instant // its stop is ordered, and destroys what it does from then on; 0 = it is not
	lost     cluster.GPUTime
}

func (y *toy) use(j *toyJob) {
	span := y.now.Sub(j.since)
	j.since = y.now
	switch j.Job.State {
	case cluster.Running:
		j.received += cluster.Times(j.gpus, span)
		j.ran += span
	case cluster.Suspended:
		j.Job.Suspend += span
	}
}

// stir makes something happen to a job.
func (y *toy) stir() {
	j := rapid.SampledFrom(y.jobs).Draw(y.T, "job")
	what := rapid.IntRange(0, 4).Draw(y.T, "what")
	y.use(j)
	runs := j.Job.State == cluster.Running || j.Job.State == cluster.Suspended
	switch {
	case j.Job.State == cluster.Waiting && what <= 2 && j.gpus <= y.free:
		y.free -= j.gpus
		j.Job.State, j.Job.Start, j.Job.Suspend, j.ran = cluster.Running, y.now, 0, 0
		j.Job.Holds = []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(j.gpus)}}
	case j.Job.State == cluster.Waiting && what == 4:
		j.Job.State, j.Job.End = cluster.Done, y.now
	case runs && what == 0:
		j.Job.State = cluster.Suspended
	case runs && what == 1:
		j.Job.State = cluster.Running
	case runs && what == 2: // requeued
		y.over(j, "REQUEUED")
		if j.doomed > 0 {
			lost := cluster.Times(j.gpus, min(y.now.Sub(j.doomed), j.ran))
			j.lost, j.received, j.doomed = j.lost+lost, j.received-lost, 0
		}
		j.Job.State = cluster.Completing
		j.Job.Restarts++
	case runs && what == 3:
		y.over(j, "COMPLETED")
		j.doomed = 0 // it was faster than the requeue
		y.free += j.gpus
		j.Job.State, j.Job.End = cluster.Done, y.now
	case j.Job.State == cluster.Completing:
		y.free += j.gpus
		j.Job.State, j.Job.Holds, j.Job.Submit, j.Job.Start, j.Job.Suspend = cluster.Waiting, nil, y.now, 0, 0
	}
}

func (y *toy) over(j *toyJob, outcome string) {
	y.attempts = append(y.attempts, cluster.Attempt{ID: j.Job.ID, User: j.Job.User, Submit: j.Job.Submit, Start: j.Job.Start, End: y.now,
		GPUs: []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(j.gpus)}}, Outcome: outcome, Suspend: j.Job.Suspend})
}

// order decides after a look which jobs must stop and which may start, as a round does, and drops the leases of those that
// were. Granted and gathered GPUs are idle in the pool's books until a job runs there, whoever is charged for keeping them.
func (y *toy) order(b *book) {
	b.s.Leases, b.s.Claims = nil, nil
	for i, j := range y.jobs {
		r := &b.s.Cases[i].Record
		runs := j.Job.State == cluster.Running || j.Job.State == cluster.Suspended
		if runs && r.Stopping == nil && r.Tenant != "" && rapid.IntRange(0, 2).Draw(y.T, "stop") == 0 {
			j.doomed = j.Job.Start + cluster.Instant(rapid.Int64Range(0, int64(y.now-j.Job.Start)).Draw(y.T, "saved"))
			r.Stopping = &cluster.PendingStop{Since: j.doomed, Certainty: cluster.KnownLoss, Restarts: j.Job.Restarts}
		}
		nodes := []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(j.gpus)}}
		if j.Job.State == cluster.Waiting && r.Stopping == nil && r.Tenant != "" {
			switch rapid.IntRange(0, 3).Draw(y.T, "keep") {
			case 0:
				b.s.Leases = append(b.s.Leases, cluster.Lease{Job: r.Key, State: cluster.Granted, Pool: "v100", Size: cluster.Whole(j.gpus), Nodes: nodes})
			case 1:
				b.s.Claims = append(b.s.Claims, cluster.Claim{Job: r.Key, Pool: "v100", Gathers: true, Nodes: nodes})
			}
		}
		if r.Stopping != nil {
			b.s.Leases = append(b.s.Leases, cluster.Lease{Job: r.Key, State: cluster.Ending})
		}
	}
}

// Whatever happens between looks, and whether or not the history is told: every
// GPU-millisecond of the pool is booked once, and with the history every job is
// charged exactly what it received, less what our stops destroyed of that.
func TestChargeConserves(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		y := &toy{T: rt, now: begin, free: 8}
		history := rapid.Bool().Draw(rt, "history")
		for key := range cluster.JobKey(rapid.IntRange(1, 4).Draw(rt, "jobs")) {
			gpus := rapid.IntRange(1, 8).Draw(rt, "gpus")
			user := rapid.SampledFrom([]string{"u", "v"}).Draw(rt, "user")
			j := &toyJob{Case: waiting(key+1, gpus), gpus: gpus, since: begin}
			j.Job.User, j.Record.User = user, user
			if rapid.IntRange(0, 3).Draw(rt, "stray") == 0 {
				j.Record.Tenant = ""
			}
			y.jobs = append(y.jobs, j)
		}
		b := open(t, 8)
		if rapid.Bool().Draw(rt, "users") {
			b.s.Settings.Users = cluster.UsersEqual
		}
		b.look(0, y.cases()...)
		for range rapid.IntRange(1, 12).Draw(rt, "looks") {
			was := y.now
			for range rapid.IntRange(0, 6).Draw(rt, "events") {
				y.now += cluster.Instant(rapid.IntRange(0, 200_000).Draw(rt, "ms"))
				y.stir()
			}
			y.now += cluster.Instant(rapid.IntRange(1, 100_000).Draw(rt, "ms"))
			for _, a := range y.attempts {
				if history && a.End >= was {
					b.attempts = append(b.attempts, a)
				}
			}
			b.due(4*gpu, b.s.Cases...)
			b.look(y.now.Sub(b.now), y.cases()...)
			y.check(b, history)
			y.order(b)
		}
	})
}

func (y *toy) cases() []cluster.Case {
	out := make([]cluster.Case, len(y.jobs))
	for i, j := range y.jobs {
		y.use(j)
		out[i] = j.Case
	}
	return out
}

func (y *toy) check(b *book, exact bool) {
	if err := balance(b.pool()); err != "" {
		y.Fatal(err)
	}
	if got, want := b.pool().Capacity, cluster.Times(8, b.now.Sub(begin)); got != want {
		y.Fatalf("capacity %d GPU-ms, want %d", got, want)
	}
	var owed, tenant, stray, lost cluster.GPUTime
	for _, u := range b.s.Ledger.Users {
		owed += u.Owed
	}
	if owed != 0 {
		y.Fatalf("the accounts of users sum to %d GPU-ms: %+v", owed, b.s.Ledger.Users)
	}
	for _, j := range y.jobs {
		r := b.record(j.Record.Key)
		if j.Record.Tenant == "" {
			stray += r.Alloc
		} else {
			tenant += r.Alloc
		}
		pending := cluster.GPUTime(0) // its requeue may have been seen, and not yet its end
		if s := r.Stopping; s != nil {
			pending = cluster.Times(j.gpus, s.Work)
		}
		if exact && (r.Alloc-pending != j.received || r.Lost+pending != j.lost || r.KnownLost != r.Lost) {
			y.Fatalf("job %d was charged %d GPU-ms and received %d; %d of %d lost are booked, %d are pending", r.Key, r.Alloc, j.received, r.Lost, j.lost, pending)
		}
		lost += r.Lost
	}
	var window cluster.GPUTime
	for _, bucket := range b.row("t").Buckets {
		if bucket.Alloc < 0 {
			y.Fatalf("less than nothing was received in a part of the window: %+v", b.row("t").Buckets)
		}
		window += bucket.Alloc
	}
	if window != tenant || exact && b.pool().Overhead < lost {
		y.Fatalf("the tenant received %d GPU-ms, in the window %d; of %d lost %d are overhead", tenant, window, lost, b.pool().Overhead)
	}
	if p := b.pool(); p.Tenants != tenant || p.Untouchable != stray || b.row("t").Alloc != tenant {
		y.Fatalf("jobs have %d and %d GPU-ms, the pool %d and %d, the tenant %d", tenant, stray, p.Tenants, p.Untouchable, b.row("t").Alloc)
	}
}
