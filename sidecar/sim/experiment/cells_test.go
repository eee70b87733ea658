package experiment

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/tests/seeds"
)

// Virtual clusters by weight are whole nodes of each model, largest remainder first; a tenant
// without nodes has no VC.
func TestCellsByWeight(t *testing.T) {
	f, err := ParseFleet("5x8:v100+3x4:k80")
	if err != nil {
		t.Fatal(err)
	}
	d, err := CellsByWeight(f, map[string]int64{"a": 6, "b": 3, "c": 1, "none": 0, "root": 2})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, vc := range d.VCs {
		for _, q := range vc.Cells {
			got = append(got, fmt.Sprint(vc.Name, " ", q.Cells, " ", q.Type))
		}
	}
	// 3 K80 nodes: 1.5, 0.75, 0.25 and 0.5; 5 V100 nodes: 2.5, 1.25, 0.42 and 0.83.
	want := []string{"a 2 k80-node", "a 3 v100-node", "b 1 k80-node", "b 1 v100-node", "root (tenant) 1 v100-node"}
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := CellsByWeight(f, map[string]int64{"none": 0}); err == nil {
		t.Error("virtual clusters of nobody")
	}
}

// halves is a cluster of two nodes of 8 GPUs and one of 4, with cells of sockets and racks.
func halves() *cluster.Cells {
	return &cluster.Cells{
		Types: []cluster.CellType{{Name: "rack", Child: "node", Split: 2}, {Name: "node", Child: "socket", Split: 2, Node: true},
			{Name: "socket", Child: "gpu", Split: 4}, {Name: "gpu", Model: "v100"},
			{Name: "small", Child: "k80", Split: 4, Node: true}, {Name: "k80", Model: "k80"}},
		Tops: []cluster.TopCell{{Name: "r1", Type: "rack", Nodes: []string{"n000001", "n000002"}}, {Name: "r2", Type: "rack", Nodes: []string{"n000003", "n000004"}},
			{Name: "k", Type: "small", Nodes: []string{"n000005"}}},
		VCs: []cluster.VC{
			{Name: "a", Cells: []cluster.CellQuota{{Type: "rack", Cells: 1}}, Pins: []cluster.CellPin{{Type: "node", Node: "n000003"}}},
			{Name: "b", Cells: []cluster.CellQuota{{Type: "socket", Cells: 1}, {Type: "small", Cells: 1}}}},
	}
}

// A private cluster is the VC's cells; jobs that do not fit it, or would be spread over it
// otherwise, are omitted.
func TestPrivateVirtualClusters(t *testing.T) {
	s := on(t, Setup{Scheduler: "hived", Load: Load{Jobs: slices.Values([]trace.Job{job("1", "a", 0, 24, 1), job("2", "a", 0, 32, 1),
		job("3", "b", 0, 4, 1), job("4", "b", 0, 8, 1), job("5", "c", 0, 1, 1)})}}, "4x8:v100+1x4:k80")
	s.Cells, s.Settings = halves(), Default().Settings
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range s.privates() {
		text := p.tenant + " " + p.setup.Fleet.String()
		for j := range p.setup.Load.Jobs {
			text += " " + j.ID
		}
		got = append(got, text)
	}
	if d := cmp.Diff([]string{"a 3x8:v100 1", "b 1x4:v100+1x4:k80 3"}, got); d != "" {
		t.Error(d)
	}
}

