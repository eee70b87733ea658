package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// drawCells describes some of the nodes as cells, with a feasible assignment to x and y.
func (c *chaos) drawCells() *cluster.Cells {
	d := &cluster.Cells{}
	all := rapid.Bool().Draw(c.T, "all in cells")
	for _, chain := range []string{"v100", "k80"} {
		var nodes []cluster.Node
		for _, n := range c.nodes {
			if n.GPUs[0].Model == chain && (all || rapid.IntRange(0, 7).Draw(c.T, "in cells") > 0) {
				nodes = append(nodes, n)
			}
		}
		if len(nodes) == 0 {
			continue
		}
		size := nodes[0].GPUs[0].Count
		d.Types = append(d.Types, cluster.CellType{Name: chain + ".gpu", Model: chain},
			cluster.CellType{Name: chain + ".pair", Child: chain + ".gpu", Split: 2},
			cluster.CellType{Name: chain + ".node", Child: chain + ".pair", Split: size / 2, Node: true})
		for _, n := range nodes {
			d.Tops = append(d.Tops, cluster.TopCell{Name: n.Name, Type: chain + ".node", Nodes: []string{n.Name}})
		}
	}
	c.assign(d)
	return d
}

// assign draws the cells of each VC.
func (c *chaos) assign(d *cluster.Cells) {
	d.VCs = nil
	for _, name := range []string{"x", "y"} {
		d.VCs = append(d.VCs, cluster.VC{Name: name})
	}
	for range rapid.IntRange(1, 8).Draw(c.T, "quotas") {
		if len(d.Types) == 0 {
			break
		}
		v := rapid.IntRange(0, 1).Draw(c.T, "VC")
		was := d.VCs[v].Cells
		typ := rapid.SampledFrom(d.Types).Draw(c.T, "type").Name
		d.VCs[v].Cells = append(was[:len(was):len(was)], cluster.CellQuota{Type: typ, Cells: rapid.IntRange(1, 2).Draw(c.T, "cells")})
		trial := *d
		trial.VCs = slices.DeleteFunc(slices.Clone(d.VCs), func(v cluster.VC) bool { return v.Cells == nil })
		if _, err := cells.New(trial); err != nil {
			d.VCs[v].Cells = was
		}
	}
	d.VCs = slices.DeleteFunc(d.VCs, func(v cluster.VC) bool { return v.Cells == nil })
	if !c.world.Settings.Divides() {
		return
	}
	for v := range d.VCs {
		for k := range d.VCs[v].Cells {
			q := &d.VCs[v].Cells[k]
			q.Tradable = rapid.IntRange(0, q.Cells).Draw(c.T, "tradable")
		}
	}
}

// gres reports the GPU indices of jobs as Slurm does. Slurm chooses them itself: the first free ones.
type gres struct {
	loop.Cluster
	given map[cluster.JobID]map[string][]int
}

func (g *gres) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	s, err := g.Cluster.Observe(ctx, since)
	taken := map[string]uint64{}
	for _, known := range []bool{true, false} {
		for i := range s.Jobs {
			j := &s.Jobs[i]
			if len(j.Holds) == 0 || j.State == cluster.Done {
				delete(g.given, j.ID)
				continue
			}
			holds := slices.Clone(j.Holds)
			was, ok := g.given[j.ID]
			for k := range holds {
				ok = ok && len(was[holds[k].Node]) == holds[k].Size.Devices
			}
			if ok != known {
				continue
			}
			now := map[string][]int{}
			for k := range holds {
				h := &holds[k]
				h.Index = was[h.Node]
				if !known {
					h.Index = nil
					free := ^taken[h.Node]
					for range h.Size.Devices {
						h.Index = append(h.Index, bits.TrailingZeros64(free))
						free &= free - 1
					}
				}
				for _, at := range h.Index {
					taken[h.Node] |= 1 << at
				}
				now[h.Node] = h.Index
			}
			g.given[j.ID], j.Holds = now, holds
		}
	}
	return s, err
}

// shared puts all nodes into an unmanaged partition, too.
type shared struct{ loop.Cluster }

func (c shared) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	s, err := c.Cluster.Observe(ctx, since)
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		s.Nodes[i].Partitions = append(slices.Clone(s.Nodes[i].Partitions), "strangers")
	}
	return s, err
}

func TestPropertiesOfCells(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { propertiesOfCells(rt, t, func(*chaos) {}) })
}

// The guarantee is the same whatever policy divides the models of the cells.
func TestPropertiesOfCellsDivided(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		propertiesOfCells(rt, t, func(c *chaos) { c.divide(rapid.SampledFrom(preset.Dividing()).Draw(rt, "preset")) })
	})
}

