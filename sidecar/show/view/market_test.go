package view_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// ofCells is a trade of cells.
var ofCells = cluster.CellTrade{Trade: cluster.Trade{ID: 7, Fast: "v100", Slow: "k80", FastTo: cluster.PartyName{Tenant: "nlp"}, SlowTo: cluster.PartyName{Tenant: "vision"},
	Price: 4, FastToSpeedup: 6, SlowToSpeedup: 1.2}, Cells: cluster.CellSwap{FastType: "v100-node", FastCells: 1, SlowType: "k80-node", SlowCells: 4}}

// The cells show the trades in force: of one virtual cluster, its own.
func TestCellsShowTrades(t *testing.T) {
	f := view.Cells{VCs: []view.VC{{VC: "nlp"}, {VC: "chem"}}, Trades: []cluster.CellTrade{ofCells}}
	var out bytes.Buffer
	f.Write(&view.Page{Out: &out}, false)
	if want := "trade 7: nlp gets 1 × v100-node (v100) of vision for 4 × k80-node (k80) (4.00 GPUs each)"; !strings.Contains(out.String(), want) {
		t.Errorf("want %q in\n%s", want, &out)
	}
	if f.Only("chem"); len(f.Trades) > 0 {
		t.Errorf("chem trades %+v", f.Trades)
	}
}

// A job's entitlement to each model is shown with its evidence, and with obstacles.
func TestStakeInWords(t *testing.T) {
	base := view.Stake{Party: "nlp/bert", Kind: "nlp/bert", Policy: "oef:coop", Models: []view.ModelStake{
		{Model: "k80", Due: cluster.WholeGPU / 2, Speedup: 1, Source: cluster.Declared}, {Model: "v100", Due: 2 * cluster.WholeGPU, Speedup: 4, Source: cluster.Observed, Trial: "7"}}}
	for _, c := range []struct {
		change      func(*view.Stake)
		named, want string
	}{
		{func(*view.Stake) {}, "", "oef:coop divides them; jobs of type nlp/bert are due\n  0.50 k80: "},
		{func(*view.Stake) {}, "", "; job 7 is the trial for this model"},
		{func(*view.Stake) {}, "v100", "it names v100 and stays there; such jobs of its type are due\n"},
		{func(s *view.Stake) { s.WhyNot = "too slow" }, "v100", "oef:coop has no answer (too slow); using weighted shares until the inputs change\n"},
		{func(s *view.Stake) { s.Unasked = true }, "", "\n  a part of the tenant's share by weight, "},
		{func(s *view.Stake) { s.Bound = "At least 90 %." }, "", "\n  At least 90 %.\n"},
		{func(s *view.Stake) { s.Late = true }, "", "\n  its deadline cannot be kept: "},
		{func(s *view.Stake) { s.Trades = []cluster.Trade{{ID: 9}} }, "", "\n  by trade 9 "},
		{func(s *view.Stake) { s.CellTrades = []cluster.CellTrade{ofCells} }, "",
			"\n  by trade 7 of cells nlp gets 1 × v100-node (v100) of vision for 4 × k80-node (k80) (4.00 GPUs each): one is worth 6.00 to the first, 1.20 to the other"},
	} {
		s := base
		c.change(&s)
		if got := strings.Join(s.Words(c.named), "\n"); !strings.Contains(got, c.want) {
			t.Errorf("want %q in\n%s", c.want, got)
		}
	}
}

