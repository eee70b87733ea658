package engine_test

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/tickets"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// sliced returns a world of nodes of two GPUs with four shards each, on which jobs take turns of a minute, and the tenants x and y.
func sliced(t *testing.T, nodes int) *simtest.World {
	return slicedOn(t, simtest.Nodes("n", "v100", nodes, 2))
}

func slicedOn(t *testing.T, all []cluster.Node) *simtest.World {
	return slicedAmong(t, all, 2, "x", "y")
}

// slicedAmong lets so many jobs of some tenants take turns on a GPU.
func slicedAmong(t *testing.T, all []cluster.Node, jobs int, tenants ...string) *simtest.World {
	set := simtest.Product()
	set.Slices = &cluster.Slices{Quantum: cluster.Minute, Jobs: jobs, Memory: []cluster.GPUMemory{{Model: "v100", Bytes: 32 << 30}}}
	for i := range all {
		all[i].Shards = 2 * jobs
	}
	w := simtest.New(t, set, all, tenants...)
	w.Gate = cluster.Hour
	return w
}

// shares submits jobs of one GPU that may take turns and need so much memory.
func shares(w *simtest.World, tenant string, n int, comment string) (ids []cluster.JobID) {
	for range n {
		ids = append(ids, w.Virtual.Submit(sim.Work{Name: "train", User: tenant + "_user", Account: tenant, Partition: "gpu", Comment: comment,
			Request: cluster.Request{Size: cluster.Whole(1), Nodes: 1, PerNode: 1, CPUs: 1, MemoryMB: 1024}, Runs: 100 * cluster.Hour}))
	}
	return ids
}

const (
	modest = "share=yes,mem.v100=14g"
	little = "share=yes,mem.v100=9g"
)

// Where more jobs wait than there are GPUs, all of them go on within every two minutes, and each tenant has its share within 5 % over ten.
func TestSlices(t *testing.T) {
	for _, c := range []struct {
		nodes, x, y int
	}{{1, 2, 2}, {2, 4, 4}, {3, 9, 3}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			w := sliced(t, c.nodes)
			ids := append(shares(w, "x", c.x, modest), shares(w, "y", c.y, modest)...)
			w.Run(2 * cluster.Minute)
			before := w.Used("x")
			last := map[cluster.JobID]cluster.Span{}
			for range 5 {
				w.Run(2*cluster.Minute + 20*cluster.Second)
				for _, id := range ids {
					done := w.Progress(id)
					if done == last[id] && c.x == c.y {
						t.Errorf("job %s did not go on within two minutes, at %s", id, w.Now())
					}
					last[id] = done
				}
			}
			span := 5 * (2*cluster.Minute + 20*cluster.Second)
			share := float64(w.Used("x")-before) / float64(cluster.GPUTime(c.nodes)*cluster.GPUTime(span))
			t.Logf("x had %.3f of its GPUs", share)
			if share < 0.95 || share > 1.05 {
				t.Errorf("x had %.3f of its GPUs", share)
			}
		})
	}
}

// Three jobs on a GPU take turns in a ring: all go on within every three minutes, and each tenant has its share.
func TestSlicesOfThree(t *testing.T) {
	for _, c := range []struct {
		gpus, x, y int
		comment    string
		among      int // jobs on a GPU
		share      float64
	}{
		{gpus: 1, x: 3, comment: little, among: 3},
		{gpus: 2, x: 3, y: 3, comment: little, among: 3, share: 0.5},
		{gpus: 4, x: 6, y: 6, comment: little, among: 3, share: 0.5},
		{gpus: 1, x: 2, y: 1, comment: little, among: 3, share: 0.5}, // y has half of the GPU beside two, which is its due
		{gpus: 1, x: 3, comment: modest, among: 1},                   // they need more memory than a third of 90 %
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			w := slicedAmong(t, simtest.Nodes("n", "v100", 1, c.gpus), 3, "x", "y")
			ids := append(shares(w, "x", c.x, c.comment), shares(w, "y", c.y, c.comment)...)
			w.Run(40 * cluster.Minute)
			before, began, last := w.Used("x"), w.Now(), map[cluster.JobID]cluster.Span{}
			most := 0
			for range 4 {
				w.Run(3*cluster.Minute + 30*cluster.Second)
				on := map[cluster.Device]int{}
				for _, id := range ids {
					done := w.Progress(id)
					if done == last[id] && c.among == 3 {
						t.Errorf("job %s did not go on within three minutes, at %s", id, w.Now())
					}
					last[id] = done
					for k := range w.Job(id).Holds {
						for d := range w.Job(id).Holds[k].Devices() {
							on[d]++
							most = max(most, on[d])
						}
					}
				}
			}
			if most != c.among {
				t.Errorf("%d jobs were on a GPU, want %d", most, c.among)
			}
			if share := float64(w.Used("x")-before) / float64(c.gpus) / float64(w.Now().Sub(began)); c.share > 0 && (share < c.share-0.05 || share > c.share+0.05) {
				t.Errorf("x had %.3f of the GPUs, want %.3f", share, c.share)
			}
		})
	}
}

