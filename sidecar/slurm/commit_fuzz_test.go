package slurm

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// FuzzRecordToMemory takes an arbitrary job record from its translation to the commit of the
// round. The round is made, and other jobs are as they would be without it.
func FuzzRecordToMemory(f *testing.F) {
	addRecords(f)
	f.Fuzz(func(t *testing.T, fields []byte) {
		govern(t, sim.NewMemory(), fields)
	})
}

// FuzzRecordToPostgreSQL does the same with the journal in PostgreSQL, and reads the result.
func FuzzRecordToPostgreSQL(f *testing.F) {
	addRecords(f)
	s, err := store.Open(f.Context(), store.Config{DSN: storetest.Database(f)})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Close)
	lead, err := s.Acquire(f.Context(), f.Name())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, fields []byte) {
		plan := govern(t, lead.Journal(), fields)
		for _, v := range plan.Statuses[:min(len(plan.Statuses), 4)] {
			if _, err := s.Jobs.ExplainKey(t.Context(), v.Job); err != nil && !strings.Contains(err.Error(), store.ErrNone.Error()) {
				t.Error(err)
			}
		}
		if _, err := s.Jobs.Waiting(t.Context(), 100); err != nil {
			t.Error(err)
		}
		if _, err := s.Rounds.Actions(t.Context(), 100); err != nil {
			t.Error(err)
		}
	})
}

func addRecords(f *testing.F) {
	for _, fields := range []string{
		`"job_state":["PENDING"],"tres_req_str":"cpu=300000000,mem=30000000000M,node=300000000,gres/gpu=2400000000","tres_per_node":"gres/gpu:8","node_count":300000000`,
		`"job_state":["PENDING"],"tres_per_job":"gres/gpu:99999999999999999999","tres_req_str":"gres/gpu=99999999999999999999,node=9999999999999","cpus":{"set":true,"number":18446744073709551612}`,
		`"job_state":["PENDING"],"tres_req_str":"gres/gpu=2,cpu=1,node=1","eligible_time":1000000000000,"deadline":{"number":9223372036854775807},"time_limit":{"set":true,"number":4294967293},"submit_time":9223372036854775807`,
		`"job_state":["RUNNING"],"nodes":"v1","tres_alloc_str":"gres/gpu=4","gres_detail":["gpu:v100:4(IDX:0-3)"],"start_time":-1,"end_time":9999999999999,"suspend_time":1,"pre_sus_time":99999999999`,
		`"job_state":["SUSPENDED"],"nodes":"v1","gres_detail":["gpu:v100:99999999999"],"start_time":5,"suspend_time":1000000000000,"restart_cnt":4294967295`,
		`"job_state":["PENDING"],"array_job_id":7,"array_task_string":"0-99999:7,2147483646","tres_req_str":"gres/gpu=1","array_max_tasks":4294967294`,
		`"job_state":["PENDING"],"array_job_id":7,"array_task_id":{"set":true,"number":4294967294},"tres_req_str":"gres/gpu=1"`,
		`"job_state":["RUNNING"],"nodes":"v[1-","tres_alloc_str":"gres/gpu=1","required_nodes":"v[1-99999999999]","excluded_nodes":["]["]`,
		`"job_state":["PENDING"],"name":"\u0000\u0001\ud800 \u202e` + "\xff" + `\n'\"\\","comment":"kind=\u0000,steps=1e308,steps/s.v100=1e-308,saves=1s,save-time=1s,gpus=idle","features":"\u0000","tres_req_str":"gres/gpu=1"`,
		`"job_state":["PENDING"],"admin_comment":"fl:begin=99999999999999,gate=1","user_name":"\u0000","account":"\u0000","qos":"\u0000","resv_name":"","state_description":"\u0000","tres_req_str":"gres/gpu=1"`,
		`"job_state":["COMPLETED"],"end_time":1000000000000,"tres_req_str":"gres/gpu=1","job_id":1`,
		`"job_state":["COMPLETING","PENDING"],"nodes":"v1","tres_alloc_str":"gres/gpu=9999999999","restart_cnt":1e300`,
	} {
		f.Add([]byte(fields))
	}
}