// An audit marks tenants that would be better off alone, and names the most envied and the
// remaining slack.
func TestAudit(t *testing.T) {
	more := 0.125
	snap, plan := small()
	snap.Settings.Divide = "oef:coop"
	a := &view.Ahead{Plan: *plan, Audit: &cluster.Audit{Tenants: []cluster.AuditedTenant{{Tenant: "nlp", Incentive: 0.9, More: &more}, {Tenant: "vision", Incentive: 1.2}},
		Envy: []cluster.Envy{{Tenant: "nlp", Of: "vision", Ratio: 1.1}, {Tenant: "nlp", Of: "chem", Ratio: 1.3}}, Slack: 0.02}}
	var out bytes.Buffer
	a.Write(&view.Page{Out: &out}, snap)
	for _, want := range []string{"Divided by oef:coop, unchanged:\n", "nlp         0.900      1.300  chem     +12.5%  not tried\n", "Slack:   2.00% more throughput is possible with no tenant losing\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, &out)
		}
	}
	out.Reset()
	snap.Allocation = &cluster.Allocation{Policy: "oef:coop", Objective: 9, Bound: 10}
	a.Write(&view.Page{Out: &out}, snap)
	st := view.StatusOf(nil, snap, plan, nil)
	if !strings.Contains(out.String(), "has at least 90.0 % of") || !strings.Contains(st.Bound, "has at least 90.0 % of") {
		t.Errorf("nothing is said of the bound: %q, %s", st.Bound, &out)
	}
	snap.Settings.Divide = "oef:noncoop" // has no allocation yet
	if st := view.StatusOf(nil, snap, plan, nil); st.Bound != "" {
		t.Errorf("the bound of another policy is shown: %q", st.Bound)
	}
	out.Reset()
	snap.Settings.Divide = ""
	a.Write(&view.Page{Out: &out}, snap)
	if out.Len() > 0 {
		t.Errorf("of nothing that is divided: %s", &out)
	}
}

// An empty list of trades gives the reason.
func TestNoTrades(t *testing.T) {
	for _, c := range []struct {
		divide string
		all    bool
		want   string
	}{
		{"", false, "There is no trade: no policy divides heterogeneous GPU models; preset gandiva-fair would.\n"},
		{"oef:coop", false, "There is no trade: oef:coop divides GPU models, and only gandiva-fair trades.\n"},
		{"gandiva-fair", true, "No trade was made that is remembered still.\n"},
		{"gandiva-fair", false, "No trade is in force; fairlease trades --all has those that are over.\n"},
	} {
		var out bytes.Buffer
		(&view.Page{Out: &out}).NoTrades(c.divide, false, c.all)
		if out.String() != c.want {
			t.Errorf("%+v: %q", c, &out)
		}
	}
}

// Estimates follow declarations, and only the effective rate has a speedup.
func TestProfiles(t *testing.T) {
	snap, plan := &cluster.Snapshot{}, &cluster.Plan{}
	plan.State.Ledger.Pools = []cluster.PoolAccount{{Pool: "k80"}, {Pool: "v100"}}
	snap.Declared = []cluster.Profile{{Kind: "bert", Model: "k80", Gang: 1, Rate: 1}, {Kind: "bert", Model: "v100", Gang: 1, Rate: 3},
		{Kind: "bert", With: cluster.AcrossSwitches, Model: "v100", Gang: 8, Rate: 0.8, Relative: true}}
	all := view.Profiles(snap, plan)
	if len(all) != 3 || all[0].Model != "k80" || all[1].Speedup == nil || all[1].Speedup.Value != 3 {
		t.Fatalf("%+v", all)
	}
	var out bytes.Buffer
	page := &view.Page{Out: &out, Now: at, Form: view.Form{Parsable: true, NoHeader: true}}
	page.Table(view.ProfileTable(page, all))
	if !strings.HasPrefix(out.String(), "bert||1|k80|1|1.00|1.00-1.00|declared|||") || !strings.Contains(out.String(), "\nbert|(across switches)|8|v100||0.80||declared|||") {
		t.Error(out.String())
	}
}

