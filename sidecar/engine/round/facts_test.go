package round_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/round/roundtest"
)

const gpu = cluster.WholeGPU

const now = roundtest.Now

// The facts repeat of every case what steps ask of it.
func TestStatusOfACase(t *testing.T) {
	holds := func(state cluster.JobState) cluster.Case {
		return roundtest.On(roundtest.Job(7, "bio", 2, state), "a", "v100", 2)
	}
	order := func(kind cluster.OverrideKind, until cluster.Instant) cluster.Override {
		return cluster.Override{ID: 1, Kind: kind, Scope: "user", Name: "ann", Until: until}
	}
	full := round.Status{Control: cluster.FullControl, User: -1, Before: -1, Live: true, Asks: 2 * gpu}
	for _, c := range []struct {
		name   string
		job    cluster.Case
		change func(s *cluster.Snapshot, c *cluster.Case)
		want   func(w *round.Status)
	}{
		{"it waits", roundtest.Job(7, "bio", 2, cluster.Waiting), nil, func(w *round.Status) { w.Waits = true }},
		{"it runs", holds(cluster.Running), nil, func(w *round.Status) { w.Runs, w.Held = true, 2*gpu }},
		{"it is suspended, and keeps its GPUs", holds(cluster.Suspended), nil, func(w *round.Status) { w.Runs, w.Held = true, 2*gpu }},
		{"its nodes boot", holds(cluster.Configuring), nil, func(w *round.Status) { w.Readied, w.Held = true, 2*gpu }},
		{"it cleans up", holds(cluster.Completing), nil, func(w *round.Status) { w.Held = 2 * gpu }},
		{"it has ended", holds(cluster.Done), nil, func(w *round.Status) { w.Live, w.Held = false, 2*gpu }},
		{"Slurm has forgotten it", holds(cluster.Running), func(_ *cluster.Snapshot, c *cluster.Case) { c.Gone = true },
			func(w *round.Status) { w.Live, w.Held = false, 2*gpu }},
		{"its lease is of fewer GPUs than its nodes have", holds(cluster.Running), func(s *cluster.Snapshot, _ *cluster.Case) {
			s.Leases = []cluster.Lease{{Job: 1, Pool: "v100", Size: cluster.Whole(1)}}
		}, func(w *round.Status) { w.Runs, w.Held = true, gpu }},
		{"its lease has not begun", roundtest.Job(7, "bio", 2, cluster.Waiting), func(s *cluster.Snapshot, _ *cluster.Case) {
			s.Leases = []cluster.Lease{{Job: 1, Pool: "v100", Size: cluster.Whole(2)}}
		}, func(w *round.Status) { w.Waits = true }},
		{"it asks for all GPUs of the site", roundtest.Job(7, "bio", 8, cluster.Waiting), nil, func(w *round.Status) { w.Waits, w.Asks = true, 8*gpu }},
		{"it asks for more than the site has", roundtest.Job(7, "bio", 9, cluster.Waiting), nil, func(w *round.Status) { w.Waits, w.Asks = true, 0 }},
		{"it asks for more than the site still has, and runs", holds(cluster.Running), func(s *cluster.Snapshot, c *cluster.Case) {
			s.Nodes, c.Job.Request.Size = s.Nodes[:1], cluster.Whole(5)
		},
			func(w *round.Status) { w.Runs, w.Asks, w.Held = true, 5*gpu, 2*gpu }},
		{"it is of no tenant", roundtest.Job(7, "ops", 2, cluster.Waiting), nil, func(w *round.Status) { w.Waits, w.Tenant = true, -1 }},
		{"it is of the second tenant", roundtest.Job(7, "nlp", 2, cluster.Waiting), nil, func(w *round.Status) { w.Waits, w.Tenant = true, 1 }},
		{"it had what it was due", holds(cluster.Running), func(_ *cluster.Snapshot, c *cluster.Case) {
			c.Record.Alloc, c.Record.Due, c.Record.Extra.Due = 300, 100, 100
		}, func(w *round.Status) { w.Runs, w.Held, w.Rho = true, 2*gpu, cluster.Fair*3/2 }},
		{"its account is negative", roundtest.Job(7, "bio", 2, cluster.Waiting), func(_ *cluster.Snapshot, c *cluster.Case) { c.Record.Alloc, c.Record.Due = -5, -5 },
			func(w *round.Status) { w.Waits = true }},
		{"an order ends now", roundtest.Job(7, "bio", 2, cluster.Waiting), func(s *cluster.Snapshot, _ *cluster.Case) {
			s.Overrides = []cluster.Override{order(cluster.Boost, now)}
		}, func(w *round.Status) { w.Waits = true }},
		{"an order ends in a millisecond", roundtest.Job(7, "bio", 2, cluster.Waiting), func(s *cluster.Snapshot, _ *cluster.Case) {
			s.Overrides = []cluster.Override{order(cluster.Boost, now+1)}
		}, func(w *round.Status) { w.Waits, w.Boosted = true, true }},
		{"it is as it was in the last round", roundtest.Job(7, "bio", 2, cluster.Waiting), func(s *cluster.Snapshot, c *cluster.Case) { s.Follows, c.Was = true, 1 },
			func(w *round.Status) { w.Waits, w.Before = true, 0 }},
		{"it was so in a round that this one does not follow", roundtest.Job(7, "bio", 2, cluster.Waiting), func(_ *cluster.Snapshot, c *cluster.Case) { c.Was = 1 },
			func(w *round.Status) { w.Waits = true }},
	} {
		s := roundtest.Snapshot(c.job)
		if c.change != nil {
			c.change(s, &s.Cases[0])
		}
		in, _ := roundtest.Facts(s)
		got, want := in.Cases[0], full
		c.want(&want)
		if want.Boosted {
			want.Order = &s.Overrides[0]
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// A tenant that has used up its budget has no weight, unless all have.
func TestWeights(t *testing.T) {
	const since = now - 1
	for _, c := range []struct {
		name    string
		tenants []cluster.Tenant
		weights []int64
		spent   []string
	}{
		{"nobody has a budget", []cluster.Tenant{{Name: "bio", Weight: 3}, {Name: "nlp", Weight: 0}}, []int64{3, 0}, nil},
		{"one is used up", []cluster.Tenant{{Name: "bio", Weight: 3, Budget: cluster.TenantBudget{Since: since}}, {Name: "nlp", Weight: 1}}, []int64{0, 1}, []string{"bio"}},
		{"both are", []cluster.Tenant{{Name: "bio", Weight: 3, Budget: cluster.TenantBudget{Since: since}}, {Name: "nlp", Weight: 1, Budget: cluster.TenantBudget{Since: since}}}, []int64{3, 1}, nil},
		{"only a tenant without weight is left", []cluster.Tenant{{Name: "bio", Weight: 3, Budget: cluster.TenantBudget{Since: since}}, {Name: "nlp"}}, []int64{3, 0}, nil},
		{"one is no longer configured", []cluster.Tenant{{Name: "nlp", Weight: 2}}, []int64{0, 2}, nil},
		{"none is", nil, []int64{0, 0}, nil},
	} {
		s := roundtest.Snapshot()
		s.Tenants = c.tenants
		in, _ := roundtest.Facts(s)
		var spent []string
		for _, name := range in.Tenants {
			if in.Spent(name) != nil {
				spent = append(spent, name)
			}
		}
		if got := []int64{in.Weight(0), in.Weight(1)}; !slices.Equal(got, c.weights) || !slices.Equal(spent, c.spent) {
			t.Errorf("%s: weights %v, used up %v; want %v and %v", c.name, got, spent, c.weights, c.spent)
		}
	}
	bare := &cluster.Snapshot{Tenants: []cluster.Tenant{{Name: "bio", Weight: 3}}}
	in, _ := roundtest.Facts(bare)
	if len(in.Tenants) > 0 || len(in.Pools) > 0 || in.PoolOf(&cluster.Lease{Pool: "v100"}) != nil {
		t.Errorf("a site without GPUs has tenants %v and pools %v", in.Tenants, in.Pools)
	}
}

// The facts of a round keep nothing of the round before, which had more tenants, pools and jobs.
func TestFactsOfASmallerRound(t *testing.T) {
	big := roundtest.Snapshot(roundtest.Job(7, "bio", 2, cluster.Running), roundtest.Job(8, "nlp", 2, cluster.Waiting))
	big.Cases[0].Control = cluster.ObserveOnly
	big.Tenants[1].Budget.Since = now - 1
	in, _ := roundtest.Facts(big)
	if !in.Any(cluster.ObserveOnly) || in.Spent("nlp") == nil || in.Weight(0) != 1 {
		t.Fatal("the first round is not as meant")
	}
	small := &cluster.Snapshot{Now: now, Tenants: []cluster.Tenant{{Name: "nlp", Weight: 5}}, Cases: big.Cases[1:]}
	small.Ledger.Pools, small.Ledger.Tenants = []cluster.PoolAccount{{Pool: "a100"}}, []cluster.TenantPool{{Tenant: "bio", Pool: "a100"}, {Tenant: "nlp", Pool: "a100"}}
	in.Open(small, &round.Opening{Ledger: small.Ledger, Records: []cluster.Record{small.Cases[0].Record}, Keys: []cluster.JobKey{2}, Rows: []int{1}, Users: []int{-1}, Leases: []*cluster.Lease{nil}})
	if len(in.Cases) != 1 || !in.Cases[0].Waits || in.Any(cluster.ObserveOnly) || in.Spent("nlp") != nil || !slices.Equal(in.Pools, []string{"a100"}) || !slices.Equal(in.Tenants, []string{"bio", "nlp"}) ||
		in.Weight(0) != 0 || in.Weight(1) != 5 || in.Find(2) != 0 || in.Find(1) != -1 || in.Pool("k80") != -1 {
		t.Errorf("the round has cases %+v, pools %v and tenants %v", in.Cases, in.Pools, in.Tenants)
	}
}

// A case counts for the control level that its own belongs to.
func TestControlLevels(t *testing.T) {
	for _, c := range []struct {
		is, asked cluster.Control
		ours      bool
	}{
		{cluster.FullControl, cluster.FullControl, true}, {cluster.NoReclaim, cluster.FullControl, true}, {cluster.ObserveOnly, cluster.FullControl, false},
		{cluster.NoReclaim, cluster.ObserveOnly, false}, {cluster.ObserveOnly, cluster.ObserveOnly, true}, {cluster.Unmanaged, cluster.FullControl, false},
	} {
		s := roundtest.Snapshot(roundtest.Job(7, "bio", 2, cluster.Waiting))
		s.Cases[0].Control = c.is
		in, _ := roundtest.Facts(s)
		if in.Any(c.asked) != c.ours || in.Cases[0].Ours(c.asked) != c.ours {
			t.Errorf("a case with control %s belongs to %s: %t, want %t", c.is, c.asked, in.Any(c.asked), c.ours)
		}
	}
}

// An event says when a case is set aside, and when it no longer is; one-time events belong to a job's first round.
func TestSetAside(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *cluster.Snapshot, c *cluster.Case)
		events []string
		aside  string // remembered
		comes  bool
	}{
		{"it never was", func(*cluster.Snapshot, *cluster.Case) {}, nil, "", true},
		{"it is now", func(_ *cluster.Snapshot, c *cluster.Case) { c.Job.Aside, c.Record.ChargedTo = "odd", 1 }, []string{"it is set aside, charged to its tenant and left alone: odd"}, "odd", false},
		{"it still is", func(_ *cluster.Snapshot, c *cluster.Case) { c.Job.Aside, c.Record.Aside = "odd", "odd" }, nil, "odd", true},
		{"it is for another cause", func(_ *cluster.Snapshot, c *cluster.Case) { c.Job.Aside, c.Record.Aside = "new", "odd" },
			[]string{"it is set aside, charged to its tenant and left alone: new"}, "new", true},
		{"it no longer is", func(_ *cluster.Snapshot, c *cluster.Case) { c.Record.Aside = "odd" }, []string{"it is no longer set aside"}, "", true},
		{"it is gone", func(_ *cluster.Snapshot, c *cluster.Case) { c.Gone, c.Record.Aside = true, "odd" }, nil, "odd", true},
		{"it has not changed", func(s *cluster.Snapshot, c *cluster.Case) { s.Follows, c.Was = true, 1 }, nil, "", false},
	} {
		s := roundtest.Snapshot(roundtest.Job(7, "bio", 2, cluster.Waiting))
		c.change(s, &s.Cases[0])
		in := &round.Facts{}
		events := in.Open(s, &round.Opening{Ledger: s.Ledger, Records: []cluster.Record{s.Cases[0].Record}, Keys: []cluster.JobKey{1}, Rows: []int{0}, Users: []int{-1}, Leases: []*cluster.Lease{nil}})
		if got := texts(events); !slices.Equal(got, c.events) || in.Records[0].Aside != c.aside || in.Comes(0) != c.comes {
			t.Errorf("%s: events %q, remembered %q, comes %t; want %q, %q, %t", c.name, got, in.Records[0].Aside, in.Comes(0), c.events, c.aside, c.comes)
		}
	}
}

// The next attempt's time limit is the rest of the user's, in whole minutes, and at least one.
func TestLimitOfTheNextAttempt(t *testing.T) {
	for _, c := range []struct {
		name             string
		slurm, user, ran cluster.Span
		others           *cluster.Requeues
		want             cluster.Span
	}{
		{"there is none", 0, 0, cluster.Hour, nil, 0},
		{"only Slurm's is known", cluster.Hour, 0, cluster.Minute, nil, cluster.Hour},
		{"it has not run", cluster.Minute, cluster.Hour + 1, 0, nil, cluster.Hour + 1},
		{"a part is used", cluster.Hour, cluster.Hour, 10 * cluster.Minute, nil, 50 * cluster.Minute},
		{"a millisecond less than a minute is left", cluster.Hour, cluster.Hour, 59*cluster.Minute + 1, nil, cluster.Minute},
		{"a millisecond more than a minute is left", cluster.Hour, cluster.Hour, 59*cluster.Minute - 1, nil, 2 * cluster.Minute},
		{"all is used", cluster.Hour, cluster.Hour, cluster.Hour, nil, cluster.Minute},
		{"more is used", cluster.Hour, cluster.Hour, 2 * cluster.Hour, nil, cluster.Minute},
		{"its owner requeued it, and the limit began anew", cluster.Minute, cluster.Hour, 10 * cluster.Minute, &cluster.Requeues{Ran: 10 * cluster.Minute}, cluster.Hour},
	} {
		s := roundtest.Snapshot(roundtest.Job(7, "bio", 2, cluster.Waiting))
		s.Cases[0].Job.Limit, s.Cases[0].Record.UserLimit, s.Cases[0].Record.Ran, s.Cases[0].Record.Others = c.slurm, c.user, c.ran, c.others
		in, _ := roundtest.Facts(s)
		if got := in.Limit(0); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A lease is up for renewal from its notice on: its own, the usual one, or that of recalls where this is longer.
func TestExpiring(t *testing.T) {
	for _, c := range []struct {
		name   string
		lease  *cluster.Lease
		change func(s *cluster.Snapshot, c *cluster.Case)
		want   bool
	}{
		{"it has none", nil, nil, false},
		{"its end is a notice away", &cluster.Lease{State: cluster.Active, End: now.Add(cluster.Minute)}, nil, true},
		{"it is a millisecond farther", &cluster.Lease{State: cluster.Active, End: now.Add(cluster.Minute + 1)}, nil, false},
		{"its end has passed", &cluster.Lease{State: cluster.Active, End: now - 1}, nil, true},
		{"notice is given", &cluster.Lease{State: cluster.Noticed, End: now}, nil, true},
		{"it is ending", &cluster.Lease{State: cluster.Ending, End: now}, nil, false},
		{"it has not begun", &cluster.Lease{State: cluster.Granted, End: now}, nil, false},
		{"its own notice is longer", &cluster.Lease{State: cluster.Active, End: now.Add(cluster.Hour), Notice: cluster.Hour}, nil, true},
		{"its own notice is shorter", &cluster.Lease{State: cluster.Active, End: now.Add(cluster.Minute), Notice: cluster.Second}, nil, false},
		{"it is recalled with a longer notice", &cluster.Lease{State: cluster.Noticed, End: now.Add(2 * cluster.Minute), Notice: cluster.Minute, Why: round.Recalled}, nil, true},
		{"a notice of its own without a recall", &cluster.Lease{State: cluster.Noticed, End: now.Add(2 * cluster.Minute), Notice: cluster.Minute}, nil, false},
		{"a recall without a notice of its own", &cluster.Lease{State: cluster.Noticed, End: now.Add(2 * cluster.Minute), Why: round.Recalled}, nil, false},
		{"it is suspended", &cluster.Lease{State: cluster.Active, End: now}, func(_ *cluster.Snapshot, c *cluster.Case) { c.Job.State = cluster.Suspended }, true},
		{"it cleans up", &cluster.Lease{State: cluster.Active, End: now}, func(_ *cluster.Snapshot, c *cluster.Case) { c.Job.State = cluster.Completing }, false},
		{"it is only observed", &cluster.Lease{State: cluster.Active, End: now}, func(_ *cluster.Snapshot, c *cluster.Case) { c.Control = cluster.ObserveOnly }, true},
		{"it is never reclaimed", &cluster.Lease{State: cluster.Active, End: now}, func(_ *cluster.Snapshot, c *cluster.Case) { c.Control = cluster.NoReclaim }, false},
		{"it is exempt", &cluster.Lease{State: cluster.Active, End: now}, func(s *cluster.Snapshot, _ *cluster.Case) {
			s.Overrides = []cluster.Override{{ID: 1, Kind: cluster.Exempt, Scope: "job", Name: "7", Until: now + 1}}
		}, false},
		{"another job is exempt", &cluster.Lease{State: cluster.Active, End: now}, func(s *cluster.Snapshot, _ *cluster.Case) {
			s.Overrides = []cluster.Override{{ID: 1, Kind: cluster.Exempt, Scope: "job", Name: "8", Until: now + 1}}
		}, true},
	} {
		s := roundtest.Snapshot(roundtest.On(roundtest.Job(7, "bio", 2, cluster.Running), "a", "v100", 2))
		s.Settings.RecallNotice = 2 * cluster.Minute
		if c.change != nil {
			c.change(s, &s.Cases[0])
		}
		in, _ := roundtest.Facts(s)
		if got := in.Expiring(0, c.lease); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// GPU time is committed by leases until they end, by claims for a term, and by stranded GPUs to the end of the term.
func TestCommitted(t *testing.T) {
	const minute = cluster.GPUTime(cluster.Minute)
	lease := func(pool string, gpus int, end cluster.Span) *cluster.Lease {
		return &cluster.Lease{Pool: pool, Size: cluster.Whole(gpus), End: now.Add(end)}
	}
	claim := func(job cluster.JobKey, pool string, gathers bool) cluster.Claim {
		return cluster.Claim{Job: job, Pool: pool, Gathers: gathers, Nodes: []cluster.Holding{{Node: "a", Size: cluster.Whole(1)}, {Node: "b", Size: cluster.Whole(2)}}}
	}
	for _, c := range []struct {
		name  string
		taken round.Taken
		strd  []cluster.Stranding
		shift cluster.Span // of the moment, from the boundary
		use   [4]cluster.GPUTime
		holds [4]cluster.MicroGPU
	}{
		{"nothing", round.Taken{}, nil, 0, [4]cluster.GPUTime{}, [4]cluster.MicroGPU{}},
		{"a lease of each tenant", round.Taken{Leases: []*cluster.Lease{lease("v100", 2, cluster.Minute), lease("k80", 3, 2*cluster.Minute)}}, nil, 0, [4]cluster.GPUTime{0, 2 * minute, 6 * minute, 0}, [4]cluster.MicroGPU{0, 2 * gpu, 3 * gpu, 0}},
		{"a lease that ends now", round.Taken{Leases: []*cluster.Lease{lease("v100", 2, cluster.Minute), nil}, Ending: func(int) bool { return true }}, nil, 0, [4]cluster.GPUTime{0, 2 * minute, 0, 0}, [4]cluster.MicroGPU{}},
		{"a lease whose end has passed", round.Taken{Leases: []*cluster.Lease{lease("v100", 2, -cluster.Minute), nil}}, nil, 0, [4]cluster.GPUTime{}, [4]cluster.MicroGPU{0, 2 * gpu, 0, 0}},
		{"a lease of a pool that vanished", round.Taken{Leases: []*cluster.Lease{lease("p100", 2, cluster.Minute), nil}}, nil, 0, [4]cluster.GPUTime{}, [4]cluster.MicroGPU{}},
		{"a lease of a job of no tenant", round.Taken{Leases: []*cluster.Lease{nil, nil, lease("v100", 2, cluster.Minute)}}, nil, 0, [4]cluster.GPUTime{}, [4]cluster.MicroGPU{}},
		{"only the second case counts", round.Taken{Leases: []*cluster.Lease{lease("v100", 2, cluster.Minute), lease("k80", 3, cluster.Minute)}, Cases: []int{1}}, nil, 0, [4]cluster.GPUTime{0, 0, 3 * minute, 0}, [4]cluster.MicroGPU{0, 0, 3 * gpu, 0}},
		{"a claim", round.Taken{Claims: []cluster.Claim{claim(1, "v100", false)}}, nil, 0, [4]cluster.GPUTime{0, 45 * minute, 0, 0}, [4]cluster.MicroGPU{}},
		{"a claim that gathers", round.Taken{Claims: []cluster.Claim{claim(1, "v100", true)}}, nil, 0, [4]cluster.GPUTime{}, [4]cluster.MicroGPU{}},
		{"claims of an unknown job, of none's, and of a pool that vanished", round.Taken{Claims: []cluster.Claim{claim(99, "v100", false), claim(3, "v100", false), claim(1, "p100", false)}}, nil, 0, [4]cluster.GPUTime{}, [4]cluster.MicroGPU{}},
		{"stranded GPUs on the boundary", round.Taken{}, []cluster.Stranding{{Case: 1, Pool: "k80", GPUs: 2*gpu + gpu/2}}, 0, [4]cluster.GPUTime{0, 0, 75 * minute / 2, 0}, [4]cluster.MicroGPU{0, 0, 2 * gpu, 0}},
		{"stranded GPUs a minute before it", round.Taken{}, []cluster.Stranding{{Case: 1, Pool: "k80", GPUs: gpu}, {Case: 2, Pool: "k80", GPUs: gpu}, {Case: 1, Pool: "p100", GPUs: gpu}}, -cluster.Minute, [4]cluster.GPUTime{0, 0, minute, 0}, [4]cluster.MicroGPU{0, 0, 1 * gpu, 0}},
	} {
		s := roundtest.Snapshot(roundtest.Job(7, "bio", 2, cluster.Running), roundtest.Job(8, "nlp", 2, cluster.Running), roundtest.Job(9, "ops", 2, cluster.Running))
		in, _ := roundtest.Facts(s)
		in.Stranded, in.Now = c.strd, now.Add(c.shift)
		if c.taken.Ending == nil {
			c.taken.Ending = func(int) bool { return false }
		}
		queued := []round.Queued{{Queue: 0}, {Queue: 1}, {Queue: -1}}
		use, holds := round.Committed(in, queued, c.taken, 2, round.QueueOf)
		if [4]cluster.GPUTime(use.Cells) != c.use || [4]cluster.MicroGPU(holds.Cells) != c.holds {
			t.Errorf("%s: %v and %v, want %v and %v", c.name, use.Cells, holds.Cells, c.use, c.holds)
		}
	}
}

// The beneficiary of a lease is the first job that claims GPUs of its model on one of its nodes; cells say it themselves.
func TestBeneficiaries(t *testing.T) {
	at := func(node, model string) []cluster.Holding {
		return []cluster.Holding{{Node: node, Model: model, Size: cluster.Whole(1)}}
	}
	claims := []cluster.Claim{{Job: 5, Nodes: at("b", "k80")}, {Job: 6, Nodes: append(at("a", "v100"), at("b", "k80")...)}, {Job: 7, Nodes: at("a", "v100")}}
	for _, c := range []struct {
		name   string
		lease  cluster.Lease
		claims []cluster.Claim
		want   cluster.JobKey
	}{
		{"nothing is claimed", cluster.Lease{Nodes: at("a", "v100")}, nil, 0},
		{"two claim a node", cluster.Lease{Nodes: at("a", "v100")}, claims, 6},
		{"two nodes are claimed, one by an earlier job", cluster.Lease{Nodes: append(at("a", "v100"), at("b", "k80")...)}, claims, 5},
		{"the first of its nodes is claimed by an earlier job", cluster.Lease{Nodes: append(at("b", "k80"), at("a", "v100")...)}, claims, 5},
		{"another model of the node is claimed", cluster.Lease{Nodes: at("a", "k80")}, claims, 0},
		{"its cells say it", cluster.Lease{Parts: []cluster.CellPart{{}}, Nodes: at("a", "v100")}, claims, 9},
	} {
		if got := round.BeneficiariesOf([]*cluster.Lease{&c.lease}, c.claims, []round.Mark{{Beneficiary: 9}}).Of(0); got != c.want {
			t.Errorf("%s: job %d, want %d", c.name, got, c.want)
		}
	}
}

// Whether the trouble of a record is another one is seen in every part of it, and all of it is written back.
func TestTrouble(t *testing.T) {
	nodes, others := []string{"a"}, &cluster.Requeues{Count: 1}
	full := cluster.Record{Failed: 1, AvoidUntil: 2, AvoidNodes: nodes, SlurmSaid: "no", Others: others, Terms: 3, Lost: 4, MostLost: 5}
	was := round.TroubleOf(&full)
	for k, change := range []func(r *cluster.Record){
		func(r *cluster.Record) { r.Failed++ }, func(r *cluster.Record) { r.AvoidUntil++ }, func(r *cluster.Record) { r.AvoidNodes = []string{"b"} }, func(r *cluster.Record) { r.AvoidNodes = nil },
		func(r *cluster.Record) { r.SlurmSaid = "" }, func(r *cluster.Record) { r.Others = nil }, func(r *cluster.Record) { r.Terms++ }, func(r *cluster.Record) { r.Lost++ },
		func(r *cluster.Record) { r.MostLost-- },
	} {
		r := full
		change(&r)
		is := round.TroubleOf(&r)
		if is.Same(&was) || was.Same(&is) {
			t.Errorf("change %d is not seen", k)
		}
		if was.Put(&r); cmp.Diff(full, r) != "" {
			t.Errorf("change %d is not put back: %s", k, cmp.Diff(full, r))
		}
	}
	if again := round.TroubleOf(&full); !was.Same(&again) {
		t.Error("the trouble of one record differs from itself")
	}
}

// A job without a lease that has a part of a GPU shares it with its user's jobs only, where the site says so.
func TestSharer(t *testing.T) {
	part := []cluster.Holding{{Node: "a", Model: "v100", Size: cluster.Size{Devices: 1, Part: 125000}, Index: []int{0}}}
	of := func(user, tenant string, shards int, holds []cluster.Holding) cluster.Case {
		return cluster.Case{Job: cluster.Job{Holds: holds, Request: cluster.Request{Shards: shards}}, Record: cluster.Record{User: user, Tenant: tenant}}
	}
	f := &round.Facts{Settings: &cluster.Settings{}, Snapshot: &cluster.Snapshot{Cases: []cluster.Case{of("ann", "x", 1, nil), of("ann", "x", 0, part), of("bob", "x", 1, part), of("cat", "y", 1, nil), of("cat", "y", 0, nil)}}}
	for _, c := range []struct {
		across    cluster.Across
		ann, team bool // the second case, and the third, are like the first
	}{{cluster.AnyUser, true, true}, {cluster.SameTenant, true, true}, {cluster.SameUser, true, false}} {
		f.Settings.Across = c.across
		first := f.Sharer(0)
		if (first == 0) != (c.across == cluster.AnyUser) || (f.Sharer(1) == first) != c.ann || (f.Sharer(2) == first) != c.team || c.across != cluster.AnyUser && f.Sharer(3) == first || f.Sharer(4) != 0 {
			t.Errorf("%q: %d, %d, %d, %d, %d", c.across, first, f.Sharer(1), f.Sharer(2), f.Sharer(3), f.Sharer(4))
		}
	}
}
