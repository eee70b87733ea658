package experiment

import (
	"context"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// A gang that may be on any nodes begins on two nodes as a rule, at its speed there; where it is known to be ten times as slow there, it waits
// ten minutes for one.
func TestGangsAnywhere(t *testing.T) {
	for _, c := range []struct {
		name     string
		anywhere bool
		wait     cluster.Span
		want     cluster.Span // until the gang is done
	}{
		{"any nodes", true, 0, 10 * cluster.Hour},
		{"nodes together", true, cluster.Hour, 71 * cluster.Minute},
		{"its fewest nodes", false, 0, 71 * cluster.Minute},
	} {
		s := Default()
		jobs := []trace.Job{{ID: "1", Tenant: "a", GPUs: 3, Runs: 11 * cluster.Minute}, {ID: "2", Tenant: "a", GPUs: 3, Runs: 30 * cluster.Hour},
			{ID: "3", Tenant: "a", GPUs: 2, Runs: cluster.Hour, Kind: "lm", Submit: cluster.Minute}}
		s.Load = Load{Name: "gangs", Jobs: slices.Values(jobs), Anywhere: c.anywhere}
		s.Speeds = sim.Speeds{sim.Task{Kind: "lm", GPUs: 2}: {"v100": sim.Rate{Speed: sim.Reference, Apart: sim.Reference / 10}}}
		s.Settings.ScatterWait = c.wait
		took := tookOn(t, &s, "2x4:v100", "3")
		if took < c.want-cluster.Minute || took > c.want+2*cluster.Minute {
			t.Errorf("%s: it took %s, want %s", c.name, took, c.want)
		}
	}
}

// A gang on two nodes under two switches has its speed there. Where it is known to be ten times as slow, it waits ten minutes for two under one.
func TestGangsAcrossSwitches(t *testing.T) {
	for _, c := range []struct {
		name string
		per  int // nodes under a switch
		wait cluster.Span
		want cluster.Span // until the gang is done
	}{
		{"any switches", 2, 0, 10 * cluster.Hour},
		{"few switches", 2, cluster.Hour, 71 * cluster.Minute},
		{"one switch", 4, cluster.Hour, cluster.Hour},
		{"no topology", 0, cluster.Hour, cluster.Hour},
	} {
		s := Default()
		s.Fleet.PerSwitch = c.per
		jobs := []trace.Job{{ID: "1", Tenant: "a", GPUs: 4, Runs: 11 * cluster.Minute}, {ID: "2", Tenant: "a", GPUs: 4, Runs: 2 * cluster.Minute}, {ID: "3", Tenant: "a", GPUs: 4, Runs: 30 * cluster.Hour},
			{ID: "4", Tenant: "a", GPUs: 8, Runs: cluster.Hour, Kind: "lm", Submit: 3 * cluster.Minute}}
		s.Load = Load{Name: "gangs", Jobs: slices.Values(jobs)}
		s.Speeds = sim.Speeds{sim.Task{Kind: "lm"}: {"v100": sim.Rate{Speed: sim.Reference, Across: sim.Reference / 10}}}
		s.Settings.ScatterWait = c.wait
		took := tookOn(t, &s, "4x4:v100", "4")
		if took < c.want-4*cluster.Minute || took > c.want+2*cluster.Minute {
			t.Errorf("%s: it took %s, want %s", c.name, took, c.want)
		}
	}
}

// tookOn gives how long a job took on racks without costs, where no job saves.
func tookOn(t *testing.T, s *Setup, racks, id string) cluster.Span {
	t.Helper()
	fleet, err := ParseFleet(racks)
	if err != nil {
		t.Fatal(err)
	}
	s.Fleet.Racks, s.Weights = fleet.Racks, EqualWeights(Survey(s.Load))
	s.Saves, s.Costs, s.Keep = Only(sim.Never), sim.Costs{}, true
	r, err := Run(context.Background(), *s, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(r.Kept, func(j score.Job) bool { return j.ID == id })
	if at < 0 {
		t.Fatalf("job %s is not over", id)
	}
	return r.Kept[at].End.Sub(r.Kept[at].Submit)
}
