package store_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
	"github.com/fairlease/fairlease/sidecar/telemetry/remark"
)

// A look is read as it was written; the next one replaces it, and hours add up. A new leader clears the rows of nodes
// that are gone.
func TestGPUs(t *testing.T) {
	t.Parallel()
	l := newLife(t, store.Config{}, journaltest.NewStory(20, 4, 60))
	snap, _ := l.round()
	job := &snap.Cases[0]
	lapse(t, l.db)
	lead := takeLead(t, l.store)
	at := cluster.Instant(1_800_003_000_000)
	values := func(util, power float64) (v gpu.Values) {
		for m := range v {
			v[m] = math.NaN()
		}
		v[gpu.Util], v[gpu.Power], v[gpu.Used], v[gpu.Free] = util, power, 61<<30, 19<<30
		return v
	}
	kind := cluster.JobType{User: "ann", Command: "train #", GPUs: 2}
	look := &store.Look{
		Report: &gpu.Report{At: at,
			GPUs: []gpu.GPU{
				{Node: "a", Row: gpu.Row{Index: 0, Model: "H100\x00\xff", Values: values(0.61, 404)}, State: gpu.Fresh},
				{Node: "a", Row: gpu.Row{Index: 1, Instance: "7", Model: "H100", Values: values(0, 70)}, State: gpu.Fresh, Idle: true, IdleSince: at - 60_000},
				{Node: "b", Row: gpu.Row{Index: 0, Model: "H100", Values: values(math.NaN(), 70)}, State: gpu.Unknown, Why: "too little"},
			},
			Nodes:  []gpu.NodeState{{Node: "a", State: gpu.Fresh, Read: at, Since: at}, {Node: "b", State: gpu.Silent, Why: "no answer"}},
			Memory: []cluster.MemoryUse{{Type: kind, Model: "h100", Bytes: 70 << 30, Completed: true, At: at - at%3_600_000}},
			Sizes:  []cluster.GPUMemory{{Model: "h100", Bytes: 80 << 30}}},
		Owners:  func(g *gpu.GPU) (cluster.JobKey, bool) { return job.Record.Key, g.Node == "a" && g.Index == 0 },
		Hours:   []gpu.HourUse{{Hour: at - at%3_600_000, Job: job.Record.Key, Model: "h100", Held: 2000, Seen: 1000, Idle: 400, Util: gpu.Weighted{Sum: 600, Time: 1000}, Memory: 5}},
		Remarks: []gpu.Remark{{Kind: gpu.HoldsIdle, Job: job.Record.Key, GPU: -1, Text: "has held 4 idle GPUs for 40 min"}},
		Stand: []gpu.Remark{{Kind: remark.Stall, Job: job.Record.Key, GPU: -1, Since: at, Text: "has stood still"},
			{Kind: remark.Straggler, Job: job.Record.Key, Node: "a", GPU: 5, Since: at + 1, Text: "slow\x00"}},
		Usual: []remark.Baseline{{Type: kind, Model: "h100", Measure: "speed", Level: cluster.Level{Jobs: 12, Mean: 0.5, Spread: 0.1}, Apart: 2, At: at}},
	}
	write := func() {
		t.Helper()
		if err := lead.Look(t.Context(), look); err != nil {
			t.Fatal(err)
		}
	}
	write()
	list, err := l.store.GPUs.List(t.Context(), "", 10)
	if err != nil || len(list) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	if g := list[0]; g.Job == nil || *g.Job != job.Job.ID.String() || *g.Util != 0.6 || *g.Power != 400 || g.Tensor != nil || g.Model != "H100??" || g.Read == nil || *g.Memory != 61<<30 || *g.Size != 80<<30 {
		t.Errorf("first GPU is %+v", g)
	}
	if g := list[1]; g.Instance != "7" || !g.Idle || cluster.InstantOf(*g.IdleSince) != at-60_000 || g.Job != nil {
		t.Errorf("second GPU is %+v", g)
	}
	if g := list[2]; g.Util != nil || g.State != "unknown" || g.Why != "too little" {
		t.Errorf("third GPU is %+v", g)
	}
	for of, n := range map[string]int{"b": 1, job.Job.User: 1, job.Job.ID.String(): 1, "nobody": 0} {
		if list, err := l.store.GPUs.List(t.Context(), of, 10); err != nil || len(list) != n {
			t.Errorf("%d GPUs of %s, want %d (%v)", len(list), of, n, err)
		}
	}
	if g := list[0]; g.Key == nil || *g.Key != job.Record.Key {
		t.Errorf("first GPU is of the job %v, want %d", g.Key, job.Record.Key)
	}
	newer := []string{"insert into fairlease.jobs select (j).* from (select json_populate_record(j, json_build_object('key', 900001)) as j from fairlease.jobs j where key = $1) x",
		"delete from fairlease.jobs where key = 900001"}
	for i, query := range newer { // a job that got the id since holds none
		args := []any{job.Record.Key}
		if _, err := l.db.Exec(t.Context(), query, args[:1-i]...); err != nil {
			t.Fatal(err)
		}
		if list, err := l.store.GPUs.List(t.Context(), job.Job.ID.String(), 10); err != nil || len(list) != i {
			t.Errorf("%d GPUs of the newest job with the id, want %d (%v)", len(list), i, err)
		}
	}
	x, err := l.store.Jobs.ExplainKey(t.Context(), job.Record.Key)
	if err != nil || len(x.GPUs) != 1 || x.GPUs[0].Node != "a" {
		t.Errorf("explained with %+v, %v", x.GPUs, err)
	}
	if r := x.Remarks; len(r) != 2 || r[0].Kind != remark.Stall || r[0].GPU != nil || r[0].Job != job.Job.ID.String() || r[0].Key != job.Record.Key || *r[1].GPU != 5 || r[1].Node != "a" || r[1].Text != "slow?" || cluster.InstantOf(r[1].Since) != at+1 {
		t.Errorf("explained with %+v", r)
	}
	if g := list[0]; g.Remarks == nil || *g.Remarks != remark.Stall {
		t.Errorf("the GPU's remarks are %v", g.Remarks)
	}
	states, nodes, err := l.store.GPUs.Looks(t.Context())
	if err != nil || len(states) != 2 || states[1].State != "silent" || states[1].Nodes != 1 || len(nodes) != 1 || nodes[0].Node != "b" || nodes[0].Why != "no answer" {
		t.Errorf("%+v, %+v, %v", states, nodes, err)
	}
	type use struct {
		Held, Seen, Idle float64
		Util             float64
	}
	type idle struct{ Idle int64 }
	type event struct{ Kind, Text string }
	same(l, "idle", []idle{{400}}, "select idle_gpu_ms from fairlease.idle_held")
	same(l, "use", []use{{0.000556, 0.000278, 0.000111, 0.6}}, "select held_gpu_hours::float8, seen_gpu_hours::float8, idle_gpu_hours::float8, util from fairlease.gpu_use_hourly")
	same(l, "events", []event{{"holds_idle", "has held 4 idle GPUs for 40 min"}}, "select kind, text from fairlease.events_recent where kind = 'holds_idle'")

	look.Report.GPUs, look.Report.Nodes, look.Remarks = look.Report.GPUs[:1], look.Report.Nodes[:1], nil
	look.Stand = look.Stand[1:]
	write()
	if r, err := l.store.GPUs.Remarks(t.Context(), 0, 10); err != nil || len(r) != 1 || r[0].Kind != remark.Straggler {
		t.Errorf("%+v are left, %v", r, err)
	}
	if usual, err := lead.Baselines(t.Context()); err != nil || cmp.Diff(look.Usual, usual) != "" {
		t.Errorf("%+v, %v", usual, err)
	}
	same(l, "idle", []idle{{800}}, "select idle_gpu_ms from fairlease.idle_held")
	if list, _ := l.store.GPUs.List(t.Context(), "", 10); len(list) != 1 {
		t.Errorf("%d GPUs are left, want 1", len(list))
	}
	uses, sizes, err := lead.Memory(t.Context())
	if diff := cmp.Diff(look.Report.Memory, uses); err != nil || diff != "" || len(sizes) != 1 || sizes[0] != look.Report.Sizes[0] {
		t.Errorf("memory: %v %v %s", err, sizes, diff)
	}

	if err := lead.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := lead.Look(t.Context(), look); err == nil {
		t.Error("one that no longer leads writes")
	}
	lead = takeLead(t, l.store)
	look.Report.GPUs, look.Report.Nodes, look.Stand = nil, nil, nil
	write()
	if r, _ := l.store.GPUs.Remarks(t.Context(), 0, 10); len(r) != 0 {
		t.Errorf("a new leader keeps %+v", r)
	}
	if list, _ := l.store.GPUs.List(t.Context(), "", 10); len(list) != 0 {
		t.Errorf("a new leader keeps %d GPUs of gone nodes", len(list))
	}
}
