package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// onTwo asks for two nodes of four GPUs, for a job of kind lm.
func onTwo(j *sim.Work) {
	j.Request, j.Comment = cluster.Request{Size: cluster.Whole(8), Nodes: 2, PerNode: 4, CPUs: 8, MemoryMB: 8192}, "kind=lm"
}

// keepsAcross declares the part of its speed that a gang of kind lm of eight GPUs keeps across switches.
func keepsAcross(part float64) []cluster.Profile {
	return []cluster.Profile{{Kind: "lm", With: cluster.AcrossSwitches, Model: "v100", Gang: 8, Rate: part, Relative: true, Source: cluster.Declared, Basis: profile.File}}
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
			w.Rules.Profiles = keepsAcross(c.part)
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

// A gang began under two switches. When two nodes under one are idle, it moves there at the end of its lease, if it gains more in a term than a stop costs it. It does not
// move between nodes that are both under two switches.
func TestMovesUnderOneSwitch(t *testing.T) {
	for _, c := range []struct {
		part   float64
		divide string
		frees  []int // nodes
		want   []int
	}{
		{0.3, "", []int{0, 1}, []int{0, 1}},
		{0.3, "gavel:las", []int{0, 1}, []int{0, 1}},
		{0.3, "", []int{0, 3}, []int{2, 5}},
		{0.95, "", []int{0, 1}, []int{2, 5}},
		{0, "", []int{0, 1}, []int{2, 5}},
	} {
		set := simtest.Product()
		if set.ScatterWait = hour; c.divide != "" {
			set.Divide, set.DivideJobs = c.divide, true
		}
		nodes := simtest.Nodes("n", "v100", 6, 4)
		for i := range nodes {
			nodes[i].Switch = []string{"s1", "s2"}[i/3]
		}
		w := newWorldOn(t, set, nodes, "a")
		w.Gate = w.Settings.GateTTL
		for _, node := range []int{0, 1, 3, 4} {
			runs := forever
			if slices.Contains(c.frees, node) {
				runs = 31 * minute
			}
			w.submit("a", 4, runs, func(j *sim.Work) { j.NoRequeue, j.NodeList = true, []string{nodes[node].Name} })
		}
		w.Run(minute)
		gang := w.submit("a", 8, 20*hour, func(j *sim.Work) { onTwo(j); j.Comment += ",saves=notice" })
		on := func(want ...int) {
			t.Helper()
			if h := w.Job(gang).Holds; len(h) != 2 || h[0].Node != nodes[want[0]].Name || h[1].Node != nodes[want[1]].Name {
				t.Errorf("%v %q: at %s it is on %+v, want nodes %v", c.part, c.divide, w.Now(), h, want)
			}
		}
		w.Run(minute)
		if on(2, 5); c.part > 0 {
			w.Rules.Profiles = keepsAcross(c.part)
		}
		w.Run(27 * minute)
		on(2, 5)
		w.Run(20 * minute)
		on(c.want...)
		w.movesOnce(gang, fmt.Sprintf("%v %q", c.part, c.divide))
	}
}

// A gang on three nodes, which needs two, moves to two under two switches if it is faster there, too. If it is not, it moves only to two under one.
func TestScatteredMovesBySwitches(t *testing.T) {
	for _, c := range []struct {
		scattered, across float64 // 0 = unknown
		want              bool    // it moves
	}{{0.3, 0, true}, {0.3, 0.9, true}, {0.3, 0.3, false}, {0.3, 0.2, false}, {0, 0.9, false}} {
		nodes := simtest.Nodes("n", "v100", 6, 4)
		for i := range nodes {
			nodes[i].Switch = []string{"s1", "s2"}[i/3]
		}
		w := newWorldOn(t, simtest.Product(), nodes, "a")
		w.Settings.ScatterWait, w.Gate = hour, w.Settings.GateTTL
		on := func(node, gpus int, runs cluster.Span) {
			w.submit("a", gpus, runs, func(j *sim.Work) { j.NoRequeue, j.NodeList = true, []string{nodes[node].Name} })
		}
		for node, runs := range []cluster.Span{forever, forever, 31 * minute, 31 * minute, forever, forever} {
			on(node, map[int]int{0: 2, 1: 1, 4: 1}[node]+map[bool]int{true: 4}[node == 2 || node == 3 || node == 5], runs)
		}
		w.Run(minute)
		gang := w.submit("a", 8, 20*hour, func(j *sim.Work) { anywhere(j); j.Comment += ",saves=notice" })
		w.Run(minute)
		if h := w.Job(gang).Holds; len(h) != 3 {
			t.Fatalf("it begins on %+v", h)
		}
		if c.scattered > 0 {
			w.Rules.Profiles = keeps(c.scattered, 8)
		}
		if c.across > 0 {
			w.Rules.Profiles = append(w.Rules.Profiles, keepsAcross(c.across)...)
		}
		w.Run(47 * minute)
		if h := w.Job(gang).Holds; (len(h) == 2) != c.want {
			t.Errorf("%+v: it is on %+v", c, h)
		}
	}
}

// In drawn worlds, what is known of gangs on other nodes ends, keeps and begins no lease but those of the jobs that move for it, where no gang waits. So whoever reports that
// its gangs are slow where they run gets no GPUs that others would have had. A job that moves keeps its number of GPUs.
func TestMovesTakeNothingFromOthers(t *testing.T) {
	moves := 0
	rapid.Check(t, func(rt *rapid.T) {
		c := newChaosOn(rt, t, func(rt *rapid.T) []cluster.Node {
			nodes := simtest.Nodes("a", "v100", rapid.IntRange(4, 8).Draw(rt, "nodes"), 2)
			for i := range nodes {
				nodes[i].Switch = []string{"s1", "s2"}[i*2/len(nodes)]
			}
			return nodes
		})
		set := &c.world.Settings
		set.ScatterWait, set.Across, set.Slices, set.CompactPercent, set.NoCompletions = 8*hour, cluster.AnyUser, nil, 0, true
		part, scattered := rapid.SampledFrom([]float64{0.05, 0.3}).Draw(rt, "part across switches"), rapid.SampledFrom([]float64{0.02, 0.2, 1}).Draw(rt, "part on more nodes")
		known, from := acrossSwitches(part, "x", "y", "z"), c.world.Now().Add(hour)
		c.world.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
			unknown := s
			unknown.Profiles = nil
			if s.Profiles, s.Declared = known, keeps(scattered, 2, 3, 4, 8); s.Now < from {
				return engine.Decide(unknown)
			}
			plan := engine.Decide(s)
			for i := range s.Cases {
				if j := &s.Cases[i].Job; j.State == cluster.Waiting && j.Request.Size.Devices > 1 {
					return plan
				}
			}
			other := engine.Decide(unknown)
			movers := map[cluster.JobKey]bool{}
			for i := range plan.State.Claims {
				cl := &plan.State.Claims[i]
				if l := leaseIn(plan.State.Leases, cl.Job); l != nil && claimIn(other.State.Claims, cl.Job) == nil {
					if movers[cl.Job] = true; cluster.SizeHeld(cl.Nodes) != cluster.SizeHeld(l.Nodes) {
						rt.Fatalf("%+v moves to %+v", l, cl)
					}
					moves++
				}
			}
			for _, pair := range [][2][]cluster.Lease{{plan.State.Leases, other.State.Leases}, {other.State.Leases, plan.State.Leases}} {
				for i := range pair[0] {
					l := &pair[0][i]
					if o := leaseIn(pair[1], l.Job); !movers[l.Job] && (o == nil || o.State != l.State || o.End != l.End || !slices.EqualFunc(o.Nodes, l.Nodes, func(a, b cluster.Holding) bool { return a.Node == b.Node })) {
						rt.Fatalf("at %s %+v is %+v where nothing is known, and %v move", s.Now, l, o, movers)
					}
				}
			}
			return plan
		}
		for range rapid.IntRange(4, 16).Draw(rt, "jobs") {
			w := sim.Work{User: "u", Account: rapid.SampledFrom([]string{"y", "z"}).Draw(rt, "tenant"), Partition: "gpu", Request: simtest.Gang(rapid.IntRange(1, 2).Draw(rt, "gpus")),
				Runs: cluster.Span(rapid.IntRange(10, 240).Draw(rt, "minutes")) * minute, NoRequeue: true, NodeList: []string{rapid.SampledFrom(c.nodes).Draw(rt, "node").Name}}
			c.ids = append(c.ids, c.world.Virtual.Submit(w))
		}
		c.world.Run(minute)
		for range rapid.IntRange(1, 3).Draw(rt, "gangs") {
			c.ids = append(c.ids, c.world.Virtual.Submit(sim.Work{User: "u", Account: "x", Partition: "gpu", Request: cluster.Request{Size: cluster.Whole(4), CPUs: 4, MemoryMB: 4096}, Runs: 10 * hour, Comment: "kind=lm,saves=notice"}))
		}
		for range rapid.IntRange(10, 30).Draw(rt, "minutes") {
			if c.world.Run(10 * minute); rapid.Bool().Draw(rt, "a job comes") {
				c.ids = append(c.ids, c.world.Virtual.Submit(sim.Work{User: "u", Account: "y", Partition: "gpu", Request: simtest.Gang(1), Runs: 20 * minute, Comment: "saves=notice"}))
			}
		}
	})
	t.Logf("%d moves", moves)
}

func leaseIn(all []cluster.Lease, job cluster.JobKey) *cluster.Lease {
	if i := slices.IndexFunc(all, func(l cluster.Lease) bool { return l.Job == job }); i >= 0 {
		return &all[i]
	}
	return nil
}

func claimIn(all []cluster.Claim, job cluster.JobKey) *cluster.Claim {
	if i := slices.IndexFunc(all, func(cl cluster.Claim) bool { return cl.Job == job }); i >= 0 {
		return &all[i]
	}
	return nil
}
