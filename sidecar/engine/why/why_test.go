package why_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/entitle"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/round/roundtest"
	"github.com/fairlease/fairlease/sidecar/engine/speeds"
	"github.com/fairlease/fairlease/sidecar/engine/why"
)

const (
	now = roundtest.Now
	gpu = cluster.WholeGPU
)

// open returns the input of the reasons on a snapshot after a choice that decided nothing.
func open(s *cluster.Snapshot) *why.Input {
	in, leases := roundtest.Facts(s)
	found, due := new(eligible.Nodes).Find(in, leases, nil), new(entitle.Due)
	learnt := speeds.Learn(in, found, new(profile.Memory))
	due.Divide(in, found, learnt, due.Open(in, found, learnt, cluster.Ledger{}), nil, nil)
	n := len(s.Cases)
	return &why.Input{In: in, Found: found, Due: due, Owes: make([]budget.Owe, n), Leases: leases, Marks: make([]round.Mark, n), Refused: make([]round.Refusal, n)}
}

func statuses(b *why.Input) []cluster.JobStatus {
	return why.Statuses(b, round.BeneficiariesOf(b.Leases, b.Claims, b.Marks), nil)
}

func waits(id int64, gpus int) cluster.Case {
	c := roundtest.Job(id, "bio", gpus, cluster.Waiting)
	c.Job.Request.Model = "v100"
	return c
}

func runs(id int64) cluster.Case {
	return roundtest.On(roundtest.Job(id, "bio", 2, cluster.Running), "a", "v100", 2)
}

