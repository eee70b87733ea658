package loop

import (
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// runs is a job that saves at SIGTERM, and runs.
func runs(change ...func(*cluster.Job)) cluster.Job {
	j := batch(1)
	j.State, j.Start, j.Name, j.QOS = cluster.Running, noon, "train", "normal"
	j.Holds = []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(1)}}
	j.Hints = cluster.ParseHints("kind=a,min-lease=30m", 0)
	j.Declares = cluster.Saving{Manner: cluster.SavesOnNotice, Takes: cluster.Minute, Signal: "USR1", Source: cluster.FromDeclaration, Evidence: "saves=notice"}
	for _, c := range change {
		c(&j)
	}
	return j
}

// The changes of a running job by its owner: those that count at once, and those that count from its next start.
func TestWhatOwnersChangeOfRunningJobs(t *testing.T) {
	never := func(j *cluster.Job) { j.Declares, j.Hints = cluster.Saving{}, nil }
	says := func(text string, s cluster.Saving) func(*cluster.Job) {
		return func(j *cluster.Job) { j.Hints, j.Declares = cluster.ParseHints(text, 0), s }
	}
	for name, c := range map[string]struct {
		was, change, want func(*cluster.Job) // of runs; want nil = as it was
		changed           string
	}{
		"Requeue=0":                   {change: func(j *cluster.Job) { j.Requeueable = false }, changed: "Requeue"},
		"Requeue=1 counts":            {was: func(j *cluster.Job) { j.Requeueable = false }, change: func(j *cluster.Job) {}, want: func(j *cluster.Job) {}},
		"another account":             {change: func(j *cluster.Job) { j.Account = "vision" }, changed: "Account"},
		"another QOS":                 {change: func(j *cluster.Job) { j.QOS = "debug" }, changed: "QOS"},
		"another partition":           {change: func(j *cluster.Job) { j.Partitions = []string{"free"} }, changed: "Partition"},
		"that of several it runs in":  {was: func(j *cluster.Job) { j.Partitions = []string{"big", "gpu"} }, change: func(j *cluster.Job) {}, want: func(j *cluster.Job) {}},
		"another name":                {change: func(j *cluster.Job) { j.Name = "other" }, changed: "JobName"},
		"a reservation":               {change: func(j *cluster.Job) { j.Reservation = "course" }, changed: "Reservation"},
		"no reservation":              {was: func(j *cluster.Job) { j.Reservation = "course" }, change: func(j *cluster.Job) {}, want: func(j *cluster.Job) {}},
		"a hand-over's reservation":   {change: func(j *cluster.Job) { j.Reservation = cluster.ReservationPrefix + "1_1" }, want: func(j *cluster.Job) { j.Reservation = cluster.ReservationPrefix + "1_1" }},
		"its request":                 {change: func(j *cluster.Job) { j.Request = cluster.Request{Size: cluster.Whole(1), Unplaceable: "contiguous"} }},
		"a lower time limit":          {change: func(j *cluster.Job) { j.Limit = cluster.Minute }, want: func(j *cluster.Job) { j.Limit = cluster.Minute }},
		"its licences":                {change: func(j *cluster.Job) { j.Licenses = "matlab:1" }, want: func(j *cluster.Job) { j.Licenses = "matlab:1" }},
		"no hints":                    {change: never, want: func(j *cluster.Job) { j.Hints = &cluster.Hints{Kind: "a"}; j.Declares.Signal = "" }, changed: "Comment"},
		"saves=never":                 {change: says("kind=a,min-lease=30m", cluster.Saving{Manner: cluster.SavesNever, Signal: "USR1"}), changed: "Comment"},
		"another kind":                {change: func(j *cluster.Job) { j.Hints = cluster.ParseHints("kind=b,min-lease=30m", 0) }, changed: "Comment"},
		"a longer minimum lease":      {change: func(j *cluster.Job) { j.Hints = cluster.ParseHints("kind=a,min-lease=1h", 0) }, changed: "Comment"},
		"a shorter minimum lease":     {change: func(j *cluster.Job) { j.Hints = cluster.ParseHints("kind=a,min-lease=10m", 0) }, want: func(j *cluster.Job) { j.Hints = cluster.ParseHints("kind=a,min-lease=10m", 0) }},
		"gpus=idle counts":            {change: func(j *cluster.Job) { j.Hints = cluster.ParseHints("kind=a,min-lease=30m,gpus=idle", 0) }, want: func(j *cluster.Job) { j.Hints = cluster.ParseHints("kind=a,min-lease=30m,gpus=idle", 0) }},
		"gpus=idle is not taken back": {was: func(j *cluster.Job) { j.Hints = cluster.ParseHints("kind=a,min-lease=30m,gpus=idle", 0) }, change: func(j *cluster.Job) {}, changed: "Comment"},
		"a longer save":               {change: func(j *cluster.Job) { j.Declares.Takes = cluster.Hour }, changed: "Comment"},
		"a shorter save":              {change: func(j *cluster.Job) { j.Declares.Takes = cluster.Second }, want: func(j *cluster.Job) { j.Declares.Takes = cluster.Second }},
		"another signal":              {change: func(j *cluster.Job) { j.Declares.Signal = "USR2" }, want: func(j *cluster.Job) { j.Declares.Signal = "USR2" }},
		"it saves from now on":        {was: never, change: func(j *cluster.Job) { j.Hints = nil }, want: func(j *cluster.Job) { j.Hints = nil }},
		"it says so, with a save of an hour": {was: never, change: func(j *cluster.Job) { j.Hints, j.Declares.Takes = nil, cluster.Hour },
			want: func(j *cluster.Job) { never(j); j.Declares.Signal = "USR1" }, changed: "Comment"},
		"at SIGTERM instead of the notice": {change: func(j *cluster.Job) { j.Declares.Manner = cluster.SavesOnTerm }, want: func(j *cluster.Job) { j.Declares.Manner = cluster.SavesOnTerm }},
		"at intervals instead":             {change: func(j *cluster.Job) { j.Declares.Manner, j.Declares.Every = cluster.SavesEvery, cluster.Hour }, changed: "Comment"},
	} {
		t.Run(name, func(t *testing.T) {
			was := runs()
			if c.was != nil {
				c.was(&was)
			}
			now, want := runs(), was
			c.change(&now)
			if c.want != nil {
				want = runs(c.want)
			}
			rules := everything
			rules.Partitions = []string{"gpu", "big"}
			set := settings
			set.StopAllowance = 15 * cluster.Minute
			m := cluster.State{}
			for i, j := range []cluster.Job{was, now, now} {
				seen := sight(noon.Add(cluster.Second), j)
				seen.Accounts = append(seen.Accounts, cluster.Account{Name: "vision", Parent: "root", Shares: 1})
				s, err := Remember(m, seen, nil, rules, set)
				if err != nil {
					t.Fatal(err)
				}
				got := s.Cases[0]
				if m.Records = []cluster.Record{got.Record}; i == 0 {
					continue
				}
				if diff := gocmp.Diff(want, got.Job); diff != "" || got.Changed.String() != c.changed {
					t.Errorf("look %d: changed %q, want %q; the job that counts (want, got):\n%s", i, got.Changed, c.changed, diff)
				}
				if got.Record.Tenant != "nlp" || got.Record.Account != "nlp" {
					t.Errorf("look %d: it is charged to %s of %s", i, got.Record.Account, got.Record.Tenant)
				}
			}
		})
	}
}

