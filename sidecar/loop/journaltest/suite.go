// Package journaltest is the suite that every loop.Journal passes, in memory and in PostgreSQL.
package journaltest

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// Ground is the storage of journals: a database, or memory.
type Ground struct {
	// Start gives a journal as a daemon gets it after a restart. The previous daemon is dead
	// then: it never resigned.
	Start func(*testing.T) loop.Journal
	// Override adds an override as an administrator does, and gives its id.
	Override func(*testing.T, cluster.Override) int64
}

// Run runs the suite; each part uses new ground.
func Run(t *testing.T, ground func(*testing.T) Ground) {
	parts := []struct {
		name string
		run  func(*testing.T, Ground)
	}{
		{"an empty journal gives an empty memory", empty},
		{"what was committed is given back", givesBack},
		{"after a crash the newest round is given back", crash},
		{"cells survive", cells},
		{"odd values survive", oddValues},
		{"a commit that fails leaves nothing", failed},
		{"round numbers never repeat", repeated},
		{"round numbers may skip", skipped},
		{"the caller's values stay the caller's", untouched},
		{"a thousand jobs through many rounds", manyJobs},
		{"outcomes are settled", settled},
		{"overrides are in force until they end", overrides},
		{"a round ends overrides", overrideEnds},
	}
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) { part.run(t, ground(t)) })
	}
}

func open(t *testing.T, j loop.Journal) cluster.State {
	t.Helper()
	m, err := j.Open(t.Context())
	if err != nil {
		t.Fatalf("opening the journal: %v", err)
	}
	return m
}

func commit(t *testing.T, j loop.Journal, snap cluster.Snapshot, plan cluster.Plan) {
	t.Helper()
	if err := j.Commit(t.Context(), snap, plan); err != nil {
		t.Fatalf("committing round %d: %v", plan.Round, err)
	}
}

// same fails unless the journal gives back want, also to a new daemon.
func same(t *testing.T, g Ground, j loop.Journal, want cluster.State) loop.Journal {
	t.Helper()
	if diff := cmp.Diff(want, open(t, j), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("the journal opened again gives another memory (-committed +given):\n%s", diff)
	}
	j = g.Start(t)
	if diff := cmp.Diff(want, open(t, j), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("a new daemon is given another memory (-committed +given):\n%s", diff)
	}
	return j
}

func empty(t *testing.T, g Ground) {
	same(t, g, g.Start(t), cluster.State{})
}

func givesBack(t *testing.T, g Ground) {
	j := g.Start(t)
	open(t, j)
	story := NewStory(1, 4, 20)
	snap, plan := story.Next()
	commit(t, j, snap, plan)
	same(t, g, j, plan.State)
}

func crash(t *testing.T, g Ground) {
	j := g.Start(t)
	open(t, j)
	story := NewStory(2, 4, 20)
	for range 3 {
		for range 4 {
			commit(t, j, first(story.Next()), story.Plan())
		}
		j = same(t, g, j, story.Plan().State)
	}
}

func cells(t *testing.T, g Ground) {
	j := g.Start(t)
	open(t, j)
	story := NewStory(10, 5, 20)
	story.Cells, story.Term, story.Notice = true, 2*cluster.Minute, 20*cluster.Second
	parts, lost, claimed := 0, 0, 0
	for range 30 {
		snap, plan := story.Next()
		for i := range plan.State.Leases {
			parts += len(plan.State.Leases[i].Parts)
		}
		for i := range plan.State.Claims {
			claimed += len(plan.State.Claims[i].Parts)
		}
		lost += len(plan.State.Lost)
		commit(t, j, snap, plan)
		j = same(t, g, j, plan.State)
	}
	if parts == 0 || lost == 0 || claimed == 0 {
		t.Errorf("the story has %d parts of leases, %d of claims and %d losses", parts, claimed, lost)
	}
	snap, plan := story.Next() // beyond the range of signed and floating-point numbers
	plan.State.Leases[0].Parts[0].GPUs = math.MaxUint64
	plan.State.Lost = []cluster.CellLoss{{VC: "v\x00", Chain: "\"c\"", Type: "ü", Cells: math.MaxInt64}}
	plan.Cells.Bound = append(plan.Cells.Bound, cluster.BoundCell{VC: "v\x00", Parts: []cluster.CellPart{{Node: "n", GPUs: math.MaxUint64}}},
		cluster.BoundCell{VC: "nowhere"})
	plan.Cells.Unsafe = []string{"\x00", "", "\x00"}
	commit(t, j, snap, plan)
	j = same(t, g, j, plan.State)
	plan.State.Lost[0].Cells = 42
	if m := open(t, j); m.Lost[0].Cells == 42 {
		t.Error("what the caller did afterwards changed the journal")
	}
	story.Cells = false // and on without cells
	commit(t, j, first(story.Next()), story.Plan())
	same(t, g, j, story.Plan().State)
}

