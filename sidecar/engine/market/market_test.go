package market

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/entitle"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/round/roundtest"
	"github.com/fairlease/fairlease/sidecar/engine/speeds"
)

const (
	now = roundtest.Now
	gpu = cluster.WholeGPU
	// The models of the site by place.
	k80, v100 = 0, 1
)

// kind gives a job a kind.
func kind(c cluster.Case, name string) cluster.Case {
	c.Job.Hints = &cluster.Hints{Kind: name}
	return c
}

// runs returns a job of a kind that has run for an hour on the k80.
func runs(id int64, tenant string, gpus int, of string) cluster.Case {
	return kind(roundtest.On(roundtest.Job(id, tenant, gpus, cluster.Running), "b", "k80", gpus), of)
}

// waits returns a waiting job of a kind.
func waits(id int64, tenant string, gpus int, of string) cluster.Case {
	return kind(roundtest.Job(id, tenant, gpus, cluster.Waiting), of)
}

// declared returns the rates of a kind on k80 and v100, as the administrator declares them; 0 = it does not.
func declared(of string, gang int, onK80, onV100 float64) (out []cluster.Profile) {
	for p, rate := range []float64{onK80, onV100} {
		if rate > 0 {
			out = append(out, cluster.Profile{Kind: cluster.Kind(of), Model: []string{"k80", "v100"}[p], Gang: gang, Rate: rate, Source: cluster.Declared})
		}
	}
	return out
}

// site is a site with a policy that divides GPUs between jobs: each job is a party, and parties are in the order of jobs where tenants are.
func site(cases ...cluster.Case) *cluster.Snapshot {
	s := roundtest.Snapshot(cases...)
	s.Settings.Divide, s.Settings.DivideJobs = "oef:coop", true
	return s
}

// open opens the market of a snapshot. rows are entitlements and deficits of parties in k80 and v100, in GPUs and minutes of a GPU.
func open(s *cluster.Snapshot, rows ...[4]int) (*Market, []*cluster.Lease) {
	in, leases := roundtest.Facts(s)
	found, due := new(eligible.Nodes).Find(in, leases, nil), new(entitle.Due)
	learnt := speeds.Learn(in, found, new(profile.Memory))
	due.Open(in, found, learnt, cluster.Ledger{})
	for k, r := range rows {
		for p := range in.Pools {
			row := due.PartyRows.At(round.PartyIndex(k), p)
			row.Entitlement, row.Deficit = cluster.MicroGPU(r[p])*gpu, cluster.GPUTime(r[2+p])*cluster.GPUTime(cluster.Minute)
		}
	}
	return Open(in, found, due, learnt), leases
}

// on returns an active lease of GPUs of a model.
func on(pool string, gpus int, end cluster.Instant) *cluster.Lease {
	return &cluster.Lease{Job: 1, Pool: pool, Size: cluster.Whole(gpus), State: cluster.Active, End: end}
}

