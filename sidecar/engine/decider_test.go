package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// alike makes a world use a decider. It checks that the plans equal those of a fresh decider, byte for byte,
// and that the decider does not change its input.
func (c *chaos) alike(d *engine.Decider) {
	c.world.Loop.Brief, c.world.Lend = d.Brief, true
	c.world.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
		before, fresh := encode(s), encode(engine.Decide(s))
		plan := d.Decide(s)
		if again := encode(plan); again != fresh {
			c.Fatalf("round %d is decided\n%s\nby a fresh decider, and by one that has been used\n%s", s.Round, fresh, again)
		}
		if after := encode(s); after != before {
			c.Fatalf("round %d: given\n%s\nit left\n%s", s.Round, before, after)
		}
		return plan
	}
}

// disturb causes a change that a decider could miss.
func (c *chaos) disturb() {
	w := c.world
	node := rapid.SampledFrom(c.nodes).Draw(c.T, "where").Name
	switch rapid.IntRange(0, 8).Draw(c.T, "disturbance") {
	case 0:
		w.AddReservation(cluster.Reservation{Name: "maintenance", Nodes: []string{node}, Users: []string{"root"},
			Start: w.Now().Add(cluster.Span(rapid.IntRange(-5, 30).Draw(c.T, "start")) * cluster.Minute), End: w.Now().Add(cluster.Hour)})
	case 1:
		w.Settings.Term = rapid.SampledFrom([]cluster.Span{10, 20}).Draw(c.T, "term") * cluster.Minute
	case 2:
		w.Rules.Weights = map[string]int64{"x": 1, "y": int64(rapid.IntRange(0, 3).Draw(c.T, "weight"))}
	case 3, 4: // claims keep off jobs with long time limits
		gpus := rapid.SampledFrom([]int{1, 2, 8}).Draw(c.T, "gpus")
		c.ids = append(c.ids, w.Virtual.Submit(sim.Work{User: "u", Account: "x", Partition: "gpu", Request: simtest.Gang(gpus), Runs: cluster.Hour,
			Limit: rapid.SampledFrom([]cluster.Span{cluster.Minute, 5 * cluster.Minute, cluster.Hour}).Draw(c.T, "limit")}))
	case 5:
		w.Settings.Across = rapid.SampledFrom([]cluster.Across{cluster.AnyUser, cluster.SameTenant, cluster.SameUser}).Draw(c.T, "across now")
	default:
		c.stir()
	}
}

func TestADeciderDecidesAsAFreshOneDoes(t *testing.T) {
	for _, brief := range []bool{false, true} {
		rapid.Check(t, func(rt *rapid.T) {
			c := newChaos(rt, t)
			c.alike(&engine.Decider{Brief: brief})
			c.submit()
			for range rapid.IntRange(1, 25).Draw(rt, "steps") {
				c.disturb()
				c.world.Run(cluster.Span(rapid.IntRange(1, 300).Draw(rt, "seconds")) * cluster.Second)
			}
		})
	}
}

// The same holds where a policy divides GPU models: names, types, speeds and demands are kept too.
func TestADeciderDividesAsAFreshOneDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newChaos(rt, t)
		c.share()
		c.divide(rapid.SampledFrom(preset.Dividing()).Draw(rt, "preset"))
		c.world.Settings.Mechanism = rapid.SampledFrom(cluster.Mechanisms).Draw(rt, "mechanism")
		c.alike(&engine.Decider{Brief: rapid.Bool().Draw(rt, "brief")})
		c.submit()
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			c.disturb()
			c.world.Run(cluster.Span(rapid.IntRange(1, 300).Draw(rt, "seconds")) * cluster.Second)
		}
	})
}