// Three tenants have a third of a GPU each, however many jobs of one of them wait: a part goes to the tenant that is furthest behind.
func TestSharesOfTenantsInTurns(t *testing.T) {
	seeds.Slow(t)
	for _, c := range [][2]int{{2, 1}, {2, 2}, {3, 1}, {3, 2}, {3, 20}} {
		w := slicedAmong(t, simtest.Nodes("n", "v100", 1, 1), c[0], "x", "y", "z")
		ids := map[string][]cluster.JobID{"x": shares(w, "x", c[1], little), "y": shares(w, "y", 1, little), "z": shares(w, "z", 1, little)}
		w.Run(4 * cluster.Hour)
		before := did(w, ids)
		const long = 8 * cluster.Hour
		w.Run(long)
		for tenant, done := range did(w, ids) {
			if part := (done - before[tenant]) / float64(long); part < 0.3 || part > 0.37 {
				t.Errorf("%d jobs on a GPU, of x %d wait or run: %s has %.3f of the GPU, is due a third", c[0], c[1], tenant, part)
			}
		}
	}
}

// Of two jobs that start on one GPU, one is suspended at once, though nothing else happens.
func TestSlicesAtTheStart(t *testing.T) {
	w := sliced(t, 1)
	w.Settings.Interval = 2 * cluster.Second
	ids := shares(w, "x", 4, modest)
	w.Run(30 * cluster.Second)
	paused := 0
	for _, id := range ids {
		if w.Job(id).State == cluster.Suspended {
			paused++
		}
	}
	if paused != 2 {
		t.Errorf("%d of four jobs on two GPUs are suspended half a minute after their start, want 2", paused)
	}
}

// Jobs that run on whole GPUs when others come take turns from the end of their terms on.
func TestSlicesAfterATerm(t *testing.T) {
	w := sliced(t, 1)
	ids := append(shares(w, "x", 1, modest), shares(w, "y", 1, modest)...)
	w.Run(cluster.Minute)
	ids = append(ids, append(shares(w, "x", 1, modest), shares(w, "y", 1, modest)...)...)
	w.Run(40 * cluster.Minute)
	last := map[cluster.JobID]cluster.Span{}
	for range 5 {
		for _, id := range ids {
			last[id] = w.Progress(id)
		}
		w.Run(2*cluster.Minute + 20*cluster.Second)
		for _, id := range ids {
			if w.Progress(id) == last[id] {
				t.Errorf("job %s did not go on within two minutes, at %s: %+v", id, w.Now(), w.Reason(id))
			}
		}
	}
}

// An owner who resumes a job in its partner's turns is told of.
func TestTurnsTaken(t *testing.T) {
	w := sliced(t, 1)
	ids := shares(w, "x", 4, modest)
	told := map[cluster.JobKey]int{}
	w.Check = func(r loop.Report) {
		for _, e := range r.Plan.Events {
			if e.Kind == cluster.EventTurnTaken {
				told[e.Job]++
			}
		}
	}
	for range 30 {
		w.Run(10 * cluster.Second)
		if w.Job(ids[1]).State == cluster.Suspended {
			w.Apply(t.Context(), []cluster.Action{{Verb: cluster.Resume, ID: ids[1]}})
			w.Advance(w.Now().Add(cluster.Second))
		}
	}
	if key := w.Record(ids[1]).Key; len(told) != 1 || told[key] != 1 {
		t.Fatalf("told of %v, want once of job %d", told, key)
	}
}