// A job may move where its party is entitled to GPUs, if that pays in a term, or settles a debt. With a notice of a minute, a move costs two.
func TestWhereAJobMayMove(t *testing.T) {
	fast, slow := declared("bio/x", 2, 1, 3), declared("bio/x", 2, 3, 1)
	for _, c := range []struct {
		name   string
		speeds []cluster.Profile
		row    [4]int
		change func(s *cluster.Snapshot, c *cluster.Case)
		pools  []int
		gain   cluster.Span // on the v100; 0 = it does not pay
	}{
		{"it runs three times as fast there", fast, [4]int{0, 1, 0, -99}, nil, []int{k80, v100}, 28 * cluster.Minute},
		{"its party is not entitled there", fast, [4]int{2, 0, 0, 99}, nil, []int{k80}, 0},
		{"it runs slower there", slow, [4]int{1, 1, -99, 99}, nil, []int{k80}, 0},
		{"it runs slower there, and its party has nothing here and is owed there", slow, [4]int{0, 1, 99, 0}, nil, []int{k80, v100}, 0},
		{"it runs slower there, and its party owes there", slow, [4]int{0, 1, 99, -1}, nil, []int{k80}, 0},
		{"its speeds are unknown", nil, [4]int{1, 1, 0, 0}, nil, []int{k80}, 0},
		{"the gain is a part of a term", declared("bio/x", 2, 16, 20), [4]int{1, 1, 0, 0}, nil, []int{k80, v100}, 105 * cluster.Second},
		{"the gain is less than a move costs", declared("bio/x", 2, 16, 18), [4]int{1, 1, 0, 0}, nil, []int{k80}, 0},
		{"the work that is left takes a minute here", fast, [4]int{1, 1, 0, 0}, func(_ *cluster.Snapshot, c *cluster.Case) { c.Job.Hints.Steps = 60 }, []int{k80}, 0},
		{"it takes a second more", fast, [4]int{1, 1, 0, 0}, func(_ *cluster.Snapshot, c *cluster.Case) { c.Job.Hints.Steps = 61 }, []int{k80, v100}, 2 * cluster.Second},
		{"its time limit is nearly over", fast, [4]int{1, 1, 0, 0}, func(_ *cluster.Snapshot, c *cluster.Case) { c.Job.Limit = cluster.Hour + cluster.Minute }, []int{k80, v100}, 4 * cluster.Minute},
		{"it moved twenty minutes ago", fast, [4]int{1, 1, 0, 0}, func(_ *cluster.Snapshot, c *cluster.Case) { c.Record.Moved = now.Add(-20 * cluster.Minute) }, []int{k80, v100}, 28 * cluster.Minute},
		{"it moved a millisecond later", fast, [4]int{1, 1, 0, 0}, func(_ *cluster.Snapshot, c *cluster.Case) { c.Record.Moved = now.Add(-20*cluster.Minute + 1) }, []int{k80}, 0},
		{"it names its model", fast, [4]int{1, 1, 0, 0}, func(_ *cluster.Snapshot, c *cluster.Case) { c.Job.Request.Model = "k80" }, []int{k80}, 0},
		{"it is never reclaimed", fast, [4]int{1, 1, 0, 0}, func(_ *cluster.Snapshot, c *cluster.Case) { c.Control = cluster.NoReclaim }, []int{k80}, 0},
		{"it is only observed", fast, [4]int{1, 1, 0, 0}, func(_ *cluster.Snapshot, c *cluster.Case) { c.Control = cluster.ObserveOnly }, []int{k80}, 0},
		{"there is no policy", fast, [4]int{}, func(s *cluster.Snapshot, _ *cluster.Case) { s.Settings.Divide = "" }, []int{k80}, 0},
	} {
		s := site(runs(7, "bio", 2, "x"))
		s.Declared = c.speeds
		if c.change != nil {
			c.change(s, &s.Cases[0])
		}
		rows := [][4]int{c.row}
		if s.Settings.Divide == "" {
			rows = nil
		}
		m, _ := open(s, rows...)
		var want []lease.Better
		if c.gain > 0 {
			want = []lease.Better{{Pool: v100, Gain: c.gain}}
		}
		if pools, better := m.MayMove(0, on("k80", 2, now)); !slices.Equal(pools, c.pools) || !slices.Equal(better, want) {
			t.Errorf("%s: pools %v, better %v; want %v and %v", c.name, pools, better, c.pools, want)
		}
	}
}