// Nor do slow nodes and GPUs make a difference, that come and go.
func TestADeciderKnowsSlowNodes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newChaos(rt, t)
		c.alike(&engine.Decider{Brief: rapid.Bool().Draw(rt, "brief")})
		decide, slow := c.world.Loop.Decide, cluster.NodeSpeeds{}
		c.world.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
			s.NodeSpeeds = slow
			return decide(s)
		}
		c.submit()
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			c.disturb()
			slow = cluster.NodeSpeeds{}
			for i := range c.nodes {
				n := cluster.SlowNode{Node: c.nodes[i].Name, Model: c.nodes[i].GPUs[0].Model}
				switch rapid.SampledFrom([]string{"", "slow", "a GPU is slow"}).Draw(rt, "node") {
				case "slow":
					slow.Slow = append(slow.Slow, n)
				case "a GPU is slow":
					slow.GPUs = append(slow.GPUs, cluster.SlowGPU{SlowNode: n, Index: rapid.IntRange(0, 3).Draw(rt, "GPU")})
				}
			}
			c.world.Run(cluster.Span(rapid.IntRange(1, 300).Draw(rt, "seconds")) * cluster.Second)
		}
	})
}

// Nor do nodes make a difference that are busy for a while, as on a Slurm those are on which a job completes, or bad, nor reservations of others.
func TestADeciderKnowsBusyNodes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newChaos(rt, t)
		switch rapid.IntRange(0, 3).Draw(rt, "chooser") {
		case 0:
			c.world.Settings.Preset, c.world.Settings.Chooser = "hived", "astraea"
			c.world.Rules.Cells = c.drawCells()
		case 1:
			c.divide(rapid.SampledFrom(preset.Dividing()).Draw(rt, "preset"))
		}
		c.alike(&engine.Decider{Brief: c.world.Rules.Cells == nil && rapid.Bool().Draw(rt, "brief")}) // brief plans show no views of cells
		decide, there := c.world.Loop.Decide, []cluster.Reservation(nil)
		every, seed, known := rapid.Int64Range(1, 4).Draw(rt, "rounds"), rapid.Uint64().Draw(rt, "seed"), rapid.Bool().Draw(rt, "versions")
		c.world.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
			period := s.Round / every
			random := rand.New(rand.NewPCG(seed, uint64(period)))
			s.Nodes = slices.Clone(s.Nodes)
			for i := range s.Nodes {
				if n := &s.Nodes[i]; random.IntN(3) == 0 && n.Busy == "" {
					n.Busy = "completing"
				}
				if n := &s.Nodes[i]; random.IntN(6) == 0 && n.Bad == "" {
					n.Bad = "not responding"
				}
			}
			if s.NodesVersion += 1000 * period; !known {
				s.NodesVersion = 0
			}
			s.Reservations = slices.Concat(s.Reservations, there)
			return decide(s)
		}
		c.submit()
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			c.disturb()
			if rapid.IntRange(0, 3).Draw(rt, "reservations") == 0 {
				there = nil
				for k := range rapid.IntRange(0, 2).Draw(rt, "how many") {
					minutes := func(what string, from, to int) cluster.Instant {
						return c.world.Now().Add(cluster.Span(rapid.IntRange(from, to).Draw(rt, what)) * cluster.Minute)
					}
					r := cluster.Reservation{Name: fmt.Sprint("theirs", k), Start: minutes("start", -5, 30), End: minutes("end", 1, 90)}
					if rapid.Bool().Draw(rt, "magnetic") {
						r.Flags, r.Accounts = []string{cluster.Magnetic}, []string{rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "whose")}
					}
					for i := range c.nodes {
						name := c.nodes[i].Name
						switch rapid.IntRange(0, 3).Draw(rt, "of the node") {
						case 0:
							r.Nodes = append(r.Nodes, name)
						case 1:
							r.Nodes, r.Parts = append(r.Nodes, name), append(r.Parts, cluster.ReservedPart{Node: name, CPUs: rapid.IntRange(1, 8).Draw(rt, "CPUs"), GPUs: rapid.IntRange(0, 2).Draw(rt, "GPUs")})
						}
					}
					there = append(there, r)
				}
			}
			c.world.Run(cluster.Span(rapid.IntRange(1, 300).Draw(rt, "seconds")) * cluster.Second)
		}
	})
}

