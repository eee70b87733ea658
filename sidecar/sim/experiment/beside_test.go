package experiment

import (
	"math"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

func gavelTable(t testing.TB) *trace.Throughputs {
	t.Helper()
	table, err := trace.OpenThroughputs("../trace/testdata/gavel/simulation_throughputs.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestBesideOf(t *testing.T) {
	table := gavelTable(t)
	beside := BesideOf(table, trace.GavelReference)
	a3c, lm := trace.Task{Kind: "A3C", GPUs: 1}, trace.Task{Kind: "LM (batch size 5)", GPUs: 1}
	for _, model := range table.Models {
		own, other := table.Beside(model, a3c, lm)
		for _, c := range []struct {
			own, other trace.Task
			rate       float64
		}{{a3c, lm, own}, {lm, a3c, other}} {
			got := beside[sim.Task{Kind: c.other.Kind, GPUs: 1}][sim.Task{Kind: c.own.Kind, GPUs: 1}][model].Speed
			want := c.rate / table.Alone(trace.GavelReference, c.own, false) * float64(sim.Reference)
			if c.rate == 0 || math.Abs(float64(got)-want) > 1 {
				t.Errorf("%s beside %s on %s: %d, want %.0f", c.own, c.other, model, got, want)
			}
		}
	}
	for other, by := range beside {
		for own := range by {
			if own.GPUs != other.GPUs {
				t.Errorf("%v beside %v: not the same gangs", own, other)
			}
		}
	}
}

// The whole setup with audit, scores and costs: guests' work counts, and no GPU counts twice.
func TestSpaceSharingIsScored(t *testing.T) {
	table := gavelTable(t)
	jobs, err := trace.Open("../trace/testdata/gavel/gavel_trace_single_seed0.csv.gz", trace.Options{Throughputs: table, PerHour: 1e6})
	if err != nil {
		t.Fatal(err)
	}
	load := Of(jobs)
	load.Jobs = slices.Values(slices.Collect(load.Jobs)[:12])
	fleet, err := ParseFleet("1x4:v100")
	if err != nil {
		t.Fatal(err)
	}
	hours := map[string]float64{}
	for _, by := range []string{"gavel:las", "gavel:las+ss"} {
		s := Default()
		s.Scheduler, s.Load, s.Fleet, s.Weights = by, load, fleet, EqualWeights(Survey(load))
		s.Speeds, s.Beside = SpeedsOf(table, trace.GavelReference), BesideOf(table, trace.GavelReference)
		s.Settings.Term, s.Settings.Interval, s.Settings.MinLease, s.Settings.Notice = 6*cluster.Minute, cluster.Second, 0, 0
		r, err := Run(t.Context(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Utilisation > 1 || r.Jobs.Finished != 12 {
			t.Errorf("%s: %.3f of the GPUs are in use, %d jobs are over", by, r.Utilisation, r.Jobs.Finished)
		}
		hours[by] = r.Tenants[0].Alloc
		t.Logf("%s: %.1f GPU hours, utilisation %.2f, makespan %.1f h", by, r.Tenants[0].Alloc, r.Utilisation, r.Makespan/3600)
		if held := r.Utilisation * 4 * r.To.Sub(Start).Duration().Hours(); math.Abs(held-hours[by]) > 0.01*held {
			t.Errorf("%s: the books have %.2f GPU hours, the GPUs were held for %.2f", by, hours[by], held)
		}
	}
	if hours["gavel:las+ss"] >= hours["gavel:las"] {
		t.Errorf("GPU hours %v", hours)
	}
}
