package experiment

import (
	"math"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

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

// What was profiled is as it is, and the rest is near to it on average.
func TestEstimate(t *testing.T) {
	table := gavelTable(t)
	truth := BesideOf(table, trace.GavelReference)
	expected, err := Estimate(table, trace.GavelReference, "p100", 5)
	if err != nil {
		t.Fatal(err)
	}
	exact, n, off := 0, 0, 0.0
	for other, by := range truth {
		for own, rates := range by {
			for model, rate := range rates {
				if own.GPUs > 1 {
					continue
				}
				alone := table.Alone(model, trace.Task{Kind: own.Kind, GPUs: 1}, false) / table.Alone(trace.GavelReference, trace.Task{Kind: own.Kind, GPUs: 1}, false)
				got := expected[other][own][model].Speed
				if n++; got == rate.Speed && model == "p100" {
					exact++
				}
				off += math.Abs(float64(got-rate.Speed)) / float64(sim.Reference) / alone
			}
		}
	}
	t.Logf("%d rates, %d profiled; off by %.3f of what they are alone", n, exact, off/float64(n))
	if exact < 100 || exact > n/10 || off/float64(n) > 0.14 {
		t.Errorf("of %d rates %d are exact, off by %.3f on average", n, exact, off/float64(n))
	}
}

// On a ninth of Gavel's cluster, crowded: who chooses pairs by what they do together has jobs done earlier than who never shares
// GPUs, and than who tries pairs at random; also where what they do is not known before they meet.
func TestSpaceSharingInSmall(t *testing.T) {
	table := gavelTable(t)
	expected, err := Estimate(table, trace.GavelReference, "p100", 5)
	if err != nil {
		t.Fatal(err)
	}
	hours := map[string]float64{}
	for _, c := range []struct {
		name, by string
		expected sim.Beside
	}{{"alone", "gavel:las", nil}, {"known", "gavel:las+ss", nil}, {"estimated", "gavel:las+ss", expected}, {"packing", "gandiva:packing", nil}} {
		s := gavelSetup(t, c.by, "single", 0.75, "1x4:v100+1x4:p100+1x4:k80")
		s.Beside, s.Expected = BesideOf(table, trace.GavelReference), c.expected
		f := follow(t, s, 60, 160)
		hours[c.name] = f.Hours()
		t.Logf("%s: %.2f h, %d turns", c.name, f.Hours(), f.Turns)
	}
	if !(hours["known"] < hours["estimated"] && hours["estimated"] < 0.97*hours["alone"] && hours["estimated"] < 0.75*hours["packing"]) {
		t.Errorf("mean hours: %v", hours)
	}
}

// The whole setup with audit, scores and costs: guests' work counts, and no GPU more than once.
func TestSpaceSharingIsScored(t *testing.T) {
	hours := map[string]float64{}
	for _, by := range []string{"gavel:las", "gavel:las+ss"} {
		s := gavelSetup(t, by, "single", 1e6, "1x4:v100")
		s.Load.Jobs = slices.Values(slices.Collect(s.Load.Jobs)[:12])
		d := Default()
		s.Beside, s.Costs, s.Saves = BesideOf(gavelTable(t), trace.GavelReference), d.Costs, d.Saves
		r, err := Run(t.Context(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Utilisation > 1 || r.Jobs.Finished != 12 {
			t.Errorf("%s: %.3f of the GPUs are in use, %d jobs are over", by, r.Utilisation, r.Jobs.Finished)
		}
		hours[by] = r.Tenants[0].Alloc
		t.Logf("%s: %.1f GPU hours, utilisation %.2f, makespan %.1f h", by, r.Tenants[0].Alloc, r.Utilisation, r.Makespan/3600)
		if held := r.Utilisation * 4 * r.To.Sub(start).Duration().Hours(); math.Abs(held-hours[by]) > 0.01*held {
			t.Errorf("%s: the books have %.2f GPU hours, the GPUs were held for %.2f", by, hours[by], held)
		}
	}
	if hours["gavel:las+ss"] >= hours["gavel:las"] {
		t.Errorf("GPU hours %v", hours)
	}
}