// Types whose jobs report nothing have rows by their evidence, without steps; the check counts what each source tells.
func TestProfilesWithoutReports(t *testing.T) {
	snap, plan := &cluster.Snapshot{}, &cluster.Plan{}
	plan.State.Ledger.Pools = []cluster.PoolAccount{{Pool: "k80"}, {Pool: "v100"}}
	plan.State.Completions = []cluster.Completion{{Kind: "nlp/ann.train.py:01234567", Gang: 2, Models: []string{"k80", "v100"}, At: at.Add(-cluster.Hour),
		Rates: []cluster.RunRate{{Rate: 1e-4, Spread: 0.1, Jobs: 6}, {Rate: 3e-4, Spread: 0.05, Jobs: 9}}}}
	var out bytes.Buffer
	page := &view.Page{Out: &out, Now: at, Form: view.Form{Parsable: true, NoHeader: true}}
	page.Table(view.ProfileTable(page, view.Profiles(snap, plan)))
	if want := "nlp/ann.train.py:01234567||2|v100||3.00|2.40-3.75|completions|9|5.0%|01:00:00|run times of 9 jobs that completed\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("%q, want %q at the end", out.String(), want)
	}
	out.Reset()
	page.Table(view.ProfileCheckTable(page, view.ProfileChecks(snap, plan)))
	if !strings.Contains(out.String(), "completions|2|2|100.0%|||\n") || !strings.Contains(out.String(), "unknown|0|2|0.0%|||\n") {
		t.Error(out.String())
	}
}

// A past lease has no time left, and with --all a reason. One in force has its forecast.
func TestLeaseTable(t *testing.T) {
	began, ended := at.Time(), at.Add(cluster.Minute).Time()
	leases := []store.Lease{{SlurmID: "1", Tenant: "nlp", User: "ann", GPUs: cluster.CountOf(8), Pool: "v100", Nodes: []string{"a3", "a4"}, Term: 2, State: "active", Class: "shared", Started: &began, Ends: at.Add(cluster.Hour).Time()},
		{SlurmID: "2", Pool: "v100", Ends: at.Add(cluster.Hour).Time(), Ended: &ended, Why: "done"}}
	hour, later := at.Add(cluster.Hour).Time(), at.Add(2*cluster.Hour).Time()
	leases[0].Ahead = &store.Forecast{Waits: true, EndP10: &hour, EndP50: &later}
	var out bytes.Buffer
	p := &view.Page{Out: &out, Form: view.Form{Parsable: true, NoHeader: true}, Now: at.Add(30 * cluster.Minute)}
	p.Table(p.LeaseTable(leases, true))
	if want := "1|nlp|ann|8|v100|a[3-4]|2|active|shared|08:00:00|09:00:00|00:30:00||ends about 10:00, after 09:00 in 9 of 10 runs\n2|||0|v100||0|||-|08:01:00|-|done|-\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// A job's explanation says why it waits, what it requests and what was done with it.
func TestExplanation(t *testing.T) {
	snap, plan := small()
	yes, no := true, false
	x := store.Explanation{Job: store.Job{Key: 2, SlurmID: "102", User: "ann", Account: "nlp", GPUs: cluster.CountOf(1), Model: "v100", State: "waiting"}, Status: &plan.Statuses[1], Round: 9, At: at, NumbersAt: at,
		Newest: store.Edge{Snapshot: *snap, Plan: *plan}, Overrides: []store.Override{{Kind: "boost", Scope: "user", Name: "ann", Until: at.Time(), By: "bob", Reason: "r"}},
		Actions: []store.Action{{Verb: "gate", OK: &yes, At: at.Time()}, {Verb: "open", OK: &no, Skipped: &yes, At: at.Time()}, {Verb: "open", OK: &no, At: at.Time()}, {Verb: "grant", Suppressed: true, At: at.Time()}, {Verb: "lock", At: at.Time()}}}
	var out bytes.Buffer
	view.Explain(x).Write(&view.Page{Out: &out, Now: at})
	for _, want := range []string{"Job         102 of ann, account nlp, tenant none", "Asks for    1 v100 GPU, without a time limit\n", "Overrides   boost user ann until 08:00:00 (now), by bob: r\n",
		"gate      done", "open      skipped", "open      failed", "grant     suppressed", "lock      unknown", "As of       round 9 at 08:00:00 (now)\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, &out)
		}
	}
}

