package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/operate"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// bazaar is a journal in PostgreSQL of two tenants with different speedups on a v100. They trade;
// one leaves and comes back. Vision's jobs report progress, and nlp's user declares too high a
// rate.
func bazaar(t *testing.T) *story {
	t.Helper()
	dsn := storetest.Database(t)
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	lead, err := s.Acquire(ctx, "login1.example.org:4711")
	if err != nil {
		t.Fatal(err)
	}
	set := simtest.Product()
	set.Divide = "gandiva-fair"
	w := simtest.New(t, set, append(simtest.Nodes("k", "k80", 2, 4), simtest.Nodes("v", "v100", 2, 4)...), "nlp", "vision")
	w.Rules.Profiles = []cluster.Profile{
		{Kind: "resnet50", Model: "k80", Gang: 1, Rate: 4}, {Kind: "resnet50", Model: "p100", Gang: 1, Rate: 9}, {Kind: "resnet50", Model: "v100", Gang: 1, Rate: 14},
		{Kind: "vision/resnet50", Model: "v100", Gang: 1, Rate: 1.25},
	}
	w.Loop.Journal = lead.Journal()
	w.Reports = cluster.Minute
	w.Speeds = sim.Speeds{{Kind: "bert"}: {"v100": {Speed: 4 * sim.Reference}}, {Kind: "resnet50"}: {"v100": {Speed: 5 * sim.Reference / 4}}}
	submit := func(tenant, comment string, n int, model string, runs cluster.Span) {
		kind, _, _ := strings.Cut(strings.TrimPrefix(comment, "kind="), ",")
		for range n {
			r := simtest.Gang(1)
			r.Model = model
			w.Virtual.Submit(sim.Work{Name: "train-7", User: "ann", Account: tenant, Partition: "gpu", Comment: comment, Kind: kind, Request: r, Runs: runs})
		}
	}
	submit("nlp", "kind=bert,steps/s.v100=5,steps/s.k80=1", 10, "", 9*cluster.Hour)
	submit("nlp", "kind=vit", 1, "k80", 3*cluster.Hour)
	submit("vision", "kind=resnet50,steps/s.k80=1", 9, "", 20*cluster.Minute)
	w.Run(40 * cluster.Minute)
	submit("vision", "kind=resnet50,steps/s.k80=1", 9, "", 3*cluster.Hour)
	w.Run(30*cluster.Minute + 3*cluster.Second)
	return &story{env: []string{"FAIRLEASE_DATABASE_URL=" + dsn, "FAIRLEASE_CONFIG=" + empty(t)}, store: s, world: w, end: w.Now().Time().Add(3 * time.Second)}
}