// The facts hold from the grant until the job waits again, also where a lease has been granted and the job has not started.
func TestFactsAreThoseOfTheGrant(t *testing.T) {
	account := func(j *cluster.Job, name string) { j.Account = name }
	vision := func(seen cluster.Observation) cluster.Observation {
		seen.Accounts = append(seen.Accounts, cluster.Account{Name: "vision", Parent: "root", Shares: 1})
		return seen
	}
	h := &history{T: t}
	j := batch(1)
	if r := h.only(vision(sight(noon, j))); r.Basis != nil || r.Tenant != "nlp" {
		t.Fatalf("a waiting job: %+v", r)
	}
	account(&j, "vision")
	if r := h.only(vision(sight(noon.Add(1000), j))); r.Tenant != "vision" {
		t.Errorf("its owner changed the account while it waits: %s", r.Tenant)
	}
	// The engine grants it a lease.
	h.m.Leases = []cluster.Lease{{Job: 1, State: cluster.Granted}}
	h.m.Records[0].Basis = cluster.BasisOf(&j)
	account(&j, "nlp")
	j.Requeueable = false
	for _, state := range []cluster.JobState{cluster.Waiting, cluster.Running, cluster.Suspended, cluster.Completing, cluster.Done} {
		if j.State = state; state != cluster.Waiting {
			h.m.Leases[0].State, j.Start = cluster.Active, noon.Add(2000)
		}
		s := h.look(vision(sight(noon.Add(3000), j)))
		if c := &s.Cases[0]; c.Record.Tenant != "vision" || c.Record.Account != "vision" || c.Control != cluster.FullControl || c.Changed != cluster.ChangedAccount|cluster.ChangedRequeue {
			t.Errorf("%s: it is charged to %s, control %s (%s), changed %s", state, c.Record.Tenant, c.Control, c.ControlWhy, c.Changed)
		}
	}
	// It waits again, and its owner's choices count.
	j.State, j.Start, j.Restarts, h.m.Leases = cluster.Waiting, 0, 1, nil
	s := h.look(vision(sight(noon.Add(4000), j)))
	if c := &s.Cases[0]; c.Record.Tenant != "nlp" || c.Control != cluster.NoReclaim || c.Record.Basis != nil || c.Changed != 0 {
		t.Errorf("it waits again: %+v", c)
	}
	// A requeue and a start between two looks are a start as well.
	j.State, j.Start = cluster.Running, noon.Add(5000)
	h.look(vision(sight(noon.Add(6000), j)))
	account(&j, "vision")
	j.Restarts, j.Start, j.Submit = 2, noon.Add(7000), noon.Add(7000)
	s = h.look(vision(sight(noon.Add(8000), j)))
	if c := &s.Cases[0]; c.Record.Tenant != "vision" || c.Changed != 0 {
		t.Errorf("it was requeued and runs again: %+v", c)
	}
}

