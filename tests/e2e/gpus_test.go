package e2e

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu/gputest"
	"github.com/fairlease/fairlease/sidecar/telemetry/remark"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// recorded are values of a GPU that trains, at three reads. The journal rounds Util to 0.95 at each, and Power to different values.
var recorded = []gputest.Device{
	{Util: 0.97, Engine: 0.93, Tensor: 0.41, DRAM: 0.52, Power: 611, Clock: 1.98e9, Used: 61 << 30},
	{Util: 0.96, Engine: 0.92, Tensor: 0.40, DRAM: 0.50, Power: 603, Clock: 1.98e9, Used: 61 << 30},
	{Util: 0.97, Engine: 0.94, Tensor: 0.42, DRAM: 0.51, Power: 607, Clock: 1.965e9, Used: 61 << 30},
}

// inMemory is a source that reads a fleet without HTTP.
type inMemory struct{ fleet *gputest.Fleet }

func (m inMemory) Read(_ context.Context, nodes []gpu.Node) ([]gpu.Reading, error) {
	out := make([]gpu.Reading, len(nodes))
	for i, n := range nodes {
		text, err := m.fleet.Text(n.Name)
		if err == nil {
			out[i].Rows, _, err = gpu.NewParser(gpu.DefaultTable()).Parse(text)
		}
		out[i].Err = err
	}
	return out, nil
}

// On a real Slurm, the daemon tells of a job that holds idle GPUs. Then time runs faster: looks at the same jobs, by HTTP
// and in memory, find the same straggler, and all commands show it.
func TestGPUs(t *testing.T) {
	t.Parallel()
	r := newRig(t, "forky", usual["forky"], testcluster.Options{Accounts: tenants(1, 1)})
	fleet, url := r.Exporters(t)
	config := r.configure("telemetry: {gpu: {exporters: '" + url + "', every: 10s, max_age: 30s}}\nidle: {tell_after: 30s}\n")
	end := r.serve(config)
	works := r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:4")
	idles := r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:4")
	r.waitState(works, time.Minute, "RUNNING")
	r.waitState(idles, time.Minute, "RUNNING")
	at, err := r.Job(r.ctx(), works)
	if err != nil {
		t.Fatal(err)
	}
	node := at["NodeList"]
	for i := range 4 {
		fleet.Play(node, i, recorded...)
	}
	journal := storetest.Connect(t, r.dsn)
	told := func(id string) (n int) {
		if err := journal.QueryRow(t.Context(), "select count(*) from events_recent where kind = 'holds_idle' and slurm_id = $1 and text like 'has held 4 idle GPUs%'", id).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	r.until("the idle job is told of", 3*time.Minute, func() bool {
		fleet.Step(10)
		return told(idles) == 1
	})
	if told(works) != 0 {
		t.Error("the job that works is told of")
	}
	shows := func(want string, lines int, args ...string) {
		t.Helper()
		out, _ := r.fairlease(config, args...) // status fails where no daemon leads
		if n := strings.Count(out, want); n != lines {
			t.Errorf("fairlease %s shows %q %d times, want %d:\n%s", strings.Join(args, " "), want, n, lines, out)
		}
	}
	shows("has held 4 idle GPUs for ", 1, "explain", idles)
	shows("|fresh|0%|", 4, "gpus", idles, "-P", "-n")
	shows("|fresh|95%|", 4, "gpus", works, "-P", "-n")
	end(syscall.SIGTERM)

	throttled := recorded[0]
	throttled.Clock, throttled.Power = 1.1e9, 320
	fleet.Play(node, 3, throttled)
	lead := r.lead()
	s, err := store.Open(r.ctx(), store.Config{DSN: r.dsn})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	snap, _, err := s.Rounds.Last(r.ctx())
	if err != nil {
		t.Fatal(err)
	}
	holders := gpu.HoldersOf(&snap)
	var nodes []gpu.Node
	for i := range snap.Nodes {
		nodes = append(nodes, gpu.Node{Name: snap.Nodes[i].Name, Host: snap.Nodes[i].Host, Address: snap.Nodes[i].Address})
	}
	exporters, err := gpu.NewExporters(url, gpu.DefaultTable(), gpu.Web{}, gpu.ExporterLimits)
	if err != nil {
		t.Fatal(err)
	}
	type view struct {
		watch  gpu.Watch
		judge  remark.Judge
		report gpu.Report
	}
	views := []*view{{watch: gpu.Watch{Source: exporters}}, {watch: gpu.Watch{Source: inMemory{fleet}}}}
	now := cluster.InstantOf(time.Now())
	for range 60 {
		now = now.Add(30 * cluster.Second)
		fleet.Step(30)
		for _, v := range views {
			v.watch.Tracker.MaxAge, v.watch.Book.MaxGap, v.judge.MaxGap = 2*cluster.Minute, 90*cluster.Second, 90*cluster.Second
			v.report, _ = v.watch.Look(r.ctx(), nodes, holders, func() cluster.Instant { return now })
			v.judge.Look(&v.report, holders, nil)
		}
	}
	if d := cmp.Diff(views[1].report, views[0].report, cmpopts.EquateNaNs()); d != "" {
		t.Errorf("in memory and by HTTP differ:\n%s", d)
	}
	v := views[0]
	remarks := v.judge.Remarks()
	if d := cmp.Diff(views[1].judge.Remarks(), remarks); d != "" || len(remarks) != 1 || remarks[0].Kind != remark.Straggler || remarks[0].Node != node || remarks[0].GPU != 3 || remarks[0].ID.String() != works {
		t.Fatalf("remarks are %+v\n%s", remarks, d)
	}
	if err := lead.Look(r.ctx(), &store.Look{Report: &v.report, Owners: gpu.Owners(holders), Hours: v.watch.Book.Hours(), Remarks: v.judge.News(), Stand: remarks}); err != nil {
		t.Fatal(err)
	}
	shows("straggler: GPU 3 of "+node+" is far from the job's other 3 GPUs", 1, "explain", works)
	shows("|straggler|", 1, "gpus", works, "-P", "-n")
	shows("straggler 1; the oldest, straggler: job "+works+" of alice, ", 1, "status")
	shows("straggler 1; the oldest, ", 1, "doctor")
}
