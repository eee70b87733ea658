package experiment_test

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/tests/seeds"
)

// prodAE is two tenants of HiveD's Table 1 on 12 nodes, for four days: prod-a, whose GPUs go to
// jobs of 8 and which requests 40 % of its four nodes, and prod-e, whose jobs mostly have one
// GPU, and which requests twice its eight nodes.
func prodAE() experiment.Setup {
	h := trace.LikeHiveD(1)
	h.Length = 4 * cluster.Day
	all := h.Jobs()
	of := func(tenant string, gpus, load float64) []trace.Job {
		own := slices.DeleteFunc(slices.Clone(all), func(j trace.Job) bool { return j.Tenant != tenant || j.GPUs > 8 })
		if tenant == "prod-e" {
			own = trace.Sample(own, 0.2, 1)
		}
		trace.Stretch(own, load*gpus*float64(h.Length))
		return own
	}
	jobs := append(of("prod-a", 32, 0.4), of("prod-e", 64, 2)...)
	slices.SortStableFunc(jobs, func(a, b trace.Job) int { return cmp.Compare(a.Submit, b.Submit) })
	s := experiment.Default()
	s.Load = experiment.Load{Name: "prod-a and prod-e", Jobs: slices.Values(jobs)}
	s.Weights = map[string]int64{"prod-a": 4, "prod-e": 8}
	s.Fleet = experiment.Fleet{Racks: []experiment.Rack{{Nodes: 12, GPUs: 8}}}
	s.Audit = true
	return s
}

// HiveD §5.1: with a quota prod-a waits far longer than in a private cluster of its share; with
// cells no tenant does, under any chooser.
func TestProdAIsSafeInCells(t *testing.T) {
	seeds.Slow(t)
	var all []experiment.Setup
	names := append([]string{"quota-lend"}, experiment.Cellular()...)
	for _, name := range names {
		s := prodAE()
		s.Scheduler = name
		all = append(all, s)
	}
	results, err := experiment.All(context.Background(), all, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if len(r.Audit) != 2 || r.Jobs.Unfinished > 0 || r.Refused.Jobs > 0 {
			t.Fatalf("%s: %d tenants, %+v, %+v", r.Scheduler, len(r.Audit), r.Jobs, r.Refused)
		}
		for _, a := range r.Audit {
			t.Logf("%s: %s waits %.1f h instead of %.1f h, %d of %d jobs longer", r.Scheduler, a.Tenant, a.Shared, a.Private, a.Worse, a.Jobs)
			anomaly := r.Scheduler == "quota-lend" && a.Tenant == "prod-a"
			if a.Longer != anomaly || anomaly && a.Shared < 5*a.Private {
				t.Errorf("%s: %s waits %.1f h instead of %.1f h in a private cluster", r.Scheduler, a.Tenant, a.Shared, a.Private)
			}
			if a.Tenant == "prod-a" && !anomaly && a.Worse > 0 {
				t.Errorf("%s: %d of prod-a's jobs wait longer, such as %+v", r.Scheduler, a.Worse, a.Worst[0])
			}
		}
	}
}