// A move is noted when the lease is over and GPUs of another model are claimed, and says where the job goes and how fast it is there.
func TestMoves(t *testing.T) {
	claim := func(job cluster.JobKey, pool string) []cluster.Claim {
		return []cluster.Claim{{Job: job, Pool: pool}}
	}
	for _, c := range []struct {
		name   string
		claims []cluster.Claim
		over   []int
		lease  string // its pool; "" = none
		speeds []cluster.Profile
		divide string
		move   round.Move
		moved  cluster.Instant
	}{
		{"its lease is over", claim(1, "v100"), []int{0}, "k80", declared("bio/x", 2, 2, 3), "oef:coop", round.Move{To: "v100", Speed: 1500}, now},
		{"its lease goes on for now", claim(1, "v100"), []int{1}, "k80", declared("bio/x", 2, 2, 3), "oef:coop", round.Move{To: "v100", Speed: 1500}, 5},
		{"no speed is known", claim(1, "v100"), []int{0}, "k80", nil, "oef:coop", round.Move{To: "v100"}, now},
		{"it stays on its model", claim(1, "k80"), []int{0}, "k80", nil, "oef:coop", round.Move{}, 5},
		{"another job claims them", claim(2, "v100"), []int{0}, "k80", nil, "oef:coop", round.Move{}, 5},
		{"a job claims that has no case", claim(9, "v100"), []int{0}, "k80", nil, "oef:coop", round.Move{}, 5},
		{"it has no lease", claim(1, "v100"), nil, "", nil, "oef:coop", round.Move{}, 5},
		{"its model vanished", claim(1, "v100"), nil, "p100", nil, "oef:coop", round.Move{}, 5},
		{"there is no policy", claim(1, "v100"), []int{0}, "k80", nil, "", round.Move{}, 5},
	} {
		s := site(runs(7, "bio", 2, "x"), waits(8, "bio", 2, "x"))
		s.Settings.Divide, s.Declared, s.Cases[0].Record.Moved = c.divide, c.speeds, 5
		m, _ := open(s)
		leases := []*cluster.Lease{nil, nil}
		if c.lease != "" {
			leases[0] = on(c.lease, 2, now)
		}
		if got := m.Moves(leases, c.claims); got[0] != c.move || len(got) > 1 {
			t.Errorf("%s: moves %+v, want %+v", c.name, got, c.move)
		}
		m.NoteMoves(c.over, leases, c.claims)
		records := slices.Clone(m.in.Records)
		if m.PutMoves(records); records[0].Moved != c.moved || records[1].Moved != 0 {
			t.Errorf("%s: moved at %d, want %d", c.name, records[0].Moved, c.moved)
		}
	}
}