func TestWhatPeopleReadOfAMarket(t *testing.T) {
	s := bazaar(t)
	for name, args := range map[string]string{
		"profiles":          "profiles",
		"profiles-kind":     "profiles vit",
		"profiles-parsable": "profiles vision/resnet50 -P",
		"profiles-json":     "profiles vision/resnet50 --json",
		"profiles-check":    "profiles --check",
		"trades":            "trades",
		"trades-all":        "trades --all",
		"trades-json":       "trades --json",
		"explain-model":     "explain 3",
		"explain-pinned":    "explain 11",
		"status-divided":    "status",
	} {
		t.Run(name, func(t *testing.T) {
			r := s.run(t, strings.Fields(args)...)
			if r.code != failure.OK || r.err != "" {
				t.Errorf("%s: exit code %d\n%s", args, r.code, r.err)
			}
			golden(t, name, stamps.ReplaceAllString(r.out, "STAMP"))
		})
	}
	if r := s.run(t, "profiles", "no/such"); r.code != failure.No || !strings.Contains(r.err, `no throughput is known of a job type "no/such"`) {
		t.Errorf("an unknown kind: exit code %d\n%s", r.code, r.err)
	}
	if r := s.run(t, "profiles", "a", "b"); r.code != failure.Misuse {
		t.Errorf("two kinds: exit code %d\n%s", r.code, r.err)
	}
	if r := s.run(t, "profiles", "vit", "--check"); r.code != failure.Misuse || !strings.Contains(r.err, `leave "vit" out`) {
		t.Errorf("a check of one kind: exit code %d\n%s", r.code, r.err)
	}
	snap, plan, err := s.world.Loop.Preview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	operate.LookAhead(&snap, &plan, true).Write(&view.Page{Out: &out, Now: cluster.InstantOf(time.Now())}, &snap)
	golden(t, "divided-audited", out.String())
	var x struct{ Models *view.Stake }
	if r := s.run(t, "explain", "3", "--json"); json.Unmarshal([]byte(r.out), &x) != nil || x.Models == nil || x.Models.Party != "nlp/bert" || len(x.Models.Trades) == 0 {
		t.Errorf("the JSON of a job does not have what its party is due: %+v", x.Models)
	}
	var st view.Status
	if r := s.run(t, "status", "--json"); json.Unmarshal([]byte(r.out), &st) != nil || st.Divided != "gandiva-fair" || len(st.Effective) != 2 || st.Effective[0].Tenant != "nlp" || st.Effective[0].Rho == nil {
		t.Errorf("the JSON of status does not have what GPUs do for tenants: %s", r.out)
	}
	for _, args := range [][]string{{"profiles"}, {"trades", "-a"}, {"status"}} {
		r := s.run(t, append(args, "-P")...)
		lines := strings.Split(strings.TrimSpace(r.out), "\n")
		for _, l := range lines {
			if strings.Count(l, "|") != strings.Count(lines[0], "|") {
				t.Errorf("%v: %q does not have the columns of %q", args, l, lines[0])
			}
		}
		if r := s.run(t, append(args, "-P", "--json")...); r.code != failure.Misuse {
			t.Errorf("%v: two forms at once: exit code %d", args, r.code)
		}
	}
}

