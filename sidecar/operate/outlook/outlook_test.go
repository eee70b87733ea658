package outlook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/sidecar/store"
)

// says fails unless an error is a misuse with some words, or is nil for none.
func says(t *testing.T, what string, err error, words string) {
	t.Helper()
	var f *failure.Error
	switch {
	case words == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case words != "" && (!errors.As(err, &f) || f.Code != failure.Misuse || !strings.Contains(err.Error(), words)):
		t.Errorf("%s: %v, want %q", what, err, words)
	}
}

// Weights are numbers in the configuration's unit, or factors of what they are.
func TestWeights(t *testing.T) {
	for _, c := range []struct {
		list   []string
		config bool // weights are the configuration's, not Slurm's shares
		want   map[string]int64
		words  string
	}{
		{[]string{"nlp=3"}, true, map[string]int64{"nlp": 3, "bio": 5}, ""},
		{[]string{"nlp=x2.6", "bio=x0"}, false, map[string]int64{"nlp": 26, "bio": 0}, ""},
		{[]string{"nlp=1", "bio=2"}, false, map[string]int64{"nlp": 1, "bio": 2}, ""},
		{[]string{"nlp=3"}, false, nil, "come from Slurm's shares"},
		{[]string{"eve=3"}, true, nil, `there is no tenant "eve"; there are bio, nlp`},
		{[]string{"nlp"}, true, nil, "write tenants with whole numbers or factors"},
		{[]string{"nlp="}, true, nil, "write tenants with whole numbers or factors"},
		{[]string{"nlp=-1"}, true, nil, "write tenants with whole numbers or factors"},
		{[]string{"nlp=x-1"}, true, nil, "write tenants with whole numbers or factors"},
		{[]string{"nlp=2.5"}, true, nil, "write tenants with whole numbers or factors"},
		{[]string{"nlp=NaN"}, true, nil, "write tenants with whole numbers or factors"},
		{[]string{"nlp=x1e300"}, true, nil, "write tenants with whole numbers or factors"},
	} {
		cfg, weights := config.Default(), map[string]int64{"nlp": 10, "bio": 5}
		if c.config {
			cfg.Tenants.Weights = map[string]int64{"nlp": 10}
		}
		words, err := (&Change{Weights: c.list}).weigh(weights, cfg)
		says(t, fmt.Sprint(c.list), err, c.words)
		if err == nil && (fmt.Sprint(weights) != fmt.Sprint(c.want) || len(words) != len(c.list)) {
			t.Errorf("%v: weights %v, in words %v", c.list, weights, words)
		}
	}
}

// A change is applied to the setup of one replay, and not to that which it is compared with.
func TestChanges(t *testing.T) {
	fleet, err := experiment.ParseFleet("2x8:v100")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change Change
		check  func(*experiment.Setup) bool
		words  string
	}{
		{Change{Add: "3x4:h100"}, func(s *experiment.Setup) bool { return s.Fleet.String() == "2x8:v100+3x4:h100" }, ""},
		{Change{Preset: preset.Astraea}, func(s *experiment.Setup) bool { return s.Scheduler == preset.Astraea }, ""},
		{Change{Preset: preset.GandivaFair}, func(s *experiment.Setup) bool { return s.Scheduler == "fairlease:gandiva-fair" }, ""},
		{Change{Term: "30m"}, func(s *experiment.Setup) bool { return s.Settings.Term == 30*cluster.Minute }, ""},
		{Change{}, nil, "nothing is changed"},
		{Change{Add: "-1x8"}, nil, "--add"},
		{Change{Add: "0x8:h100"}, nil, "--add"},
		{Change{Add: "8x-8:h100"}, nil, "--add"},
		{Change{Add: "many"}, nil, "--add"},
		{Change{Preset: "nonsense"}, nil, "cannot be replayed"},
		{Change{Term: "-5m"}, nil, "-5m"},
		{Change{Term: "soon"}, nil, "soon"},
	} {
		base := experiment.Default()
		base.Fleet, base.Weights = fleet, map[string]int64{"nlp": 1}
		base.Load = experiment.Load{Name: "x", Jobs: func(func(trace.Job) bool) {}}
		was := base.Fleet.String()
		s := base
		words, err := c.change.apply(&s, config.Default())
		says(t, fmt.Sprintf("%+v", c.change), err, c.words)
		if err == nil && (!c.check(&s) || words == "") {
			t.Errorf("%+v: %q", c.change, words)
		}
		if base.Fleet.String() != was {
			t.Errorf("%+v has changed the fleet that it is compared with", c.change)
		}
	}
}