// The candidates of a tenant come by the backlog of their parties, which each lease of a term charges.
func TestTurns(t *testing.T) {
	both := []int{k80, v100}
	for _, c := range []struct {
		name   string
		cs     []lease.Candidate
		rows   [][4]int // by case: cases 0 and 1 are of one GPU
		leases []*cluster.Lease
		change func(s *cluster.Snapshot)
		turns  [2][]int // in k80, in v100
		marks  string   // "idle:" and "due:" pools by candidate
	}{
		{"the one further behind goes first", []lease.Candidate{{Case: 0, Pools: both, GPUs: 1 * gpu}, {Case: 1, Pools: both, GPUs: 1 * gpu}}, [][4]int{{1, 1, 0, 9}, {1, 1, 1, 8}}, nil, nil, [2][]int{{1, 0}, {0, 1}}, "due:0[1] due:1[1] "},
		{"equal ones keep their order", []lease.Candidate{{Case: 1, Pools: both, GPUs: 1 * gpu}, {Case: 0, Pools: both, GPUs: 1 * gpu}}, [][4]int{{1, 1, 3, -3}, {1, 1, 3, -3}}, nil, nil, [2][]int{{0, 1}, {0, 1}}, ""},
		{"a running one keeps its GPUs up to the threshold", []lease.Candidate{{Case: 0, Pools: both, GPUs: 1 * gpu, Running: true}, {Case: 1, Pools: both, GPUs: 1 * gpu}}, [][4]int{{1, 1, 0, 0}, {1, 1, 5, 5}}, nil, nil, [2][]int{{0, 1}, {1, 0}}, ""},
		{"and no further", []lease.Candidate{{Case: 0, Pools: both, GPUs: 1 * gpu, Running: true}, {Case: 1, Pools: both, GPUs: 1 * gpu}}, [][4]int{{1, 1, 0, 0}, {1, 1, 6, 5}}, nil, nil, [2][]int{{1, 0}, {1, 0}}, ""},
		{"an urgent one goes first", []lease.Candidate{{Case: 0, Pools: both, GPUs: 1 * gpu}, {Case: 1, Pools: both, GPUs: 1 * gpu, Priority: lease.Priority{Urgent: true}}}, [][4]int{{1, 1, 99, 99}, {1, 1, -9, -9}}, nil, nil, [2][]int{{1, 0}, {1, 0}}, "due:0[0 1] "},
		{"an urgent one without an entitlement takes idle GPUs", []lease.Candidate{{Case: 0, Pools: []int{v100}, GPUs: 1 * gpu}, {Case: 1, Pools: []int{v100}, GPUs: 1 * gpu, Priority: lease.Priority{Urgent: true}}}, [][4]int{{1, 1, 0, 0}, {1, 0, 0, 99}}, nil, nil, [2][]int{{}, {0, 1}}, "idle:1[1] "},
		{"half of a lease's cost is behind", []lease.Candidate{{Case: 0, Pools: []int{v100}, GPUs: 2 * gpu}}, [][4]int{{2, 2, 0, 15}, {}}, nil, nil, [2][]int{{}, {0}}, "due:0[1] "},
		{"a minute less is", []lease.Candidate{{Case: 0, Pools: []int{v100}, GPUs: 2 * gpu}}, [][4]int{{2, 2, 0, 14}, {}}, nil, nil, [2][]int{{}, {0}}, ""},
		{"each lease charges its party", []lease.Candidate{{Case: 0, Pools: []int{v100}, GPUs: 1 * gpu}, {Case: 0, Pools: []int{v100}, GPUs: 1 * gpu}, {Case: 1, Pools: []int{v100}, GPUs: 1 * gpu}}, [][4]int{{1, 1, 0, 20}, {1, 1, 0, 6}}, nil, nil, [2][]int{{}, {0, 2, 1}}, "due:0[1] "},
		{"a lease in force is charged, and once", []lease.Candidate{{Case: 0, Pools: []int{v100}, GPUs: 1 * gpu}, {Case: 0, Pools: []int{v100}, GPUs: 1 * gpu}, {Case: 1, Pools: []int{v100}, GPUs: 1 * gpu}}, [][4]int{{1, 1, 0, 20}, {1, 1, 0, 11}},
			[]*cluster.Lease{on("v100", 1, now.Add(10*cluster.Minute)), nil}, nil, [2][]int{{}, {2, 0, 1}}, "due:2[1] "},
		{"nobody has a turn in a pool that cannot serve it", []lease.Candidate{{Case: 0, Pools: nil, GPUs: 1 * gpu}}, [][4]int{{1, 1, 0, 0}, {}}, nil, nil, [2][]int{{}, {}}, ""},
		{"there is no policy", []lease.Candidate{{Case: 0, Pools: both, GPUs: 1 * gpu}}, nil, nil, func(s *cluster.Snapshot) { s.Settings.Divide = "" }, [2][]int{}, ""},
		{"jobs queue, not tenants", []lease.Candidate{{Case: 0, Pools: both, GPUs: 1 * gpu}}, [][4]int{{1, 1, 0, 0}, {}}, nil, func(s *cluster.Snapshot) { s.Settings.Divide = "gavel:las-jobs" }, [2][]int{}, ""},
	} {
		s := site(waits(7, "bio", 1, "x"), waits(8, "bio", 1, "y"))
		s.Settings.Threshold = 5 * cluster.Minute
		if c.change != nil {
			c.change(s)
		}
		m, leases := open(s, c.rows...)
		if c.leases != nil {
			leases = c.leases
		}
		tenants := []lease.Tenant{{Name: "bio"}}
		for i := range c.cs {
			tenants[0].Jobs = append(tenants[0].Jobs, i)
		}
		m.Turns(round.Taken{Leases: leases, Ending: func(int) bool { return false }}, c.cs, tenants, nil)
		var want [][]int
		if c.turns[0] != nil {
			want = c.turns[:]
		}
		if d := cmp.Diff(want, tenants[0].Turns, cmpopts.EquateEmpty()); d != "" || tenants[0].Line != nil {
			t.Errorf("%s: turns %v, want %v; line %v", c.name, tenants[0].Turns, want, tenants[0].Line)
		}
		got := ""
		for i := range c.cs {
			if k := &c.cs[i]; k.Idle != nil {
				got += fmt.Sprintf("idle:%d%v ", i, k.Idle)
			}
			if k := &c.cs[i]; k.Due != nil {
				got += fmt.Sprintf("due:%d%v ", i, k.Due)
			}
		}
		if got != c.marks {
			t.Errorf("%s: %q, want %q", c.name, got, c.marks)
		}
	}
}