func oddValues(t *testing.T, g Ground) {
	j := g.Start(t)
	open(t, j)
	story := NewStory(3, 2, 5)
	for _, change := range []func(*cluster.Snapshot, *cluster.Plan){
		func(_ *cluster.Snapshot, p *cluster.Plan) { // beyond the precision of a float64
			p.State.Records[0].Alloc, p.State.Records[0].Due = 1<<53+1, math.MaxInt64
			p.State.Ledger.Tenants[0].Alloc, p.State.Ledger.Tenants[0].Deficit = 1<<62+1, math.MinInt64+1
			p.State.Ledger.Pools[0].Capacity = math.MaxInt64
			p.Statuses[0].Rho, p.Statuses[0].Reason.Rho = cluster.Infinite, cluster.Infinite
			p.Tenants[0].Rho, p.Tenants[0].RhoAll = cluster.Infinite, cluster.Infinite
			p.Tenants[0].Lent, p.Tenants[0].Borrowed = math.MaxInt64, 1
		},
		func(_ *cluster.Snapshot, p *cluster.Plan) { // unlikely names
			p.State.Records[0].Name = "a\x00b \"quoted\" \\u0000 ünïcödé 🚀\n\t<&>"
			p.Events = append(p.Events, cluster.Event{Kind: "odd\x00", Text: "\\\x00"})
			p.Actions = append(p.Actions, cluster.Action{Verb: cluster.Unreserve, Reservation: "fairlease_\x00", Reason: cluster.Reason{Note: "\x00"}})
		},
		func(_ *cluster.Snapshot, p *cluster.Plan) { // why Slurm does not start jobs
			p.State.Causes = []cluster.Cause{{CauseKey: cluster.CauseKey{Tenant: "a\x00", Reason: "QOSGrpGRES", QOS: "q"}, GPUs: 1, Failed: math.MaxInt32, At: 1, Last: math.MaxInt64},
				{CauseKey: cluster.CauseKey{Tenant: "b", Reason: "BadConstraints", User: "u", Partition: "p,q", Request: cluster.Request{Size: cluster.Whole(2), Exclusive: true, Features: "a&b"}},
					Admits: 3, Until: math.MaxInt64, Facts: math.MaxUint64, Empty: -1}}
			p.State.Preempted = []cluster.Preempted{{Partition: "gpu\x00", Why: "Slurm may requeue its jobs"}}
			p.State.Unpreempted = []string{"clear\x00"}
			p.State.Stops = []cluster.Stopped{{Job: 1, Tenant: "a\x00", User: "b", GPUs: math.MaxInt32, At: 1, For: "c"}, {Job: 2}}
			p.State.Shadow = cluster.Shadow{Observed: math.MaxInt64, GPUs: math.MaxInt32}
			p.State.Breaker = cluster.Breaker{Faults: []cluster.Fault{{Kind: cluster.LostWork, Job: 1, ID: cluster.TaskID(1, 2), Tenant: "a\x00", User: "b", Amount: math.MaxInt64, At: 1, Observed: true}},
				Looks: []cluster.Looks{{Start: 1, Looks: 2, Took: 3}}, Usual: cluster.Usual{Observed: math.MaxInt64, Requeues: 1, BadEnds: 2, Looked: 5, Looks: 3, Took: 4},
				Trip: &cluster.Trip{Round: 1, At: 2, Kind: cluster.BadEnds, Bound: 3, Count: 4, Jobs: []cluster.Fault{{Job: 1}}, Users: 5}}
			p.State.Noise = []cluster.Noise{{User: "a\x00", Since: 1, Told: 20, Left: math.MaxInt32}, {User: "b", Since: math.MaxInt64}}
		},
		func(s *cluster.Snapshot, p *cluster.Plan) { // Slurm's limits, which a daemon must know that starts without slurmdbd
			s.Admission = &cluster.Admission{Accounts: []cluster.Account{{Name: "a\x00"}}, Limits: cluster.Limits{Read: math.MaxInt64,
				Associations: []cluster.Association{{Account: "a\x00", Caps: []cluster.Cap{{Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: math.MaxInt64}}, Unread: math.MaxUint64}},
				QOS:          []cluster.QOS{{Name: "q", Flags: []string{cluster.OverPartQOS}}}}}
			p.State.Limits = &s.Admission.Limits
		},
		func(_ *cluster.Snapshot, p *cluster.Plan) { p.State.Limits = nil }, // none any more
		func(_ *cluster.Snapshot, p *cluster.Plan) { // unlikely times
			p.State.Records[0].AvoidUntil, p.State.Records[0].Gate = math.MaxInt64, math.MaxInt64
			p.State.Records[0].UserBegin = -1
			p.State.Leases[0].End = math.MaxInt64
		},
		func(s *cluster.Snapshot, p *cluster.Plan) { // nothing at all
			s.Nodes, s.Cases, s.Tenants = nil, nil, []cluster.Tenant{}
			p.State = cluster.State{Round: p.State.Round, NextKey: p.State.NextKey, Records: []cluster.Record{}}
			p.Statuses, p.Tenants, p.Actions, p.Ended = nil, nil, []cluster.Action{}, nil
		},
	} {
		snap, plan := story.Next()
		change(&snap, &plan)
		commit(t, j, snap, plan)
		j = same(t, g, j, plan.State)
	}
}