// The status says where another order decides than models.chooser.
func TestStatusSaysWhatReplacesTheChooser(t *testing.T) {
	snap, plan := small()
	snap.Settings.Divide, snap.Settings.Mechanism, snap.Settings.Users = "gavel:las", cluster.ByOEF, cluster.UsersEqual
	job := func(tenant, user string) cluster.Case {
		return cluster.Case{Job: cluster.Job{State: cluster.Waiting}, Record: cluster.Record{Tenant: tenant, User: user}}
	}
	snap.Cases = []cluster.Case{job("nlp", "ann"), job("vision", "bob")}
	if st := view.StatusOf(nil, snap, plan, nil); st.Chooser != "oef" || st.Replaced != nil {
		t.Errorf("no tenant has several users: %q, %q", st.Chooser, st.Replaced)
	}
	snap.Cases = append(snap.Cases, job("nlp", "eve"))
	snap.Settings.Chooser = cluster.CellsByShare
	snap.Cells = &cluster.Cells{VCs: []cluster.VC{{Name: "nlp"}, {Name: "vision", Chooser: cluster.CellsFirstCome}}}
	want := []string{"users: equal: users take turns in place of models.chooser oef, as there are jobs of several users of nlp",
		"cells.chooser: fifo orders jobs in place of models.chooser oef in the cells of vision"}
	st := view.StatusOf(nil, snap, plan, nil)
	if d := cmp.Diff(want, st.Replaced); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	var out bytes.Buffer
	if st.Write(&view.Page{Out: &out}); !strings.Contains(out.String(), want[0]) {
		t.Errorf("the page says nothing of it:\n%s", &out)
	}
}

// The status says whether a virtual cluster's own scheduler orders its jobs, since when, and why not.
func TestStatusOfSchedulers(t *testing.T) {
	snap, plan := small()
	since, term := snap.Now.Add(-cluster.Hour), 15*cluster.Minute
	snap.Settings.Term = term
	own := &cluster.VCScheduler{Command: []string{"/usr/local/bin/order"}, Deadline: 2 * cluster.Second}
	snap.Cells = &cluster.Cells{VCs: []cluster.VC{{Name: "a", Scheduler: own}, {Name: "b", Scheduler: own}, {Name: "c", Scheduler: own}, {Name: "d", Scheduler: own}, {Name: "e"}}}
	snap.VCOrders = []cluster.VCOrder{{VC: "a", At: snap.Now, Since: since, Turns: make([]cluster.VCTurn, 3)}, {VC: "b", At: snap.Now, Since: since, Why: "its deadline of 2s passed"},
		{VC: "c", At: snap.Now.Add(-2 * term), Since: since, Turns: make([]cluster.VCTurn, 1)}}
	plan.Cells = &cluster.CellReport{Dropped: []cluster.DroppedPlacements{{VC: "a", Why: cluster.DroppedRuns, Jobs: 2}}}
	var out bytes.Buffer
	view.StatusOf(nil, snap, plan, nil).Write(&view.Page{Out: &out})
	for _, want := range []string{
		"virtual cluster a: its own scheduler orders its jobs since SINCE; its last answer names 3 jobs; 2 placements not carried out: the job holds other GPUs\n",
		"virtual cluster b: the built-in order decides since SINCE in place of its own scheduler: its deadline of 2s passed\n",
		"virtual cluster c: the built-in order decides in place of its own scheduler: its last answer is 2 terms old, or older\n",
		"virtual cluster d: the built-in order decides in place of its own scheduler: it has not answered yet\n",
	} {
		if want = strings.Replace(want, "SINCE", (&view.Page{}).Time(since), 1); !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "virtual cluster e") {
		t.Error("it speaks of a virtual cluster without a scheduler")
	}
}

// The status lists what the preset of a paper sets.
func TestStatusListsDefaultsOfAPaper(t *testing.T) {
	snap, plan := small()
	if st := view.StatusOf(nil, snap, plan, nil); st.Preset != "" || st.Differs != nil {
		t.Errorf("of the usual defaults: %q, %q", st.Preset, st.Differs)
	}
	snap.Settings.Preset, snap.Settings.Differs = "astraea:paper", []string{"jobs.order: rho (not expected)", "repay.floor: 0 (not 75)"}
	var out bytes.Buffer
	if view.StatusOf(nil, snap, plan, nil).Write(&view.Page{Out: &out}); !strings.Contains(out.String(), "preset astraea:paper sets jobs.order: rho (not expected), repay.floor: 0 (not 75)\n") {
		t.Errorf("the page says:\n%s", &out)
	}
}