// Users of a tenant take turns before the parties do.
func TestTurnsOfUsers(t *testing.T) {
	m, leases := open(site(waits(7, "bio", 1, "x"), waits(8, "bio", 1, "y")), [4]int{1, 1, 99, 99}, [4]int{1, 1, 0, 0})
	cs := []lease.Candidate{{Case: 0, Pools: []int{v100}, GPUs: 1 * gpu}, {Case: 1, Pools: []int{v100}, GPUs: 1 * gpu, Priority: lease.Priority{User: 1}}}
	tenants, users := []lease.Tenant{{Name: "bio", Jobs: []int{0, 1}}}, []lease.UserTurn{{}, {Behind: cluster.GPUTime(cluster.Hour)}}
	m.Turns(round.Taken{Leases: leases, Ending: func(int) bool { return false }}, cs, tenants, users)
	if !slices.Equal(tenants[0].Turns[v100], []int{1, 0}) || users[1].Behind != cluster.GPUTime(cluster.Hour) {
		t.Errorf("turns %v, want the second user's job first; users %+v are the caller's", tenants[0].Turns[v100], users)
	}
}

// With cells the turns of all pools are in one order: who is behind most, then by job, then by its fastest model; those without an entitlement last.
func TestTurnsOfAllPools(t *testing.T) {
	s := site(waits(7, "bio", 1, "x"), waits(8, "bio", 1, "x"))
	s.Cells, s.Declared = &cluster.Cells{}, declared("bio/x", 1, 1, 2)
	m, leases := open(s, [4]int{1, 1, 7, 7}, [4]int{1, 0, 8, 99})
	cs := []lease.Candidate{{Case: 0, Pools: []int{k80, v100}, GPUs: 1 * gpu}, {Case: 1, Pools: []int{k80, v100}, GPUs: 1 * gpu}}
	tenants := []lease.Tenant{{Name: "bio", Jobs: []int{0, 1}}}
	m.Turns(round.Taken{Leases: leases, Ending: func(int) bool { return false }}, cs, tenants, nil)
	if want := []lease.Turn{{Candidate: 1, Pool: k80}, {Candidate: 0, Pool: v100}, {Candidate: 0, Pool: k80}, {Candidate: 1, Pool: v100}}; !slices.Equal(tenants[0].Line, want) {
		t.Errorf("line %v, want %v", tenants[0].Line, want)
	}
}