// The guarantee is the same whatever the VCs' own schedulers answer: jobs of others, jobs that are gone, models and nodes that do not exist.
func TestPropertiesOfCellsBySchedulersOfTheSite(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		propertiesOfCells(rt, t, func(c *chaos) {
			if rapid.Bool().Draw(rt, "a policy divides models") {
				c.divide(rapid.SampledFrom(preset.Dividing()).Draw(rt, "preset"))
			}
			seed := rapid.Uint64().Draw(rt, "answers")
			c.world.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
				described := *s.Cells
				described.VCs = slices.Clone(described.VCs)
				for v := range described.VCs {
					described.VCs[v].Scheduler = &cluster.VCScheduler{Command: []string{"/bin/x"}, Deadline: cluster.Second}
					s.VCOrders = append(s.VCOrders, answerTo(rand.New(rand.NewPCG(seed, uint64(s.Now)+uint64(v))), &s, described.VCs[v].Name))
				}
				s.Cells = &described
				plan := engine.Decide(s)
				var kept cluster.Snapshot // a replay reads the answers from there
				if err := json.Unmarshal([]byte(encode(s)), &kept); err != nil || encode(engine.Decide(kept)) != encode(plan) {
					rt.Fatalf("a replay makes another plan (%v)", err)
				}
				return plan
			}
		})
	})
}

// answerTo makes up the answer of a VC's own scheduler.
func answerTo(r *rand.Rand, s *cluster.Snapshot, vc string) cluster.VCOrder {
	o := cluster.VCOrder{VC: vc, At: s.Now.Add(-cluster.Span(r.Int64N(int64(3 * s.Settings.Term))))}
	if r.IntN(8) == 0 {
		o.Why = "it failed"
		return o
	}
	for _, at := range r.Perm(len(s.Cases) + 2)[:r.IntN(len(s.Cases)+2)] {
		x := cluster.VCTurn{Job: cluster.JobKey(1_000_000 + at)}
		if at < len(s.Cases) {
			x.Job = s.Cases[at].Record.Key
		}
		if r.IntN(2) == 0 {
			x.Model = []string{"v100", "k80", "none"}[r.IntN(3)]
		}
		for range r.IntN(3) {
			x.Nodes = append(x.Nodes, []string{s.Nodes[r.IntN(len(s.Nodes))].Name, "none"}[r.IntN(5)/4])
		}
		o.Turns = append(o.Turns, x)
	}
	return o
}

func propertiesOfCells(rt *rapid.T, t *testing.T, set func(*chaos)) {
	c := newChaos(rt, t)
	set(c)
	d := c.drawCells()
	c.inCells(d)
	c.submit()
	c.stirCells(d, c.assign)
}

// inCells checks every round of a world in cells.
func (c *chaos) inCells(d *cluster.Cells) {
	rt := c.T
	c.share()
	settings := &c.world.Settings
	if rapid.Bool().Draw(rt, "levels") {
		c.qos, settings.Levels = []string{"urgent", "normal", "low"}, []cluster.QOSLevel{{QOS: "low", Level: -1}, {QOS: "urgent", Level: 1}}
	}
	settings.Preset, settings.Chooser = "hived", rapid.SampledFrom([]string{"astraea", "fifo", "tiresias-l", "gandiva-fair"}).Draw(rt, "chooser")
	settings.AffinityWait = rapid.SampledFrom([]cluster.Span{0, 5 * minute}).Draw(rt, "affinity wait")
	c.world.Rules.Cells = d
	tells := rapid.Bool().Draw(rt, "Slurm tells which GPUs") // Slurm's choice may then differ from the plan
	if tells {
		c.world.Loop.Cluster = &gres{Cluster: c.world.Virtual, given: map[cluster.JobID]map[string][]int{}}
	}
	if rapid.Bool().Draw(rt, "strangers") {
		c.world.Loop.Cluster = shared{c.world.Loop.Cluster}
	}
	var lost []cluster.CellLoss
	c.world.Check = func(r loop.Report) {
		c.safe(&r.Plan)
		if d := r.Plan.State.Allocation; d != nil {
			c.divided(d)
		}
		if r.Plan.Cells.Unsafe != nil {
			c.Fatalf("not safe: %v", r.Plan.Cells.Unsafe)
		}
		was := lost
		lost = r.Plan.State.Lost                                // the entitlements of VCs follow it a round later
		if c.world.Completing == 0 && slices.Equal(was, lost) { // otherwise a node may be busy briefly, or regained cells are granted in the next round
			c.prompt(&r.Plan)
		}
		for _, l := range r.Plan.State.Leases { // Slurm started it on GPUs that may have been given to others
			if l.Adopted && l.Granted == r.Plan.At {
				return
			}
		}
		again := slices.ContainsFunc(r.Plan.Actions, func(a cluster.Action) bool { // it waits again, and may be granted other GPUs in the next round
			return a.Verb == cluster.Reclaim || a.Verb == cluster.RevokeGrant
		})
		if !tells && len(d.Tops) == len(c.nodes) && slices.Equal(was, lost) && !again {
			c.settled()
		}
	}
}