func failed(t *testing.T, g Ground) {
	j := g.Start(t)
	open(t, j)
	story := NewStory(4, 4, 20)
	commit(t, j, first(story.Next()), story.Plan())
	before := story.Plan().State
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	snap, plan := story.Next()
	if err := j.Commit(gone, snap, plan); err == nil {
		t.Fatal("a commit whose context was over succeeded")
	}
	j = same(t, g, j, before)
	commit(t, j, snap, plan)
	same(t, g, j, plan.State)
}

func repeated(t *testing.T, g Ground) {
	j := g.Start(t)
	open(t, j)
	story := NewStory(5, 4, 20)
	commit(t, j, first(story.Next()), story.Plan())
	snap, plan := story.Next()
	commit(t, j, snap, plan)
	again, other := story.Next()
	other.Round, other.State.Round = plan.Round, plan.Round
	if err := j.Commit(t.Context(), again, other); err == nil {
		t.Fatalf("round %d was written down twice", plan.Round)
	}
	j = same(t, g, j, plan.State)
	if err := j.Commit(t.Context(), again, other); err == nil {
		t.Fatalf("round %d was written down twice, by a new daemon", plan.Round)
	}
	same(t, g, j, plan.State)
}

func skipped(t *testing.T, g Ground) {
	j := g.Start(t)
	open(t, j)
	story := NewStory(6, 4, 20)
	commit(t, j, first(story.Next()), story.Plan())
	for range 5 {
		story.Next()
	}
	commit(t, j, first(story.Next()), story.Plan())
	same(t, g, j, story.Plan().State)
}

func untouched(t *testing.T, g Ground) {
	j := g.Start(t)
	open(t, j)
	story := NewStory(7, 4, 20)
	snap, plan := story.Next()
	same := NewStory(7, 4, 20)
	wantSnap, wantPlan := same.Next()
	commit(t, j, snap, plan)
	if diff := cmp.Diff(wantSnap, snap); diff != "" {
		t.Errorf("the commit changed the snapshot:\n%s", diff)
	}
	if diff := cmp.Diff(wantPlan, plan); diff != "" {
		t.Errorf("the commit changed the plan:\n%s", diff)
	}
	plan.State.Records[0].Alloc = 42
	plan.State.Ledger.Tenants[0].Alloc = 42
	if diff := cmp.Diff(wantPlan.State, open(t, j), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("what the caller did afterwards changed the journal:\n%s", diff)
	}
}