// A job with a lease is told how it came to it, and how it ends.
func TestReasonsOfLeases(t *testing.T) {
	const end = now + 5000
	claims := []cluster.Claim{{Job: 9, Pool: "v100", Nodes: []cluster.Holding{{Node: "a", Model: "v100", Size: cluster.Whole(2)}}}}
	for _, c := range []struct {
		name   string
		change func(s *cluster.Snapshot, l *cluster.Lease)
		choice func(b *why.Input)
		want   cluster.Reason // in pool v100, of two GPUs
	}{
		{"it holds its GPUs", func(*cluster.Snapshot, *cluster.Lease) {}, nil, cluster.Reason{Code: cluster.ReasonHolding, Until: end}},
		{"it began before fairlease looked", func(_ *cluster.Snapshot, l *cluster.Lease) { l.Adopted = true }, nil, cluster.Reason{Code: cluster.ReasonAdopted, Until: end}},
		{"it is renewed now", func(_ *cluster.Snapshot, l *cluster.Lease) { l.Adopted = true }, func(b *why.Input) { b.Marks[0].Began = true }, cluster.Reason{Code: cluster.ReasonRenewed, Until: end}},
		{"it is never reclaimed", func(s *cluster.Snapshot, _ *cluster.Lease) {
			s.Cases[0].Control, s.Cases[0].ControlWhy = cluster.NoReclaim, "session"
		}, nil,
			cluster.Reason{Code: cluster.ReasonKept, Until: end, Note: "session"}},
		{"it is exempt, and noticed", func(s *cluster.Snapshot, l *cluster.Lease) {
			l.State = cluster.Noticed
			s.Overrides = []cluster.Override{{ID: 1, Kind: cluster.Exempt, Scope: "user", Name: "ann", Until: now + 1, Reason: "demo"}}
		}, nil, cluster.Reason{Code: cluster.ReasonExempt, Until: end, Note: "demo"}},
		{"it had its notice for another job", func(_ *cluster.Snapshot, l *cluster.Lease) { l.State = cluster.Noticed }, func(b *why.Input) { b.Claims = claims }, cluster.Reason{Code: cluster.ReasonNotice, Until: end, For: 9}},
		{"it goes to another model", func(_ *cluster.Snapshot, l *cluster.Lease) { l.State = cluster.Noticed }, func(b *why.Input) { b.Moves = map[int]round.Move{0: {To: "k80", Trial: true, Speed: 700}} },
			cluster.Reason{Code: cluster.ReasonNotice, Until: end, To: "k80", Trial: true, Speed: 700}},
		{"it ends for another job", func(_ *cluster.Snapshot, l *cluster.Lease) { l.State = cluster.Ending }, func(b *why.Input) { b.Claims = claims }, cluster.Reason{Code: cluster.ReasonEnding, Until: end, For: 9}},
		{"it is recalled", func(_ *cluster.Snapshot, l *cluster.Lease) { l.State, l.Why = cluster.Ending, round.Recalled }, func(b *why.Input) { b.Claims, b.Marks[0].Beneficiary = claims, 7 },
			cluster.Reason{Code: cluster.ReasonRecalled, Until: end, For: 7}},
		{"it is granted now", func(s *cluster.Snapshot, l *cluster.Lease) {
			s.Cases[0], l.State = key(s, waits(7, 2)), cluster.Granted
		}, func(b *why.Input) { b.Marks[0].Began = true }, cluster.Reason{Code: cluster.ReasonGranted, Until: end}},
		{"it was granted before, and Slurm says why it waits", func(s *cluster.Snapshot, l *cluster.Lease) {
			s.Cases[0], l.State = key(s, waits(7, 2)), cluster.Granted
			s.Cases[0].Job.PendingReason = "Resources"
		}, nil, cluster.Reason{Code: cluster.ReasonStarting, Until: end, Note: "Resources"}},
		{"its nodes boot", func(s *cluster.Snapshot, l *cluster.Lease) {
			s.Cases[0].Job.State, l.State = cluster.Configuring, cluster.Granted
		}, func(b *why.Input) { b.Marks[0].Began = true },
			cluster.Reason{Code: cluster.ReasonStarting, Note: "CONFIGURING, its nodes boot or are prepared; the term begins when the job does"}},
		{"it follows another job", func(*cluster.Snapshot, *cluster.Lease) {}, func(b *why.Input) { b.Leases[0].State, b.Leases[0].Behind = cluster.Granted, 4 }, cluster.Reason{Code: cluster.ReasonFollows, Until: end, For: 4, Note: "a"}},
		{"it has cells of its tenant", func(s *cluster.Snapshot, l *cluster.Lease) {
			s.Cells, l.Class = &cluster.Cells{}, cluster.Opportunistic
		}, nil, cluster.Reason{Code: cluster.ReasonHolding, Until: end, Right: cluster.Opportunistic}},
		{"there are no cells", func(_ *cluster.Snapshot, l *cluster.Lease) { l.Class = cluster.Opportunistic }, nil, cluster.Reason{Code: cluster.ReasonHolding, Until: end}},
		{"its tenant is a minute behind", func(*cluster.Snapshot, *cluster.Lease) {}, func(b *why.Input) { b.Due.Rows.At(0, 1).Deficit, b.Due.Rows.At(0, 1).Entitlement = 120_000, 2*gpu },
			cluster.Reason{Code: cluster.ReasonHolding, Until: end, Behind: cluster.Minute}},
		{"its model vanished", func(*cluster.Snapshot, *cluster.Lease) {}, func(b *why.Input) { b.Leases[0].Pool = "p100" }, cluster.Reason{Code: cluster.ReasonHolding, Until: end, Pool: "p100"}},
	} {
		s := roundtest.Snapshot(runs(7))
		l := cluster.Lease{Job: 1, Term: 1, State: cluster.Active, Pool: "v100", Size: cluster.Whole(2), Nodes: []cluster.Holding{{Node: "a", Model: "v100", Size: cluster.Whole(2)}}, Granted: now - 1, End: end}
		c.change(s, &l)
		s.Leases = []cluster.Lease{l}
		b := open(s)
		if c.choice != nil {
			c.choice(b)
		}
		if c.want.Need = cluster.CountOf(2); c.want.Pool == "" {
			c.want.Pool = "v100"
		}
		if d := cmp.Diff(c.want, statuses(b)[0].Reason); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// key gives a case the key of the first of a snapshot.
func key(s *cluster.Snapshot, c cluster.Case) cluster.Case {
	c.Record.Key, c.Record.ID = s.Cases[0].Record.Key, c.Job.ID
	return c
}

// A job without a lease is told the first thing that keeps it from one, and when that may change.
func TestReasonsOfWaitingJobs(t *testing.T) {
	passed := func(code cluster.Code) func(b *why.Input) {
		return func(b *why.Input) {
			b.Refused[0] = round.Refusal{Rank: 3, Passed: &round.Passed{Code: code, Pool: 1, Free: 1, Behind: 5, Other: "nlp", OtherBehind: 8, For: 6}}
		}
	}
	behind := cluster.Reason{Code: cluster.ReasonBehind, Pool: "v100", Free: cluster.CountOf(1), Behind: 5, Other: "nlp", OtherBehind: 8, For: 6, Rank: 3}
	as := func(r cluster.Reason, change func(r *cluster.Reason)) cluster.Reason { change(&r); return r }
	for _, c := range []struct {
		name   string
		change func(s *cluster.Snapshot)
		choice func(b *why.Input)
		want   cluster.Reason
	}{
		{"nothing is known", func(*cluster.Snapshot) {}, func(b *why.Input) { b.Refused = nil }, cluster.Reason{Code: cluster.ReasonBehind}},
		{"another tenant goes first", func(*cluster.Snapshot) {}, passed(cluster.ReasonBehind), behind},
		{"its tenant's budget is used up", func(s *cluster.Snapshot) { s.Tenants[0].Budget = cluster.TenantBudget{Since: 1, Until: now + 9} }, passed(cluster.ReasonBehind),
			as(behind, func(r *cluster.Reason) {
				r.Code, r.Until, r.Budget = cluster.ReasonSpent, now+9, &cluster.TenantBudget{Since: 1, Until: now + 9}
			})},
		{"its budget is used up, and it is held back for another cause", func(s *cluster.Snapshot) { s.Tenants[0].Budget = cluster.TenantBudget{Since: 1, Until: now + 9} }, passed(cluster.ReasonThreshold),
			as(behind, func(r *cluster.Reason) { r.Code = cluster.ReasonThreshold })},
		{"a limit binds it", func(*cluster.Snapshot) {}, func(b *why.Input) {
			passed(cluster.ReasonBehind)(b)
			b.Refused[0].Passed.Bound = &cluster.BindLimit{Until: now + 7}
		}, as(behind, func(r *cluster.Reason) { r.Bound, r.Until = &cluster.BindLimit{Until: now + 7}, now+7 })},
		{"its grant failed, and it may displace in a term", func(s *cluster.Snapshot) {
			s.Cases[0].Record.Failed, s.Cases[0].Record.AvoidUntil, s.Cases[0].Record.SlurmSaid = 2, now, "BadConstraints"
		}, passed(cluster.ReasonFailed), as(behind, func(r *cluster.Reason) {
			r.Code, r.Note, r.Until = cluster.ReasonFailed, "BadConstraints", now.Add(15*cluster.Minute)
		})},
		{"its grant failed long ago: it asks for idle GPUs", func(s *cluster.Snapshot) { s.Cases[0].Record.SlurmSaid = "BadConstraints" }, passed(cluster.ReasonFailed), as(behind, func(r *cluster.Reason) { r.Code = cluster.ReasonIdleOnly })},
		{"it is a probe of idle GPUs", func(s *cluster.Snapshot) { s.Cases[0].Record.SlurmSaid = "BadConstraints" }, func(b *why.Input) { passed(cluster.ReasonFailed)(b); b.Found.Can[0].Probes = round.IdleProbe },
			as(behind, func(r *cluster.Reason) { r.Code, r.Note = cluster.ReasonFailed, "BadConstraints" })},
		{"a claim is made for it", func(*cluster.Snapshot) {}, func(b *why.Input) {
			passed(cluster.ReasonBehind)(b)
			b.Claims = []cluster.Claim{{Job: 0}, {Job: 1, Pool: "v100", At: now + 4}, {Job: 9}}
		}, cluster.Reason{Code: cluster.ReasonClaim, Pool: "v100", Until: now + 4}},
		{"GPUs are gathered for it", func(*cluster.Snapshot) {}, func(b *why.Input) { b.Claims = []cluster.Claim{{Job: 1, Pool: "v100", At: now + 4, Gathers: true}} }, cluster.Reason{Code: cluster.ReasonGather, Pool: "v100"}},
		{"a claim is made for the next job", func(*cluster.Snapshot) {}, func(b *why.Input) { passed(cluster.ReasonBehind)(b); b.Claims = []cluster.Claim{{Job: 2}} }, behind},
		{"its virtual cluster says why", func(*cluster.Snapshot) {}, func(b *why.Input) { b.Refused[0].Cell = &cluster.Reason{Code: cluster.ReasonThreshold, Chain: "x"} }, cluster.Reason{Code: cluster.ReasonThreshold, Chain: "x"}},
		{"it is held, and its virtual cluster says why", func(s *cluster.Snapshot) { s.Cases[0].Job.Inactive = "held" }, func(b *why.Input) {
			b.Refused[0].Cell = &cluster.Reason{Code: cluster.ReasonThreshold, Chain: "x"}
			b.Claims = []cluster.Claim{{Job: 1, Pool: "v100", At: now + 4}}
		}, cluster.Reason{Code: cluster.ReasonInactive, Note: "held"}},
		{"its begin time is to come", func(s *cluster.Snapshot) { s.Cases[0].Record.UserBegin = now + 6 }, nil, cluster.Reason{Code: cluster.ReasonInactive, Note: "begin", Until: now + 6}},
		{"it is not managed", func(s *cluster.Snapshot) { s.Cases[0].Control, s.Cases[0].ControlWhy = cluster.Unmanaged, "cpu" }, nil, cluster.Reason{Code: cluster.ReasonUntouched, Note: "cpu"}},
		{"it is not managed, and has ended", func(s *cluster.Snapshot) {
			s.Cases[0].Control, s.Cases[0].ControlWhy, s.Cases[0].Job.State = cluster.Unmanaged, "cpu", cluster.Done
		}, nil, cluster.Reason{Code: cluster.ReasonUntouched, Note: "cpu"}},
	} {
		s := roundtest.Snapshot(waits(7, 2))
		c.change(s)
		b := open(s)
		if c.choice != nil {
			c.choice(b)
		}
		c.want.Need = cluster.CountOf(2)
		if d := cmp.Diff(c.want, statuses(b)[0].Reason); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// Where users share equally, a waiting job is told the user of its tenant that is further behind and waits, too.
func TestReasonsWithUsers(t *testing.T) {
	for _, c := range []struct {
		name   string
		users  []cluster.GPUTime
		change func(b *why.Input)
		want   *cluster.Inside // of the first user's job
	}{
		{"the other is further behind", []cluster.GPUTime{3, 4}, nil, &cluster.Inside{User: "bob"}},
		{"both are equal", []cluster.GPUTime{4, 4}, nil, nil},
		{"users do not matter", nil, nil, nil},
		{"the other has GPUs", []cluster.GPUTime{3, 4}, func(b *why.Input) { b.Leases[1] = &cluster.Lease{Pool: "v100", Nodes: []cluster.Holding{{}}} }, nil},
		{"the other may not have any", []cluster.GPUTime{3, 4}, func(b *why.Input) { b.Found.Can[1].Eligible = false }, nil},
		{"a claim is made for the first", []cluster.GPUTime{3, 4}, func(b *why.Input) { b.Claims = []cluster.Claim{{Job: 1}} }, nil},
		{"its virtual cluster orders its jobs", []cluster.GPUTime{3, 4}, func(b *why.Input) { b.Refused[0].Cell = &cluster.Reason{Inside: &cluster.Inside{Site: true}} }, &cluster.Inside{Site: true}},
		{"its virtual cluster has levels", []cluster.GPUTime{3, 4}, func(b *why.Input) { b.Refused[0].Cell = &cluster.Reason{Inside: &cluster.Inside{Above: 2}} }, &cluster.Inside{Above: 2, User: "bob"}},
		{"its user has no account", []cluster.GPUTime{3, 4}, func(b *why.Input) { b.In.Cases[0].User = -1 }, nil},
	} {
		b := open(roundtest.Snapshot(waits(7, 1), waits(8, 1)))
		b.Users, b.In.Cases[0].User, b.In.Cases[1].User = c.users, 0, 1
		b.Due.Ledger.Users = []cluster.UserAccount{{User: "ann"}, {User: "bob"}}
		if c.change != nil {
			c.change(b)
		}
		got := statuses(b)
		if d := cmp.Diff(c.want, got[0].Reason.Inside); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if got[1].Reason.Inside != nil {
			t.Errorf("%s: the one furthest behind goes after %+v", c.name, got[1].Reason.Inside)
		}
	}
}

// A waiting job is told the first end of a lease in a pool that could serve it.
func TestEndsThatJobsWaitFor(t *testing.T) {
	either := waits(7, 1)
	either.Job.Request.Model = ""
	b := open(roundtest.Snapshot(either, runs(8), runs(9), runs(10), runs(11)))
	b.Leases = []*cluster.Lease{nil, {Pool: "v100", End: now + 9}, {Pool: "k80", End: now + 5}, {Pool: "p100", End: now + 1}, {Pool: "v100", End: now + 20}}
	for i := range b.Leases[1:] {
		b.Leases[1+i].Nodes = []cluster.Holding{{Node: "a"}}
	}
	if got := statuses(b)[0].Reason.Until; got != now+5 {
		t.Errorf("it waits until %d, want the end in k80", got-now)
	}
	b.Leases[2].End = now + 11
	if got := statuses(b)[0].Reason.Until; got != now+9 {
		t.Errorf("it waits until %d, want the end in v100", got-now)
	}
}

// A job that has ended has a last status in the round in which that is seen. Statuses replace those of the round before.
func TestLastStatus(t *testing.T) {
	b := open(roundtest.Snapshot(waits(7, 1), waits(8, 1), waits(9, 1)))
	b.In.Records[0].Done, b.In.Records[1].Done = now-1, now
	out := why.Statuses(b, round.BeneficiariesOf(b.Leases, nil, b.Marks), make([]cluster.JobStatus, 7))
	if len(out) != 2 || out[0].Job != 2 || out[1].Job != 3 {
		t.Errorf("statuses %+v, want those of jobs 2 and 3", out)
	}
}

// A tenant's status is its account, with its jobs: those that hold GPUs, and those that could have some.
func TestTenants(t *testing.T) {
	boots := roundtest.On(roundtest.Job(9, "bio", 1, cluster.Configuring), "a", "v100", 1)
	none := waits(11, 1)
	none.Record.Tenant = ""
	requeued := waits(13, 1) // in this second: it could not be granted a lease yet
	requeued.Job.Restarts, requeued.Job.Submit = 1, now
	s := roundtest.Snapshot(runs(7), waits(8, 1), boots, waits(10, 9), none, runs(12), requeued)
	s.Cases[5].Job.State = cluster.Done
	s.Tenants[0].Weight = 3
	for _, c := range []struct {
		name             string
		entitled, demand cluster.MicroGPU
		holds, waiting   int
		borrowed, lent   cluster.MicroGPU
	}{
		{"it holds what it is due", 3 * gpu, 4 * gpu, 3, 1, 0, 0},
		{"it holds more", gpu / 2, 4 * gpu, 3, 1, 5 * gpu / 2, 0},
		{"it wants more than it holds", 5 * gpu, 9 * gpu, 3, 1, 0, 0},
		{"it wants less than it is due", 5 * gpu, 4 * gpu, 3, 1, 0, gpu},
		{"it wants less than it holds", 5 * gpu, gpu, 3, 1, 0, 2 * gpu},
		{"it is due nothing", 0, 4 * gpu, 3, 1, 3 * gpu, 0},
	} {
		b := open(s)
		row := &b.Due.Ledger.Tenants[1]
		row.Entitlement, row.Demand, row.Deficit = c.entitled, c.demand, -60_000
		got := why.Tenants(b, make([]cluster.TenantStatus, 9))
		if x := got[1]; len(got) != 4 || x.Tenant != "bio" || x.Pool != "v100" || x.Weight != 3 || got[2].Weight != 1 || x.Holds != cluster.CountOf(c.holds) || x.Waiting != c.waiting || x.Borrowed != c.borrowed || x.Lent != c.lent {
			t.Errorf("%s: %+v", c.name, x)
		}
		if want := cluster.DueNothing; c.entitled == 0 && got[1].Behind != want || c.entitled == 3*gpu && got[1].Behind != -20*cluster.Second {
			t.Errorf("%s: behind by %d", c.name, got[1].Behind)
		}
	}
}