// An account that gets another name is not a change of its jobs: the new name counts once the old one is gone from the tree.
func TestAnAccountGetsAnotherName(t *testing.T) {
	m := cluster.State{}
	for i, c := range []struct{ job, tree, want string }{{"nlp", "nlp", "nlp"}, {"language", "nlp", "nlp"}, {"language", "language", "language"}, {"language", "language", "language"}} {
		seen := sight(noon.Add(cluster.Second), runs(func(j *cluster.Job) { j.Account = c.job }))
		seen.Accounts = []cluster.Account{{Name: "root"}, {Name: c.tree, Parent: "root", Shares: 1}}
		s, err := Remember(m, seen, nil, everything, settings)
		if err != nil {
			t.Fatal(err)
		}
		m.Records = []cluster.Record{s.Cases[0].Record}
		if got := s.Cases[0]; got.Record.Tenant != c.want || got.Control != cluster.FullControl {
			t.Errorf("look %d: tenant %s, control %s (%s), want tenant %s", i, got.Record.Tenant, got.Control, got.ControlWhy, c.want)
		}
	}
}

// A tenant whose only job shows another account meanwhile is still a tenant.
func TestATenantOfAChangedAccount(t *testing.T) {
	rules := everything
	rules.TenantLevel = 2
	m := cluster.State{}
	for i, account := range []string{"nlp", "vision"} {
		j := runs(func(j *cluster.Job) { j.Account = account })
		seen := sight(noon.Add(cluster.Second), j)
		seen.Accounts = append(seen.Accounts, cluster.Account{Name: "vision", Parent: "root", Shares: 1},
			cluster.Account{Name: "nlp1", Parent: "nlp", Shares: 1}, cluster.Account{Name: "vision1", Parent: "vision", Shares: 1})
		s, err := Remember(m, seen, nil, rules, settings)
		if err != nil {
			t.Fatal(err)
		}
		m.Records = []cluster.Record{s.Cases[0].Record}
		if s.Cases[0].Record.Tenant != "nlp" || !slices.ContainsFunc(s.Tenants, func(t cluster.Tenant) bool { return t.Name == "nlp" }) {
			t.Errorf("look %d: tenant %s of %+v", i, s.Cases[0].Record.Tenant, s.Tenants)
		}
	}
}