// Without a policy the list is empty, and the output says so.
func TestNoMarket(t *testing.T) {
	s := tell(t)
	for _, args := range [][]string{{"profiles"}, {"profiles", "--check"}} {
		if r := s.run(t, args...); r.code != failure.No || !strings.Contains(r.err, "no policy divided heterogeneous GPU models") || !strings.Contains(r.err, "gandiva-fair") {
			t.Errorf("%v: exit code %d\n%s", args, r.code, r.err)
		}
	}
	if r := s.run(t, "trades", "-P"); r.code != failure.OK || strings.Count(r.out, "\n") != 1 {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := s.run(t, "trades"); r.code != failure.OK || !strings.HasPrefix(r.out, "There is no trade: no policy divides heterogeneous GPU models; preset gandiva-fair would.\n\nas of round ") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := s.run(t, "round", "--audit"); r.code != failure.Misuse || !strings.Contains(r.err, "--audit goes with --dry-run only") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}

// Before the first round the list is empty, and the output says so.
func TestNoRoundYet(t *testing.T) {
	dsn, _ := leading(t)
	st := &story{env: []string{"FAIRLEASE_DATABASE_URL=" + dsn, "FAIRLEASE_CONFIG=" + empty(t)}, end: time.Now()}
	for args, c := range map[string]struct {
		code int
		want string
	}{
		"profiles":    {failure.No, "no round has been recorded yet\nnext: check with fairlease status"},
		"profiles x":  {failure.No, "no round has been recorded yet"},
		"trades":      {failure.OK, "no round has been recorded yet"},
		"trades -a":   {failure.OK, "no round has been recorded yet"},
		"status":      {failure.OK, "none has been recorded yet"},
		"status -P":   {failure.OK, "POOL|GPUS"},
		"explain 123": {failure.No, "job 123 is not in the journal"},
	} {
		if r := st.run(t, strings.Fields(args)...); r.code != c.code || !strings.Contains(r.out+r.err, c.want) {
			t.Errorf("%s: exit code %d\n%s%s", args, r.code, r.out, r.err)
		}
	}
}

// If jobs are parties, other parties appear by their ids, and jobs whose deadlines cannot be met
// are named.
func TestWhatPeopleReadWhereJobsAreParties(t *testing.T) {
	dsn, lead := leading(t)
	set := simtest.Product()
	set.Divide, set.DivideJobs = "gavel:throughput-slo", true
	w := simtest.New(t, set, append(simtest.Nodes("k", "k80", 1, 2), simtest.Nodes("v", "v100", 1, 2)...), "nlp", "vision")
	w.Loop.Journal = lead.Journal()
	for range 3 {
		w.Submit("nlp", 1, 2, 9*cluster.Hour)
		w.Virtual.Submit(sim.Work{Name: "train", User: "ann", Account: "vision", Partition: "gpu", Request: simtest.Gang(1), Comment: "kind=vit,steps/s.k80=1,steps/s.v100=2,steps=7200",
			Runs: cluster.Hour, Deadline: simtest.Start.Add(40 * cluster.Minute)})
	}
	w.Run(15 * cluster.Minute)
	st := &story{env: []string{"FAIRLEASE_DATABASE_URL=" + dsn, "FAIRLEASE_CONFIG=" + empty(t)}, world: w, end: w.Now().Time().Add(3 * time.Second)}
	if r := st.run(t, "trades"); r.code != failure.OK || !strings.Contains(r.out, "gavel:throughput-slo divides GPU models, and only gandiva-fair trades") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	for name, args := range map[string]string{"explain-late": "explain 6", "explain-party": "explain 5"} {
		r := st.run(t, strings.Fields(args)...)
		if r.code != failure.OK || r.err != "" {
			t.Errorf("%s: exit code %d\n%s", args, r.code, r.err)
		}
		golden(t, name, stamps.ReplaceAllString(r.out, "STAMP"))
	}
	snap, plan, err := w.Loop.Preview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	operate.LookAhead(&snap, &plan, false).Write(&view.Page{Out: &out, Now: cluster.InstantOf(time.Now())}, &snap)
	golden(t, "divided-late", out.String())
}

// A job that is notified because it moves to another model says where and why. A waiting job says
// its kind's entitlement to each model before the first answer of the policy, and names the trial
// of its kind.
func TestWhatPeopleReadOfMoves(t *testing.T) {
	dsn, lead := leading(t)
	set := simtest.Product()
	set.Divide = "gandiva-fair"
	w := simtest.New(t, set, append(simtest.Nodes("k", "k80", 1, 4), simtest.Nodes("v", "v100", 1, 4)...), "nlp", "vision")
	w.Gate, w.Loop.Journal = set.GateTTL, lead.Journal()
	w.Reports = 30 * cluster.Second
	w.Speeds = sim.Speeds{{Kind: "bert"}: {"v100": {Speed: 12 * sim.Reference / 5}}}
	w.Rules.Profiles = []cluster.Profile{{Kind: "bert", Model: "k80", Gang: 1, Rate: 1}, {Kind: "bert", Model: "v100", Gang: 1, Rate: 2.4}}
	submit := func(tenant, kind, model string, n int) (ids []cluster.JobID) {
		for range n {
			r := simtest.Gang(1)
			r.Model = model
			ids = append(ids, w.Virtual.Submit(sim.Work{Name: "train", User: "ann", Account: tenant, Partition: "gpu", Comment: "kind=" + kind, Kind: kind, Request: r, Runs: 9 * cluster.Hour}))
		}
		return ids
	}
	st := &story{env: []string{"FAIRLEASE_DATABASE_URL=" + dsn, "FAIRLEASE_CONFIG=" + empty(t)}, world: w}
	show := func(name string, job cluster.JobID) {
		t.Helper()
		st.end = w.Now().Time().Add(3 * time.Second)
		r := st.run(t, "explain", job.String())
		if r.code != failure.OK || r.err != "" {
			t.Errorf("%s: exit code %d\n%s", name, r.code, r.err)
		}
		golden(t, name, stamps.ReplaceAllString(r.out, "STAMP"))
	}
	vision := submit("vision", "vit", "v100", 4)
	submit("nlp", "bert", "", 4)
	w.Run(20 * cluster.Minute)
	lstm := submit("vision", "lstm", "", 2)
	w.Run(10 * cluster.Second)
	show("explain-unasked", lstm[1])
	w.Run(8*cluster.Minute + 40*cluster.Second)
	for _, id := range append(vision, lstm...) {
		w.Cancel(id)
	}
	w.Run(20 * cluster.Second)
	var moves cluster.JobID
	for _, v := range w.Last.Statuses {
		if v.Reason.To == "v100" {
			for r := range w.Last.State.All() {
				if r.Key == v.Job {
					moves = r.ID
				}
			}
		}
	}
	show("explain-moves", moves)
	var x view.Explanation
	if r := st.run(t, "explain", moves.String(), "--json"); json.Unmarshal([]byte(r.out), &x) != nil || x.Status == nil || x.Status.Reason.To != "v100" || x.Status.Reason.Speed != 2400 {
		t.Errorf("the JSON does not say where it moves to:\n%s", r.out)
	}
	snap, plan, err := w.Loop.Preview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := view.StakeOf(x.Job.Key, &snap, &plan)
	s.Models[len(s.Models)-1].Trial = moves.String()
	if got := s.Words(""); !strings.HasSuffix(got[len(got)-1], "; job "+moves.String()+" is the trial for this model") {
		t.Errorf("of a trial it says %q", got)
	}
}

// The next division in a preview: the first one, a later one with trades and audit, and one
// without an answer.
func TestWhatARoundWouldDivide(t *testing.T) {
	set := simtest.Product()
	set.Divide = "gandiva-fair"
	w := simtest.New(t, set, append(simtest.Nodes("k", "k80", 1, 4), simtest.Nodes("v", "v100", 1, 4)...), "nlp", "vision")
	for kind, rate := range map[cluster.Kind]float64{"nlp/nlp_user.train": 5, "vision/vision_user.train": 1.2} {
		w.Rules.Profiles = append(w.Rules.Profiles, cluster.Profile{Kind: kind, Model: "k80", Gang: 1, Rate: 1}, cluster.Profile{Kind: kind, Model: "v100", Gang: 1, Rate: rate})
	}
	w.Submit("nlp", 6, 1, 3*cluster.Hour)
	vision := w.Submit("vision", 6, 1, 3*cluster.Hour)
	show := func(name string, audit bool) {
		t.Helper()
		snap, plan, err := w.Loop.Preview(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		p := &view.Page{Out: &out, Now: cluster.InstantOf(time.Now())}
		next := operate.LookAhead(&snap, &plan, audit)
		next.Write(p, &snap)
		golden(t, name, out.String())
		if text, err := json.Marshal(next); err != nil || !bytes.Contains(text, []byte(`"round":`)) {
			t.Errorf("%s: as JSON: %v", name, err)
		}
	}
	show("divided-anew", true)
	w.Run(cluster.Minute)
	show("divided", false)
	for _, id := range vision {
		w.Cancel(id)
	}
	w.Advance(w.Now().Add(10 * cluster.Second))
	show("divided-undone", false)
	w.Settings.Divide = "unheard-of"
	w.Loop.Divide = engine.Divide
	show("divided-by-weight", true)
	w.Settings.Divide = ""
	snap, plan, err := w.Loop.Preview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	operate.LookAhead(&snap, &plan, true).Write(&view.Page{Out: &out}, &snap)
	if out.Len() > 0 {
		t.Errorf("of nothing that is divided: %s", &out)
	}
}