// A repetition leaves out about a tenth of the jobs, the same ones each time, and others than the next.
func TestRepetitions(t *testing.T) {
	s := experiment.Setup{Load: experiment.Load{Jobs: func(yield func(trace.Job) bool) {
		for i := range 10_000 {
			if !yield(trace.Job{ID: fmt.Sprint(i)}) {
				return
			}
		}
	}}}
	ids := func(repetition int) (out []string) {
		for j := range without(s, repetition).Load.Jobs {
			out = append(out, j.ID)
		}
		return out
	}
	if n := len(ids(0)); n != 10_000 {
		t.Errorf("the first replay has %d jobs", n)
	}
	one := ids(1)
	if len(one) < 8_800 || len(one) > 9_200 || !slices.Equal(one, ids(1)) || slices.Equal(one, ids(2)) {
		t.Errorf("a repetition has %d jobs", len(one))
	}
	for j := range without(s, 1).Load.Jobs { // a reader may stop
		_ = j
		break
	}
}

// The value is that of the whole time; the range is over all replays, and that of a difference over pairs of them.
func TestReport(t *testing.T) {
	scores := func(wait, gpus float64, stops int) score.Scores {
		return score.Scores{Preemptions: stops, Tenants: []score.Tenant{{Tenant: "nlp", Jobs: score.Counts{Finished: 7}, Alloc: gpus, Wait: score.Stats{Mean: wait}, Rho: 0.5}, {Tenant: "bio"}}}
	}
	was := scores(7200, 90, 9)
	at := time.Unix(1_800_000_000, 0).UTC()
	r := report(at, at.Add(time.Hour), "term 30m", &was, []score.Scores{scores(3600, 100, 10), scores(1800, 80, 14)}, []score.Scores{scores(1800, 110, 5), scores(3600, 120, 4)})
	nlp := r.Tenants[0]
	if len(r.Tenants) != 2 || r.Repetitions != 1 || nlp.Was.Wait.Value != 7200 || nlp.Now.Wait != (Measured{3600, 1800, 3600}) || nlp.Other.GPUHours != (Measured{110, 110, 120}) ||
		nlp.Waits != (Measured{-1800, -1800, 1800}) || r.Preemptions.Was != 9 || r.Preemptions.Now != (Measured{10, 10, 14}) || r.Preemptions.Other != (Measured{5, 4, 5}) {
		t.Errorf("%+v", r)
	}
	var out bytes.Buffer
	if err := r.Write(&view.Page{Out: &out}, func(t time.Time) string { return t.Format(time.DateOnly) }); err != nil {
		t.Fatal(err)
	}
	for _, has := range []string{"with term 30m (OTHER)", "-0.50 (-0.50 to +0.50)", "preemptions: 9 as it was, 10 now (10 to 14), 5 with other settings (4 to 5)"} {
		if !strings.Contains(out.String(), has) {
			t.Errorf("no %q in\n%s", has, &out)
		}
	}
	if math.IsInf(r.Tenants[1].Waits.Low, 0) {
		t.Errorf("%+v", r.Tenants[1])
	}
}

// A time in which no job ran or waited has nothing to replay.
func TestNoHistory(t *testing.T) {
	past := &store.Past{}
	past.Begin.Plan.At, past.End.Plan.At = 1_800_000_000_000, 1_800_003_600_000
	past.End.Snapshot.Nodes = []cluster.Node{{Name: "n1", GPUs: []cluster.GPUs{{Model: "v100", Count: 8}}}}
	past.Begin.Snapshot.Nodes = past.End.Snapshot.Nodes
	_, err := (&Change{Term: "30m"}).Replay(context.Background(), past, config.Default(), func(t time.Time) string { return t.Format(time.DateOnly) })
	var f *failure.Error
	if !errors.As(err, &f) || f.Code != failure.No || !strings.Contains(f.What, "no job with GPUs ran or waited") {
		t.Error(err)
	}
}