// A trial measures a kind that reports on a model where it has not been measured, with the job for which that costs least.
func TestWhichJobIsTried(t *testing.T) {
	observed := func(of string, gang int, models ...string) (out []cluster.Profile) {
		for _, m := range models {
			out = append(out, cluster.Profile{Kind: cluster.Kind(of), Model: m, Gang: gang, Rate: 1, Source: cluster.Observed, Samples: 10})
		}
		return out
	}
	seen := observed("bio/x", 2, "k80")
	even := [][4]int{{0, 1, 0, 0}}
	for _, c := range []struct {
		name   string
		seen   []cluster.Profile
		rows   [][4]int
		change func(s *cluster.Snapshot)
		cases  []cluster.Case
		want   int // case; -1 = none
		trial  lease.Trial
	}{
		{"it waits, and GPUs are idle", seen, even, nil, []cluster.Case{waits(7, "bio", 2, "x")}, 0, lease.Trial{Pool: v100, Even: true}},
		{"it reports nothing", nil, even, nil, []cluster.Case{waits(7, "bio", 2, "x")}, -1, lease.Trial{}},
		{"another tenant's jobs of that name report", observed("nlp/x", 2, "k80"), even, nil, []cluster.Case{waits(7, "bio", 2, "x")}, -1, lease.Trial{}},
		{"it has been measured there", observed("bio/x", 2, "k80", "v100"), even, nil, []cluster.Case{waits(7, "bio", 2, "x")}, -1, lease.Trial{}},
		{"it has been measured there at another size", slices.Concat(observed("bio/x", 1, "v100"), seen), even, nil, []cluster.Case{waits(7, "bio", 2, "x")}, 0, lease.Trial{Pool: v100, Even: true}},
		{"it runs there already", seen, even, nil, []cluster.Case{kind(roundtest.On(roundtest.Job(7, "bio", 2, cluster.Running), "a", "v100", 2), "x")}, -1, lease.Trial{}},
		{"it names another model", seen, even, func(s *cluster.Snapshot) { s.Cases[0].Job.Request.Model = "k80" }, []cluster.Case{waits(7, "bio", 2, "x")}, -1, lease.Trial{}},
		{"its party owes there", seen, [][4]int{{0, 1, 0, -1}}, nil, []cluster.Case{waits(7, "bio", 2, "x")}, -1, lease.Trial{}},
		{"its party has sold its share, and owes eight terms", seen, [][4]int{{0, 0, 0, -240}}, nil, []cluster.Case{waits(7, "bio", 2, "x")}, 0, lease.Trial{Pool: v100, Even: true}},
		{"its party has sold its share, and owes a minute more", seen, [][4]int{{0, 0, 0, -241}}, nil, []cluster.Case{waits(7, "bio", 2, "x")}, -1, lease.Trial{}},
		{"a party that owes nothing goes before one that has sold", slices.Concat(seen, observed("bio/y", 2, "k80")), [][4]int{{0, 0, 0, -1}, {0, 1, 0, 0}}, nil, []cluster.Case{waits(7, "bio", 2, "x"), waits(8, "bio", 2, "y")}, 1, lease.Trial{Pool: v100, Even: true}},
		{"it takes idle GPUs only", seen, even, func(s *cluster.Snapshot) { s.Cases[0].Job.Hints.Idle = true }, []cluster.Case{waits(7, "bio", 2, "x")}, -1, lease.Trial{}},
		{"it has just moved", seen, even, func(s *cluster.Snapshot) { s.Cases[0].Record.Moved = now - 1 }, []cluster.Case{waits(7, "bio", 2, "x")}, -1, lease.Trial{}},
		{"its tenant has no weight, and GPUs are idle", seen, even, func(s *cluster.Snapshot) { s.Tenants[0].Weight = 0 }, []cluster.Case{waits(7, "bio", 2, "x")}, 0, lease.Trial{Pool: v100, Even: true, Idle: true}},
		{"its tenant has no weight, and too few GPUs are idle", seen, even, func(s *cluster.Snapshot) { s.Tenants[0].Weight = 0 },
			[]cluster.Case{waits(7, "bio", 2, "x"), roundtest.On(roundtest.Job(8, "nlp", 3, cluster.Running), "a", "v100", 3)}, -1, lease.Trial{}},
		{"it runs, and one of fewer GPUs waits", slices.Concat(seen, observed("bio/x", 1, "k80")), [][4]int{{0, 1, 0, 0}, {0, 1, 0, 0}}, nil, []cluster.Case{runs(7, "bio", 2, "x"), waits(8, "bio", 1, "x")}, 1, lease.Trial{Pool: v100, Even: true}},
		{"it runs, and one of four times its GPUs waits: that costs 9.5 and 8 minutes", seen, [][4]int{{0, 1, 0, 0}, {0, 1, 0, 0}}, nil, []cluster.Case{runs(7, "bio", 1, "x"), waits(8, "bio", 4, "x")}, 1, lease.Trial{Pool: v100, Even: true}},
		{"and these GPUs are not idle: that costs a term more", seen, [][4]int{{0, 1, 0, 0}, {0, 1, 0, 0}}, nil,
			[]cluster.Case{runs(7, "bio", 1, "x"), waits(8, "bio", 4, "x"), roundtest.On(roundtest.Job(9, "nlp", 1, cluster.Running), "a", "v100", 1)}, 0, lease.Trial{Pool: v100, Even: true}},
		{"the first of two alike", seen, [][4]int{{0, 1, 0, 0}, {0, 1, 0, 0}}, nil, []cluster.Case{waits(7, "bio", 2, "x"), waits(8, "bio", 2, "x")}, 0, lease.Trial{Pool: v100, Even: true}},
		{"it runs on one GPU, and was measured there on two", observed("bio/x", 2, "k80", "v100"), even, nil, []cluster.Case{roundtest.On(runs(7, "bio", 2, "x"), "b", "k80", 1)}, 0, lease.Trial{Pool: v100, Even: true}},
		{"it is larger than the pool", seen, even, nil, []cluster.Case{waits(7, "bio", 9, "x")}, -1, lease.Trial{}},
	} {
		s := site(c.cases...)
		s.Profiles = slices.SortedFunc(slices.Values(c.seen), func(a, b cluster.Profile) int { return a.Compare(&b) })
		if c.change != nil {
			c.change(s)
		}
		m, leases := open(s, c.rows...)
		if got := m.Tried(v100); got != c.want {
			t.Errorf("%s: case %d is tried, want %d", c.name, got, c.want)
		}
		var cs []lease.Candidate
		for i := range c.cases {
			cs = append(cs, lease.Candidate{Case: i, Running: m.in.Cases[i].Runs})
		}
		var want []lease.Trial
		if c.trial.Candidate = c.want; c.want >= 0 {
			want = append(want, c.trial)
		}
		got := m.Trials(round.Taken{Leases: leases, Ending: func(int) bool { return false }}, cs)
		if got = slices.DeleteFunc(got, func(x lease.Trial) bool { return x.Pool != v100 }); !slices.Equal(got, want) {
			t.Errorf("%s: trials %+v, want %+v", c.name, got, want)
		}
	}
}

