package engine_test

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// onTwo asks for two nodes of four GPUs, for a job of kind lm.
func onTwo(j *sim.Work) {
	j.Request, j.Comment = cluster.Request{Size: cluster.Whole(8), Nodes: 2, PerNode: 4, CPUs: 8, MemoryMB: 8192}, "kind=lm"
}

// Where the administrator declares the part that gangs keep across switches, the first one waits for nodes under one switch, for as long as it would lose on others.
func TestDeclaredSwitches(t *testing.T) {
	for _, c := range []struct {
		part  float64
		waits cluster.Span // it is expected to need ten minutes of one GPU, or 75 s
	}{{0, 0}, {1, 0}, {0.2, 5 * minute}} {
		nodes := simtest.Nodes("n", "v100", 4, 4)
		for i := range nodes {
			nodes[i].Switch = []string{"s1", "s2"}[i/2]
		}
		w := newWorldOn(t, simtest.Product(), nodes, "a")
		w.Settings.ScatterWait, w.Gate = 8*hour, w.Settings.GateTTL
		if c.part > 0 {
			w.Rules.Profiles = []cluster.Profile{{Kind: "lm", With: cluster.AcrossSwitches, Model: "v100", Gang: 8, Rate: c.part, Relative: true, Source: cluster.Declared, Basis: profile.File}}
		}
		for _, node := range []int{0, 2} {
			w.submit("a", 4, forever, func(j *sim.Work) { j.NoRequeue, j.NodeList = true, []string{nodes[node].Name} })
		}
		w.Run(minute)
		since := w.Now()
		gang := w.submit("a", 8, hour, func(j *sim.Work) { onTwo(j); j.NoRequeue = true })
		if w.Run(minute); c.waits > 0 {
			w.why(gang, cluster.ReasonTogether)
		}
		w.Run(c.waits)
		w.state(gang, cluster.Running)
		if began := w.Job(gang).Start.Sub(since); began < c.waits || began > c.waits+minute {
			t.Errorf("%v: it began after %s, want %s", c.part, began, c.waits)
		}
	}
}

// Gangs of a type report a tenth of their steps while they are under two switches. Once both speeds are known, a gang that finds an idle node under each
// waits for two under one, at most for what it would lose. Under one switch, or where switches are unknown, or where none may wait, it begins at once.
func TestWaitsForOneSwitch(t *testing.T) {
	for _, c := range []struct {
		name  string
		under []string // switches of n1 to n4
		most  cluster.Span
		waits bool
	}{
		{"two switches", []string{"s1", "s1", "s2", "s2"}, 8 * hour, true},
		{"none may wait", []string{"s1", "s1", "s2", "s2"}, 0, false},
		{"one switch", []string{"s1", "s1", "s1", "s1"}, 8 * hour, false},
		{"no switches", []string{"", "", "", ""}, 8 * hour, false},
		{"a switch is unknown", []string{"s1", "s1", "s2", ""}, 8 * hour, false},
		{"each node has one", []string{"s1", "s2", "s3", "s4"}, 8 * hour, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			nodes := simtest.Nodes("n", "v100", 4, 4)
			for i := range nodes {
				nodes[i].Switch = c.under[i]
			}
			w := newWorldOn(t, simtest.Product(), nodes, "a")
			w.Settings.ScatterWait, w.Reports, w.Gate = c.most, minute, w.Settings.GateTTL
			apart := func(j *cluster.Job) bool {
				return len(j.Holds) == 2 && (j.Holds[0].Node < nodes[2].Name) != (j.Holds[1].Node < nodes[2].Name)
			}
			w.alter = func(o *cluster.Observation) {
				for i := range o.Progress {
					if k := slices.IndexFunc(o.Jobs, func(j cluster.Job) bool { return j.ID == o.Progress[i].Job }); k >= 0 && apart(&o.Jobs[k]) {
						o.Progress[i].Steps /= 10
					}
				}
			}
			on := func(node int, runs cluster.Span) {
				w.submit("a", 4, runs, func(j *sim.Work) { j.NoRequeue, j.NodeList = true, []string{nodes[node].Name} })
			}
			gang := func() cluster.JobID {
				return w.submit("a", 8, hour, func(j *sim.Work) { onTwo(j); j.NoRequeue = true })
			}
			runs := func(id cluster.JobID, want ...int) {
				t.Helper()
				w.state(id, cluster.Running)
				if h := w.Job(id).Holds; len(h) != 2 || h[0].Node != nodes[want[0]].Name || h[1].Node != nodes[want[1]].Name {
					t.Fatalf("the gang is on %+v, want nodes %v", h, want)
				}
			}
			gang()
			w.Run(2 * hour)
			on(0, 3*hour)
			on(2, 3*hour)
			w.Run(minute)
			first := gang()
			w.Run(minute)
			if runs(first, 1, 3); w.Record(first).Across != c.waits || w.Record(first).Scattered {
				t.Errorf("across switches: %v, scattered: %v", w.Record(first).Across, w.Record(first).Scattered)
			}
			w.Run(4 * hour)
			learnt := slices.ContainsFunc(w.Last.State.Profiles, func(p cluster.Profile) bool { return p.With == cluster.AcrossSwitches })
			if learnt != c.waits {
				t.Errorf("learnt %+v", w.Last.State.Profiles)
			}
			on(0, 20*minute)
			on(2, forever)
			w.Run(minute)
			second := gang()
			w.Run(minute)
			if !c.waits {
				runs(second, 1, 3)
				return
			}
			w.why(second, cluster.ReasonTogether)
			w.Run(20 * minute)
			runs(second, 0, 1)
			w.Run(2 * hour)
			on(0, forever)
			w.Run(minute)
			since := w.Now()
			third := gang()
			w.Run(minute)
			until := w.why(third, cluster.ReasonTogether).Until
			if until <= since || until > since.Add(8*hour) {
				t.Fatalf("it waits until %s, since %s", until, since)
			}
			w.Run(until.Sub(w.Now()) - minute)
			w.state(third, cluster.Waiting)
			w.Run(2 * minute)
			runs(third, 1, 3)
		})
	}
}