// site is a question about two nodes, with a job of nlp on each and one of bio that waits.
func site() *forecast.Question {
	snap, plan := &cluster.Snapshot{Round: 7, Now: 1_800_000_000_000, NextKey: 4, Settings: config.Default().Settings()}, &cluster.Plan{Round: 7}
	for i, model := range []string{"v100", "h100"} {
		name := fmt.Sprintf("n%d", i+1)
		snap.Nodes = append(snap.Nodes, cluster.Node{Name: name, GPUs: []cluster.GPUs{{Model: model, Count: 8}}, Partitions: []string{"gpu"}})
		for _, tenant := range []string{"bio", "nlp"} {
			plan.State.Ledger.Tenants = append(plan.State.Ledger.Tenants, cluster.TenantPool{Tenant: tenant, Pool: model, Entitlement: 4 * cluster.WholeGPU})
		}
	}
	snap.Tenants = []cluster.Tenant{{Name: "bio", Weight: 1}, {Name: "nlp", Weight: 1}}
	for i := range 3 {
		key := cluster.JobKey(i + 1)
		c := cluster.Case{Control: cluster.FullControl, Job: cluster.Job{ID: cluster.JobID{ID: int64(key)}, State: cluster.Waiting, Partitions: []string{"gpu"}, Batch: true, Requeueable: true, Request: cluster.Request{Size: cluster.Whole(8), Nodes: 1}},
			Record: cluster.Record{Key: key, ID: cluster.JobID{ID: int64(key)}, Tenant: "bio", First: snap.Now}}
		if i < 2 {
			c.Job.State, c.Job.Start, c.Record.Tenant, c.Record.Terms = cluster.Running, snap.Now.Add(-cluster.Hour), "nlp", 1
			c.Job.Holds = []cluster.Holding{{Node: snap.Nodes[i].Name, Model: snap.Nodes[i].GPUs[0].Model, Size: cluster.Whole(8)}}
			c.Record.Alloc = cluster.Times(8, cluster.Hour)
			c.Control = cluster.NoReclaim
		}
		snap.Cases = append(snap.Cases, c)
	}
	return &forecast.Question{Snapshot: snap, Plan: plan, Runs: 10, Seed: 1, Horizon: 2 * cluster.Day,
		Known: map[cluster.JobKey]cluster.Span{1: 3 * cluster.Hour, 2: 5 * cluster.Hour, 3: cluster.Hour}}
}