// Jobs that do not say so, that need too much memory or nobody knows how much, take no turns; nor does anybody where GPUs are idle.
func TestNoSlices(t *testing.T) {
	for _, c := range []struct {
		comment string
		n       int
	}{{"", 4}, {"share=yes", 4}, {"share=yes,mem.v100=15g", 4}, {"share=yes,mem.k80=1g", 4}, {modest, 2}} {
		w := sliced(t, 1)
		ids := shares(w, "x", c.n, c.comment)
		w.Check = func(r loop.Report) {
			for k := range r.Plan.Actions {
				if a := &r.Plan.Actions[k]; a.Ask != "" || a.Verb == cluster.Suspend {
					t.Errorf("%q: %s for job %s, which asks for %q", c.comment, a.Verb, a.ID, a.Ask)
				}
			}
		}
		w.Run(cluster.Hour)
		_ = ids
	}
}

// Whatever happens, no job is suspended for much longer than the turns of the others, two or three jobs at most are on a GPU, and of these only one runs, but
// before a requeue, and where they run at the same time by what they report; and a partner that has left leaves nobody suspended.
func TestPropertiesOfSlices(t *testing.T) {
	paired, beside := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		c := newChaosOn(rt, t, func(t *rapid.T) []cluster.Node {
			return simtest.Nodes("a", "v100", rapid.IntRange(1, 2).Draw(t, "v100"), rapid.SampledFrom([]int{1, 2}).Draw(t, "size"))
		})
		jobs := rapid.IntRange(2, 3).Draw(rt, "jobs on a GPU")
		for i := range c.nodes {
			c.nodes[i].Shards = 2 * jobs
		}
		c.world.Settings.Slices = &cluster.Slices{Jobs: jobs, Quantum: cluster.Span(rapid.IntRange(30, 120).Draw(rt, "quantum")) * cluster.Second, Memory: []cluster.GPUMemory{{Model: "v100", Bytes: 32 << 30}},
			Pairs: jobs == 2 && rapid.Bool().Draw(rt, "pairs")}
		c.world.Reports = 10 * cluster.Second
		c.world.Beside = experiment.BesideOthers(nil, rapid.IntRange(30, 90).Draw(rt, "beside"))
		c.world.Loop.Decide = simtest.Checked(t)
		c.comment = func() string { return rapid.SampledFrom([]string{"", modest, little}).Draw(rt, "comment") }
		c.world.Rules.Weights = map[string]int64{"x": 1, "y": rapid.Int64Range(1, 4).Draw(rt, "weight of y"), "z": rapid.SampledFrom([]int64{0, 1, 20}).Draw(rt, "weight of z")}
		c.share()
		since := map[cluster.JobID]cluster.Instant{}
		both := map[cluster.Device]cluster.Instant{}
		c.world.Check = func(r loop.Report) {
			c.safe(&r.Plan)
			on, runs := map[cluster.Device]int{}, map[cluster.Device]int{}
			noticed := map[cluster.Device]bool{}
			for r := range r.Plan.State.All() {
				j := c.world.Job(r.ID)
				c.unequal = c.unequal || r.Slice != nil && r.Slice.Turn.Part > 0
				if j.State != cluster.Suspended && j.State != cluster.Running || r.Slice == nil || len(j.Holds) == 0 {
					delete(since, r.ID)
					continue
				}
				for d := range j.Holds[0].Devices() {
					on[d]++
					if j.State == cluster.Running {
						runs[d]++
					}
					l := inForce(c, r.Key)
					noticed[d] = noticed[d] || l == nil || l.State != cluster.Active || r.Slice.Pair != nil && r.Slice.Pair.Beside
					if r.Slice.Pair != nil && r.Slice.Pair.Beside {
						beside++
					}
				}
				if j.State == cluster.Running {
					delete(since, r.ID)
				} else if since[r.ID] == 0 {
					since[r.ID] = c.world.Now()
				} else if long := c.world.Now().Sub(since[r.ID]); long > max(tickets.Longest, cluster.Span(jobs-1)*c.world.Settings.Slices.Quantum)+cluster.Span(2*jobs-1)*c.world.Settings.Interval {
					c.Fatalf("job %s has been suspended for %s, with %d on its GPU", r.ID, long, len(on))
				}
			}
			for d, n := range on {
				if n > 1 {
					paired++
				}
				if n > jobs {
					c.Fatalf("%d jobs on %v", n, d)
				}
				if runs[d] < 2 || noticed[d] {
					delete(both, d)
				} else if both[d] == 0 {
					both[d] = c.world.Now()
				} else if long := c.world.Now().Sub(both[d]); long > 3*c.world.Settings.Interval {
					c.Fatalf("several jobs on %v have run for %s", d, long)
				}
			}
		}
		c.world.Gate = cluster.Hour
		for range rapid.IntRange(5, 12).Draw(rt, "jobs") {
			c.ids = append(c.ids, shares(c.world, rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "tenant"), 1, rapid.SampledFrom([]string{modest, little, little}).Draw(rt, "memory"))...)
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			c.stir()
			c.world.Run(cluster.Span(rapid.IntRange(1, 400).Draw(rt, "seconds")) * cluster.Second)
			c.balanced()
		}
	})
	t.Logf("several jobs were on a GPU in %d looks, and jobs ran at the same time in %d", paired, beside)
}