// stirCells lets everything happen; reassign draws other virtual clusters.
func (c *chaos) stirCells(d *cluster.Cells, reassign func(*cluster.Cells)) {
	rt := c.T
	for range rapid.IntRange(1, 40).Draw(rt, "steps") {
		if rapid.IntRange(0, 9).Draw(rt, "reassign") == 0 {
			next := *d
			if n := len(d.Tops); n > 1 && rapid.Bool().Draw(rt, "a node is described no longer") {
				at := rapid.IntRange(0, n-1).Draw(rt, "which")
				next.Tops = slices.Delete(slices.Clone(d.Tops), at, at+1)
			}
			reassign(&next)
			c.world.Rules.Cells = &next
		}
		c.stir()
		c.world.Run(cluster.Span(rapid.IntRange(1, 300).Draw(rt, "seconds")) * cluster.Second)
		c.balanced()
	}
}

// Cells that change hands break no promise, whatever happens meanwhile: of two tenants one has fast nodes and the other
// slow ones, and what their jobs gain from fast GPUs changes.
func TestPropertiesOfTradedCells(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		fast, slow := rapid.IntRange(1, 3).Draw(rt, "fast"), rapid.IntRange(3, 6).Draw(rt, "slow")
		c := newChaosOn(rt, t, func(*rapid.T) []cluster.Node {
			return append(simtest.Nodes("k", "k80", slow, 4), simtest.Nodes("v", "v100", fast, 4)...)
		})
		c.divide(rapid.SampledFrom(preset.Dividing()).Draw(rt, "preset"))
		c.world.Settings.DivideEvery = 1
		gains := "6"
		c.comment = func() string {
			if rapid.IntRange(0, 9).Draw(rt, "gains change") == 0 {
				gains = rapid.SampledFrom([]string{"6", "4", "1.2"}).Draw(rt, "gains")
			}
			return fmt.Sprintf("kind=g%s,steps/s.v100=%s,steps/s.k80=1", gains, gains)
		}
		d := modelCells(slow, fast, tradable(nodesOf("x", rapid.IntRange(0, 1).Draw(rt, "x's slow"), fast)), tradable(nodesOf("y", slow-1, 0)))
		for range 4 * (fast + slow) { // x gains little
			c.ids = append(c.ids, c.world.Virtual.Submit(sim.Work{User: "u", Account: "x", Partition: "gpu", Request: simtest.Gang(1), Runs: cluster.Day,
				Comment: "kind=vae,steps/s.v100=1.2,steps/s.k80=1"}))
		}
		for range 4 * slow {
			c.ids = append(c.ids, c.world.Virtual.Submit(sim.Work{User: "u", Account: "y", Partition: "gpu", Request: simtest.Gang(1), Runs: cluster.Day,
				Comment: "kind=lstm,steps/s.v100=6,steps/s.k80=1"}))
		}
		c.inCells(d)
		c.world.Run(c.world.Settings.Term + minute)
		c.balanced()
		c.stirCells(d, func(next *cluster.Cells) {
			next.VCs = slices.Clone(next.VCs)
			if _, err := cells.New(*next); err != nil { // too few nodes are left
				next.Tops = d.Tops
			}
			for v := range next.VCs {
				next.VCs[v].Cells = slices.Clone(next.VCs[v].Cells)
				for k := range next.VCs[v].Cells {
					q := &next.VCs[v].Cells[k]
					q.Tradable = rapid.IntRange(0, q.Cells).Draw(rt, "tradable")
				}
			}
		})
	})
}

// prompt checks that no waiting job of a VC fits completely in one of the VC's free cells.
func (c *chaos) prompt(p *cluster.Plan) {
	size := map[string]int{}
	for _, t := range c.world.Rules.Cells.Types {
		size[t.Name] = 1
		if t.Child != "" {
			size[t.Name] = t.Split * size[t.Child]
		}
	}
	for i := range p.Statuses {
		v := &p.Statuses[i]
		r := recordOf(p, v.Job)
		q := c.world.Job(r.ID).Request
		if v.Reason.Code != cluster.ReasonCells && v.Reason.Code != cluster.ReasonLost || len(r.AvoidNodes) > 0 {
			continue
		}
		for _, view := range p.Cells.Views {
			if view.VC == r.Tenant && view.Free > 0 && size[view.Type] >= q.Size.Devices && (q.Model == "" || strings.HasPrefix(view.Chain, q.Model)) {
				c.Fatalf("job %s of %s waits (%+v) though the VC has free: %+v\n%s", r.ID, r.Tenant, v.Reason, view, encode(*p))
			}
		}
	}
}