// A drain of the node that would be free first delays the job that waits for it, and ends the jobs on it.
func TestDrain(t *testing.T) {
	q := site()
	from := q.Snapshot.Now.Add(cluster.Hour)
	list, err := Drained(t.Context(), q, &Drain{Nodes: []string{"n1"}, From: from, Until: from.Add(10 * cluster.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	var bio, nlp Hurt
	for _, h := range list {
		if h.Tenant == "bio" {
			bio = h
		} else {
			nlp = h
		}
	}
	if bio.Jobs != 1 || bio.Later != 1 || bio.Delay != 2*cluster.Hour || nlp.Jobs != 2 || nlp.On != 1 {
		t.Errorf("%+v", list)
	}
	if len(bio.Hurt) != 1 || bio.Hurt[0].Delay != 2*cluster.Hour || bio.Hurt[0].On || len(nlp.Hurt) == 0 || !nlp.Hurt[0].On {
		t.Errorf("jobs of bio %+v, of nlp %+v", bio.Hurt, nlp.Hurt)
	}
	var text strings.Builder
	if err := WriteHurts(&view.Page{Out: &text}, list); err != nil || !strings.Contains(text.String(), "ENDS_LATER_BY") || !strings.Contains(text.String(), bio.Hurt[0].Job+" ") {
		t.Errorf("%v\n%s", err, text.String())
	}
	if len(q.Closed) > 0 {
		t.Error("the question has changed")
	}
	for words, d := range map[string]Drain{
		`no node "n9"`:                        {Nodes: []string{"n1", "n9"}, From: from},
		"begins after the forecasts' horizon": {Nodes: []string{"n1"}, From: q.Snapshot.Now.Add(3 * cluster.Day)},
	} {
		_, err := Drained(t.Context(), q, &d)
		says(t, words, err, words)
	}
}

// Submissions have GPUs, a time and a tenant, and perhaps more.
func TestSubmissions(t *testing.T) {
	for text, want := range map[string]Submission{
		"8 gpus 24h as nlp":            {GPUs: 8, Runs: 24 * cluster.Hour, Tenant: "nlp"},
		" 1  gpu 90m as  bio on H100 ": {GPUs: 1, Runs: 90 * cluster.Minute, Tenant: "bio", Model: "h100"},
		"8 gpus 24h as nlp licenses matlab:2,ansys qos high user alice account text partition gpu": {GPUs: 8, Runs: 24 * cluster.Hour, Tenant: "nlp", Account: "text",
			User: "alice", QOS: "high", Partition: "gpu", Licenses: "matlab:2,ansys"},
	} {
		if got, err := ParseSubmission(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for text, words := range map[string]string{
		"": "write GPUs, run time and tenant", "four gpus 1h as nlp": "is no number of GPUs", "-4 gpus 1h as nlp": "is no number of GPUs", "4 gpus 1h for nlp": "write GPUs",
		"4 gpus 1h as nlp on": "write GPUs", "4 gpus 1h as nlp by alice": `"by" is none of on, user`, "4 gpus 1h as nlp user alice user bob": "user is there twice",
		"0 gpus 1h as nlp": "is no number of GPUs", "99999999999999999999 gpus 1h as nlp": "is no number of GPUs", "4 gpus soon as nlp": "soon", "4 gpus -1h as nlp": "-1h", "4 gpus 0s as nlp": "a job runs for some time",
	} {
		_, err := ParseSubmission(text)
		says(t, text, err, words)
	}
	q := site()
	choices, err := Submit(t.Context(), q, &Submission{GPUs: 8, Runs: cluster.Hour, Tenant: "bio"})
	if err != nil || len(choices) != 3 || choices[0].Model != "" || choices[1].Model != "h100" || choices[2].Model != "v100" {
		t.Fatalf("%+v, %v", choices, err)
	}
	// The job on v100 has two more hours, that on h100 four.
	on := func(i int) time.Duration { return choices[i].StartP50.Sub(q.Snapshot.Now.Time()) }
	if on(2) < 2*time.Hour || on(2) >= 4*time.Hour || on(1) < 4*time.Hour || on(0) >= 4*time.Hour {
		t.Errorf("any model after %v, h100 after %v, v100 after %v", on(0), on(1), on(2))
	}
	if len(q.Snapshot.Cases) != 3 || len(q.Known) != 3 {
		t.Error("the question has changed")
	}
	var out bytes.Buffer
	if err := WriteSubmission(&view.Page{Out: &out, Now: q.Snapshot.Now}, &Submission{GPUs: 8, Runs: cluster.Hour}, choices); err != nil || !strings.Contains(out.String(), "it would end first on v100") {
		t.Errorf("%v\n%s", err, &out)
	}
	for words, s := range map[string]Submission{
		`no tenant "eve"; there are bio, nlp`: {GPUs: 8, Runs: cluster.Hour, Tenant: "eve"},
		`is a "x100"; there are h100, v100`:   {GPUs: 8, Runs: cluster.Hour, Tenant: "bio", Model: "x100"},
		`a partition "cpu"; there are gpu`:    {GPUs: 8, Runs: cluster.Hour, Tenant: "bio", Partition: "cpu"},
		`"," are no licences`:                 {GPUs: 8, Runs: cluster.Hour, Tenant: "bio", Licenses: ","},
		`how many licences of matlab`:         {GPUs: 8, Runs: cluster.Hour, Tenant: "bio", Licenses: "matlab:2"},
	} {
		_, err := Submit(t.Context(), q, &s)
		says(t, words, err, words)
	}
	// A job that Slurm's rules do not let start even when others end has no start time: it names the rule, its numbers, and who
	// can change it.
	gpus := func(n int64) []cluster.Cap { return []cluster.Cap{{Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: n}} }
	for _, x := range []struct {
		rules cluster.Admission
		job   Submission
		after cluster.Span // it starts
		why   string
	}{
		{cluster.Admission{Limits: cluster.Limits{Associations: []cluster.Association{{Account: "bio", Caps: gpus(4)}}}}, Submission{Tenant: "bio"}, 0,
			"not before the limit of account bio changes: account bio has GrpTRES=gres/gpu=4, less than the job asks for; an administrator can change it (sacctmgr)"},
		{cluster.Admission{Limits: cluster.Limits{Associations: []cluster.Association{{Account: "bio", User: "eve", Caps: gpus(4)}}}}, Submission{Tenant: "bio", User: "eve"}, 0,
			"not before the limit of user eve in account bio changes: user eve in account bio has GrpTRES=gres/gpu=4, less than the job asks for; an administrator can change it (sacctmgr)"},
		{cluster.Admission{Limits: cluster.Limits{QOS: []cluster.QOS{{Name: "low", Caps: gpus(4)}}}}, Submission{Tenant: "bio", QOS: "low"}, 0,
			"not before the limit of QOS low changes: QOS low has GrpTRES=gres/gpu=4, less than the job asks for; an administrator can change it (sacctmgr)"},
		{cluster.Admission{Limits: cluster.Limits{Licenses: []cluster.LicenseCount{{Name: "matlab", Total: 4, Used: 3}}}}, Submission{Tenant: "bio", Licenses: "matlab:2"}, 0,
			"not before its licences are free, or there are more of them: licence matlab: 3 of 4 in use; your job asks for 2; an administrator can change their number (Licenses in slurm.conf)"},
		{cluster.Admission{Limits: cluster.Limits{Associations: []cluster.Association{{Account: "nlp", Caps: gpus(16)}}}}, Submission{Tenant: "nlp"}, 2 * cluster.Hour, ""},
		{cluster.Admission{Limits: cluster.Limits{Associations: []cluster.Association{{Account: "nlp", Caps: gpus(8)}}}}, Submission{Tenant: "nlp"}, 4 * cluster.Hour, ""},
		{cluster.Admission{Partitions: []cluster.Partition{{Name: "gpu", Up: true, MaxTime: 30 * cluster.Minute}}}, Submission{Tenant: "bio"}, 0,
			"not before the rules of partition gpu change: partition gpu has MaxTime=00:30:00; an administrator can change it (scontrol update partition)"},
		{cluster.Admission{Limits: cluster.Limits{Associations: []cluster.Association{{Account: "bio", Caps: gpus(4)}}}}, Submission{Tenant: "nlp"}, 2 * cluster.Hour, ""},
	} {
		ruled := site()
		for i := range ruled.Snapshot.Cases {
			ruled.Snapshot.Cases[i].Job.Account = ruled.Snapshot.Cases[i].Record.Tenant
		}
		ruled.Snapshot.Admission = &x.rules
		x.job.GPUs, x.job.Runs, x.job.Model = 8, cluster.Hour, "v100"
		choices, err := Submit(t.Context(), ruled, &x.job)
		if err != nil || len(choices) != 1 || choices[0].Why != x.why || (choices[0].StartP50 == nil) != (x.why != "") {
			t.Errorf("%+v: %+v, %v, want %q", x.job, choices, err, x.why)
		} else if at := choices[0].StartP50; at != nil && (at.Sub(q.Snapshot.Now.Time()) < x.after.Duration() || at.Sub(q.Snapshot.Now.Time()) > x.after.Duration()+2*time.Hour) {
			t.Errorf("%+v starts after %v, want %v or an hour later", x.job, at.Sub(q.Snapshot.Now.Time()), x.after)
		}
		out.Reset()
		if err := WriteSubmission(&view.Page{Out: &out, Now: q.Snapshot.Now}, &Submission{GPUs: 8, Runs: cluster.Hour, Model: "v100"}, choices); err != nil || x.why != "" && !strings.Contains(out.String(), "v100         "+x.why) {
			t.Errorf("%v\n%s", err, &out)
		}
	}
	none, err := Submit(t.Context(), q, &Submission{GPUs: 17, Runs: cluster.Hour, Tenant: "bio"}) // more than one model has
	if err != nil || len(none) != 1 || none[0].StartP50 != nil {
		t.Errorf("%+v, %v", none, err)
	}
}