// A batch job that asks for more GPUs while its grant is under way, and starts with them, is stopped like others, whatever its options.
func TestAJobThatGrewSinceItsGrant(t *testing.T) {
	grows := func(j *cluster.Job) { j.Request.Size, j.Request.PerNode = cluster.Whole(4), 4 }
	for name, c := range map[string]struct {
		change func(*cluster.Job) // since the grant of one GPU
		holds  int
		before cluster.JobState // at the last look
		lease  cluster.Lease
		forced bool
	}{
		"grown":                         {grows, 4, cluster.Waiting, cluster.Lease{State: cluster.Granted, Size: cluster.Whole(1), Nodes: []cluster.Holding{{Node: "n1", Size: cluster.Whole(1)}}}, true},
		"behind another's":              {grows, 4, cluster.Waiting, cluster.Lease{State: cluster.Granted, Behind: 7}, true},
		"not at the start":              {grows, 4, cluster.Running, cluster.Lease{State: cluster.Active, Size: cluster.Whole(1), Nodes: []cluster.Holding{{Node: "n1", Size: cluster.Whole(1)}}}, false},
		"granted so":                    {grows, 4, cluster.Waiting, cluster.Lease{State: cluster.Granted, Size: cluster.Whole(4), Nodes: []cluster.Holding{{Node: "n1", Size: cluster.Whole(4)}}}, false},
		"asks for more, and holds less": {grows, 1, cluster.Waiting, cluster.Lease{State: cluster.Granted, Size: cluster.Whole(1), Nodes: []cluster.Holding{{Node: "n1", Size: cluster.Whole(1)}}}, false},
		"Slurm gave it more":            {func(*cluster.Job) {}, 4, cluster.Waiting, cluster.Lease{State: cluster.Granted, Size: cluster.Whole(1), Nodes: []cluster.Holding{{Node: "n1", Size: cluster.Whole(1)}}}, false},
		"whole nodes":                   {func(j *cluster.Job) { grows(j); j.Request.Exclusive = true }, 4, cluster.Waiting, cluster.Lease{State: cluster.Granted, Size: cluster.Whole(1), Nodes: []cluster.Holding{{Node: "n1", Size: cluster.Whole(1)}}}, false},
		"session":                       {func(j *cluster.Job) { grows(j); j.Batch = false }, 4, cluster.Waiting, cluster.Lease{State: cluster.Granted, Size: cluster.Whole(1), Nodes: []cluster.Holding{{Node: "n1", Size: cluster.Whole(1)}}}, false},
	} {
		h := &history{T: t}
		j := batch(1)
		j.Requeueable = false
		h.only(sight(noon, j))
		c.lease.Job = 1
		h.m.Leases, h.m.Records[0].Basis, h.m.Records[0].State = []cluster.Lease{c.lease}, cluster.BasisOf(&j), c.before
		c.change(&j)
		j.State, j.Start, j.Holds = cluster.Running, noon.Add(1000), []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(c.holds)}}
		for range 2 {
			got := h.look(sight(noon.Add(2000), j)).Cases[0]
			if b := got.Record.Basis; b.Forced != c.forced || (got.Control == cluster.FullControl) != c.forced || c.forced && got.Job.Request.Size.Devices != 4 {
				t.Errorf("%s: forced %v, control %s, request %+v", name, b.Forced, got.Control, got.Job.Request)
			}
		}
	}
}

// The same holds for a job that asked for a shard of a GPU and starts with the whole GPU.
func TestAJobThatAskedForAShard(t *testing.T) {
	h := &history{T: t}
	j := batch(1)
	j.Requeueable = false
	part := cluster.Size{Devices: 1, Part: cluster.WholeGPU / 8}
	j.Request.Size, j.Request.Shards, j.Request.PerNode = part, 1, 0
	h.only(sight(noon, j))
	h.m.Leases, h.m.Records[0].Basis, h.m.Records[0].State = []cluster.Lease{{Job: 1, State: cluster.Granted, Size: part, Nodes: []cluster.Holding{{Node: "n1", Size: part}}}}, cluster.BasisOf(&j), cluster.Waiting
	j.Request.Size, j.Request.Shards, j.Request.PerNode = cluster.Whole(1), 0, 1
	j.State, j.Start, j.Holds = cluster.Running, noon.Add(1000), []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(1)}}
	if got := h.look(sight(noon.Add(2000), j)).Cases[0]; !got.Record.Basis.Forced || got.Control != cluster.FullControl || got.Job.Request.Size != cluster.Whole(1) {
		t.Errorf("forced %v, control %s, request %+v", got.Record.Basis.Forced, got.Control, got.Job.Request)
	}
}

// A heterogeneous job with components that ask for shards has no lease, and asks for no whole GPUs.
func TestComponentsThatAskForShards(t *testing.T) {
	part := cluster.Request{Size: cluster.Size{Devices: 1, Part: cluster.WholeGPU / 8}, Shards: 1, Nodes: 1}
	c := carrier{request: part}.with(&part)
	if c.request.Leasable() || c.request.Size.Amount() != cluster.WholeGPU/4 {
		t.Errorf("two components with an eighth of a GPU each ask for %+v", c.request)
	}
	if c = c.with(&cluster.Request{Size: cluster.Whole(1), Nodes: 1}); c.request.Leasable() {
		t.Errorf("with a third one of a whole GPU, they ask for %+v", c.request)
	}
}