// clock is the time of the looks of all fuzz runs: it never goes back.
var clock atomic.Int64

// governed is a cluster of two nodes that returns a fixed sighting.
type governed struct{ seen cluster.Observation }

func (g *governed) Observe(context.Context, cluster.Instant) (cluster.Observation, error) {
	g.seen.Now = cluster.Instant(1_800_000_000_000 + clock.Add(10_000))
	return g.seen, nil
}

func (g *governed) Apply(_ context.Context, actions []cluster.Action) []cluster.Outcome {
	return make([]cluster.Outcome, len(actions))
}

// govern makes three rounds with two jobs that have these fields, one waiting and one running.
func govern(t *testing.T, journal loop.Journal, fields []byte) cluster.Plan {
	t.Helper()
	node := func(name string) cluster.Node {
		return cluster.Node{Name: name, CPUs: 16, MemoryMB: 8000, GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}, Partitions: []string{"main"}}
	}
	world := &governed{cluster.Observation{Nodes: []cluster.Node{node("v1"), node("v2")},
		Accounts: []cluster.Account{{Name: "root"}, {Name: "nlp", Parent: "root", Shares: 1}, {Name: "vision", Parent: "root", Shares: 1}}}}
	gpuNodes := map[string]cluster.Node{"v1": world.seen.Nodes[0], "v2": world.seen.Nodes[1]}
	c := &Client{&link{cfg: Config{ArrayCap: 100}, seen: seen{gpuNodes: gpuNodes, records: map[int64]*record{}}}}
	tr := translator{nodes: gpuNodes, arrayCap: 100, now: 1_800_000_000_000}
	fuzzed := `{"job_id":7,"user_name":"carol","account":"vision","partition":"main","batch_flag":true,"requeue":true,` + string(fields) + `}`
	for _, text := range []string{waitingJob(1, ""), strings.Replace(runningJob(2, ""), `"v1"`, `"v2"`, 2), fuzzed} {
		r := newReader(bytes.NewReader([]byte(text)))
		w := readJob(r)
		if r.err != nil { // not JSON: the whole list would be refused
			return cluster.Plan{}
		}
		if w.id == 1 && c.seen.records[1] != nil || w.id == 2 && c.seen.records[2] != nil {
			return cluster.Plan{} // it claims another identity
		}
		if rec := (queue{c.link}).translate(&tr, &w, &c.notes); rec != nil {
			c.seen.records[w.id] = rec
		}
	}
	settings := cluster.Settings{Preset: "astraea", Interval: 10 * cluster.Second, Term: 15 * cluster.Minute, MinLease: cluster.Minute, Notice: cluster.Minute,
		GrantTimeout: cluster.Minute, GateTTL: 10 * cluster.Minute, RhoSelect: 16, CreditCap: cluster.Hour, BurstMaxMilli: 2000, Window: 14 * cluster.Day,
		StopAllowance: 15 * cluster.Minute, StopOverheadMilli: 20, NewFirst: true, NewSharePercent: 50, Signal: "USR1", SignalTo: "steps"}
	l := &loop.Loop{Cluster: world, Journal: journal, Decide: simtest.Checked(t), Configure: func() (loop.Rules, cluster.Settings) {
		return loop.Rules{Mode: loop.Act, Partitions: []string{"main"}, TenantLevel: 1}, settings
	}}
	var plan cluster.Plan
	for range 3 {
		c.seen.changed = true
		world.seen.Jobs = c.seen.assemble(world.seen.Now)
		report, err := l.Turn(t.Context())
		if err != nil {
			t.Fatalf("a round failed: %v\n%s", err, fields)
		}
		plan = report.Plan
	}
	there := map[int64]cluster.Code{}
	for _, v := range plan.Statuses {
		for i := range plan.State.Records {
			if r := &plan.State.Records[i]; r.Key == v.Job {
				there[r.ID.ID] = v.Reason.Code
			}
		}
	}
	if there[1] == "" || there[1] == cluster.ReasonUntouched || there[2] == "" || there[2] == cluster.ReasonUntouched {
		t.Errorf("of the jobs beside it is said %v\n%s", there, fields)
	}
	return plan
}