// A trial is made if the party's account in the pool covers what it has there to the end of the term; it is even if the tenant's does, too.
func TestWhoPaysForATrial(t *testing.T) {
	for _, c := range []struct {
		name   string
		shift  cluster.Span // of the moment, from the boundary
		lease  cluster.Span // length of a lease of the party's of two GPUs there; 0 = none
		party  [4]int
		tenant [2]int // entitlement and deficit in the pool
		change func(c *cluster.Case)
		want   []lease.Trial
	}{
		{"its share to the end of the term covers a lease", 0, 15 * cluster.Minute, [4]int{0, 2, 0, 0}, [2]int{2, 30}, nil, []lease.Trial{{Pool: v100, Even: true}}},
		{"but not one that ends later", 0, 16 * cluster.Minute, [4]int{0, 2, 0, 0}, [2]int{2, 32}, nil, nil},
		{"nor in the middle of the term", -5 * cluster.Minute, 15 * cluster.Minute, [4]int{0, 2, 0, 0}, [2]int{2, 40}, nil, nil},
		{"its tenant's account does not", 0, 15 * cluster.Minute, [4]int{0, 2, 0, 0}, [2]int{2, 29}, nil, []lease.Trial{{Pool: v100}}},
		{"its tenant has sold its share", 0, 15 * cluster.Minute, [4]int{0, 2, 0, 0}, [2]int{0, -99}, nil, []lease.Trial{{Pool: v100, Even: true}}},
		{"it runs and is only observed", 0, 0, [4]int{0, 2, 0, 0}, [2]int{2, 0}, func(c *cluster.Case) { *c = runs(7, "bio", 2, "x"); c.Control = cluster.ObserveOnly }, nil},
	} {
		s := site(waits(7, "bio", 2, "x"))
		if c.change != nil {
			record := s.Cases[0].Record
			c.change(&s.Cases[0])
			s.Cases[0].Record = record
		}
		s.Profiles = []cluster.Profile{{Kind: "bio/x", Model: "k80", Gang: 2, Rate: 1, Source: cluster.Observed, Samples: 10}}
		s.Now = now.Add(c.shift)
		m, leases := open(s, c.party)
		if c.lease > 0 {
			leases[0] = on("v100", 2, s.Now.Add(c.lease))
		}
		row := m.due.Rows.At(0, v100)
		row.Entitlement, row.Deficit = cluster.MicroGPU(c.tenant[0])*gpu, cluster.GPUTime(c.tenant[1])*cluster.GPUTime(cluster.Minute)
		cs := []lease.Candidate{{Case: 0, Running: m.in.Cases[0].Runs}}
		got := m.Trials(round.Taken{Leases: leases, Ending: func(int) bool { return false }}, cs)
		if got = slices.DeleteFunc(got, func(x lease.Trial) bool { return x.Pool != v100 }); !slices.Equal(got, c.want) {
			t.Errorf("%s: trials %+v, want %+v", c.name, got, c.want)
		}
	}
}