func manyJobs(t *testing.T, g Ground) {
	j := g.Start(t)
	open(t, j)
	story := NewStory(8, 50, 1000)
	story.Term, story.Restless = 2*cluster.Minute, 20
	for range 25 {
		commit(t, j, first(story.Next()), story.Plan())
	}
	same(t, g, j, story.Plan().State)
}

func settled(t *testing.T, g Ground) {
	j := g.Start(t)
	open(t, j)
	story := NewStory(9, 4, 20)
	snap, plan := story.Next()
	outcomes := make([]cluster.Outcome, len(plan.Actions))
	if err := j.Settle(t.Context(), plan, outcomes); err == nil {
		t.Error("a round that was never written down was settled")
	}
	commit(t, j, snap, plan)
	if err := j.Settle(t.Context(), plan, outcomes[1:]); err == nil {
		t.Error("a round was settled with an outcome missing")
	}
	for range 2 { // it may be repeated
		if err := j.Settle(t.Context(), plan, outcomes); err != nil {
			t.Error(err)
		}
	}
	snap, plan = story.Next()
	plan.Actions = nil
	commit(t, j, snap, plan)
	if err := j.Settle(t.Context(), plan, nil); err != nil {
		t.Errorf("a round without actions: %v", err)
	}
	same(t, g, j, plan.State)
}

func overrides(t *testing.T, g Ground) {
	j := g.Start(t)
	open(t, j)
	year := 365 * cluster.Day
	start := cluster.Instant(4_000_000_000_000) // 2096: in the future of every clock
	orders := []cluster.Override{
		{Kind: cluster.Exempt, Scope: "job", Name: "123_4", Until: start.Add(year), Reason: "paper", By: "root", Job: 7, User: "ann", Submit: start - 1000},
		{Kind: cluster.Boost, Scope: "tenant", Name: "bio", Until: start.Add(2 * year), Reason: "deadline", By: "ann"},
		{Kind: cluster.Freeze, Scope: "user", Name: "eve", Until: start.Add(year), Reason: "runaway", By: "root"},
	}
	for i := range orders {
		orders[i].ID = g.Override(t, orders[i])
	}
	for at, want := range map[cluster.Instant][]cluster.Override{
		start:                   orders,
		start.Add(year) - 1:     orders,
		start.Add(year):         orders[1:2],
		start.Add(2 * year):     nil,
		start.Add(2*year) + 100: nil,
	} {
		got, err := j.Overrides(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", at, diff)
		}
	}
}

func overrideEnds(t *testing.T, g Ground) {
	j := g.Start(t)
	open(t, j)
	soon := cluster.Instant(4_000_000_000_000)
	o := cluster.Override{Kind: cluster.Exempt, Scope: "job", Name: "5", Until: soon, Reason: "paper", By: "root", Job: 7, User: "ann", Submit: soon - 1000}
	var ids []int64
	for range 3 {
		ids = append(ids, g.Override(t, o))
	}
	inForce := func() (left []int64) {
		all, err := j.Overrides(t.Context(), soon-1)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range all {
			left = append(left, o.ID)
		}
		return left
	}
	story := NewStory(1, 2, 5)
	snap, plan := story.Next()
	plan.EndedOverrides = []cluster.OverrideEnd{{ID: ids[1], Why: "job 5 of ann has ended"}, {ID: ids[2] + 100, Why: "pruned"}}
	commit(t, j, snap, plan)
	if left := inForce(); !slices.Equal(left, []int64{ids[0], ids[2]}) {
		t.Errorf("overrides %v are in force", left)
	}
	snap, plan = story.Next()
	commit(t, j, snap, plan)
	if left := inForce(); !slices.Equal(left, []int64{ids[0], ids[2]}) {
		t.Errorf("overrides %v are in force after another round", left)
	}
	same(t, g, j, plan.State)
}

func first(snap cluster.Snapshot, _ cluster.Plan) cluster.Snapshot { return snap }