// A batch job whose owner raises its time limit while its grant is under way, and which starts with that, is stopped like others: it was
// taken for one that ends soon.
func TestATimeLimitRaisedSinceTheGrant(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*cluster.Job) // since the grant, with a limit of an hour
		before cluster.JobState   // at the last look
		forced bool
	}{
		"raised":                        {func(j *cluster.Job) { j.Limit = 30 * cluster.Day }, cluster.Waiting, true},
		"none any more":                 {func(j *cluster.Job) { j.Limit = 0 }, cluster.Waiting, true},
		"as it was":                     {func(*cluster.Job) {}, cluster.Waiting, false},
		"in whole minutes":              {func(j *cluster.Job) { j.Limit += cluster.Minute }, cluster.Waiting, false},
		"lowered":                       {func(j *cluster.Job) { j.Limit = cluster.Minute }, cluster.Waiting, false},
		"by an operator, while it runs": {func(j *cluster.Job) { j.Limit = 30 * cluster.Day }, cluster.Running, false},
		"session":                       {func(j *cluster.Job) { j.Limit, j.Batch = 30*cluster.Day, false }, cluster.Waiting, false},
	} {
		h := &history{T: t}
		j := batch(1)
		j.Requeueable, j.Limit = false, cluster.Hour
		h.only(sight(noon, j))
		h.m.Leases = []cluster.Lease{{Job: 1, State: cluster.Granted, Size: cluster.Whole(1), Nodes: []cluster.Holding{{Node: "n1", Size: cluster.Whole(1)}}}}
		h.m.Records[0].Basis, h.m.Records[0].State, h.m.Records[0].Terms = cluster.BasisOf(&j), c.before, 1
		c.change(&j)
		j.State, j.Start, j.Holds = cluster.Running, noon.Add(1000), []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(1)}}
		for range 2 {
			got := h.look(sight(noon.Add(2000), j)).Cases[0]
			if b := got.Record.Basis; b.Forced != c.forced || (got.Control == cluster.FullControl) != c.forced {
				t.Errorf("%s: forced %v, control %s", name, b.Forced, got.Control)
			}
		}
	}
}

// The time limit of a waiting job that has never run is its owner's, whatever grants it has had in vain.
func TestTheTimeLimitOfAWaitingJobCounts(t *testing.T) {
	h := &history{T: t}
	j := batch(1)
	j.Limit = cluster.Hour
	h.only(sight(noon, j))
	for _, c := range []struct {
		terms int
		ran   cluster.Span
		want  cluster.Span
	}{{0, 0, 30 * cluster.Day}, {1, 0, 30 * cluster.Day}, {1, cluster.Minute, cluster.Hour}} {
		r := &h.m.Records[0]
		r.UserLimit, r.Terms, r.Ran = cluster.Hour, c.terms, c.ran
		j.Limit = 30 * cluster.Day
		if got := h.look(sight(noon.Add(2000), j)).Cases[0].Record.UserLimit; got != c.want {
			t.Errorf("after %d grants and %v of run time its limit is %v, want %v", c.terms, c.ran, got, c.want)
		}
	}
}

// A batch job that is requeued and starts again between two looks starts before its turn, whatever its owner has changed meanwhile.
func TestAJobThatStartsAgainUnseen(t *testing.T) {
	for name, c := range map[string]struct {
		before cluster.JobState // at the last look
		lease  cluster.LeaseState
		batch  bool
		forced bool
	}{
		"it ran":                    {cluster.Running, cluster.Active, true, true},
		"it ran, and had notice":    {cluster.Running, cluster.Noticed, true, true},
		"it was suspended":          {cluster.Suspended, cluster.Active, true, true},
		"it waited for a new lease": {cluster.Waiting, cluster.Granted, true, false},
		"a session":                 {cluster.Running, cluster.Active, false, false},
	} {
		h := &history{T: t, d: new(desk)}
		j := batch(1)
		j.State, j.Start, j.Holds = cluster.Running, noon.Add(-1000), []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(1)}}
		h.only(sight(noon, j))
		h.m.Leases = []cluster.Lease{{Job: 1, State: c.lease, Size: cluster.Whole(1), Nodes: []cluster.Holding{{Node: "n1", Size: cluster.Whole(1)}}}}
		h.m.Records[0].Basis, h.m.Records[0].State = cluster.BasisOf(&j), c.before
		j.Restarts, j.Submit, j.Start, j.Requeueable, j.Batch = j.Restarts+1, noon.Add(2000), noon.Add(3000), false, c.batch
		for range 2 {
			got := h.look(sight(noon.Add(5000), j)).Cases[0]
			if b := got.Record.Basis; b == nil || b.Forced != c.forced || (got.Control == cluster.FullControl) != c.forced {
				t.Errorf("%s: %+v, control %s", name, b, got.Control)
			}
		}
	}
}