// A party is due its entitlement to the end of the coming term and its debt, less its leases, in GPUs for a term. Pools are sorted by what jobs do on them.
func TestDebtsAndSpeedsOfPools(t *testing.T) {
	for _, c := range []struct {
		name    string
		speeds  []cluster.Profile
		slowest []int
		fastest []int
	}{
		{"the v100 is faster", declared("bio/x", 2, 1, 3), []int{k80, v100}, []int{v100, k80}},
		{"the k80 is faster", declared("bio/x", 2, 3, 1), []int{v100, k80}, []int{k80, v100}},
		{"nothing is known", nil, []int{k80, v100}, []int{k80, v100}},
	} {
		s := site(waits(7, "bio", 2, "x"), waits(8, "nlp", 2, "x"), waits(9, "ops", 2, "x"))
		s.Declared, s.Cases[2].Job.Request.Model = c.speeds, "k80" // a job of no tenant says nothing of speeds
		m, leases := open(s, [4]int{0, 2, 0, -15}, [4]int{0, 1, 0, 0})
		for range 2 { // the answer is kept, and stays as it was
			if got := m.BySpeed(); !slices.Equal(got, c.slowest) {
				t.Errorf("%s: the slowest first is %v", c.name, got)
			}
			if got := m.FastestFirst(); !slices.Equal(got, c.fastest) {
				t.Errorf("%s: the fastest first is %v", c.name, got)
			}
		}
		leases[0] = on("v100", 1, now.Add(15*cluster.Minute))
		d := m.Debts(round.Taken{Leases: leases, Ending: func(int) bool { return false }}, now.Add(30*cluster.Minute), 0, 2)
		if !slices.Equal(d.Due.Cells, []float64{0, 2, 0, 1}) || !slices.Equal(d.Next.Cells, []float64{0, 2*2 - 1 - 1, 0, 2}) {
			t.Errorf("%s: due %v, next %v", c.name, d.Due.Cells, d.Next.Cells)
		}
	}
}

// The cases and parties of a tenant are those from its first to its last, in whatever order its jobs come.
func TestPartiesOfATenant(t *testing.T) {
	s := site(waits(7, "bio", 1, "z"), waits(8, "ops", 1, "x"), waits(9, "bio", 1, "a"), waits(10, "bio", 1, "m"))
	s.Settings.DivideJobs = false
	m, _ := open(s)
	if cases, first, last := m.Of(0); !slices.Equal(cases, []int{0, 2, 3}) || first != 0 || last != 3 {
		t.Errorf("bio has cases %v and parties from %d to %d", cases, first, last)
	}
	if cases, first, last := m.Of(1); cases != nil || first != last {
		t.Errorf("nlp, without jobs, has cases %v and parties from %d to %d", cases, first, last)
	}
}
