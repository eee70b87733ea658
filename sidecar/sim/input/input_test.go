package input_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/input"
)

// world has the defaults of all flags.
func world() input.World {
	return input.World{Length: "7d", Tenants: 2, Load: 1.5, Seed: 1, Zone: "UTC", Weights: "equal", Repair: "1h", Saving: input.Saving{Saves: "never", By: "kind"}}
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const history = "job_id,tenant,user,gpus,submit_time,duration_s,state,name\n1,a,ann,1,0,600,COMPLETED,x\n2,b,bob,2,10,900,COMPLETED,y\n3,b,bob,0,20,1200,COMPLETED,y\n"

// A world is made from flags, and described with what was omitted.
func TestWorld(t *testing.T) {
	w := world()
	w.Nodes, w.Until, w.CostLoad, w.Weights = "2x8", "2h", "3m", "demand"
	s, err := w.Setup(config.Default(), []string{file(t, "history.csv", history)}, "")
	if err != nil {
		t.Fatal(err)
	}
	if n, gpus := s.Fleet.Count(); n != 2 || gpus != 16 || s.Until != 2*cluster.Hour || s.Costs.Load != 3*cluster.Minute || s.Settings.StartCost != s.Costs.Start() ||
		s.Weights["b"] <= s.Weights["a"] || s.Seed != 1 {
		t.Errorf("%d nodes, %d GPUs, %+v", n, gpus, s)
	}
	var out bytes.Buffer
	w.Tell(&out, &s)
	for _, want := range []string{": 2 jobs of 2 tenants, submitted over ", "  left out: 1 jobs without GPUs\n", "  jobs are taken to save: never\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, &out)
		}
	}
}

// Incompatible flags are refused by name.
func TestRefused(t *testing.T) {
	trace := file(t, "history.csv", history)
	for _, c := range []struct {
		change func(*input.World)
		args   []string
		sizes  string
		want   string
	}{
		{func(*input.World) {}, []string{trace}, "", "--nodes is missing"},
		{func(w *input.World) { w.Nodes = "2x8" }, []string{trace}, "2x8", "--nodes and --sizes exclude each other"},
		{func(w *input.World) { w.Nodes = "2x8" }, []string{trace, trace}, "", "one trace at a time"},
		{func(w *input.World) { w.Nodes = "2x8" }, nil, "", "what is to be simulated?"},
		{func(w *input.World) { w.Nodes, w.Generate = "2x8", "philly" }, []string{trace}, "", "a trace and --generate exclude each other"},
		{func(w *input.World) { w.Generate = "x" }, nil, "", "--generate x is not known"},
		{func(w *input.World) { w.Nodes, w.Turns = "2x8", input.Turns{Length: "1m", Jobs: 4} }, []string{trace}, "", "--slice-jobs must be 2, or 3 with --slices and without --pairs, got 4"},
		{func(w *input.World) { w.Nodes, w.Turns.Jobs = "2x8", 3 }, []string{trace}, "", "--slice-jobs must be 2, or 3 with --slices and without --pairs, got 3"},
		{func(w *input.World) { w.Nodes, w.Turns = "2x8", input.Turns{Length: "1m", Jobs: 3, Pairs: 70} }, []string{trace}, "", "--slice-jobs must be 2, or 3 with --slices and without --pairs, got 3"},
		{func(w *input.World) { w.Nodes, w.Until = "2x8", "soon" }, []string{trace}, "", "--until: "},
		{func(w *input.World) { w.Nodes, w.Zone = "2x8", "x" }, []string{trace}, "", "--zone x is not known"},
		{func(w *input.World) { w.Nodes, w.Format = "2x8", "x" }, []string{trace}, "", "--format x is not known"},
		{func(w *input.World) { w.Nodes, w.Saving.By = "2x8", "x" }, []string{trace}, "", "--saves-by x is not known"},
		{func(w *input.World) { w.Nodes, w.Weights = "2x8", "config" }, []string{trace}, "", "--weights config: "},
		{func(w *input.World) { w.Nodes, w.Weights = "2x8", file(t, "w.csv", "a,1\n") }, []string{trace}, "", "has no weight for 1 tenants of the trace: b"},
		{func(w *input.World) { w.Nodes, w.Speeds = "2x8", "x" }, []string{trace}, "", "--speeds needs a cluster that names its models"},
	} {
		w := world()
		c.change(&w)
		_, err := w.Setup(config.Default(), c.args, c.sizes)
		var f *failure.Error
		if !errors.As(err, &f) || f.Code != failure.Misuse || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// All sizes are combined with all schedulers; cost policies need prices, and models without one
// cost 1.
func TestCross(t *testing.T) {
	w := world()
	w.Nodes = "1x8:v100+1x8:k80"
	base, err := w.Setup(config.Default(), []string{file(t, "history.csv", history)}, "")
	if err != nil {
		t.Fatal(err)
	}
	names := func(setups []experiment.Setup) (out []string) {
		for i := range setups {
			out = append(out, setups[i].Scheduler+" on "+setups[i].Fleet.String())
		}
		return out
	}
	setups, err := input.Cross(base, "1x8:v100,2x8:v100", []string{"fifo", " astraea"}, "")
	if got := strings.Join(names(setups), "; "); err != nil || strings.Count(got, "fifo on") != 2 || strings.Count(got, "astraea on") != 2 {
		t.Errorf("%v: %s", err, got)
	}
	if all, err := input.Cross(base, "", []string{"all"}, ""); err != nil || len(all) != len(experiment.Schedulers()) {
		t.Errorf("%v: %v", err, names(all))
	}
	if _, err := input.Cross(base, "", []string{"nobody"}, ""); err == nil {
		t.Error("a scheduler that there is not")
	}
	if _, err := input.Prices(nil, base.Fleet, "gavel:cost"); err == nil {
		t.Error("costs without prices")
	}
	if p, err := input.Prices(map[string]float64{"v100": 3}, base.Fleet, "gavel:cost"); err != nil || p["v100"] != 3 || p["k80"] != 1 {
		t.Errorf("%v: %v", err, p)
	}
}

// Times of a shadow are the daemon's unless given.
func TestTimes(t *testing.T) {
	s := experiment.Default()
	s.Settings.StartCost = 5 * cluster.Minute
	if err := (&input.Times{CostLoad: "1m"}).Into(&s); err != nil || s.Costs.ColdStart != 4*cluster.Minute || s.Settings.StartCost != 5*cluster.Minute {
		t.Errorf("%v: %+v", err, s.Costs)
	}
	if err := (&input.Times{CostLoad: "1m", ColdStart: "2m", Term: "30m"}).Into(&s); err != nil || s.Settings.StartCost != 3*cluster.Minute || s.Settings.Term != 30*cluster.Minute {
		t.Errorf("%v: %+v", err, s.Costs)
	}
	if err := (&input.Times{Term: "x"}).Into(&s); err == nil {
		t.Error("a term that is none")
	}
}