// Cells that contradict the cluster or its tenants are refused, and so are incompatible options.
func TestCellsThatDoNotFit(t *testing.T) {
	good := on(t, Setup{Scheduler: "hived", Load: Load{Jobs: slices.Values([]trace.Job{job("1", "a", 0, 1, 1), job("2", "b", 0, 1, 1)})}}, "4x8:v100+1x4:k80")
	good.Cells, good.Settings = halves(), Default().Settings
	for want, change := range map[string]func(*Setup){
		"a node n000005, which is none of the cluster 4x8:v100: its nodes are n000001 to n000004": func(s *Setup) { s.Fleet.Racks = s.Fleet.Racks[:1] },
		"node n000001 has 8 GPUs of model p100":                                                   func(s *Setup) { s.Fleet.Racks = []Rack{{4, 8, "p100"}, {1, 4, "k80"}} },
		"a VC b, but no tenant of that name has a weight":                                         func(s *Setup) { s.Weights = map[string]int64{"a": 1} },
		"no tenant has a weight above 0":                                                          func(s *Setup) { s.Weights, s.Cells = map[string]int64{"a": 0}, nil },
		"hived keeps every gang on one GPU model":                                                 func(s *Setup) { s.Mixed = true },
		`no scheduler "hived:x"; there are allox, astraea`:                                        func(s *Setup) { s.Scheduler = "hived:x" },
	} {
		s := good
		change(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Two tenants with a node each. b gets a's idle GPUs at once, and returns them at once; while
// both want everything each has its own node. Nodes count as broken while a guaranteed lease is
// on them.
func TestCellsInARun(t *testing.T) {
	s := ideal(t, "2x4", 15*cluster.Minute, job("b1", "b", cluster.Minute, 4, 30*cluster.Minute), job("b2", "b", cluster.Minute, 4, 30*cluster.Minute),
		job("a1", "a", 11*cluster.Minute, 4, 20*cluster.Minute))
	s.Scheduler, s.Settings.RecallNotice = "hived", 0
	r := run1(t, s)
	// a1 runs from 11 to 31 minutes. b1 has its node from 1 to 15, b2 from 15 to 30 after 10
	// minutes on a's node, then b1 until it ends at 46; b2 ends on lent GPUs.
	if a := r.Tenants[0]; a.Wait.Max > 15 || a.Completion.Max > 20*60+15 {
		t.Errorf("a waits %v s for its own node", a.Wait.Max)
	}
	if want := []string{"gpu-gpu", "gpu-node"}; len(r.Levels) != 2 || r.Levels[0].Type != want[0] || r.Levels[1].Type != want[1] || r.Levels[1].Cells != 2 {
		t.Fatalf("levels %+v, want %v", r.Levels, want)
	}
	// b's node from 1 to 46 minutes, a's from 11 to 31.
	minutes := r.Levels[1].Broken * r.To.Sub(r.From).Duration().Minutes()
	if math.Abs(minutes-65) > 1 {
		t.Errorf("nodes were broken for %.1f minutes, want 65", minutes)
	}
}

// heterogeneous makes jobs of tenants with little in common: one requests whole nodes, the others mostly
// single GPUs.
func heterogeneous(t *testing.T, seed uint64) Setup {
	t.Helper()
	recipe := trace.LikePhilly(seed, 60)
	recipe.Length, recipe.Tenants = 2*cluster.Day, trace.Shifts(5, 0.8)
	recipe.Tenants[0].Share = 0.2
	recipe.Durations = recipe.Durations[:4]
	jobs, err := trace.Generate(recipe)
	if err != nil {
		t.Fatal(err)
	}
	s := Default()
	s.Load = Load{Name: "generated", Jobs: func(yield func(trace.Job) bool) {
		for j := range jobs {
			if j.Tenant == recipe.Tenants[0].Name {
				j.GPUs = max(j.GPUs, 8)
			}
			if !yield(j) {
				return
			}
		}
	}}
	return on(t, s, "1x8")
}

// want sets the number of nodes of 8 GPUs so that the load is a multiple of the cluster.
func want(s Setup, load float64) Setup {
	census := Survey(s.Load)
	s.Fleet.Racks = []Rack{{Nodes: int(float64(census.Demand()) / float64(census.Last) / load / 8), GPUs: 8}}
	return s
}

// Sharing safety (HiveD §2.2, §5.1): with virtual clusters no tenant waits longer than on its own
// part of the cluster; with quota alone some do.
func TestNobodyWaitsLongerThanAlone(t *testing.T) {
	seeds.Slow(t)
	atLoads(t, heterogeneous(t, 1))
}

// atLoads audits a setup at 100, 130 and 60 % load.
func atLoads(t *testing.T, s Setup) {
	t.Helper()
	anomalies := 0
	for _, load := range []float64{1, 1.3, 0.6} {
		anomalies += sharing(t, fmt.Sprintf("load %.1f", load), want(s, load))
	}
	if anomalies == 0 {
		t.Error("no tenant waits longer with quota alone: the loads show nothing")
	}
}

// sharing audits a setup with cells, where no tenant may wait longer, and with quota alone, and
// gives the number of tenants that wait longer there.
func sharing(t *testing.T, what string, s Setup) int {
	t.Helper()
	var err error
	if s.Cells, err = CellsByWeight(s.Fleet, s.Weights); err != nil {
		t.Fatal(err)
	}
	s.Audit = true
	quota := s
	s.Scheduler, quota.Scheduler = "hived", "quota-lend"
	results, err := All(context.Background(), []Setup{s, quota}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	longer := [2]int{}
	for i, r := range results {
		var shared, private, lost float64
		jobs, out := 0, 0
		for _, a := range r.Audit {
			jobs, out, shared, private, lost = jobs+a.Jobs, out+a.LeftOut, shared+a.Shared, private+a.Private, lost+a.Lost
			if !a.Longer {
				continue
			}
			if longer[i]++; i == 0 {
				t.Errorf("%s: %s waits %.2f h instead of %.2f h: %s", what, a.Tenant, a.Shared, a.Private, worst(a))
			}
		}
		if jobs == 0 {
			t.Errorf("%s: %s: no job is compared", what, r.Scheduler)
		}
		t.Logf("%s on %s: %s: %d tenants wait longer; %d jobs %.1f h instead of %.1f h, those that wait longer by %.1f h; %d left out", what, s.Fleet, r.Scheduler, longer[i], jobs, shared, private, lost, out)
	}
	return longer[1]
}

func worst(a score.Audited) string {
	j := a.Worst[0]
	return fmt.Sprintf("%s with %d GPUs %.2f h instead of %.2f h", j.Job, j.GPUs, j.Shared, j.Private)
}
