package cellworld_test

import (
	"reflect"
	"testing"

	"github.com/fairlease/fairlease/research/hived"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/cellworld"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// two is two nodes, one per tenant.
func two() cellworld.Site { return hived.Assign(hived.Nodes(2), map[string]int64{"a": 1, "b": 1}) }

func hours(n ...int) []cluster.Span {
	out := make([]cluster.Span, len(n))
	for i := range n {
		out[i] = cluster.Span(n[i]) * cluster.Hour
	}
	return out
}

// ones gives n jobs of a GPU each.
func ones(tenant string, n int, submit, runs cluster.Span) []cellworld.Job {
	out := make([]cellworld.Job, n)
	for i := range out {
		out[i] = cellworld.Job{Tenant: tenant, Submit: submit, Runs: runs, Nodes: 1, GPUs: 1}
	}
	return out
}

func simulate(t *testing.T, w cellworld.World, jobs []cellworld.Job) cellworld.Result {
	t.Helper()
	r, err := cellworld.Run(w, jobs)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func expect(t *testing.T, what string, r cellworld.Result, waits []cluster.Span, preempted, moved int) {
	t.Helper()
	if !reflect.DeepEqual(r.Waits, waits) || r.Preempted != preempted || r.Moved != moved {
		t.Errorf("%s: waits %v, %d GPUs preempted, %d moved; want %v, %d, %d", what, r.Waits, r.Preempted, r.Moved, waits, preempted, moved)
	}
}

// A tenant's jobs beyond its share run on idle GPUs, and are preempted when the owner needs them.
func TestOpportunisticJobsGo(t *testing.T) {
	jobs := []cellworld.Job{
		{Tenant: "a", Submit: 0, Runs: 10 * cluster.Hour, Nodes: 1, GPUs: 8},
		{Tenant: "a", Submit: 0, Runs: 10 * cluster.Hour, Nodes: 1, GPUs: 8},
		{Tenant: "b", Submit: 4 * cluster.Hour, Runs: cluster.Hour, Nodes: 1, GPUs: 8},
		{Tenant: "a", Submit: 20 * cluster.Hour, Runs: cluster.Hour, Nodes: 2, GPUs: 8}, // more than its VC
	}
	site := two()
	// The second of a's loses an hour, in which b runs, and keeps its work of four.
	expect(t, "HiveD", simulate(t, site.HiveD(), jobs), hours(0, 1, 0, 0), 8, 0)
	expect(t, "quota", simulate(t, site.Quota(), jobs), hours(0, 1, 0, 0), 8, 0)
	// Its own node is another one: it moves there for its last hour.
	expect(t, "static", simulate(t, hived.Static(site), jobs), hours(0, 1, 0, 0), 8, 8)
	alone := simulate(t, site.Private("a"), []cellworld.Job{jobs[0], jobs[1], jobs[3]})
	expect(t, "private", alone, []cluster.Span{0, 10 * cluster.Hour, cellworld.Never}, 0, 0)
	if h := simulate(t, site.HiveD(), jobs).Hours; len(h) != 21 || h[4] != (cellworld.Hour{Guaranteed: 16, Bound: 16, Broken: 2, Nodes: 2}) || h[3].Lent != 8 {
		t.Errorf("the hours are %+v", h)
	}
}

// HiveD §2: jobs of one GPU remain on all nodes, which a quota cannot prevent.
func TestQuotaFragments(t *testing.T) {
	var jobs []cellworld.Job
	for i := range 16 { // two of them, on two nodes, run on
		runs := cluster.Hour
		if i == 0 || i == 8 {
			runs = 10 * cluster.Hour
		}
		jobs = append(jobs, ones("b", 1, 0, runs)...)
	}
	jobs = append(jobs, cellworld.Job{Tenant: "a", Submit: 2 * cluster.Hour, Runs: cluster.Hour, Nodes: 1, GPUs: 8})
	site := two()
	none := make([]cluster.Span, 17)
	expect(t, "HiveD", simulate(t, site.HiveD(), jobs), none, 0, 1) // the long one on a's node moves when b has space
	late := append(make([]cluster.Span, 16), 8*cluster.Hour)
	expect(t, "quota", simulate(t, site.Quota(), jobs), late, 0, 0)
}

// Where affinity may be relaxed, it is.
func TestSoftAffinity(t *testing.T) {
	jobs := []cellworld.Job{{Tenant: "a", Runs: 10 * cluster.Hour, Nodes: 1, GPUs: 7}, {Tenant: "b", Runs: 10 * cluster.Hour, Nodes: 1, GPUs: 7},
		{Tenant: "a", Runs: cluster.Hour, Nodes: 1, GPUs: 2}}
	for wait, soft := range map[int]bool{10: false, 0: true} {
		jobs[2].Soft = soft
		expect(t, "quota", simulate(t, two().Quota(), jobs), hours(0, 0, wait), 0, 0)
		expect(t, "HiveD", simulate(t, two().HiveD(), jobs), hours(0, 0, wait), 0, 0)
	}
}

func TestGangs(t *testing.T) {
	got := cellworld.Gangs([]trace.Job{{Tenant: "a", GPUs: 1}, {GPUs: 8}, {GPUs: 12}, {GPUs: 17}, {GPUs: 64}}, 8)
	want := []cellworld.Job{{Tenant: "a", Nodes: 1, GPUs: 1}, {Nodes: 1, GPUs: 8}, {Nodes: 2, GPUs: 6}, {Nodes: 3, GPUs: 6}, {Nodes: 8, GPUs: 8}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRunRefuses(t *testing.T) {
	if _, err := cellworld.Run(two().HiveD(), []cellworld.Job{{Tenant: "a", Submit: 1, Runs: 1, Nodes: 1, GPUs: 1}, {Tenant: "a", Runs: 1, Nodes: 1, GPUs: 1}}); err == nil {
		t.Error("jobs out of order were accepted")
	}
	site := two()
	site.VCs[0].Cells[0].Cells = 2
	if _, err := cellworld.Run(site.HiveD(), nil); err == nil {
		t.Error("an infeasible assignment was accepted")
	}
}