// A decider's data of one cluster does not affect another cluster.
func TestADeciderServesTwoClusters(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := &engine.Decider{}
		both := []*chaos{newChaos(rt, t), newChaos(rt, t)}
		for _, c := range both {
			c.alike(d)
			c.submit()
		}
		for range rapid.IntRange(1, 10).Draw(rt, "steps") {
			for _, c := range both {
				c.disturb()
				c.world.Run(cluster.Span(rapid.IntRange(1, 300).Draw(rt, "seconds")) * cluster.Second)
			}
		}
	})
}

// Two clusters with the same nodes take turns with one decider, and the second is always a round ahead of the first: a case that is as it was
// there is none of the other's, though their rounds follow each other.
func TestADeciderTellsClustersApart(t *testing.T) {
	d, rounds := &engine.Decider{}, 0
	worlds := make([]*simtest.World, 2)
	for k := range worlds {
		w := simtest.New(t, simtest.Product(), simtest.Nodes("n", "v100", 2, 8), "x", "y")
		w.Loop.Brief, w.Lend = true, true
		w.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
			fresh := encode(engine.Decide(s))
			plan := d.Decide(s)
			if got := encode(plan); got != fresh {
				t.Fatalf("cluster %d, round %d is decided\n%s\nby a fresh decider, and by one that serves two\n%s", k, s.Round, fresh, got)
			}
			rounds++
			return plan
		}
		worlds[k] = w
	}
	turn := func(k, gpus int) {
		w := worlds[k]
		w.Virtual.Submit(sim.Work{User: "u", Account: string("xy"[gpus%2]), Partition: "gpu", Request: simtest.Gang(gpus), Runs: cluster.Hour})
		if _, err := w.Loop.Turn(context.Background()); err != nil {
			t.Fatal(err)
		}
		w.Advance(w.Now().Add(20 * cluster.Second))
	}
	for range 3 {
		worlds[1].Virtual.Submit(sim.Work{User: "u", Account: "x", Partition: "gpu", Request: simtest.Gang(2), Runs: 3 * cluster.Hour})
	}
	turn(1, 8)
	for n := range 30 {
		turn(0, 1+n%3)
		turn(1, 1+n%2)
	}
	if rounds != 61 {
		t.Errorf("%d rounds were decided", rounds)
	}
}

// Plans belong to the caller: a decider that is not brief does not change them later.
func TestPlansAreTheCallers(t *testing.T) {
	var d engine.Decider
	s := simtest.Crowd(200, 9)
	first := d.Decide(s)
	was := encode(first)
	for range 3 {
		s.Round, s.Now = s.Round+1, s.Now.Add(10*cluster.Second)
		s.Ledger = d.Decide(s).State.Ledger
	}
	if is := encode(first); is != was {
		t.Errorf("the first plan was\n%s\nand has become\n%s", was, is)
	}
}

// Answers about jobs like one hold until another of them ends, and no longer.
func TestADeciderLearnsAsAFreshOneDoes(t *testing.T) {
	set := simtest.Product()
	set.Interval = cluster.Minute
	w := simtest.New(t, set, simtest.Nodes("n", "v100", 2, 8), "x", "y")
	d := &engine.Decider{Brief: true}
	w.Loop.Brief, w.Lend = true, true
	w.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
		fresh := encode(engine.Decide(s))
		plan := d.Decide(s)
		if got := encode(plan); got != fresh {
			t.Fatalf("round %d is decided\n%s\nby a fresh decider, and by one that has been used\n%s", s.Round, fresh, got)
		}
		return plan
	}
	for k := range 120 {
		account := string("xy"[k%2])
		w.Virtual.Submit(sim.Work{User: fmt.Sprint(account, k%3), Account: account, Partition: "gpu", Name: fmt.Sprint("train", "abc"[k%3:k%3+1]), Request: simtest.Gang(1 << (k % 4)),
			Runs: cluster.Span([]int{7, 50, 85}[k%3]) * cluster.Minute, Saves: []sim.Saves{sim.Never, sim.AtEnd}[k%2]})
		if k%4 == 3 {
			w.Run(5 * cluster.Minute)
		}
	}
	w.Run(6 * cluster.Hour)
}