// inForce gives the lease of a job in the last plan; nil = it has none.
func inForce(c *chaos, key cluster.JobKey) *cluster.Lease {
	for i := range c.world.Last.State.Leases {
		if l := &c.world.Last.State.Leases[i]; l.Job == key {
			return l
		}
	}
	return nil
}

// lossy is a cluster that does not carry out some of the actions.
type lossy struct {
	*sim.Virtual
	lost func() bool
}

// Apply implements loop.Cluster.
func (l lossy) Apply(ctx context.Context, actions []cluster.Action) []cluster.Outcome {
	out := make([]cluster.Outcome, len(actions))
	for i := range actions {
		if out[i] = (cluster.Outcome{Error: "lost", At: l.Now()}); !l.lost() {
			out[i] = l.Virtual.Apply(ctx, actions[i:i+1])[0]
		}
	}
	return out
}

// Whatever actions are lost, once they are carried out again nobody stays suspended, no job has more than it was granted, and all that is due is in use.
func TestSlicesWithLostActions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := sliced(t, rapid.IntRange(1, 2).Draw(rt, "nodes"))
		w.Loop.Decide = simtest.Checked(t)
		loses := true
		w.Loop.Cluster = lossy{w.Virtual, func() bool { return loses && rapid.IntRange(0, 2).Draw(rt, "lost") == 0 }}
		w.Check = func(r loop.Report) {
			for r := range r.Plan.State.All() {
				if r.Basis != nil && r.Basis.Forced {
					rt.Errorf("job %s counts as one that took GPUs before its turn", r.ID)
				}
			}
		}
		var ids []cluster.JobID
		for _, tenant := range []string{"x", "y"} {
			ids = append(ids, shares(w, tenant, rapid.IntRange(1, 4).Draw(rt, tenant), modest)...)
			ids = append(ids, shares(w, tenant, rapid.IntRange(0, 2).Draw(rt, "whole"), "")...)
		}
		w.Run(cluster.Span(rapid.IntRange(1, 40).Draw(rt, "minutes")) * cluster.Minute)
		loses = false
		w.Run(90 * cluster.Minute) // the longest back-off after failed grants
		since := map[cluster.JobID]cluster.Instant{}
		gpus := map[cluster.Device]cluster.MicroGPU{}
		for range 12 {
			w.Run(w.Settings.Interval)
			clear(gpus)
			for _, id := range ids {
				j := w.Job(id)
				for k := range j.Holds {
					for d := range j.Holds[k].Devices() {
						gpus[d] += j.Holds[k].Size.Part
					}
				}
				if j.State != cluster.Suspended {
					delete(since, id)
				} else if since[id] == 0 {
					since[id] = w.Now()
				} else if long := w.Now().Sub(since[id]); long > w.Settings.Slices.Quantum+3*w.Settings.Interval {
					rt.Fatalf("job %s has been suspended for %s", id, long)
				}
			}
			for d, n := range gpus {
				if n > cluster.WholeGPU {
					rt.Fatalf("%d millionths of %v are in use", n, d)
				}
			}
		}
		for _, id := range ids {
			if j := w.Job(id); j.State == cluster.Waiting && j.Request.Shards > 0 && !w.Record(id).Pinned && w.Record(id).Slice == nil {
				rt.Errorf("job %s waits and asks for %d shards, which its user did not", id, j.Request.Shards)
			}
		}
	})
}
